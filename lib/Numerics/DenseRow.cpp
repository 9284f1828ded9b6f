//===- DenseRow.cpp - Rows of a dense GEMM, vectorized --------------------===//
#include "fp4/Numerics/DenseRow.h"
#include "DenseKernels.h"
#include "FactorDecoder.h"
#include "Multiversion.h"

#include <algorithm>
#include <bit>
#include <cstring>
#ifdef FP4_MULTIVERSION_X86
#include <immintrin.h>
#endif

namespace fp4::numerics {

namespace {

constexpr int32_t zeroExponent = -133;
constexpr unsigned lanes = 8;  ///< columns of a group
constexpr unsigned blocks = 4; ///< groups that one step multiplies
constexpr unsigned termsPerSum = 16, maxTerms = 64;

/// The sum's unit 2^(emax - align) and its highest bit stay inside fp32's normal range up to here.
constexpr int32_t ordinaryEnd = 90;

/// A factor of A that is not zero; its significand is enlarged by 2^(align - bits).
struct Term {
  int32_t significand, exponent;
  uint32_t place; ///< place of its k in a group of columns
};

struct RowTerms {
  const Term *terms = nullptr;
  unsigned count = 0;
  bool special = false; ///< true for NaN or infinity
};

/// Columns of B that one step multiplies, and the exponents and sums of that step.
struct Strip {
  const int32_t *significands, *exponents;
  size_t blockSize; ///< elements of a group of B
  alignas(32) int32_t scales[blocks * lanes];
  alignas(32) int32_t emax[blocks * lanes]; ///< in: of C; out: of all
  alignas(32) int32_t partial[maxTerms / termsPerSum][blocks * lanes];
};

/// Exponents of the products, and their sums.
template <unsigned Blocks> struct PortableProducts {
  static void run(const RowTerms &row, Strip &strip) {
    for (unsigned block = 0; block < Blocks; ++block)
      for (unsigned j = 0; j < lanes; ++j)
        column(row, strip, block, j);
  }

private:
  static void column(const RowTerms &row, Strip &strip, unsigned block, unsigned j) {
    const size_t at = block * strip.blockSize + j;
    const int32_t *significands = strip.significands + at, *exponents = strip.exponents + at;
    const unsigned lane = block * lanes + j;
    int32_t &emax = strip.emax[lane];
    const int32_t scale = strip.scales[lane];
    for (unsigned i = 0; i < row.count; ++i) {
      const Term &term = row.terms[i];
      emax = std::max(emax, term.exponent + exponents[term.place] + scale);
    }
    for (unsigned i = 0; i < row.count; ++i) {
      const Term &term = row.terms[i];
      const int32_t product = term.significand * significands[term.place];
      const int32_t shift = emax - scale - term.exponent - exponents[term.place];
      const int32_t magnitude = (product < 0 ? -product : product) >> std::min(shift, 31);
      int32_t &sum = strip.partial[i / termsPerSum][lane];
      sum = (i % termsPerSum ? sum : 0) + (product < 0 ? -magnitude : magnitude);
    }
  }
};

#ifdef FP4_VECTORS
/// The products and sums in vectors: groups of columns in registers, all terms of A one after the
/// other.
template <unsigned Blocks> struct VectorProducts {
  [[FP4_VECTOR_TARGET]] static void run(const RowTerms &row, Strip &strip) {
    Vector base[Blocks];
    raise(row, strip, base);
    for (unsigned first = 0; first < row.count; first += termsPerSum)
      add(row, first, std::min(first + termsPerSum, row.count), strip, base);
  }

private:
  using Vector = int32_t __attribute__((vector_size(4 * lanes)));
  using Unsigned = uint32_t __attribute__((vector_size(4 * lanes)));

  [[FP4_VECTOR_TARGET, gnu::always_inline]] static inline Vector load(const int32_t *from) {
    Vector value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  [[FP4_VECTOR_TARGET, gnu::always_inline]] static inline void store(int32_t *to, Vector value) {
    std::memcpy(to, &value, sizeof(value));
  }
  [[FP4_VECTOR_TARGET, gnu::always_inline]] static inline Vector larger(Vector a, Vector b) {
    return __builtin_elementwise_max(a, b);
  }

  /// |product| >> shift, with the product's sign. A shift by more than 31 gives zero.
  [[FP4_VECTOR_TARGET, gnu::always_inline]] static inline Vector term(Vector product,
                                                                      Vector shift) {
#ifdef FP4_MULTIVERSION_X86
    const auto magnitude = _mm256_srlv_epi32(_mm256_abs_epi32(__m256i(product)), __m256i(shift));
    return Vector(_mm256_sign_epi32(magnitude, __m256i(product)));
#else
    const Vector sign = product >> 31;
    const Unsigned few = __builtin_elementwise_min(Unsigned(shift), Unsigned() + 31);
    return (Vector(Unsigned(__builtin_elementwise_abs(product)) >> few) ^ sign) - sign;
#endif
  }

  /// Raises emax to the largest exponent of a product. `base` is emax without the scales, from
  /// which the exponents of both factors are subtracted.
  [[FP4_VECTOR_TARGET, gnu::always_inline]] static inline void
  raise(const RowTerms &row, Strip &strip, Vector (&base)[Blocks]) {
    for (Vector &most : base)
      most = Vector() + 2 * absentExponent;
    for (unsigned i = 0; i < row.count; ++i) {
      const int32_t *exponents = strip.exponents + row.terms[i].place;
      for (unsigned b = 0; b < Blocks; ++b)
        base[b] = larger(base[b], row.terms[i].exponent + load(exponents + b * strip.blockSize));
    }
    for (unsigned b = 0; b < Blocks; ++b) {
      const Vector scale = load(strip.scales + b * lanes);
      const Vector emax = larger(load(strip.emax + b * lanes), base[b] + scale);
      store(strip.emax + b * lanes, emax);
      base[b] = emax - scale;
    }
  }

  [[FP4_VECTOR_TARGET, gnu::always_inline]] static inline void add(const RowTerms &row,
                                                                   unsigned first, unsigned last,
                                                                   Strip &strip,
                                                                   const Vector (&base)[Blocks]) {
    Vector sums[Blocks] = {};
    for (unsigned i = first; i < last; ++i) {
      const Term &term = row.terms[i];
      for (unsigned b = 0; b < Blocks; ++b) {
        const size_t at = term.place + b * strip.blockSize;
        const Vector shift = base[b] - term.exponent - load(strip.exponents + at);
        sums[b] += VectorProducts::term(term.significand * load(strip.significands + at), shift);
      }
    }
    for (unsigned b = 0; b < Blocks; ++b)
      store(strip.partial[first / termsPerSum] + b * lanes, sums[b]);
  }
};
#else
template <unsigned Blocks> using VectorProducts = PortableProducts<Blocks>;
#endif

} // namespace

/// Multiplies all rows by up to 32 columns, and then by the next; arrays are by column.
class DenseRowKernel {
public:
  DenseRowKernel(const DenseRows &a, const DenseColumns &b, std::span<const DenseRow> rows,
                 const DenseRowOptions &options, bool vectors)
      : a(a), b(b), rows(rows), options(options), vectors(vectors), allTerms(rows.size() * a.k),
        terms(rows.size()) {
    for (unsigned row = 0; row < rows.size(); ++row)
      terms[row] = collect(row, &allTerms[size_t(row) * a.k]);
  }

