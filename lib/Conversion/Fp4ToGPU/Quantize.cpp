//===- Quantize.cpp - Which kernel quantizes ------------------------------===//
#include "Lowering.h"

using namespace mlir;
using namespace fp4;

LogicalResult fp4::lowerQuantize(QuantizeOp op, LoweringContext &context) {
  bool inTiles = op.hasColumnwise() || op.hasSquareBlocks() || op.getGroups();
  if (inTiles && !hasPackedData(op.getFormat()))
    return op.emitOpError("has kernels for the rowwise output of one matrix of format ")
           << stringifyFormat(op.getFormat()) << ", but got "
           << (op.getGroups() ? "groups" : "outputs " + stringifyOutputs(op.getOutputs()).str());
  if (inTiles)
    return lowerTileQuantize(op, context);
  return lowerRowwiseQuantize(op, context);
}
