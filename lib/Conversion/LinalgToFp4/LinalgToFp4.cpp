//===- LinalgToFp4.cpp - Block-scaled contractions of linalg to fp4 -------===//
//
// Contraction.h recognizes the meaning of a linalg.generic. Here its operands become matrices, or
// matrices in batches, and the scaling by one number that may follow becomes alpha.
//
//===----------------------------------------------------------------------===//

#include "Contraction.h"

#include "fp4/Conversion/Ingress.h"
#include "fp4/Conversion/LinalgToFp4/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

namespace fp4 {
#define GEN_PASS_DEF_CONVERTLINALGTOFP4
#include "fp4/Conversion/LinalgToFp4/Passes.h.inc"
} // namespace fp4

using namespace mlir;
using namespace fp4;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

template <typename OpT> bool hasInBody(linalg::LinalgOp op) {
  return op.getBlock()
      ->walk([](OpT) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Returns true when a block-scaled operation was meant: fp4 numbers are read, or scaled.
bool looksBlockScaled(linalg::LinalgOp op) {
  auto isFp4 = [](Type type) { return isa<Float4E2M1FNType>(getElementTypeOrSelf(type)); };
  return llvm::any_of(op->getOperandTypes(), isFp4) || llvm::any_of(op->getResultTypes(), isFp4) ||
         hasInBody<arith::ScalingExtFOp>(op) || hasInBody<arith::ScalingTruncFOp>(op);
}

/// Returns true when every element of `value` is zero before the contraction adds to it.
bool isZero(Value value) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return matchPattern(fill.getInputs()[0], m_AnyZeroFloat());
  return matchPattern(value, m_AnyZeroFloat());
}

//===----------------------------------------------------------------------===//
// Alpha
//===----------------------------------------------------------------------===//

/// An operation that multiplies each element of a contraction with one number.
struct Scaling {
  linalg::GenericOp op;
  Value alpha;
};

/// The operation that alone reads `result`, if it is `result * alpha`, maybe rounded.
std::optional<Scaling> matchScaling(Value result) {
  if (!result.hasOneUse())
    return std::nullopt;
  auto op = dyn_cast<linalg::GenericOp>(*result.user_begin());
  if (!op || op.getNumDpsInputs() != 2 || op->getNumResults() != 1 || !isElementwise(op))
    return std::nullopt;
  unsigned own = result.use_begin()->getOperandNumber();
  if (own > 1)
    return std::nullopt;
  Value alpha = op.getDpsInputs()[1 - own];
  auto type = dyn_cast<RankedTensorType>(alpha.getType());
  bool maps = op.getIndexingMapsArray()[own].isIdentity() &&
              op.getIndexingMapsArray()[2].isIdentity() && type && type.getRank() == 0 &&
              type.getElementType().isF32();
  Value yielded = op.getBody()->getTerminator()->getOperand(0);
  if (auto rounded = yielded.getDefiningOp<arith::TruncFOp>())
    yielded = rounded.getIn();
  auto product = yielded.getDefiningOp<arith::MulFOp>();
  if (!maps || !product)
    return std::nullopt;
  Value element = op.getBody()->getArgument(own), factor = op.getBody()->getArgument(1 - own);
  if ((product.getLhs() == element && product.getRhs() == factor) ||
      (product.getLhs() == factor && product.getRhs() == element))
    return Scaling{op, alpha};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// [0, ..., counts[0] - 1], [counts[0], ...], ...; none for 0.
SmallVector<ReassociationIndices> groupsOf(ArrayRef<unsigned> counts) {
  SmallVector<ReassociationIndices> groups;
  int64_t next = 0;
  for (unsigned count : counts) {
    if (count == 0)
      continue;
    ReassociationIndices &group = groups.emplace_back();
    for (unsigned i = 0; i < count; ++i)
      group.push_back(next++);
  }
  return groups;
}

/// `tensor` with as many dimensions as `counts` has nonzero numbers: each is made of so many.
Value collapsed(OpBuilder &b, Location loc, Value tensor, ArrayRef<unsigned> counts) {
  SmallVector<ReassociationIndices> groups = groupsOf(counts);
  if (static_cast<int64_t>(groups.size()) == typeOf(tensor).getRank())
    return tensor;
  return tensor::CollapseShapeOp::create(b, loc, tensor, groups);
}

/// `type` with dimensions that are each the product of so many.
RankedTensorType collapsedType(RankedTensorType type, ArrayRef<unsigned> counts) {
  SmallVector<int64_t> shape;
  for (const ReassociationIndices &group : groupsOf(counts)) {
    int64_t size = 1;
    for (int64_t dim : group)
      size = type.isDynamicDim(dim) || ShapedType::isDynamic(size) ? ShapedType::kDynamic
                                                                   : size * type.getDimSize(dim);
    shape.push_back(size);
  }
  return RankedTensorType::get(shape, type.getElementType());
}

/// Checks that data has static sizes where dimensions are put together, and a buffer.
LogicalResult checkData(linalg::GenericOp op, Value data, unsigned batches, unsigned rows,
                        unsigned depth) {
  RankedTensorType type = typeOf(data);
  ArrayRef<int64_t> shape = type.getShape();
  if (ShapedType::isDynamicShape(shape.take_back(depth)))
    return ingress::refuse(op, "blocks must have static sizes", "only the rows may be dynamic");
  if ((batches > 1 && ShapedType::isDynamicShape(shape.take_front(batches))) ||
      (rows > 1 && ShapedType::isDynamicShape(shape.slice(batches, rows))))
    return ingress::refuse(
        op, "rows of several dimensions must have static sizes",
        "collapse them with tensor.collapse_shape before; the rows of a matrix may be dynamic");
  bool isPacked = type.getElementType().getIntOrFloatBitWidth() == 4;
  if (depth == 2 && isPacked && shape.back() % 32 && !data.getDefiningOp<tensor::ExpandShapeOp>())
    return ingress::refuse(op, "a side in blocks of 16 has no buffer: two elements share a byte, and "
                               "rows of 8 bytes are not aligned",
                           "pass the side as a matrix, and make blocks of it with "
                           "tensor.expand_shape");
  return success();
}

/// Checks that the elements of a scale block are those that the format finds by K and the number of
/// scale blocks.
LogicalResult checkBlock(linalg::GenericOp op, const LoopedSide &side) {
  SmallVector<Value> inputs = op.getDpsInputs();
  int64_t block = side.scales ? side.scales->block : 1;
  if (block == 1)
    return success();
  int64_t k = typeOf(inputs[side.data.number]).getShape().back();
  int64_t blocks = typeOf(inputs[side.scales->number]).getShape().back();
  if (blocks * block == k)
    return success();
  return ingress::refuse(op,
                         "scales of " + Twine(block) + " elements must be " + Twine(k / block) +
                             " in a row, but got " + Twine(blocks),
                         "pass a scale for each block, and pad K to whole blocks");
}

/// A side as matrices.
FailureOr<ingress::ScaledOperand> operandOf(OpBuilder &b, linalg::GenericOp op,
                                            const LoopedSide &side, unsigned batches,
                                            unsigned depth) {
  SmallVector<Value> inputs = op.getDpsInputs();
  Value data = inputs[side.data.number];
  if (failed(checkData(op, data, batches, side.ownLoops, depth)) || failed(checkBlock(op, side)))
    return failure();
  Location loc = op.getLoc();
  ingress::ScaledOperand operand;
  operand.data = collapsed(b, loc, data, {batches, side.ownLoops, depth});
  if (side.scales)
    operand.scales = collapsed(b, loc, inputs[side.scales->number], {batches, side.ownLoops, 1});
  return operand;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// `value` with the dimensions of `type`, of which those that were put together are static.
Value expanded(OpBuilder &b, Location loc, Value value, RankedTensorType type,
               ArrayRef<unsigned> counts) {
  SmallVector<ReassociationIndices> groups = groupsOf(counts);
  if (type.getRank() == typeOf(value).getRank())
    return value;
  return tensor::ExpandShapeOp::create(b, loc, type, value, groups);
}

LogicalResult convertContraction(linalg::GenericOp op) {
  FailureOr<Contraction> contraction = matchContraction(op);
  if (failed(contraction))
    return failure();
  if (!isZero(op.getDpsInits()[0]))
    return ingress::refuse(op, "the result must begin with zero, because a matmul adds to nothing",
                           "begin with a linalg.fill of 0.0, and add the other tensor behind the "
                           "contraction");
  std::optional<Scaling> scaling = matchScaling(op->getResult(0));
  linalg::GenericOp last = scaling ? scaling->op : op;
  OpBuilder b(last);
  const unsigned batches = contraction->batchLoops, depth = contraction->depthLoops;
  auto lhs = operandOf(b, op, contraction->lhs, batches, depth);
  auto rhs = failed(lhs) ? lhs : operandOf(b, op, contraction->rhs, batches, depth);
  if (failed(rhs))
    return failure();
  auto type = typeOf(last->getResult(0));
  const unsigned counts[] = {batches, contraction->lhs.ownLoops, contraction->rhs.ownLoops};
  FailureOr<Value> product = ingress::convertMatmul(
      b, op, {*lhs, *rhs, scaling ? scaling->alpha : Value(), collapsedType(type, counts)});
  if (failed(product))
    return failure();
  last->getResult(0).replaceAllUsesWith(expanded(b, op.getLoc(), *product, type, counts));
  last->erase();
  if (scaling)
    op->erase();
  return success();
}

LogicalResult convertDequantization(linalg::GenericOp op) {
  FailureOr<LoopedSide> side = matchDequantization(op);
  if (failed(side))
    return failure();
  auto type = typeOf(op->getResult(0));
  const unsigned rows = side->ownLoops, depth = type.getRank() - rows;
  OpBuilder b(op);
  FailureOr<ingress::ScaledOperand> operand = operandOf(b, op, *side, /*batches=*/0, depth);
  if (failed(operand))
    return failure();
  FailureOr<Value> values = ingress::convertDequantization(b, op, *operand, type.getElementType());
  if (failed(values))
    return failure();
  op->getResult(0).replaceAllUsesWith(expanded(b, op.getLoc(), *values, type, {0, rows, depth}));
  op->erase();
  return success();
}

LogicalResult convert(linalg::LinalgOp linalgOp) {
  auto op = dyn_cast<linalg::GenericOp>(linalgOp.getOperation());
  if (hasInBody<arith::ScalingTruncFOp>(linalgOp))
    return ingress::refuse(linalgOp,
                           "arith.scaling_truncf takes scales that are computed before, and a "
                           "quantizer of fp4 computes them of its blocks",
                           "use fp4.quantize, whose recipe says how a scale derives from its block: "
                           "ocp_floor is that of OCP MX (docs/reference/recipes.md)");
  if (!op || !op.hasPureTensorSemantics())
    return ingress::refuse(linalgOp, "it reads or makes numbers of 4 bits and is no linalg.generic "
                                     "on tensors",
                           "generalize it with linalg-generalize-named-ops, before it is bufferized");
  return isElementwise(op) ? convertDequantization(op) : convertContraction(op);
}

struct ConvertLinalgToFp4 : fp4::impl::ConvertLinalgToFp4Base<ConvertLinalgToFp4> {
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> operations;
    getOperation().walk([&](linalg::LinalgOp op) {
      // A transposition may be read through (docs/reference/semantics.md), and operations with a meaning of their
      // own are judged later.
      if (!isa<linalg::TransposeOp>(op) && looksBlockScaled(op))
        operations.push_back(op);
    });
    bool complete = true;
    for (linalg::LinalgOp op : operations) {
      if (succeeded(convert(op)))
        ++numConverted;
      else
        complete = false; // the remaining operations are reported too
    }
    if (!complete)
      signalPassFailure();
  }
};

} // namespace
