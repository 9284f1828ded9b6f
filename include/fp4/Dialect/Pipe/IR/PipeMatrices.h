//===- PipeMatrices.h - Ops on sizes and pitches that are numbers ----------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

#define GET_OP_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeMatrixOps.h.inc"

namespace fp4::pipe {

/// What says of which sizes `global` is; null where its type alone does.
MatrixOp matrixOf(mlir::Value global);

} // namespace fp4::pipe
