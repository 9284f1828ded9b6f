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

LogicalResult WriteOp::verify() {
  RankedTensorType tile = getValue().getType();
  FragmentType fragment = getFragment().getType();
  int64_t first = int64_t(getFirst()), end = first + tile.getDimSize(1);
  if (distributionOf(tile).getKind() == fragment.getKind() && fragment.getElementType().isF32() &&
      tile.getDimSize(0) == fragment.getShape()[0] && end <= fragment.getShape()[1] &&
      first % int64_t(hw::fragmentTileColumns) == 0)
    return success();
  return withNote(emitOpError() << "value must have the distribution and rows of " << fragment
                                << " and lie within it from a multiple of 8 columns on, but got "
                                << tile << " from column " << first << " on",
                  "write columns that pipe.read reads of the same fragment"); // (C661)
}

LogicalResult ReduceRowsOp::verify() {
  auto value = getValue().getType(), result = getResult().getType();
  int64_t columns = result.getDimSize(1);
  if (distributionOf(value).isFragment() && distributionOf(value) == distributionOf(result) &&
      (columns == 1 || columns == int64_t(hw::fragmentTileColumns)))
    return success();
  return withNote(emitOpError() << "result must have the distribution of " << value
                                << ", wgmma or mma_sync, and 1 column or 8, but got " << result,
                  "1 column has the whole rows, and 8 what each thread has of them"); // (C662)
}

LogicalResult BroadcastRowsOp::verify() {
  RankedTensorType value = getValue().getType(), result = getResult().getType();
  if (areRowNumbers(value) && distributionOf(value) == distributionOf(result) &&
      value.getElementType() == result.getElementType())
    return success();
  return withNote(emitOpError() << "value must have 1 column of the distribution and elements of "
                                << result << ", but got " << value,
                  "pipe.reduce_rows makes one column"); // (C663)
}

LogicalResult ElementIndexOp::verify() {
  if (distributionOf(getResult().getType()).getKind() == FragmentKind::Wgmma)
    return success();
  return withNote(emitOpError() << "result must be of wgmma, but got " << getResult().getType(),
                  "write #pipe.distribution<wgmma>"); // (C664)
}
