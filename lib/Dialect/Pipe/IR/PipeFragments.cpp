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
#include "fp4/ISA/WeightLayout.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Columns of the smallest part of a fragment, of which a thread has 4 elements.
static constexpr int64_t kFragmentColumns = 8, kElementsOfPart = 4;

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
// Elements
//===----------------------------------------------------------------------===//

void FragmentOp::getAsmResultNames(OpAsmSetValueNameFn name) { name(getResult(), "acc"); }

LogicalResult FragmentOp::verify() {
  if (getType().getElementType().isF32())
    return success();
  return withNote(emitOpError() << "accumulator must have elements of f32, but got " << getType(),
                  "e4m3 fragments hold weights, which pipe.dequantize makes"); // (C313)
}

LogicalResult ReadFragmentOp::verify() {
  FragmentType acc = getAccumulator().getType();
  int64_t first = getColumn(), columns = getResult().getType().getNumElements() * 2;
  if (acc.getShape()[0] != kFragmentRows || !acc.getElementType().isF32())
    return withNote(
        emitOpError() << "accumulator must have " << kFragmentRows << " rows of f32, but got "
                      << acc,
        "take an accumulator of wgmma; pipe.read_warp_fragment reads one of mma_sync"); // (C182)
  if (first < 0 || first % kFragmentColumns || columns % kFragmentColumns ||
      first > acc.getShape()[1] - columns)
    return withNote(
        emitOpError() << "columns must be multiples of " << kFragmentColumns << " within the "
                      << acc.getShape()[1] << " of the accumulator, but got " << columns << " from "
                      << first << " on",
        "read an element of a thread for each 2 columns, from a multiple of 8 on"); // (C182)
  return success();
}

void StageFragmentOp::getAsmResultNames(OpAsmSetValueNameFn name) {
  if (getResult())
    name(getResult(), "staged");
}
Value StageFragmentOp::getFilledTile() { return getResult(); }
Value StageFragmentOp::getSlot() { return getDest(); }
int64_t StageFragmentOp::getUnitBytes() { return 0; }
Value StageFragmentOp::getUnits() { return {}; }
void StageFragmentOp::fillSlot(OpBuilder &builder, Value slot, Value) {
  create(builder, getLoc(), Type(), getValue(), slot);
}

LogicalResult StageFragmentOp::verify() { // (C325)
  FailureOr<SharedType> filled = verifyFilled(*this, getResult(), getDest());
  if (failed(filled))
    return failure();
  SharedType tile = *filled;
  VectorType vector = getValue().getType();
  if (tile.getElementType() == vector.getElementType() && tile.getLayout() != Layout::Linear &&
      tile.getInnerBytes() == swizzleWidth(tile.getLayout()) &&
      tile.getColumns() == 2 * vector.getNumElements() && tile.getRows() % kFragmentRows == 0 &&
      hasWarpgroups(*this, tile.getRows()))
    return success();
  return withNote(
      emitOpError() << "tile must have " << kFragmentRows
                    << " rows for each warpgroup of its role and two columns for each element of "
                    << vector << ", as wide as its swizzle, but got " << tile,
      "store to a tile of these rows and columns; more columns take several operations");
}

static LogicalResult verifyParts(Operation *op, VectorType type) {
  if (type.getNumElements() % kElementsOfPart == 0)
    return success();
  return withNote(op->emitOpError() << "vector must have a multiple of " << kElementsOfPart
                                    << " elements, but got " << type,
                  "split the accumulator at multiples of 8 columns");
}

LogicalResult FragmentFactorsOp::verify() {
  GlobalType global = getGlobal().getType();
  Type element = getResult().getType().getElementType();
  if (global.getRank() != 2 || global.getElementType() != element)
    return withNote(emitOpError() << "buffer must have 2 dimensions of " << element << ", but got "
                                  << global,
                    "pass a buffer of that element type, in rows and columns"); // (C183)
  return failure(failed(verifyColumns(*this, getGlobal())) ||        // (C492)
                 failed(verifyRows(*this, global, getRows())) ||     // (C183)
                 failed(verifyParts(*this, getResult().getType()))); // (C183)
}

LogicalResult RowPowersOp::verify() {
  GlobalType weights = getWeights().getType();
  bool areTiles = weights.getRank() == 2 && weights.getElementType().isInteger(8) &&
                  weights.getLayout() == Layout::Linear &&
                  weights.getShape()[1] == hw::byteTileBytes;
  if (!areTiles)
    return withNote(emitOpError() << "weights must be i8 in linear rows of " << hw::byteTileBytes
                                  << " bytes, but got " << weights,
                    "fp4.prepack makes such weights for e4m3, a row for each tile"); // (C605)
  return verifyParts(*this, getResult().getType());                                  // (C605)
}

