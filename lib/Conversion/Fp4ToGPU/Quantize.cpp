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
  if (!op.hasColumnwise() && !op.hasSquareBlocks())
    return success();
  if (op.getRounding() != Rounding::NearestEven)
    return noKernel(op, "rounding nearest_even of these outputs and blocks", "rounding stochastic",
                    "remove 'rounding' and 'rng'");
  if (op.getHadamard() || op.getColumnwiseHadamard())
    return noKernel(op, "plain inputs of these outputs and blocks",
                    op.getHadamard() ? "attribute 'hadamard'" : "attribute 'columnwise_hadamard'",
                    "transform the tensor with fp4.hadamard");
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
