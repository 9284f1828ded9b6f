//===- LowerHostTensors.cpp - Constants and views of tensors --------------===//
//
// These operations compute nothing and need no kernel:
//
//   arith.constant                    the bytes of its buffer, carried by the program
//   tensor.collapse_shape, expand     the same buffer in another shape
//   tensor.extract_slice              some of the buffer, where that is contiguous
//   tensor.cast                       the same buffer, its size checked when the program runs
//   tensor.concat of rows             a new buffer and a copy of each operand, as the program asks
//
// An operation that would have to move bytes is an error that names an alternative. Tensors and
// buffers are connected by unrealized conversion casts, as after the conversions to kernels.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Utils/ConstantBytes.h"
#include "fp4/Conversion/HostToRuntime/Passes.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

namespace fp4 {
#define GEN_PASS_DEF_LOWERHOSTTENSORS
#include "fp4/Conversion/HostToRuntime/Passes.h.inc"
} // namespace fp4

using namespace mlir;

namespace {

/// Kernels read this many bytes at once from where a buffer starts.
constexpr int64_t kViewAlignment = 32;

RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

InFlightDiagnostic moves(Operation *op, const Twine &why) {
  return op->emitOpError("would have to move data, and has no kernel: ") << why;
}

/// Replaces a result by the tensor that `buffer` holds.
void replaceBy(Operation *op, OpBuilder &b, Value buffer) {
  Type type = op->getResult(0).getType();
  op->getResult(0).replaceAllUsesWith(
      UnrealizedConversionCastOp::create(b, op->getLoc(), type, buffer).getResult(0));
}

LogicalResult lower(arith::ConstantOp op) {
  auto value = cast<ElementsAttr>(op.getValue());
  if (failed(fp4::verifyConstant(value, [&] { return op.emitOpError(); })))
    return failure();
  OpBuilder b(op);
  MemRefType buffer = fp4::deviceBufferType(tensorType(op));
  std::vector<uint8_t> bytes = fp4::constantBytes(value, buffer);
  auto type = RankedTensorType::get(static_cast<int64_t>(bytes.size()), b.getI8Type());
  auto attribute = DenseElementsAttr::get(type, ArrayRef<uint8_t>(bytes));
  replaceBy(op, b, fp4::pipe::DeviceConstantOp::create(b, op.getLoc(), buffer, attribute));
  return success();
}

/// Replaces `op` by a view of the buffer of `source`. `rows` are those of a dynamic result.
LogicalResult view(Operation *op, Value source, int64_t offset, function_ref<Value(Value)> rows) {
  OpBuilder b(op);
  MemRefType from = fp4::deviceBufferType(tensorType(source));
  MemRefType to = fp4::deviceBufferType(tensorType(op->getResult(0)));
  if (!from || !to || !from.getLayout().isIdentity() || !to.getLayout().isIdentity())
    return fp4::withNote(
        moves(op, "rows of ") << (to ? source.getType() : op->getResult(0).getType())
                              << " are padded",
        "take columns of which a row has a multiple of 16 bytes, or make the result an argument");
  Value buffer = UnrealizedConversionCastOp::create(b, op->getLoc(), from, source).getResult(0);
  Value dynamic = to.hasStaticShape() ? Value() : rows(buffer);
  replaceBy(op, b, fp4::pipe::ViewOp::create(b, op->getLoc(), to, buffer, offset, dynamic));
  return success();
}

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

int64_t staticGemm(ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= ShapedType::isDynamic(size) ? 1 : size;
  return product;
}

/// `value * multiply / divide`; the division must leave nothing.
Value scaled(OpBuilder &b, Location loc, Value value, int64_t multiply, int64_t divide) {
  auto constant = [&](int64_t number) { return arith::ConstantIndexOp::create(b, loc, number); };
  if (multiply != 1)
    value = arith::MulIOp::create(b, loc, value, constant(multiply));
  if (divide == 1)
    return value;
  Value quotient = arith::DivUIOp::create(b, loc, value, constant(divide));
  Value back = arith::MulIOp::create(b, loc, quotient, constant(divide));
  fp4::pipe::ExpectSizeOp::create(b, loc, "rows of a tensor that is reshaped", value, back,
                                  "its groups of " + std::to_string(divide) + " must be whole");
  return quotient;
}

/// Lowers a reshape, which keeps the order of elements. A row of packed elements must stay a row:
/// rows are padded.
LogicalResult reshape(Operation *op, Value source) {
  RankedTensorType from = tensorType(source), to = tensorType(op->getResult(0));
  bool packed = isa<Float4E2M1FNType>(from.getElementType());
  auto unpadded = [](RankedTensorType type) { // 16 bytes
    return !type.isDynamicDim(type.getRank() - 1) && type.getShape().back() % 32 == 0;
  };
  if (packed && (!from.getRank() || !to.getRank() ||
                 (from.getShape().back() != to.getShape().back() &&
                  !(unpadded(from) && unpadded(to))))) {
    InFlightDiagnostic diagnostic = moves(op, "rows of ") << from << " become rows of another length";
    diagnostic.attachNote() << "keep the last dimension as it is, or reshape before quantizing";
    return diagnostic;
  }
  return view(op, source, 0, [&](Value buffer) -> Value {
    OpBuilder b(op);
    b.setInsertionPointAfterValue(buffer);
    Value rows = memref::DimOp::create(b, op->getLoc(), buffer, 0);
    int64_t others = staticGemm(from.getShape().drop_front());
    int64_t kept = staticGemm(to.getShape().drop_front());
    int64_t common = std::gcd(others, kept);
    return scaled(b, op->getLoc(), rows, others / common, kept / common);
  });
}

/// Lowers a cast that knows more or less about the rows.
LogicalResult lower(tensor::CastOp op) {
  auto from = dyn_cast<RankedTensorType>(op.getSource().getType());
  auto to = dyn_cast<RankedTensorType>(op.getType());
  if (!from || !to || from.getRank() == 0 || from.getEncoding() != to.getEncoding() ||
      fp4::scaleLayout(from) || !fp4::deviceBufferType(from) ||
      from.getShape().drop_front() != to.getShape().drop_front())
    return fp4::withNote(
        moves(op, "it changes more than the knowledge of the rows"),
        "cast static rows to dynamic ones or back; all else needs another operation");
  OpBuilder b(op);
  if (!to.isDynamicDim(0)) { // a claimed size is checked
    Value source = UnrealizedConversionCastOp::create(b, op.getLoc(), fp4::deviceBufferType(from),
                                                      op.getSource())
                       .getResult(0);
    fp4::pipe::ExpectSizeOp::create(
        b, op.getLoc(), "rows of a tensor that is cast",
        memref::DimOp::create(b, op.getLoc(), source, 0),
        arith::ConstantIndexOp::create(b, op.getLoc(), to.getDimSize(0)),
        "the program casts to this size");
  }
  return view(op, op.getSource(), 0, [&](Value buffer) -> Value {
    b.setInsertionPointAfterValue(buffer);
    return memref::DimOp::create(b, op.getLoc(), buffer, 0);
  });
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// The part of the device buffer that a slice takes, in units of its dimensions: whole tiles,
/// bytes, elements.
struct BufferSlice {
  SmallVector<int64_t> offsets, sizes;
};

/// Slices scale tiles of 128 rows in full width. The last tile may be cut where the tensor ends.
FailureOr<BufferSlice> sliceTiles(tensor::ExtractSliceOp op) {
  RankedTensorType type = op.getSourceType();
  int64_t row = op.getStaticOffset(0), rows = op.getStaticSize(0);
  constexpr int64_t tile = 128;
  bool whole = op.getStaticOffset(1) == 0 && op.getStaticSize(1) == type.getDimSize(1) &&
               row % tile == 0 && (rows % tile == 0 || row + rows == type.getDimSize(0)) &&
               op.getType().getRank() == 2;
  if (!whole) {
    InFlightDiagnostic diagnostic = moves(op, "it cuts tiles of 128 rows by 4 scale blocks");
    diagnostic.attachNote() << "take all columns, from a multiple of 128 rows on; or slice the "
                               "row-major scales and use fp4.swizzle_scales";
    return failure();
  }
  MemRefType buffer = fp4::deviceBufferType(type);
  return BufferSlice{{row / tile, 0, 0},
                     {static_cast<int64_t>(llvm::divideCeil(rows, tile)), buffer.getDimSize(1),
                      buffer.getDimSize(2)}};
}

FailureOr<BufferSlice> sliceRows(tensor::ExtractSliceOp op) {
  BufferSlice slice{SmallVector<int64_t>(op.getStaticOffsets()),
                    SmallVector<int64_t>(op.getStaticSizes())};
  RankedTensorType type = op.getSourceType();
  if (!isa<Float4E2M1FNType>(type.getElementType()))
    return slice;
  int64_t columns = type.getShape().back();
  ArrayRef<int64_t> kept = op.getType().getShape();
  if (slice.offsets.back() == 0 && slice.sizes.back() == columns && !kept.empty() &&
      kept.back() == columns) {
    slice.sizes.back() = fp4::deviceBufferType(type).getShape().back();
    return slice;
  }
  InFlightDiagnostic diagnostic = moves(op, "it cuts rows of packed elements");
  diagnostic.attachNote() << "take whole rows, or slice before quantizing";
  return failure();
}

/// Returns true when the elements follow each other: one index in front, a range, whole dimensions
/// behind.
bool isContiguous(const BufferSlice &slice, ArrayRef<int64_t> shape) {
  size_t range = 0;
  while (range < shape.size() && slice.sizes[range] == 1)
    ++range;
  for (size_t dim = range + 1; dim < shape.size(); ++dim)
    if (slice.sizes[dim] != shape[dim])
      return false;
  return true;
}

LogicalResult lower(tensor::ExtractSliceOp op) {
  RankedTensorType type = op.getSourceType();
  bool isStatic = type.hasStaticShape() && op.getType().hasStaticShape() &&
                  llvm::none_of(op.getStaticOffsets(), ShapedType::isDynamic) &&
                  llvm::all_of(op.getStaticStrides(), [](int64_t stride) { return stride == 1; });
  if (!isStatic) {
    InFlightDiagnostic diagnostic = moves(op, "its place is not known");
    diagnostic.attachNote() << "slices have static offsets and sizes, of static tensors, and "
                               "strides of 1; pass other parts as arguments";
    return diagnostic;
  }
  MemRefType buffer = fp4::deviceBufferType(type);
  if (!buffer)
    return fp4::withNote(moves(op, "there is no buffer for ") << type,
                         "the elements of views are bf16, f16, f32, i64 or what quantizers give");
  FailureOr<BufferSlice> slice = fp4::scaleLayout(type) ? sliceTiles(op) : sliceRows(op);
  if (failed(slice))
    return failure();
  if (!isContiguous(*slice, buffer.getShape())) {
    InFlightDiagnostic diagnostic = moves(op, "its rows do not follow each other");
    diagnostic.attachNote() << "take whole rows; of columns make an argument of their own";
    return diagnostic;
  }
  int64_t offset = 0;
  for (auto [start, size] : llvm::zip_equal(slice->offsets, buffer.getShape()))
    offset = offset * size + start;
  offset *= buffer.getElementTypeBitWidth() / 8;
  if (offset % kViewAlignment == 0)
    return view(op, op.getSource(), offset, [](Value) { return Value(); });
  InFlightDiagnostic diagnostic = moves(op, "it starts at byte ") << offset;
  diagnostic.attachNote() << "kernels read " << kViewAlignment
                          << " bytes at once: start where a multiple of these lies before";
  return diagnostic;
}

//===----------------------------------------------------------------------===//
// Rows of several matrices
//===----------------------------------------------------------------------===//

/// Lowers the one operation that moves bytes, because the program says so: one copy for each
/// operand.
LogicalResult lower(tensor::ConcatOp op) {
  RankedTensorType type = op.getResultType();
  MemRefType to = fp4::deviceBufferType(type);
  bool plain = to && type.hasStaticShape() && type.getRank() == 2 && op.getDim() == 0 &&
               !fp4::scaleLayout(type) && to.getShape() == type.getShape() &&
               llvm::all_of(op.getInputs(), [](Value input) {
                 return tensorType(input).hasStaticShape();
               });
  if (!plain) {
    InFlightDiagnostic diagnostic = op.emitOpError(
        "must put rows of static, row-major matrices one after the other, without packed elements");
    diagnostic.attachNote() << "use fp4.stack_scales for scales in a layout, and "
                               "fp4.interleave_shards for columns";
    return diagnostic;
  }
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value result = fp4::allocateBuffer(b, loc, type, Value());
  int64_t row = 0;
  for (Value input : op.getInputs()) {
    MemRefType from = fp4::deviceBufferType(tensorType(input));
    Value source = UnrealizedConversionCastOp::create(b, loc, from, input).getResult(0);
    SmallVector<OpFoldResult> offsets = {b.getIndexAttr(row), b.getIndexAttr(0)};
    SmallVector<OpFoldResult> sizes = {b.getIndexAttr(from.getDimSize(0)),
                                       b.getIndexAttr(from.getDimSize(1))};
    SmallVector<OpFoldResult> strides(2, b.getIndexAttr(1));
    Value rows = memref::SubViewOp::create(b, loc, result, offsets, sizes, strides);
    gpu::MemcpyOp::create(b, loc, TypeRange(), ValueRange(), rows, source);
    row += from.getDimSize(0);
  }
  replaceBy(op, b, result);
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

LogicalResult lower(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<arith::ConstantOp, tensor::CastOp, tensor::ConcatOp, tensor::ExtractSliceOp>(
          [](auto concrete) { return lower(concrete); })
      .Case<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
          [](auto concrete) { return reshape(concrete, concrete.getSrc()); })
      .Default([](Operation *) { return failure(); });
}

bool isHostTensor(Operation *op) {
  return isa<arith::ConstantOp, tensor::CastOp, tensor::CollapseShapeOp, tensor::ConcatOp,
             tensor::ExpandShapeOp, tensor::ExtractSliceOp>(op) &&
         isa<RankedTensorType>(op->getResult(0).getType());
}

struct LowerHostTensors : fp4::impl::LowerHostTensorsBase<LowerHostTensors> {
  void runOnOperation() override {
    SmallVector<Operation *> operations;
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (Block &block : function.getBody())
        for (Operation &op : block)
          if (isHostTensor(&op))
            operations.push_back(&op);
    for (Operation *op : operations) {
      if (!op->use_empty() && failed(lower(op)))
        return signalPassFailure();
      op->erase();
    }
  }
};

} // namespace
