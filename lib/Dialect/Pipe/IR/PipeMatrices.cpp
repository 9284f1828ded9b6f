//===- PipeMatrices.cpp - Sizes and pitches of buffers --------------------===//
//
// Verifiers of what says where the rows of a buffer are: tensor maps on the host, and matrices
// whose sizes a kernel gets as numbers. Labels such as (C108) refer to PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/ISA/BufferShape.h"

#include "VerifyRows.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

#define GET_OP_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeMatrixOps.cpp.inc"

MemRefType fp4::pipe::getBufferType(GlobalType type) {
  Builder builder(type.getContext());
  Type element = type.getElementType();
  bool isByte = isScaleElementType(element) || isByteElementType(element);
  if (type.getRank() < 2)
    return MemRefType::get(type.getShape(), isByte ? builder.getI8Type() : element);
  if (type.isScales())
    return MemRefType::get(
        hw::bufferShape({type.getShape(), 8, /*tiledScales=*/true}, hw::RowPitch::Padded),
        builder.getI8Type());
  if (isa<Float4E2M1FNType>(element) && type.hasDynamicColumns())
    return MemRefType::get(type.getShape(), builder.getI8Type(),
                           StridedLayoutAttr::get(type.getContext(), 0, {ShapedType::kDynamic, 1}));
  if (isa<Float4E2M1FNType>(element))
    return MemRefType::get(hw::bufferShape({type.getShape(), 4}, hw::RowPitch::Padded),
                           builder.getI8Type());
  return MemRefType::get(type.getShape(), isByte ? builder.getI8Type() : element);
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

/// Rows of elements that follow each other, at any pitch.
static bool isRowMajor(MemRefType buffer) {
  auto layout = dyn_cast<StridedLayoutAttr>(buffer.getLayout());
  return buffer.getLayout().isIdentity() ||
         (layout && layout.getOffset() == 0 && layout.getStrides().back() == 1);
}

int64_t fp4::pipe::rowPitchOf(MemRefType buffer) {
  auto layout = dyn_cast<StridedLayoutAttr>(buffer.getLayout());
  int64_t pitch = layout ? layout.getStrides().drop_back().back() : buffer.getShape().back();
  return ShapedType::isDynamic(pitch) ? pitch : pitch * buffer.getElementTypeBitWidth() / 8;
}

/// (C108) The buffer of a map of scales consists of their scale tiles.
static LogicalResult verifyScaleMap(MakeTensorMapOp op) {
  auto buffer = dyn_cast<MemRefType>(op.getBuffer().getType());
  int64_t blocks = llvm::divideCeil(int64_t(*op.getColumns()), kScaleBlockColumns);
  if (buffer && buffer.getRank() == 3 && buffer.getLayout().isIdentity() &&
      buffer.getElementType().isInteger(8) && buffer.getDimSize(1) == blocks &&
      buffer.getDimSize(2) == kScaleBlockBytes)
    return success();
  return withNote(op.emitOpError()
                      << "buffer of a map of " << int64_t(*op.getColumns())
                      << " columns of scales must be a row-major memref of rank 3 with " << blocks
                      << "x" << kScaleBlockBytes << "xi8 per row of scale tiles, but got "
                      << op.getBuffer().getType(),
                  "fp4.swizzle_scales makes such a buffer");
}

/// (C292) TMA adds padding to whole runs of columns, at a row pitch of whole 32 bytes.
static LogicalResult verifyPaddedMap(MakeTensorMapOp op, int64_t pitch) {
  int64_t columns = *op.getColumns();
  Layout layout = op.getType().getLayout();
  if (!isPadded(layout) || (columns % kPaddedRun == 0 && pitch % 32 == 0))
    return success();
  return withNote(op.emitOpError() << "columns of a map of layout " << stringifyLayout(layout)
                                   << " must be a multiple of " << kPaddedRun
                                   << ", and the row pitch one of 32 bytes, but got " << columns
                                   << " and " << pitch,
                  "pad the rows of the buffer with zeros");
}

/// (C108), (C666) Rows of elements, in planes or not.
static LogicalResult verifyMappedBuffer(MakeTensorMapOp op) {
  auto buffer = dyn_cast<MemRefType>(op.getBuffer().getType());
  TensorMapType map = op.getType();
  bool isOfLists = op.isOfLists();
  int64_t rank = map.hasPlanes() && !isOfLists ? 3 : 2;
  bool fits = buffer && buffer.getRank() == rank && isRowMajor(buffer) &&
              !buffer.isDynamicDim(unsigned(rank) - 1);
  if (fits && map.hasPlanes()) // (C666)
    fits = !buffer.isDynamicDim(unsigned(rank) - 2 + isOfLists);
  if (!fits)
    return withNote(op.emitOpError() << "buffer must be a row-major memref of rank " << rank
                                     << " with static " << (map.hasPlanes() ? "sizes" : "columns")
                                     << ", but got " << op.getBuffer().getType(),
                    "columns may be dynamic where 'columns' is a value; other strides need a copy");
  return success();
}

/// (C108) The bytes from a row to the next one.
static LogicalResult verifyPitch(MakeTensorMapOp op, int64_t pitch) {
  Layout layout = op.getType().getLayout();
  int64_t beyond = rowSets(layout).pitch * 4;
  if (pitch % 16 == beyond)
    return success();
  if (!beyond)
    return withNote(op.emitOpError() // (C108)
                        << "row pitch must be a multiple of 16 bytes, but got " << pitch,
                    "pad the rows of the buffer to " + Twine(llvm::alignTo(pitch, 16)) + " bytes");
  return withNote(op.emitOpError() // (C108)
                      << "row pitch must be " << beyond << " bytes modulo 16 for layout "
                      << stringifyLayout(layout) << ", but got " << pitch,
                  "the layout says how many elements a row of the buffer has, modulo 4");
}

/// (C108) The sets of rows of a map begin at distances that the compiler knows.
static LogicalResult verifyPitchOfSets(MakeTensorMapOp op, int64_t pitch) {
  Layout layout = op.getType().getLayout();
  if (rowSets(layout).count() == 1 || !ShapedType::isDynamic(pitch))
    return success();
  return withNote(op.emitOpError()
                      << "row pitch must be static for layout " // (C108)
                      << stringifyLayout(layout) << ", but got " << op.getBuffer().getType(),
                  "pass a buffer whose strides are static, or copy it into one");
}

/// A map whose columns are a number.
static LogicalResult verifyStaticMap(MakeTensorMapOp op) {
  auto buffer = dyn_cast<MemRefType>(op.getBuffer().getType());
  TensorMapType map = op.getType();
  if (map.isScales())
    return verifyScaleMap(op);
  if (failed(verifyMappedBuffer(op)))
    return failure();
  bool packed = isa<Float4E2M1FNType>(map.getElementType());
  bool hasBytes = packed || isByteElementType(map.getElementType());
  Type expected = hasBytes ? IntegerType::get(op.getContext(), 8) : map.getElementType();
  if (buffer.getElementType() != expected)
    return withNote(op.emitOpError() << "buffer of a map of " << map.getElementType()
                                     << " must have element type " << expected << ", but got "
                                     << buffer.getElementType(),
                    "view the bytes of the buffer as this type");
  int64_t pitch = rowPitchOf(buffer);
  int64_t columns = *op.getColumns();
  if (columns < 1 || (packed && columns % 2))
    return withNote(op.emitOpError() << "columns must be positive" << (packed ? " and even" : "")
                                     << ", but got " << columns,
                    packed ? "two elements share a byte: pad the rows with a zero"
                           : "write the columns that exist");
  int64_t bytes = columns * bitsInMemory(map.getElementType(), map.getLayout()) / 8;
  if (failed(verifyPitchOfSets(op, pitch))) // (C108)
    return failure();
  if (ShapedType::isDynamic(pitch)) // checked where strides come in
    pitch = llvm::alignTo(bytes, 16);
  if (failed(verifyPitch(op, pitch)))
    return failure();
  if (bytes > pitch) // (C108)
    return withNote(op.emitOpError() << columns << " columns take " << bytes
                                     << " bytes, which must not exceed the row pitch of " << pitch,
                    "describe fewer columns, or pass a buffer with longer rows");
  return verifyPaddedMap(op, pitch);
}

/// (C491) A map whose columns are a value.
static LogicalResult verifyDynamicMap(MakeTensorMapOp op) {
  auto buffer = dyn_cast<MemRefType>(op.getBuffer().getType());
  TensorMapType map = op.getType();
  Type element = map.getElementType();
  if (rowSets(map.getLayout()).count() > 1)
    return withNote(op.emitOpError() // (C491)
                        << "map whose columns are a value must not have layout "
                        << stringifyLayout(map.getLayout()) << ", but got " << map,
                    "write 'columns 42' of a buffer with static columns");
  bool hasBytes = isa<Float4E2M1FNType>(element) || isByteElementType(element);
  bool isOfScales = map.isScales();
  Type expected = hasBytes || isOfScales ? IntegerType::get(op.getContext(), 8) : element;
  bool hasShape = buffer && buffer.getRank() == (isOfScales ? 3 : 2) && buffer.isDynamicDim(1) &&
                  (!isOfScales || buffer.getDimSize(2) == kScaleBlockBytes);
  if (hasShape && isRowMajor(buffer) && buffer.getElementType() == expected)
    return success();
  return withNote(op.emitOpError() << "buffer must be a row-major memref of " << expected // (C491)
                                   << " of rank " << (isOfScales ? 3 : 2)
                                   << " with dynamic columns for a map of " << element
                                   << ", but got " << op.getBuffer().getType(),
                  "write 'columns 256' where the columns of the buffer are static");
}

bool MakeTensorMapOp::isOfLists() {
  auto buffer = dyn_cast<MemRefType>(getBuffer().getType());
  return getType().hasPlanes() && getType().getShape()[0] == 1 && buffer && buffer.getRank() == 2;
}

LogicalResult MakeTensorMapOp::verify() {
  if (getColumns().has_value() == bool(getDynamicColumns()))
    return withNote(emitOpError() << "columns must be a number or a value, but got "
                                  << (getColumns() ? "both" : "neither"), // (C108)
                    "write 'columns 256' or 'columns %n', and not both");
  return getColumns() ? verifyStaticMap(*this) : verifyDynamicMap(*this);
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

ViewOp fp4::pipe::matrixOf(Value global) {
  auto view = global.getDefiningOp<ViewOp>();
  return view && view.getPitch() ? view : ViewOp();
}

LogicalResult fp4::pipe::verifyColumns(Operation *op, Value global) {
  if (!cast<GlobalType>(global.getType()).hasDynamicColumns() || matrixOf(global)) // (C492)
    return success();
  InFlightDiagnostic diag =
      op->emitOpError()
      << "buffer must have static columns or come from a pipe.view with a pitch, but got "
      << global.getType();
  diag.attachNote() << "a pointer does not say where its rows are";
  return diag;
}
