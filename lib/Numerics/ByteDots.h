//===- ByteDots.h - Products of bytes of 16 columns, for every processor --===//
//
// All classes compute, for each column j of 16,
//
//   sums[j] = start + sum over k of 16 of a[k] * b[k / 4][4 j + k % 4]
//
// of fp4 values that are doubled: |a| <= 12. Bytes of b carry an offset of 12, because x86
// multiplies unsigned by signed bytes. Sums are integers, so that all classes give the same bits.
// A class is one instruction set, and its `sum` is inlined where the macro of that set is.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#define FP4_AVX2 __attribute__((target("avx2")))
#define FP4_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#elif defined(__aarch64__)
#include <arm_neon.h>
#define FP4_DOTPROD __attribute__((target("dotprod")))
#endif

#define FP4_INLINE inline __attribute__((always_inline))

namespace fp4::numerics {

constexpr unsigned dotColumns = 16, dotQuads = 4;
using DotQuad = uint8_t[4 * dotColumns]; ///< four bytes of each column

FP4_INLINE int32_t fourBytes(const int8_t *bytes) {
  int32_t four;
  std::memcpy(&four, bytes, 4);
  return four;
}

/// Plain loops, which the compiler vectorizes.
struct PortableDots {
  static FP4_INLINE void sum(const int8_t *a, const DotQuad *b, int32_t start, int32_t *sums) {
    int16_t total[dotColumns] = {}; // at most 16 * 24 * 12
    for (unsigned q = 0; q < dotQuads; ++q)
      for (unsigned k = 0; k < 4; ++k)
        for (unsigned j = 0; j < dotColumns; ++j)
          total[j] = static_cast<int16_t>(total[j] + a[4 * q + k] * b[q][4 * j + k]);
    for (unsigned j = 0; j < dotColumns; ++j)
      sums[j] = start + total[j];
  }
};

#if defined(__x86_64__)

inline bool hasAvx2() { return __builtin_cpu_supports("avx2"); }
inline bool hasVnni() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

/// Pairs of bytes in 16 bits, which hold the sum of a column.
struct Avx2Dots {
  FP4_AVX2 static inline void sum(const int8_t *a, const DotQuad *b, int32_t start, int32_t *sums) {
    for (unsigned half = 0; half < 2; ++half) {
      __m256i pairs = _mm256_setzero_si256();
      for (unsigned q = 0; q < dotQuads; ++q) {
        const auto *four = reinterpret_cast<const __m256i *>(b[q] + 32 * half);
        pairs =
            _mm256_add_epi16(pairs, _mm256_maddubs_epi16(_mm256_load_si256(four),
                                                         _mm256_set1_epi32(fourBytes(a + 4 * q))));
      }
      const __m256i total = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
      _mm256_store_si256(reinterpret_cast<__m256i *>(sums + 8 * half),
                         _mm256_add_epi32(total, _mm256_set1_epi32(start)));
    }
  }
};

struct VnniDots {
  FP4_VNNI static inline __m512i sum(const int8_t *a, const DotQuad *b, int32_t start) {
    __m512i total = _mm512_set1_epi32(start);
    for (unsigned q = 0; q < dotQuads; ++q)
      total = _mm512_dpbusd_epi32(total, _mm512_load_si512(b[q]),
                                  _mm512_set1_epi32(fourBytes(a + 4 * q)));
    return total;
  }
  FP4_VNNI static inline void sum(const int8_t *a, const DotQuad *b, int32_t start, int32_t *sums) {
    _mm512_store_si512(sums, sum(a, b, start));
  }
};

#elif defined(__aarch64__)

/// Dot products of signed bytes: b's are at most 24.
struct DotprodDots {
  FP4_DOTPROD static inline void sum(const int8_t *a, const DotQuad *b, int32_t start,
                                     int32_t *sums) {
    for (unsigned part = 0; part < dotQuads; ++part) { // 4 columns
      int32x4_t total = vdupq_n_s32(start);
      for (unsigned q = 0; q < dotQuads; ++q) {
        const int8x16_t four = vreinterpretq_s8_u8(vld1q_u8(b[q] + 16 * part));
        total = vdotq_s32(total, four, vreinterpretq_s8_s32(vdupq_n_s32(fourBytes(a + 4 * q))));
      }
      vst1q_s32(sums + 4 * part, total);
    }
  }
};

/// Products in 16 bits, of which neighbors are added, for any Armv8.
struct NeonDots {
  static inline void sum(const int8_t *a, const DotQuad *b, int32_t start, int32_t *sums) {
    for (unsigned part = 0; part < dotQuads; ++part) {
      int16x8_t low = vdupq_n_s16(0), high = low; // at most 4 * 24 * 12 each
      for (unsigned q = 0; q < dotQuads; ++q) {
        const int8x16_t four = vreinterpretq_s8_u8(vld1q_u8(b[q] + 16 * part));
        const int8x8_t factors = vreinterpret_s8_s32(vdup_n_s32(fourBytes(a + 4 * q)));
        low = vmlal_s8(low, vget_low_s8(four), factors);
        high = vmlal_s8(high, vget_high_s8(four), factors);
      }
      const int32x4_t pairs = vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high));
      vst1q_s32(sums + 4 * part, vaddq_s32(pairs, vdupq_n_s32(start)));
    }
  }
};

#endif

} // namespace fp4::numerics
