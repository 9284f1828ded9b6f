//===- PipeResults.cpp - Results that epilogues derive --------------------===//
//
// Verifiers of the ops of PipeResultOps.td. Labels such as (C211) refer to PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Threads of a warp: rows, and columns, of the square that it transposes.
static constexpr int64_t kWarp = 32;

LogicalResult FoldAmaxOp::verify() { // (C211)
  GlobalType dest = getDest().getType();
  if (dest.getRank() == 0 && dest.getElementType().isF32())
    return success();
  return withNote(emitOpError() << "destination must be a scalar f32, but got " << dest,
                  "pass a buffer of type !pipe.global<f32>, which is zero before the kernel");
}

LogicalResult TransposeOp::verify() { // (C212)
  int64_t count = getValue().getType().getNumElements();
  if (count == kWarp)
    return success();
  return withNote(
      emitOpError() << "vector must have an element for each of the 32 threads of a warp, but got "
                    << count,
      "read 32 columns of the accumulator");
}

LogicalResult StoreColumnOp::verify() { // (C213)
  GlobalType dest = getDest().getType();
  auto vector = cast<VectorType>(getValue().getType());
  int64_t count = vector.getNumElements(), bits = vector.getElementTypeBitWidth();
  bool isCodes = bits == 4 && count == kWarp;
  bool isScales = bits == 8 && count <= 2;
  if (!isCodes && !isScales)
    return withNote(emitOpError() << "vector must be 32 codes, or 1 or 2 scales, but got "
                                  << vector,
                    "quantize 32 elements of a column at a time");
  MatrixOp matrix = matrixOf(getDest());
  bool knowsRows = !ShapedType::isDynamic(dest.getShape().front()) || (matrix && matrix.getRows());
  if (dest.getRank() == 2 && knowsRows && !dest.hasDynamicColumns() &&
      dest.getElementType() == vector.getElementType())
    return success();
  return withNote(emitOpError() << "destination must be a buffer of " << vector.getElementType()
                                << " and rank 2 with static columns, and with static rows or those "
                                   "of a pipe.matrix, but got "
                                << dest,
                  "pass a buffer of the vector's elements, and say its rows with pipe.matrix");
}
