//===- AttentionBackwardTest.cpp - Gradients of attention, by hand ---------===//
#include "fp4/Numerics/AttentionBackward.h"

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <utility>

namespace fp4::numerics {
namespace {

/// Operands of a backward pass, and those that it gets of them.
struct Case {
  AttentionShape shape;
  std::vector<float> query, key, value, output, gradient, logSums;

  BackwardOperands operands() const { return {query, key, value, output, gradient, logSums}; }
  AttentionGradients<BoundedNumbers> exact() const {
    auto found = referenceAttentionBackward(shape, FloatType::BF16, operands(), /*threads=*/1);
    EXPECT_TRUE(found) << found.error().message;
    return found ? *found : AttentionGradients<BoundedNumbers>{};
  }
  AttentionGradients<std::vector<float>> bits() const {
    auto found = modelAttentionBackward(shape, FloatType::BF16, operands(), /*threads=*/1);
    EXPECT_TRUE(found) << found.error().message;
    return found ? *found : AttentionGradients<std::vector<float>>{};
  }
};

/// Random numbers of bf16, and the results of the forward pass of them, which are not rounded.
Case randomCase(const AttentionShape &shape, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  auto numbers = [&](uint64_t count) {
    std::vector<float> result(count);
    for (float &x : result)
      x = decodeBF16(encodeBF16(normal(generator)));
    return result;
  };
  const uint64_t keys = shape.batches * shape.keyTokens * shape.keyHeads;
  Case made{shape,
            numbers(shape.rows() * shape.queryElements),
            numbers(keys * shape.queryElements),
            numbers(keys * shape.valueElements),
            {},
            numbers(shape.rows() * shape.valueElements),
            {}};
  auto forward = referenceAttention(shape, FloatType::BF16, made.query, made.key, made.value, 1);
  EXPECT_TRUE(forward);
  made.output.assign(forward->values.begin(), forward->values.end());
  made.logSums.assign(forward->logSums.begin(), forward->logSums.end());
  return made;
}

Case caseOfOneKey() {
  return {{.queryTokens = 1, .keyTokens = 1, .queryElements = 1, .valueElements = 1},
          {2},
          {3},
          {5},
          {5},
          {7},
          {6}};
}

/// The sum of gradient times output of the forward pass, whose derivative the gradients are.
double loss(const Case &of) {
  auto forward = referenceAttention(of.shape, FloatType::BF16, of.query, of.key, of.value, 1);
  EXPECT_TRUE(forward);
  double sum = 0;
  for (size_t i = 0; i < of.gradient.size(); ++i)
    sum += of.gradient[i] * forward->values[i];
  return sum;
}

TEST(AttentionBackward, HasTheGradientOfOneKey) {
  // One key has the weight 1: the value gets the gradient of the output, the others nothing.
  const Case one = caseOfOneKey();
  const auto found = one.exact();
  EXPECT_DOUBLE_EQ(found.value.values[0], 7);
  EXPECT_DOUBLE_EQ(found.query.values[0], 0);
  EXPECT_DOUBLE_EQ(found.key.values[0], 0);
}

TEST(AttentionBackward, IsTheDerivativeOfAttention) {
  AttentionShape shape{.batches = 2,
                       .queryTokens = 3,
                       .keyTokens = 5,
                       .heads = 4,
                       .keyHeads = 2,
                       .queryElements = 2,
                       .valueElements = 3};
  shape.scale = 0.7;
  shape.causal = true;
  shape.window = 3;
  Case of = randomCase(shape, 1);
  const auto found = of.exact();
  auto compare = [&](std::vector<float> &numbers, const BoundedNumbers &gradient) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      const float before = numbers[i], step = 0x1p-8f;
      numbers[i] = before + step;
      const double above = loss(of);
      numbers[i] = before - step;
      const double below = loss(of);
      numbers[i] = before;
      EXPECT_NEAR(gradient.values[i], (above - below) / (2 * step), 1e-3);
    }
  };
  compare(of.query, found.query);
  compare(of.key, found.key);
  compare(of.value, found.value);
}

TEST(AttentionBackward, IsZeroWithoutKeys) {
  AttentionShape shape{.queryTokens = 2, .keyTokens = 1, .queryElements = 1, .valueElements = 1};
  shape.causal = true;
  Case of{shape, {2, 2}, {3}, {5}, {0, 5}, {7, 8}, {-std::numeric_limits<float>::infinity(), 6}};
  EXPECT_EQ(of.exact().query.values[0], 0);
  EXPECT_EQ(of.exact().query.bounds[0], 0);
  EXPECT_EQ(of.exact().value.values[0], 8);
  EXPECT_EQ(of.bits().query[0], 0);
  EXPECT_EQ(of.bits().value[0], 8);
}

