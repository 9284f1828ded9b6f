//===- StridedArguments.cpp - Rows that the caller of a program places ----===//
#include "fp4/Dialect/Utils/StridedArguments.h"

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Fp4/IR/Strided.h"
#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

bool fp4::isStridedArgument(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function = argument
                      ? dyn_cast_or_null<FunctionOpInterface>(argument.getOwner()->getParentOp())
                      : FunctionOpInterface();
  return function && argument.getOwner()->isEntryBlock() &&
         function.getArgAttr(argument.getArgNumber(), kStridedAttr);
}

Value fp4::stridedRowsOf(Value tensor) {
  if (isStridedArgument(tensor))
    return cast<RankedTensorType>(tensor.getType()).getRank() == 2 ? tensor : Value();
  auto collapse = tensor.getDefiningOp<tensor::CollapseShapeOp>();
  if (!collapse || !isStridedArgument(collapse.getSrc()))
    return {};
  SmallVector<ReassociationIndices> rows = {{0, 1}, {2}};
  return collapse.getReassociationIndices() == rows ? collapse.getSrc() : Value();
}

MemRefType fp4::stridedBufferType(RankedTensorType type) {
  MemRefType dense = userBufferType(type);
  SmallVector<int64_t> strides(dense.getRank(), ShapedType::kDynamic);
  strides.back() = 1;
  return MemRefType::get(dense.getShape(), dense.getElementType(),
                         StridedLayoutAttr::get(type.getContext(), /*offset=*/0, strides));
}

Value fp4::stridedBuffer(OpBuilder &builder, Location loc, Value argument) {
  MemRefType type = stridedBufferType(cast<RankedTensorType>(argument.getType()));
  return UnrealizedConversionCastOp::create(builder, loc, type, argument).getResult(0);
}

Value fp4::stridedRows(OpBuilder &builder, Location loc, Value argument) {
  Value buffer = stridedBuffer(builder, loc, argument);
  unsigned rank = cast<MemRefType>(buffer.getType()).getRank();
  auto size = [&](unsigned dimension) {
    return getValueOrCreateConstantIndexOp(builder, loc,
                                           memref::getMixedSize(builder, loc, buffer, dimension));
  };
  Value rows = size(rank - 2);
  return rank == 2 ? rows : arith::MulIOp::create(builder, loc, size(0), rows).getResult();
}

static Value bytesOfStride(OpBuilder &builder, Location loc, Value buffer, unsigned dimension) {
  auto type = cast<MemRefType>(buffer.getType());
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, buffer);
  Value stride = metadata.getStrides()[dimension];
  Value bytes = arith::ConstantIndexOp::create(builder, loc, type.getElementTypeBitWidth() / 8);
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(),
                                    arith::MulIOp::create(builder, loc, stride, bytes));
}

Value fp4::strideBytes(OpBuilder &builder, Location loc, Value argument, unsigned dimension) {
  return bytesOfStride(builder, loc, stridedBuffer(builder, loc, argument), dimension);
}

std::optional<unsigned> fp4::stridedResultOf(Value tensor) {
  if (!tensor.hasOneUse() || cast<RankedTensorType>(tensor.getType()).getRank() != 2)
    return {};
  OpOperand &use = *tensor.use_begin();
  auto function = dyn_cast<func::FuncOp>(use.getOwner()->getParentOp());
  unsigned number = use.getOperandNumber();
  bool isStrided = isa<func::ReturnOp>(use.getOwner()) && function &&
                   function.getResultAttr(number, kStridedAttr);
  return isStrided ? std::optional(number) : std::nullopt;
}

Value fp4::stridedMatrixOf(Value tensor) {
  Value matrix = tensor;
  if (tensor && tensor.hasOneUse())
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(*tensor.user_begin()))
      if (collapse.getReassociationIndices().back().size() == 2)
        matrix = collapse.getResult();
  return matrix && stridedResultOf(matrix) ? matrix : Value();
}

/// The rows are those of a buffer that is as wide as the pitch, of which they take the first
/// columns.
Value fp4::allocateStridedResult(OpBuilder &builder, Location loc, RankedTensorType type,
                                 unsigned number, Value rows, Value columns) {
  MemRefType buffer = stridedBufferType(type);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto sizeOf = [&](unsigned dimension, Value dynamic) -> OpFoldResult {
    if (buffer.isDynamicDim(dimension))
      return dynamic;
    return builder.getIndexAttr(buffer.getDimSize(dimension));
  };
  SmallVector<OpFoldResult> shape = {sizeOf(0, rows), sizeOf(1, columns)};
  Value element = constant(buffer.getElementTypeBitWidth() / 8);
  Value bytes = arith::MulIOp::create(
      builder, loc, getValueOrCreateConstantIndexOp(builder, loc, shape[1]), element);
  Value pitch = pipe::ResultPitchOp::create(builder, loc, builder.getI32IntegerAttr(number), bytes);
  SmallVector<Value> sizes = {getValueOrCreateConstantIndexOp(builder, loc, shape[0]),
                              arith::DivUIOp::create(builder, loc, pitch, element)};
  auto wide =
      MemRefType::get({ShapedType::kDynamic, ShapedType::kDynamic}, buffer.getElementType());
  auto memory = gpu::AllocOp::create(builder, loc, wide, /*asyncToken=*/Type(), ValueRange(), sizes,
                                     ValueRange());
  memory->setAttr(kResultAttr, builder.getI32IntegerAttr(number));
  SmallVector<OpFoldResult> offsets(2, builder.getIndexAttr(0)), steps(2, builder.getIndexAttr(1));
  return memref::SubViewOp::create(builder, loc, buffer, memory.getMemref(), offsets, shape, steps);
}

Value fp4::pitchBytes(OpBuilder &builder, Location loc, Value buffer) {
  return bytesOfStride(builder, loc, buffer, /*dimension=*/0);
}
