// The approximate reciprocal against what an H200 gave: its 2^23 differences from the correctly
// rounded one as a hash, their counts, and what lies outside the normal numbers.
#include "fp4/Numerics/Reciprocal.h"
#include "TestData.h"
#include "fp4/Numerics/E4M3.h"
#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>

using namespace fp4;
using namespace fp4::numerics;

namespace {

int difference(float x) {
  return static_cast<int>(bitsOf(approximateReciprocal(x))) - static_cast<int>(bitsOf(1.f / x));
}

TEST(Reciprocal, isTheHardwaresForEveryMantissa) {
  uint64_t hash = test::fnvBasis;
  std::map<int, unsigned> counts;
  for (uint32_t mantissa = 0; mantissa < 1u << 23; ++mantissa) {
    const int places = difference(floatOf(0x3F800000 | mantissa));
    test::fnv(hash, static_cast<uint8_t>(places));
    ++counts[places];
  }
  EXPECT_EQ(hash, 0x823BFC4D537311F9u); // FNV-1a of the bytes that were measured
  EXPECT_EQ(counts, (std::map<int, unsigned>{{-1, 374723}, {0, 7280086}, {1, 733799}}));
}

TEST(Reciprocal, scalesWithTheExponentAndTheSign) {
  test::Random random(1);
  for (unsigned exponent = 1; exponent < 253; ++exponent)
    for (int i = 0; i < 100; ++i) {
      const uint32_t mantissa = random.word() >> 9, sign = random.word() & 0x80000000;
      const uint32_t one = bitsOf(approximateReciprocal(floatOf(0x3F800000 | mantissa)));
      const uint32_t x = sign | exponent << 23 | mantissa;
      EXPECT_EQ(bitsOf(approximateReciprocal(floatOf(x))), sign | (one + ((127 - exponent) << 23)));
    }
}

TEST(Reciprocal, flushesSubnormals) {
  const std::map<uint32_t, uint32_t> expected = {
      {0x00000000, 0x7F800000}, {0x807FFFFF, 0xFF800000}, {0x00800000, 0x7E800000},
      {0x7E800000, 0x00800000}, {0x7E800001, 0x00000000}, {0xFF7FFFFF, 0x80000000},
      {0x7F800000, 0x00000000}, {0xFFC00001, 0x7FFFFFFF}};
  for (auto [x, result] : expected)
    EXPECT_EQ(bitsOf(approximateReciprocal(floatOf(x))), result) << std::hex << x;
}

/// 1 / (f * (1 / g)) of every scale f and the g of 128 amaxes, as FlashInfer and vLLM compute it.
TEST(Reciprocal, changesTheFactorsThatTakeTwo) {
  unsigned differ = 0;
  int most = 0;
  for (int m = 0; m < 128; ++m) {
    const float g = 2688.f * (1.f / (1.f + static_cast<float>(m) / 128));
    for (uint8_t code = 1; code < 0x7F; ++code) {
      const float f = decodeE4M3(code), exact = 1.f / (f * (1.f / g));
      const float got = approximateReciprocal(f * approximateReciprocal(g));
      const int places = static_cast<int>(bitsOf(got)) - static_cast<int>(bitsOf(exact));
      differ += places != 0;
      most = std::max(most, std::abs(places));
    }
  }
  EXPECT_EQ(differ, 2915u); // of 16128: as many as on an H200
  EXPECT_EQ(most, 3);
}

TEST(Reciprocal, ofScalesAndOfSixIsExact) {
  for (uint8_t code = 1; code < 0x7F; ++code)
    EXPECT_EQ(difference(decodeE4M3(code)), 0) << int(code);
  EXPECT_EQ(difference(6.f), 0);
}

} // namespace
