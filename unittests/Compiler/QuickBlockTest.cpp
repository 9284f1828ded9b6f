// Facts on which lib/KernelArithmetic/QuickBlock.h and QuickDivisions.cpp rest, tried on
// every significand there is; exponents only scale.
#include "KernelArithmetic/E2M1Steps.h"

#include "fp4/Numerics/E2M1.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>

using namespace fp4;

namespace {

constexpr uint32_t kOne = 0x3F800000, kSignificands = 1u << 23;

float number(uint32_t bits) { return std::bit_cast<float>(bits); }
uint32_t pattern(float x) { return std::bit_cast<uint32_t>(x); }

/// QuickBlock::nearShortNumber.
bool isNearShort(float x, unsigned significand) {
  uint32_t low = pattern(x) << (significand + 8);
  uint32_t margin = static_cast<uint32_t>(e2m1::kTieMargin) << (significand + 8);
  return low + margin <= 2 * margin;
}

bool mayTie(float inverse, unsigned significand) {
  return isNearShort(inverse, significand) || isNearShort(1.25f * inverse, significand);
}

/// Returns true when a number of `significand` bits times `e`, rounded, is 2^k or 1.25 * 2^k.
bool hasTie(float e, unsigned significand) {
  for (double tie : {1.0, 1.25}) {
    // The short numbers on either side of tie / e.
    int exponent;
    double scaled = std::ldexp(std::frexp(tie / e, &exponent), static_cast<int>(significand));
    for (double x : {std::floor(scaled), std::ceil(scaled)}) {
      uint32_t mantissa = pattern(static_cast<float>(x * e)) & (kSignificands - 1);
      if (mantissa == 0 || mantissa == kSignificands / 4)
        return true;
    }
  }
  return false;
}

/// bf16 and f16. The reciprocal may be the wrong neighbour.
TEST(QuickBlock, FactorsWithTiesAreNoticed) {
  for (unsigned significand : {8u, 11u}) {
    uint64_t missed = 0, ties = 0;
    for (uint32_t bits = kOne; bits < kOne + kSignificands; ++bits) {
      if (!hasTie(number(bits), significand))
        continue;
      ++ties;
      uint32_t inverse = pattern(1 / number(bits));
      for (uint32_t neighbour : {inverse - 1, inverse, inverse + 1})
        missed += !mayTie(number(neighbour), significand);
    }
    EXPECT_EQ(missed, 0u);
    EXPECT_GT(ties, uint64_t(2) << (significand - 2)); // two for most short numbers
  }
}

TEST(QuickBlock, FewFactorsAreSuspected) {
  uint64_t suspected[2] = {0, 0};
  for (uint32_t bits = kOne; bits < kOne + kSignificands; ++bits)
    for (unsigned i : {0, 1})
      suspected[i] += mayTie(1 / number(bits), i ? 11 : 8);
  EXPECT_LT(suspected[0], kSignificands / 1000);
  EXPECT_LT(suspected[1], kSignificands / 100);
}

/// Below 7, cutting is rounding but for the halfway values whose even code is below.
TEST(QuickBlock, CutsRoundRight) {
  auto code = [](float y) { // (high byte of the f16 pattern + 1) / 2
    float aligned = y * e2m1::kAlign;
    uint32_t half = aligned < 0x1p-14f ? static_cast<uint32_t>(aligned * 0x1p24f)
                                       : (pattern(aligned) - (112u << 23)) >> 13;
    return ((half >> 8) + 1) / 2;
  };
  uint64_t wrong = 0;
  for (uint32_t bits = pattern(0x1p-4f); bits < pattern(7); ++bits) {
    float y = number(bits);
    bool isTie = y == 0.25f || y == 1.25f || y == 2.5f || y == 5;
    wrong += (code(y) != numerics::encodeE2M1(y)) != isTie;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(QuickDivisions, ByConstantsRoundRight) {
  for (float divisor : {6.f, 6 * 256.f, 6 * 448.f}) {
    uint64_t wrong = 0;
    for (uint32_t bits = kOne; bits < kOne + kSignificands; ++bits) {
      float x = number(bits), inverse = 1 / divisor, quotient = x * inverse;
      wrong += std::fma(inverse, std::fma(-divisor, quotient, x), quotient) != x / divisor;
    }
    EXPECT_EQ(wrong, 0u) << divisor;
  }
}

/// 1 / y from the nearest number to it, and x / y for dividends that recipes have.
TEST(QuickDivisions, RoundRight) {
  uint64_t wrong = 0;
  for (uint32_t bits = kOne; bits < kOne + kSignificands; ++bits) {
    float y = number(bits), r = 1 / y;
    float inverse = std::fma(r, std::fma(-y, r, 1.f), r);
    wrong += inverse != r;
    for (float x : {2688.f, 1.f, 1.9999999f, number(kOne + (bits * 2654435761u >> 9))}) {
      float quotient = x * inverse;
      wrong += std::fma(inverse, std::fma(-y, quotient, x), quotient) != x / y;
    }
  }
  EXPECT_EQ(wrong, 0u);
}

/// Every byte of a scale table that a block can be quick with: the limit keeps products below 7.
TEST(QuickBlock, LimitsOfTablesSaturateNothing) {
  uint64_t above = 0;
  for (uint32_t bits = kOne; bits < kOne + kSignificands; ++bits) {
    float e = number(bits);
    for (float inverse : {number(pattern(1 / e) - 1), 1 / e, number(pattern(1 / e) + 1)}) {
      float limit = inverse * e2m1::kBelowSeven; // amaxes below it, rounding being monotone
      above += limit * e >= 7;
    }
  }
  EXPECT_EQ(above, 0u);
}

/// A scaled block with stochastic rounding: where an element is subnormal its code is 0 whatever the random byte.
TEST(QuickBlock, SubnormalsOfScaledStochasticBlocksAreZero) {
  float largest = 0x1p-126f * e2m1::kMostFactorOfStochastic; // of such an element times its factor
  EXPECT_LT(256 * (largest / 0.5f), 1);
  EXPECT_GE(e2m1::kMostFactorOfTable, e2m1::kLeastFactorOfTable);
  EXPECT_LE(e2m1::kMostFactorOfTable, e2m1::kMostFactorOfScaled);
  EXPECT_GE(e2m1::kLeastFactorOfTable, e2m1::kLeastFactor / 0.125f);
}

/// AdaptiveBlock.h, 3: every amax of 18 significant bits, every significand of a scale and of a code.
TEST(AdaptiveBlock, ValuesOfCodesRoundRight) {
  uint64_t wrong = 0, withoutLow = 0;
  for (uint32_t bits = kOne; bits < kOne + kSignificands; bits += 1u << 6)
    for (float f = 8; f < 16; ++f)
      for (float code : {1.f, 1.5f}) {
        float product = f * number(bits), wide = 6 * 448.f, narrow = 6 * 256.f;
        float high = product / wide, low = std::fma(-wide, high, product) * (1 / wide);
        wrong += std::fma(code, high, code * low) != code * product / wide;
        wrong += code * (product / narrow) != code * product / narrow;
        withoutLow += code * high != code * product / wide;
      }
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(withoutLow, 0u); // there it is needed
}

} // namespace
