// The approximate power of two against what an H200 gave: the 2^23 differences of each of four
// bands from the correctly rounded one as a hash, their counts, and what lies outside them.
#include "fp4/Numerics/PowerOfTwo.h"
#include "TestData.h"
#include "fp4/Numerics/Elementwise.h"
#include "fp4/Numerics/Float16.h"
#include <cmath>
#include <gtest/gtest.h>
#include <map>

using namespace fp4;
using namespace fp4::numerics;

namespace {

using Counts = std::map<int, unsigned>;

struct Band {
  uint32_t first; ///< bits of the first of 2^23 numbers
  uint64_t hash;  ///< FNV-1a of the bytes that were measured
  Counts counts;  ///< how often a result is so many last places from the correctly rounded one
};

TEST(PowerOfTwo, isTheHardwaresForEveryFraction) {
  for (const Band &band :
       {Band{0x3F800000, 0xD869CCA89B8F2C42, {{-1, 3093}, {0, 5125875}, {1, 3259640}}},
        Band{0x3F000000, 0xA4B9DBC46E1312C4, {{-1, 835145}, {0, 5752831}, {1, 1800632}}},
        Band{0x3E800000, 0xAC1FF380E8DD44EA, {{-1, 952040}, {0, 6263239}, {1, 1173329}}},
        Band{0xBF000000,
             0x463681509094A219,
             {{-2, 58}, {-1, 2339646}, {0, 5831372}, {1, 217532}}}}) {
    uint64_t hash = test::fnvBasis;
    Counts counts;
    for (uint32_t i = 0; i < 1u << 23; ++i) {
      const float x = floatOf(band.first + i), right = std::exp2(static_cast<double>(x));
      const int places =
          static_cast<int>(bitsOf(approximatePowerOfTwo(x))) - static_cast<int>(bitsOf(right));
      test::fnv(hash, static_cast<uint8_t>(places));
      ++counts[places];
    }
    EXPECT_EQ(hash, band.hash) << std::hex << band.first;
    EXPECT_EQ(counts, band.counts) << std::hex << band.first;
  }
}

/// Whole numbers shift the result of a fraction, also below zero.
TEST(PowerOfTwo, scalesWithTheInteger) {
  test::Random random(1);
  for (int i = 0; i < 20000; ++i) {
    const float fraction = std::ldexp(float(random.word() >> 16), -16); // exact beside 127
    const int integer = static_cast<int>(random.word() % 253) - 126;
    EXPECT_EQ(approximatePowerOfTwo(float(integer) + fraction),
              std::ldexp(approximatePowerOfTwo(integer < 0 ? fraction - 1 : fraction),
                         integer < 0 ? integer + 1 : integer))
        << integer << " + " << fraction;
  }
}

/// Results of the H200, with and without .ftz.
TEST(PowerOfTwo, specialNumbers) {
  struct Case {
    uint32_t x, flushed, plain;
  };
  for (auto [x, flushed, plain] :
       {Case{0x00000000, 0x3F800000, 0x3F800000}, Case{0x80000000, 0x3F800000, 0x3F800000},
        Case{0x000116C2, 0x3F800000, 0x3F800000}, Case{0x800116C2, 0x3F800000, 0x3F800000},
        Case{0x7F800000, 0x7F800000, 0x7F800000}, Case{0xFF800000, 0x00000000, 0x00000000},
        Case{0x7FC00000, 0x7FFFFFFF, 0x7FFFFFFF}, Case{0x42FFFFFF, 0x7F7FFFA8, 0x7F7FFFA8},
        Case{0x43000000, 0x7F800000, 0x7F800000}, Case{0x43010000, 0x7F800000, 0x7F800000},
        Case{0xC2FC0000, 0x00800000, 0x00800000}, Case{0xC2FC0001, 0x00000000, 0x007FFFD3},
        Case{0xC2FBFFFF, 0x0080002C, 0x0080002C}, Case{0xC2FD0000, 0x00000000, 0x005A8279},
        Case{0xC2FE0000, 0x00000000, 0x003FFFFF}, Case{0xC3150000, 0x00000000, 0x00000001},
        Case{0xC3160000, 0x00000000, 0x00000000}, Case{0x3F800000, 0x40000000, 0x40000000},
        Case{0xBF800000, 0x3F000000, 0x3F000000}, Case{0x3F000000, 0x3FB504F3, 0x3FB504F3},
        Case{0xB3800000, 0x3F800000, 0x3F800000}, Case{0x33800000, 0x3F800000, 0x3F800000},
        Case{0x7E967699, 0x7F800000, 0x7F800000}, Case{0xFE967699, 0x00000000, 0x00000000}}) {
    EXPECT_EQ(bitsOf(approximatePowerOfTwo(floatOf(x))), flushed) << std::hex << x;
    EXPECT_EQ(bitsOf(approximateSmallPowerOfTwo(floatOf(x))), plain) << std::hex << x;
  }
}

/// The product with log2(e) rounds, so that the error grows with |x|.
TEST(PowerOfTwo, makesExponentials) {
  for (float x = -86; x <= 86; x += 0x1.3p-7f) {
    const double right = std::exp(static_cast<double>(x));
    EXPECT_NEAR(approximateExponential(x), right, right * (1.3 * std::fabs(x) + 4) * 0x1p-24) << x;
  }
  EXPECT_EQ(approximateExponential(-INFINITY), 0);
  EXPECT_EQ(approximateExponential(0), 1);
  EXPECT_TRUE(std::isnan(approximateExponential(NAN)));
}

} // namespace
