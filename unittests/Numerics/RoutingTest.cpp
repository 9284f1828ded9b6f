// The k best of a row of scores, and tokens in the order of their experts, by hand.
#include "fp4/Numerics/ExpertOrder.h"
#include "fp4/Numerics/TopK.h"
#include <gtest/gtest.h>
#include <limits>

using namespace fp4::numerics;

namespace {

using Columns = std::vector<int32_t>;
using Numbers = std::vector<int64_t>;

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

Columns best(const std::vector<float> &scores, const TopK &what) { return topK(scores, what); }

TEST(TopK, LargestFirstAndOfEqualOnesTheFirst) {
  EXPECT_EQ(best({1, 3, 2, 3, -5}, {.k = 3}), (Columns{1, 3, 2}));
  EXPECT_EQ(best({2, 2, 2, 2}, {.k = 2}), (Columns{0, 1}));
  EXPECT_EQ(best({7}, {.k = 1}), (Columns{0}));
}

TEST(TopK, SpecialNumbers) {
  EXPECT_EQ(best({kInfinite, kNotANumber, -kNotANumber, 1}, {.k = 4}), (Columns{1, 2, 0, 3}));
  EXPECT_EQ(best({-0.f, 0.f, -1, -0.f}, {.k = 3}), (Columns{0, 1, 3}));
  EXPECT_EQ(best({-kInfinite, -1e38f, -kInfinite}, {.k = 3}), (Columns{1, 0, 2}));
}

TEST(TopK, GroupsByTheirTwoBest) {
  // Sums of 10, 9 and 11: the largest score alone is in the group that is dropped.
  const std::vector<float> scores = {5, 5, 0, 0, 9, 0, 0, 0, 6, 5, 1, 1};
  EXPECT_EQ(best(scores, {.k = 3, .numGroups = 3, .topGroups = 2}), (Columns{8, 0, 1}));
  EXPECT_EQ(best(scores, {.k = 3, .numGroups = 3, .topGroups = 3}), (Columns{4, 8, 0}));
  EXPECT_EQ(best({1, 2, 2, 1, 0, 0}, {.k = 2, .numGroups = 3, .topGroups = 1}), (Columns{1, 0}));
}

TEST(ExpertOrder, StableByToken) {
  const std::vector<int32_t> ids = {2, 0, 0, 2, 1, 2};
  const ExpertOrder order = expertOrder(ids, 2, {.count = 3});
  EXPECT_EQ(order.offsets, (Numbers{0, 2, 3, 6}));
  EXPECT_EQ(order.rows, (Numbers{3, 0, 1, 4, 2, 5}));
  EXPECT_EQ(order.tokens, (Numbers{0, 1, 2, 0, 1, 2}));
}

TEST(ExpertOrder, PaddingAndOthersExperts) {
  const std::vector<int32_t> ids = {4, -1, 9, 5, 4, 3};
  const ExpertOrder order = expertOrder(ids, 1, {.count = 3, .first = 4, .multiple = 4});
  EXPECT_EQ(order.offsets, (Numbers{0, 4, 8, 8}));
  EXPECT_EQ(order.rows, (Numbers{0, -1, -1, 4, 1, -1}));
  EXPECT_EQ(order.tokens, (Numbers{0, 4, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

} // namespace
