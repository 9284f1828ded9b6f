//===- Quantize.cpp - Which kernel quantizes ------------------------------===//
#include "Lowering.h"

using namespace mlir;
using namespace fp4;

LogicalResult fp4::lowerQuantize(QuantizeOp op, LoweringContext &context) {
  if (op.hasColumnwise() || op.hasSquareBlocks() || op.getGroups())
    return lowerTileQuantize(op, context);
  return lowerRowwiseQuantize(op, context);
}
