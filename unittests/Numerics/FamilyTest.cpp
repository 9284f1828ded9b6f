// Properties of the quantization family that no hash shows: which bytes are padding, how outputs
// relate to each other, what shards and groups make of them, and what is rejected. The numbered
// cases S1..S15 are the structural vectors of notebook/numerics.md.
#include "TestData.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/Quantize.h"
#include "fp4/Numerics/QuantizeMatrix.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <tuple>

using namespace fp4;
using namespace fp4::numerics;

namespace {

const Recipe &recipe(std::string_view name) { return *lookupRecipe(name); }

std::vector<float> bf16Values(uint64_t seed, uint64_t count) {
  test::Random random(seed);
  std::vector<float> x(count);
  for (float &v : x)
    v = roundTo(FloatType::BF16, random.gaussian());
  return x;
}

std::vector<float> transposed(const std::vector<float> &x, uint64_t rows, uint64_t columns) {
  std::vector<float> out(x.size());
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t c = 0; c < columns; ++c)
      out[c * rows + r] = x[r * columns + c];
  return out;
}

QuantizedPair quantized(std::string_view name, const std::vector<float> &x, uint64_t rows,
                        uint64_t columns, const QuantizeOptions &options = {}) {
  auto pair = quantizeMatrix(recipe(name), x, rows, columns, options);
  EXPECT_TRUE(pair) << format(pair.error());
  return pair.value_or(QuantizedPair{});
}

QuantizeOptions both(const SideOptions &side = {}) {
  QuantizeOptions options;
  options.rowwise = options.columnwise = side;
  return options;
}

uint8_t codeOf(const QuantizedSide &side, uint64_t row, uint64_t column) {
  const uint8_t byte = side.data[row * side.rowBytes() + column / 2];
  return column % 2 ? byte >> 4 : byte & 15;
}

//===--- Shapes ----------------------------------------------------------===//

TEST(Shapes, S1_aRemainderIsABlockFilledWithZeros) {
  const auto pair = quantized("transformer_engine", std::vector<float>(24, 1.f), 1, 24);
  EXPECT_EQ(pair.rowwise->blocks, 2u);
  EXPECT_EQ(pair.rowwise->scales, (std::vector<uint8_t>{0x7E, 0x7E}));
  EXPECT_EQ(pair.rowwise->data, std::vector<uint8_t>(12, 0x77)); // N41 without the padding codes
  QuantizeOptions tiled;
  tiled.layout = ScaleLayout::Tiled128x4;
  const auto inTiles = quantized("transformer_engine", std::vector<float>(24, 1.f), 1, 24, tiled);
  std::vector<uint8_t> expected(512);
  expected[0] = expected[1] = 0x7E;
  EXPECT_EQ(inTiles.rowwise->scales, expected);
  // An odd row ends in a zero nibble.
  const auto odd = quantized("transformer_engine", std::vector<float>(5, 1.f), 1, 5);
  EXPECT_EQ(odd.rowwise->data, (std::vector<uint8_t>{0x77, 0x77, 0x07}));
}

TEST(Shapes, S2_aScaleAtItsTiledOffset) {
  std::vector<uint8_t> scales(130 * 6);
  scales[129 * 6 + 5] = 0xAB;
  const auto tiled = layOutScales(scales, 130, 6, ScaleLayout::Tiled128x4);
  ASSERT_TRUE(tiled);
  EXPECT_EQ(tiled->size(), 2048u);
  EXPECT_EQ((*tiled)[1553], 0xAB);
  EXPECT_EQ(parseScaleLayout("mma_tiled"), ScaleLayout::Tiled128x4);
  EXPECT_EQ(parseScaleLayout("nonsense"), std::nullopt);
}

TEST(Shapes, mmaTiledIsTheTensorOfCuTe) {
  // Strides of (m % 32, m / 32 % 4, m / 128, k % 4, k / 4) in the (32, 4, M/128, 4, K/4) tensor.
  for (uint64_t m : {0u, 1u, 31u, 32u, 127u, 128u, 255u})
    for (uint64_t k : {0u, 3u, 4u, 11u})
      EXPECT_EQ(scaleOffset(ScaleLayout::Tiled128x4, m, k, 12),
                m % 32 * 16 + m / 32 % 4 * 4 + m / 128 * 3 * 512 + k % 4 + k / 4 * 512);
}

