//===- CollapseElementwise.cpp - Operations on batches become matrix ones --===//
//
// Matmuls and quantizers take matrices, and programs have batches of rows: B x M x N behind a
// tensor.expand_shape, or before a tensor.collapse_shape. An elementwise operation between them
// becomes one of matrices, so that it can go into the kernel beside it. Dimensions of one element
// are dropped first: a bias of 1 x 1 x N is a row. A reduction of the innermost dimension becomes
// one of the rows of a matrix, and the elementwise operations beside it follow.
//
//===----------------------------------------------------------------------===//
#include "CollapseElementwise.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/RowReduction.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace {

/// Returns true for an elementwise operation without a plan, which is one for its own loops.
bool isElementwise(Operation *op) {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  return generic && !op->hasAttr(fp4::Fp4Dialect::kPlanAttr) &&
         fp4::whyNotElementwise(cast<linalg::LinalgOp>(op)).empty();
}

/// Elementwise operations and reductions of more than two dimensions that are connected with a
/// reshape of a matrix, or with a reduction.
SmallVector<linalg::GenericOp> operationsOfBatches(Operation *root) {
  SetVector<Operation *> found;
  auto isOfBatches = [](Operation *op) {
    return fp4::isReductionOfBatches(op) ||
           (isElementwise(op) && cast<linalg::GenericOp>(op).getNumLoops() > 2);
  };
  auto add = [&](Operation *op) {
    if (isOfBatches(op))
      found.insert(op);
  };
  root->walk([&](Operation *op) {
    if (fp4::isReductionOfBatches(op))
      add(op);
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

/// Drops dimensions of one element, but for the loops of the rows and columns of a matrix.
void dropUnits(ArrayRef<linalg::GenericOp> operations, RewriterBase &rewriter) {
  linalg::ControlDropUnitDims control;
  control.controlFn = [](Operation *op) {
    return llvm::to_vector(llvm::seq(cast<linalg::LinalgOp>(op).getNumLoops() - 2));
  };
  for (linalg::GenericOp op : operations) {
    rewriter.setInsertionPoint(op);
    FailureOr<linalg::DropUnitDimsResult> dropped = linalg::dropUnitDims(rewriter, op, control);
    if (failed(dropped))
      continue;
    dropped->resultOp->setDiscardableAttrs(llvm::to_vector(op->getDiscardableAttrs()));
    rewriter.replaceOp(op, dropped->replacements);
  }
}

/// Moves views of results as batches to their first reader, so that only this one reads a result
/// there.
void sinkViews(Operation *root) {
  SmallVector<tensor::ExpandShapeOp> views;
  root->walk([&](tensor::ExpandShapeOp view) { views.push_back(view); });
  for (tensor::ExpandShapeOp view : views) {
    Operation *first = nullptr;
    for (Operation *user : view->getUsers()) {
      Operation *inBlock = view->getBlock()->findAncestorOpInBlock(*user);
      if (inBlock && (!first || inBlock->isBeforeInBlock(first)))
        first = inBlock;
    }
    if (first)
      view->moveBefore(first);
  }
}

/// The loops of a reduction of batches as those of a matrix.
SmallVector<ReassociationIndices> rowsAndColumns(linalg::LinalgOp op) {
  int64_t columns = op.getNumLoops() - 1;
  return {llvm::to_vector_of<int64_t, 2>(llvm::seq(columns)), {columns}};
}

/// The maps of a reduction without dimensions of one element, of whose index 0 the upstream
/// transformation knows nothing.
SmallVector<AffineMap> mapsOfLoops(linalg::LinalgOp op) {
  return llvm::map_to_vector(op.getIndexingMapsArray(), [](AffineMap map) {
    llvm::SmallBitVector constants(map.getNumResults());
    for (auto [i, index] : llvm::enumerate(map.getResults()))
      constants[i] = isa<AffineConstantExpr>(index);
    return map.dropResults(constants);
  });
}

/// Makes one loop of all loops of a reduction of batches that do not reduce.
void collapseReductions(Operation *root, RewriterBase &rewriter) {
  SmallVector<linalg::GenericOp> reductions;
  root->walk([&](linalg::GenericOp op) {
    if (fp4::isReductionOfBatches(op) &&
        llvm::equal(mapsOfLoops(cast<linalg::LinalgOp>(*op)), op.getIndexingMapsArray()))
      reductions.push_back(op);
  });
  for (linalg::GenericOp op : reductions) {
    rewriter.setInsertionPoint(op);
    FailureOr<linalg::CollapseResult> collapsed =
        linalg::collapseOpIterationDims(op, rowsAndColumns(op), rewriter);
    if (failed(collapsed))
      continue;
    collapsed->collapsedOp->setDiscardableAttrs(llvm::to_vector(op->getDiscardableAttrs()));
    rewriter.replaceOp(op, collapsed->results);
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

bool fp4::isReductionOfBatches(Operation *op) {
  if (!isa_and_present<linalg::GenericOp, linalg::ReduceOp>(op))
    return false;
  auto reduction = cast<linalg::LinalgOp>(op);
  return reduction.getNumLoops() > 2 && fp4::whyNotReductionOfRows(reduction).empty() &&
         linalg::areDimSequencesPreserved(mapsOfLoops(reduction), rowsAndColumns(reduction));
}

LogicalResult fp4::collapseElementwise(Operation *root) {
  SmallVector<linalg::GenericOp> operations = operationsOfBatches(root);
  if (operations.empty())
    return success();
  IRRewriter rewriter(root->getContext());
  dropUnits(operations, rewriter);
  collapseReductions(root, rewriter);
  RewritePatternSet patterns(root->getContext());
  linalg::populateFoldReshapeOpsByCollapsingPatterns(patterns, isOfMatrix);
  tensor::populateFoldTensorEmptyPatterns(patterns);
  linalg::FillOp::getCanonicalizationPatterns(patterns, root->getContext());
  tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, root->getContext());
  tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, root->getContext());
  GreedyRewriteConfig config; // a chain takes as many iterations as it has operations
  config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
  if (failed(applyPatternsGreedily(root, std::move(patterns), config)))
    return failure();
  sinkViews(root);
  DominanceInfo dominance; // several readers of an argument have each a view of it
  eliminateCommonSubExpressions(rewriter, dominance, root);
  return success();
}
