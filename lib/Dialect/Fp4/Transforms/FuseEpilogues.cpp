//===- FuseEpilogues.cpp - Elementwise operations behind a matmul ---------===//
//
// A linalg.generic that alone reads a matmul becomes its epilogue region. One that alone reads two
// matmuls of one lhs makes one dual GEMM of them. The region begins with the rounding that each
// matmul has in the program, so that no bit changes.
//
//===----------------------------------------------------------------------===//
#include "Fusions.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"
#include "fp4/Dialect/Fp4/IR/Signature.h"
#include "fp4/Dialect/Fp4/IR/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr StringLiteral kEpilogue = "matmul+elementwise", kDual = "matmul+matmul";

/// The matmuls that `op` reads, the last of the program first: what it needs of others is computed
/// before that one.
SmallVector<BlockScaledMatmulOp> gemmsOf(linalg::GenericOp op) {
  llvm::SetVector<Operation *> found;
  for (Value input : op.getInputs())
    if (auto product = input.getDefiningOp<BlockScaledMatmulOp>();
        product && product->getBlock() == op->getBlock() && product.getResult() == input)
      found.insert(product);
  SmallVector<BlockScaledMatmulOp> products = llvm::map_to_vector(
      found, [](Operation *product) { return cast<BlockScaledMatmulOp>(product); });
  llvm::sort(products,
             [](BlockScaledMatmulOp x, BlockScaledMatmulOp y) { return y->isBeforeInBlock(x); });
  return products;
}

std::string whyNot(linalg::GenericOp op, BlockScaledMatmulOp product) {
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  if (op->hasAttr(Fp4Dialect::kPlanAttr))
    return ownKernel(op);
  for (Operation *user : product.getResult().getUsers())
    if (user != op)
      return ("'" + user->getName().getStringRef() + "' reads the matmul too").str();
  if (!product.getEpilogueBody().empty())
    return "the matmul has an epilogue region already";
  if (product.getOffsets() && !product.getUnspecifiedRows())
    return "rows of the matmul that are of no group are zero, and those of its result may be not";
  if (op->getNumResults() != 1)
    return "the operation has several results";
  if (type.getRank() != 2)
    return "the result is no matrix";
  if (std::string reason = whyNotInMemory(cast<linalg::LinalgOp>(op.getOperation()));
      !reason.empty())
    return reason;
  if (hasIndexExpressions(cast<linalg::LinalgOp>(op.getOperation())))
    return "the operation reads other rows and columns than its own";
  for (OpOperand *input : op.getDpsInputOperands())
    if (input->get() == product.getResult() && !op.getMatchingIndexingMap(input).isIdentity())
      return "the operation reads the matmul in another order";
  return whyNotElementwise(cast<linalg::LinalgOp>(op.getOperation()));
}

/// Returns true when a matmul of groups has so many rows that two kernels are faster than a dual
/// GEMM: 1.11 times as long for 4096 rows of eight groups of 2048 x 7168. Without groups one kernel
/// takes 0.75 to 0.98 of the time (benchmarks/results/dual_gemm_fp8_h200_2026-12-01.json).
bool isFasterApart(BlockScaledMatmulOp product) {
  constexpr int64_t mostRows = 512;
  std::optional<hw::TargetModel> target = findTarget(product);
  const route::Record *record = target ? route::findRoute(signatureOf(product), *target) : nullptr;
  int64_t rows = cast<RankedTensorType>(product.getLhs().getType()).getDimSize(0);
  return record && record->planner == route::Planner::Promoted && product.isGrouped() &&
         !ShapedType::isDynamic(rows) && rows > mostRows;
}

