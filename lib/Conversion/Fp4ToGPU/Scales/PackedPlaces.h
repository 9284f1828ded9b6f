//===- PackedPlaces.h - Places of the weights of tiles in memory ----------===//
//
// The tiles of prepacked weights are whole, and their weights may end within the last ones. Each of
// several groups of rows has rows of tiles of its own.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Int32.h"
#include "SmallBuilders.h"

#include "fp4/ISA/BufferShape.h"
#include "fp4/ISA/WeightLayout.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinTypes.h"

namespace fp4 {

/// Weights in memory and the tiles that they fill.
struct PackedPlaces {
  int64_t rows, columns, tileColumns, groups;

  PackedPlaces(mlir::RankedTensorType data, int64_t tileColumns, std::optional<int64_t> groups)
      : rows(data.getDimSize(0)), columns(data.getDimSize(1)), tileColumns(tileColumns),
        groups(groups.value_or(1)) {}

  int64_t rowsOfGroup() const { return rows / groups; }
  int64_t tilesOfGroup() const { return hw::weightTilesOfRows(rowsOfGroup()); }
  int64_t tilesPerRow() const { return hw::quotientUp(columns, tileColumns); }
  int64_t tiles() const { return groups * tilesOfGroup() * tilesPerRow(); }
  bool endsInRows() const { return rowsOfGroup() % hw::weightTileRows != 0; }
  bool endsInColumns() const { return columns % tileColumns != 0; }
  bool endsInTile() const { return endsInRows() || endsInColumns(); }
  /// Bytes of a row of codes.
  int64_t codePitch() const { return hw::paddedRowBytes(columns); }

  /// The first row of a tile, in memory and among those of its group.
  Int32 firstRow(Int32 tile) const {
    Int32 ofTiles = tile / tilesPerRow();
    if (!endsInRows() || groups == 1)
      return ofTiles * hw::weightTileRows;
    return ofTiles / tilesOfGroup() * rowsOfGroup() + firstInGroup(tile);
  }
  Int32 firstInGroup(Int32 tile) const {
    return tile / tilesPerRow() % tilesOfGroup() * hw::weightTileRows;
  }
  Int32 column(Int32 tile) const { return tile % tilesPerRow() * tileColumns; }

  /// The weight in row `place` + `below` of a tile and in `column` + `behind` exists; null where
  /// all weights do.
  mlir::Value exists(mlir::ImplicitLocOpBuilder &b, Int32 tile, Int32 place, int64_t below,
                     Int32 column, int64_t behind) const {
    mlir::Value ofRow, ofColumn;
    if (endsInRows())
      ofRow = firstInGroup(tile) + place + below < rowsOfGroup();
    if (endsInColumns())
      ofColumn = column + behind < columns;
    if (ofRow && ofColumn)
      return mlir::arith::AndIOp::create(b, ofRow, ofColumn);
    return ofRow ? ofRow : ofColumn;
  }
};

/// The `type` at `pointer`, or zero where it does not exist. Then the kernel reads the one at
/// `base`.
inline mlir::Value loadExisting(mlir::ImplicitLocOpBuilder &b, mlir::Type type, mlir::Value exists,
                                mlir::Value pointer, mlir::Value base, unsigned alignment) {
  if (!exists)
    return load(b, type, pointer, alignment);
  mlir::Value from = mlir::arith::SelectOp::create(b, exists, pointer, base);
  mlir::Value zero = mlir::arith::ConstantOp::create(b, b.getZeroAttr(type));
  return mlir::arith::SelectOp::create(b, exists, load(b, type, from, alignment), zero);
}

/// Stores `value` where its place exists.
inline void storeExisting(mlir::ImplicitLocOpBuilder &b, mlir::Value value, mlir::Value exists,
                          mlir::Value pointer, unsigned alignment) {
  if (!exists)
    return store(b, value, pointer, alignment);
  emitWhen(b, exists, [&] { store(b, value, pointer, alignment); });
}

} // namespace fp4
