//===- AttentionBackwardTest.cpp - Gradients of attention, by hand ---------===//
#include "fp4/Numerics/AttentionBackward.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

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
