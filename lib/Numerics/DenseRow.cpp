//===- DenseRow.cpp - A row of a dense matrix product, vectorized ---------===//
#include "fp4/Numerics/DenseRow.h"

#include <algorithm>
#include <bit>

#if defined(__x86_64__) && defined(__clang__)
#define FP4_DENSE_X86 1
#endif

namespace fp4::numerics {

namespace {

constexpr int32_t zeroExponent = -133;
constexpr int32_t absentExponent = -0x4000; ///< of a zero factor: no shift brings its product back
constexpr unsigned maxColumns = 256;
constexpr unsigned termsPerSum = 16;

/// Where the sum's unit 2^(emax - align) and its highest bit stay inside fp32's normal range.
bool isOrdinary(int32_t emax, int align) { return emax - align > -126 && emax < 90; }

} // namespace

DenseColumns::DenseColumns(std::vector<FactorRow> columns, unsigned k)
    : rows(std::move(columns)), k(k), parts((k + maxDenseK - 1) / maxDenseK),
      count(unsigned(rows.size()) / parts), significands(size_t(count) * k),
      exponents(size_t(count) * k), special(count) {
  for (unsigned j = 0; j < count; ++j)
    for (unsigned i = 0; i < k; ++i) {
      const Factor &f = factor(j, i);
      significands[size_t(i) * count + j] = f.significand;
      exponents[size_t(i) * count + j] = f.significand ? f.exponent : absentExponent;
      special[j] |= f.kind != Factor::Finite;
    }
}

/// One row; the arrays are by column.
class DenseRowKernel {
public:
  DenseRowKernel(const FactorRow &a, const DenseColumns &b, std::span<const int32_t> scales,
                 std::span<uint32_t> d, const DenseRowOptions &options)
      : a(a), b(b), scales(scales), d(d), options(options), n(b.size()),
        terms(options.selection ? b.k / 2 : b.k) {}

  void run() {
    for (unsigned i = 0; i < terms; ++i)
      rowIsSpecial |= a[i].kind != Factor::Finite;
    if (!rowIsSpecial)
      accumulate();
    for (unsigned j = 0; j < n; ++j)
      d[j] = rowIsSpecial || unusual[j] ? byDefinition(j) : results[j];
  }

private:
  /// The k of B that term `i` multiplies.
  unsigned place(unsigned i) const { return options.selection ? options.selection[i] : i; }

  uint32_t byDefinition(unsigned j) const {
    FactorRow column;
    for (unsigned i = 0; i < terms; ++i)
      column[i] = b.factor(j, place(i));
    return denseElement({a.data(), terms}, {column.data(), terms}, options.bits, scales[j],
                        options.dType, d[j], options.precision, options.addendShift);
  }

  /// The vectorized part, compiled for several instruction sets.
  [[gnu::always_inline]] inline void accumulateBody() {
    decodeAddends();
    for (unsigned i = 0; i < terms; ++i)
      if (a[i].significand)
        raiseExponents(a[i].exponent, &b.exponents[place(i) * n], scales.data());
    addAddends();
    for (unsigned first = 0; first < terms; first += termsPerSum)
      addProducts(first, std::min(first + termsPerSum, terms));
    options.dType == hw::AccumulatorType::F16 ? roundToHalf() : roundTowardZero();
  }

  [[gnu::always_inline]] inline void raiseExponents(int32_t exponent, const int32_t *be,
                                                    const int32_t *scale) {
    for (unsigned j = 0; j < n; ++j)
      emax[j] = std::max(emax[j], exponent + be[j] + scale[j]);
  }

  [[gnu::always_inline]] inline void decodeAddends() {
    const bool half = options.dType == hw::AccumulatorType::F16;
    const int fraction = half ? 10 : 23, top = half ? 31 : 255, bias = half ? 15 : 127;
    const uint32_t *d = this->d.data();
    const int32_t *special = b.special.data();
    for (unsigned j = 0; j < n; ++j) {
      const int32_t field = int32_t(d[j] >> fraction) & top;
      const int32_t low = int32_t(d[j] & ((1u << fraction) - 1));
      const int32_t magnitude = field ? low | 1 << fraction : low;
      const bool negative = d[j] >> (half ? 15 : 31) & 1;
      addend[j] = negative ? -magnitude : magnitude;
      addendExponent[j] =
          magnitude ? std::max(field, 1) - bias - options.addendShift : zeroExponent;
      unusual[j] = field == top || special[j];
      emax[j] = std::max(addendExponent[j], zeroExponent);
    }
  }