TEST(AttentionBackwardModel, LiesWithinTheBound) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    AttentionShape shape{.batches = 1 + seed % 2,
                         .queryTokens = 21,
                         .keyTokens = 37,
                         .heads = 4,
                         .keyHeads = 2,
                         .queryElements = 64,
                         .valueElements = 32};
    shape.scale = 0.125 * (1 + seed);
    shape.causal = seed > 1;
    shape.window = seed > 2 ? 9 : 0;
    const Case of = randomCase(shape, seed);
    const auto exact = of.exact();
    const auto bits = of.bits();
    for (auto [numbers, bounded] :
         {std::pair(&bits.query, &exact.query), std::pair(&bits.key, &exact.key),
          std::pair(&bits.value, &exact.value)})
      for (size_t i = 0; i < numbers->size(); ++i)
        ASSERT_LE(std::fabs((*numbers)[i] - bounded->values[i]), bounded->bounds[i]);
  }
}

/// A packed case: no queries, some, some without keys, and tokens behind the last sequence.
Case packedCase(std::span<const int32_t> ofQueries, std::span<const int32_t> ofKeys) {
  AttentionShape shape{.batches = ofQueries.size() - 1,
                       .queryTokens = 9,
                       .keyTokens = 11,
                       .heads = 4,
                       .keyHeads = 2,
                       .queryElements = 16,
                       .valueElements = 8};
  shape.causal = true;
  const uint64_t batches = std::exchange(shape.batches, 1); // operands are those of one sequence
  Case of = randomCase(shape, 3);
  of.shape.batches = batches;
  of.shape.queryOffsets = ofQueries;
  of.shape.keyOffsets = ofKeys;
  return of;
}

TEST(AttentionBackward, HasPackedSequencesOneByOne) {
  constexpr std::array<int32_t, 5> ofQueries = {0, 0, 4, 6, 8}, ofKeys = {0, 3, 10, 10, 11};
  const Case of = packedCase(ofQueries, ofKeys);
  const auto exact = of.exact();
  const auto bits = of.bits();
  constexpr uint64_t ofQuery = 64, ofKey = 32, ofValue = 16, ofOutput = 32; // of a token
  Case second{of.shape, {}, {}, {}, {}, {}, {}};
  second.shape.batches = 1;
  second.shape.queryTokens = 4;
  second.shape.keyTokens = 7;
  second.shape.queryOffsets = second.shape.keyOffsets = {};
  second.query.assign(of.query.begin(), of.query.begin() + 4 * ofQuery);
  second.key.assign(of.key.begin() + 3 * ofKey, of.key.begin() + 10 * ofKey);
  second.value.assign(of.value.begin() + 3 * ofValue, of.value.begin() + 10 * ofValue);
  second.output.assign(of.output.begin(), of.output.begin() + 4 * ofOutput);
  second.gradient.assign(of.gradient.begin(), of.gradient.begin() + 4 * ofOutput);
  second.logSums.assign(of.logSums.begin(), of.logSums.begin() + 16);
  const auto alone = second.bits();
  for (size_t i = 0; i < alone.key.size(); ++i)
    EXPECT_EQ(bits.key[3 * ofKey + i], alone.key[i]);
  for (size_t i = 0; i < alone.query.size(); ++i)
    EXPECT_EQ(bits.query[i], alone.query[i]);
  // Keys of no queries, queries of no keys, and queries behind the last sequence.
  for (size_t i = 0; i < 3 * ofKey; ++i)
    EXPECT_EQ(exact.key.values[i], 0);
  for (size_t i : {size_t(4 * ofQuery), size_t(8 * ofQuery)})
    EXPECT_EQ(std::abs(exact.query.values[i]) + std::abs(bits.query[i]) + exact.query.bounds[i], 0);
  EXPECT_NE(exact.query.values[7 * ofQuery], 0);
}

TEST(AttentionBackward, RefusesQueriesPackedAlone) {
  constexpr std::array<int32_t, 2> offsets = {0, 9}, ofKeys = {0, 11};
  constexpr std::array<int32_t, 1> page = {0};
  Case of = packedCase(offsets, ofKeys);
  EXPECT_TRUE(referenceAttentionBackward(of.shape, FloatType::BF16, of.operands(), 1));
  of.shape.keyOffsets = {};
  of.shape.pages = {.numbers = page, .tokens = 11};
  auto found = referenceAttentionBackward(of.shape, FloatType::BF16, of.operands(), 1);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "the backward pass of attention must have offsets of keys beside "
                                   "those of queries, but got none");
}

TEST(AttentionBackward, RefusesOtherSizes) {
  Case one = caseOfOneKey();
  EXPECT_TRUE(referenceAttentionBackward(one.shape, FloatType::BF16, one.operands(), 1));
  one.logSums.push_back(1);
  auto found = referenceAttentionBackward(one.shape, FloatType::BF16, one.operands(), 1);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message,
            "the backward pass of attention must have 1 elements of the output and its gradient, "
            "and 1 logarithms, but got 1, 1 and 2");
  EXPECT_FALSE(modelAttentionBackward(one.shape, FloatType::BF16, one.operands(), 1));
}

} // namespace
} // namespace fp4::numerics
