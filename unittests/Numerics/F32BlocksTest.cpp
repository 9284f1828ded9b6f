// Quantizers whose scales are f32, against the formula in plain C++, which follows DeepGEMM's
// per_token_cast_to_fp8 and per_block_cast_to_fp8.
#include "TestData.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/Float16.h"
#include "fp4/Numerics/QuantizeMatrix.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::numerics;

namespace {

float powerAbove(float scale) {
  const uint32_t bits = bitsOf(scale);
  const int exponent = int(bits >> 23) + ((bits & 0x7FFFFF) != 0);
  return floatOf(uint32_t(std::clamp(exponent, 1, 254)) << 23);
}

float expectedScale(float amax, bool powerOfTwo) {
  const float scale = std::max(amax, 1e-4f) / 448.f;
  return powerOfTwo ? powerAbove(scale) : scale;
}

std::vector<float> values(uint64_t count, uint64_t seed) {
  test::Random random(seed);
  std::vector<float> out;
  for (uint64_t i = 0; i < count; ++i)
    out.push_back(std::ldexp(float(random.below(2001)) - 1000, int(random.below(30)) - 25));
  return out;
}

float scaleAt(const QuantizedSide &side, uint64_t i) {
  float scale;
  std::memcpy(&scale, &side.scales[4 * i], 4);
  return scale;
}

void expectBlocks(const char *recipe, uint64_t rows, uint64_t columns, bool square,
                  bool wholeRows = false) {
  const std::vector<float> x = values(rows * columns, rows + columns);
  QuantizeOptions options;
  options.squareBlocks = square;
  options.wholeRows = wholeRows;
  const auto pair = quantizeMatrix(*lookupRecipe(recipe), x, rows, columns, options);
  ASSERT_TRUE(pair) << pair.error().message;
  const QuantizedSide &side = *pair->rowwise;
  const uint64_t height = square ? 128 : 1, width = wholeRows ? columns : 128;
  const uint64_t blocks = (columns + width - 1) / width;
  ASSERT_EQ(side.scales.size(), (rows + height - 1) / height * blocks * 4);
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t c = 0; c < columns; ++c) {
      const uint64_t top = r / height * height, left = c / width * width;
      float amax = 0;
      for (uint64_t i = top; i < std::min(top + height, rows); ++i)
        for (uint64_t j = left; j < std::min(left + width, columns); ++j)
          amax = std::max(amax, std::fabs(x[i * columns + j]));
      const float scale = expectedScale(amax, std::string_view(recipe).ends_with("power_of_two"));
      ASSERT_EQ(bitsOf(scaleAt(side, r / height * blocks + c / width)), bitsOf(scale)) << r << " " << c;
      ASSERT_EQ(side.code(r, c), encodeE4M3(x[r * columns + c] * (1.f / scale))) << r << " " << c;
      c |= 7; // one element of eight
    }
}

TEST(F32Blocks, RowsAndSquaresFollowTheFormula) {
  for (const char *recipe : {"fp8_deepgemm", "fp8_deepgemm_power_of_two"}) {
    expectBlocks(recipe, 3, 400, false);
    expectBlocks(recipe, 150, 272, true);
    expectBlocks(recipe, 5, 400, false, true);
    expectBlocks(recipe, 3, 48, false, true);
  }
}

TEST(F32Blocks, PowersOfTwoAreExactAndZerosHaveTheFloor) {
  std::vector<float> x(256);
  x[0] = 448.f; // scale 1 exactly
  auto pair = quantizeMatrix(*lookupRecipe("fp8_deepgemm_power_of_two"), x, 1, 256);
  ASSERT_TRUE(pair);
  EXPECT_EQ(scaleAt(*pair->rowwise, 0), 1.f);
  EXPECT_EQ(scaleAt(*pair->rowwise, 1), powerAbove(1e-4f / 448.f));
  x[0] = std::nextafterf(448.f, 500.f);
  pair = quantizeMatrix(*lookupRecipe("fp8_deepgemm_power_of_two"), x, 1, 256);
  EXPECT_EQ(scaleAt(*pair->rowwise, 0), 2.f);
}

TEST(F32Blocks, SpecialElements) {
  for (float special : {INFINITY, NAN}) {
    std::vector<float> x(128, 1.f);
    x[5] = special;
    const auto plain = quantizeMatrix(*lookupRecipe("fp8_deepgemm"), x, 1, 128);
    const auto power = quantizeMatrix(*lookupRecipe("fp8_deepgemm_power_of_two"), x, 1, 128);
    ASSERT_TRUE(plain && power);
    EXPECT_EQ(std::isnan(scaleAt(*plain->rowwise, 0)), std::isnan(special));
    EXPECT_EQ(scaleAt(*power->rowwise, 0), 0x1p127f);
    EXPECT_EQ(power->rowwise->code(0, 5), std::isnan(special) ? 0x7F : 0x7E);
    EXPECT_EQ(power->rowwise->code(0, 6), 0);
  }
}

TEST(F32Blocks, OtherOutputsAreRefused) {
  QuantizeOptions options;
  options.columnwise = SideOptions{};
  const auto pair =
      quantizeMatrix(*lookupRecipe("fp8_deepgemm"), values(256, 1), 2, 128, options);
  ASSERT_FALSE(pair);
  EXPECT_EQ(pair.error().message,
            "blocks under an f32 expect a plain row-wise output with linear scales");
  options = {};
  options.squareBlocks = options.wholeRows = true;
  const auto both = quantizeMatrix(*lookupRecipe("fp8_deepgemm"), values(256, 1), 2, 128, options);
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().message, "blocks must be square or whole rows, but got both");
  options.squareBlocks = false;
  const auto nvfp4 =
      quantizeMatrix(*lookupRecipe("transformer_engine"), values(256, 1), 2, 128, options);
  ASSERT_FALSE(nvfp4);
  EXPECT_EQ(nvfp4.error().message,
            "blocks of whole rows must be of format fp8_block128, but got nvfp4");
  EXPECT_FALSE(parseRecipe("fp8_deepgemm, amax_floor = -1.0"));
  EXPECT_EQ(spell(*parseRecipe("fp8_deepgemm, power_of_two = up")), "fp8_deepgemm_power_of_two");
}

} // namespace
