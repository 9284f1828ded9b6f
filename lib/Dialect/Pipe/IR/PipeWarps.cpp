//===- PipeWarps.cpp - MMAs in the registers of warps ---------------------===//
//
// Verifiers. Labels such as (C250) refer to PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Pipe/IR/PipeWarps.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"

#include "ScaledTypes.h"
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
/// Rows of one instruction, and rows whose scales a register of a warp has.
static constexpr int64_t kWarpRows = 16, kScaleRows = 32;

/// The fragments of the warps of the role around `op` make up a tile of `rows` x `columns`; there
/// may be no role yet.
static LogicalResult verifyFragments(Operation *op, FragmentType fragment, int64_t rows,
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

/// (C251) Rows of one panel; `isWide`: of any elements, an operand's of 6 or 8 bits.
static LogicalResult verifyOperand(Operation *op, StringRef name, SharedType data, bool isWide) {
  int64_t bytes = data.getInnerBytes();
  bool fits = (bytes == 64 && data.getLayout() == Layout::Swizzle64B) ||
              (bytes == 128 && data.getLayout() == Layout::Swizzle128B);
  Type element = data.getElementType();
  if (fits && ((isWide && isByteElementType(element)) || isa<Float4E2M1FNType>(element)))
    return success();
  return withNote(op->emitOpError()
                      << name << " must be " << (isWide ? "of 4, 6 or 8 bits" : "f4E2M1FN")
                      << " with rows of 64 or 128 bytes and the swizzle of that width, but got "
                      << data,
                  "load rows of 64 bytes with swizzle_64B, or of 128 with swizzle_128B");
}

/// (C252) A column of scales for each scale block, and rows for all of `data`.
static LogicalResult verifyScales(Operation *op, StringRef name, SharedType data,
                                  SharedType scales) {
  Type element = scales.getElementType();
  int64_t block = isa<Float8E4M3FNType>(element) ? 16 : isa<Float8E8M0FNUType>(element) ? 32 : 0;
  if (block && scales.isScales() && scales.getColumns() == data.getColumns() / block &&
      scales.getRows() >= data.getRows())
    return success();
  return withNote(op->emitOpError()
                      << "scales of " << name << " must be f8E4M3FN for each 16 or f8E8M0FNU for "
                      << "each 32 of " << data.getColumns()
                      << " elements, with layout tiled_128x4 and at least " << data.getRows()
                      << " rows, but got " << scales,
                  "load a column of scales for each block of k, in whole scale tiles of 128 rows");
}

/// (C469) An A without scales has unit scales, which MXFP8 elements beside MXFP4 ones can have.
static LogicalResult verifyUnscaled(MmaSyncOp op) {
  SharedType a = op.getA().getType(), b = op.getB().getType(), scales = op.getBScales().getType();
  if (!op.getAScaleRow() && isa<Float8E4M3FNType>(a.getElementType()) &&
      isa<Float4E2M1FNType>(b.getElementType()) && isa<Float8E8M0FNUType>(scales.getElementType()))
    return success();
  return withNote(op.emitOpError()
                      << "a without scales must be f8E4M3FN beside b of f4E2M1FN with scales of "
                      << "f8E8M0FNU, but got " << a << ", " << b << " and " << scales,
                  "pass the scales of a, or quantize the operands to these types"); // (C469)
}

LogicalResult MmaSyncOp::verify() {
  FragmentType acc = getAccumulator().getType();
  SharedType a = getA().getType(), b = getB().getType();
  int64_t rows = acc.getShape()[0], columns = acc.getShape()[1];
  if (acc.getKind() != FragmentKind::MmaSync || (rows != kWarpRows && rows % kScaleRows) ||
      columns % kScaleRows)
    return withNote(emitOpError() << "accumulator must be a fragment of mma_sync with " << kWarpRows
                                  << " rows or a multiple of " << kScaleRows
                                  << ", and a multiple of " << kScaleRows << " columns, but got "
                                  << acc,
                    "write !pipe.fragment<32x32xf32, mma_sync>, or a multiple of it"); // (C250)
  bool isWide = isByteElementType(a.getElementType()) || isByteElementType(b.getElementType());
  if (failed(verifyOperand(*this, "a", a, isWide)) || failed(verifyOperand(*this, "b", b, isWide)))
    return failure(); // (C251)
  if (a.getColumns() != b.getColumns())
    return withNote(emitOpError() << "a and b must have as many elements of k, but got " << a
                                  << " and " << b,
                    "load tiles of one depth");                      // (C251)
  if (failed(verifyFragments(*this, acc, a.getRows(), b.getRows()))) // (C251)
    return failure();
  SharedType ofB = getBScales().getType();
  if (failed(verifyScales(*this, "b", b, ofB))) // (C252)
    return failure();
  if (!getAScales())
    return verifyUnscaled(*this); // (C469)
  auto ofA = cast<SharedType>(getAScales().getType());
  if (failed(verifyScales(*this, "a", a, ofA))) // (C252)
    return failure();
  if (ofA.getElementType() != ofB.getElementType())
    return withNote(emitOpError() << "scales of a and b must be of one type, but got " << ofA
                                  << " and " << ofB,
                    "quantize both operands with one type of scales"); // (C252)
  if (isWide && !isa<Float8E8M0FNUType>(ofA.getElementType()))
    return withNote(
        emitOpError() << "scales of operands of 6 or 8 bits must be f8E8M0FNU, but got " << ofA,
        "quantize both operands to formats of f8E8M0FNU, such as mxfp4 and mxfp8"); // (C252)
  return success();
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
