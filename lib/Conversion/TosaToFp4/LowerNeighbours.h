//===- LowerNeighbours.h - Elementwise operations of tosa beside fp4 ------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace fp4 {

/// Lowers the elementwise operations, reshapes and constants of tosa that fp4 operations read, and
/// that read fp4 operations, to linalg, tensor and arith. All other operations stay.
mlir::LogicalResult lowerNeighbours(mlir::ModuleOp module);

} // namespace fp4
