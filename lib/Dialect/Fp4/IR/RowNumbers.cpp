//===- RowNumbers.cpp - Rows that are gathered and scattered --------------===//
#include "fp4/Dialect/Fp4/IR/RowNumbers.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

using namespace mlir;
using namespace fp4;

static std::string whyNotNumbers(RankedTensorType numbers) {
  if (!numbers.getElementType().isSignlessInteger(64))
    return "the row numbers are not i64";
  return numbers.getRank() == 2 ? "" : "the row numbers are no column, M x 1";
}

tensor::GatherOp fp4::gatherOf(Value tensor) { return tensor.getDefiningOp<tensor::GatherOp>(); }

std::string fp4::whyNotGather(tensor::GatherOp op) {
  RankedTensorType source = op.getSourceType();
  if (op.getGatherDims() != ArrayRef<int64_t>{0} || source.getRank() != 2 ||
      op.getResultType().getRank() != 2)
    return "it gathers other than the rows of a matrix";
  if (std::string reason = whyNotNumbers(op.getIndicesType()); !reason.empty())
    return reason;
  if (!isElementType(source.getElementType()))
    return "the elements are not f32, bf16 or f16";
  return source.isDynamicDim(1) ? "the columns are dynamic" : "";
}

tensor::ScatterOp fp4::scatterOf(Value result) {
  auto scatter =
      result.hasOneUse() ? dyn_cast<tensor::ScatterOp>(*result.user_begin()) : tensor::ScatterOp();
  return scatter && scatter.getSource() == result ? scatter : tensor::ScatterOp();
}

bool fp4::isScattered(Operation *op) {
  return llvm::any_of(op->getResults(), [](Value result) { return scatterOf(result) != nullptr; });
}

std::string fp4::whyNotScatter(tensor::ScatterOp op) {
  RankedTensorType source = op.getSourceType(), dest = op.getDestType();
  if (op.getScatterDims() != ArrayRef<int64_t>{0} || source.getRank() != 2 || dest.getRank() != 2)
    return "it scatters other than the rows of a matrix";
  if (std::string reason = whyNotNumbers(op.getIndicesType()); !reason.empty())
    return reason;
  if (!op.getDest().getDefiningOp<tensor::EmptyOp>())
    return "it does not write into a tensor.empty";
  if (!dest.hasStaticShape())
    return "the sizes of the result are dynamic";
  if (scaleLayout(source))
    return "scales in a layout have no rows one after the other";
  if (scatterOf(op.getSource()) != op || !isa<OpResult>(op.getSource()))
    return "something else reads the rows, too";
  Operation *numbers = op.getIndices().getDefiningOp();
  Operation *rows = op.getSource().getDefiningOp();
  return !numbers || numbers->getBlock() != rows->getBlock() || numbers->isBeforeInBlock(rows)
             ? ""
             : "the row numbers are computed behind the rows";
}
