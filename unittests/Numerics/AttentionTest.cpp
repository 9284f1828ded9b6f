//===- AttentionTest.cpp - Attention in fp64, by hand ----------------------===//
#include "fp4/Numerics/Attention.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/PowerOfTwo.h"
#include "fp4/Numerics/Reciprocal.h"
#include "fp4/Numerics/UE8M0.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numbers>
#include <random>

namespace fp4::numerics {
namespace {

/// One head of one element: scores are products, and values are numbers.
AttentionReference attend(AttentionShape shape, std::vector<float> query, std::vector<float> key,
                          std::vector<float> value) {
  auto found = referenceAttention(shape, FloatType::BF16, query, key, value, /*threads=*/1);
  EXPECT_TRUE(found) << found.error().message;
  return found ? *found : AttentionReference{};
}

TEST(Attention, WeighsValues) {
  AttentionShape shape{.queryTokens = 1, .keyTokens = 2, .queryElements = 1, .valueElements = 1};
  shape.scale = 0.5;
  // exp(0) : exp(0.5 * 2)
  const AttentionReference found = attend(shape, {1}, {0, 2}, {10, 20});
  const double e = std::exp(1);
  EXPECT_DOUBLE_EQ(found.values[0], (10 + 20 * e) / (1 + e));
  EXPECT_GT(found.bounds[0], 17 * 0x1p-8);
  EXPECT_LT(found.bounds[0], 20 * 0x1p-6);
}

TEST(Attention, HidesLaterKeys) {
  AttentionShape shape{.queryTokens = 2, .keyTokens = 3, .queryElements = 1, .valueElements = 1};
  shape.causal = true;
  // The first query sees two keys of equal weight, and the last one all three.
  const AttentionReference found = attend(shape, {0, 0}, {1, 2, 3}, {1, 3, 8});
  EXPECT_DOUBLE_EQ(found.values[0], 2);
  EXPECT_DOUBLE_EQ(found.values[1], 4);
}

TEST(Attention, GivesZeroWithoutKeys) {
  AttentionShape shape{.queryTokens = 2, .keyTokens = 1, .queryElements = 1, .valueElements = 1};
  shape.causal = true;
  const AttentionReference found = attend(shape, {1, 1}, {1}, {7});
  EXPECT_EQ(found.values[0], 0);
  EXPECT_EQ(found.bounds[0], 0);
  EXPECT_DOUBLE_EQ(found.values[1], 7);
}

/// Two query heads share a head of keys, and batches have keys of their own.
TEST(Attention, FindsHeadsAndBatches) {
  AttentionShape shape{.batches = 2,
                       .queryTokens = 1,
                       .keyTokens = 1,
                       .heads = 4,
                       .keyHeads = 2,
                       .queryElements = 1,
                       .valueElements = 1};
  const AttentionReference found =
      attend(shape, std::vector<float>(8, 1), {1, 1, 1, 1}, {1, 2, 3, 4});
  EXPECT_EQ(found.values, (std::vector<double>{1, 1, 2, 2, 3, 3, 4, 4}));
}

/// The keys of a sequence end with its length, and its last query sees all of them.
TEST(Attention, EndsWithLengths) {
  const int32_t lengths[] = {1, 0, 9};
  AttentionShape shape{.batches = 3,
                       .queryTokens = 2,
                       .keyTokens = 2,
                       .queryElements = 1,
                       .valueElements = 1,
                       .causal = true,
                       .lengths = lengths};
  const AttentionReference found =
      attend(shape, std::vector<float>(6, 0), std::vector<float>(6, 1), {1, 2, 3, 4, 5, 7});
  EXPECT_EQ(found.values, (std::vector<double>{0, 1, 0, 0, 5, 6}));
}

/// Keys lie in pages, of which one does not exist.
TEST(Attention, FindsPages) {
  const int32_t lengths[] = {3, 4}, pages[] = {2, 0, 1, -1};
  AttentionShape shape{.batches = 2,
                       .queryTokens = 1,
                       .keyTokens = 4,
                       .queryElements = 1,
                       .valueElements = 1,
                       .lengths = lengths,
                       .pages = {.numbers = pages, .tokens = 2}};
  const AttentionReference found =
      attend(shape, {0, 0}, std::vector<float>(6, 1), {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(found.values, (std::vector<double>{4, 1.75}));
}

/// Kernels take powers below 2^-126 for 0, so that values of such keys may be missing.
TEST(Attention, BoundsTheLeastPowers) {
  AttentionShape shape{.queryTokens = 1, .keyTokens = 2, .queryElements = 1, .valueElements = 1};
  const AttentionReference found = attend(shape, {1}, {0, -90}, {0, 1});
  EXPECT_NEAR(found.values[0], std::exp(-90), 1e-44);
  EXPECT_GT(found.bounds[0], found.values[0]);
  EXPECT_LT(found.bounds[0], 2 * 0x1p-126);
}

/// c * tanh(score / c) takes the place of a score: here of 2 and 0 for c = 1.
TEST(Attention, CapsScores) {
  AttentionShape shape{.queryTokens = 1, .keyTokens = 2, .queryElements = 1, .valueElements = 1};
  shape.softcap = 1;
  const AttentionReference found = attend(shape, {1}, {0, 2}, {10, 20});
  const double e = std::exp(std::tanh(2));
  EXPECT_DOUBLE_EQ(found.values[0], (10 + 20 * e) / (1 + e));
}

/// Each query sees the last two keys up to its own.
TEST(Attention, SeesWindows) {
  AttentionShape shape{.queryTokens = 3, .keyTokens = 4, .queryElements = 1, .valueElements = 1};
  shape.causal = true;
  shape.window = 2;
  const AttentionReference found = attend(shape, {0, 0, 0}, {1, 1, 1, 1}, {1, 3, 5, 8});
  EXPECT_EQ(found.values, (std::vector<double>{2, 4, 6.5}));
}

/// The power of a sink joins the sum of powers, and the logarithm is that of all.
TEST(Attention, AddsSinks) {
  const float sinks[] = {0, 3, -std::numeric_limits<float>::infinity()};
  AttentionShape shape{.queryTokens = 1,
                       .keyTokens = 2,
                       .heads = 3,
                       .queryElements = 1,
                       .valueElements = 1,
                       .sinks = sinks};
  const AttentionReference found = attend(shape, {1, 1, 1}, {0, 1}, {4, 8});
  const double e = std::exp(1), sums[] = {2 + e, 1 + e + std::exp(3), 1 + e};
  for (size_t head = 0; head < 3; ++head) {
    EXPECT_NEAR(found.values[head], (4 + 8 * e) / sums[head], 1e-14);
    EXPECT_NEAR(found.logSums[head], std::log(sums[head]), 1e-14);
    EXPECT_GT(found.logBounds[head], 0);
    EXPECT_LT(found.logBounds[head], 1e-5);
  }
}

/// Without keys the logarithm is the sink, or minus infinity.
TEST(Attention, GivesSinksWithoutKeys) {
  const float sinks[] = {2, -std::numeric_limits<float>::infinity()};
  const int32_t lengths[] = {0};
  AttentionShape shape{.queryTokens = 1,
                       .keyTokens = 1,
                       .heads = 2,
                       .queryElements = 1,
                       .valueElements = 1,
                       .sinks = sinks,
                       .lengths = lengths};
  const AttentionReference found = attend(shape, {1, 1}, {1}, {7});
  EXPECT_EQ(found.values, (std::vector<double>{0, 0}));
  EXPECT_EQ(found.logSums, (std::vector<double>{2, -std::numeric_limits<double>::infinity()}));
  EXPECT_EQ(found.logBounds[1], 0);
}

/// Packed sequences have their own keys, the last one of which each last query sees. The first
/// sequence has no query, the third no key, and the last query no sequence.
TEST(Attention, FindsPackedSequences) {
  const int32_t queries[] = {0, 0, 2, 3}, keys[] = {0, 1, 4, 4};
  AttentionShape shape{.batches = 3,
                       .queryTokens = 4,
                       .keyTokens = 5,
                       .queryElements = 1,
                       .valueElements = 1,
                       .causal = true,
                       .queryOffsets = queries,
                       .keyOffsets = keys};
  const AttentionReference found =
      attend(shape, std::vector<float>(4, 0), std::vector<float>(5, 1), {90, 2, 4, 12, 99});
  EXPECT_EQ(found.values, (std::vector<double>{3, 6, 0, 0}));
}

/// Packed queries have pages, of heads and their tokens.
TEST(Attention, FindsHeadsOfPages) {
  const int32_t queries[] = {0, 1, 2}, lengths[] = {1, 2}, pages[] = {1, 0};
  AttentionShape shape{.batches = 2,
                       .queryTokens = 2,
                       .keyTokens = 2,
                       .heads = 2,
                       .keyHeads = 2,
                       .queryElements = 1,
                       .valueElements = 1,
                       .lengths = lengths,
                       .pages = {.numbers = pages, .tokens = 2, .headsFirst = true},
                       .queryOffsets = queries};
  const AttentionReference found =
      attend(shape, std::vector<float>(4, 0), std::vector<float>(8, 1), {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(found.values, (std::vector<double>{5, 7, 1.5, 3.5}));
}

/// Offsets that decrease, or begin behind 0, have no sequences.
TEST(Attention, RefusesOtherOffsets) {
  const int32_t good[] = {0, 1, 2}, bad[] = {0, 2, 1}, late[] = {1, 1, 2}, few[] = {0, 2};
  AttentionShape shape{
      .batches = 2, .queryTokens = 2, .keyTokens = 2, .queryElements = 1, .valueElements = 1};
  const std::vector<float> two(2, 1);
  for (auto [queries, keys] :
       {std::pair<std::span<const int32_t>, std::span<const int32_t>>(bad, good),
        {good, bad},
        {late, good},
        {good, few},
        {few, few}}) {
    shape.queryOffsets = queries;
    shape.keyOffsets = keys;
    EXPECT_FALSE(referenceAttention(shape, FloatType::BF16, two, two, two, 1));
  }
  shape.queryOffsets = shape.keyOffsets = good;
  EXPECT_TRUE(referenceAttention(shape, FloatType::BF16, two, two, two, 1));
}

/// Scores lose a slope for each token of distance, in front of the query or behind it.
TEST(Attention, SubtractsSlopes) {
  const float slopes[] = {0.5};
  AttentionShape shape{
      .queryTokens = 2, .keyTokens = 3, .queryElements = 1, .valueElements = 1, .slopes = slopes};
  const AttentionReference found = attend(shape, {0, 0}, {1, 1, 1}, {1, 2, 4});
  const double half = std::exp(-0.5), one = std::exp(-1.0);
  EXPECT_DOUBLE_EQ(found.values[0], (half + 2 + 4 * half) / (1 + 2 * half));
  EXPECT_DOUBLE_EQ(found.values[1], (one + 2 * half + 4) / (one + half + 1));
}

TEST(Attention, RefusesOtherSinks) {
  const float sinks[] = {1, 2};
  AttentionShape shape{
      .queryTokens = 1, .keyTokens = 1, .queryElements = 1, .valueElements = 1, .sinks = sinks};
  const auto found = referenceAttention(shape, FloatType::BF16, std::vector<float>{1},
                                        std::vector<float>{1}, std::vector<float>{1}, 1);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "attention must have a sink for each of 1 heads, but got 2");
}

TEST(Attention, RefusesOtherSizes) {
  AttentionShape shape{.queryTokens = 1, .keyTokens = 2, .queryElements = 1, .valueElements = 1};
  const auto found = referenceAttention(shape, FloatType::BF16, std::vector<float>{1},
                                        std::vector<float>{1, 2}, std::vector<float>{1}, 1);
  ASSERT_FALSE(found);
  EXPECT_EQ(
      found.error().message,
      "attention must have 1 elements of queries, 2 of keys and 2 of values, but got 1, 2 and 1");
}

/// Numbers of bf16.
std::vector<float> numbersOf(size_t count, unsigned seed, float scale) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> numbers(count);
  for (float &number : numbers)
    number = decodeBF16(encodeBF16(normal(generator)));
  return numbers;
}

/// Two heads share keys of which a causal mask and a window hide some.
struct Drawn {
  AttentionShape shape{.queryTokens = 21,
                       .keyTokens = 90,
                       .heads = 2,
                       .queryElements = 32,
                       .valueElements = 16,
                       .scale = 1,
                       .causal = true,
                       .window = 70,
                       .growth = 8};
  std::vector<float> query = numbersOf(21 * 2 * 32, 1, 1), key = numbersOf(90 * 32, 2, 1),
                     value = numbersOf(90 * 16, 3, 1);

  AttentionModel model(const AttentionOrder &order) const {
    auto found = modelAttention(shape, order, FloatType::BF16, query, key, value, /*threads=*/1);
    EXPECT_TRUE(found) << found.error().message;
    return found ? *found : AttentionModel{};
  }
};

TEST(AttentionModel, LiesWithinTheBound) {
  const Drawn drawn;
  auto exact = referenceAttention(drawn.shape, FloatType::BF16, drawn.query, drawn.key, drawn.value,
                                  /*threads=*/1);
  ASSERT_TRUE(exact);
  for (double growth : {0., 1., 8.})
    for (uint64_t keys : {16, 64, 128}) {
      const AttentionModel model = drawn.model({keys, growth});
      for (size_t i = 0; i < model.values.size(); ++i)
        ASSERT_LE(std::fabs(model.values[i] - exact->values[i]), exact->bounds[i]) << i;
      for (size_t i = 0; i < model.logSums.size(); ++i)
        ASSERT_LE(std::fabs(model.logSums[i] - exact->logSums[i]), exact->logBounds[i]) << i;
    }
}

/// Powers are rounded to three bits, and with wgmma sums to thirteen. Factors of heads are those of
/// products and values.
TEST(AttentionModel, LiesWithinTheBoundOfBytes) {
  Drawn drawn;
  for (std::vector<float> *numbers : {&drawn.query, &drawn.key, &drawn.value})
    for (float &number : *numbers)
      number = decodeE4M3(encodeE4M3(number));
  const std::vector<float> ofKeys = {0.75f}, ofValues = {3.f};
  for (auto [hasFactors, isOfWgmma, growth] : {std::tuple(false, true, 0.),
                                               {true, true, 0.},
                                               {true, false, 0.},
                                               {false, false, 4.},
                                               {true, false, 8.}}) {
    drawn.shape.growth = growth;
    drawn.shape.factors = {};
    if (hasFactors) {
      drawn.shape.factors = {ofKeys, ofValues};
    }
    auto exact = referenceAttention(drawn.shape, FloatType::E4M3, drawn.query, drawn.key,
                                    drawn.value, /*threads=*/1);
    ASSERT_TRUE(exact);
    for (uint64_t keys : {32, 64, 128}) {
      auto model = modelAttention(drawn.shape, {keys, growth, isOfWgmma}, FloatType::E4M3,
                                  drawn.query, drawn.key, drawn.value, /*threads=*/1);
      ASSERT_TRUE(model);
      double largest = 0;
      for (size_t i = 0; i < model->values.size(); ++i) {
        const double distance = std::fabs(model->values[i] - exact->values[i]);
        ASSERT_LE(distance, exact->bounds[i]) << i;
        largest = std::max(largest, distance / exact->bounds[i]);
      }
      EXPECT_GT(largest, 0.05); // the bound says something
      for (size_t i = 0; i < model->logSums.size(); ++i)
        ASSERT_LE(std::fabs(model->logSums[i] - exact->logSums[i]), exact->logBounds[i]) << i;
    }
  }
}

/// Equal scores have powers of 2^8, of which e4m3 has all bits; a key of 2^-12 times the weight of
/// another one counts as a part of 2^-4 of a power of two, and one of 2^-20 not at all.
TEST(AttentionModel, KeepsSmallPowersOfBytes) {
  AttentionShape shape{.queryTokens = 1, .keyTokens = 2, .queryElements = 1, .valueElements = 1};
  shape.scale = std::numbers::ln2;
  for (auto [score, expected, isOfWgmma] : {std::tuple(-12.f, 1.f, true),
                                            {-20.f, 0.f, true},
                                            {-12.f, 1.f, false},
                                            {-20.f, 0.f, false}}) {
    auto model = modelAttention(shape, {32, 0, isOfWgmma}, FloatType::E4M3, std::vector<float>{1},
                                std::vector<float>{0, score}, std::vector<float>{0, 1},
                                /*threads=*/1);
    ASSERT_TRUE(model);
    const double power = std::exp2(score);
    EXPECT_NEAR(model->values[0], expected * power / (1 + power), 1e-3 * power);
    EXPECT_NEAR(model->logSums[0], std::log1p(power), 1e-6);
  }
}

/// Operands with scales of blocks, drawn: codes of e2m1 with 16 elements in a block, or of e4m3
/// with 32, and values of e4m3 or of the same format.
struct DrawnBlocks {
  DrawnBlocks(uint64_t block, bool haveValues) : block(block) {
    shape.queryElements = 64;
    std::mt19937 generator(7);
    auto codes = [&](std::vector<float> &numbers, size_t count, bool arePacked) {
      for (float number : numbersOf(count, unsigned(generator()), 2))
        numbers.push_back(arePacked ? decodeE2M1(encodeE2M1(number))
                                    : decodeE4M3(encodeE4M3(number)));
    };
    auto scales = [&](std::vector<uint8_t> &bytes, size_t count, bool arePacked) {
      for (size_t i = 0; i < count; ++i)
        bytes.push_back(uint8_t((arePacked ? 0x28 : 125) + generator() % 4));
    };
    codes(query, 21 * 2 * 64, block == 16);
    codes(key, 90 * 64, block == 16);
    codes(value, 90 * 16, haveValues && block == 16);
    scales(ofQueries, 21 * 2 * 64 / block, block == 16);
    scales(ofKeys, 90 * 64 / block, block == 16);
    if (haveValues)
      scales(ofValues, 16 * rowOfValues(), block == 16);
    shape.factors.blocks = {ofQueries, ofKeys, ofValues, block};
  }

  uint64_t rowOfValues() const { return (90 + block - 1) / block; }
  float scaleOf(uint8_t byte) const { return block == 16 ? decodeUE4M3(byte) : decodeUE8M0(byte); }
  /// Numbers with their scales: of queries, whose scales have heads in front of tokens, of keys,
  /// and of values.
  std::vector<float> queries() const {
    std::vector<float> numbers(query);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const size_t token = i / 64 / 2, head = i / 64 % 2;
      numbers[i] *= scaleOf(ofQueries[(head * 21 + token) * (64 / block) + i % 64 / block]);
    }
    return numbers;
  }
  std::vector<float> keys() const {
    std::vector<float> numbers(key);
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] *= scaleOf(ofKeys[i / block]);
    return numbers;
  }
  std::vector<float> values() const {
    std::vector<float> numbers(value);
    for (size_t i = 0; !ofValues.empty() && i < numbers.size(); ++i)
      numbers[i] *= scaleOf(ofValues[i % 16 * rowOfValues() + i / 16 / block]);
    return numbers;
  }

  uint64_t block;
  AttentionShape shape = Drawn().shape;
  std::vector<float> query, key, value;
  std::vector<uint8_t> ofQueries, ofKeys, ofValues;
};

/// Products have the scales of their blocks; powers are e4m3, or of the format of all beside values
/// with scales.
TEST(AttentionModel, LiesWithinTheBoundOfBlocks) {
  for (auto [block, arePacked] : {std::pair(32, false), {32, true}, {16, false}, {16, true}})
    for (double growth : {0., 4.}) {
      DrawnBlocks drawn(uint64_t(block), arePacked);
      drawn.shape.growth = growth;
      auto exact = referenceAttention(drawn.shape, FloatType::E4M3, drawn.queries(), drawn.keys(),
                                      drawn.values(), /*threads=*/1);
      auto model = modelAttention(drawn.shape, {64, growth}, FloatType::E4M3, drawn.query,
                                  drawn.key, drawn.value, /*threads=*/1);
      ASSERT_TRUE(exact);
      ASSERT_TRUE(model);
      double largest = 0;
      for (size_t i = 0; i < model->values.size(); ++i) {
        const double distance = std::fabs(model->values[i] - exact->values[i]);
        ASSERT_LE(distance, exact->bounds[i]) << block << " " << arePacked << " " << i;
        largest = std::max(largest, distance / exact->bounds[i]);
      }
      EXPECT_GT(largest, 0.01) << block << " " << arePacked; // the bound says something
      for (size_t i = 0; i < model->logSums.size(); ++i)
        ASSERT_LE(std::fabs(model->logSums[i] - exact->logSums[i]), exact->logBounds[i]) << i;
    }
}

/// Sixteen keys of one score have the powers 2688 = 6 * 448, which codes and a scale are exactly;
/// one of e^-1 beside a larger one is 2 of the 6 steps of e2m1 that it would be 2.2 of.
TEST(AttentionModel, QuantizesPowersInBlocks) {
  AttentionShape shape{.queryTokens = 1, .keyTokens = 16, .queryElements = 64, .valueElements = 1};
  shape.scale = 1;
  std::vector<float> query(64, 0), key(16 * 64, 0), value(16, 1);
  query[0] = 1;
  const std::vector<uint8_t> ones(16 * 4, 0x38); // 1 of e4m3
  shape.factors.blocks = {ones, ones, std::span(ones).first(1), 16};
  auto sumOf = [&] {
    auto model = modelAttention(shape, {64, 0}, FloatType::E4M3, query, key, value, /*threads=*/1);
    return model ? model->values[0] : -1;
  };
  EXPECT_NEAR(sumOf(), 1, 1e-5);
  for (size_t j = 1; j < 16; ++j)
    key[j * 64] = -1;
  EXPECT_NEAR(sumOf(), (6 + 15 * 2) / (6 * (1 + 15 * std::exp(-1))), 1e-5);
}

/// Powers of MXFP8 have a scale for 32 keys, by which the largest one is from 224 to 448: beside
/// one key of a far larger score in another block, small powers keep four bits.
TEST(AttentionModel, QuantizesPowersOfBytesInBlocks) {
  constexpr size_t keys = 64;
  AttentionShape shape{
      .queryTokens = 1, .keyTokens = keys, .queryElements = 64, .valueElements = 1};
  shape.scale = 1;
  std::vector<float> query(64, 0), key(keys * 64, 0), value(keys, 1);
  query[0] = 1;
  const std::vector<uint8_t> ones(keys * 2, 127); // 2^0
  shape.factors.blocks = {ones, ones, std::span(ones).first(2), 32};
  value[keys - 1] = 0; // of the largest score
  key[(keys - 1) * 64] = 18;
  key[0] = 0.5;
  auto model = modelAttention(shape, {64, 0}, FloatType::E4M3, query, key, value, /*threads=*/1);
  ASSERT_TRUE(model);
  const double large = std::exp(18), half = std::exp(0.5);
  const double expected = (half + 31) / (large + half + 62); // 31 are in the block of the largest
  EXPECT_NEAR(model->values[0] / expected, 1, 0x1p-4);
  shape.factors.blocks.values = {}; // the same powers, rounded to e4m3 as they are
  model = modelAttention(shape, {64, 0}, FloatType::E4M3, query, key, value, /*threads=*/1);
  ASSERT_TRUE(model);
  EXPECT_EQ(model->values[0], 0);
}

/// Factors come for both keys and values, and for each head of each sequence.
TEST(AttentionModel, RefusesFactorsOfOneOperand) {
  Drawn drawn;
  const std::vector<float> one = {1};
  drawn.shape.factors.keys = one;
  EXPECT_FALSE(referenceAttention(drawn.shape, FloatType::E4M3, drawn.query, drawn.key, drawn.value,
                                  /*threads=*/1));
  drawn.shape.factors.values = one;
  EXPECT_TRUE(referenceAttention(drawn.shape, FloatType::E4M3, drawn.query, drawn.key, drawn.value,
                                 /*threads=*/1));
}

/// The growth of a maximum, and the keys of a block, change bits.
TEST(AttentionModel, HasTheBitsOfItsOrder) {
  const Drawn drawn;
  const AttentionModel always = drawn.model({16, 0});
  EXPECT_EQ(drawn.model({16, 0}).values, always.values);
  EXPECT_NE(drawn.model({16, 8}).values, always.values);
  EXPECT_NE(drawn.model({32, 0}).values, always.values);
}

/// A maximum of 2^4 more than the first one, in the exponent, is no origin with a growth of 8.
TEST(AttentionModel, KeepsAnOriginThatGrowsLittle) {
  AttentionShape shape{.queryTokens = 1, .keyTokens = 32, .queryElements = 1, .valueElements = 1};
  std::vector<float> key(32, 0), value(32, 1);
  key[0] = 4; // the last block comes first
  value[0] = 3;
  for (double growth : {0., 8.}) {
    auto model = modelAttention(shape, {16, growth}, FloatType::BF16, std::vector<float>{1}, key,
                                value, /*threads=*/1);
    ASSERT_TRUE(model);
    // The power of the first key is one, or e^4, and is rounded to bf16 beside the values.
    const double power = growth > 0 ? std::exp(4) : 1, others = growth > 0 ? 1 : std::exp(-4);
    const double rounded = decodeBF16(encodeBF16(float(power))),
                 smaller = decodeBF16(encodeBF16(float(others)));
    // With a growth of 0, 16 powers of the last block were 1 when they were multiplied.
    const double sum = 3 * rounded + 15 * smaller + 16 * others;
    EXPECT_NEAR(model->values[0], sum / (power + 31 * others), 1e-5) << growth;
  }
}

/// With one key, the logarithm of its sum is its score: the tangent of a softcap has the bits that
/// an H200 gives its reciprocal, some of which differ from the number that is nearest.
TEST(AttentionModel, HasTheReciprocalsOfAnH200) {
  constexpr float cap = 20;
  const double log2e = std::numbers::log2e;
  int differing = 0;
  for (float x = 0.5; x < 8; x += 0.5) {
    AttentionShape shape{
        .queryTokens = 1, .keyTokens = 1, .queryElements = 1, .valueElements = 1, .softcap = cap};
    const std::vector<float> one(1, 1), key(1, x);
    auto model = modelAttention(shape, {16, 8}, FloatType::BF16, one, key, one, /*threads=*/1);
    ASSERT_TRUE(model);
    const float sum = approximatePowerOfTwo(x * float(2 * log2e / cap)) + 1;
    differing += approximateReciprocal(sum) != 1 / sum;
    const float tangent = std::fma(approximateReciprocal(sum), -2.f, 1.f);
    const auto factor = float(cap * log2e);
    const float exponent = tangent * factor;
    const float power = approximatePowerOfTwo(std::fma(tangent, factor, -exponent));
    const auto logarithm = float(std::log2(double(power)));
    EXPECT_EQ(model->logSums[0], (exponent + logarithm) * std::numbers::ln2_v<float>) << x;
  }
  EXPECT_GT(differing, 0);
}

TEST(AttentionModel, RefusesBlocksOfPartsOfInstructions) {
  const Drawn drawn;
  EXPECT_FALSE(modelAttention(drawn.shape, {24, 0}, FloatType::BF16, drawn.query, drawn.key,
                              drawn.value, /*threads=*/1));
}

} // namespace
} // namespace fp4::numerics
