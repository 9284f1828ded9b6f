//===- Floats.cpp - Exact floating-point helpers --------------------------===//
#include "Sim/Insn/Scalar/Floats.h"
#include "fp4/Numerics/Float16.h"
#include <bit>
#include <cmath>

using namespace fp4::sim;

/// Returns true when the magnitude goes up, given the kept part's last bit and the discarded part.
static bool roundsUp(Round mode, bool negative, bool odd, bool half, bool rest) {
  switch (mode) {
  case Round::Nearest:
    return half && (rest || odd);
  case Round::NearestAway:
    return half;
  case Round::Zero:
    return false;
  case Round::Down:
    return negative && (half || rest);
  case Round::Up:
    return !negative && (half || rest);
  }
  return false;
}

uint32_t fp4::sim::encode(double x, const Format &format, Round mode) {
  uint64_t bits = std::bit_cast<uint64_t>(x);
  bool negative = bits >> 63;
  unsigned width = format.exponentBits + format.mantissaBits;
  uint32_t sign = negative ? 1u << width : 0;
  uint32_t infinity = ((1u << format.exponentBits) - 1) << format.mantissaBits;
  int exponent = static_cast<int>(bits >> 52 & 0x7FF);
  uint64_t significand = bits & ((1ull << 52) - 1);
  if (exponent == 0x7FF)
    return significand ? (1u << width) - 1 : sign | infinity;
  if (exponent == 0 && significand == 0)
    return sign;
  if (exponent)
    significand |= 1ull << 52;
  else
    exponent = 1;
  // value = significand * 2^(exponent - 1075); the target's unit is 2^(unit - mantissaBits).
  int unit = std::max(exponent - 1023, 1 - format.bias);
  int drop = 52 - format.mantissaBits + (unit - (exponent - 1023));
  uint64_t kept = drop >= 64 ? 0 : significand >> drop;
  bool half = drop <= 64 && (significand >> (drop - 1) & 1);
  bool rest = drop - 1 >= 64 ? significand != 0 : (significand & ((1ull << (drop - 1)) - 1)) != 0;
  if (roundsUp(mode, negative, kept & 1, half, rest))
    ++kept;
  // A carry out of the significand moves into the exponent field by itself.
  int field = unit + format.bias;
  uint64_t result =
      (kept >> format.mantissaBits) ? (uint64_t(field - 1) << format.mantissaBits) + kept : kept;
  if (result < infinity)
    return sign | static_cast<uint32_t>(result);
  bool toInfinity = mode == Round::Nearest || mode == Round::NearestAway ||
                    (mode == Round::Up && !negative) || (mode == Round::Down && negative);
  return sign | (toInfinity ? infinity : infinity - 1);
}

double fp4::sim::decode(uint32_t bits, const Format &format) {
  unsigned width = format.exponentBits + format.mantissaBits;
  uint32_t exponent = bits >> format.mantissaBits & ((1u << format.exponentBits) - 1);
  uint32_t mantissa = bits & ((1u << format.mantissaBits) - 1);
  double sign = bits >> width & 1 ? -1.0 : 1.0;
  if (exponent == (1u << format.exponentBits) - 1)
    return mantissa ? std::copysign(std::nan(""), sign) : sign * INFINITY;
  if (exponent == 0)
    return sign * std::ldexp(mantissa, 1 - format.bias - format.mantissaBits);
  const uint64_t field = uint64_t(int64_t(exponent) - format.bias + 1023) << 52;
  return sign * std::bit_cast<double>(field | uint64_t(mantissa) << (52 - format.mantissaBits));
}

uint16_t fp4::sim::encodeHalf(double x) {
  return static_cast<uint16_t>(encode(x, kF16, Round::Nearest));
}
float fp4::sim::f16ToFloat(uint16_t bits) { return numerics::decodeF16(bits); }
uint16_t fp4::sim::floatToF16(float x) { return numerics::encodeF16(x); }
uint16_t fp4::sim::floatToBF16(float x) { return numerics::encodeBF16(x); }

double fp4::sim::fma64(double a, double b, double c) {
  return withNaN64(std::fma(a, b, c), b, c, a);
}
