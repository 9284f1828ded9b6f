//===- GroupTiles.h - Tiles of groups of rows -----------------------------===//
//
// The rows of groups that only the device knows are cut into tiles, none of which has rows of two
// groups. A small kernel makes a table of them, by which the kernel behind it, of a GEMM or of a
// quantizer, needs neither a search nor a branch and skips groups without rows.
//
// A place of the table has four words of 32 bits: the first row of the tile, the end of its group,
// the number of the group, and the row of the scales of the tile in the list of tiles, where each
// group has whole scale tiles. The place behind the last one begins with the number of tiles that
// there are.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "GroupCheck.h"
#include "Int32.h"

namespace fp4 {

/// The order of the tiles of a table. Among groups of several CTAs of the kernel it holds for those
/// of each CTA.
enum class TileOrder : uint8_t {
  Groups,        ///< as groups are
  LargestGroups, ///< those of the largest group first
  Numbers,       ///< first tiles of all groups, then second ones
};

struct GroupTiles {
  GroupOffsets offsets;
  int64_t rows; ///< rows of a tile
  Int32 places; ///< number of the table's places for tiles: every group may end within a tile
  /// The places behind that number have the first row and the end of what lies before each group,
  /// and of what lies behind the last one.
  bool hasGaps = false;
  /// Rows behind the last group are one more group.
  bool hasRest = false;
  TileOrder order = TileOrder::Groups;

  /// The place of the number of tiles, and the first of what lies before groups.
  Int32 countPlace() const { return places; }
  Int32 gapPlace() const { return places + 1; }

  /// Threads of a CTA of the kernel, each of which writes the tiles of one group.
  static constexpr int64_t kThreads = 128;
};

/// Emits the kernel, into a kernel of so many threads. Lanes of every warp add up the
/// rows of all groups, and each thread writes the tiles of one. Offsets that decrease or exceed the
/// rows are left in `report`. Wrong offsets make groups empty or shorter, so that no tile is
/// outside of the operands and no two groups have a row in common.
void emitGroupTiles(mlir::ImplicitLocOpBuilder &b, const GroupTiles &tiles, mlir::Value report,
                    mlir::Value table);

} // namespace fp4
