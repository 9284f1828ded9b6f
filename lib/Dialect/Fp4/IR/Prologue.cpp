//===- Prologue.cpp - Elementwise operations that their readers compute ---===//
#include "fp4/Dialect/Fp4/IR/Prologue.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

using namespace mlir;

namespace {

bool isWhole(linalg::GenericOp op, OpOperand *input) {
  return op.getMatchingIndexingMap(input).isIdentity() &&
         input->get().getType() ==
             cast<RankedTensorType>(op.getResult(0).getType())
                 .clone(getElementTypeOrSelf(input->get()));
}

bool transformsOnTensorCore(std::optional<fp4::HadamardAttr> transform) {
  return transform && transform->getArithmetic() == fp4::HadamardArithmetic::TensorCore;
}

} // namespace

linalg::GenericOp fp4::prologueOf(Value tensor) {
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  return op && op->hasAttr(kPrologueAttr) ? op : linalg::GenericOp();
}

std::string fp4::whyNotPrologue(linalg::GenericOp op) {
  if (op->getNumResults() != 1)
    return "the operation has several results";
  auto type = dyn_cast<RankedTensorType>(op.getResult(0).getType());
  if (!type || type.getRank() != 2)
    return "the result is no matrix";
  if (type.isDynamicDim(1))
    return "the columns are dynamic";
  auto linalgOp = cast<linalg::LinalgOp>(op.getOperation());
  if (std::string reason = whyNotElementwise(linalgOp); !reason.empty())
    return reason;
  if (std::string reason = whyNotInMemory(linalgOp); !reason.empty())
    return reason;
  if (!isElementType(type.getElementType()))
    return "the elements are of 8 bits";
  return wholeInputOf(op) ? "" : "no operand has an element for each of the result";
}

std::string fp4::whyNotReader(Operation *reader) {
  if (isa<AmaxOp>(reader))
    return "";
  auto quantize = dyn_cast<QuantizeOp>(reader);
  if (!quantize)
    return ("'" + reader->getName().getStringRef() + "' reads it from memory").str();
  bool onTensorCore = transformsOnTensorCore(quantize.getHadamard()) ||
                      transformsOnTensorCore(quantize.getColumnwiseHadamard());
  return onTensorCore ? "the tensor core transforms it, which reads memory" : "";
}

Value fp4::wholeInputOf(linalg::GenericOp op) {
  for (OpOperand *input : op.getDpsInputOperands())
    if (isWhole(op, input))
      return input->get();
  return {};
}
