//===- PipeTranspose.cpp - Columns of a tile as rows of an operand ---------===//
//
// Labels such as (C677) refer to PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Pipe/IR/PipeMma.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

void TransposeTileOp::getAsmResultNames(OpAsmSetValueNameFn name) {
  if (getResult())
    name(getResult(), "transposed");
}
Value TransposeTileOp::getFilledTile() { return getResult(); }
Value TransposeTileOp::getSlot() { return getDest(); }
int64_t TransposeTileOp::getUnitBytes() { return 0; }
Value TransposeTileOp::getUnits() { return {}; }
void TransposeTileOp::fillSlot(OpBuilder &builder, Value slot, Value) {
  create(builder, getLoc(), Type(), getSource(), getFirst(), slot);
}

/// (C677) Returns true for rows of panels as wide as their swizzle of 64 or 128 bytes.
static bool hasPanels(SharedType tile) {
  Layout layout = tile.getLayout();
  return (layout == Layout::Swizzle64B || layout == Layout::Swizzle128B) &&
         tile.getColumns() % swizzleWidth(layout) == 0;
}

LogicalResult TransposeTileOp::verify() {
  constexpr int64_t rowsOfWarp = 32, columnsOfWarp = 16;
  if (bool(getResult()) == bool(getDest()))
    return withNote(emitOpError() << "must return a tile or fill a destination",
                    "write a result, or 'into %slot', and not both"); // (C677)
  SharedType source = getSource().getType(), tile = getTileType();
  int64_t first = getFirst(), columns = tile.getRows();
  bool fits = isa<Float8E4M3FNType, Float8E5M2Type>(source.getElementType()) && hasPanels(source) &&
              source.getRows() % rowsOfWarp == 0 && first >= 0 && first % columnsOfWarp == 0 &&
              columns % columnsOfWarp == 0 && first + columns <= source.getColumns();
  if (!fits)
    return withNote(emitOpError() << "source must have 8-bit floats in a multiple of 32 rows, in "
                                     "panels of 64 or 128, and "
                                  << columns << " columns from a multiple of 16 on, but got "
                                  << source << " from " << first << " on",
                    "load panels that are as wide as the swizzle"); // (C677)
  if (hasPanels(tile) && tile.getElementType() == source.getElementType() &&
      tile.getColumns() == source.getRows())
    return success();
  return withNote(emitOpError() << "tile must have " << source.getRows() << " columns of "
                                << source.getElementType() << " in panels of 64 or 128, but got "
                                << tile,
                  "a row of the tile has a column of the source"); // (C677)
}
