//===- PipeFragments.cpp - MMAs with accumulators in registers ------------===//
//
// Verifiers of the ops that make, read and store fragments. Labels such as (C182) refer to
// PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "VerifyFragment.h"
#include "VerifyIteration.h"
#include "VerifyRows.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Elements that a thread stores in a workspace at a time.
static constexpr int64_t kElementsOfPart = 4;

//===----------------------------------------------------------------------===//
// Rounded fragments
//===----------------------------------------------------------------------===//

bool fp4::pipe::isRoundedA(Type type) {
  DistributionAttr distribution = distributionOf(type);
  Type element = getElementTypeOrSelf(type);
  if (!distribution || !isa<Float8E4M3FNType, Float4E2M1FNType>(element))
    return false;
  if (distribution.getKind() == FragmentKind::Lanes)
    return vectorOfThread(type).getNumElements() * element.getIntOrFloatBitWidth() % 32 == 0;
  return distribution.getKind() == FragmentKind::Wgmma && isa<Float8E4M3FNType>(element);
}

VectorType fp4::pipe::wordsOfThread(Type type) {
  VectorType elements = vectorOfThread(type);
  return VectorType::get({elements.getNumElements() * elements.getElementTypeBitWidth() / 32},
                         IntegerType::get(type.getContext(), 32));
}

//===----------------------------------------------------------------------===//
// Rows of zeros
//===----------------------------------------------------------------------===//

LogicalResult ClearRowsOp::verify() {
  GlobalType dest = getDest().getType();
  if (dest.getRank() == 2 && !dest.hasDynamicColumns() && !dest.isScales() &&
      dest.getElementType().getIntOrFloatBitWidth() % 8 == 0)
    return success();
  return withNote(
      emitOpError() << "destination must be a linear buffer of rank 2 with static columns and "
                    << "elements of whole bytes, but got " << dest,
      "packed and tiled buffers are cleared on the host"); // (C352)
}

LogicalResult CheckGroupsOp::verify() {
  GlobalType offsets = getOffsets().getType(), report = getReport().getType();
  bool isMatrix = offsets.getRank() == 2 && offsets.getElementType().isInteger(32) &&
                  !ShapedType::isDynamic(offsets.getShape()[0]);
  if (!isMatrix ||
      !(offsets.getShape()[1] == 4 || (offsets.getShape()[1] == 2 && offsets.getShape()[0] >= 2)))
    return withNote(emitOpError() << "offsets must be a static buffer of i32 with two columns and "
                                     "two rows or "
                                  << "more, or with four columns, but got " << offsets,
                    "a row has the first row and the end of a group, or four numbers of a group's "
                    "tile"); // (C455)
  if (report.getRank() != 1 || report.getShape()[0] != 8 || !report.getElementType().isInteger(64))
    return withNote(emitOpError() << "report must be a buffer of 8 x i64, but got " << report,
                    "allocate 8 x i64, of which the kernel writes what was wrong"); // (C455)
  return success();
}

//===----------------------------------------------------------------------===//
// Parts of a fragment
//===----------------------------------------------------------------------===//

/// (C192)
LogicalResult fp4::pipe::verifyWorkspace(Operation *op, GlobalType workspace, RankedTensorType tile,
                                         int64_t column) {
  if (!distributionOf(tile).isFragment())
    return withNote(op->emitOpError() << "tile must be of wgmma or mma_sync, but got " << tile,
                    "lanes are stored and fetched at a column that is a value"); // (C192)
  VectorType type = vectorOfThread(tile);
  auto region = op->getParentOfType<RoleRegionOp>();
  int64_t threads = region ? region.getRole().getNumThreads() : 1;
  int64_t columns = workspace.getRank() == 2 ? workspace.getShape()[1] : 0;
  if (workspace.getElementType().isF32() && workspace.getLayout() == Layout::Linear &&
      column >= 0 && column % kElementsOfPart == 0 &&
      column <= columns - threads * type.getNumElements())
    return success();
  return withNote(op->emitOpError()
                      << "buffer must be f32 with the " << type << " of " << threads
                      << " threads from column " << column << " of a row on, but got " << workspace,
                  "make the workspace wider, a row for every part of all threads"); // (C192)
}
