//===- Floats.h - Exact floating-point helpers ----------------------------===//
//
// Round to nearest even is the host's own arithmetic. The directed modes and the narrow formats go
// through *round to odd*: an exact result is first squeezed into a double whose last bit is sticky,
// which can then be rounded once more, in any mode, to anything of at most 51 bits without error.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Decode/Modifiers/Scalar.h"
#include "Sim/State/NaN.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace fp4::sim {

inline bool isSubnormal(float x) {
  uint32_t magnitude = std::bit_cast<uint32_t>(x) & 0x7FFFFFFF;
  return magnitude != 0 && magnitude < 0x00800000;
}
/// Subnormals become zeros of the same sign.
inline float flush(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits & 0x7F800000) == 0 ? bits & 0x80000000 : bits);
}
/// .sat: clamp to [0, 1], NaN gives +0.
inline float saturate(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
inline double saturate(double x) { return x > 0 ? (x < 1 ? x : 1.0) : 0.0; }

/// value + error (exact, |error| below half an ulp of value) as a double rounded to odd.
inline double roundToOdd(double value, double error) {
  uint64_t bits = std::bit_cast<uint64_t>(value);
  if (error == 0 || !std::isfinite(value) || !std::isfinite(error) || (bits & 1))
    return value;
  // The exact result lies strictly between two doubles, one of which is odd: take that one.
  bool away = (error > 0) == (value > 0);
  if (value == 0)
    return error;
  return std::bit_cast<double>(away ? bits + 1 : bits - 1);
}

/// The exact sum a + b, rounded to odd.
inline double addOdd(double a, double b) {
  double sum = a + b;
  double bb = sum - a;
  double error = (a - (sum - bb)) + (b - bb);
  return roundToOdd(sum, error);
}

/// A binary floating-point format of at most 32 bits.
struct Format {
  uint8_t exponentBits;
  uint8_t mantissaBits;
  int bias;
};
inline constexpr Format kF32{8, 23, 127}, kF16{5, 10, 15}, kBF16{8, 7, 127}, kTF32{8, 10, 127};

/// `x` (exact, or rounded to odd) rounded to `format`, as bits in the low end with the sign on top.
/// Overflow gives infinity or the largest finite number as IEEE 754 says for the mode; NaN gives
/// all ones below the sign.
uint32_t encode(double x, const Format &format, Round mode);
double decode(uint32_t bits, const Format &format);

/// A subnormal number of the format becomes a zero of its sign.
inline double flushWide(double x, const Format &format) {
  return std::fabs(x) < std::ldexp(1.0, 1 - format.bias) ? std::copysign(0.0, x) : x;
}

/// The result of an operation on exact operands, as a double rounded to odd (Float.cpp). Only a
/// zero depends on the rounding mode.
double evaluate(const FloatModifiers &how, double a, double b, double c);

/// Rounds to nearest even.
uint16_t encodeHalf(double x);

float f16ToFloat(uint16_t bits);
inline float bf16ToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
uint16_t floatToF16(float x); ///< nearest even, NaN 0x7FFF
uint16_t floatToBF16(float x);

/// With several NaN operands the result has the payload of b, then c, then a (H200).
double fma64(double a, double b, double c);

inline float toF32(double odd, Round mode) {
  if (mode == Round::Nearest)
    return static_cast<float>(odd);
  return std::bit_cast<float>(encode(odd, kF32, mode));
}

} // namespace fp4::sim
