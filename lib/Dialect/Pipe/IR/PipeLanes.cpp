//===- PipeLanes.cpp - Sums of TMEM lanes, promoted to fp32 ---------------===//
//
// Verifiers. Labels such as (C373) refer to PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Pipe/IR/PipeLanes.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"

#include "VerifyFragment.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

#define GET_OP_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeLaneOps.cpp.inc"

static LogicalResult requireLanes(Operation *op, FragmentType fragment) {
  if (fragment.getKind() == FragmentKind::Lanes)
    return success();
  return withNote(op->emitOpError()
                      << "accumulator must be a fragment of lanes, but got " << fragment,
                  "write !pipe.fragment<128xNxf32, lanes>");
}

LogicalResult LaneColumnOp::verify() {
  auto tile = dyn_cast<TmemType>(getAccumulator().getType());
  if (!tile)
    return requireLanes(*this, cast<FragmentType>(getAccumulator().getType())); // (C374)
  int64_t groups = std::max<int64_t>(1, groupsOfRole(*this));
  if (tile.isAccumulator() && !tile.isOfHalves() && tile.getColumns() % groups == 0)
    return success();
  return withNote(emitOpError() << "accumulator in tensor memory must have columns for each of "
                                << groups << " warpgroups, but got " << tile,
                  "take an accumulator whose columns the warpgroups of the role divide, of 128 "
                  "rows or 256 of a pair"); // (C374)
}

LogicalResult LaneScaleOp::verify() {
  if (failed(verifyScaleBuffers(*this, getA(), getB(), bool(getRows())))) // (C375)
    return failure();
  int64_t columns = getColumns();
  if (columns < 1 || kPromotedBlock % columns)
    return withNote(
        emitOpError() << "columns must divide " << kPromotedBlock << ", but got " << columns,
        "a segment of columns has one scale of b: take a power of two up to 128"); // (C375)
  return success();
}

LogicalResult LaneTileScaleOp::verify() {
  SharedType a = getA().getType(), b = getB().getType();
  if (failed(verifyScaleTiles(*this, a, b))) // (C376)
    return failure();
  if (a.getRows() != kMmaM)
    return withNote(emitOpError() << "a must have " << kMmaM << " rows, but got " << a,
                    "load the scales of all 128 rows"); // (C376)
  int64_t groups = groupsOfRole(*this);
  if (b.getRows() == 1 || groups == 0 || b.getRows() == groups)
    return success();
  return withNote(emitOpError() << "b must have one row, or one for each of the " << groups
                                << " warpgroups of its role, but got " << b,
                  "load one row of scales for all columns, or a row for each warpgroup"); // (C376)
}

LogicalResult PromoteLanesOp::verify() {
  FragmentType acc = getAccumulator().getType();
  TmemType sums = getSums().getType();
  if (failed(requireLanes(*this, acc))) // (C377)
    return failure();
  int64_t groups = groupsOfRole(*this), columns = acc.getShape()[1];
  bool fits = groups ? sums.getColumns() == groups * columns : sums.getColumns() % columns == 0;
  if (!sums.isAccumulator() || !fits)
    return withNote(
        emitOpError() << "sums must have the " << columns
                      << " columns of the accumulator for each warpgroup of the role, but got "
                      << sums,
        "let the sums have the columns of all warpgroups side by side"); // (C377)
  return success();
}
