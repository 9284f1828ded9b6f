// Tensor-memory layouts.
//
// Sources: (1) PTX ISA, data path organization table and the ld/st and cp sections; TVM's hardware
// goldens for ld/st. (2) CUTLASS' copy traits (copy_traits_sm100.hpp), whose thread/value strides
// are evaluated below as numbers, and Triton's linear layout for 16x256b (register =
// [[0,1],[8,0],[0,8],...], lane = [[0,2],[0,4],[1,0],[2,0],[4,0]]).
#include "fp4/ISA/TmemLayout.h"
#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace fp4::hw;

namespace {

TEST(TmemAddress, lanesAboveColumns) {
  EXPECT_EQ((TmemAddress{1, 2}.pack()), 0x00010002u);
  EXPECT_EQ((TmemAddress{64, 2}.pack()), 4194306u);  // Triton's lit test: row 64, column 2
  EXPECT_EQ((TmemAddress{16, 64}.pack()), 1048640u); // Triton: row 16, column 64
  for (uint32_t bits : {0u, 0x007F01FFu, 0x00200040u})
    EXPECT_EQ(TmemAddress::unpack(bits).pack(), bits);
}

TEST(TmemAllocation, powersOfTwoFrom32To512) {
  EXPECT_EQ(tmemAllocationColumns(0), 32u);
  EXPECT_EQ(tmemAllocationColumns(32), 32u);
  EXPECT_EQ(tmemAllocationColumns(33), 64u);
  EXPECT_EQ(tmemAllocationColumns(160), 256u);
  EXPECT_EQ(tmemAllocationColumns(512), 512u);
  EXPECT_FALSE(tmemAllocationColumns(513));
}

//===--- Accumulators ----------------------------------------------------===//

TEST(Accumulator, organizationOfEachShape) {
  using L = AccumulatorLayout;
  EXPECT_EQ(accumulatorLayout(2, 256, false, false), L::A);
  EXPECT_EQ(accumulatorLayout(2, 128, false, false), L::B);
  EXPECT_EQ(accumulatorLayout(2, 128, true, false), L::C);
  EXPECT_EQ(accumulatorLayout(1, 128, false, false), L::D);
  EXPECT_EQ(accumulatorLayout(1, 64, false, true), L::E);
  EXPECT_EQ(accumulatorLayout(1, 64, false, false), L::F);
  EXPECT_EQ(accumulatorLayout(1, 32, false, true), L::G);
  EXPECT_FALSE(accumulatorLayout(1, 32, false, false));
  EXPECT_FALSE(accumulatorLayout(1, 256, false, false));
  EXPECT_FALSE(accumulatorLayout(2, 64, false, false));
}

TEST(Accumulator, everyElementHasItsOwnCell) {
  for (unsigned letter = 0; letter < 7; ++letter)
    for (unsigned n : {16u, 64u, 256u}) {
      const auto layout = static_cast<AccumulatorLayout>(letter);
      std::set<std::tuple<uint32_t, uint32_t, uint32_t>> cells;
      for (unsigned row = 0; row < accumulatorRows(layout); ++row)
        for (unsigned col = 0; col < n; ++col) {
          const AccumulatorCell c = accumulatorCell(layout, row, col, n);
          EXPECT_LT(c.lane, 128u);
          EXPECT_LT(c.column, accumulatorColumns(layout, n));
          cells.insert({c.cta, c.lane, c.column});
        }
      EXPECT_EQ(cells.size(), accumulatorRows(layout) * n) << "organization " << char('A' + letter);
    }
}

TEST(Accumulator, cornersOfEachOrganization) {
  using L = AccumulatorLayout;
  const auto cell = [](L l, unsigned m, unsigned n) { return accumulatorCell(l, m, n, 128); };
  EXPECT_EQ(cell(L::A, 129, 5), (AccumulatorCell{1, 1, 5}));
  EXPECT_EQ(cell(L::B, 63, 63), (AccumulatorCell{0, 63, 63}));
  EXPECT_EQ(cell(L::B, 64, 64), (AccumulatorCell{1, 64, 0}));
  EXPECT_EQ(cell(L::C, 64 + 17, 9), (AccumulatorCell{1, 33, 9}));
  EXPECT_EQ(cell(L::D, 127, 127), (AccumulatorCell{0, 127, 127}));
  EXPECT_EQ(cell(L::E, 1, 64), (AccumulatorCell{0, 65, 0}));
  EXPECT_EQ(cell(L::F, 16, 3), (AccumulatorCell{0, 32, 3}));
  EXPECT_EQ(cell(L::F, 63, 3), (AccumulatorCell{0, 111, 3}));
  EXPECT_EQ(cell(L::G, 31, 127), (AccumulatorCell{0, 127, 31}));
}

//===--- Loads -----------------------------------------------------------===//

/// A .x1 load as CUTLASS writes it: thread and value digits with their strides in bits, over rows
/// of `rowBits`.
struct CuteLayout {
  unsigned rowBits;
  std::vector<std::pair<unsigned, unsigned>> thread, value; // (size, stride), values in bits
};

TmemAddress evaluate(const CuteLayout &layout, unsigned thread, unsigned bit) {
  unsigned index = 0;
  for (auto [size, stride] : layout.thread) {
    index += thread % size * stride;
    thread /= size;
  }
  for (auto [size, stride] : layout.value) {
    index += bit % size * stride;
    bit /= size;
  }
  return {index / layout.rowBits, index % layout.rowBits / 32};
}

const std::map<LoadShape, CuteLayout> traits = {
    {LoadShape::S16x64b, {64, {{2, 512}, {2, 32}, {8, 64}}, {{32, 1}}}},
    {LoadShape::S16x128b, {128, {{4, 32}, {8, 128}}, {{32, 1}, {2, 1024}}}},
    {LoadShape::S16x256b, {256, {{4, 64}, {8, 256}}, {{64, 1}, {2, 2048}}}},
    {LoadShape::S16x32bx2, {64, {{16, 64}, {2, 32}}, {{32, 1}}}}};

TEST(TmemLoad, firstUnitEqualsCutlassTraits) {
  for (const auto &[shape, layout] : traits)
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned reg = 0; reg < *loadRegisters(shape, 1); ++reg)
        EXPECT_EQ(loadCell(shape, 0, lane, reg, {}, /*halfSplit=*/1),
                  evaluate(layout, lane, reg * 32))
            << stringify(shape) << " lane " << lane << " register " << reg;
}

