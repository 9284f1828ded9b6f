//===- E2M1Steps.h - fp32 to E2M1 without the instruction -----------------===//
//
// Targets without cvt.e2m1x2 convert in five and a half instructions per element. Each step here is
// one instruction; Scalars.cpp emits them and unittests/Compiler/E2M1StepsTest.cpp runs them on
// every significand there is.
//
//   z = fma.rn(y, kTieShift, y)      kTieShift = 2^-24 / 1.375
//   w = mul.rz(z, kStepDown * kAlign)  kStepDown = 1 - 2^-24, kAlign = 2^-14
//   h = cvt.rz.f16(w)                two elements at once from here on
//   h = min.xorsign.abs(h, kLargest) kLargest = 6 * 2^-14, sign of h
//   code = sign, ((high byte of h & 15) + 1) / 2
//
// Proof that the result is nearest even. Let |y| = s * 2^e with 1 <= s < 2 and u = 2^(e-23), its
// last place. The values halfway between neighbours of E2M1 are 0.25, 0.75, 1.25, 1.75, 2.5, 3.5
// and 5. The even code is above 0.75, 1.75 and 3.5, where s is 1.5 or 1.75, and below the others,
// where s is 1 or 1.25.
//
//   - y * kTieShift is s / 1.375 * u / 2, so z is y plus u where s > 1.375, and y elsewhere.
//   - z * (1 - 2^-24) lies less than a last place below z, so truncation gives the number before z:
//     |y| where s > 1.375, and the number before |y| elsewhere. Call it |y'|.
//   - With steps that round half up, |y'| is rounded to the code of |y|: a halfway value whose even
//     code is above stays, one whose even code is below moves below, and no other number crosses a
//     halfway value, as these are representable.
//   - 2^-14 maps E2M1's subnormals (exponent 0) to those of f16. The low four bits of the high byte
//     of f16 then are the two exponent bits, the mantissa bit and the next bit, r, which says
//     "half or more": truncation lost what is below. Adding one and dropping r rounds half up,
//     into the exponent where it must.
//   - Numbers from 7 on, infinity and NaN would carry out of the four bits. The minimum makes them
//     6, whose code is 7; it takes the number where one operand is NaN, and a NaN from cvt has no
//     sign. Numbers that are subnormal in fp32 give 0. The sign passes all steps, that of zero too.
//
// QuickBlock.h says when the first two steps and the minimum are not needed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace fp4::e2m1 {

inline constexpr float kTieShift = 0x1p-24f / 1.375f;
inline constexpr float kStepDown = 0x1.fffffep-1f;
inline constexpr float kAlign = 0x1p-14f;
/// Factors from here on are exact times kAlign.
inline constexpr float kLeastFactor = 0x1p-112f;
/// Up to here subnormal elements have code 0; see QuickBlock.h.
inline constexpr float kMostFactorOfScaled = 0x1p120f;
/// The bound for stochastic rounding: floor(256 * position) is 0 too.
inline constexpr float kMostFactorOfStochastic = 0x1p116f;
/// Factors of entries of a ScaleTable, for all scales that transforms leave to the factor (1 / 8 is
/// the least).
inline constexpr float kLeastFactorOfTable = 0x1p-109f;
inline constexpr float kMostFactorOfTable = kMostFactorOfStochastic;
/// x * e, rounded, is below 7 where x is below this times an approximate 1 / e.
inline constexpr float kBelowSeven = 6.99f;
/// Last places; see QuickBlock.h.
inline constexpr int64_t kTieMargin = 8;
/// Twice, one for each half.
inline constexpr uint32_t kLargest = 0x0E000E00;

/// Bytes 1 and 3 of two words: the high bytes of four halves.
inline constexpr uint32_t kHighBytes = 0x7531;
/// On four bytes at once: (b << 3) + kRound has the code in bits 6:4. The sign, shifted out of its
/// byte, lands below the code of the next one.
inline constexpr uint32_t kRound = 0x08080808;
inline constexpr uint32_t kSigns = 0x80808080;
/// Above the code in four bytes: set where stochastic rounding carried out of it.
inline constexpr uint32_t kCarried = 0x10101010;
inline constexpr uint32_t kHighNibbles = 0xF0F0F0F0;

} // namespace fp4::e2m1