TEST(Shapes, layoutsRoundTripAndPadWithZero) {
  for (ScaleLayout layout : {ScaleLayout::Linear, ScaleLayout::Padded128x4, ScaleLayout::Tiled128x4,
                             ScaleLayout::Tiled8x4}) {
    std::vector<uint8_t> scales(130 * 6);
    for (size_t i = 0; i < scales.size(); ++i)
      scales[i] = static_cast<uint8_t>(1 + i % 255);
    const auto bytes = layOutScales(scales, 130, 6, layout);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(std::count(bytes->begin(), bytes->end(), 0), long(bytes->size() - scales.size()));
    EXPECT_EQ(*readScales(*bytes, 130, 6, layout), scales);
    EXPECT_EQ(parseScaleLayout(stringify(layout)), layout);
  }
  EXPECT_EQ(layOutScales({}, 1, 1, ScaleLayout::Linear).error().message,
            "scales must have 1 bytes, but got 0");
}

TEST(Shapes, S4_columnwiseIsTheTransposedMatrixQuantized) {
  std::vector<float> x(32 * 16, 0.1f);
  x[3 * 16 + 7] = 6.f; // an outlier of column 7, block 0 of its column
  const auto pair = quantized("transformer_engine", x, 32, 16, both());
  const auto &c = *pair.columnwise;
  EXPECT_EQ(c.rows, 16u);
  EXPECT_EQ(c.columns, 32u);
  EXPECT_EQ(c.scales.size(), 32u);
  EXPECT_EQ(c.scales[7 * 2], 0x7E);
  EXPECT_EQ(std::count(c.scales.begin(), c.scales.end(), 0x7E), 1);
  EXPECT_EQ(pair.rowwise->scales[3], 0x7E);
  const auto t = quantized("transformer_engine", transposed(x, 32, 16), 16, 32);
  EXPECT_EQ(t.rowwise->data, c.data);
  EXPECT_EQ(t.rowwise->scales, c.scales);
}

TEST(Shapes, S3_squareBlocksQuantizeTheTransposedAlike) {
  for (const char *name : {"transformer_engine", "torchao", "four_over_six", "cutlass"})
    for (auto [rows, columns] : {std::pair<uint64_t, uint64_t>{32, 48}, {40, 24}}) {
      const auto x = bf16Values(rows, rows * columns);
      QuantizeOptions options = both();
      options.squareBlocks = true;
      const auto q = quantized(name, x, rows, columns, options);
      for (uint64_t r = 0; r < rows; ++r)
        for (uint64_t c = 0; c < columns; ++c) {
          ASSERT_EQ(codeOf(*q.rowwise, r, c), codeOf(*q.columnwise, c, r)) << name;
          const uint64_t tile = r / 16 * 16 * q.rowwise->blocks + c / 16;
          ASSERT_EQ(q.rowwise->scales[r * q.rowwise->blocks + c / 16], q.rowwise->scales[tile]);
          ASSERT_EQ(q.columnwise->scales[c * q.columnwise->blocks + r / 16],
                    q.rowwise->scales[tile]);
        }
      const auto t = quantized(name, transposed(x, rows, columns), columns, rows, options);
      if (std::string_view(name) != "four_over_six") { // whose errors add in another order
        EXPECT_EQ(t.rowwise->data, q.columnwise->data);
        EXPECT_EQ(t.columnwise->scales, q.rowwise->scales);
      }
    }
}

TEST(Shapes, bothOutputsEqualEachAlone) {
  const auto x = bf16Values(5, 48 * 80);
  SideOptions side;
  side.stochastic = StochasticRounding{.seed = 9, .offset = 1};
  const auto pair = quantized("transformer_engine", x, 48, 80, both(side));
  QuantizeOptions rowwise, columnwise;
  rowwise.rowwise = columnwise.columnwise = side;
  columnwise.rowwise.reset();
  EXPECT_EQ(quantized("transformer_engine", x, 48, 80, rowwise).rowwise->data, pair.rowwise->data);
  EXPECT_EQ(quantized("transformer_engine", x, 48, 80, columnwise).columnwise->data,
            pair.columnwise->data);
}

