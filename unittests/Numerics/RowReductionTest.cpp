// Combinations of the elements of a row: the order, sizes around those of chunks and segments, and
// special numbers.
#include "fp4/Numerics/RowReduction.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

using namespace fp4;
using namespace fp4::numerics;

namespace {

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr float kLarge = 0x1p24f; ///< absorbs a 1 that is added to it, and takes a 2

constexpr ElementOp kAll[] = {ElementOp::Add,           ElementOp::Multiply,
                              ElementOp::Maximum,       ElementOp::Minimum,
                              ElementOp::MaximumNumber, ElementOp::MinimumNumber};
constexpr size_t kSizes[] = {0, 1, 15, 16, 17, 511, 512, 513, 16384, 16385, 40007, 151936};

/// Returns true when two ones meet before they meet the large number at the front of a row.
bool meet(size_t size, size_t first, size_t second) {
  std::vector<float> row(size, 0.f);
  row[0] = kLarge;
  row[first] = row[second] = 1;
  const float sum = reduceRow(row, ElementOp::Add, 0);
  EXPECT_TRUE(sum == kLarge || sum == kLarge + 2) << sum;
  return sum == kLarge + 2;
}

/// The tree of every `stride`th element from `at` on, written another way: even places of what is
/// left with odd ones.
float treeOf(const std::vector<float> &numbers, ElementOp op, size_t at = 0, size_t stride = 1) {
  if (stride == numbers.size())
    return numbers[at];
  return stepOf(op, treeOf(numbers, op, at, 2 * stride),
                treeOf(numbers, op, at + stride, 2 * stride));
}

/// The combination of a row that is filled up to whole segments.
float reduceSlowly(std::vector<float> row, ElementOp op, float initial) {
  row.resize((row.size() + 511) / 512 * 512, identityOf(op));
  std::vector<float> segments;
  for (auto segment = row.begin(); segment != row.end(); segment += 512) {
    std::vector<float> chunks;
    for (auto chunk = segment; chunk != segment + 512; chunk += 16)
      chunks.push_back(treeOf({chunk, chunk + 16}, op));
    segments.push_back(treeOf(chunks, op));
  }
  if (segments.size() <= 32) {
    for (float segment : segments)
      initial = stepOf(op, initial, segment);
    return initial;
  }
  for (size_t i = 32; i < segments.size(); ++i)
    segments[i % 32] = stepOf(op, segments[i % 32], segments[i]);
  segments.resize(32);
  return stepOf(op, initial, treeOf(segments, op));
}

std::vector<float> randomRow(size_t size, float least, float most) {
  std::mt19937 engine(static_cast<uint32_t>(size));
  std::uniform_real_distribution<float> distribution(least, most);
  std::vector<float> row(size);
  std::ranges::generate(row, [&] { return distribution(engine); });
  return row;
}

} // namespace

TEST(RowReduction, CombinationsAreSix) {
  for (ElementOp op : kAll)
    EXPECT_TRUE(isCombination(op)) << stringify(op);
  for (ElementOp op : {ElementOp::Subtract, ElementOp::Divide, ElementOp::FusedMultiplyAdd,
                       ElementOp::MaximumSigned, ElementOp::Constant})
    EXPECT_FALSE(isCombination(op)) << stringify(op);
}

TEST(RowReduction, NamesOfCombinations) {
  for (ElementOp op : kAll)
    EXPECT_EQ(parseElementOp(stringify(op)), op);
  EXPECT_EQ(parseElementOp("maximum_number"), ElementOp::MaximumNumber);
  EXPECT_FALSE(parseElementOp("sum"));
  EXPECT_FALSE(parseElementOp(""));
}

TEST(RowReduction, IdentitiesLeaveNumbersAsTheyAre) {
  for (ElementOp op : kAll)
    for (float x : {0.f, -0.f, 1.f, -3.5f, 0x1p-149f, kInfinite, -kInfinite, 0x1.fffffep+127f}) {
      EXPECT_EQ(bitsOf(stepOf(op, x, identityOf(op))), bitsOf(x)) << stringify(op) << " " << x;
      EXPECT_EQ(bitsOf(stepOf(op, identityOf(op), x)), bitsOf(x)) << stringify(op) << " " << x;
    }
  for (ElementOp op : kAll)
    EXPECT_TRUE(std::isnan(stepOf(op, kNotANumber, identityOf(op)))) << stringify(op);
  EXPECT_EQ(bitsOf(identityOf(ElementOp::MaximumNumber)), 0x7FFFFFFFu);
  EXPECT_EQ(bitsOf(identityOf(ElementOp::MinimumNumber)), 0x7FFFFFFFu);
}

