// Scale-factor positions in global, shared and tensor memory.
//
// Sources: (1) torchao / PyTorch to_blocked, restated below as the permutation it performs
// (view (R/128, 4, 32, C/4, 4), order (0, 3, 2, 1, 4)); the offsets of its documentation and of
// executed runs. (2) CUTLASS' SfAtom, Shape ((32,4),(V,4)) : Stride ((16,4),(0,1)), tiled K first;
// PTX ISA's scale-factor layout for the tensor-memory cells.
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/ISA/SmemDescriptor.h"
#include <gtest/gtest.h>
#include <vector>

using namespace fp4;
using namespace fp4::hw;

namespace {

/// to_blocked by its permutation: position of every (row, column) of a padded matrix.
std::vector<uint64_t> toBlocked(uint64_t rows, uint64_t columns) {
  std::vector<uint64_t> position(rows * columns);
  uint64_t at = 0;
  for (uint64_t rowBlock = 0; rowBlock < rows / 128; ++rowBlock)
    for (uint64_t colBlock = 0; colBlock < columns / 4; ++colBlock)
      for (uint64_t lane = 0; lane < 32; ++lane)
        for (uint64_t group = 0; group < 4; ++group)
          for (uint64_t c = 0; c < 4; ++c)
            position[(rowBlock * 128 + group * 32 + lane) * columns + colBlock * 4 + c] = at++;
  return position;
}

TEST(ScaleLayout, equalsToBlocked) {
  for (auto [rows, columns] : {std::pair{128, 4}, {256, 12}, {384, 24}, {512, 64}}) {
    const auto position = toBlocked(rows, columns);
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c)
        ASSERT_EQ(tiled128x4Offset(r, c, columns), position[r * columns + c]) << r << ", " << c;
  }
}

// The small tiles of TensorRT-LLM and FlashInfer, "8x4": view (R/8, 8, C/4, 4), order (0, 2, 1, 3).
TEST(ScaleLayout, tilesOfEightRows) {
  const uint64_t rows = 24, columns = 12;
  uint64_t at = 0;
  for (uint64_t rowBlock = 0; rowBlock < rows / 8; ++rowBlock)
    for (uint64_t colBlock = 0; colBlock < columns / 4; ++colBlock)
      for (uint64_t row = 0; row < 8; ++row)
        for (uint64_t column = 0; column < 4; ++column)
          EXPECT_EQ(tiled8x4Offset(8 * rowBlock + row, 4 * colBlock + column, columns), at++);
  EXPECT_EQ(tiled8x4Bytes(rows, columns), at);
  EXPECT_EQ(tiled8x4Bytes(17, 9), at);
}

TEST(ScaleLayout, equalsCutlassAtom) {
  for (unsigned row = 0; row < 128; ++row)
    for (unsigned block = 0; block < 4; ++block)
      EXPECT_EQ(scaleOffsetInBlock(row, block), row % 32 * 16 + row / 32 * 4 + block);
}

TEST(ScaleLayout, knownOffsets) { // from executed runs of to_blocked
  EXPECT_EQ(tiled128x4Offset(1, 0, 4), 16u);
  EXPECT_EQ(tiled128x4Offset(32, 0, 4), 4u);
  EXPECT_EQ(tiled128x4Offset(127, 3, 4), 511u);
  EXPECT_EQ(tiled128x4Offset(128, 0, 4), 512u);
  EXPECT_EQ(tiled128x4Offset(0, 4, 8), 512u);
  EXPECT_EQ(tiled128x4Offset(130, 5, 8), 1569u);
  EXPECT_EQ(tiled128x4Offset(199, 8, 9), 2680u);
  EXPECT_EQ(tiled128x4Offset(129, 5, 6), 1553u);
  EXPECT_EQ(tiled128x4Bytes(130, 6), 2048u);
  EXPECT_EQ(tiled128x4Bytes(1, 1), 512u);
  EXPECT_EQ(tiled128x4Bytes(128, 4), 512u);
}

TEST(ScaleLayout, isABijection) {
  for (auto [rows, blocks] : {std::pair<uint64_t, uint64_t>{1, 1}, {130, 6}, {300, 22}, {257, 9}}) {
    const uint64_t bytes = tiled128x4Bytes(rows, blocks);
    const uint64_t paddedRows = (rows + 127) / 128 * 128, paddedBlocks = (blocks + 3) / 4 * 4;
    ASSERT_EQ(bytes, paddedRows * paddedBlocks);
    for (uint64_t offset = 0; offset < bytes; ++offset) {
      const ScalePosition p = tiled128x4Position(offset, blocks);
      ASSERT_LT(p.row, paddedRows);
      ASSERT_LT(p.block, paddedBlocks);
      ASSERT_EQ(tiled128x4Offset(p.row, p.block, blocks), offset);
    }
  }
}

