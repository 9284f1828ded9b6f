//===- IndexExpressionsTest.cpp - Columns that chunks of columns read -----===//

#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/MLIRContext.h"

#include <gmock/gmock.h>

#include <numeric>

using namespace fp4;
using testing::ElementsAre;
using testing::ElementsAreArray;

namespace {

constexpr int64_t kChunk = 16;

class ChunkWindowTest : public testing::Test {
protected:
  std::optional<ChunkWindow> windowOf(mlir::AffineExpr expression, int64_t columns) {
    return chunkWindowOf(expression, columns, kChunk);
  }

  static std::vector<int64_t> inOrder() {
    std::vector<int64_t> lanes(kChunk);
    std::iota(lanes.begin(), lanes.end(), int64_t(0));
    return lanes;
  }

  mlir::MLIRContext context;
  mlir::AffineExpr column = mlir::getAffineDimExpr(1, &context);
};

} // namespace

TEST_F(ChunkWindowTest, OfHalvesAreOtherChunks) {
  std::optional<ChunkWindow> window = windowOf((column + 64) % 128, 128);
  ASSERT_TRUE(window);
  EXPECT_THAT(window->lanes, ElementsAreArray(inOrder()));
  EXPECT_EQ(window->span, kChunk);
  EXPECT_EQ(window->lane, 0);
  EXPECT_EQ(window->alignment, kChunk);
  EXPECT_FALSE(window->isOwn);
}

TEST_F(ChunkWindowTest, OfNeighboursAreTheChunkItself) {
  std::optional<ChunkWindow> window = windowOf(column + 1 - column % 2 * 2, 64);
  ASSERT_TRUE(window);
  EXPECT_THAT(window->lanes, ElementsAre(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
  EXPECT_EQ(window->span, kChunk);
  EXPECT_EQ(window->lane, 1);
  EXPECT_EQ(window->alignment, kChunk);
  EXPECT_TRUE(window->isOwn);
}

TEST_F(ChunkWindowTest, OfColumnsInOrderAreTheChunkItself) {
  std::optional<ChunkWindow> window = windowOf(column, 64);
  ASSERT_TRUE(window);
  EXPECT_THAT(window->lanes, ElementsAreArray(inOrder()));
  EXPECT_TRUE(window->isOwn);
}

TEST_F(ChunkWindowTest, OfAWholeTurnWithinChunksBeginBehindItsFirstLane) {
  std::optional<ChunkWindow> window =
      windowOf(column.floorDiv(kChunk) * kChunk + (column % kChunk + 3) % kChunk, 48);
  ASSERT_TRUE(window);
  EXPECT_THAT(window->lanes, ElementsAre(3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2));
  EXPECT_EQ(window->lane, 13);
  EXPECT_TRUE(window->isOwn);
}

TEST_F(ChunkWindowTest, OfReversedColumnsEndAtTheirFirstLane) {
  std::optional<ChunkWindow> window = windowOf(column * -1 + 127, 128);
  ASSERT_TRUE(window);
  EXPECT_THAT(window->lanes, ElementsAre(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
  EXPECT_EQ(window->lane, 15);
  EXPECT_EQ(window->alignment, kChunk);
  EXPECT_FALSE(window->isOwn);
}

TEST_F(ChunkWindowTest, OfPairsThatShareAnElementAreShorter) {
  std::optional<ChunkWindow> window = windowOf(column.floorDiv(2), 64);
  ASSERT_TRUE(window);
  EXPECT_THAT(window->lanes, ElementsAre(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7));
  EXPECT_EQ(window->span, 8);
  EXPECT_EQ(window->alignment, 8);
  EXPECT_FALSE(window->isOwn);
}

TEST_F(ChunkWindowTest, ThatAllBeginAtZeroAreAlignedAsChunks) {
  std::optional<ChunkWindow> shared = windowOf(column % 8, 64);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->span, 8);
  EXPECT_EQ(shared->alignment, kChunk);
  EXPECT_FALSE(shared->isOwn);
  std::optional<ChunkWindow> only = windowOf(column % 8, kChunk);
  ASSERT_TRUE(only);
  EXPECT_TRUE(only->isOwn); // the elements of the only chunk, of which half are read
}

TEST_F(ChunkWindowTest, BehindAnOffsetAreAlignedAsIt) {
  std::optional<ChunkWindow> window = windowOf(column + 8, 64);
  ASSERT_TRUE(window);
  EXPECT_EQ(window->alignment, 8);
  EXPECT_EQ(window->span, kChunk);
  EXPECT_FALSE(window->isOwn);
  std::optional<ChunkWindow> odd = windowOf(column + 3, 64);
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->alignment, 1);
}

TEST_F(ChunkWindowTest, ThatDifferFromChunkToChunkAreNone) {
  EXPECT_FALSE(windowOf((column + 40) % 80, 80)); // one chunk has the last columns and the first
  EXPECT_FALSE(windowOf(column % 24, 48));
}

TEST_F(ChunkWindowTest, ThatAreLongerThanAChunkAreNone) {
  EXPECT_FALSE(windowOf(column * 2, 64));
  EXPECT_FALSE(windowOf(column % 2 * 16, 64));
}

TEST_F(ChunkWindowTest, OfColumnsThatAreNoWholeChunksAreNone) {
  EXPECT_FALSE(windowOf((column + 40) % 77, 77));
  EXPECT_FALSE(windowOf(column, 8));
}

TEST_F(ChunkWindowTest, OfTheOtherHalfArePartners) {
  EXPECT_TRUE(readsOtherHalf((column + 64) % 128, 128, kChunk));
  EXPECT_FALSE(readsOtherHalf((column + 64) % 256, 256, kChunk));
  EXPECT_FALSE(readsOtherHalf((column + 24) % 48, 48, kChunk)); // half of a chunk more
  EXPECT_FALSE(readsOtherHalf(column, 128, kChunk));
}

TEST_F(ChunkWindowTest, OfBothHalvesAreRepeated) {
  EXPECT_TRUE(repeatsInHalves(column % 64, 128));
  EXPECT_TRUE(repeatsInHalves(column % 64 + 64, 128));
  EXPECT_TRUE(repeatsInHalves(column % 32, 128));
  EXPECT_FALSE(repeatsInHalves((column + 64) % 128, 128));
  EXPECT_FALSE(repeatsInHalves(column.floorDiv(128) + 3, 128)); // one element
  EXPECT_FALSE(repeatsInHalves(column % 7, 15));
}
