//===- PipeHost.cpp - Ops that make kernel arguments ----------------------===//
//
// Labels such as (C107) refer to PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// A kernel that gets the strides of the buffer as numbers knows only the elements.
static bool isViewOfRows(BaseMemRefType actual, GlobalType type) {
  auto buffer = dyn_cast<MemRefType>(actual);
  return buffer && type.getRank() == 2 && !type.isScales() &&
         getBufferType(type).getElementType() == buffer.getElementType() &&
         llvm::all_of(type.getShape(), ShapedType::isDynamic) &&
         isa<StridedLayoutAttr>(buffer.getLayout()) && buffer.getRank() >= 2;
}

LogicalResult GlobalViewOp::verify() {
  MemRefType expected = getBufferType(getType());
  auto actual = cast<BaseMemRefType>(getBuffer().getType());
  if (actual != expected && !isViewOfRows(actual, getType())) // (C107)
    return withNote(emitOpError() << "buffer of " << getType() << " must be " << expected
                                  << ", but got " << actual,
                    "the buffer has the type of fp4's own layout; dynamic rows and columns, "
                    "!pipe.global<?x?xT>, take any strides");
  return success();
}

LogicalResult ExpectSizeOp::canonicalize(ExpectSizeOp op, PatternRewriter &rewriter) {
  if (op.getFound() != op.getExpected())
    return rewriter.notifyMatchFailure(op, "two different values");
  rewriter.eraseOp(op);
  return success();
}

/// Bytes of a dense buffer; nothing where a size is dynamic.
static std::optional<int64_t> bufferBytes(MemRefType type) {
  if (!type.hasStaticShape())
    return std::nullopt;
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

LogicalResult DeviceConstantOp::verify() { // (C139)
  auto elements = dyn_cast<RankedTensorType>(getBytes().getType());
  auto buffer = cast<MemRefType>(getBuffer().getType());
  if (!elements || !elements.getElementType().isInteger(8))
    return withNote(emitOpError() << "bytes must be a tensor of i8, but got "
                                  << getBytes().getType(),
                    "bitcast the elements to bytes");
  if (!buffer.getElementType().isIntOrFloat() || elements.getNumElements() != bufferBytes(buffer))
    return withNote(emitOpError() << "bytes must be as many as " << buffer << " has, but got "
                                  << elements.getNumElements(),
                    "write an i8 for each byte of the buffer");
  return success();
}

LogicalResult BufferViewOp::verify() { // (C128)
  auto source = dyn_cast<MemRefType>(getSource().getType());
  auto result = dyn_cast<MemRefType>(getResult().getType());
  for (MemRefType type : {source, result})
    if (!type || !type.getLayout().isIdentity() || !type.getElementType().isIntOrFloat())
      return withNote(emitOpError()
                          << "source and result must be row-major memrefs of numbers, but got "
                          << getSource().getType() << " and " << getResult().getType(),
                      "copy a strided memref first");
  int64_t offset = getOffset();
  if (offset < 0 || offset % 32)
    return withNote(
        emitOpError() << "offset must be a multiple of 32, but got " << offset,
        "buffers begin at multiples of 32 bytes, so that vectors and TMA can reach them");
  if (result.getNumDynamicDims() != (getRows() ? 1 : 0))
    return withNote(
        emitOpError() << "rows must be there for a result with one dynamic dimension, but got "
                      << result,
        "add 'rows %m' for a dynamic first dimension, and leave it out for a static one");
  std::optional<int64_t> has = bufferBytes(source), needs = bufferBytes(result);
  if (has && needs && (*needs > *has || offset > *has - *needs))
    return withNote(emitOpError() << "result must end within the " << *has
                                  << " bytes of the source, but has " << *needs << " from "
                                  << offset << " on",
                    "allocate a larger source, or take fewer elements");
  return success();
}
