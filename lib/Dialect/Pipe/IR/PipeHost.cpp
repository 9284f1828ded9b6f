//===- PipeHost.cpp - Ops that make kernel arguments ----------------------===//
//
// Labels such as (C107) refer to PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "ScaledTypes.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/IR/OpImplementation.h"
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

/// (C107) A kernel gets a buffer in the layout of the logical type.
static LogicalResult verifyArgument(ViewOp op, BaseMemRefType actual, GlobalType type) {
  MemRefType expected = getBufferType(type);
  if (actual != expected && !isViewOfRows(actual, type))
    return withNote(op.emitOpError() << "source of " << type << " must be " << expected
                                     << ", but got " << actual,
                    "the buffer has the type of fp4's own layout; dynamic rows and columns, "
                    "!pipe.global<?x?xT>, take any strides");
  return success();
}

/// The rows are an index on the host, and of 32 bits in a kernel.
ParseResult fp4::pipe::parseViewedType(OpAsmParser &parser, Type &source, Type &rows,
                                       std::optional<OpAsmParser::UnresolvedOperand> operand) {
  if (parser.parseType(source))
    return failure();
  Builder &b = parser.getBuilder();
  if (operand)
    rows = isa<GlobalType>(source) ? Type(b.getI32Type()) : Type(b.getIndexType());
  return success();
}

void fp4::pipe::printViewedType(OpAsmPrinter &printer, Operation *, Type source, Type, Value) {
  printer << source;
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

/// (C128) Bytes of a row-major buffer as another one.
static LogicalResult verifyBytes(ViewOp op) {
  auto source = dyn_cast<MemRefType>(op.getSource().getType());
  auto result = dyn_cast<MemRefType>(op.getType());
  for (MemRefType type : {source, result})
    if (!type || !type.getLayout().isIdentity() || !type.getElementType().isIntOrFloat())
      return withNote(op.emitOpError()
                          << "source and result must be row-major memrefs of numbers, but got "
                          << op.getSource().getType() << " and " << op.getType(),
                      "copy a strided memref first");
  int64_t offset = int64_t(op.getOffset());
  if (offset < 0 || offset % 32)
    return withNote(
        op.emitOpError() << "offset must be a multiple of 32, but got " << offset,
        "buffers begin at multiples of 32 bytes, so that vectors and TMA can reach them");
  if (result.getNumDynamicDims() != (op.getRows() ? 1 : 0))
    return withNote(
        op.emitOpError() << "rows must be there for a result with one dynamic dimension, but got "
                         << result,
        "add 'rows %m' for a dynamic first dimension, and leave it out for a static one");
  std::optional<int64_t> has = bufferBytes(source), needs = bufferBytes(result);
  if (has && needs && (*needs > *has || offset > *has - *needs))
    return withNote(op.emitOpError()
                        << "result must end within the " << *has << " bytes of the source, but has "
                        << *needs << " from " << offset << " on",
                    "allocate a larger source, or take fewer elements");
  return success();
}

/// (C490) An argument with sizes that are numbers.
static LogicalResult verifySizes(ViewOp op, GlobalType source, GlobalType result) {
  bool isOfKind = source.getRank() == 2 && result.getRank() == 2 &&
                  llvm::all_of(source.getShape(), ShapedType::isDynamic) &&
                  source.getElementType() == result.getElementType() &&
                  source.getLayout() == result.getLayout();
  if (!isOfKind)
    return withNote(
        op.emitOpError()
            << "expects a buffer with dynamic rows and columns of the result's element "
               "type and layout, but got "
            << source << " and " << result,
        "the result has the element type and layout of the argument, !pipe.global<?x?xT>");
  if (op.getPitch() && result.hasDynamicColumns() == bool(op.getColumns()) &&
      (!op.getRows() || ShapedType::isDynamic(result.getShape()[0])))
    return success();
  return withNote(op.emitOpError()
                      << "expects 'pitch', 'columns' for dynamic columns and 'rows' for no "
                         "static rows, but got "
                      << result,
                  "write 'rows %m' and 'columns %k' for the dimensions that the result leaves "
                  "dynamic, and always 'pitch %b'");
}

LogicalResult ViewOp::verify() {
  auto argument = dyn_cast<GlobalType>(getSource().getType()),
       result = dyn_cast<GlobalType>(getType());
  bool ofBytes = !argument && !result, hasSizes = argument && result;
  if (ofBytes && isa<LLVM::LLVMPointerType>(getType())) // (C107)
    return withNote(emitOpError() << "source of a pointer must be a !pipe.global, but got "
                                  << getSource().getType(),
                    "view the buffer as an argument of the kernel first");
  if (argument && isa<BaseMemRefType>(getType())) // (C107)
    return withNote(emitOpError() << "result must be a !pipe.global or a pointer of " << argument
                                  << ", but got " << getType(),
                    "view the buffer on the host, before a kernel gets it");
  bool hasOthers = (!ofBytes && getOffset()) || (!ofBytes && !hasSizes && getRows()) ||
                   (!hasSizes && (getColumns() || getPitch()));
  if (hasOthers) // (C128)
    return withNote(emitOpError("must have 'offset' and 'rows' of a buffer in another one, and "
                                "'rows', 'columns' and 'pitch' of an argument alone"),
                    "leave out what the types of the view do not ask for");
  if (getRows() && getRows().getType().isIndex() != ofBytes) // (C128)
    return withNote(emitOpError() << "rows must be " << (ofBytes ? "an index" : "i32")
                                  << ", but got " << getRows().getType(),
                    "the host counts in index, and kernels in 32 bits");
  if (ofBytes)
    return verifyBytes(*this);
  if (hasSizes)
    return verifySizes(*this, argument, result);
  return argument ? success()
                  : verifyArgument(*this, cast<BaseMemRefType>(getSource().getType()), result);
}