// A 512-byte block copied by tcgen05.cp.32x128b.warpx4 lands where the MMA reads it: the two
// descriptions (the copy, and the scale operand) meet.
TEST(ScaleLayout, copyPutsScalesWhereTheMmaReadsThem) {
  const SmemDescriptor source = SmemDescriptor::scaleFactorBlock(0x1000);
  for (unsigned row = 0; row < 32; ++row)
    for (unsigned byte = 0; byte < 16; ++byte) {
      const uint32_t offset = source.operandAddress(row, byte) - 0x1000;
      const ScalePosition scale = tiled128x4Position(offset, 4);
      const CopyCells cells = copyCells(CopyShape::C32x128bWarpx4, row, byte / 4);
      ASSERT_EQ(cells.count, 4u);
      for (unsigned q = 0; q < 4; ++q)
        EXPECT_EQ(scaleCell(scale.row, scale.block, 0, q),
                  (ScaleCell{cells.cells[q].lane, cells.cells[q].column, byte % 4}));
    }
}

TEST(ScaleLayout, tensorMemoryCells) { // PTX ISA; the last two: NVIDIA's 2-CTA M = 128 example
  EXPECT_EQ(scaleCell(37, 1, 0, 0), (ScaleCell{5, 1, 1}));
  EXPECT_EQ(scaleCell(37, 1, 2, 3), (ScaleCell{101, 1, 3}));
  EXPECT_EQ(scaleCell(255, 0, 0, 0), (ScaleCell{31, 7, 0}));
  EXPECT_EQ(scaleCell(63, 3, 0, 1, ScaleOperand::RowsPairM128), (ScaleCell{63, 1, 3}));
  EXPECT_EQ(scaleCell(130, 0, 0, 1, ScaleOperand::ColumnsPairM128, 256), (ScaleCell{98, 0, 0}));
}

// The halves of N lie in TMEM lanes 0-63 and 64-127, each twice: the second row of columns is in
// both quadrants of its half, and in no other.
TEST(ScaleLayout, halvesOfColumnsOfAPair) {
  for (unsigned quadrant = 0; quadrant < 4; ++quadrant) {
    const unsigned within = quadrant % 2 * 32;
    EXPECT_EQ(scaleCell(2, 0, 0, quadrant, ScaleOperand::ColumnsPairM128, 256),
              (ScaleCell{2 + within, 0, 0}));
    EXPECT_EQ(scaleCell(130, 0, 0, quadrant, ScaleOperand::ColumnsPairM128, 256),
              (ScaleCell{66 + within, 0, 0}));
    EXPECT_EQ(scaleCell(170, 1, 2, quadrant, ScaleOperand::ColumnsPairM128, 256),
              (ScaleCell{74 + within, 1, 3}));
  }
}

// Two blocks of 512 bytes side by side, copied by one tcgen05.cp, put the scales of 256 rows of B
// where a pair with M = 128 reads them: a block for each half of the rows, in the lanes of that
// half.
TEST(ScaleLayout, halvesReachTheirLanes) {
  constexpr unsigned rows = 256, lines = 32;
  for (unsigned row = 0; row < rows; ++row) {
    const unsigned word = unsigned(scaleWordInBlock(row)) % 16 / 4;
    const unsigned line = scaleHalfIndex(row / 128, 0u) * lines + row % lines;
    const CopyCells cells = copyCells(CopyShape::C64x128bWarpx2_01_23, line, word);
    ASSERT_EQ(cells.count, 2u);
    for (unsigned q = 0; q < 2; ++q) {
      const ScaleCell cell = scaleCell(row, 0, 0, q, ScaleOperand::ColumnsPairM128, rows);
      EXPECT_EQ(cells.cells[q], (TmemAddress{cell.lane, cell.column})) << row;
    }
  }
  EXPECT_EQ(scaleHalfIndex(1, 3), 7); // 1024 bytes for each block of columns
}

