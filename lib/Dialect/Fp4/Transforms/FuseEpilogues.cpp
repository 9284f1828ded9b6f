//===- FuseEpilogues.cpp - Elementwise operations behind a product --------===//
//
// A linalg.generic that alone reads a product becomes the body of its epilogue. The body begins
// with the rounding that the product has in the program, so that no bit changes.
//
//===----------------------------------------------------------------------===//
#include "Fusions.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr StringLiteral kEpilogue = "product+elementwise";

remark::RemarkOpts named() { return remark::RemarkOpts::name(kEpilogue).category("fp4-fuse"); }

/// The last product that `op` reads: what it needs of others is computed before.
BlockScaledMatmulOp productOf(linalg::GenericOp op) {
  BlockScaledMatmulOp last;
  for (Value input : op.getInputs())
    if (auto product = input.getDefiningOp<BlockScaledMatmulOp>();
        product && product->getBlock() == op->getBlock() &&
        (!last || last->isBeforeInBlock(product)))
      last = product;
  return last;
}

std::string whyNot(linalg::GenericOp op, BlockScaledMatmulOp product) {
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  if (op->hasAttr(Fp4Dialect::kPlanAttr))
    return "'linalg.generic' has a plan for a kernel of its own";
  for (Operation *user : product.getResult().getUsers())
    if (user != op)
      return ("'" + user->getName().getStringRef() + "' reads the product too").str();
  if (!product.getEpilogueBody().empty())
    return "the product has a body already";
  if (product.getOffsets())
    return "rows of the product that are of no group are zero, and those of its result may be not";
  if (op->getNumResults() != 1)
    return "it has several results";
  if (type.getRank() != 2)
    return "its result is no matrix";
  if (!isElementType(type.getElementType()))
    return "its result is not f32, bf16 or f16";
  for (OpOperand *input : op.getDpsInputOperands())
    if (input->get() == product.getResult() && !op.getMatchingIndexingMap(input).isIdentity())
      return "it reads the product in another order";
  return whyNotElementwise(cast<linalg::LinalgOp>(op.getOperation()));
}

/// An input as the epilogue has it: a vector becomes a column or a row.
Value asMatrix(OpBuilder &b, linalg::GenericOp op, OpOperand *input) {
  SmallVector<unsigned> dims =
      dimensionsOf(cast<linalg::LinalgOp>(op.getOperation()), input->getOperandNumber());
  if (dims.size() != 1)
    return input->get();
  auto type = cast<RankedTensorType>(input->get().getType());
  SmallVector<int64_t> shape = {type.getDimSize(0), 1};
  if (dims.front() == 1)
    std::swap(shape[0], shape[1]);
  SmallVector<ReassociationIndices> groups = {{0, 1}};
  return tensor::ExpandShapeOp::create(b, op.getLoc(), type.clone(shape), input->get(), groups);
}

class BodyBuilder {
public:
  BodyBuilder(RewriterBase &b, linalg::GenericOp op, BlockScaledMatmulOp from)
      : b(b), op(op), from(from) {}

  void build(BlockScaledMatmulOp product) {
    SmallVector<Type> types = {b.getF32Type()};
    for (Value input : product.getEpilogueInputs())
      types.push_back(getElementTypeOrSelf(input));
    SmallVector<Location> locs(types.size(), op.getLoc());
    OpBuilder::InsertionGuard guard(b);
    Block *body = b.createBlock(&product.getEpilogueBody(), {}, types, locs);
    mapArguments(body);
    for (Operation &old : op.getBody()->without_terminator()) {
      mapConstants(old);
      b.clone(old, mapping);
    }
    Operation *end = op.getBody()->getTerminator();
    mapConstants(*end);
    YieldOp::create(b, end->getLoc(), mapping.lookup(end->getOperand(0)));
  }

private:
  void mapArguments(Block *body) {
    Value element = body->getArgument(0);
    if (Type type = getElementTypeOrSelf(from.getResult()); !type.isF32())
      element = arith::TruncFOp::create(b, op.getLoc(), type, element);
    unsigned next = 1;
    for (OpOperand *input : op.getDpsInputOperands()) {
      bool isProduct = input->get() == from.getResult();
      mapping.map(op.getMatchingBlockArgument(input),
                  isProduct ? element : Value(body->getArgument(next++)));
    }
  }

  /// Constants from outside, which a body that captures nothing has inside.
  void mapConstants(Operation &old) {
    for (Value operand : old.getOperands())
      if (Operation *constant = operand.getDefiningOp();
          constant && constant->getBlock() != op.getBody() && !mapping.contains(operand))
        b.clone(*constant, mapping);
  }

  RewriterBase &b;
  linalg::GenericOp op;
  BlockScaledMatmulOp from;
  IRMapping mapping;
};

} // namespace

bool fp4::fuseEpilogue(linalg::GenericOp op, RewriterBase &rewriter) {
  BlockScaledMatmulOp product = productOf(op);
  if (!product)
    return false;
  if (std::string reason = whyNot(op, product); !reason.empty()) {
    remark::missed(op.getLoc(), named()) << remark::reason("{0}", reason);
    return false;
  }
  rewriter.setInsertionPoint(op);
  SmallVector<Value> inputs;
  for (OpOperand *input : op.getDpsInputOperands())
    if (input->get() != product.getResult())
      inputs.push_back(asMatrix(rewriter, op, input));
  auto fused = BlockScaledMatmulOp::create(
      rewriter, rewriter.getFusedLoc({product.getLoc(), op.getLoc()}), op.getResult(0).getType(),
      product.getLhs(), product.getLhsScales(), product.getRhs(), product.getRhsScales(),
      product.getAlpha(), inputs, product.getOffsets(), product.getFormatAttr(),
      product.getEpilogueAttr(), product.getSplitKAttr(), product.getGroupsAttr(),
      product.getArithmeticAttr());
  fused->setDiscardableAttrs(product->getDiscardableAttrDictionary());
  BodyBuilder(rewriter, op, product).build(fused);
  rewriter.replaceOp(op, fused.getResult());
  rewriter.eraseOp(product);
  remark::passed(fused.getLoc(), named()) << "the product's epilogue computes what follows it";
  return true;
}
