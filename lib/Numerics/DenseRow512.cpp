//===- DenseRow512.cpp - Rows of a dense GEMM, with AVX-512 ---------------===//
//
// Sums of rows by the method of Dense512.h. Factors are significand * 2^(exponent - 10) here.
//
//===----------------------------------------------------------------------===//
#include "Dense512.h"
#include "DenseKernels.h"

#include <algorithm>
#include <bit>

namespace fp4::numerics {

namespace {

/// 2^exponent of a normal number.
constexpr float powerOfTwo(int32_t exponent) {
  return std::bit_cast<float>(uint32_t(exponent + 127) << 23);
}

/// Makes floats from significands and exponents, in plain loops.
struct Widen {
  [[gnu::always_inline]] static inline void
  run(const int32_t *significands, const int32_t *exponents, size_t count, float *values) {
    constexpr int32_t mostExponent = 127, leastExponent = -126;
    for (size_t i = 0; i < count; ++i) { // clamped where the significand is zero, or special
      const int32_t e = std::clamp(exponents[i], leastExponent, mostExponent);
      values[i] = float(significands[i]) * 0x1p-10f * powerOfTwo(e);
    }
  }
};

} // namespace

bool hasAVX512Products() {
#ifdef FP4_MULTIVERSION_X86
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has;
#else
  return false;
#endif
}

void DenseRows::widen() {
  if (!hasAVX512Products())
    return;
  values.resize(significands.size());
  pairs.resize(significands.size());
  multiversion<Widen>(significands.data(), exponents.data(), significands.size(), values.data());
  for (size_t i = 0; i < pairs.size(); ++i)
    pairs[i] = int32_t(uint32_t(exponents[i]) & 0xFFFF) | exponents[i] * (1 << 16);
}

void DenseColumns::widen() {
  if (!hasAVX512Products())
    return;
  const size_t strips = (count + wide - 1) / wide;
  values.assign(strips * wide * k, 0.0f);
  shortExponents.assign(strips * wide * k, int16_t(absentExponent));
  alignas(32) float block[lanes];
  for (unsigned first = 0; first < count; first += lanes)
    for (unsigned i = 0; i < k; ++i) {
      const size_t from = place(first, i),
                   to = (size_t(first / wide) * k + i) * wide + first % wide;
      multiversion<Widen>(&significands[from], &exponents[from], size_t(lanes), block);
      std::copy_n(block, lanes, &values[to]);
      for (unsigned j = 0; j < lanes; ++j)
        shortExponents[to + j] = int16_t(exponents[from + j]);
    }
}

#ifdef FP4_MULTIVERSION_X86

using namespace dense512;

/// Multiplies all rows by up to 32 columns, and then by the next.
class DenseFloatKernel {
public:
  DenseFloatKernel(const DenseRows &a, const DenseColumns &b, std::span<const DenseRow> rows,
                   const DenseRowOptions &options)
      : a(a), b(b), rows(rows), options(options), up(20 - int(options.bits)) {}

  FP4_AVX512 void run() {
    for (unsigned first = 0; first < b.size(); first += width) {
      const unsigned n = std::min(width, b.size() - first);
      uint32_t special = 0;
      for (unsigned j = 0; !b.special.empty() && j < n; ++j)
        special |= uint32_t(b.isSpecial(first + j)) << j;
      for (unsigned row = 0; row < rows.size(); ++row) {
        const uint32_t others = a.isSpecial(row) ? ~0u : special;
        rows[row].selection ? multiplyRow<true>(row, first, n, others)
                            : multiplyRow<false>(row, first, n, others);
      }
    }
  }

private:
  static constexpr unsigned width = 32;

  template <bool Sparse>
  FP4_AVX512_INLINE inline void multiplyRow(unsigned row, unsigned first, unsigned n,
                                            uint32_t special) {
    n > lanes ? multiply<2, Sparse>(row, first, n, special)
              : multiply<1, Sparse>(row, first, n, special);
  }

