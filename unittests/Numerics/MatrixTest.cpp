// Whole-matrix quantization against data/matrix_golden.json (oracles/matrix_golden.py: numpy models
// of every orientation, block shape, transform, rounding and layout; a case there is a test here).
#include "TestData.h"
#include "fp4/Numerics/QuantizeMatrix.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::numerics;
using nlohmann::json;

namespace {

/// The tensor of oracles/matrix_golden.py.
std::vector<float> goldenTensor(uint64_t seed, uint64_t count) {
  std::vector<float> out;
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t w = philox4x32(seed, 1, i / 4)[i % 4];
    const uint32_t exponent =
        127 - (w >> 8 & 7) - static_cast<uint32_t>((i / 64 * 2654435761u >> 8) % 5);
    out.push_back(floatOf((w >> 31) << 31 | exponent << 23 | (w >> 16 & 0x7F) << 16));
  }
  out[0] = floatOf(128u << 23 | static_cast<uint32_t>((37 * seed + 5) & 0x7F) << 16);
  return out;
}

std::string hashOf(const std::vector<uint8_t> &bytes) {
  uint64_t hash = test::fnvBasis;
  for (uint8_t b : bytes)
    test::fnv(hash, b);
  return fmt::format("{:016x}", hash);
}

HadamardOptions hadamardOf(const json &h) {
  const std::string flavour = h.at("flavour");
  HadamardOptions options{.blockSize = h.at("size"), .signMask = h.at("mask")};
  options.roundToBF16 = h.at("bf16").get<int>();
  if (flavour == "descending")
    options.order = ButterflyOrder::Descending;
  if (flavour == "exact")
    options.arithmetic = HadamardArithmetic::ExactSum;
  return options;
}

StochasticRounding stochasticOf(const json &s) {
  StochasticRounding rounding{.seed = s.at("seed"), .offset = s.at("offset")};
  if (s.at("mapping") == "blockwise")
    rounding.mapping = PhiloxMapping::TransformerEngineBlockwise;
  if (s.at("bytes") == "plain")
    rounding.bytes = StochasticMapping::TransformerEngine;
  if (s.at("fused_add").get<int>())
    rounding.arithmetic = StochasticArithmetic::FusedAdd;
  return rounding;
}

QuantizeOptions optionsOf(const json &c) {
  SideOptions side;
  if (!c.at("hadamard").is_null())
    side.hadamard = hadamardOf(c.at("hadamard"));
  if (!c.at("stochastic").is_null())
    side.stochastic = stochasticOf(c.at("stochastic"));
  QuantizeOptions options;
  options.rowwise.reset();
  options.squareBlocks = c.at("square").get<int>();
  options.amaxPerRow = c.at("amax_per_row").get<int>();
  options.layout = *parseScaleLayout(c.at("layout").get<std::string>());
  if (!c.at("columnwise").get<int>() || c.at("both").get<int>())
    options.rowwise = side;
  if (c.at("columnwise").get<int>())
    options.columnwise = side;
  return options;
}

class MatrixGolden : public testing::TestWithParam<json> {};

TEST_P(MatrixGolden, equalsTheModel) {
  const json &c = GetParam();
  const uint64_t rows = c.at("rows"), columns = c.at("columns");
  const Recipe &recipe = test::recipeOf(c.at("model"));
  const auto x = goldenTensor(c.at("seed"), rows * columns);
  const auto pair = quantizeMatrix(recipe, x, rows, columns, optionsOf(c));
  ASSERT_TRUE(pair) << format(pair.error());
  const auto &side = c.at("columnwise").get<int>() ? pair->columnwise : pair->rowwise;
  ASSERT_TRUE(side);
  if (side->amax.size() == 1) {
    EXPECT_EQ(fmt::format("{:08x}", bitsOf(side->amax[0])), c.at("amax").get<std::string>());
  }
  EXPECT_EQ(hashOf(side->scales), c.at("scales").get<std::string>()) << c;
  EXPECT_EQ(hashOf(side->data), c.at("data").get<std::string>()) << c;
}

INSTANTIATE_TEST_SUITE_P(Cases, MatrixGolden,
                         testing::ValuesIn(test::readJson("matrix_golden.json")),
                         [](const auto &info) {
                           return info.param.at("name").template get<std::string>();
                         });

} // namespace
