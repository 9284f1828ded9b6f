//===- GeneralizeElementwise.cpp - Upstream elementwise operations --------===//
//
// 1. Operations of arith and math on tensors, and named elementwise operations of linalg, become
//    linalg.generic. A linalg.softmax of rows becomes the reductions and elementwise operations
//    that it stands for.
// 2. Slices and concatenations of columns go into the operations beside them (FoldColumns.cpp).
// 3. One of batches of rows, beside a reshape of a matrix, becomes one of matrices
//    (CollapseElementwise.cpp).
// 4. A linalg.generic that only another one reads goes into it, and constants that are one number
//    become numbers of its region.
// 5. An operation that only computes conditions (i1) and integers (i32) is copied for each of its
//    readers and goes into them: no kernel writes these to memory.
//
// The first, third and fourth are upstream transformations. Only operations are touched that have a
// kernel afterwards, or an epilogue that they go into.
//
//===----------------------------------------------------------------------===//
#include "fp4/Dialect/Fp4/Transforms/Passes.h"
#include "fp4/Dialect/Fp4/Transforms/Softmax.h"

#include "CollapseElementwise.h"
#include "FoldColumns.h"
#include "MoveRows.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"
#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/IR/RowReduction.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace fp4 {
#define GEN_PASS_DEF_GENERALIZEELEMENTWISE
#include "fp4/Dialect/Fp4/Transforms/Passes.h.inc"
} // namespace fp4

using namespace mlir;