  void run() {
    for (unsigned first = 0; first < b.size(); first += width)
      for (unsigned row = 0; row < rows.size(); ++row)
        multiply(row, first, std::min(width, b.size() - first));
  }

private:
  static constexpr unsigned width = blocks * lanes;

  unsigned termsOf(const DenseRow &row) const { return row.selection ? b.k / 2 : b.k; }

  RowTerms collect(unsigned row, Term *to) const {
    const int left = options.precision.align - int(options.bits);
    const int32_t *significands = &a.significands[size_t(row) * a.k];
    const int32_t *exponents = &a.exponents[size_t(row) * a.k];
    const uint8_t *selection = rows[row].selection;
    RowTerms out{to, 0, a.isSpecial(row)};
    for (unsigned i = 0, end = termsOf(rows[row]); i < end; ++i) {
      const unsigned k = selection ? selection[i] : i;
      to[out.count] = {significands[i] * (1 << left), exponents[i], k * lanes};
      out.count += significands[i] != 0;
    }
    return out;
  }

  void multiply(unsigned index, unsigned first, unsigned n) {
    const DenseRow &row = rows[index];
    uint32_t *to = row.d + first;
    std::memset(d, 0, sizeof(d));
    std::memcpy(d, to, n * sizeof(*d));
    bool anyUnusual = terms[index].special || !b.special.empty();
    if (!terms[index].special) {
      prepare(row, first, n);
      anyUnusual |= vectors ? multiversion<Accumulate>(this, &terms[index], n)
                            : Accumulate::run(this, &terms[index], n);
    }
    if (!anyUnusual) {
      std::memcpy(to, results, n * sizeof(*d));
      return;
    }
    for (unsigned j = 0; j < n; ++j)
      to[j] = terms[index].special || unusual[j] || b.isSpecial(first + j)
                  ? denseByDefinition(a, b, row, index, first + j, row.d[first + j], options)
                  : results[j];
  }

