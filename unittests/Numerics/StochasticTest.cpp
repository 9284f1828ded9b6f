// Stochastic rounding: both arithmetics over all 256 bytes, the mapping of Philox words to
// elements, and unbiasedness of what quantizeMatrix draws.
//
// Sources: TransformerEngine's fallback arithmetic (known counts), PTX ISA cvt.rs, cuRAND's Philox
// (known words), data/matrix_golden.json for whole matrices.
#include "TestData.h"
#include "fp4/Numerics/QuantizeMatrix.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::numerics;

namespace {

constexpr auto truncate = StochasticArithmetic::Truncate;
constexpr auto fusedAdd = StochasticArithmetic::FusedAdd;

/// Counts the bytes, of 256, that give `code`.
int countOf(float x, uint8_t code, StochasticArithmetic arithmetic) {
  int count = 0;
  for (unsigned r = 0; r < 256; ++r)
    count += encodeE2M1Stochastic(x, static_cast<uint8_t>(r), arithmetic) == code;
  return count;
}

TEST(Stochastic, knownCountsOfAllBytes) { // structural vector S9
  for (auto arithmetic : {truncate, fusedAdd}) {
    EXPECT_EQ(countOf(0.25f, 1, arithmetic), 128);
    EXPECT_EQ(countOf(1.25f, 3, arithmetic), 128);
    EXPECT_EQ(countOf(2.5f, 5, arithmetic), 128);
    EXPECT_EQ(countOf(5.f, 7, arithmetic), 128);
    EXPECT_EQ(countOf(5.5f, 7, arithmetic), 192);
    EXPECT_EQ(countOf(5.5f, 6, arithmetic), 64);
    EXPECT_EQ(countOf(0.1f, 1, arithmetic), 51); // 0.2 in steps of 1/256, cut
    EXPECT_EQ(countOf(0.1f, 0, arithmetic), 205);
    EXPECT_EQ(countOf(-0.1f, 8, arithmetic), 205);
    EXPECT_EQ(countOf(100.f, 7, arithmetic), 256);
    EXPECT_EQ(countOf(-INFINITY, 15, arithmetic), 256);
    EXPECT_EQ(countOf(floatOf(0xFFC00000), 7, arithmetic), 256);
    for (unsigned code = 0; code < 16; ++code) // S8: the grid never moves
      EXPECT_EQ(
          countOf(decodeE2M1(static_cast<uint8_t>(code)), static_cast<uint8_t>(code), arithmetic),
          256);
  }
}

TEST(Stochastic, arithmeticsAgreeOnEveryBf16Value) {
  for (uint16_t bits = 0; bits < 0x40D0; bits += bits < 0x3880 ? 61 : 1) { // up to 6.5
    const float x = decodeBF16(bits);
    for (unsigned r = 0; r < 256; r += 3)
      ASSERT_EQ(encodeE2M1Stochastic(x, static_cast<uint8_t>(r), truncate),
                encodeE2M1Stochastic(x, static_cast<uint8_t>(r), fusedAdd))
          << x << " with " << r;
  }
  // The sum 255/512 + x rounds up to 0.5 in fp32.
  const float below = std::nextafter(0x1p-9f, 0.f);
  EXPECT_EQ(encodeE2M1Stochastic(below, 255, truncate), 0);
  EXPECT_EQ(encodeE2M1Stochastic(below, 255, fusedAdd), 1);
}

TEST(Stochastic, bytesOfAWord) {
  using Bytes = std::array<uint8_t, 4>;
  EXPECT_EQ(stochasticBytes(0x44332211, StochasticMapping::TransformerEngine),
            (Bytes{0x11, 0x22, 0x33, 0x44}));
  // f: bits 23:16; e: bits 7:0 reversed; b: bits 31:24; a: bits 15:8 reversed.
  EXPECT_EQ(stochasticBytes(0x44332211, StochasticMapping::Hardware),
            (Bytes{0x33, 0x88, 0x44, 0x44}));
}

TEST(Stochastic, elementMapping) {
  const StochasticRounding rounding{.seed = 42, .bytes = StochasticMapping::TransformerEngine};
  // cuRAND: seed 42, subsequence 1, offset 0: 02933769 2051e913 3b68b038 b62c409c.
  const std::array<uint8_t, 16> expected = {0x69, 0x37, 0x93, 0x02, 0x13, 0xE9, 0x51, 0x20,
                                            0x38, 0xB0, 0x68, 0x3B, 0x9C, 0x40, 0x2C, 0xB6};
  EXPECT_EQ(randomBytes(rounding, {.rows = 4, .columns = 32}, 0, 1), expected);
  EXPECT_EQ(randomBytes(rounding, {.rows = 4, .columns = 16}, 1, 0), expected);
  EXPECT_EQ(randomBytes(rounding, {.rows = 4, .columns = 5, .firstGroup = 1}, 0, 0), expected);
  EXPECT_NE(randomBytes(rounding, {.rows = 4, .columns = 32, .columnwise = true}, 0, 1), expected);
}

TEST(Stochastic, sameSeedSameCodesAndOtherOffsetsOtherCodes) {
  test::Random random(4);
  std::vector<float> x(64 * 64);
  for (float &v : x)
    v = random.gaussian();
  const auto draw = [&](uint64_t seed, uint64_t offset) {
    QuantizeOptions options;
    options.rowwise->stochastic = StochasticRounding{.seed = seed, .offset = offset};
    return quantizeMatrix(*lookupRecipe("transformer_engine"), x, 64, 64, options)->rowwise->data;
  };
  EXPECT_EQ(draw(1, 0), draw(1, 0));
  EXPECT_NE(draw(1, 0), draw(1, 1));
  EXPECT_NE(draw(1, 0), draw(2, 0));
}

/// The mean of n draws of a value whose neighbours are `step` apart, rounded up with probability p,
/// has standard deviation step * sqrt(p (1 - p) / n). Unbiased draws lie within 5 deviations with
/// probability 1 - 6e-7, all nine values with 1 - 5e-6; a bias of step / 256 (one byte too many of
/// the 256) is at least 7.7 deviations for n = 983040 and fails with 99.6 %. The fractions are
/// multiples of 1/256, which 8 bits can draw exactly.
TEST(Stochastic, quantizationIsUnbiased) {
  constexpr uint64_t rows = 256, columns = 256, offsets = 16;
  constexpr double n = double(rows * columns) * 15 / 16 * offsets;
  for (float x : {0.125f, 0.3125f, -0.75f, 1.25f, 1.498046875f, 2.25f, -3.5f, 4.5f, 5.9921875f}) {
    std::vector<float> values(rows * columns, x);
    for (size_t i = 0; i < values.size(); i += 16)
      values[i] = 6.f; // makes the block's scale 1
    double sum = 0;
    for (uint64_t offset = 0; offset < offsets; ++offset) {
      QuantizeOptions options;
      options.rowwise->stochastic = StochasticRounding{.seed = 2026, .offset = offset};
      options.rowwise->amax = 2688.f;
      const auto pair =
          quantizeMatrix(*lookupRecipe("transformer_engine"), values, rows, columns, options);
      ASSERT_TRUE(pair);
      for (size_t i = 0; i < values.size(); ++i)
        if (i % 16)
          sum += decodeE2M1(static_cast<uint8_t>(pair->rowwise->data[i / 2] >> (i % 2 * 4)));
    }
    const float a = std::fabs(x);
    const double step = a < 2 ? 0.5 : a < 4 ? 1 : 2, p = std::fmod(a, step) / step;
    const double deviation = step * std::sqrt(p * (1 - p) / n);
    EXPECT_LT(std::fabs(sum / n - x), 5 * deviation) << x;
  }
}

} // namespace
