// The blocks of ggml's files against gguf 0.19.0: the bytes that its MXFP4 quantizer wrote, and
// NVFP4 bytes that it dequantized to the values of our codes.
#include "fp4/Numerics/GgmlBlocks.h"
#include "fp4/Numerics/Float16.h"
#include <array>
#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::numerics;

namespace {

constexpr uint64_t rows = 2, columns = 64;
/// bf16: halfway values, small negatives and -0 among random ones.
constexpr std::array<uint16_t, rows * columns> elements = {
    0x4080, 0x3e80, 0x3f40, 0x3fa0, 0x3fe0, 0x4020, 0xc060, 0xbdcc, 0x3d40, 0x3d51, 0x3d8c, 0xbd1e,
    0xbd75, 0x3ccd, 0x3ed0, 0xbd5e, 0xbb2b, 0xbe95, 0xbca1, 0xbf7a, 0xbf37, 0x3d0e, 0xbc01, 0xbd17,
    0x3e52, 0x3dd4, 0xbdd2, 0xbe03, 0xbcfb, 0xbe31, 0xbe25, 0x3d29, 0xbb1b, 0xbd1c, 0xbf86, 0xbe4b,
    0xbc8c, 0xbdad, 0x3b66, 0xbf8e, 0x3e16, 0x3cb7, 0xbf80, 0x3e8b, 0xbc8d, 0x3c07, 0x3b33, 0xbf7f,
    0xbeef, 0xbd83, 0x3ef6, 0xbd97, 0x3e3d, 0xbe0d, 0xbe2a, 0xbc57, 0x3d39, 0x3c11, 0x409c, 0x3e24,
    0x3dd8, 0x3dd7, 0xbc1b, 0xbd8f, 0x3fad, 0xbbcb, 0x3d41, 0xbbae, 0x3d9c, 0xbd3b, 0xbe9c, 0x3d78,
    0x3c53, 0xbedd, 0x3ee5, 0xbea6, 0xbf9a, 0xbea4, 0x3e78, 0xbd39, 0xbe79, 0xbe91, 0x3f58, 0xbd07,
    0xbda3, 0x3e1d, 0xbd99, 0xbe25, 0xbbde, 0xbc64, 0xba5e, 0x402b, 0xbe04, 0xbf21, 0xbfeb, 0xbed2,
    0xbbb4, 0x8000, 0xbf6e, 0xbd75, 0xbdb9, 0xbd05, 0x3b24, 0xbbc3, 0x3e4e, 0x3cf3, 0x3c75, 0xbd4a,
    0x3dde, 0x3eb2, 0xbd71, 0x3ce8, 0x3b11, 0xbe9d, 0xbda2, 0xbcfe, 0x3a45, 0x3c89, 0xbd26, 0x3c57,
    0x3ef0, 0xbf1b, 0x3d04, 0xbd9d, 0xbc88, 0xbe83, 0xb9fa, 0x3d5e};

std::string hex(const std::vector<uint8_t> &bytes) {
  std::string text;
  for (uint8_t byte : bytes)
    text += fmt::format("{:02x}", byte);
  return text;
}

QuantizedSide quantized(std::string_view recipe, ScaleLayout layout = ScaleLayout::Linear) {
  std::vector<float> x;
  for (uint16_t word : elements)
    x.push_back(decodeBF16(word));
  QuantizeOptions options;
  options.layout = layout;
  return *quantizeMatrix(*lookupRecipe(recipe), x, rows, columns, options)->rowwise;
}

TEST(GgmlBlocks, areThoseOfGguf) {
  EXPECT_EQ(hex(*toGgmlBlocks(BlockFormat::MXFP4, quantized("ggml_mxfp4"))),
            "7f069001a293040d0000000000000001007f90001a000000000a00006a010000000a7e9590300000100990000a"
            "02799cb9e1a07c00c09f090909900063e0109902c50910");
  EXPECT_EQ(hex(*toGgmlBlocks(BlockFormat::NVFP4, quantized("ggml_nvfp4"))),
            "332224350701020405061f00301c90af0ea0a0102000ff3a000900ff0900710000000000262e221d07c040b0f1"
            "b02b010909047090b1e0a930000f991940900060fd1aa900d00910");
}

TEST(GgmlBlocks, comeBackAsTheyWere) {
  for (auto [format, recipe] : {std::pair{BlockFormat::MXFP4, "ggml_mxfp4"},
                                std::pair{BlockFormat::NVFP4, "ggml_nvfp4"}}) {
    const QuantizedSide side = quantized(recipe);
    const auto bytes = toGgmlBlocks(format, side);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(*toGgmlBlocks(format, quantized(recipe, ScaleLayout::Tiled128x4)), *bytes);
    const auto back = fromGgmlBlocks(format, *bytes, rows, columns);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->data, side.data);
    EXPECT_EQ(back->scales, side.scales);
    EXPECT_EQ(*dequantizeSide(*lookupRecipe(recipe), *back),
              *dequantizeSide(*lookupRecipe(recipe), side));
  }
}

TEST(GgmlBlocks, whatDoesNotFitIsRefused) {
  QuantizedSide side = quantized("ggml_nvfp4");
  side.columns = 48;
  EXPECT_EQ(toGgmlBlocks(BlockFormat::NVFP4, side).error().message,
            "rows must be multiples of 64 for ggml's nvfp4, but got 48");
  EXPECT_EQ(toGgmlBlocks(BlockFormat::MXFP8E4M3, side).error().message,
            "blocks of ggml must be of format nvfp4 or mxfp4, but got mxfp8_e4m3");
  const std::vector<uint8_t> bytes(35);
  EXPECT_EQ(fromGgmlBlocks(BlockFormat::NVFP4, bytes, 1, 64).error().message,
            "blocks must have 36 bytes, but got 35");
  EXPECT_TRUE(fromGgmlBlocks(BlockFormat::NVFP4, std::vector<uint8_t>(36), 1, 64));
}

} // namespace
