// E2M1 conversions by integer arithmetic; the tests check them against the comparison form.
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/Float16.h"
#include <cmath>

namespace fp4::numerics {
namespace {

uint8_t reverseBits(uint8_t v) {
  v = static_cast<uint8_t>((v & 0xF0) >> 4 | (v & 0x0F) << 4);
  v = static_cast<uint8_t>((v & 0xCC) >> 2 | (v & 0x33) << 2);
  return static_cast<uint8_t>((v & 0xAA) >> 1 | (v & 0x55) << 1);
}

/// The largest code whose value is at most `a`, which is not negative.
uint8_t floorE2M1(float a) {
  uint8_t code = 0;
  while (code < 7 && e2m1Values[code + 1] <= a)
    ++code;
  return code;
}

} // namespace

uint8_t encodeE2M1(float x) {
  const uint32_t u = bitsOf(x), a = u & 0x7FFFFFFF;
  if (a > 0x7F800000)
    return 7;
  const uint32_t sign = u >> 31 << 3;
  if (a < bitsOf(1.f)) // multiples of 0.5, which is the ulp of 2^22: the addition rounds
    return static_cast<uint8_t>(sign | (bitsOf(floatOf(a) + 0x1p22f) - bitsOf(0x1p22f)));
  const uint32_t rounded = (a + 0x1FFFFF + ((a >> 22) & 1)) >> 22; // exponent and one mantissa bit
  const uint32_t code = rounded - (bitsOf(1.f) >> 22) + 2;
  return static_cast<uint8_t>(sign | (code > 7 ? 7 : code));
}

std::array<uint8_t, 4> stochasticBytes(uint32_t randomBits, StochasticMapping mapping) {
  std::array<uint8_t, 4> byte;
  for (unsigned i = 0; i < 4; ++i)
    byte[i] = static_cast<uint8_t>(randomBits >> (8 * i));
  if (mapping == StochasticMapping::Hardware)
    byte = {byte[2], reverseBits(byte[0]), byte[3], reverseBits(byte[1])};
  return byte;
}

uint8_t encodeE2M1Stochastic(float x, uint8_t random, StochasticArithmetic arithmetic) {
  if (std::isnan(x))
    return 7;
  const float a = std::fabs(x);
  const uint8_t sign = std::signbit(x) ? 8 : 0;
  if (a >= e2m1Max)
    return sign | 7;
  if (arithmetic == StochasticArithmetic::FusedAdd) {
    const float step = a < 2.f ? 0.5f : a < 4.f ? 1.f : 2.f;
    return sign | floorE2M1(std::fma(static_cast<float>(random) * 0x1p-8f, step, a));
  }
  const uint8_t low = floorE2M1(a);
  const float step = e2m1Values[low + 1] - e2m1Values[low];
  const int frac = static_cast<int>((a - e2m1Values[low]) / step * 256.f); // exact: step is 2^n
  return static_cast<uint8_t>(sign | (low + (frac + random >= 256 ? 1 : 0)));
}

uint16_t encodeE2M1x4Stochastic(float a, float b, float e, float f, uint32_t randomBits,
                                StochasticMapping mapping) {
  const auto byte = stochasticBytes(randomBits, mapping);
  return static_cast<uint16_t>(
      encodeE2M1Stochastic(f, byte[0]) | encodeE2M1Stochastic(e, byte[1]) << 4 |
      encodeE2M1Stochastic(b, byte[2]) << 8 | encodeE2M1Stochastic(a, byte[3]) << 12);
}

void packE2M1(std::span<const uint8_t> codes, std::span<uint8_t> packed) {
  for (size_t i = 0; i < packed.size(); ++i) {
    const uint8_t high = 2 * i + 1 < codes.size() ? codes[2 * i + 1] & 15 : 0;
    packed[i] = static_cast<uint8_t>((codes[2 * i] & 15) | high << 4);
  }
}

void unpackE2M1(std::span<const uint8_t> packed, std::span<uint8_t> codes) {
  for (size_t i = 0; i < codes.size(); ++i)
    codes[i] = i % 2 ? packed[i / 2] >> 4 : packed[i / 2] & 15;
}

} // namespace fp4::numerics