  void prepare(const DenseRow &row, unsigned first, unsigned n) {
    strip.significands = &b.significands[b.place(first, 0)];
    strip.exponents = &b.exponents[b.place(first, 0)];
    strip.blockSize = size_t(b.k) * lanes;
    std::memset(strip.scales, 0, sizeof(strip.scales));
    if (row.scales)
      std::memcpy(strip.scales, row.scales + first, n * sizeof(*strip.scales));
  }

  /// The vectorized part, compiled for each instruction set. Returns true when some results must
  /// not be used.
  struct Accumulate {
    [[gnu::always_inline]] static inline bool run(DenseRowKernel *kernel, const RowTerms *row,
                                                  unsigned n) {
      switch ((n + lanes - 1) / lanes) {
      case 1:
        return kernel->accumulate<1>(*row);
      case 2:
        return kernel->accumulate<2>(*row);
      case 3:
        return kernel->accumulate<3>(*row);
      default:
        return kernel->accumulate<blocks>(*row);
      }
    }
  };

  template <unsigned Blocks> [[gnu::always_inline]] inline bool accumulate(const RowTerms &row) {
    constexpr unsigned n = Blocks * lanes;
    const bool half = options.dType == hw::AccumulatorType::F16;
    half ? decodeAddends<n>(10, 5) : decodeAddends<n>(23, 8);
    if (row.count == 0)
      std::memset(strip.partial[0], 0, sizeof(strip.partial[0]));
    if (vectors)
      VectorProducts<Blocks>::run(row, strip);
    else
      PortableProducts<Blocks>::run(row, strip);
    half ? alignAddends<n>(10) : alignAddends<n>(23);
    if (!half && row.count <= termsPerSum) {
      roundPart<n>();
    } else {
      addUp<n>(row.count);
      half ? roundToHalf<n>() : roundTowardZero<n>();
    }
    int32_t any = 0;
    for (unsigned j = 0; j < n; ++j)
      any |= unusual[j];
    return any;
  }

  template <unsigned N>
  [[gnu::always_inline]] inline void decodeAddends(int fractionBits, int exponentBits) {
    const int32_t fractions = (1 << fractionBits) - 1, top = (1 << exponentBits) - 1;
    const int32_t bias = (1 << (exponentBits - 1)) - 1 + options.addendShift;
    for (unsigned j = 0; j < N; ++j) {
      const int32_t field = int32_t(d[j]) >> fractionBits & top;
      const int32_t magnitude = (int32_t(d[j]) & fractions) | (field ? 1 << fractionBits : 0);
      const int32_t exponent = std::max(field, 1) - bias;
      const int32_t negative = int32_t(d[j]) >> (fractionBits + exponentBits) & 1;
      addend[j] = magnitude;
      addendSign[j] = -negative;
      addendExponent[j] = magnitude ? exponent : zeroExponent;
      unusual[j] = field == top;
      strip.emax[j] = std::max(addendExponent[j], zeroExponent);
    }
  }

  /// The addends become multiples of 2^(emax - align), with their sign.
  template <unsigned N> [[gnu::always_inline]] inline void alignAddends(int fractionBits) {
    const int left = std::max(options.precision.align - fractionBits, 0);
    const int right = std::max(fractionBits - options.precision.align, 0);
    for (unsigned j = 0; j < N; ++j) {
      const int32_t shift = std::min(strip.emax[j] - addendExponent[j] + right, 31);
      addend[j] = ((addend[j] << left >> shift) ^ addendSign[j]) - addendSign[j];
    }
  }

  /// Rounds one partial sum to fp32; with the addend it has up to 32 bits and a sign.
  template <unsigned N> [[gnu::always_inline]] inline void roundPart() {
    const uint32_t kept = ~0u << (23 - options.precision.result);
    const int32_t align = options.precision.align, least = align - 126;
    for (unsigned j = 0; j < N; ++j) {
      const uint32_t part = uint32_t(strip.partial[0][j]), c = uint32_t(addend[j]);
      const uint32_t sum = part + c;
      const uint32_t overflow = (part ^ sum) & (c ^ sum);
      const uint32_t sign = uint32_t(int32_t(sum ^ overflow) >> 31);
      const uint32_t magnitude = (sum ^ sign) - sign, big = magnitude >> 31;
      // The conversion does not round up without the bit below the 24 that are kept.
      uint32_t top = magnitude >> big;
      top &= ~(top >> 24);
      const uint32_t unit = uint32_t(strip.emax[j] - align + 127 + int32_t(big)) << 23;
      const float value = float(int32_t(top)) * std::bit_cast<float>(unit);
      const uint32_t bits = (std::bit_cast<uint32_t>(value) & kept) | (sign & 0x80000000u);
      results[j] = magnitude ? bits : 0;
      const bool ordinary = strip.emax[j] > least && strip.emax[j] < ordinaryEnd;
      unusual[j] |= !ordinary && magnitude;
    }
  }

