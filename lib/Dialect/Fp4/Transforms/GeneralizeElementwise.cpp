//===- GeneralizeElementwise.cpp - Upstream elementwise operations --------===//
//
// 1. Operations of arith and math on tensors, and named elementwise operations of linalg, become
//    linalg.generic.
// 2. A linalg.generic that only another one reads goes into it, and constants that are one number
//    become numbers of its body.
//
// Both are upstream transformations. Only operations are touched that have a kernel afterwards, or
// an epilogue that they go into.
//
//===----------------------------------------------------------------------===//
#include "fp4/Dialect/Fp4/Transforms/Passes.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
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
         (fp4::isElementType(tensor.getElementType()) || tensor.getElementType().isInteger(1));
}

bool isCastToE4M3(Operation *op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  return isa<arith::TruncFOp>(op) && type && !type.getEncoding() &&
         isa<Float8E4M3FNType>(type.getElementType());
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

/// Whether the producer of an operand goes into its only reader, which may read it several times.
bool isFusible(OpOperand *operand) {
  auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
  auto consumer = cast<linalg::LinalgOp>(operand->getOwner());
  bool isOnly = llvm::all_equal(operand->get().getUsers());
  return producer && isOnly && !hasPlan(producer) &&
         fp4::whyNotElementwise(producer).empty() && fp4::whyNotElementwise(consumer).empty();
}

struct GeneralizeElementwise : fp4::impl::GeneralizeElementwiseBase<GeneralizeElementwise> {
  void runOnOperation() override {
    SmallVector<Operation *> onTensors;
    SmallVector<linalg::LinalgOp> named;
    bool any = false;
    getOperation()->walk([&](Operation *op) {
      any |= isa<linalg::GenericOp>(op);
      if (isElementwiseOnTensors(op))
        onTensors.push_back(op);
      else if (isNamedElementwise(op))
        named.push_back(cast<linalg::LinalgOp>(op));
    });
    any |= !onTensors.empty() || !named.empty();
    if (!any)
      return; // programs of other operations stay as they are
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : named) {
      rewriter.setInsertionPoint(op);
      (void)linalg::generalizeNamedOp(rewriter, op);
    }
    if (failed(generalize(onTensors)) || failed(fuse()))
      signalPassFailure();
  }

private:
  LogicalResult generalize(ArrayRef<Operation *> operations) {
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseToLinalgConversionPatterns(patterns);
    GreedyRewriteConfig config;
    config.setStrictness(GreedyRewriteStrictness::ExistingOps);
    return applyOpPatternsGreedily(operations, std::move(patterns), config);
  }

  LogicalResult fuse() {
    RewritePatternSet patterns(&getContext());
    // Sizes are asked of arguments, not of results, which then have one reader less.
    memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
    linalg::populateElementwiseOpsFusionPatterns(patterns, isFusible);
    return applyPatternsGreedily(getOperation(), std::move(patterns));
  }
};

} // namespace