TEST(RowReduction, ChunksAreCombinedByHalves) {
  EXPECT_TRUE(meet(16, 1, 9));
  EXPECT_TRUE(meet(16, 4, 12));
  EXPECT_TRUE(meet(16, 2, 6));
  EXPECT_TRUE(meet(16, 1, 3));
  EXPECT_TRUE(meet(16, 7, 13)); // odd places meet the front last
  EXPECT_FALSE(meet(16, 4, 8));
  EXPECT_FALSE(meet(16, 2, 4));
  EXPECT_FALSE(meet(16, 1, 2));
  EXPECT_FALSE(meet(16, 12, 14));
}

TEST(RowReduction, ChunksOfASegmentAreCombinedByHalves) {
  EXPECT_TRUE(meet(512, 16, 31)); // one chunk
  EXPECT_TRUE(meet(512, 16 * 1, 16 * 17));
  EXPECT_TRUE(meet(512, 16 * 8, 16 * 24 + 5));
  EXPECT_TRUE(meet(512, 16 * 4, 16 * 12));
  EXPECT_TRUE(meet(512, 16 * 15, 16 * 31));
  EXPECT_TRUE(meet(512, 16 * 1, 16 * 3));
  EXPECT_FALSE(meet(512, 16 * 16, 16 * 17));
  EXPECT_FALSE(meet(512, 16 * 8, 16 * 16));
  EXPECT_FALSE(meet(512, 16 * 1, 16 * 2));
  EXPECT_FALSE(meet(512, 1, 16)); // the front is in the chunk of the first
}

TEST(RowReduction, SegmentsFollowEachOther) {
  EXPECT_TRUE(meet(1536, 512, 513));
  EXPECT_TRUE(meet(1536, 512, 1023));
  EXPECT_FALSE(meet(1536, 512, 1024));
  EXPECT_FALSE(meet(1536, 511, 512));
  EXPECT_FALSE(meet(513, 1, 512)); // the last segment has one element
}

TEST(RowReduction, LanesHaveTheSegmentsOfLongRows) {
  constexpr size_t segment = 512, sequence = 32 * segment;
  EXPECT_FALSE(meet(sequence, segment, 17 * segment)); // one after the other
  EXPECT_TRUE(meet(sequence + 1, segment, 17 * segment));
  EXPECT_TRUE(meet(2 * sequence, segment, sequence + segment)); // of one lane
  EXPECT_TRUE(meet(3 * sequence, 4 * segment, 2 * sequence + 12 * segment));
  EXPECT_TRUE(meet(3 * sequence, 3 * segment, 5 * segment)); // odd lanes meet the front last
  EXPECT_FALSE(meet(3 * sequence, sequence, 2 * sequence));  // of the lane of the front
  EXPECT_FALSE(meet(3 * sequence, segment, 2 * segment));
  std::vector<float> row(2 * sequence, 0.f);
  row[0] = row[sequence] = 1;
  EXPECT_EQ(reduceRow(row, ElementOp::Add, kLarge), kLarge + 2); // the initial number comes last
}

TEST(RowReduction, TheInitialNumberComesFirst) {
  std::vector<float> row(1024, 0.f);
  row[0] = row[512] = 1;
  EXPECT_EQ(reduceRow(row, ElementOp::Add, kLarge), kLarge);
  EXPECT_EQ(reduceRow(row, ElementOp::Add, -kLarge), 2 - kLarge);
  row[512] = kLarge;
  EXPECT_EQ(reduceRow(row, ElementOp::Add, 1), kLarge + 2); // 1 + 1, and then the large one
  row[512] = 0;
  row[1] = 1;
  EXPECT_EQ(reduceRow(row, ElementOp::Add, kLarge), kLarge + 2); // the segment is combined before
}

TEST(RowReduction, EmptyRowsAreTheInitialNumber) {
  for (ElementOp op : kAll)
    for (float initial : {0.f, -0.f, 2.5f, -kInfinite})
      EXPECT_EQ(bitsOf(reduceRow({}, op, initial)), bitsOf(initial)) << stringify(op);
  EXPECT_TRUE(std::isnan(reduceRow({}, ElementOp::Add, kNotANumber)));
}

TEST(RowReduction, SizesOfRows) {
  for (size_t size : kSizes) {
    EXPECT_EQ(reduceRow(std::vector<float>(size, 1.f), ElementOp::Add, 0.5f),
              static_cast<float>(size) + 0.5f)
        << size;
    std::vector<float> row(size, 1.f);
    if (size > 0)
      row.back() = 3;
    EXPECT_EQ(reduceRow(row, ElementOp::Multiply, 2), size > 0 ? 6 : 2) << size;
    for (ElementOp op : {ElementOp::Maximum, ElementOp::MaximumNumber}) {
      std::ranges::fill(row, -5.f);
      if (size > 0)
        row.back() = -4;
      EXPECT_EQ(reduceRow(row, op, -kInfinite), size > 0 ? -4 : -kInfinite) << size;
      EXPECT_EQ(reduceRow(row, op, -3), -3) << size;
    }
    for (ElementOp op : {ElementOp::Minimum, ElementOp::MinimumNumber}) {
      std::ranges::fill(row, 5.f);
      if (size > 0)
        row.back() = 4;
      EXPECT_EQ(reduceRow(row, op, kInfinite), size > 0 ? 4 : kInfinite) << size;
      EXPECT_EQ(reduceRow(row, op, 3), 3) << size;
    }
  }
}