namespace {

bool isNumbers(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && !tensor.getEncoding() &&
         (fp4::isElementType(tensor.getElementType()) ||
          fp4::isKernelOnlyType(tensor.getElementType()));
}

bool isCastToE4M3(Operation *op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  return isa<arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp>(op) && type &&
         !type.getEncoding() && isa<Float8E4M3FNType>(type.getElementType());
}

/// One operation on whole tensors that has an elementwise step.
bool isElementwiseOnTensors(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1 &&
         (isNumbers(op->getResult(0).getType()) || isCastToE4M3(op)) &&
         llvm::all_of(op->getOperandTypes(), isNumbers) && fp4::elementOpOf(op);
}

bool isNamedElementwise(Operation *op) {
  auto named = dyn_cast<linalg::LinalgOp>(op);
  return named && !isa<linalg::GenericOp>(op) && fp4::whyNotElementwise(named).empty();
}

bool hasPlan(Operation *op) { return op->hasAttr(fp4::Fp4Dialect::kPlanAttr); }

/// A reduction of rows by one operation, which stays in the region that it gets: linalg.reduce.
bool isNamedReduction(Operation *op) {
  auto named = dyn_cast<linalg::LinalgOp>(op);
  return named && isa<linalg::ReduceOp>(op) &&
         (fp4::whyNotRowReduction(named).empty() || fp4::isReductionOfBatches(op));
}

/// Returns true when the producer of an operand goes into its only reader, which may read it
/// several times. The reader may reduce the rows of the producer's matrix.
bool isFusible(OpOperand *operand, bool isShared = false) {
  auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
  auto consumer = cast<linalg::LinalgOp>(operand->getOwner());
  bool isOnly = isShared || llvm::all_equal(operand->get().getUsers());
  if (!producer || !isOnly || hasPlan(producer) || !fp4::whyNotElementwise(producer).empty())
    return false;
  bool isReadElsewhere = llvm::any_of(consumer.getDpsInputOperands(), [&](OpOperand *input) {
    return input->get() == operand->get() && fp4::isIndexedByExpressions(consumer, input);
  });
  if (isReadElsewhere || (fp4::hasIndexExpressions(producer) && fp4::isRowReduction(consumer)))
    return false;
  return fp4::whyNotElementwise(consumer).empty() ||
         (fp4::isRowReduction(consumer) && consumer.isDpsInput(operand) &&
          !fp4::isNumbersOfRows(operand->get().getType()));
}

/// Returns true for an operation that, perhaps through others, gives parts of concatenations alone:
/// the parts share what is computed before them.
bool isPart(Operation *op) {
  return !op->use_empty() && llvm::all_of(op->getUsers(), [](Operation *user) {
    return isa<tensor::ConcatOp>(user) || (isa<linalg::GenericOp>(user) && isPart(user));
  });
}

/// An elementwise operation that gives nothing but conditions and integers.
bool givesKernelOnly(Operation *op) {
  return isa_and_present<linalg::GenericOp>(op) &&
         llvm::all_of(
             op->getResultTypes(),
             [](Type type) { return fp4::isKernelOnlyType(getElementTypeOrSelf(type)); }) &&
         fp4::whyNotElementwise(cast<linalg::LinalgOp>(op)).empty();
}

/// Copies what `reader` needs of these for it alone where others need them too. A reader has one
/// copy of each, so that a chain of conditions grows no faster than the program.
bool copyKernelOnly(linalg::GenericOp reader, RewriterBase &rewriter) {
  llvm::SetVector<Operation *> needed;
  auto need = [&](Operation *op) {
    for (Value operand : op->getOperands())
      if (givesKernelOnly(operand.getDefiningOp()))
        needed.insert(operand.getDefiningOp());
  };
  need(reader);
  for (size_t i = 0; i < needed.size(); ++i)
    need(needed[i]);
  bool isShared = llvm::any_of(needed, [&](Operation *op) {
    return llvm::any_of(op->getUsers(),
                        [&](Operation *user) { return user != reader && !needed.contains(user); });
  });
  if (!isShared)
    return false;
  IRMapping copies;
  for (Operation *op : needed) {
    rewriter.setInsertionPointAfter(op);
    copies.map(op->getResults(), rewriter.clone(*op)->getResults());
  }
  auto readCopies = [&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      operand.set(copies.lookupOrDefault(operand.get()));
  };
  for (Operation *op : needed)
    readCopies(copies.lookup(op->getResult(0)).getDefiningOp());
  readCopies(reader);
  return true;
}

struct GeneralizeElementwise : fp4::impl::GeneralizeElementwiseBase<GeneralizeElementwise> {
  void runOnOperation() override {
    SmallVector<Operation *> onTensors;
    SmallVector<linalg::LinalgOp> named;
    bool any = fp4::decomposeSoftmaxes(getOperation());
    getOperation()->walk([&](Operation *op) {
      any |= isa<linalg::GenericOp, tensor::GatherOp, tensor::ScatterOp>(op);
      if (isElementwiseOnTensors(op))
        onTensors.push_back(op);
      else if (isNamedElementwise(op) || isNamedReduction(op))
        named.push_back(cast<linalg::LinalgOp>(op));
    });
    IRRewriter rewriter(&getContext());
    any |= !onTensors.empty() || !named.empty();
    if (!any)
      return; // programs of other operations stay as they are
    for (linalg::LinalgOp op : named) {
      rewriter.setInsertionPoint(op);
      (void)linalg::generalizeNamedOp(rewriter, op);
    }
    if (failed(checkSizes()) || failed(generalize(onTensors)) || failed(moveElements()) ||
        failed(fp4::collapseElementwise(getOperation())) || failed(fuse()) ||
        (copyAllKernelOnly(rewriter) && failed(fuse())))
      return signalPassFailure();
    expandSizes(rewriter);
  }

private:
  /// Fails where a tensor is asked for the size of a dimension that it does not have: the patterns
  /// of fuse() would resolve such a size for ever.
  LogicalResult checkSizes() {
    WalkResult result = getOperation()->walk([](tensor::DimOp op) {
      std::optional<int64_t> index = op.getConstantIndex();
      auto type = dyn_cast<RankedTensorType>(op.getSource().getType());
      if (!index || !type || (*index >= 0 && *index < type.getRank()))
        return WalkResult::advance();
      fp4::withNote(op.emitOpError() << "index must be below the rank " << type.getRank()
                                     << ", but got " << *index,
                    "the dimensions of a tensor count from 0");
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  /// Operations on slices of columns are one operation before they are concatenated, and know their
  /// rows before these are gathered or scattered.
  LogicalResult moveElements() {
    bool hasParts = false;
    getOperation()->walk(
        [&](Operation *op) { hasParts |= isa<tensor::ConcatOp, tensor::ExtractSliceOp>(op); });
    auto isOfPart = [](OpOperand *operand) {
      return isFusible(operand, isPart(operand->getOwner()));
    };
    if (hasParts && failed(fuse(isOfPart)))
      return failure();
    if (failed(fp4::foldColumns(getOperation())))
      return failure();
    IRRewriter rewriter(&getContext());
    fp4::computeMovedRows(getOperation(), rewriter);
    return success();
  }

  LogicalResult generalize(ArrayRef<Operation *> operations) {
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseToLinalgConversionPatterns(patterns);
    GreedyRewriteConfig config;
    config.setStrictness(GreedyRewriteStrictness::ExistingOps);
    return applyOpPatternsGreedily(operations, std::move(patterns), config);
  }

  using Control = bool(OpOperand *);
  LogicalResult fuse(const std::function<Control> &control = [](OpOperand *operand) {
    return isFusible(operand);
  }) {
    RewritePatternSet patterns(&getContext());
    // Sizes are asked of arguments, not of results, which then have one reader less.
    memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
    linalg::populateElementwiseOpsFusionPatterns(patterns, control);
    GreedyRewriteConfig config; // a chain takes as many iterations as it has operations
    config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
    return applyPatternsGreedily(getOperation(), std::move(patterns), config);
  }

  /// Sizes of batches are products, which upstream patterns write as affine.apply.
  void expandSizes(RewriterBase &rewriter) {
    SmallVector<affine::AffineApplyOp> sizes;
    getOperation()->walk([&](affine::AffineApplyOp op) { sizes.push_back(op); });
    for (affine::AffineApplyOp op : sizes) {
      rewriter.setInsertionPoint(op);
      std::optional<SmallVector<Value, 8>> expanded =
          affine::expandAffineMap(rewriter, op.getLoc(), op.getAffineMap(), op.getOperands());
      if (expanded)
        rewriter.replaceOp(op, *expanded);
    }
  }

  bool copyAllKernelOnly(RewriterBase &rewriter) {
    SmallVector<linalg::GenericOp> readers;
    getOperation()->walk([&](linalg::GenericOp op) {
      if (!givesKernelOnly(op) && fp4::whyNotElementwise(cast<linalg::LinalgOp>(*op)).empty())
        readers.push_back(op);
    });
    bool any = false;
    for (linalg::GenericOp reader : readers)
      any |= copyKernelOnly(reader, rewriter);
    return any;
  }
};

} // namespace