  template <unsigned N> [[gnu::always_inline]] inline void addUp(unsigned terms) {
    for (unsigned j = 0; j < N; ++j)
      sums[j] = addend[j];
    for (unsigned part = 0; part * termsPerSum < terms; ++part)
      for (unsigned j = 0; j < N; ++j)
        sums[j] += strip.partial[part][j];
  }

  /// 2^(emax - align).
  [[gnu::always_inline]] inline double unit(unsigned j) const {
    const int64_t exponent = int64_t(strip.emax[j]) - options.precision.align + 1023;
    return std::bit_cast<double>(uint64_t(exponent) << 52);
  }

  template <unsigned N> [[gnu::always_inline]] inline void roundTowardZero() {
    const uint64_t kept = ~0ull << (52 - options.precision.result);
    const int32_t least = options.precision.align - 126;
    for (unsigned j = 0; j < N; ++j) {
      const uint64_t sum = std::bit_cast<uint64_t>(sums[j]);
      results[j] = std::bit_cast<uint32_t>(float(std::bit_cast<double>(sum & kept) * unit(j)));
      const bool ordinary = strip.emax[j] > least && strip.emax[j] < ordinaryEnd;
      unusual[j] |= sums[j] != 0 && !ordinary;
    }
  }

  template <unsigned N> [[gnu::always_inline]] inline void roundToHalf() {
    for (unsigned j = 0; j < N; ++j)
      results[j] = std::bit_cast<uint16_t>(static_cast<_Float16>(sums[j] * unit(j)));
  }

  const DenseRows &a;
  const DenseColumns &b;
  std::span<const DenseRow> rows;
  const DenseRowOptions &options;
  const bool vectors;
  std::vector<Term> allTerms;
  std::vector<RowTerms> terms; ///< terms by row
  Strip strip;
  alignas(32) uint32_t d[width], results[width];
  alignas(32) int32_t addend[width], addendSign[width], addendExponent[width];
  alignas(32) int32_t unusual[width]; ///< elements for the definition
  alignas(32) double sums[width];
};

uint32_t denseByDefinition(const DenseRows &a, const DenseColumns &b, const DenseRow &row,
                           unsigned index, unsigned column, uint32_t c,
                           const DenseRowOptions &options) {
  Factor ofA[maxTerms], ofB[maxTerms];
  const unsigned count = row.selection ? b.k / 2 : b.k;
  for (unsigned i = 0; i < count; ++i) {
    ofA[i] = a.factor(index, i);
    ofB[i] = b.factor(column, row.selection ? row.selection[i] : i);
  }
  return denseElement({ofA, count}, {ofB, count}, options.bits, row.scales ? row.scales[column] : 0,
                      options.dType, c, options.precision, options.addendShift);
}

namespace {

#ifdef FP4_VECTORS
void runWithVectors(const DenseRows &a, const DenseColumns &b, std::span<const DenseRow> rows,
                    const DenseRowOptions &options) {
  DenseRowKernel(a, b, rows, options, true).run();
}
#endif
void runPortable(const DenseRows &a, const DenseColumns &b, std::span<const DenseRow> rows,
                 const DenseRowOptions &options) {
  DenseRowKernel(a, b, rows, options, false).run();
}

const DenseRowMethod methods[] = {
#ifdef FP4_MULTIVERSION_X86
    {"avx512", false, hasAVX512Products, denseRows512},
#endif
#ifdef FP4_VECTORS
    {FP4_VECTORS, true, hasVectors, runWithVectors},
#endif
    {"portable", true, [] { return true; }, runPortable},
};

} // namespace

std::span<const DenseRowMethod> denseRowMethods() { return methods; }

bool areScaled(const DenseRows &a, const DenseColumns &b) { return a.isScaled || b.isScaled; }

void denseRows(const DenseRows &a, const DenseColumns &b, std::span<const DenseRow> rows,
               const DenseRowOptions &options) {
  const auto first = [](bool scaled) {
    return std::ranges::find_if(methods, [=](const DenseRowMethod &method) {
      return method.supported() && (method.takesScaled || !scaled);
    });
  };
  static const DenseRowMethod *best = first(false), *ofScaled = first(true);
  (areScaled(a, b) ? ofScaled : best)->run(a, b, rows, options);
}

void denseRow(const FactorRow &a, const DenseColumns &b, std::span<const int32_t> scales,
              std::span<uint32_t> d, const DenseRowOptions &options) {
  const DenseRow row{d.data(), scales.data()};
  denseRows(DenseRows({&a, 1}, std::min(b.depth(), maxDenseK)), b, {&row, 1}, options);
}

} // namespace fp4::numerics
