//===- PipeMatrices.h - Ops on sizes and pitches that are numbers ----------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

#define GET_OP_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeMatrixOps.h.inc"

namespace fp4::pipe {

/// Where columns are not static they fill units of so many bytes, in which rows begin.
inline constexpr int64_t kRowUnitBytes = 16;

/// What says of which sizes `global` is; null where its type alone does.
MatrixOp matrixOf(mlir::Value global);

} // namespace fp4::pipe