/// Why two matmuls, whose elements alone `op` reads, are not one dual GEMM.
std::string whyNotDual(linalg::GenericOp op, BlockScaledMatmulOp x, BlockScaledMatmulOp y) {
  if (x.getLhs() != y.getLhs() || x.getLhsScales() != y.getLhsScales())
    return "the matmuls have no common lhs";
  if (x.getGroups() != y.getGroups() || x.getOffsets() != y.getOffsets())
    return "the matmuls have different groups";
  if (x.getFormat() != y.getFormat() || x.getFormatOfRhs() != y.getFormatOfRhs() ||
      x.getRhs().getType() != y.getRhs().getType())
    return "the matmuls differ in their format, or in the type of their rhs";
  if (static_cast<bool>(x.getAlpha()) != static_cast<bool>(y.getAlpha()) ||
      (x.getAlpha() && x.getAlpha().getType() != y.getAlpha().getType()))
    return "the matmuls have alphas of different types";
  for (BlockScaledMatmulOp product : {x, y}) {
    if (std::string reason = whyNoRoute(product, signatureOf(product).with(route::Limit::Dual));
        !reason.empty())
      return reason;
    if (isFasterApart(product))
      return "so many rows are faster in two kernels, where no tensor core waits for a gate";
    if (product.addsRanges() || product.getEpilogue())
      return "a matmul has split-K or steps of its own";
    if (product->hasAttr(Fp4Dialect::kPlanAttr) || product.getDispatch())
      return "a matmul has a plan for a kernel of its own";
    if (std::string reason = whyNot(op, product); !reason.empty())
      return reason;
  }
  return {};
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
  /// `from` are the elements that the epilogue region takes, in the order of its arguments.
  BodyBuilder(RewriterBase &b, linalg::GenericOp op, ValueRange from) : b(b), op(op), from(from) {}

  void build(Region &region, ValueRange inputs) {
    SmallVector<Type> types(from.size(), b.getF32Type());
    for (Value input : inputs)
      types.push_back(getElementTypeOrSelf(input));
    SmallVector<Location> locs(types.size(), op.getLoc());
    OpBuilder::InsertionGuard guard(b);
    Block *body = b.createBlock(&region, {}, types, locs);
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
    llvm::DenseMap<Value, Value> elements;
    for (auto [i, source] : llvm::enumerate(from)) {
      Value element = body->getArgument(i);
      if (Type type = getElementTypeOrSelf(source); !type.isF32())
        element = arith::TruncFOp::create(b, op.getLoc(), type, element);
      elements[source] = element;
    }
    unsigned next = from.size();
    for (OpOperand *input : op.getDpsInputOperands()) {
      Value element = elements.lookup(input->get());
      mapping.map(op.getMatchingBlockArgument(input),
                  element ? element : Value(body->getArgument(next++)));
    }
  }

  /// Constants from outside, which a region that captures nothing has inside.
  void mapConstants(Operation &old) {
    for (Value operand : old.getOperands())
      if (Operation *constant = operand.getDefiningOp();
          constant && constant->getBlock() != op.getBody() && !mapping.contains(operand))
        b.clone(*constant, mapping);
  }

  RewriterBase &b;
  linalg::GenericOp op;
  ValueRange from;
  IRMapping mapping;
};

/// Replaces `op`, and the one or two matmuls `from`, by a matmul with an epilogue region.
BlockScaledMatmulOp absorb(RewriterBase &b, linalg::GenericOp op,
                           ArrayRef<BlockScaledMatmulOp> from) {
  b.setInsertionPoint(op);
  SmallVector<Value> inputs;
  for (OpOperand *input : op.getDpsInputOperands())
    if (llvm::none_of(
            from, [&](BlockScaledMatmulOp product) { return product.getResult() == input->get(); }))
      inputs.push_back(asMatrix(b, op, input));
  BlockScaledMatmulOp first = from.front(), second = from.size() > 1 ? from[1] : nullptr;
  SmallVector<Location> locs = {op.getLoc()};
  for (BlockScaledMatmulOp product : from)
    locs.insert(locs.end() - 1, product.getLoc());
  auto fused = BlockScaledMatmulOp::create(
      b, b.getFusedLoc(locs), op.getResult(0).getType(), first.getLhsOperand(),
      first.getRhsOperand(), second ? second.getRhsOperand() : Value(), first.getAlpha(),
      second ? Value(second.getAlpha()) : Value(), first.getOffsets(), inputs, first.getWorkAttr(),
      first.getDispatchAttr(), first.getArithmeticAttr(), first.getEpilogueAttr());
  fused->setDiscardableAttrs(first->getDiscardableAttrDictionary());
  SmallVector<Value> elements;
  for (BlockScaledMatmulOp product : from)
    elements.push_back(product.getResult());
  buildEpilogue(b, op, elements, fused.getEpilogueInputs(), fused.getEpilogueBody());
  b.replaceOp(op, fused.getResult());
  for (BlockScaledMatmulOp product : from)
    b.eraseOp(product);
  return fused;
}

} // namespace

/// Reports an operation that reads a matmul's result in other dimensions.
static void reportView(linalg::GenericOp op) {
  for (Value operand : op.getInputs()) {
    Operation *view = operand.getDefiningOp(), *source = view;
    while (isa_and_present<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(source))
      source = source->getOperand(0).getDefiningOp();
    if (source == view || !isa_and_present<BlockScaledMatmulOp>(source))
      continue;
    missed(op, kEpilogue,
           ("'" + view->getName().getStringRef() + "' is between the matmul and its reader").str());
    return;
  }
}

void fp4::buildEpilogue(RewriterBase &b, linalg::GenericOp op, ValueRange from, ValueRange inputs,
                        Region &region) {
  BodyBuilder(b, op, from).build(region, inputs);
}

bool fp4::fuseEpilogue(linalg::GenericOp op, RewriterBase &rewriter) {
  SmallVector<BlockScaledMatmulOp> products = gemmsOf(op);
  if (products.empty()) {
    reportView(op);
    return false;
  }
  if (products.size() == 2) {
    std::string reason = whyNotDual(op, products[0], products[1]);
    if (reason.empty()) {
      auto fused = absorb(rewriter, op, {products[1], products[0]});
      return passed(fused, kDual, "two matmuls of one lhs are one");
    }
    missed(op, kDual, reason);
  }
  if (std::string reason = whyNot(op, products.front()); !reason.empty())
    return missed(op, kEpilogue, reason);
  auto fused = absorb(rewriter, op, products.front());
  return passed(fused, kEpilogue, "the matmul's epilogue computes what follows it");
}
