// The fragments as PTX ISA's figures say them: element i of thread l.
#include "fp4/ISA/FragmentLayout.h"
#include <gtest/gtest.h>
#include <vector>

using namespace fp4::hw;

namespace {

struct Cell {
  uint32_t row, column;
};

/// "Register fragment" of wgmma.m64nN: warp w of the warpgroup, lane l, element i.
Cell wgmmaCell(uint32_t warp, uint32_t lane, uint32_t i) {
  return {16 * warp + lane / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * (lane % 4) + i % 2};
}

} // namespace

TEST(FragmentLayout, WgmmaIsAsPtxDrawsIt) {
  for (uint32_t columns : {8u, 24u, 256u})
    for (uint32_t thread = 0; thread < fragmentThreads(FragmentKind::Wgmma); ++thread)
      for (uint32_t i = 0; i < fragmentElements(FragmentKind::Wgmma, 64, columns); ++i) {
        const Cell cell = wgmmaCell(thread / 32, thread % 32, i);
        EXPECT_EQ(fragmentPlace(FragmentKind::Wgmma, cell.row, cell.column, columns),
                  (FragmentPlace{thread, i}));
      }
}

// m16n8: row l / 4 for elements 0 and 1, l / 4 + 8 for 2 and 3; column 2 (l % 4) + i % 2.
TEST(FragmentLayout, MmaSyncIsAsPtxDrawsIt) {
  for (uint32_t lane = 0; lane < fragmentThreads(FragmentKind::MmaSync); ++lane)
    for (uint32_t i = 0; i < 4; ++i)
      EXPECT_EQ(fragmentPlace(FragmentKind::MmaSync, lane / 4 + (i < 2 ? 0 : 8),
                              2 * (lane % 4) + i % 2, 8),
                (FragmentPlace{lane, i}));
}

TEST(FragmentLayout, EveryPlaceHasOneElement) {
  const struct {
    FragmentKind kind;
    uint32_t rows, columns;
  } cases[] = {{FragmentKind::Wgmma, 128, 96},
               {FragmentKind::MmaSync, 48, 40},
               {FragmentKind::Lanes, 128, 32}};
  for (const auto &c : cases) {
    const uint32_t elements = fragmentElements(c.kind, c.rows, c.columns);
    EXPECT_EQ(elements * fragmentThreads(c.kind), c.rows * c.columns);
    std::vector<int> seen(c.rows * c.columns);
    for (uint32_t row = 0; row < c.rows; ++row)
      for (uint32_t column = 0; column < c.columns; ++column) {
        const FragmentPlace place = fragmentPlace(c.kind, row, column, c.columns);
        ASSERT_LT(place.thread, fragmentThreads(c.kind));
        ASSERT_LT(place.element, elements);
        EXPECT_EQ(seen[place.thread * elements + place.element]++, 0);
      }
  }
}

/// Thread l of warp w has column l of the w-th quarter of the rows, from the first row on.
TEST(FragmentLayout, Columns) {
  for (const uint32_t rows : {4u, 8u, 128u}) {
    const uint32_t ofWarp = rows / 4;
    EXPECT_EQ(fragmentElements(FragmentKind::Columns, rows, transposedColumns), ofWarp);
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t column = 0; column < transposedColumns; ++column)
        EXPECT_EQ(columnPlace(row, column, rows),
                  (FragmentPlace{row / ofWarp * 32 + column, row % ofWarp}));
  }
}

TEST(FragmentLayout, Distributions) {
  EXPECT_TRUE(validateDistribution(FragmentKind::Wgmma, 64, 264));
  EXPECT_TRUE(validateDistribution(FragmentKind::MmaSync, 16, 8));
  EXPECT_TRUE(validateDistribution(FragmentKind::Lanes, 128, 1));
  EXPECT_TRUE(validateDistribution(FragmentKind::Columns, 8, 32));
  EXPECT_EQ(validateDistribution(FragmentKind::Wgmma, 128, 8).error().message,
            "64 rows and 1 or a multiple of 8 columns, but got 128x8");
  EXPECT_TRUE(validateDistribution(FragmentKind::Wgmma, 64, 1));
  EXPECT_EQ(fragmentElements(FragmentKind::Wgmma, 64, 1), 2u);
  EXPECT_EQ(fragmentElements(FragmentKind::MmaSync, 16, 1), 2u);
  EXPECT_EQ(fragmentElements(FragmentKind::Lanes, 128, 1), 1u);
  EXPECT_FALSE(validateDistribution(FragmentKind::MmaSync, 16, 4));
  EXPECT_FALSE(validateDistribution(FragmentKind::Lanes, 128, 0));
  EXPECT_EQ(validateDistribution(FragmentKind::Columns, 8, 16).error().message,
            "a multiple of 4 rows and 32 columns, but got 8x16");
}

/// Every element once; and those of one place of a fragment of A are in one quarter of its row.
TEST(FragmentLayout, OrderOfConvertedElements) {
  std::vector<unsigned> seen(convertedTileK);
  for (uint32_t i = 0; i < convertedTileK / convertedInstructionK; ++i)
    for (uint32_t n = 0; n < convertedInstructionK; ++n) {
      const uint32_t element = convertedElementOf(i, n);
      ASSERT_LT(element, convertedTileK);
      ++seen[element];
      EXPECT_EQ(element / (convertedTileK / 4), n / 4);
      EXPECT_EQ(element % codesPerWord % 2, i % 2);
    }
  EXPECT_EQ(seen, std::vector<unsigned>(convertedTileK, 1));
}

TEST(FragmentLayout, Shapes) {
  EXPECT_TRUE(validateFragment(FragmentKind::Wgmma, 128, 256));
  EXPECT_TRUE(validateFragment(FragmentKind::MmaSync, 16, 264));
  EXPECT_EQ(validateFragment(FragmentKind::Wgmma, 32, 64).error().message,
            "wgmma expects a multiple of 64 rows, but got 32");
  EXPECT_EQ(validateFragment(FragmentKind::Wgmma, 64, 264).error().message,
            "wgmma expects 8 to 256 columns in steps of 8, but got 264");
  EXPECT_EQ(validateFragment(FragmentKind::MmaSync, 16, 12).error().message,
            "mma.sync expects a multiple of 8 columns, but got 12");
  EXPECT_FALSE(validateFragment(FragmentKind::MmaSync, 0, 8));
  EXPECT_TRUE(validateFragment(FragmentKind::Lanes, 128, 64));
  EXPECT_EQ(validateFragment(FragmentKind::Lanes, 256, 64).error().message,
            "tensor memory expects 128 rows, but got 256");
  EXPECT_EQ(validateFragment(FragmentKind::Lanes, 128, 48).error().message,
            "tensor memory expects 16, 32, 64 or 128 columns, but got 48");
}
