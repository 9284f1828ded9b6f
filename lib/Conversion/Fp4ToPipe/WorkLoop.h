//===- WorkLoop.h - The works of a GEMM's kernel --------------------------===//
//
// The walk of a CTA over its works: tiles of the result, split-K parts of tiles, tiles of groups,
// and shares of tiles. A static schedule, CLC or a table (GroupTable.cpp, StreamTable.cpp) says
// which they are. CTAs of a cluster share the loads of a tile, are a pair, or have split-K parts of
// a tile. With swapped operands of tcgen05, m goes over columns of the result, and n over its rows.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "GemmKernel.h"

namespace fp4 {

/// The part of a tile of the result that a CTA has.
struct Tile {
  using Value = mlir::Value;
  /// k tiles.
  struct Range {
    Value begin, end;
  };
  /// Values that a tile of a group has of its own: the end of its rows, and its alphas; null where
  /// these are the whole matmul's. Further its group, and the distance of its scales behind its
  /// rows in the list of all groups; null without groups.
  struct OfGroup {
    Value rowLimit, alpha, alpha2, group, scaleShift;
  };
  /// A work of a GEMM whose workers share tiles, as its table says (StreamTable.cpp).
  struct Share {
    Value firstSums, part, parts, counter;
  };

  Value row, column; ///< first row and first column of the result
  /// The first of each part whose sums have factors of their own (Gemm::partRows), or one row.
  llvm::SmallVector<Value> rows;
  Value rowA, rowB;           ///< first row of A and of B
  Value scaleRowA, scaleRowB; ///< first row of the scales of A and of B
  Value blockA, blockB;       ///< the scale tiles of 128 rows where these are
  Value bScaleRow;            ///< row of `column` within its scale tile; null when always 0
  OfGroup group;
  Range k;
  /// Reversal of the order of columns, where accumulators alternate: even and odd tiles of a CTA
  /// begin at different ends; else null.
  Value flip;
  Value part;  ///< place of the CTA among those of the tile; null where there is one
  Value index; ///< the tile among those of the result; null where no workspace has its sums
  Share share; ///< share of a worker, for shared tiles
  /// Powers of two of the rows that a thread has of each part, those of the second GEMM of a dual
  /// one behind those of the first; empty where rows have none.
  llvm::SmallVector<Value> powers;
};

class WorkLoop {
public:
  using Value = mlir::Value;
  explicit WorkLoop(GemmKernel &kernel) : b(kernel.b), gemm(kernel.gemm), args(kernel.args) {}

  /// Counts tiles along m. Before, reports searched groups that do not fit, and clears rows of no
  /// group. Called before anything else of a kernel.
  void countTilesM();
  /// The rest of the kernel: `body` for every tile, and every split-K part, that this CTA works on.
  using TileBody = llvm::function_ref<void(Tile tile)>;
  void forEachTile(TileBody body);

  /// Columns of the accumulators of all tiles, where they are dynamic; else null.
  Value givenN() const { return gemm.swapsOperands() ? args.rows : args.columns; }
  Value endOfColumns(const Tile &tile) const {
    return gemm.swapsOperands() && tile.group.rowLimit ? tile.group.rowLimit
           : givenN()                                  ? givenN()
                                                       : b.constant(gemm.n());
  }

  Value numM; ///< tiles along m, or works of a table
  /// Places of this CTA among those that share loads, or are a pair; null where it is alone.
  Value placeM, placeN;

private:
  /// The first row of a tile, the end of the rows of its group, the group, and the first row of
  /// scales, null where these follow the rows.
  struct TileOfGroup {
    Value row, rowLimit, group, scaleRow;
  };
  struct Rows {
    Value begin, end;
  };
  struct Group {
    Rows rows;
    Value tilesBefore; ///< tiles along m of the groups before
  };
  Tile findTile(Value m, Value n);
  Value flipOf(Value turn);
  void findRange(Tile &tile, Value &m, Value &n);
  void placeTile(Tile &tile, Value m, Value n);
  void moveToGroup(Tile &tile, Value group);
  Tile::Share findShare(Value &m, Value &n, Tile::Range &k);
  Tile::Range rangeOf(Value part);
  void findPlaces();
  Value placeIn(mlir::gpu::Dimension dimension, int64_t ctas);
  Value countTilesN();
  Value countTilesOfGroups();
  TileOfGroup tileOfGroup(Value place);
  Value alphaOfGroup(Value alphas, Value group);
  Value lastPlace();
  Rows rowsOfGroup(Value group, Value before);
  Value rowAt(Value words, int64_t number);
  void clearRows();
  void clearSearched();

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  Value numTilesN;
  Value placeOfRange;              ///< place of this CTA's split-K part in the cluster
  llvm::SmallVector<Group> groups; ///< searched groups, once their tiles are counted
};

} // namespace fp4
