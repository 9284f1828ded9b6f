//===- StridedArguments.cpp - Rows that the caller of a program places ----===//
#include "fp4/Conversion/StridedArguments.h"

#include "fp4/Conversion/BufferTypes.h"
#include "fp4/Dialect/Fp4/IR/Strided.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
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

Value fp4::strideBytes(OpBuilder &builder, Location loc, Value argument, unsigned dimension) {
  Value buffer = stridedBuffer(builder, loc, argument);
  auto type = cast<MemRefType>(buffer.getType());
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, buffer);
  Value stride = metadata.getStrides()[dimension];
  Value bytes = arith::ConstantIndexOp::create(builder, loc, type.getElementTypeBitWidth() / 8);
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(),
                                    arith::MulIOp::create(builder, loc, stride, bytes));
}
