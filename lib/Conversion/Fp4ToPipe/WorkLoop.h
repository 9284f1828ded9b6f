//===- WorkLoop.h - The works of a GEMM's kernel --------------------------===//
//
// The walk of a CTA over its works: tiles of the result, split-K parts of tiles, tiles of groups,
// and shares of tiles. A static schedule, CLC or a table (GroupTable.cpp, StreamTable.cpp) says
// which they are.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "GemmKernel.h"

namespace fp4 {

class WorkLoop {
public:
  using Value = mlir::Value;
  explicit WorkLoop(GemmKernel &kernel)
      : partRows(kernel.gemm.tiling.tileM), b(kernel.b), gemm(kernel.gemm), args(kernel.args) {}

  /// Counts the tiles along m of accumulators in registers: dynamic rows, rows of the table, or a
  /// constant. Called before anything else of such a kernel.
  void countTiles();
  /// The rest of the kernel: `body` for every tile of the result, and of every split-K part, that
  /// this CTA works on.
  void forEachTile(TileBuilder::WorkBody body);

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
  /// A tile of the result, from (row, column) on, and where it begins in rhs and in the scales; the
  /// k tiles of the work.
  struct Tile {
    Value row, column, rowB, scaleRowA, scaleRowB;
    llvm::SmallVector<Value> rows; ///< the first of each part of `partRows`
    OfGroup group;
    Range k;
    Value part;  ///< place of the CTA among those of the tile; null where there is one
    Value index; ///< the tile among those of the result; null where `part` is null
    Share share; ///< share of a worker, for shared tiles
  };
  /// Tile of work (m, n). With groups, m counts the tiles along m of all of them.
  Tile findTile(Value m, Value n);

  /// Work `m` of the table of shares, of which it sets the tile (m, n), the share and the k tiles.
  Share findShare(Value &m, Value &n, Range &k);
  /// The k tiles of part `part` of split-K (numerics::splitRange).
  Range rangeOf(Value part);
  Range allOfK() { return {b.constant(0), countTilesK()}; }
  /// Reports searched groups that do not fit.
  void checkGroups();
  /// The rows between groups, which are of none, become zero.
  void clearRows();
  /// Returns the element of `alphas`, those of one of the GEMMs, for a group; null where a group
  /// has none of its own.
  Value alphaOfGroup(Value alphas, Value group);
  /// Counts the tiles along m of groups. Called before any of them is asked for.
  Value countTilesOfGroups();
  /// Number `column` of row `index` of a table.
  Value entry(Value from, Value index, int64_t column);

  Value numM;       ///< tiles along m
  int64_t partRows; ///< rows of a tile that have an accumulator of their own: all, or fewer

private:
  /// The first row of tile `m`, the end of the rows of its group, and the group.
  struct TileOfGroup {
    Value row, rowLimit, group;
  };
  struct Rows {
    Value begin, end;
  };
  struct Group {
    Rows rows;
    Value tilesBefore; ///< tiles along m of the groups before
  };
  void placeTile(Tile &tile, Value m, Value n);
  TileOfGroup tileOfGroup(Value m);
  Value placeOfRange();
  Value lastPlace();
  Value countWorksN();
  Value countTilesK();
  Rows rowsOfGroup(Value group, Value before);
  Value rowAt(Value words, int64_t number);
  void clearSearched();

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  llvm::SmallVector<Group> groups; ///< searched groups, once their tiles are counted
};

} // namespace fp4