TEST(RowReduction, BitsOfTheSameOrderWrittenAnotherWay) {
  for (size_t size : kSizes)
    for (ElementOp op : kAll) {
      const bool isProduct = op == ElementOp::Multiply;
      const auto row = isProduct ? randomRow(size, 0.99f, 1.01f) : randomRow(size, -1000, 1000);
      EXPECT_EQ(bitsOf(reduceRow(row, op, 0.75f)), bitsOf(reduceSlowly(row, op, 0.75f)))
          << stringify(op) << " " << size;
    }
}

TEST(RowReduction, SumsOfNegativeZeros) {
  for (size_t size : kSizes) {
    const std::vector<float> row(size, -0.f);
    EXPECT_EQ(bitsOf(reduceRow(row, ElementOp::Add, -0.f)), bitsOf(-0.f)) << size;
    EXPECT_EQ(bitsOf(reduceRow(row, ElementOp::Add, 0.f)), bitsOf(0.f)) << size;
  }
}

TEST(RowReduction, ZerosHaveAnOrder) {
  std::vector<float> row(17, -0.f);
  row[16] = 0.f;
  for (ElementOp op : {ElementOp::Maximum, ElementOp::MaximumNumber})
    EXPECT_EQ(bitsOf(reduceRow(row, op, -0.f)), bitsOf(0.f)) << stringify(op);
  for (ElementOp op : {ElementOp::Minimum, ElementOp::MinimumNumber})
    EXPECT_EQ(bitsOf(reduceRow(row, op, 0.f)), bitsOf(-0.f)) << stringify(op);
}

TEST(RowReduction, RowsWithNaN) {
  for (size_t size : kSizes) {
    if (size == 0)
      continue;
    std::vector<float> row(size, 1.f);
    row[size / 2] = kNotANumber;
    for (ElementOp op :
         {ElementOp::Add, ElementOp::Multiply, ElementOp::Maximum, ElementOp::Minimum}) {
      EXPECT_TRUE(std::isnan(reduceRow(row, op, 1))) << stringify(op) << " " << size;
      EXPECT_TRUE(std::isnan(reduceRow(std::vector<float>(size, 1.f), op, kNotANumber)));
    }
    for (ElementOp op : {ElementOp::MaximumNumber, ElementOp::MinimumNumber}) {
      EXPECT_EQ(reduceRow(row, op, 1), 1) << stringify(op) << " " << size;
      EXPECT_EQ(reduceRow(std::vector<float>(size, 2.f), op, kNotANumber), 2) << size;
      EXPECT_EQ(reduceRow(std::vector<float>(size, kNotANumber), op, 3), 3) << size;
      EXPECT_TRUE(std::isnan(reduceRow(std::vector<float>(size, kNotANumber), op, kNotANumber)));
    }
  }
}

TEST(RowReduction, RowsWithInfinities) {
  for (size_t size : {1, 15, 16, 17, 511, 512, 513, 16384}) {
    std::vector<float> row(size, 1.f);
    row.back() = -kInfinite;
    EXPECT_EQ(reduceRow(row, ElementOp::Add, 0), -kInfinite) << size;
    EXPECT_TRUE(std::isnan(reduceRow(row, ElementOp::Add, kInfinite))) << size;
    EXPECT_EQ(reduceRow(row, ElementOp::Multiply, -1), kInfinite) << size;
    EXPECT_TRUE(std::isnan(reduceRow(row, ElementOp::Multiply, 0))) << size;
    for (ElementOp op : {ElementOp::Minimum, ElementOp::MinimumNumber})
      EXPECT_EQ(reduceRow(row, op, kInfinite), -kInfinite) << size;
    for (ElementOp op : {ElementOp::Maximum, ElementOp::MaximumNumber}) {
      EXPECT_EQ(reduceRow(row, op, 0.5f), size > 1 ? 1 : 0.5f) << size;
      std::ranges::fill(row, -kInfinite);
      EXPECT_EQ(reduceRow(row, op, -kInfinite), -kInfinite) << size;
      row = std::vector<float>(size, 1.f);
      row.back() = -kInfinite;
    }
  }
}
