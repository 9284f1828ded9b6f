// Steps of K = 64 in integers: the sums of 16 products of doubled codes are integers. B's codes
// carry an offset of 12, because byte dot products multiply unsigned by signed bytes. The code
// around these sums is plain C++, compiled once for each kind of processor; without contraction of
// multiply and add the bits are the same.
#include "StepKernels.h"
#include <bit>
#include <cmath>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define FP4_INLINE inline __attribute__((always_inline))

namespace fp4::numerics {
namespace {

/// The sums of one group: of products, in quarters, and of their absolute values.
struct GroupSums {
  alignas(64) int32_t dot[panelColumns];
  alignas(64) int32_t magnitude[panelColumns];
};

/// sums[j] = start + the group's products of signed `a` and unsigned `b`.
struct PortableSum {
  static FP4_INLINE void sum(const int8_t *a, const uint8_t (*b)[4 * panelColumns], int32_t start,
                             int32_t *sums) {
    int16_t total[panelColumns] = {}; // at most 16 * 24 * 12
    for (unsigned q = 0; q < groupSize / 4; ++q)
      for (unsigned k = 0; k < 4; ++k)
        for (unsigned j = 0; j < panelColumns; ++j)
          total[j] = static_cast<int16_t>(total[j] + a[4 * q + k] * b[q][4 * j + k]);
    for (unsigned j = 0; j < panelColumns; ++j)
      sums[j] = start + total[j];
  }
};

FP4_INLINE int32_t fourBytes(const int8_t *bytes) {
  int32_t four;
  std::memcpy(&four, bytes, 4);
  return four;
}

#if defined(__x86_64__)
#define FP4_AVX2 __attribute__((target("avx2")))
#define FP4_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

struct Avx2Sum {
  FP4_AVX2 static inline void sum(const int8_t *a, const uint8_t (*b)[4 * panelColumns],
                                      int32_t start, int32_t *sums) {
    for (unsigned half = 0; half < 2; ++half) {
      __m256i pairs = _mm256_setzero_si256(); // sums of pairs fit 16 bits
      for (unsigned q = 0; q < groupSize / 4; ++q) {
        const auto *four = reinterpret_cast<const __m256i *>(b[q] + 32 * half);
        pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(_mm256_load_si256(four),
                                                             _mm256_set1_epi32(fourBytes(a + 4 * q))));
      }
      const __m256i total = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
      _mm256_store_si256(reinterpret_cast<__m256i *>(sums + 8 * half),
                         _mm256_add_epi32(total, _mm256_set1_epi32(start)));
    }
  }
};

struct VnniSum {
  FP4_VNNI static inline void sum(const int8_t *a, const uint8_t (*b)[4 * panelColumns],
                                  int32_t start, int32_t *sums) {
    __m512i total = _mm512_set1_epi32(start);
    for (unsigned q = 0; q < groupSize / 4; ++q)
      total = _mm512_dpbusd_epi32(total, _mm512_load_si512(b[q]),
                                  _mm512_set1_epi32(fourBytes(a + 4 * q)));
    _mm512_store_si512(sums, total);
  }
};
#endif

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

template <typename Sum>
FP4_INLINE uint32_t addExactly(const StepRow &a, const StepPanel &b, float *__restrict d) {
  const ExactRange range = exactRange(a.exponents, b.exponents);
  if (range.empty)
    return (1u << panelColumns) - 1;
  alignas(64) double sum[panelColumns];
  for (unsigned j = 0; j < panelColumns; ++j)
    sum[j] = d[j];
  for (unsigned g = 0; g < stepGroups; ++g) {
    alignas(64) int32_t dot[panelColumns];
    Sum::sum(a.values + g * groupSize, b.offset + g * groupSize / 4, a.correction[g], dot);
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

template <typename Sum>
FP4_INLINE void addReference(const StepRow &a, const StepPanel &b,
                             const StepRounding &rounding, ReferenceState &__restrict r) {
  for (unsigned g = 0; g < stepGroups; ++g) {
    GroupSums sums;
    Sum::sum(a.values + g * groupSize, b.offset + g * groupSize / 4, a.correction[g], sums.dot);
    Sum::sum(a.magnitudes + g * groupSize, b.magnitudes + g * groupSize / 4, 0, sums.magnitude);
    for (unsigned j = 0; j < panelColumns; ++j) {
      const double scale = a.scales[g] * b.scales[g][j];
      r.sum[j] += sums.dot[j] * scale;
      r.magnitude[j] += sums.magnitude[j] * scale;
    }
  }
  endStep(a, b, rounding, r);
}

bool always() { return true; }
uint32_t addExactlyPortable(const StepRow &a, const StepPanel &b, float *d) {
  return addExactly<PortableSum>(a, b, d);
}
void addReferencePortable(const StepRow &a, const StepPanel &b, const StepRounding &rounding,
                  ReferenceState &r) {
  addReference<PortableSum>(a, b, rounding, r);
}

#if defined(__x86_64__)
bool hasAvx2() { return __builtin_cpu_supports("avx2"); }
FP4_AVX2 uint32_t addExactlyAvx2(const StepRow &a, const StepPanel &b, float *d) {
  return addExactly<Avx2Sum>(a, b, d);
}
FP4_AVX2 void addReferenceAvx2(const StepRow &a, const StepPanel &b, const StepRounding &rounding,
                  ReferenceState &r) {
  addReference<Avx2Sum>(a, b, rounding, r);
}

bool hasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}
FP4_VNNI uint32_t addExactlyAvx512(const StepRow &a, const StepPanel &b, float *d) {
  return addExactly<VnniSum>(a, b, d);
}
FP4_VNNI void addReferenceAvx512(const StepRow &a, const StepPanel &b, const StepRounding &rounding,
                                 ReferenceState &r) {
  addReference<VnniSum>(a, b, rounding, r);
}
#endif

const StepKernels kernels[] = {
#if defined(__x86_64__)
    {"avx512-vnni", hasAvx512, addExactlyAvx512, addReferenceAvx512},
    {"avx2", hasAvx2, addExactlyAvx2, addReferenceAvx2},
#endif
    {"portable", always, addExactlyPortable, addReferencePortable},
};

} // namespace

std::span<const StepKernels> allStepKernels() { return kernels; }

const StepKernels &stepKernels() {
  static const StepKernels &best =
      *std::find_if(std::begin(kernels), std::end(kernels), [](auto &k) { return k.supported(); });
  return best;
}

} // namespace fp4::numerics
