//===- VerifyIteration.h - Iterations and depths come together ------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

namespace fp4::pipe {

/// (C123) `op` names an iteration of `channel` exactly when the channel has a depth.
mlir::LogicalResult verifyIteration(mlir::Operation *op, mlir::Value channel,
                                    mlir::Value iteration);

} // namespace fp4::pipe
