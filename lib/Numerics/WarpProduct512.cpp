//===- WarpProduct512.cpp - m16n8k16 of one warp, with AVX-512 ------------===//
//
// The 16 rows of A are the lanes of a vector, and one column of B after the other is multiplied by
// all of them (Dense512.h). In a register of A, C or D, lane 4 r + c belongs to row r; word c of
// all rows of two registers makes a vector. A register of B has 8 factors of each column, one after
// the other.
//
//===----------------------------------------------------------------------===//
#include "Dense512.h"
#include "DenseKernels.h"
#include "fp4/Numerics/WarpProduct.h"

namespace fp4::numerics {

#ifdef FP4_MULTIVERSION_X86

using namespace dense512;
using hw::MmaType;

namespace {

constexpr unsigned columns = 8, maxK = 16;

/// Words c, 4 + c, ... of two registers: of rows 0 to 7 and 8 to 15.
FP4_AVX512_INLINE inline __m512i pick(const uint32_t *low, const uint32_t *high, unsigned c) {
  const __m512i every = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
  const __m512i which = _mm512_add_epi32(every, all(int32_t(c)));
  const __m512i first =
      _mm512_permutex2var_epi32(_mm512_loadu_si512(low), which, _mm512_loadu_si512(low + lanes));
  const __m512i second =
      _mm512_permutex2var_epi32(_mm512_loadu_si512(high), which, _mm512_loadu_si512(high + lanes));
  return _mm512_mask_blend_epi32(0xFF00, first, second);
}

/// The opposite: words 0 to 3 of every row to a register of rows 0 to 7 and one of the others.
FP4_AVX512_INLINE inline void unpick(const __m512i (&words)[4], uint32_t *low, uint32_t *high) {
  const __m512i lowPairs[] = {_mm512_unpacklo_epi32(words[0], words[1]),
                              _mm512_unpacklo_epi32(words[2], words[3])};
  const __m512i highPairs[] = {_mm512_unpackhi_epi32(words[0], words[1]),
                               _mm512_unpackhi_epi32(words[2], words[3])};
  const __m512i rows[] = {_mm512_unpacklo_epi64(lowPairs[0], lowPairs[1]), // 0, 4, 8, 12
                          _mm512_unpackhi_epi64(lowPairs[0], lowPairs[1]), // 1, 5, 9, 13
                          _mm512_unpacklo_epi64(highPairs[0], highPairs[1]),
                          _mm512_unpackhi_epi64(highPairs[0], highPairs[1])};
  alignas(64) uint32_t out[4][lanes];
  for (unsigned i = 0; i < 4; ++i)
    _mm512_store_si512(out[i], rows[i]);
  for (unsigned row = 0; row < columns; ++row) {
    const auto from = [&](unsigned r) { return &out[r % 4][r / 4 * 4]; };
    _mm_storeu_si128(reinterpret_cast<__m128i *>(low + 4 * row),
                     _mm_load_si128(reinterpret_cast<const __m128i *>(from(row))));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(high + 4 * row),
                     _mm_load_si128(reinterpret_cast<const __m128i *>(from(row + 8))));
  }
}

/// f16 that are the low halves of words.
FP4_AVX512_INLINE inline __m512 fromHalves(__m512i words) {
  return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(words));
}

/// Factor `index` of the 2 or 4 in each word.
FP4_AVX512_INLINE inline __m512 factors(MmaType type, __m512i words, unsigned index) {
  const __m512i shifted = _mm512_srl_epi32(words, _mm_cvtsi32_si128(int(index * 8)));
  switch (type) {
  case MmaType::F16:
    return fromHalves(index ? _mm512_srli_epi32(words, 16) : words);
  case MmaType::BF16:
    return _mm512_castsi512_ps(index ? _mm512_and_si512(words, all(int32_t(0xFFFF0000)))
                                     : _mm512_slli_epi32(words, 16));
  case MmaType::E5M2:
    return fromHalves(_mm512_slli_epi32(shifted, 8));
  default: { // E4M3, whose bias is 7, by way of f16
    const __m512i magnitude = _mm512_and_si512(shifted, all(0x7F));
    const __m512i sign = _mm512_slli_epi32(_mm512_and_si512(shifted, all(0x80)), 8);
    const __m512i code = _mm512_or_si512(_mm512_slli_epi32(magnitude, 7), sign);
    const __m512 value = _mm512_mul_ps(fromHalves(code), _mm512_set1_ps(0x1p8f));
    const __mmask16 nan = _mm512_cmpeq_epi32_mask(magnitude, all(0x7F));
    return _mm512_mask_mov_ps(value, nan, _mm512_castsi512_ps(all(0x7F800000)));
  }
  }
}

/// The least exponent that subnormal factors count with: fp8 is multiplied as f16.
int32_t leastExponent(MmaType type) { return type == MmaType::BF16 ? -126 : -14; }

/// The factors of one product of 8 or 16 deep.
struct Operands {
  bool special = false; ///< has NaN or infinity
  __m512 a[maxK];
  __m256i aExponents[maxK];
  // By k / 8 and k % 2, and then by column and k % 8 / 2, as registers have them.
  alignas(64) float b[maxK / 8][2][32];
  alignas(64) int32_t bExponents[maxK / 8][2][32]; ///< twice, in 16 bits
};

