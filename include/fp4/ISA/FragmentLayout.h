//===- FragmentLayout.h - Elements of tiles in the registers of threads ----===//
//
// wgmma.mma_async and mma.sync leave D in the registers of their threads, a fragment for each. One
// law holds for both: a warp has 16 rows in tiles of 8 columns. Thread l of the warp has in each
// tile the elements
//
//   i     0            1            2                3
//   row   l / 4        l / 4        l / 4 + 8        l / 4 + 8
//   col   2 (l % 4)    .. + 1       2 (l % 4)        .. + 1
//
// wgmma has 64 rows, 16 for each warp of a warpgroup; mma.sync has 16 rows of one warp. Fragments
// of more rows have those of the first instruction first. Elements are counted one by one, also
// where two of 16 bits share a register.
//
// Other tiles have a row in each thread of a warpgroup, as the TMEM lanes have them. A warp that
// transposes its 32 rows of 32 columns has a column in each thread.
//
// Sources: PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma and "Matrix
// Fragments for mma.m16n8k16"; CUTLASS cute/atom/mma_traits_sm90_gmma.hpp, CLayout_64xN.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <cstdint>

namespace fp4::hw {

/// The distribution of a tile: the instruction whose accumulator it is, or `Lanes`, of which thread
/// r of a warpgroup has TMEM lane r, a row, or `Columns`, of which thread l of each warp of a
/// warpgroup has column l of the rows of its warp, a quarter of all.
enum class FragmentKind : uint8_t { Wgmma, MmaSync, Lanes, Columns };

/// Rows of one instruction, or of `Columns` those of which each warp has one.
constexpr uint32_t fragmentRows(FragmentKind kind) {
  switch (kind) {
  case FragmentKind::Wgmma:
    return 64;
  case FragmentKind::MmaSync:
    return 16;
  case FragmentKind::Lanes:
    return 128;
  case FragmentKind::Columns:
    return 4;
  }
  return 0;
}
/// Threads that share the rows: those of a warp or of a warpgroup.
constexpr uint32_t fragmentThreads(FragmentKind kind) {
  return kind == FragmentKind::MmaSync ? 32 : 128;
}
/// Columns of a tile.
inline constexpr uint32_t fragmentTileColumns = 8;
/// Columns of a tile whose columns the threads of a warp have.
inline constexpr uint32_t transposedColumns = 32;

/// Place of an element: a thread of the warpgroup or warp, and the number of the element there.
struct FragmentPlace {
  uint32_t thread = 0, element = 0;
  constexpr bool operator==(const FragmentPlace &) const = default;
};

/// The place of element (row, column) of an accumulator of `columns` columns.
constexpr FragmentPlace fragmentPlace(FragmentKind kind, uint32_t row, uint32_t column,
                                      uint32_t columns) {
  if (kind == FragmentKind::Lanes)
    return {row, column};
  const uint32_t rows = fragmentRows(kind), tilesPerRow = columns / fragmentTileColumns;
  const uint32_t tile = row / rows * tilesPerRow + column / fragmentTileColumns;
  return {row % rows / 16 * 32 + row % 8 * 4 + column % 8 / 2,
          tile * 4 + row / 8 % 2 * 2 + column % 2};
}

/// The place of element (row, column) of a tile of `rows` rows whose columns threads have.
constexpr FragmentPlace columnPlace(uint32_t row, uint32_t column, uint32_t rows) {
  const uint32_t ofWarp = rows / fragmentRows(FragmentKind::Columns);
  return {row / ofWarp * transposedColumns + column, row % ofWarp};
}

/// Returns true for tiles of one column of a fragment, which all four threads of a row have.
constexpr bool isRowNumber(FragmentKind kind, uint32_t columns) {
  return columns == 1 && (kind == FragmentKind::Wgmma || kind == FragmentKind::MmaSync);
}

/// Elements that each thread has of an accumulator of rows x columns.
constexpr uint32_t fragmentElements(FragmentKind kind, uint32_t rows, uint32_t columns) {
  constexpr uint32_t threadsOfRow = 4;
  const uint32_t copies = isRowNumber(kind, columns) ? threadsOfRow : 1;
  return copies * rows * columns / fragmentThreads(kind);
}

/// Elements along K of a k tile of converted fp4 operands, in instructions of 16, and those that
/// share 32 bits of packed codes.
inline constexpr uint32_t convertedTileK = 128, convertedInstructionK = 16, codesPerWord = 8;

/// The element of such a tile that is the n-th of an instruction. A thread has all the elements of
/// a quarter of a row of A. The even codes of a word of each quarter go into one instruction, the
/// odd ones into the next, so that no code leaves its thread. The order within an instruction does
/// not matter to its sum.
constexpr uint32_t convertedElementOf(uint32_t instruction, uint32_t n) {
  return n / 4 * (convertedTileK / 4) + instruction / 2 * codesPerWord + n % 4 * 2 + instruction % 2;
}

/// Checks that instructions of `kind` make an accumulator of rows x columns. The columns are those
/// of one instruction of wgmma, 8 to 256, and of any number of mma.sync. Fragments of TMEM lanes
/// have 16, 32, 64 or 128 columns, of one scale block.
Status validateFragment(FragmentKind kind, uint32_t rows, uint32_t columns);

/// Checks that threads can have a tile of rows x columns in the distribution `kind`: the rows of
/// one instruction and 1 or a multiple of 8 columns, 128 rows of `Lanes`, or 32 columns and a
/// multiple of 4 rows of `Columns`.
Status validateDistribution(FragmentKind kind, uint32_t rows, uint32_t columns);

} // namespace fp4::hw