TEST(Shapes, dequantizingReturnsEveryLayoutAndRemainder) {
  const auto x = bf16Values(6, 20 * 37);
  for (bool perRow : {false, true}) {
    QuantizeOptions options;
    options.layout = ScaleLayout::Tiled128x4;
    options.amaxPerRow = perRow;
    const auto pair = quantized("transformer_engine", x, 20, 37, options);
    EXPECT_EQ(pair.rowwise->amax.size(), perRow ? 20u : 1u);
    const auto back = dequantizeSide(recipe("transformer_engine"), *pair.rowwise);
    ASSERT_TRUE(back);
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR((*back)[i], x[i], 0.35 * std::fabs(x[i]) + 0.2);
  }
}

/// Amaxes that are given for the rows are those that count, as each row by itself shows.
TEST(Shapes, rowsAreQuantizedWithTheirOwnAmax) {
  std::vector<float> x;
  for (int i = 0; i < 3 * 32; ++i)
    x.push_back(static_cast<float>(i % 7 - 3) * (i < 32 ? 1.f : 100.f));
  QuantizeOptions options;
  options.amaxPerRow = true;
  options.rowwise->rowAmax = {3.f, 300.f, 77.f};
  const auto pair = quantized("transformer_engine", x, 3, 32, options);
  EXPECT_EQ(pair.rowwise->amax, options.rowwise->rowAmax);
  for (size_t row = 0; row < 3; ++row) {
    QuantizeOptions one;
    one.rowwise->amax = options.rowwise->rowAmax[row];
    const std::vector<float> part(x.begin() + row * 32, x.begin() + (row + 1) * 32);
    const auto alone = quantized("transformer_engine", part, 1, 32, one);
    for (size_t i = 0; i < 2; ++i)
      EXPECT_EQ(alone.rowwise->scales[i], pair.rowwise->scales[row * 2 + i]) << row;
    for (size_t i = 0; i < 16; ++i)
      EXPECT_EQ(alone.rowwise->data[i], pair.rowwise->data[row * 16 + i]) << row;
  }
  options.rowwise->rowAmax.pop_back();
  EXPECT_EQ(quantizeMatrix(recipe("transformer_engine"), x, 3, 32, options).error().message,
            "amaxes of rows of the row-wise output must be 3 numbers, but got 2");
}

TEST(Shapes, S15_fourOverSixTakesTheBetterScale) {
  const auto first = [](std::string_view name, std::vector<float> x) {
    x.resize(16, x.back() == 5.f ? 0.f : x.back());
    std::vector<uint8_t> codes(16);
    const uint8_t scale = quantizeBlock(recipe(name), globalScale(recipe(name), 2688.f), x, codes);
    return std::tuple(scale, codes[0], codes[1]);
  };
  EXPECT_EQ(first("four_over_six_448", {4.f}), std::tuple(0x38, 6, 6)); // 4 is exact
  EXPECT_EQ(first("four_over_six", {4.f}), std::tuple(0x2C, 7, 7));     // a tie goes to 6
  EXPECT_EQ(first("four_over_six_448", {6.f, 5.f}), std::tuple(0x3C, 6, 5));
  EXPECT_EQ(first("four_over_six", {6.f, 5.f}), std::tuple(0x36, 6, 5));
}

TEST(Shapes, S11_zerosAreZeroOrPoisonByRecipe) {
  const std::vector<float> zeros(16 * 64);
  const auto product = [&](std::string_view name) {
    const auto q = quantizeRows(recipe(name), zeros, 16, 64);
    const GemmOperand operand{.data = q->data.data(), .scales = q->scales.data(), .rows = 16};
    return gemmMmaModel({.a = operand, .b = operand, .depth = 64})->front();
  };
  for (const char *name : {"transformer_engine", "torchao_1level", "four_over_six"})
    EXPECT_EQ(product(name), 0.f) << name;
  for (const char *name : {"torchao", "pytorch_eager", "flashinfer", "cutlass"})
    EXPECT_TRUE(std::isnan(product(name))) << name;
}

