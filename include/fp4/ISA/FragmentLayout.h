//===- FragmentLayout.h - Accumulators in registers -----------------------===//
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
// Sources: PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma and "Matrix
// Fragments for mma.m16n8k16"; CUTLASS cute/atom/mma_traits_sm90_gmma.hpp, CLayout_64xN.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <cstdint>

namespace fp4::hw {

/// The instruction whose accumulator a fragment is, or `Lanes`: sums of what is read from the TMEM
/// lanes, of which thread r of a warpgroup has TMEM lane r.
enum class FragmentKind : uint8_t { Wgmma, MmaSync, Lanes };

/// Rows of one instruction, and the threads that share them.
constexpr uint32_t fragmentRows(FragmentKind kind) {
  return kind == FragmentKind::Wgmma ? 64 : kind == FragmentKind::MmaSync ? 16 : 128;
}
constexpr uint32_t fragmentThreads(FragmentKind kind) {
  return kind == FragmentKind::Lanes ? fragmentRows(kind) : fragmentRows(kind) * 2;
}
/// Columns of a tile.
inline constexpr uint32_t fragmentTileColumns = 8;

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

/// Elements that each thread has of an accumulator of rows x columns.
constexpr uint32_t fragmentElements(FragmentKind kind, uint32_t rows, uint32_t columns) {
  return rows * columns / fragmentThreads(kind);
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

} // namespace fp4::hw
