// Steps of K = 64 in integers: the sums of 16 products of doubled codes are integers. B's codes
// carry an offset of 12, because byte dot products multiply unsigned by signed bytes. The code
// around these sums is plain C++, compiled once for each kind of processor; without contraction of
// multiply and add the bits are the same.
#include "StepKernels.h"
#include "ByteDots.h"

#include "fp4/Support/Host.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace fp4::numerics {
namespace {

/// The sums of one group: of products, in quarters, and of their absolute values.
struct GroupSums {
  alignas(64) int32_t dot[panelColumns];
  alignas(64) int32_t magnitude[panelColumns];
};

/// Accumulators that leave every element of a row and panel exact in fp64 (Fp4Mma.cpp): zero, and
/// those whose exponent field, in place, lies in [lowest, lowest + span].
struct ExactRange {
  uint32_t lowest = 0, span = 0;
  bool empty = true;
};

FP4_INLINE ExactRange exactRange(const ExponentRange &a, const ExponentRange &b) {
  const int lo = a.lo + b.lo, hi = a.hi + b.hi;
  if (hi - lo > 27 || lo < -100 || hi > 90 || lo > hi)
    return {};
  return {static_cast<uint32_t>(hi - 12 + 127) << 23, static_cast<uint32_t>(lo - hi + 39) << 23,
          false};
}

FP4_INLINE float cutToFloat(double x) {
  const uint64_t mask = ~((uint64_t(1) << 29) - 1);
  return static_cast<float>(std::bit_cast<double>(std::bit_cast<uint64_t>(x) & mask));
}

template <typename Dots>
FP4_INLINE uint32_t addExactly(const StepRow &a, const StepPanel &b, float *__restrict d) {
  const ExactRange range = exactRange(a.exponents, b.exponents);
  if (range.empty)
    return (1u << panelColumns) - 1;
  alignas(64) double sum[panelColumns];
  for (unsigned j = 0; j < panelColumns; ++j)
    sum[j] = d[j];
  for (unsigned g = 0; g < stepGroups; ++g) {
    alignas(64) int32_t dot[panelColumns];
    Dots::sum(a.values + g * groupSize, b.offset + g * groupSize / 4, a.correction[g], dot);
    for (unsigned j = 0; j < panelColumns; ++j)
      sum[j] += dot[j] * (a.scales[g] * b.scales[g][j]);
  }
  uint32_t outside[panelColumns], any = 0;
  for (unsigned j = 0; j < panelColumns; ++j) {
    const uint32_t bits = std::bit_cast<uint32_t>(d[j]), isZero = (bits << 1) == 0;
    const uint32_t inside = (bits & 0x7F800000u) - range.lowest <= range.span;
    outside[j] = (inside | isZero) ^ 1;
    any |= outside[j];
    d[j] = outside[j] ? d[j] : cutToFloat(sum[j]);
  }
  uint32_t inexact = 0;
  for (unsigned j = 0; any && j < panelColumns; ++j)
    inexact |= outside[j] << j;
  return inexact;
}

FP4_INLINE double larger(double a, double b) { return a > b ? a : b; }

FP4_INLINE void endStep(const StepRow &a, const StepPanel &b, const StepRounding &rounding,
                        ReferenceState &__restrict r) {
  for (unsigned j = 0; j < panelColumns; ++j) {
    const double most = r.magnitude[j] + r.error[j];
    const double largest =
        rounding.product * (a.power * b.powers[j]) + rounding.factor * (a.power + b.powers[j]);
    r.error[j] += rounding.cut * most + rounding.align * larger(largest, most) + rounding.least;
    r.reach[j] = larger(r.reach[j], std::fabs(r.sum[j]) + r.error[j]);
  }
}

template <typename Dots>
FP4_INLINE void addReference(const StepRow &a, const StepPanel &b, const StepRounding &rounding,
                             ReferenceState &__restrict r) {
  for (unsigned g = 0; g < stepGroups; ++g) {
    GroupSums sums;
    Dots::sum(a.values + g * groupSize, b.offset + g * groupSize / 4, a.correction[g], sums.dot);
    Dots::sum(a.magnitudes + g * groupSize, b.magnitudes + g * groupSize / 4, 0, sums.magnitude);
    for (unsigned j = 0; j < panelColumns; ++j) {
      const double scale = a.scales[g] * b.scales[g][j];
      r.sum[j] += sums.dot[j] * scale;
      r.magnitude[j] += sums.magnitude[j] * scale;
    }
  }
  endStep(a, b, rounding, r);
}

bool always() { return true; }

// The two kernels of a class of dot products, compiled for its processor.
#define FP4_STEP_KERNELS(Dots, target)                                                             \
  target uint32_t addExactly##Dots(const StepRow &a, const StepPanel &b, float *d) {               \
    return addExactly<Dots>(a, b, d);                                                              \
  }                                                                                                \
  target void addReference##Dots(const StepRow &a, const StepPanel &b,                             \
                                 const StepRounding &rounding, ReferenceState &r) {                \
    addReference<Dots>(a, b, rounding, r);                                                         \
  }

FP4_STEP_KERNELS(PortableDots, )
#if defined(__x86_64__)
FP4_STEP_KERNELS(Avx2Dots, FP4_AVX2)
FP4_STEP_KERNELS(VnniDots, FP4_VNNI)
#elif defined(__aarch64__)
FP4_STEP_KERNELS(NeonDots, )
FP4_STEP_KERNELS(DotprodDots, FP4_DOTPROD)
#endif

const StepKernels kernels[] = {
#if defined(__x86_64__)
    {"avx512-vnni", hasVnni, addExactlyVnniDots, addReferenceVnniDots},
    {"avx2", hasAvx2, addExactlyAvx2Dots, addReferenceAvx2Dots},
#elif defined(__aarch64__)
    {"neon-dotprod", hasArmByteDots, addExactlyDotprodDots, addReferenceDotprodDots},
    {"neon", always, addExactlyNeonDots, addReferenceNeonDots},
#endif
    {"portable", always, addExactlyPortableDots, addReferencePortableDots},
};

} // namespace

std::span<const StepKernels> allStepKernels() { return kernels; }

const StepKernels &stepKernels() {
  static const StepKernels &best =
      *std::find_if(std::begin(kernels), std::end(kernels), [](auto &k) { return k.supported(); });
  return best;
}

} // namespace fp4::numerics
