//===- DecomposeSoftmax.cpp - Softmax of rows in plain operations ---------===//

#include "fp4/Dialect/Fp4/Transforms/Softmax.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

static bool isOfRows(linalg::SoftmaxOp op) {
  ShapedType type = op.getInputOperandType();
  return op->getNumResults() == 1 && type.getElementType().isF32() &&
         int64_t(op.getDimension()) + 1 == type.getRank();
}

bool fp4::decomposeSoftmaxes(Operation *root) {
  SmallVector<linalg::SoftmaxOp> found;
  root->walk([&](linalg::SoftmaxOp op) {
    if (isOfRows(op))
      found.push_back(op);
  });
  IRRewriter rewriter(root->getContext());
  for (linalg::SoftmaxOp op : found) {
    rewriter.setInsertionPoint(op);
    rewriter.replaceOp(op, *op.decomposeOperation(rewriter));
  }
  return !found.empty();
}
