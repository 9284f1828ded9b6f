//===- Quantize.cpp - Which kernel quantizes ------------------------------===//
#include "Lowering.h"

using namespace mlir;
using namespace fp4;

namespace {

InFlightDiagnostic noKernel(QuantizeOp op, const Twine &what, const Twine &found, StringRef note) {
  InFlightDiagnostic diag = op.emitOpError() << "has kernels for " << what << ", but got " << found;
  diag.attachNote() << note;
  return diag;
}

LogicalResult checkSupported(QuantizeOp op) {
  for (auto transform : {op.getHadamard(), op.getColumnwiseHadamard()})
    if (transform && transform->getArithmetic() != HadamardArithmetic::Butterfly)
      return noKernel(op, "hadamard arithmetic butterfly", "tensor_core", "remove 'arithmetic'");
  return success();
}

} // namespace

LogicalResult fp4::lowerQuantize(QuantizeOp op, LoweringContext &context) {
  if (failed(checkSupported(op)))
    return failure();
  if (op.hasColumnwise() || op.hasSquareBlocks())
    return lowerTileQuantize(op, context);
  return lowerRowwiseQuantize(op, context);
}
