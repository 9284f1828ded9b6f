// Elements of 6 and 8 bits: the codes that recipes of MXFP6 and MXFP8 write, and their values.
//
// Sources: the definitions of OCP MX v1.0 in fp64 (valueOf), and a search for the nearest value.
#include "TestData.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/QuantizeMatrix.h"
#include <algorithm>
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::numerics;

namespace {

constexpr std::array wideFormats = {BlockFormat::MXFP6E2M3, BlockFormat::MXFP6E3M2,
                                    BlockFormat::MXFP8E4M3, BlockFormat::MXFP8E5M2};

double valueOf(BlockFormat format, uint8_t code) {
  const ElementFormat type = elementOf(format);
  const unsigned sign = code >> (type.bits - 1), rest = code & ((1u << (type.bits - 1)) - 1);
  const int exponent = static_cast<int>(rest >> type.mantissa);
  const double fraction = rest & ((1u << type.mantissa) - 1);
  const double significand = fraction + (exponent ? 1u << type.mantissa : 0u);
  const int power = std::max(exponent, 1) - type.bias - static_cast<int>(type.mantissa);
  return std::ldexp(sign ? -significand : significand, power);
}

/// The codes without sign, in the order of their values.
std::vector<uint8_t> finiteCodes(BlockFormat format) {
  std::vector<uint8_t> codes;
  for (unsigned code = 0; code < 1u << (elementOf(format).bits - 1); ++code)
    if (valueOf(format, static_cast<uint8_t>(code)) <= elementOf(format).largest)
      codes.push_back(static_cast<uint8_t>(code));
  return codes;
}

uint8_t nearest(BlockFormat format, float x) {
  uint8_t best = 0;
  double least = INFINITY;
  const double magnitude = std::min<double>(std::fabs(x), elementOf(format).largest);
  for (uint8_t code : finiteCodes(format)) {
    const double error = std::fabs(magnitude - valueOf(format, code));
    if (error < least || (error == least && code % 2 == 0)) {
      best = code;
      least = error;
    }
  }
  return static_cast<uint8_t>(best | std::signbit(x) << (elementOf(format).bits - 1));
}

/// The code of x under a scale of 1: a block that starts with the largest power of two.
uint8_t encode(BlockFormat format, float x) {
  std::vector<float> block(32);
  block[0] = std::ldexp(1.f, elementOf(format).largestExponent);
  block[1] = x;
  const auto pair = quantizeMatrix(defaultRecipe(format), block, 1, 32);
  EXPECT_TRUE(pair) << stringify(format);
  EXPECT_EQ(pair->rowwise->scales[0], 127) << x;
  return pair->rowwise->data[1];
}

TEST(WideElements, everyMiddleAndItsNeighboursGoToTheNearest) {
  for (BlockFormat format : wideFormats) {
    const auto codes = finiteCodes(format);
    for (size_t i = 0; i + 1 < codes.size(); ++i) {
      const double low = valueOf(format, codes[i]), high = valueOf(format, codes[i + 1]);
      const auto middle = static_cast<float>((low + high) / 2);
      for (float x : {static_cast<float>(low), std::nextafter(middle, 0.f), middle,
                      std::nextafter(middle, INFINITY)})
        for (float y : {x, -x})
          EXPECT_EQ(encode(format, y), nearest(format, y)) << stringify(format) << ' ' << y;
    }
  }
}

TEST(WideElements, randomNumbersGoToTheNearest) {
  test::Random random(3);
  for (BlockFormat format : wideFormats)
    for (int i = 0; i < 2000; ++i) {
      const float x = std::ldexp(2 * random.uniform() - 1,
                                 elementOf(format).largestExponent - static_cast<int>(i % 40));
      EXPECT_EQ(encode(format, x), nearest(format, x)) << stringify(format) << ' ' << x;
    }
}

TEST(WideElements, codesDecodeToTheirValues) {
  for (BlockFormat format : wideFormats) {
    QuantizedSide side;
    side.packed = false;
    side.rows = 8;
    side.columns = 32;
    side.blocks = 1;
    for (unsigned code = 0; code < 256; ++code)
      side.data.push_back(static_cast<uint8_t>(code & ((1u << elementOf(format).bits) - 1)));
    side.scales.assign(8, 129); // times 4
    const auto values = dequantizeSide(defaultRecipe(format), side);
    ASSERT_TRUE(values);
    for (unsigned i = 0; i < 256; ++i) {
      const uint8_t code = side.data[i], rest = code & 0x7F;
      if (format == BlockFormat::MXFP8E4M3 ? rest == 0x7F
                                           : format == BlockFormat::MXFP8E5M2 && rest > 0x7C)
        EXPECT_TRUE(std::isnan((*values)[i])) << stringify(format) << ' ' << i;
      else if (format == BlockFormat::MXFP8E5M2 && rest == 0x7C)
        EXPECT_EQ((*values)[i], code >> 7 ? -INFINITY : INFINITY);
      else
        EXPECT_EQ((*values)[i], static_cast<float>(4 * valueOf(format, code)))
            << stringify(format) << ' ' << i;
    }
  }
}

TEST(WideElements, largeAndSpecialElements) {
  const float nan = floatOf(0xFFC00000), most = 0x1.8p127f;
  for (BlockFormat format : wideFormats) {
    const uint8_t top = nearest(format, elementOf(format).largest);
    const auto negative = static_cast<uint8_t>(1 << (elementOf(format).bits - 1));
    EXPECT_EQ(encode(format, -0.f), negative);
    EXPECT_EQ(encode(format, -0x1p-140f), negative);
    // Floor: 1.875 times the largest power of two stays above the largest E4M3, 1.75 times it.
    EXPECT_EQ(encode(format, 0x1.FEp0f * std::ldexp(1.f, elementOf(format).largestExponent)), top);
    std::vector<float> block(32, most);
    block[3] = nan;
    const auto pair = quantizeMatrix(defaultRecipe(format), block, 1, 32);
    ASSERT_TRUE(pair);
    EXPECT_EQ(pair->rowwise->scales[0], 255);
    EXPECT_EQ(pair->rowwise->data[0], elementOf(format).bits == 8 ? 0x7F : 0x1F);
  }
}

TEST(WideElements, whatOnlyFourBitsHaveIsRefused) {
  const std::vector<float> x(32);
  const Recipe &recipe = *lookupRecipe("mxfp8_e5m2_rceil");
  QuantizeOptions options;
  options.squareBlocks = true;
  EXPECT_EQ(quantizeMatrix(recipe, x, 1, 32, options).error().message,
            "square blocks must be of format nvfp4, but got mxfp8_e5m2");
  options = {};
  options.rowwise->stochastic = StochasticRounding{};
  EXPECT_EQ(quantizeMatrix(recipe, x, 1, 32, options).error().message,
            "recipe 'mxfp8_e5m2_rceil' must round to nearest");
  EXPECT_EQ(quantizeMatrix(recipe, x, 2, 16).error().message,
            "rows of the row-wise output must be multiples of 32 for mxfp8_e5m2, but got 16");
  EXPECT_TRUE(quantizeMatrix(recipe, x, 1, 32));
  EXPECT_EQ(parseRecipe("mxfp8_e4m3_floor, ties = toward_zero").error().message,
            "elements of format mxfp8_e4m3 expect ties = even and negative_zero = keep");
  EXPECT_TRUE(parseRecipe("mxfp8_e4m3_floor, exponent = even"));
}

} // namespace