FP4_AVX512_INLINE inline void addFactors(Operands &to, __m512 value, int32_t least, unsigned at) {
  to.special |= specials(value) != 0;
  to.a[at] = value;
  to.aExponents[at] = _mm512_cvtepi32_epi16(exponents(value, least, absentExponent));
}

/// Of fp8 the two low bytes of all registers are `part` 0, and the others part 1.
template <unsigned depth>
FP4_AVX512_INLINE inline void load(const WarpProduct &p, unsigned part, Operands &to) {
  for (unsigned i = 0; i < depth / 8; ++i) {
    for (unsigned c = 0; c < 4; ++c) {
      const __m512i words = pick(p.a[2 * i], p.a[2 * i + 1], c);
      for (unsigned j = 0; j < 2; ++j)
        addFactors(to, factors(p.aType, words, 2 * part + j), leastExponent(p.aType),
                   8 * i + 2 * c + j);
    }
    for (unsigned half = 0; half < 2; ++half) { // of 4 columns
      const __m512i words = _mm512_loadu_si512(p.b[i] + half * lanes);
      for (unsigned j = 0; j < 2; ++j) {
        const __m512 value = factors(p.bType, words, 2 * part + j);
        to.special |= specials(value) != 0;
        const __m512i exponent = exponents(value, leastExponent(p.bType), absentExponent);
        _mm512_store_ps(&to.b[i][j][half * lanes], value);
        _mm512_store_si512(&to.bExponents[i][j][half * lanes],
                           _mm512_or_si512(_mm512_and_si512(exponent, all(0xFFFF)),
                                           _mm512_slli_epi32(exponent, 16)));
      }
    }
  }
}

/// Column `n` of D from that of C. `bad` gets the elements that are not right.
template <unsigned depth>
FP4_AVX512_INLINE inline __m512i column(const Operands &operands, unsigned n, __m512i c,
                                        __mmask16 &bad) {
  const DenseRowOptions options;
  const auto ofB = [&](const auto &array, unsigned i) {
    return array[i / 8][i % 2][4 * n + i % 8 / 2];
  };
  __m256i most = _mm256_set1_epi16(2 * absentExponent);
  for (unsigned i = 0; i < depth; ++i)
    most = _mm256_max_epi16(most, _mm256_add_epi16(_mm256_set1_epi32(ofB(operands.bExponents, i)),
                                                   operands.aExponents[i]));
  Elements elements = begin(c, options, most, 0, nullptr);
  __m512i sum = _mm512_setzero_si512();
  for (unsigned i = 0; i < depth; ++i) {
    const __m512 product = _mm512_mul_ps(_mm512_set1_ps(ofB(operands.b, i)), operands.a[i]);
    sum = _mm512_add_epi32(sum, _mm512_cvttps_epi32(_mm512_mul_ps(product, elements.factor)));
  }
  add(elements, sum);
  __mmask16 some;
  const __m512i result = finish(elements, options, some);
  bad |= some;
  return result;
}

FP4_AVX512_INLINE inline __m512i ofC(const WarpProduct &p, unsigned n) {
  return pick(p.c[n % 2], p.c[2 + n % 2], n / 2);
}

/// C plus the sum of fp8's two products, rounded to nearest; NaN is canonical.
FP4_AVX512_INLINE inline __m512i plus(__m512i c, __m512i sum) {
  const __m512 total = _mm512_add_ps(_mm512_castsi512_ps(c), _mm512_castsi512_ps(sum));
  return _mm512_mask_mov_epi32(_mm512_castps_si512(total),
                               _mm512_cmp_ps_mask(total, total, _CMP_UNORD_Q), all(0x7FFFFFFF));
}

template <unsigned depth> FP4_AVX512 bool multiply512(const WarpProduct &p) {
  Operands operands;
  load<depth>(p, 0, operands);
  const bool narrow = depth != p.k;
  __m512i d[columns];
  __mmask16 bad = operands.special ? 0xFFFF : 0;
  for (unsigned n = 0; n < columns; ++n)
    d[n] = column<depth>(operands, n, narrow ? _mm512_setzero_si512() : ofC(p, n), bad);
  if (narrow) {
    load<depth>(p, 1, operands);
    for (unsigned n = 0; n < columns; ++n)
      d[n] = plus(ofC(p, n), column<depth>(operands, n, d[n], bad));
  }
  if (bad || operands.special)
    return false;
  for (unsigned j = 0; j < 2; ++j)
    unpick({d[j], d[2 + j], d[4 + j], d[6 + j]}, p.d[j], p.d[2 + j]);
  return true;
}

} // namespace

bool multiplyWarp(const WarpProduct &product) {
  if (!hasAVX512Products())
    return false;
  const bool narrow = product.aType == MmaType::E4M3 || product.aType == MmaType::E5M2;
  return product.k == (narrow ? 2 : 1) * maxK ? multiply512<maxK>(product)
                                              : multiply512<maxK / 2>(product);
}

#else

bool multiplyWarp(const WarpProduct &) { return false; }

#endif

} // namespace fp4::numerics
