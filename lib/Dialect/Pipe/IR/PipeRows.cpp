//===- PipeRows.cpp - Ops on the rows of tiles in registers ---------------===//
//
// Labels such as (C661) refer to PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Pipe/IR/PipeRows.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/ISA/FragmentLayout.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

#define GET_OP_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeRowOps.cpp.inc"

void WriteOp::getAsmResultNames(OpAsmSetValueNameFn name) {
  if (getResult())
    name(getResult(), "written");
}
Value WriteOp::getFilledTile() { return getResult(); }
/// A fragment is no tile of a stage.
Value WriteOp::getSlot() { return getFragmentType() ? Value() : getDest(); }
int64_t WriteOp::getUnitBytes() { return 0; }
Value WriteOp::getUnits() { return {}; }
void WriteOp::fillSlot(OpBuilder &builder, Value slot, Value) {
  create(builder, getLoc(), Type(), getValue(), slot, IntegerAttr());
}

/// (C673) Operand A in tensor memory.
static LogicalResult verifyTmemWrite(WriteOp op) {
  if (bool(op.getResult()) == bool(op.getDest()) || op.getFirst())
    return withNote(op.emitOpError("into tensor memory must return a tile or fill a slot, all of "
                                   "it"),
                    "write '-> TILE' or ', %slot', and no column"); // (C673)
  auto tile = cast<TmemType>(op.getResult() ? op.getResult().getType() : op.getDest().getType());
  RankedTensorType value = op.getValue().getType();
  bool isLanes = distributionOf(value).getKind() == FragmentKind::Lanes;
  if (!isLanes || !tile.isOperand() || tile.getElementType() != value.getElementType() ||
      tile.getShape() != value.getShape())
    return withNote(op.emitOpError()
                        << "value must be lanes with the shape and elements of operand " << tile
                        << ", but got " << value,
                    "round sums to the elements of the operand first"); // (C673)
  int64_t columns = value.getDimSize(1);
  if (llvm::isPowerOf2_64(uint64_t(columns)))
    return success();
  return withNote(op.emitOpError()
                      << "value must have a power of two of columns, but got " << columns,
                  "write several operands, which as many multiplications take"); // (C673)
}

LogicalResult WriteOp::verify() {
  FragmentType fragment = getFragmentType();
  if (!fragment)
    return verifyTmemWrite(*this);
  if (!getFirst() || getResult())
    return withNote(emitOpError("into a fragment must have a column, and no result"),
                    "write '[0]' behind the fragment"); // (C661)
  RankedTensorType tile = getValue().getType();
  int64_t first = int64_t(*getFirst()), end = first + tile.getDimSize(1);
  if (tile.getElementType().isF32() && distributionOf(tile).getKind() == fragment.getKind() &&
      fragment.getElementType().isF32() && tile.getDimSize(0) == fragment.getShape()[0] &&
      end <= fragment.getShape()[1] && first % int64_t(hw::fragmentTileColumns) == 0)
    return success();
  return withNote(emitOpError() << "value must have the distribution and rows of " << fragment
                                << " and lie within it from a multiple of 8 columns on, but got "
                                << tile << " from column " << first << " on",
                  "write columns that pipe.read reads of the same fragment"); // (C661)
}

LogicalResult ReduceRowsOp::verify() {
  auto value = getValue().getType(), result = getResult().getType();
  int64_t columns = result.getDimSize(1);
  bool hasRows = distributionOf(value).getKind() != FragmentKind::Columns &&
                 value.getDimSize(1) % int64_t(hw::fragmentTileColumns) == 0;
  if (hasRows && distributionOf(value) == distributionOf(result) &&
      (columns == 1 || columns == int64_t(hw::fragmentTileColumns)))
    return success();
  return withNote(emitOpError() << "result must have the distribution of " << value
                                << ", of a multiple of 8 columns and not the columns of threads, "
                                   "and 1 column or 8, but got "
                                << result,
                  "1 column has the whole rows, and 8 what each thread has of them"); // (C662)
}

LogicalResult BroadcastRowsOp::verify() {
  RankedTensorType value = getValue().getType(), result = getResult().getType();
  bool isColumn =
      value.getDimSize(1) == 1 && distributionOf(value).getKind() != FragmentKind::Columns;
  if (isColumn && distributionOf(value) == distributionOf(result) &&
      value.getElementType() == result.getElementType())
    return success();
  return withNote(emitOpError() << "value must have 1 column of the distribution and elements of "
                                << result << ", but got " << value,
                  "pipe.reduce_rows makes one column"); // (C663)
}

LogicalResult ScaleRowsOp::verify() {
  constexpr int64_t unit = 32; // columns of a read
  TmemType tile = getTile().getType();
  RankedTensorType factors = getFactors().getType();
  ArrayRef<int64_t> shape = tile.getShape();
  bool areRows = distributionOf(factors).getKind() == FragmentKind::Lanes &&
                 factors.getDimSize(0) == shape[0] && factors.getDimSize(1) == 1;
  if (areRows && tile.getElementType().isF32() && shape[1] % unit == 0)
    return success();
  return withNote(
      emitOpError() << "factors must be lanes of 1 column with the rows of sums of f32, "
                       "which have a multiple of "
                    << unit << " columns, but got " << factors << " for " << tile,
      "pipe.reduce_rows makes one column"); // (C675)
}

LogicalResult ElementIndexOp::verify() {
  FragmentKind kind = distributionOf(getResult().getType()).getKind();
  if (kind == FragmentKind::Wgmma || kind == FragmentKind::Lanes)
    return success();
  return withNote(emitOpError() << "result must be of wgmma or lanes, but got "
                                << getResult().getType(),
                  "write #pipe.distribution<wgmma> or #pipe.distribution<lanes>"); // (C664)
}
