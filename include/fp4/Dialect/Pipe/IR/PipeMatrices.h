//===- PipeMatrices.h - Ops on sizes and pitches that are numbers ----------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

#define GET_OP_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeMatrixOps.h.inc"

namespace fp4::pipe {

/// Unit of rows whose columns are not static: rows begin at multiples of so many bytes.
inline constexpr int64_t kRowUnitBytes = 16;

/// Returns the view that gives the sizes of `global`; null where its type alone has them.
ViewOp matrixOf(mlir::Value global);

} // namespace fp4::pipe