  template <unsigned Blocks, bool Sparse>
  FP4_AVX512_INLINE inline void multiply(unsigned index, unsigned first, unsigned n,
                                         uint32_t special) {
    const DenseRow &row = rows[index];
    const unsigned terms = Sparse ? b.k / 2 : b.k;
    const float *valuesA = &a.values[size_t(index) * a.k];
    const int32_t *pairs = &a.pairs[size_t(index) * a.k];
    const float *values = &b.values[size_t(first) * b.k];
    const int16_t *exponents = &b.shortExponents[size_t(first) * b.k];
    const auto place = [&](unsigned i) {
      return (Sparse ? row.selection[i] : i) * DenseColumns::wide;
    };
    __m512i most = _mm512_set1_epi16(2 * absentExponent);
    for (unsigned i = 0; i < terms; ++i)
      most = _mm512_max_epi16(
          most, _mm512_add_epi16(all(pairs[i]), _mm512_loadu_si512(exponents + place(i))));
    Elements elements[Blocks];
    elements[0] = beginBlock(row, first, n, _mm512_castsi512_si256(most));
    if constexpr (Blocks == 2)
      elements[1] = beginBlock(row, first + lanes, n - lanes, _mm512_extracti64x4_epi64(most, 1));
    for (unsigned from = 0; from < terms; from += termsPerSum) {
      __m512i part[Blocks];
      for (__m512i &sum : part)
        sum = _mm512_setzero_si512();
      for (unsigned i = from; i < std::min(from + termsPerSum, terms); ++i) {
        const __m512 value = _mm512_set1_ps(valuesA[i]);
        for (unsigned j = 0; j < Blocks; ++j) {
          const __m512 product =
              _mm512_mul_ps(value, _mm512_loadu_ps(values + place(i) + j * lanes));
          part[j] = _mm512_add_epi32(
              part[j], _mm512_cvttps_epi32(_mm512_mul_ps(product, elements[j].factor)));
        }
      }
      for (unsigned j = 0; j < Blocks; ++j)
        add(elements[j], part[j]);
    }
    for (unsigned j = 0; j < Blocks; ++j)
      finishBlock(index, first + j * lanes, n - j * lanes, special >> (j * lanes), elements[j]);
  }

  static __mmask16 present(unsigned n) { return __mmask16(n >= lanes ? 0xFFFF : (1u << n) - 1); }

  FP4_AVX512_INLINE inline Elements beginBlock(const DenseRow &row, unsigned first, unsigned n,
                                               __m256i products) const {
    const __m512i c = _mm512_maskz_loadu_epi32(present(n), row.d + first);
    if (!row.scales)
      return begin(c, options, products, up, nullptr);
    const __m512i scale = _mm512_maskz_loadu_epi32(present(n), row.scales + first);
    return begin(c, options, products, up, &scale);
  }

  FP4_AVX512_INLINE inline void finishBlock(unsigned index, unsigned first, unsigned n,
                                            uint32_t special, const Elements &o) const {
    uint32_t *d = rows[index].d + first;
    __mmask16 bad;
    const __m512i result = finish(o, options, bad);
    bad = __mmask16((bad | special) & present(n));
    if (bad) [[unlikely]]
      define(index, first, bad);
    _mm512_mask_storeu_epi32(d, present(n) & __mmask16(~bad), result);
  }

  void define(unsigned index, unsigned first, uint32_t which) const {
    for (; which; which &= which - 1) {
      const unsigned column = first + unsigned(std::countr_zero(which));
      uint32_t &d = rows[index].d[column];
      d = denseByDefinition(a, b, rows[index], index, column, d, options);
    }
  }

  const DenseRows &a;
  const DenseColumns &b;
  std::span<const DenseRow> rows;
  const DenseRowOptions &options;
  const int up; ///< products are 2^-up times the true ones
};

void denseRows512(const DenseRows &a, const DenseColumns &b, std::span<const DenseRow> rows,
                  const DenseRowOptions &options) {
  DenseFloatKernel(a, b, rows, options).run();
}

#endif

} // namespace fp4::numerics