  [[gnu::always_inline]] inline void addAddends() {
    const int fraction = options.dType == hw::AccumulatorType::F16 ? 10 : 23;
    const int left = std::max(options.precision.align - fraction, 0);
    const int right = std::max(fraction - options.precision.align, 0);
    for (unsigned j = 0; j < n; ++j) {
      const int32_t shift = std::min(emax[j] - addendExponent[j] + right, 31);
      const uint32_t magnitude = uint32_t(addend[j] < 0 ? -addend[j] : addend[j]) << left >> shift;
      sums[j] = double(addend[j] < 0 ? -int32_t(magnitude) : int32_t(magnitude));
    }
  }

  [[gnu::always_inline]] inline void addProducts(unsigned first, unsigned last) {
    const int left = options.precision.align - int(options.bits);
    int32_t partial[maxColumns] = {};
    for (unsigned i = first; i < last; ++i) {
      const int32_t significand = a[i].significand, exponent = a[i].exponent;
      if (!significand)
        continue;
      const int32_t *bs = &b.significands[place(i) * n], *be = &b.exponents[place(i) * n];
      for (unsigned j = 0; j < n; ++j) {
        const int32_t product = significand * bs[j];
        const int32_t shift = std::min(emax[j] - exponent - be[j] - scales[j], 31);
        const uint32_t term = uint32_t(product < 0 ? -product : product) << left >> shift;
        partial[j] += product < 0 ? -int32_t(term) : int32_t(term);
      }
    }
    for (unsigned j = 0; j < n; ++j)
      sums[j] += partial[j];
  }

  /// 2^(emax - align).
  [[gnu::always_inline]] inline double unit(unsigned j) const {
    return std::bit_cast<double>(uint64_t(int64_t(emax[j]) - options.precision.align + 1023) << 52);
  }

  [[gnu::always_inline]] inline void roundTowardZero() {
    const int dropped = 52 - options.precision.result;
    for (unsigned j = 0; j < n; ++j) {
      const uint64_t kept = std::bit_cast<uint64_t>(sums[j]) >> dropped << dropped;
      results[j] = std::bit_cast<uint32_t>(float(std::bit_cast<double>(kept) * unit(j)));
      unusual[j] |= sums[j] != 0 && !isOrdinary(emax[j], options.precision.align);
    }
  }

  [[gnu::always_inline]] inline void roundToHalf() {
    for (unsigned j = 0; j < n; ++j)
      results[j] = std::bit_cast<uint16_t>(static_cast<_Float16>(sums[j] * unit(j)));
  }

#ifdef FP4_DENSE_X86
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void accumulateAVX512() {
    accumulateBody();
  }
  [[gnu::target("avx2")]] void accumulateAVX2() { accumulateBody(); }
#endif
  void accumulatePortable() { accumulateBody(); }

  void accumulate() {
#ifdef FP4_DENSE_X86
    if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw"))
      return accumulateAVX512();
    if (__builtin_cpu_supports("avx2"))
      return accumulateAVX2();
#endif
    accumulatePortable();
  }

  const FactorRow &a;
  const DenseColumns &b;
  std::span<const int32_t> scales;
  std::span<uint32_t> d;
  const DenseRowOptions &options;
  const unsigned n, terms;
  bool rowIsSpecial = false;
  int32_t emax[maxColumns], addend[maxColumns], addendExponent[maxColumns];
  int32_t unusual[maxColumns]; ///< for the definition
  uint32_t results[maxColumns];
  double sums[maxColumns];
};

void denseRow(const FactorRow &a, const DenseColumns &b, std::span<const int32_t> scales,
              std::span<uint32_t> d, const DenseRowOptions &options) {
  DenseRowKernel(a, b, scales, d, options).run();
}

} // namespace fp4::numerics