TEST(Shapes, dequantizingFollowsTheRecipesScales) {
  const std::vector<float> x = {6.f, -4.f, 3.f, 0.5f};
  const auto back = [&](const Recipe &r, std::optional<float> amax) {
    QuantizeOptions options;
    options.rowwise->amax = amax;
    return *dequantizeSide(r, *quantizeMatrix(r, x, 1, 4, options)->rowwise);
  };
  EXPECT_EQ(back(recipe("torchao_1level"), std::nullopt), x);
  EXPECT_EQ(back(recipe("torchao_1level"), 17.f), x); // has no tensor scale
  Recipe supplied;
  supplied.name = "supplied";
  supplied.global = GlobalRule::Supplied;
  EXPECT_EQ(back(supplied, 64.f), x);
  EXPECT_EQ(back(*parseRecipe("torchao, tensor_scale = supplied_decode"), 1.f / 64), x);
  EXPECT_EQ(back(recipe("transformer_engine"), 2688.f / 64)[0], 6.f);
}

//===--- Hadamard --------------------------------------------------------===//

TEST(HadamardQuantize, S6_theAmaxIsThatOfTheTransform) {
  std::vector<float> x(16);
  for (int i = 0; i < 16; ++i)
    x[i] = 0xD7E8 >> i & 1 ? -1.5f : 1.5f;
  const auto amaxes = hadamardAmax(x, 1, 16, false);
  ASSERT_TRUE(amaxes);
  EXPECT_EQ(amaxes->before, 1.5f);
  EXPECT_EQ(amaxes->after, 6.f);
  QuantizeOptions options;
  options.rowwise->hadamard.emplace();
  const auto pair = quantized("transformer_engine", x, 1, 16, options);
  EXPECT_EQ(pair.rowwise->amax[0], 6.f);
  EXPECT_EQ(pair.rowwise->scales[0], 0x7E);
  EXPECT_EQ(pair.rowwise->data, (std::vector<uint8_t>{7, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(HadamardQuantize, equalsTransformThenQuantize) {
  const uint64_t rows = 64, columns = 32;
  const auto x = bf16Values(8, rows * columns);
  for (unsigned size : {16u, 32u, 64u})
    for (bool bf16 : {true, false}) {
      const HadamardOptions h{.blockSize = size, .roundToBF16 = bf16};
      QuantizeOptions options;
      options.rowwise.reset();
      options.columnwise = SideOptions{.hadamard = h, .amax = {}, .stochastic = {}};
      auto turned = transposed(x, rows, columns);
      ASSERT_TRUE(hadamard(turned, h));
      const auto fused = quantized("transformer_engine", x, rows, columns, options);
      const auto plain = quantized("transformer_engine", turned, columns, rows);
      EXPECT_EQ(fused.columnwise->data, plain.rowwise->data);
      EXPECT_EQ(fused.columnwise->scales, plain.rowwise->scales);
      const auto amaxes = hadamardAmax(x, rows, columns, true, h);
      ASSERT_TRUE(amaxes);
      EXPECT_EQ(amaxes->before, amax(x));
      EXPECT_EQ(amaxes->after, fused.columnwise->amax[0]);
    }
}

TEST(HadamardQuantize, exactSumIsTheButterflyOnBf16) {
  auto x = bf16Values(10, 1 << 14), y = x;
  ASSERT_TRUE(hadamard(x));
  ASSERT_TRUE(hadamard(y, {.arithmetic = HadamardArithmetic::ExactSum}));
  EXPECT_EQ(x, y);
}

//===--- Groups and shards -----------------------------------------------===//

TEST(Groups, S14_everyGroupIsAMatrixOfItsOwn) {
  const std::vector<uint64_t> sizes = {0, 1, 127, 128, 129};
  const uint64_t columns = 96, rows = 385;
  const auto x = bf16Values(11, rows * columns);
  QuantizeOptions options = both();
  options.layout = ScaleLayout::Tiled128x4;
  const auto groups = quantizeGroups(recipe("transformer_engine"), x, sizes, columns, options);
  ASSERT_TRUE(groups) << format(groups.error());
  const auto rowwise = concatenateScales(*groups, false);
  const auto columnwise = concatenateScales(*groups, true);
  // Tiles of 512 bytes: ceil(rows / 128) * 2 row-wise, 1 * ceil(rows / 64) column-wise.
  EXPECT_EQ(rowwise.offsets, (std::vector<uint64_t>{0, 0, 1024, 2048, 3072, 5120}));
  EXPECT_EQ(columnwise.offsets, (std::vector<uint64_t>{0, 0, 512, 1536, 2560, 4096}));
  EXPECT_EQ(rowwise.bytes.size(), 5120u);
  size_t at = 0;
  for (size_t g = 0; g < sizes.size(); at += sizes[g++] * columns) {
    const std::vector<float> part(x.begin() + at, x.begin() + at + sizes[g] * columns);
    const auto alone = quantized("transformer_engine", part, sizes[g], columns, options);
    EXPECT_EQ((*groups)[g].rowwise->data, alone.rowwise->data);
    EXPECT_EQ((*groups)[g].columnwise->scales, alone.columnwise->scales);
    EXPECT_EQ((*groups)[g].columnwise->amax, alone.columnwise->amax);
  }
}

TEST(Groups, rowwiseRandomBitsAreThoseOfTheStackedMatrix) {
  const std::vector<uint64_t> sizes = {3, 0, 13};
  const auto x = bf16Values(12, 16 * 40);
  QuantizeOptions options;
  options.rowwise->amax = 4.f;
  options.rowwise->stochastic = StochasticRounding{.seed = 3};
  const auto groups = quantizeGroups(recipe("transformer_engine"), x, sizes, 40, options);
  ASSERT_TRUE(groups);
  std::vector<uint8_t> stacked;
  for (const auto &pair : *groups)
    stacked.insert(stacked.end(), pair.rowwise->data.begin(), pair.rowwise->data.end());
  EXPECT_EQ(stacked, quantized("transformer_engine", x, 16, 40, options).rowwise->data);
}

/// Quantizes `ranks` row shards of a matrix with one amax, and the whole.
struct Sharded {
  std::vector<QuantizedSide> rowwise, columnwise;
  QuantizedPair whole;
};

Sharded shard(uint64_t ranks, uint64_t rows, uint64_t columns, ScaleLayout layout) {
  const auto x = bf16Values(13, ranks * rows * columns);
  SideOptions side;
  side.amax = amax(x); // the all-reduce of the ranks' amaxes
  QuantizeOptions options = both(side);
  options.layout = layout;
  Sharded out;
  out.whole = quantized("transformer_engine", x, ranks * rows, columns, options);
  for (uint64_t r = 0; r < ranks; ++r) {
    const std::vector<float> part(x.begin() + r * rows * columns,
                                  x.begin() + (r + 1) * rows * columns);
    const auto q = quantized("transformer_engine", part, rows, columns, options);
    out.rowwise.push_back(*q.rowwise);
    out.columnwise.push_back(*q.columnwise);
  }
  return out;
}

TEST(Gather, shardsEqualTheWhole) {
  for (ScaleLayout layout :
       {ScaleLayout::Linear, ScaleLayout::Padded128x4, ScaleLayout::Tiled128x4})
    for (auto [ranks, rows] : {std::pair<uint64_t, uint64_t>{1, 16}, {2, 80}, {4, 48}}) {
      const Sharded s = shard(ranks, rows, 144, layout);
      const auto r = gatherRowwise(s.rowwise), c = gatherColumnwise(s.columnwise);
      ASSERT_TRUE(r) << format(r.error());
      ASSERT_TRUE(c) << format(c.error());
      EXPECT_EQ(r->data, s.whole.rowwise->data);
      EXPECT_EQ(r->scales, s.whole.rowwise->scales);
      EXPECT_EQ(r->rows, ranks * rows);
      EXPECT_EQ(c->data, s.whole.columnwise->data);
      EXPECT_EQ(c->scales, s.whole.columnwise->scales);
      EXPECT_EQ(c->columns, ranks * rows);
    }
}

TEST(Gather, movesShardsBesideEachOther) {
  const std::vector<uint8_t> stacked = {1, 2, 3, 4, 5, 6, 7, 8}; // 2 ranks of 2 rows of 2 bytes
  EXPECT_EQ(*interleaveShards(stacked, 2, 2, 2), (std::vector<uint8_t>{1, 2, 5, 6, 3, 4, 7, 8}));
  EXPECT_EQ(interleaveShards(stacked, 3, 2, 2).error().message,
            "gathered shards must have 12 bytes, but got 8");
}

TEST(Gather, rejectsShardsThatDoNotBelongTogether) {
  Sharded s = shard(2, 32, 64, ScaleLayout::Linear);
  EXPECT_EQ(gatherRowwise({}).error().message,
            "gathering expects at least one shard, but got none");
  s.rowwise[1].amax[0] += 1;
  EXPECT_EQ(gatherRowwise(s.rowwise).error().message, "shards must be quantized with one amax");
  s.columnwise[1].rows = 63;
  EXPECT_EQ(gatherColumnwise(s.columnwise).error().message,
            "shards must have one shape and layout, but got 63 x 32 beside 64 x 32");
  const Sharded ragged = shard(2, 24, 64, ScaleLayout::Linear);
  EXPECT_EQ(gatherColumnwise(ragged.columnwise).error().message,
            "column-wise shards must be whole blocks long, but got 24 columns");
}

//===--- Rejections ------------------------------------------------------===//

std::string rejection(std::string_view name, uint64_t rows, uint64_t columns,
                      const QuantizeOptions &options) {
  const auto pair =
      quantizeMatrix(recipe(name), std::vector<float>(rows * columns), rows, columns, options);
  return pair ? "accepted" : pair.error().message;
}

TEST(QuantizeMatrix, rejectsWhatHasNoMeaning) {
  QuantizeOptions none, square, perRow, stochastic, transform;
  EXPECT_EQ(quantizeMatrix(recipe("vllm"), std::vector<float>(3), 2, 16).error().message,
            "values must have 32 elements, but got 3");
  none.rowwise.reset();
  EXPECT_EQ(rejection("vllm", 2, 16, none),
            "quantizing expects a row-wise or a column-wise output, but got none");
  EXPECT_EQ(rejection("ocp_floor", 2, 48, {}),
            "rows of the row-wise output must be multiples of 32 for mxfp4, but got 48");
  EXPECT_EQ(rejection("vllm", 2, 48, {}), "accepted");
  square.squareBlocks = true;
  EXPECT_EQ(rejection("ocp_floor", 32, 32, square),
            "square blocks must be of format nvfp4, but got mxfp4");
  EXPECT_EQ(rejection("vllm", 32, 32, square), "accepted");
  perRow.amaxPerRow = true;
  EXPECT_EQ(rejection("ocp_floor", 32, 32, perRow),
            "an amax per row expects nvfp4 outputs of 1 x 16 blocks");
  stochastic.rowwise->stochastic.emplace();
  EXPECT_EQ(rejection("four_over_six", 2, 16, stochastic),
            "recipe 'four_over_six' must round to nearest");
  stochastic.rowwise->stochastic->mapping = PhiloxMapping::TransformerEngineBlockwise;
  EXPECT_EQ(rejection("ocp_floor", 2, 32, stochastic),
            "the blockwise mapping of TransformerEngine expects nvfp4 blocks of 1 x 16");
  transform.rowwise->hadamard.emplace();
  EXPECT_EQ(rejection("vllm", 2, 24, transform),
            "rows to transform must be multiples of 16 long, but got 24");
  transform.squareBlocks = true;
  EXPECT_EQ(rejection("vllm", 32, 32, transform),
            "square blocks must not be combined with a hadamard transform");
}

} // namespace
