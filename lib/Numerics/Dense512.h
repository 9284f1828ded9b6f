//===- Dense512.h - 16 elements of a dense GEMM, with AVX-512 -------------===//
//
// Factors are fp32 here, as are their exact products. A term is a product times a power of two, in
// units of 2^(emax - align), and the conversion to integers truncates the term:
//
//   term_k = cvtt(a_k b_k 2^(align + scale - emax))        C's: cvtt(C 2^(align - emax))
//
// Products are exact and terms right where emax is within 90 of zero: a product that fp32 cannot
// hold is then below the unit. 16 terms add up in 32 bits. A sum that overflows when C or the next
// 16 terms are added, an emax beyond 90, NaN and infinity go to the definition.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "FactorDecoder.h"
#include "Multiversion.h"
#include "fp4/Numerics/DenseRow.h"

#ifdef FP4_MULTIVERSION_X86
#include <immintrin.h>

#define FP4_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]]
#define FP4_AVX512_INLINE [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl"), gnu::always_inline]]

namespace fp4::numerics::dense512 {

constexpr unsigned lanes = 16, termsPerSum = 16;
constexpr int32_t zeroExponent = -133, ordinary = 90;
constexpr int32_t nothing = absentExponent / 2; ///< an exponent below is of zeros alone

FP4_AVX512_INLINE inline __m512i all(int32_t value) { return _mm512_set1_epi32(value); }

/// Marks exponents that are at least 90 from zero, without those of zeros.
FP4_AVX512_INLINE inline __mmask16 extraordinary(__m512i exponent) {
  const __m512i distance = _mm512_add_epi32(exponent, all(ordinary - 1));
  return _mm512_cmpge_epu32_mask(distance, all(2 * ordinary - 1)) &
         _mm512_cmpge_epi32_mask(exponent, all(nothing));
}

/// 2^exponent; beyond the normal numbers the nearest of them.
FP4_AVX512_INLINE inline __m512 power(__m512i exponent) {
  const __m512i biased = _mm512_add_epi32(exponent, all(127));
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_min_epi32(_mm512_max_epi32(biased, all(1)), all(254)), 23));
}

/// The biased exponents of fp32 numbers.
FP4_AVX512_INLINE inline __m512i fields(__m512 value) {
  return _mm512_and_si512(_mm512_srli_epi32(_mm512_castps_si512(value), 23), all(255));
}

/// Marks NaN and infinities.
FP4_AVX512_INLINE inline __mmask16 specials(__m512 value) {
  return _mm512_cmpeq_epi32_mask(fields(value), all(255));
}

/// Exponents of `value`: at least `least`, the smallest of the format that the values come from,
/// and `absent` for zeros.
FP4_AVX512_INLINE inline __m512i exponents(__m512 value, int32_t least, int32_t absent) {
  const __mmask16 zero = _mm512_testn_epi32_mask(_mm512_castps_si512(value), all(0x7FFFFFFF));
  const __m512i exponent = _mm512_max_epi32(_mm512_sub_epi32(fields(value), all(127)), all(least));
  return _mm512_mask_mov_epi32(exponent, zero, all(absent));
}

/// 16 elements while they are added up.
struct Elements {
  __mmask16 bad; ///< elements for the definition
  __m512i emax, sum, overflow;
  __m512 factor; ///< factor from products to terms
};

/// C, emax and what follows from them. `products` are the largest exponents of products without
/// scales; products are 2^-`up` times the true ones, and `scale` may be null.
FP4_AVX512_INLINE inline Elements begin(__m512i bits, const DenseRowOptions &options,
                                        __m256i products, int up, const __m512i *scale) {
  const bool half = options.dType == hw::AccumulatorType::F16;
  const int align = options.precision.align;
  const __m512 c = half ? _mm512_cvtph_ps(_mm512_cvtepi32_epi16(bits)) : _mm512_castsi512_ps(bits);
  const __m512i ofC = _mm512_sub_epi32(exponents(c, half ? -14 : -126, 2 * absentExponent),
                                       all(options.addendShift));
  __m512i most = _mm512_cvtepi16_epi32(products);
  Elements o;
  o.bad = specials(c);
  if (scale) { // the products themselves must be ordinary, too
    o.bad |= extraordinary(most);
    most = _mm512_add_epi32(most, *scale);
  }
  most = _mm512_max_epi32(most, ofC);
  o.bad |= extraordinary(most);
  o.emax = _mm512_max_epi32(most, all(zeroExponent));
  const __m512i exponent = _mm512_sub_epi32(all(align + up), o.emax);
  o.factor = power(scale ? _mm512_add_epi32(exponent, *scale) : exponent);
  o.sum = _mm512_cvttps_epi32(
      _mm512_mul_ps(c, power(_mm512_sub_epi32(all(align - options.addendShift), o.emax))));
  o.overflow = _mm512_setzero_si512();
  return o;
}

/// Up to 16 terms.
FP4_AVX512_INLINE inline void add(Elements &o, __m512i part) {
  const __m512i sum = _mm512_add_epi32(o.sum, part);
  o.overflow = _mm512_or_si512(
      o.overflow, _mm512_and_si512(_mm512_xor_si512(o.sum, sum), _mm512_xor_si512(part, sum)));
  o.sum = sum;
}

/// The results, as the 32 bits of their cells. `bad` gets the elements that the definition must
/// compute.
FP4_AVX512_INLINE inline __m512i finish(const Elements &o, const DenseRowOptions &options,
                                        __mmask16 &bad) {
  constexpr int towardZero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  bad = o.bad | _mm512_movepi32_mask(o.overflow);
  const __m512 unit = power(_mm512_sub_epi32(o.emax, all(options.precision.align)));
  const __m512 sum = _mm512_cvt_roundepi32_ps(o.sum, towardZero);
  if (options.dType != hw::AccumulatorType::F16)
    return _mm512_and_si512(_mm512_castps_si512(_mm512_mul_ps(sum, unit)),
                            all(int32_t(~0u << (23 - options.precision.result))));
  // Rounded to odd, so that the second rounding is as of the exact sum.
  const __mmask16 inexact = _mm512_cmpneq_epi32_mask(_mm512_cvttps_epi32(sum), o.sum);
  const __m512i bits = _mm512_castps_si512(sum);
  const __m512 odd = _mm512_castsi512_ps(_mm512_mask_or_epi32(bits, inexact, bits, all(1)));
  return _mm512_cvtepu16_epi32(
      _mm512_cvtps_ph(_mm512_mul_ps(odd, unit), _MM_FROUND_TO_NEAREST_INT));
}

} // namespace fp4::numerics::dense512

#endif
