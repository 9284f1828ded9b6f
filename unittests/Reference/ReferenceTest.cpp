//===- ReferenceTest.cpp - The quantization family, interpreted -----------===//
//
// The operations of a manifest against lib/Numerics called directly: every attribute arrives, and
// results have the sizes that their operations give them. The arithmetic of lib/Numerics has tests
// of its own.
//
//===----------------------------------------------------------------------===//

#include "fp4/Harness/Inputs.h"
#include "fp4/Harness/Verdict.h"
#include "fp4/Numerics/Float16.h"
#include "fp4/Numerics/Quantize.h"
#include "fp4/Numerics/QuantizeMatrix.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

namespace fp4::harness {
namespace {

using testing::ElementsAreArray;

constexpr uint64_t kRows = 48, kColumns = 80;
const Type kScalar{{}, ElementType::F32, Layout::Linear};
const Type kInput{{kRows, kColumns}, ElementType::BF16, Layout::Linear};
const Type kAnyRows{{-1, kColumns}, ElementType::BF16, Layout::Linear};

Type codes(int64_t rows, int64_t columns) {
  return {{rows, columns}, ElementType::F4E2M1FN, Layout::Linear};
}
Type scales(int64_t rows, int64_t blocks, Layout layout = Layout::Linear) {
  return {{rows, blocks}, ElementType::F8E4M3FN, layout};
}

/// A function of one operation on x, and further operands, that returns all results.
struct OneOp {
  explicit OneOp(std::string name, std::vector<Type> types,
                 std::map<std::string, std::string> attributes = {}) {
    arguments = {*makeInput(kInput, "bf16", 3, 0)};
    ProgramOp op{std::move(name), {"a0"}, {}, std::move(types), std::move(attributes)};
    for (size_t i = 0; i < op.resultTypes.size(); ++i)
      op.results.push_back("v" + std::to_string(i));
    function.returns = op.results;
    function.program = {std::move(op)};
  }
  OneOp &operand(Tensor tensor) {
    function.program[0].operands.push_back("a" + std::to_string(arguments.size()));
    arguments.push_back(std::move(tensor));
    return *this;
  }
  OneOp &operand(float value) {
    Tensor tensor(kScalar);
    tensor.as<float>()[0] = value;
    return operand(std::move(tensor));
  }
  OneOp &rng(uint64_t seed, uint64_t offset) {
    Tensor tensor({{2}, ElementType::I64, Layout::Linear});
    tensor.as<uint64_t>()[0] = seed, tensor.as<uint64_t>()[1] = offset;
    return operand(std::move(tensor));
  }
  std::vector<ReferenceValue> run() {
    auto results = runReference(function, arguments, 1);
    EXPECT_TRUE(results) << format(results.error());
    return results ? *results : std::vector<ReferenceValue>(function.returns.size());
  }
  std::string error() {
    auto results = runReference(function, arguments, 1);
    return results ? "ran" : results.error().message;
  }
  std::vector<float> values() const {
    return numerics::decodeFloats(numerics::FloatType::BF16, arguments[0].bytes);
  }
  Function function;
  std::vector<Tensor> arguments;
};

std::vector<uint8_t> bytes(const ReferenceValue &value) {
  auto span = value.value.as<uint8_t>();
  return {span.begin(), span.end()};
}

float number(const ReferenceValue &value) { return value.value.as<float>()[0]; }

numerics::QuantizedPair quantized(const OneOp &op, const char *recipe,
                                  const numerics::QuantizeOptions &options) {
  return *numerics::quantizeMatrix(*numerics::lookupRecipe(recipe), op.values(), kRows, kColumns,
                                   options);
}

std::map<std::string, std::string>
nvfp4(const char *recipe, std::initializer_list<std::pair<const std::string, std::string>> more) {
  std::map<std::string, std::string> attributes = {{"format", "nvfp4"}, {"recipe", recipe}};
  attributes.insert(more.begin(), more.end());
  return attributes;
}

//===--- Amax and Hadamard -----------------------------------------------===//

TEST(Family, AmaxDropsOrPropagatesNaN) {
  for (const char *policy : {"drop", "propagate"}) {
    OneOp op("fp4.amax", {kScalar}, {{"nan", policy}});
    const float clean = number(op.run()[0]);
    EXPECT_EQ(clean, numerics::amax(op.values()));
    op.arguments[0].as<uint16_t>()[7] = 0x7FC0;
    const float poisoned = number(op.run()[0]);
    if (policy[0] == 'd')
      EXPECT_EQ(poisoned, clean);
    else
      EXPECT_TRUE(std::isnan(poisoned));
  }
  OneOp op("fp4.amax", {kScalar}, {{"nan", "keep"}});
  EXPECT_EQ(op.error(), "manifest: operation 'fp4.amax' has the unknown NaN policy 'keep'");
}

TEST(Family, HadamardAlongEitherDimension) {
  OneOp rows("fp4.hadamard", {kAnyRows}, {{"size", "16"}, {"dimension", "1"}});
  auto expected = rows.values();
  ASSERT_TRUE(numerics::hadamardRows(expected, kRows, kColumns));
  EXPECT_EQ(numerics::decodeFloats(numerics::FloatType::BF16, rows.run()[0].value.bytes), expected);

  OneOp down(
      "fp4.hadamard", {kAnyRows},
      {{"size", "16"}, {"dimension", "0"}, {"sign_mask", "5"}, {"arithmetic", "tensor_core"}});
  const auto x = down.values();
  const auto y = numerics::decodeFloats(numerics::FloatType::BF16, down.run()[0].value.bytes);
  for (uint64_t c = 0; c < kColumns; ++c) {
    std::vector<float> column;
    for (uint64_t r = 0; r < kRows; ++r)
      column.push_back(x[r * kColumns + c]);
    ASSERT_TRUE(numerics::hadamard(
        column, {.signMask = 5, .arithmetic = numerics::HadamardArithmetic::ExactSum}));
    for (uint64_t r = 0; r < kRows; ++r)
      ASSERT_EQ(y[r * kColumns + c], column[r]);
  }
}

TEST(Family, HadamardAmaxGivesBoth) {
  OneOp op("fp4.hadamard_amax", {kScalar, kScalar},
           {{"size", "16"}, {"dimension", "0"}, {"sign_mask", "55272"}});
  const auto results = op.run();
  const auto expected = *numerics::hadamardAmax(op.values(), kRows, kColumns, true);
  EXPECT_EQ(number(results[0]), expected.before);
  EXPECT_EQ(number(results[1]), expected.after);
  EXPECT_NE(expected.before, expected.after);
}

//===--- Quantize --------------------------------------------------------===//

TEST(Family, QuantizeBothSidesWithEverything) {
  OneOp op("fp4.quantize",
           {codes(-1, kColumns), scales(-1, kColumns / 16, Layout::Tiled128x4), codes(kColumns, -1),
            scales(kColumns, -1, Layout::Tiled128x4)},
           nvfp4("transformer_engine", {{"outputs", "both"},
                                        {"rounding", "stochastic"},
                                        {"operand_segments", "1,1,1,1"},
                                        {"columnwise_hadamard", "16,55272,tensor_core"}}));
  op.operand(13.f).operand(21.f).rng(99, 7);
  const auto results = op.run();
  numerics::QuantizeOptions options;
  options.layout = numerics::ScaleLayout::Tiled128x4;
  numerics::SideOptions side{.hadamard = {},
                             .amax = 13.f,
                             .stochastic = numerics::StochasticRounding{.seed = 99, .offset = 7}};
  options.rowwise = side;
  side.amax = 21.f;
  side.hadamard = numerics::HadamardOptions{.arithmetic = numerics::HadamardArithmetic::ExactSum};
  options.columnwise = side;
  const auto expected = quantized(op, "transformer_engine", options);
  EXPECT_EQ(bytes(results[0]), expected.rowwise->data);
  EXPECT_EQ(bytes(results[1]), expected.rowwise->scales);
  EXPECT_EQ(bytes(results[2]), expected.columnwise->data);
  EXPECT_EQ(bytes(results[3]), expected.columnwise->scales);
  EXPECT_EQ(results[2].value.type.str(), "80x48xf4E2M1FN");
  EXPECT_EQ(results[3].value.type.str(), "80x3xf8E4M3FN, tiled_128x4");
}

TEST(Family, OneAmaxServesBothSides) {
  OneOp op("fp4.quantize",
           {codes(kRows, kColumns), scales(kRows, 5), codes(kColumns, kRows), scales(kColumns, 3)},
           nvfp4("torchao", {{"outputs", "both"}, {"operand_segments", "1,1,0,0"}}));
  op.operand(13.f);
  numerics::QuantizeOptions options;
  options.columnwise.emplace();
  options.rowwise->amax = options.columnwise->amax = 13.f;
  const auto expected = quantized(op, "torchao", options);
  const auto results = op.run();
  EXPECT_EQ(bytes(results[0]), expected.rowwise->data);
  EXPECT_EQ(bytes(results[3]), expected.columnwise->scales);
}

TEST(Family, QuantizeSquareBlocksColumnwise) {
  OneOp op("fp4.quantize", {codes(kColumns, -1), scales(kColumns, -1)},
           nvfp4("transformer_engine",
                 {{"outputs", "columnwise"}, {"block", "16,16"}, {"operand_segments", "1,1,0,0"}}));
  op.operand(13.f);
  numerics::QuantizeOptions options;
  options.rowwise.reset();
  options.columnwise = {.hadamard = {}, .amax = 13.f, .stochastic = {}};
  options.squareBlocks = true;
  const auto expected = quantized(op, "transformer_engine", options);
  EXPECT_EQ(bytes(op.run()[0]), expected.columnwise->data);
  EXPECT_EQ(bytes(op.run()[1]), expected.columnwise->scales);
}

TEST(Family, TheMappingOfTransformerEngineIsAnotherStream) {
  const auto run = [&](const char *mapping) {
    OneOp op(
        "fp4.quantize", {codes(kRows, kColumns), scales(kRows, 5)},
        nvfp4("transformer_engine",
              {{"rounding", "stochastic"}, {"philox", mapping}, {"operand_segments", "1,1,0,1"}}));
    op.operand(13.f).rng(5, 0);
    return bytes(op.run()[0]);
  };
  EXPECT_NE(run("element"), run("transformer_engine"));
}

TEST(Family, DequantizeFollowsTheRecipe) {
  OneOp op("fp4.dequantize", {{{-1, kColumns}, ElementType::F32, Layout::Linear}},
           nvfp4("four_over_six", {}));
  const auto side = *quantized(op, "four_over_six", {}).rowwise;
  op.function.program[0].operands.clear();
  Tensor data(codes(kRows, kColumns)), scale(scales(kRows, 5));
  std::memcpy(data.bytes.data(), side.data.data(), side.data.size());
  std::memcpy(scale.bytes.data(), side.scales.data(), side.scales.size());
  op.operand(data).operand(scale).operand(side.amax[0]);
  const auto expected = *numerics::dequantizeSide(*numerics::lookupRecipe("four_over_six"), side);
  EXPECT_THAT(op.run()[0].value.as<float>(), ElementsAreArray(expected));
  // Without a recipe: the 448 of TransformerEngine instead of 256.
  op.function.program[0].attributes.erase("recipe");
  EXPECT_THAT(op.run()[0].value.as<float>(), testing::Not(ElementsAreArray(expected)));
}

TEST(Family, ManifestsThatMakeNoSenseAreErrors) {
  OneOp op("fp4.quantize", {codes(kRows, kColumns), scales(kRows, 5)},
           nvfp4("transformer_engine", {{"rounding", "stochastic"}}));
  EXPECT_EQ(op.error(), "manifest: operation 'fp4.quantize' rounds 'stochastic', which the "
                        "reference does not know");
  op.function.program[0].attributes["rounding"] = "nearest_even";
  EXPECT_EQ(op.error(), "ran");
  op.function.program[0].attributes["hadamard"] = "16";
  EXPECT_EQ(op.error(), "manifest: operation 'fp4.quantize' expects size, sign mask and arithmetic "
                        "as 'hadamard', but got '16'");
  op.function.program[0].attributes.erase("hadamard");
  op.function.program[0].attributes["saturate"] = "true";
  EXPECT_EQ(op.error(), "manifest: operation 'fp4.quantize' has the attribute 'saturate', which "
                        "the reference does not know");
  op.function.program[0].attributes.erase("saturate");
  op.function.program[0].resultTypes[1].shape = {kRows, 6};
  EXPECT_EQ(op.error(), "manifest: operation 'fp4.quantize' has a result of type 48x6xf8E4M3FN, "
                        "which holds 288 bytes, but 240 were computed");
}

//===--- Groups ----------------------------------------------------------===//

/// The result of a group is the quantization of its rows, at their place in the whole result.
TEST(Family, GroupsAreQuantizedByThemselves) {
  const std::vector<uint64_t> rows = {32, 0, 16};
  OneOp amax("fp4.amax", {{{3}, ElementType::F32, Layout::Linear}}, {{"groups", "32,0,16"}});
  const Tensor amaxes = amax.run()[0].value;
  EXPECT_EQ(amaxes.as<float>()[1], 0.f);
  const int64_t blocks = kColumns / 16;
  OneOp op("fp4.quantize",
           {codes(kRows, kColumns), scales(2 * 2 * 128, 4, Layout::Tiled128x4),
            codes(kColumns, kRows), scales(kColumns, kRows / 16)},
           nvfp4("four_over_six", {{"outputs", "both"},
                                   {"groups", "32,0,16"},
                                   {"operand_segments", "1,1,0,0"}}));
  op.operand(amaxes);
  const std::vector<ReferenceValue> got = op.run();
  numerics::QuantizeOptions options;
  options.columnwise = numerics::SideOptions{};
  const std::vector<float> values = op.values();
  std::vector<uint8_t> data, tiles;
  uint64_t first = 0;
  for (uint64_t count : rows) {
    const auto part = std::span(values).subspan(first * kColumns, count * kColumns);
    const auto pair = *numerics::quantizeMatrix(*numerics::lookupRecipe("four_over_six"), part,
                                                count, kColumns, options);
    data.insert(data.end(), pair.rowwise->data.begin(), pair.rowwise->data.end());
    const auto tiled = *numerics::swizzleScales(pair.rowwise->scales, count, blocks);
    tiles.insert(tiles.end(), tiled.begin(), tiled.end());
    for (uint64_t k = 0; k < kColumns; ++k) {
      const std::vector<uint8_t> whole = bytes(got[2]), wholeScales = bytes(got[3]);
      EXPECT_TRUE(std::equal(whole.begin() + k * kRows / 2 + first / 2,
                             whole.begin() + k * kRows / 2 + (first + count) / 2,
                             pair.columnwise->data.begin() + k * count / 2));
      for (uint64_t b = 0; b < count / 16; ++b)
        EXPECT_EQ(wholeScales[k * (kRows / 16) + first / 16 + b],
                  pair.columnwise->scales[k * (count / 16) + b]);
    }
    first += count;
  }
  EXPECT_THAT(bytes(got[0]), ElementsAreArray(data));
  EXPECT_THAT(bytes(got[1]), ElementsAreArray(tiles));
  for (const char *bad : {"32,17", "32", "32,,16", "many"}) {
    op.function.program[0].attributes["groups"] = bad;
    EXPECT_EQ(op.error(), fmt::format("manifest: operation 'fp4.quantize' expects groups of 48 "
                                      "rows, but got '{}'",
                                      bad));
  }
}

/// Rows that only the device knows, as a tensor.
Tensor offsetsOf(std::vector<int64_t> shape, std::vector<int64_t> rows) {
  Tensor tensor({std::move(shape), ElementType::I64, Layout::Linear});
  std::ranges::copy(rows, tensor.as<int64_t>().begin());
  return tensor;
}

/// The groups between offsets are those of attribute 'groups', but for rows of no group, which are
/// zero, and for the tiles that no group uses.
TEST(Family, OffsetsAreGroupsThatTheDeviceKnows) {
  const Type perGroup{{3}, ElementType::F32, Layout::Linear};
  const Tensor rows = offsetsOf({3, 2}, {0, 32, 0, 0, 32, 48});
  OneOp known("fp4.amax", {perGroup}, {{"groups", "32,0,16"}}), amax("fp4.amax", {perGroup});
  const Tensor amaxes = known.run()[0].value;
  EXPECT_EQ(amax.operand(rows).run()[0].value.bytes, amaxes.bytes);
  const auto quantize = [&](int64_t tiles, const char *groups, const char *segments) {
    auto attributes = nvfp4("vllm", {{"operand_segments", segments}});
    if (groups)
      attributes["groups"] = groups;
    OneOp op("fp4.quantize",
             {codes(kRows, kColumns), scales(128 * tiles, 4, Layout::Tiled128x4)}, attributes);
    op.operand(amaxes);
    return op;
  };
  const auto expected = quantize(4, "32,0,16", "1,1,0,0,0").run();
  const auto got = quantize(6, nullptr, "1,1,0,0,1").operand(rows).run();
  EXPECT_EQ(bytes(got[0]), bytes(expected[0]));
  std::vector<uint8_t> tiles = bytes(expected[1]);
  tiles.resize(6 * 512);
  EXPECT_THAT(bytes(got[1]), ElementsAreArray(tiles));

  const auto some = quantize(6, nullptr, "1,1,0,0,1").operand(offsetsOf({4}, {2, 32, 32, 46})).run();
  const std::vector<uint8_t> part = bytes(some[0]);
  EXPECT_TRUE(std::all_of(part.begin(), part.begin() + 2 * kColumns / 2, [](int x) { return !x; }));
  EXPECT_TRUE(std::all_of(part.end() - 2 * kColumns / 2, part.end(), [](int x) { return !x; }));
  EXPECT_TRUE(std::equal(part.begin() + kColumns, part.end() - kColumns,
                         bytes(expected[0]).begin() + kColumns));
  EXPECT_EQ(quantize(6, nullptr, "1,1,0,0,1").operand(offsetsOf({4}, {0, 32, 20, 48})).error(),
            "operand 'offsets' must not decrease, but group 1 begins at row 32 and ends at row 20");
}

//===--- Shards ----------------------------------------------------------===//

/// Quantizing shards with one amax and gathering them is quantizing the whole.
TEST(Family, GatheredShardsAreTheWhole) {
  const OneOp whole("fp4.amax", {kScalar});
  numerics::QuantizeOptions options;
  options.columnwise = numerics::SideOptions{};
  options.layout = numerics::ScaleLayout::Tiled128x4;
  const float amax = numerics::amax(whole.values());
  options.rowwise->amax = options.columnwise->amax = amax;
  const numerics::QuantizedPair expected = quantized(whole, "transformer_engine", options);
  const std::vector<float> values = whole.values();
  OneOp stack("fp4.stack_scales", {scales(-1, kColumns / 16, Layout::Tiled128x4)});
  Tensor gathered(codes(3 * kColumns, 16));
  stack.function.program[0].operands.clear();
  for (uint64_t rank = 0; rank < 3; ++rank) {
    const auto part = std::span(values).subspan(rank * 16 * kColumns, 16 * kColumns);
    const auto shard = *numerics::quantizeMatrix(*numerics::lookupRecipe("transformer_engine"),
                                                 part, 16, kColumns, options);
    Tensor tiled(scales(16, kColumns / 16, Layout::Tiled128x4));
    std::memcpy(tiled.bytes.data(), shard.rowwise->scales.data(), tiled.bytes.size());
    stack.operand(std::move(tiled));
    std::memcpy(gathered.bytes.data() + rank * kColumns * 8, shard.columnwise->data.data(),
                kColumns * 8);
  }
  EXPECT_THAT(bytes(stack.run()[0]), ElementsAreArray(expected.rowwise->scales));
  EXPECT_EQ(stack.run()[0].value.type.str(), "48x5xf8E4M3FN, tiled_128x4");
  OneOp interleave("fp4.interleave_shards", {codes(kColumns, kRows)}, {{"shards", "3"}});
  interleave.arguments[0] = std::move(gathered);
  EXPECT_THAT(bytes(interleave.run()[0]), ElementsAreArray(expected.columnwise->data));
  interleave.function.program[0].attributes["shards"] = "7";
  EXPECT_EQ(interleave.error(), "manifest: operation 'fp4.interleave_shards' has rows that are no "
                                "multiple of its shards");
}

} // namespace
} // namespace fp4::harness
