//===- Shapes.cpp - The sizes of results, from those of operands ----------===//
//
// ReifyRankedShapedTypeOpInterface: static sizes come from the type of the result, and a dynamic
// one is that of an operand, divided by the block where it counts the blocks of a row. A tensor.dim
// of a result thus becomes a tensor.dim of an operand.
//
//===----------------------------------------------------------------------===//
#include "fp4/Dialect/Fp4/IR/DynamicSizes.h"
#include "fp4/ISA/WeightLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp4;

namespace {

/// A dynamic size of a result: that of a dimension of `tensor`, in whole units of `unit`, or
/// `times` as many.
struct SizeSource {
  Value tensor;
  int64_t dimension;
  int64_t unit = 1, times = 1;
};

OpFoldResult emitSize(OpBuilder &builder, Location loc, const SizeSource &source) {
  OpFoldResult size = tensor::getMixedSize(builder, loc, source.tensor, source.dimension);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  if (source.times > 1)
    return arith::MulIOp::create(builder, loc, cast<Value>(size), constant(source.times))
        .getResult();
  if (source.unit == 1)
    return size;
  return arith::CeilDivUIOp::create(builder, loc, cast<Value>(size), constant(source.unit))
      .getResult();
}

/// `source` says where a dynamic dimension of a result comes from.
LogicalResult reify(Operation *op, OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes,
                    function_ref<SizeSource(unsigned result, int64_t dimension)> source) {
  for (auto [index, type] : llvm::enumerate(op->getResultTypes())) {
    SmallVector<OpFoldResult> &sizes = shapes.emplace_back();
    for (auto [dimension, size] : llvm::enumerate(cast<RankedTensorType>(type).getShape()))
      sizes.push_back(ShapedType::isDynamic(size)
                          ? emitSize(builder, op->getLoc(), source(index, dimension))
                          : OpFoldResult(builder.getIndexAttr(size)));
  }
  return success();
}

/// Results of the shape of the first operand.
SizeSource likeFirstOperand(Operation *op, int64_t dimension) {
  return {op->getOperand(0), dimension};
}

} // namespace

#define FP4_REIFIES_LIKE_FIRST_OPERAND(OpT)                                                        \
  LogicalResult OpT::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {  \
    return reify(*this, builder, shapes,                                                           \
                 [&](unsigned, int64_t dimension) { return likeFirstOperand(*this, dimension); }); \
  }

FP4_REIFIES_LIKE_FIRST_OPERAND(HadamardOp)
FP4_REIFIES_LIKE_FIRST_OPERAND(DequantizeOp)
FP4_REIFIES_LIKE_FIRST_OPERAND(SwizzleScalesOp)
FP4_REIFIES_LIKE_FIRST_OPERAND(UnswizzleScalesOp)
// The only dynamic result is that of an amax for each row: as many as the operand has rows.
FP4_REIFIES_LIKE_FIRST_OPERAND(AmaxOp)
// Results of the following operations are static: M x 1 for the amaxes of M rows.
FP4_REIFIES_LIKE_FIRST_OPERAND(MatmulAlphaOp)
FP4_REIFIES_LIKE_FIRST_OPERAND(HadamardAmaxOp)
// Results have the rows of the scores.
FP4_REIFIES_LIKE_FIRST_OPERAND(TopKOp)
// All shapes are static.
FP4_REIFIES_LIKE_FIRST_OPERAND(StackScalesOp)
FP4_REIFIES_LIKE_FIRST_OPERAND(InterleaveShardsOp)
FP4_REIFIES_LIKE_FIRST_OPERAND(PrepackOp)
FP4_REIFIES_LIKE_FIRST_OPERAND(UnprepackOp)
FP4_REIFIES_LIKE_FIRST_OPERAND(AttentionOp)

#undef FP4_REIFIES_LIKE_FIRST_OPERAND

/// Gradients of queries, keys and values, each of the shape of its operand.
LogicalResult AttentionBackwardOp::reifyResultShapes(OpBuilder &builder,
                                                     ReifiedRankedShapedTypeDims &shapes) {
  return reify(*this, builder, shapes, [&](unsigned result, int64_t dimension) {
    return SizeSource{(*this)->getOperand(result), dimension};
  });
}

/// `rows` and `tokens` follow from the number of ids; `offsets` is static.
LogicalResult ExpertOrderOp::reifyResultShapes(OpBuilder &builder,
                                               ReifiedRankedShapedTypeDims &shapes) {
  if (failed(reify(*this, builder, shapes,
                   [&](unsigned, int64_t) { return SizeSource{getIds(), 0}; })))
    return failure();
  if (!cast<RankedTensorType>(getTokens().getType()).isDynamicDim(0))
    return success();
  int64_t columns = cast<RankedTensorType>(getIds().getType()).getDimSize(1);
  Value rows = cast<Value>(shapes.back().front());
  Value times = arith::ConstantIndexOp::create(builder, getLoc(), columns);
  Value more = arith::ConstantIndexOp::create(builder, getLoc(),
                                              int64_t(getExperts() * (getMultiple() - 1)));
  Value pairs = arith::MulIOp::create(builder, getLoc(), rows, times);
  shapes.back().front() = arith::AddIOp::create(builder, getLoc(), pairs, more).getResult();
  return success();
}

LogicalResult QuantizeOp::reifyResultShapes(OpBuilder &builder,
                                            ReifiedRankedShapedTypeDims &shapes) {
  return reify(*this, builder, shapes, [&](unsigned result, int64_t dimension) {
    bool columnwise = result >= 2 || !hasRowwise(), isScales = result % 2 == 1;
    return SizeSource{getInput(), columnwise ? 1 - dimension : dimension,
                      isScales && dimension == 1 ? getBlockSize() : 1};
  });
}

LogicalResult BlockScaledMatmulOp::reifyResultShapes(OpBuilder &builder,
                                                     ReifiedRankedShapedTypeDims &shapes) {
  return reify(*this, builder, shapes, [&](unsigned, int64_t dimension) {
    if (dimension == 0)
      return SizeSource{getLhs(), 0};
    if (!hasPrepackedRhs())
      return SizeSource{getRhs(), 0};
    Value columns = operandOfColumns(*this);
    return columns ? SizeSource{columns, 1}
                   : SizeSource{getRhs(), 0, /*unit=*/1, hw::weightTileRows};
  });
}
