//===- PipeWarps.cpp - Fragments of warps ---------------------------------===//
//
// Verifiers. Labels such as (C250) refer to PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Pipe/IR/PipeWarps.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"

#include "VerifyFragment.h"
#include "VerifyRows.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

#define GET_OP_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeWarpOps.cpp.inc"

/// Columns of the smallest part of a fragment, of which a thread has four elements.
static constexpr int64_t kPartColumns = 8;
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

LogicalResult WarpPlaceOp::verify() {
  FragmentType acc = getAccumulator().getType();
  if (acc.getKind() != FragmentKind::MmaSync)
    return withNote(emitOpError() << "accumulator must be a fragment of mma_sync, but got " << acc,
                    "pipe.read_fragment and others are for fragments of wgmma; this operation "
                    "places those of warps");                  // (C253)
  return verifyFragments(*this, acc, getRows(), getColumns()); // (C253)
}

LogicalResult ReadWarpFragmentOp::verify() {
  FragmentType acc = getAccumulator().getType();
  int64_t row = getRow(), first = getColumn(), columns = getResult().getType().getNumElements() * 2;
  if (acc.getKind() == FragmentKind::MmaSync && row >= 0 && row % kWarpRows == 0 &&
      row < acc.getShape()[0] && first >= 0 && first % kPartColumns == 0 &&
      columns % kPartColumns == 0 && first <= acc.getShape()[1] - columns)
    return success();
  return withNote(emitOpError() << "elements must be of " << kWarpRows
                                << " rows from a multiple of that on, and "
                                << "of multiples of " << kPartColumns
                                << " columns, within a fragment of "
                                << "mma_sync, but got row " << row << " and " << columns
                                << " columns from " << first << " on, of " << acc,
                  "read two columns for each element, from multiples of 8 on"); // (C254)
}

//===----------------------------------------------------------------------===//
// Rows of the fragments of all warps
//===----------------------------------------------------------------------===//

LogicalResult FragmentAmaxOp::verify() {
  constexpr int64_t together = 4; // two of each row
  int64_t count = getValue().getType().getNumElements();
  if (count % together == 0)
    return success();
  return withNote(emitOpError() << "vector must have a multiple of " << together
                                << " elements, but got " << getValue().getType(),
                  "read whole pairs of rows"); // (C570)
}

int64_t GatherRowsOp::getStagedBytes() {
  VectorType type = getSegment().getType();
  return kRows * int64_t(llvm::alignTo(type.getNumElements() * type.getElementTypeBitWidth() / 8,
                                       kLineBytes));
}

/// Four elements of every 8 columns of a fragment, whose columns are a power of two of rows.
static LogicalResult verifyTransposed(GatherRowsOp op) {
  constexpr int64_t fewest = 4, most = 64, narrow = 32;
  VectorType segment = op.getSegment().getType();
  auto part = cast<VectorType>(op.getValues().front().getType());
  int64_t given = part.getNumElements(), count = segment.getNumElements();
  if (op.getValues().size() == 1 && part.getElementType() == segment.getElementType() &&
      (count == narrow || count == most) && given >= fewest && given <= most &&
      llvm::isPowerOf2_64(uint64_t(given)))
    return success();
  return withNote(op.emitOpError()
                      << "transposed segment must have 32 or 64 elements, and one vector of its "
                      << "type have 4, 8, 16, 32 or 64, but got " << segment << " from "
                      << op.getValues().size() << " of " << part,
                  "transpose 32 or 64 elements of a row at a time"); // (C581)
}

LogicalResult GatherRowsOp::verify() {
  constexpr int64_t warpgroup = 128, ofParts = 16, narrow = 32, wide = 64;
  auto region = (*this)->getParentOfType<RoleRegionOp>();
  if (region &&
      (region.getRole().getNumThreads() % warpgroup || region.getRole().getFirstWarp() % 4))
    return withNote(emitOpError() << "role must have whole warpgroups, but is " << region.getRole(),
                    "write a multiple of 4 warps, from a multiple of 4 on"); // (C571)
  if (getValues().empty() || !llvm::all_equal(getValues().getTypes()))
    return withNote(emitOpError("values must be vectors of one type"),
                    "pass at least one vector, and convert the others to its type"); // (C571)
  if (getTransposed())
    return verifyTransposed(*this); // (C581)
  auto part = cast<VectorType>(getValues().front().getType());
  VectorType segment = getSegment().getType();
  int64_t given = part.getNumElements() * int64_t(getValues().size());
  int64_t count = segment.getNumElements();
  if (part.getElementType() == segment.getElementType() && part.getNumElements() % ofParts == 0 &&
      given == count && (count == narrow || count == wide))
    return success();
  return withNote(
      emitOpError() << "segment must have 32 or 64 elements, as many as all values, which have "
                    << "multiples of " << ofParts << ", but got " << segment << " from " << given
                    << " elements in parts of " << part,
      "gather as many parts as a segment of 32 or 64 elements has"); // (C571)
}

LogicalResult StoreFewScalesOp::verify() {
  GlobalType dest = getDest().getType();
  auto type = cast<VectorType>(getValue().getType());
  int64_t count = type.getNumElements();
  bool endsGroup = getRows() && !ShapedType::isDynamic(dest.getShape()[0]);
  if (dest.isScales() && dest.getElementType() == type.getElementType() && count <= 2)
    return failure(failed(verifyColumns(*this, getDest())) ||                   // (C492)
                   (!endsGroup && failed(verifyRows(*this, dest, getRows())))); // (C573)
  return withNote(
      emitOpError() << "vector must have 1 or 2 scales of a buffer of layout tiled_128x4, but got "
                    << type << " and " << dest,
      "store the scales of one or two blocks of a row; pipe.store takes four"); // (C573)
}
