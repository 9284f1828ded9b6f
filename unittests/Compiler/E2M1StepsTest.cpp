// The steps of lib/KernelArithmetic/E2M1Steps.h, one C++ operation for each instruction,
// against the definition of the conversion: every significand of every binade where codes differ.
#include "KernelArithmetic/E2M1Steps.h"

#include "fp4/Numerics/E2M1.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>

using namespace fp4;

namespace {

/// mul.rz: the product of two fp32 is exact as a double, whose low bits are cut off.
float multiplyTowardZero(float a, float b) {
  double exact = double(a) * double(b);
  float nearest = static_cast<float>(exact);
  if (std::fabs(double(nearest)) > std::fabs(exact))
    nearest = std::nextafter(nearest, 0.f);
  return nearest;
}

/// cvt.rz.f16 below 8 * 2^-14: multiples of 2^-24 under 2^-14, eleven significant bits above.
uint32_t truncateToHalf(float w) {
  if (std::isnan(w))
    return 0x7FFF;
  uint32_t bits = std::bit_cast<uint32_t>(w), sign = bits >> 31 << 15;
  float magnitude = std::fabs(w);
  if (magnitude < 0x1p-14f)
    return sign | static_cast<uint32_t>(magnitude * 0x1p24f);
  uint32_t field = ((bits & 0x7FFFFFFF) - (112u << 23)) >> 13;
  return sign | (std::isinf(w) ? 0x7C00 : std::min(field, 0x7BFFu));
}

/// min.xorsign.abs with a positive number; NaN loses.
uint32_t limit(uint32_t half) {
  uint32_t magnitude = half & 0x7FFF, largest = e2m1::kLargest & 0x7FFF;
  return (half & 0x8000) | (magnitude > 0x7C00 ? largest : std::min(magnitude, largest));
}

uint8_t steps(float y) {
  float z = std::fma(y, e2m1::kTieShift, y);
  float w = multiplyTowardZero(z, e2m1::kStepDown * e2m1::kAlign);
  uint32_t byte = limit(truncateToHalf(w)) >> 8;
  uint32_t rounded = (byte << 3) + (e2m1::kRound & 0xFF);
  uint32_t nibble = (byte & (e2m1::kSigns & 0xFF)) | (rounded & 0x70);
  return static_cast<uint8_t>(nibble >> 4);
}

/// Both signs; the number of patterns that differ from encodeE2M1.
uint64_t countWrong(uint32_t first, uint32_t last, uint32_t stride) {
  uint64_t wrong = 0;
  for (uint64_t bits = first; bits <= last; bits += stride) {
    float y = std::bit_cast<float>(static_cast<uint32_t>(bits));
    wrong += steps(y) != numerics::encodeE2M1(y);
    wrong += steps(-y) != numerics::encodeE2M1(-y);
  }
  return wrong;
}

TEST(E2M1Steps, EverySignificandAroundTheCodes) {
  // 2^-4 to 16: every value halfway between codes, and what saturates.
  EXPECT_EQ(countWrong(std::bit_cast<uint32_t>(0x1p-4f), std::bit_cast<uint32_t>(16.f), 1), 0u);
}

TEST(E2M1Steps, EveryExponent) {
  EXPECT_EQ(countWrong(0, 0x7F800000, 997), 0u);
  for (uint32_t bits : {0u, 1u, 0x007FFFFFu, 0x00800000u, 0x7F7FFFFFu, 0x7F800000u})
    EXPECT_EQ(countWrong(bits, bits, 1), 0u) << bits;
}

TEST(E2M1Steps, NaNIsSeven) {
  for (uint32_t bits : {0x7FC00000u, 0xFFC00000u, 0x7F800001u, 0xFFFFFFFFu})
    EXPECT_EQ(steps(std::bit_cast<float>(bits)), 7) << bits;
}

} // namespace
