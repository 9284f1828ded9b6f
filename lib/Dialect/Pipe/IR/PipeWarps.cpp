//===- PipeWarps.cpp - Fragments of warps ---------------------------------===//
//
// Verifiers. Labels such as (C250) refer to PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Pipe/IR/PipeWarps.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"

#include "VerifyFragment.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

#define GET_OP_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeWarpOps.cpp.inc"

/// Rows of one instruction.
static constexpr int64_t kWarpRows = 16;

LogicalResult fp4::pipe::verifyFragments(Operation *op, FragmentType fragment, int64_t rows,
                                         int64_t columns) {
  int64_t high = fragment.getShape()[0], wide = fragment.getShape()[1];
  if (rows <= 0 || columns <= 0 || rows % high || columns % wide)
    return withNote(op->emitOpError() << "tile must consist of whole fragments of " << high << "x"
                                      << wide << ", but has " << rows << "x" << columns,
                    "round the tile up to whole fragments, or take smaller ones");
  auto region = op->getParentOfType<RoleRegionOp>();
  int64_t fragments = rows / high * (columns / wide);
  if (!region || region.getRole().getNumWarps() == fragments)
    return success();
  return withNote(op->emitOpError()
                      << "role must have a warp for each of the " << fragments
                      << " fragments of the tile, but has " << region.getRole().getNumWarps(),
                  "change the warps of the role, or the shape of the fragment");
}

bool PlaceOp::isOfFewRows() {
  auto fragment = dyn_cast<FragmentType>(getAccumulator().getType());
  return fragment && fragment.getKind() == FragmentKind::Wgmma;
}

/// (C374) A transposed fragment whose rows more threads gather.
static LogicalResult verifyFewRows(PlaceOp op) {
  auto fragment = cast<FragmentType>(op.getAccumulator().getType());
  int64_t rows = fragment.getShape()[1];
  if (rows < GatherRowsOp::kRows && llvm::isPowerOf2_64(uint64_t(rows)))
    return success();
  return withNote(op.emitOpError()
                      << "fragment of wgmma must have 8, 16, 32 or 64 columns, but got "
                      << fragment,
                  "take the place of fewer rows than threads gather"); // (C374)
}

/// (C374) Columns that warpgroups divide, or the halves of a pair.
static LogicalResult verifyColumnsOfGroups(PlaceOp op) {
  auto tile = dyn_cast<TmemType>(op.getAccumulator().getType());
  if (!tile)
    return op.isOfFewRows() ? verifyFewRows(op) : success();
  int64_t groups = std::max<int64_t>(1, groupsOfRole(op));
  if (tile.isAccumulator() && tile.getColumns() % groups == 0 &&
      (groups == 1 || !tile.isOfHalves()))
    return success();
  return withNote(op.emitOpError() << "accumulator in tensor memory must have columns for each of "
                                   << groups << " warpgroups, but got " << tile,
                  "take an accumulator whose columns the warpgroups of the role divide, of 128 "
                  "rows or 256 of a pair"); // (C374)
}

LogicalResult PlaceOp::verify() {
  auto acc = dyn_cast<FragmentType>(getAccumulator().getType());
  bool isOfWarps = acc && acc.getKind() == FragmentKind::MmaSync;
  if (isOfWarps != getRows().has_value() || isOfWarps != getColumns().has_value())
    return withNote(emitOpError() << "a tile must come with a fragment of mma_sync, but got "
                                  << (getRows() ? "one" : "none") << " with "
                                  << getAccumulator().getType(),
                    "write 'in ROWS by COLUMNS' of the tile that warps share"); // (C253)
  if (!isOfWarps)
    return verifyColumnsOfGroups(*this);
  return verifyFragments(*this, acc, int64_t(*getRows()), int64_t(*getColumns())); // (C253)
}

//===----------------------------------------------------------------------===//
// Rows of the fragments of all warps
//===----------------------------------------------------------------------===//

int64_t GatherRowsOp::getStagedBytes() {
  RankedTensorType type = getSegment().getType();
  return kRows *
         int64_t(llvm::alignTo(type.getDimSize(1) * type.getElementTypeBitWidth() / 8, kLineBytes));
}

/// Columns of a segment, of which a thread has a row.
static bool isSegment(RankedTensorType type) {
  constexpr int64_t narrow = 32, wide = 64;
  return distributionOf(type).getKind() == FragmentKind::Lanes &&
         (type.getDimSize(1) == narrow || type.getDimSize(1) == wide);
}

/// Columns of a fragment, a power of two, are rows of the result.
static LogicalResult verifyTransposed(GatherRowsOp op) {
  constexpr int64_t fewest = 8, most = 128;
  RankedTensorType segment = op.getSegment().getType();
  auto part = cast<RankedTensorType>(op.getValues().front().getType());
  int64_t given = part.getDimSize(1);
  if (op.getValues().size() == 1 && part.getElementType() == segment.getElementType() &&
      distributionOf(part).isFragment() && isSegment(segment) && given >= fewest && given <= most &&
      llvm::isPowerOf2_64(uint64_t(given)))
    return success();
  return withNote(op.emitOpError()
                      << "transposed segment must be lanes of 32 or 64 columns, and one value of "
                      << "its type have 8, 16, 32, 64 or 128, but got " << segment << " from "
                      << op.getValues().size() << " of " << part,
                  "transpose 32 or 64 elements of a row at a time"); // (C581)
}

LogicalResult GatherRowsOp::verify() {
  constexpr int64_t warpgroup = 128, ofParts = 32;
  auto region = (*this)->getParentOfType<RoleRegionOp>();
  if (region &&
      (region.getRole().getNumThreads() % warpgroup || region.getRole().getFirstWarp() % 4))
    return withNote(emitOpError() << "role must have whole warpgroups, but is " << region.getRole(),
                    "write a multiple of 4 warps, from a multiple of 4 on"); // (C571)
  if (getValues().empty() || !llvm::all_equal(getValues().getTypes()))
    return withNote(emitOpError("values must be tiles of one type"),
                    "pass at least one tile, and convert the others to its type"); // (C571)
  if (getTransposed())
    return verifyTransposed(*this); // (C581)
  auto part = cast<RankedTensorType>(getValues().front().getType());
  RankedTensorType segment = getSegment().getType();
  int64_t given = vectorOfThread(part).getNumElements() * int64_t(getValues().size());
  if (part.getElementType() == segment.getElementType() && distributionOf(part).isFragment() &&
      part.getDimSize(1) % ofParts == 0 && isSegment(segment) &&
      given == vectorOfThread(segment).getNumElements())
    return success();
  return withNote(
      emitOpError()
          << "segment must be lanes of 32 or 64 columns, as many as a thread has elements "
          << "of all values, which have multiples of " << ofParts << " columns, but got " << segment
          << " from " << given << " elements in parts of " << part,
      "gather as many parts as a segment of 32 or 64 columns has"); // (C571)
}
