//===- CollapseElementwise.cpp - Elementwise operations of matrices -------===//
//
// Matmuls and quantizers take matrices, and programs have batches of rows: B x M x N behind a
// tensor.expand_shape, or before a tensor.collapse_shape. An elementwise operation between them
// becomes one of matrices, so that it can go into the kernel beside it. Dimensions of one element
// are dropped first: a bias of 1 x 1 x N is a row.
//
//===----------------------------------------------------------------------===//
#include "CollapseElementwise.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace {

bool isElementwise(Operation *op) {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  return generic && fp4::whyNotElementwise(cast<linalg::LinalgOp>(op)).empty();
}

/// Elementwise operations of more than two dimensions that are connected with a reshape of a
/// matrix.
SmallVector<linalg::GenericOp> operationsOfBatches(Operation *root) {
  SetVector<Operation *> found;
  auto isOfBatches = [](Operation *op) {
    return isElementwise(op) && cast<linalg::GenericOp>(op).getNumLoops() > 2;
  };
  auto add = [&](Operation *op) {
    if (isOfBatches(op))
      found.insert(op);
  };
  root->walk([&](Operation *op) {
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op); expand && expand.getSrcType().getRank() == 2)
      llvm::for_each(op->getUsers(), add);
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op);
        collapse && collapse.getResultType().getRank() == 2)
      if (Operation *producer = collapse.getSrc().getDefiningOp())
        add(producer);
  });
  for (size_t i = 0; i < found.size(); ++i) {
    Operation *op = found[i];
    llvm::for_each(op->getUsers(), add);
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        add(producer);
  }
  return llvm::map_to_vector(found, [](Operation *op) { return cast<linalg::GenericOp>(op); });
}

void dropUnits(ArrayRef<linalg::GenericOp> operations, RewriterBase &rewriter) {
  for (linalg::GenericOp op : operations) {
    linalg::ControlDropUnitDims control;
    rewriter.setInsertionPoint(op);
    FailureOr<linalg::DropUnitDimsResult> dropped = linalg::dropUnitDims(rewriter, op, control);
    if (succeeded(dropped))
      rewriter.replaceOp(op, dropped->replacements);
  }
}

/// Returns true when the reshape that `operand` reads or is read by is between a matrix and an
/// elementwise operation.
bool isOfMatrix(OpOperand *operand) {
  Operation *producer = operand->get().getDefiningOp();
  if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(producer))
    return expand.getSrcType().getRank() <= 2 && isElementwise(operand->getOwner());
  auto collapse = dyn_cast<tensor::CollapseShapeOp>(operand->getOwner());
  return collapse && collapse.getResultType().getRank() <= 2 && isElementwise(producer);
}

} // namespace

LogicalResult fp4::collapseElementwise(Operation *root) {
  SmallVector<linalg::GenericOp> operations = operationsOfBatches(root);
  if (operations.empty())
    return success();
  IRRewriter rewriter(root->getContext());
  dropUnits(operations, rewriter);
  RewritePatternSet patterns(root->getContext());
  linalg::populateFoldReshapeOpsByCollapsingPatterns(patterns, isOfMatrix);
  tensor::populateFoldTensorEmptyPatterns(patterns);
  tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, root->getContext());
  tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, root->getContext());
  GreedyRewriteConfig config; // a chain takes as many iterations as it has operations
  config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
  return applyPatternsGreedily(root, std::move(patterns), config);
}