TEST(TmemLoad, equalsTritonLinearLayout) {
  const TmemAddress registers[] = {{0, 1}, {8, 0}, {0, 8}, {0, 16}, {0, 32}, {0, 64}};
  const TmemAddress lanes[] = {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}};
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned reg = 0; reg < 64; ++reg) {
      TmemAddress want{};
      for (unsigned i = 0; i < 6; ++i)
        if (reg >> i & 1)
          want = {want.lane + registers[i].lane, want.column + registers[i].column};
      for (unsigned i = 0; i < 5; ++i)
        if (lane >> i & 1)
          want = {want.lane + lanes[i].lane, want.column + lanes[i].column};
      EXPECT_EQ(loadCell(LoadShape::S16x256b, 0, lane, reg, {}), want);
    }
}

TEST(TmemLoad, registersCoverTheBlockOnce) {
  for (LoadShape shape :
       {LoadShape::S32x32b, LoadShape::S16x64b, LoadShape::S16x128b, LoadShape::S16x256b})
    for (unsigned num = 1; num <= 128; num *= 2) {
      const auto registers = loadRegisters(shape, num);
      if (!registers)
        continue;
      std::set<uint32_t> cells;
      const unsigned rows = shape == LoadShape::S32x32b ? 32 : 16;
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned reg = 0; reg < *registers; ++reg) {
          const TmemAddress c = loadCell(shape, 2, lane, reg, {64, 40});
          EXPECT_GE(c.lane, 64u);
          EXPECT_LT(c.lane, 64 + rows);
          EXPECT_GE(c.column, 40u);
          EXPECT_LT(c.column, 40 + loadColumns(shape, num));
          cells.insert(c.pack());
        }
      EXPECT_EQ(cells.size(), rows * loadColumns(shape, num)) << stringify(shape) << ".x" << num;
    }
}

TEST(TmemLoad, warpsAndHalves) {
  for (unsigned warp = 0; warp < 8; ++warp) {
    EXPECT_EQ(loadCell(LoadShape::S32x32b, warp, 7, 3, {32 * (warp % 4), 10}),
              (TmemAddress{32 * (warp % 4) + 7, 13}));
    EXPECT_EQ(loadCell(LoadShape::S16x64b, warp, 0, 0, {32 * (warp % 4) + 16, 0}).lane,
              32 * (warp % 4) + 16);
  }
  EXPECT_EQ(loadCell(LoadShape::S16x32bx2, 1, 17, 2, {32, 4}, 64), (TmemAddress{33, 70}));
}

