//===- Quantize.cpp - Which kernel quantizes ------------------------------===//
#include "Lowering.h"

using namespace mlir;
using namespace fp4;

LogicalResult fp4::lowerQuantize(QuantizeOp op, LoweringContext &context) {
  bool inTiles = op.hasColumnwise() || op.hasSquareBlocks() || op.getGroups();
  if (inTiles)
    return lowerTileQuantize(op, context);
  return lowerRowwiseQuantize(op, context);
}
