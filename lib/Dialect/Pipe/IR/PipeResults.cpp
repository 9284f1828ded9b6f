//===- PipeResults.cpp - What an epilogue derives from its elements -------===//
//
// Verifiers of the ops of PipeResultOps.td. Labels such as (C210) refer to docs/Pipe.md.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Pipe/IR/Pipe.h"

using namespace mlir;
using namespace fp4::pipe;

/// Threads of a warp: rows, and columns, of the square that it transposes.
static constexpr int64_t kWarp = 32;

LogicalResult RowAmaxOp::verify() { // (C210)
  if (int64_t(getColumns()) > 0)
    return success();
  return emitOpError() << "columns must be positive, but got " << int64_t(getColumns());
}

LogicalResult FoldAmaxOp::verify() { // (C211)
  GlobalType dest = getDest().getType();
  if (dest.getRank() == 0 && dest.getElementType().isF32())
    return success();
  return emitOpError() << "destination must be a scalar f32, but got " << dest;
}

LogicalResult TransposeOp::verify() { // (C212)
  int64_t count = getValue().getType().getNumElements();
  if (count == kWarp)
    return success();
  return emitOpError() << "vector must have an element for each of the 32 threads of a warp, but got "
                       << count;
}

LogicalResult StoreColumnOp::verify() { // (C213)
  GlobalType dest = getDest().getType();
  auto vector = cast<VectorType>(getValue().getType());
  int64_t count = vector.getNumElements(), bits = vector.getElementTypeBitWidth();
  bool isCodes = bits == 4 && count == kWarp;
  bool isScales = bits == 8 && count <= 2;
  if (!isCodes && !isScales)
    return emitOpError() << "vector must be 32 codes, or 1 or 2 scales, but got " << vector;
  if (dest.getRank() != 2 || ShapedType::isDynamic(dest.getShape()[0]) ||
      dest.hasDynamicColumns() || dest.getElementType() != vector.getElementType())
    return emitOpError() << "destination must be a static buffer of " << vector.getElementType()
                         << " and rank 2, but got " << dest;
  return success();
}