TEST(TmemLoad, registerCounts) { // as ptxas accepts them
  EXPECT_EQ(loadRegisters(LoadShape::S32x32b, 128), 128u);
  EXPECT_EQ(loadRegisters(LoadShape::S16x128b, 64), 128u);
  EXPECT_FALSE(loadRegisters(LoadShape::S16x128b, 128));
  EXPECT_EQ(loadRegisters(LoadShape::S16x256b, 32), 128u);
  EXPECT_FALSE(loadRegisters(LoadShape::S16x256b, 64));
  EXPECT_FALSE(loadRegisters(LoadShape::S32x32b, 3));
  EXPECT_EQ(parseLoadShape("16x32bx2"), LoadShape::S16x32bx2);
  EXPECT_FALSE(parseLoadShape("8x32b"));
}

// The _16b traits have the same thread and value strides; 16 bits of a row go to each column. Their
// 16x32bx2 instruction takes a half split of 2 columns per register.
TEST(TmemLoad, packedUnitEqualsCutlassTraits) {
  for (const auto &[shape, layout] : traits)
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned reg = 0; reg < *loadRegisters(shape, 1); ++reg)
        for (unsigned half = 0; half < 2; ++half) {
          TmemAddress want = evaluate(layout, lane, reg * 32);
          want.column = 2 * want.column + half;
          EXPECT_EQ(loadCellPacked(shape, 0, lane, reg, half, {}, /*halfSplit=*/2), want)
              << stringify(shape) << " lane " << lane << " register " << reg;
        }
}

TEST(TmemLoad, packedRegistersTakeColumnPairs) {
  for (unsigned reg = 0; reg < 8; ++reg) {
    EXPECT_EQ(loadCellPacked(LoadShape::S32x32b, 0, 5, reg, 0, {0, 8}),
              (TmemAddress{5, 8 + 2 * reg}));
    EXPECT_EQ(loadCellPacked(LoadShape::S32x32b, 0, 5, reg, 1, {0, 8}),
              (TmemAddress{5, 9 + 2 * reg}));
  }
}

//===--- Copies ----------------------------------------------------------===//

// TMEM lanes that receive each row, from PTX ISA's multicast qualifiers and CUTLASS' copy traits
// (broadcast strides of 32 lanes for warpx4 and of 64 for 02_13).
TEST(TmemCopy, lanesOfEachShape) {
  for (unsigned row = 0; row < 32; ++row) {
    const CopyCells x4 = copyCells(CopyShape::C32x128bWarpx4, row, 2);
    ASSERT_EQ(x4.count, 4u);
    for (unsigned q = 0; q < 4; ++q)
      EXPECT_EQ(x4.cells[q], (TmemAddress{row + 32 * q, 2}));
  }
  const auto lanes = [](CopyShape shape, unsigned row) {
    std::set<uint32_t> out;
    const CopyCells c = copyCells(shape, row, 0);
    for (unsigned i = 0; i < c.count; ++i)
      out.insert(c.cells[i].lane);
    return out;
  };
  using Lanes = std::set<uint32_t>;
  EXPECT_EQ(lanes(CopyShape::C64x128bWarpx2_01_23, 3), (Lanes{3, 35}));
  EXPECT_EQ(lanes(CopyShape::C64x128bWarpx2_01_23, 32), (Lanes{64, 96}));
  EXPECT_EQ(lanes(CopyShape::C64x128bWarpx2_02_13, 3), (Lanes{3, 67}));
  EXPECT_EQ(lanes(CopyShape::C64x128bWarpx2_02_13, 32), (Lanes{32, 96}));
  EXPECT_EQ(lanes(CopyShape::C128x256b, 77), (Lanes{77}));
}

TEST(TmemCopy, fillsItsColumnsOnce) {
  for (unsigned i = 0; i < 5; ++i) {
    const auto shape = static_cast<CopyShape>(i);
    EXPECT_EQ(parseCopyShape(stringify(shape)), shape);
    std::set<uint32_t> cells;
    for (unsigned row = 0; row < copyRows(shape); ++row)
      for (unsigned word = 0; word < copyColumns(shape); ++word) {
        const CopyCells c = copyCells(shape, row, word);
        for (unsigned k = 0; k < c.count; ++k)
          EXPECT_TRUE(cells.insert(c.cells[k].pack()).second);
      }
    EXPECT_EQ(cells.size(), 128u * copyColumns(shape)) << stringify(shape);
  }
}

} // namespace