TEST(ScaleLayout, stepsAlongK) {
  for (unsigned step = 0; step < 8; ++step) {
    EXPECT_EQ(scaleStep(4, step).kBlock, step);
    EXPECT_EQ(scaleStep(4, step).id, 0u);
    EXPECT_EQ(scaleStep(2, step).kBlock, step / 2);
    EXPECT_EQ(scaleStep(2, step).id, step % 2 * 2);
    EXPECT_EQ(scaleStep(1, step).kBlock, step / 4);
    EXPECT_EQ(scaleStep(1, step).id, step % 4);
  }
  EXPECT_EQ(scaleColumns(64), 4u);
  EXPECT_EQ(scaleColumns(256), 8u);
  EXPECT_EQ(scaleTileColumn(1, 2, 2), 20u);
}

TEST(ScaleLayout, explainsInWords) {
  const auto text =
      explainScale({.format = "nvfp4", .row = 37, .k = 5, .rows = 256, .depth = 1024});
  ASSERT_TRUE(text) << format(text.error());
  EXPECT_EQ(*text, "nvfp4 scale of element (37, 5): row 37, block 0 of 64\n"
                   "  global, linear      offset 2368\n"
                   "  global, tiled_128x4 offset 84 = tile (0, 0) * 512 + 84\n"
                   "  shared              byte 84 of the 512-byte tile\n"
                   "  tensor memory       TMEM lanes 5, 37, 69, 101; column +1; byte 0\n"
                   "  read by             K step 0 (elements 0..63), scale id 0\n");
  const auto mx = explainScale(
      {.format = "mxfp4", .row = 200, .k = 100, .rows = 256, .depth = 512, .ctaGroup = 2});
  ASSERT_TRUE(mx);
  EXPECT_NE(mx->find("byte 3 of CTA 1 of the pair"), std::string::npos) << *mx;
  EXPECT_NE(mx->find("K step 1 (elements 64..127), scale id 2"), std::string::npos) << *mx;
}

TEST(ScaleLayout, explainsWhichCtaOfAPair) {
  const auto ctaOf = [](uint64_t row) {
    return explainScale({.row = row, .rows = 512, .depth = 64, .ctaGroup = 2}).value();
  };
  for (uint64_t row : {0, 100, 127, 256})
    EXPECT_NE(ctaOf(row).find("of CTA 0 of the pair"), std::string::npos) << row;
  for (uint64_t row : {128, 191, 255, 384})
    EXPECT_NE(ctaOf(row).find("of CTA 1 of the pair"), std::string::npos) << row;
}

TEST(ScaleLayout, explainRejectsNonsense) {
  EXPECT_EQ(explainScale({.format = "int4"}).error().message, "unknown scale format 'int4'");
  EXPECT_EQ(explainScale({.row = 5, .k = 0, .rows = 5, .depth = 64}).error().message,
            "element (5, 0) must lie in a 5x64 matrix");
  EXPECT_EQ(explainScale({.ctaGroup = 3}).error().message, "cta group must be 1 or 2, but got 3");
}

// The scales of 48 or 24 blocks of K follow one another, four to a block of 512 bytes.
TEST(ScaleLayout, stepsOfLongMmas) {
  EXPECT_EQ(scalesOfMma(ScaleVector::X4, MmaDepth::K96), 6u);
  EXPECT_EQ(scalesOfMma(ScaleVector::X2, MmaDepth::K96), 3u);
  EXPECT_EQ(scalesOfMma(ScaleVector::X4, MmaDepth::Double), 8u);
  EXPECT_EQ(scalesOfMma(ScaleVector::X2, MmaDepth::Double), 4u);
  EXPECT_EQ(scalesOfMma(ScaleVector::X1, MmaDepth::Double), 2u);
  for (unsigned step = 0; step < 8; ++step)
    for (ScaleVector vector : {ScaleVector::X4, ScaleVector::X2}) {
      const unsigned scales = scalesOfMma(vector, MmaDepth::K96);
      const ScaleStep at = scaleStep(scales, step);
      EXPECT_EQ(4 * at.kBlock + at.id, step * scales);
      EXPECT_EQ(at.id % (unsigned(vector) / 2), 0u);
    }
  for (unsigned step = 0; step < 4; ++step) {
    EXPECT_EQ(scaleStep(8, step).kBlock, 2 * step);
    EXPECT_EQ(scaleStep(8, step).id, 0u);
    EXPECT_EQ(scaleStep(2, step).kBlock, step / 2);
    EXPECT_EQ(scaleStep(2, step).id, step % 2 * 2);
  }
  for (unsigned rows : {64u, 128u, 192u, 256u}) // as tiles of scales in tensor memory have them
    EXPECT_EQ(nextScaleColumns(rows), scaleTileColumn(0, 1, (rows + 127) / 128));
}

} // namespace
