// The approximate square roots against what an H200 gave: the 2^24 differences of each from the
// correctly rounded one as a hash, their counts, and what lies outside the normal numbers.
#include "fp4/Numerics/SquareRoot.h"
#include "TestData.h"
#include "fp4/Numerics/Float16.h"
#include <cmath>
#include <gtest/gtest.h>
#include <map>

using namespace fp4;
using namespace fp4::numerics;

namespace {

using Function = float (*)(float);

/// The hash and the counts of last places between a function and the correctly rounded one, for
/// all numbers from 1 up to 4.
std::pair<uint64_t, std::map<int, unsigned>> differences(Function found, double (*exact)(double)) {
  uint64_t hash = test::fnvBasis;
  std::map<int, unsigned> counts;
  for (uint32_t bits = 0x3F800000; bits < 0x40800000; ++bits) {
    const float x = floatOf(bits), right = static_cast<float>(exact(x));
    const int places = static_cast<int>(bitsOf(found(x))) - static_cast<int>(bitsOf(right));
    test::fnv(hash, static_cast<uint8_t>(places));
    ++counts[places];
  }
  return {hash, counts};
}

TEST(SquareRoot, isTheHardwaresForEveryMantissa) {
  auto [hash, counts] = differences(approximateSquareRoot, [](double x) { return std::sqrt(x); });
  EXPECT_EQ(hash, 0x390E9A07747B594Cu); // FNV-1a of the bytes that were measured
  EXPECT_EQ(counts, (std::map<int, unsigned>{{-1, 2602502}, {0, 13947413}, {1, 227301}}));
}

TEST(SquareRoot, reciprocalIsTheHardwaresForEveryMantissa) {
  auto [hash, counts] =
      differences(approximateReciprocalSquareRoot, [](double x) { return 1 / std::sqrt(x); });
  EXPECT_EQ(hash, 0xEC633E4783E12D6Bu);
  EXPECT_EQ(counts, (std::map<int, unsigned>{{-2, 8}, {-1, 2344391}, {0, 13143086}, {1, 1289731}}));
}

TEST(SquareRoot, scalesWithTheExponent) {
  test::Random random(1);
  for (int half = -63; half <= 63; ++half)
    for (int i = 0; i < 200; ++i) {
      const float m = floatOf(0x3F800000 + (random.word() >> 8)), x = std::ldexp(m, 2 * half);
      if (x < 0x1p-126f || std::isinf(x))
        continue;
      EXPECT_EQ(approximateSquareRoot(x), std::ldexp(approximateSquareRoot(m), half));
      EXPECT_EQ(approximateReciprocalSquareRoot(x),
                std::ldexp(approximateReciprocalSquareRoot(m), -half));
    }
}

/// Results of the H200 for numbers that have no root, and for the last ones that have.
TEST(SquareRoot, specialNumbers) {
  struct Case {
    uint32_t x, root, reciprocal;
  };
  for (auto [x, root, reciprocal] :
       {Case{0x00000000, 0x00000000, 0x7F800000}, Case{0x80000000, 0x80000000, 0xFF800000},
        Case{0x007FFFFF, 0x00000000, 0x7F800000}, Case{0x00800000, 0x20000000, 0x5F000000},
        Case{0x80800000, 0x7FFFFFFF, 0x7FFFFFFF}, Case{0xBF800000, 0x7FFFFFFF, 0x7FFFFFFF},
        Case{0x7F800000, 0x7F800000, 0x00000000}, Case{0xFF800000, 0x7FFFFFFF, 0x7FFFFFFF},
        Case{0x7FC00000, 0x7FFFFFFF, 0x7FFFFFFF}, Case{0xFFC00001, 0x7FFFFFFF, 0x7FFFFFFF},
        Case{0x7F7FFFFF, 0x5F7FFFFF, 0x1F800000}, Case{0x3F800000, 0x3F800000, 0x3F800000},
        Case{0x40000000, 0x3FB504F3, 0x3F3504F2}, Case{0x40800000, 0x40000000, 0x3F000000}}) {
    EXPECT_EQ(bitsOf(approximateSquareRoot(floatOf(x))), root) << std::hex << x;
    EXPECT_EQ(bitsOf(approximateReciprocalSquareRoot(floatOf(x))), reciprocal) << std::hex << x;
  }
}

} // namespace
