//===- FusePrologues.cpp - Elementwise operations before a quantizer ------===//
//
// A linalg.generic whose readers are quantizers and amaxes becomes their prologue: each reader's
// kernel loads the inputs of the generic and computes it, and the result is not stored. The generic
// keeps all of its roundings, so that no bit changes.
//
//===----------------------------------------------------------------------===//
#include "Fusions.h"

#include "fp4/Dialect/Fp4/IR/Prologue.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr StringLiteral kPrologueFusion = "elementwise+quantize";

int64_t bytesOf(Value matrix) {
  return cast<RankedTensorType>(matrix.getType()).getElementTypeBitWidth() / 8;
}

/// Returns true when `readers` kernels that load all inputs move no more bytes than one that stores
/// the result for them. Inputs with fewer elements than the result stay in caches.
bool movesFewerBytes(linalg::GenericOp op, int64_t readers) {
  int64_t loaded = 0, stored = bytesOf(op.getResult(0));
  for (OpOperand *input : op.getDpsInputOperands())
    loaded += op.getMatchingIndexingMap(input).isIdentity() ? bytesOf(input->get()) : 0;
  return readers * loaded <= loaded + (1 + readers) * stored;
}

std::string whyNot(linalg::GenericOp op, ArrayRef<Operation *> readers) {
  if (op->hasAttr(Fp4Dialect::kPlanAttr))
    return ownKernel(op);
  if (std::string reason = whyNotPrologue(op); !reason.empty())
    return reason;
  for (OpOperand &use : op->getUses())
    if (std::string reason = whyNotReader(use); !reason.empty())
      return reason;
  return movesFewerBytes(op, readers.size())
             ? ""
             : "the readers together would load more than a kernel of its own moves";
}

} // namespace

bool fp4::fusePrologue(linalg::GenericOp op, RewriterBase &rewriter) {
  llvm::SetVector<Operation *> readers(op->user_begin(), op->user_end());
  if (op->hasAttr(kPrologueAttr) || isRowKernel(op) ||
      llvm::none_of(readers, llvm::IsaPred<QuantizeOp, AmaxOp>))
    return false;
  if (std::string reason = whyNot(op, readers.getArrayRef()); !reason.empty())
    return missed(op, kPrologueFusion, reason);
  rewriter.modifyOpInPlace(op, [&] { op->setAttr(kPrologueAttr, rewriter.getUnitAttr()); });
  return passed(op, kPrologueFusion, "the readers compute the elements, which are not stored");
}