int64_t StoreFragmentOp::getStagedBytes() {
  auto region = (*this)->getParentOfType<RoleRegionOp>();
  int64_t threads = getStaged() && region ? region.getRole().getNumThreads() : 0;
  return threads * cast<VectorType>(getValue().getType()).getNumElements() * 2;
}

/// Each warp reduces by itself, so that not all of a warpgroup may be the last.
static bool isOfLastToReduce(Operation *op) {
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
    if (llvm::any_of(parent->getOperands(),
                     [](Value value) { return value.getDefiningOp<CountPartialOp>(); }))
      return true;
  return false;
}

/// (C333)
static LogicalResult verifyStaged(StoreFragmentOp op) {
  if (isOfLastToReduce(op))
    return withNote(
        op.emitOpError("staged must be executed by whole warpgroups, but is by the warps that "
                       "are the last to arrive"),
        "leave 'staged' out where reduced results are stored"); // (C333)
  constexpr int64_t warpgroup = 128, together = 8;
  auto type = cast<VectorType>(op.getValue().getType());
  auto region = op->getParentOfType<RoleRegionOp>();
  bool hasGroups = !region || (region.getRole().getNumThreads() % warpgroup == 0 &&
                               region.getRole().getFirstWarp() % 4 == 0);
  if (op.getTransposed() && hasGroups && type.getElementTypeBitWidth() == 16 &&
      type.getNumElements() % together == 0 && op.getDest().getType().getShape()[1] % together == 0)
    return success();
  return withNote(op.emitOpError()
                      << "staged must be transposed, in whole warpgroups, of a multiple of "
                      << together << " elements of 16 bits and of a buffer with a multiple of "
                      << together << " columns, but got " << type << " and "
                      << op.getDest().getType(),
                  "leave 'staged' out, and each thread stores what it has"); // (C333)
}

LogicalResult StoreFragmentOp::verify() {
  GlobalType dest = getDest().getType();
  auto type = cast<VectorType>(getValue().getType());
  if (dest.getRank() != 2 || dest.isScales() || dest.getElementType() != type.getElementType())
    return withNote(emitOpError() << "buffer must have 2 dimensions of " << type.getElementType()
                                  << ", but got " << dest,
                    "convert the vector to the elements of the buffer first"); // (C184)
  if (getStaged() && failed(verifyStaged(*this)))
    return failure();
  if (failed(verifyColumns(*this, getDest()))) // (C492)
    return failure();
  bool endsEarly = getRows() && !ShapedType::isDynamic(dest.getShape()[0]);
  return failure((!endsEarly && failed(verifyRows(*this, dest, getRows()))) || // (C184)
                 failed(verifyParts(*this, type)));                            // (C184)
}

//===----------------------------------------------------------------------===//
// Parts of a fragment
//===----------------------------------------------------------------------===//

/// (C192) `type`, of every thread of the role, from `column` on within a row of `workspace`.
static LogicalResult verifyWorkspace(Operation *op, GlobalType workspace, VectorType type,
                                     int64_t column) {
  if (failed(verifyParts(op, type))) // (C192)
    return failure();
  auto region = op->getParentOfType<RoleRegionOp>();
  int64_t threads = region ? region.getRole().getNumThreads() : 1;
  int64_t columns = workspace.getRank() == 2 ? workspace.getShape()[1] : 0;
  if (workspace.getElementType().isF32() && workspace.getLayout() == Layout::Linear &&
      column >= 0 && column % kElementsOfPart == 0 &&
      column + threads * type.getNumElements() <= columns)
    return success();
  return withNote(op->emitOpError()
                      << "buffer must be f32 with the " << type << " of " << threads
                      << " threads from column " << column << " of a row on, but got " << workspace,
                  "make the workspace wider, a row for every part of all threads"); // (C192)
}

LogicalResult LeaveFragmentOp::verify() {
  return verifyWorkspace(*this, getDest().getType(), cast<VectorType>(getValue().getType()),
                         getColumn());
}

LogicalResult FetchFragmentOp::verify() {
  return verifyWorkspace(*this, getSource().getType(), cast<VectorType>(getResult().getType()),
                         getColumn());
}
