//===- VerifyIteration.h - Checks of ops at the ends of channels ----------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

namespace fp4::pipe {

/// (C123) `op` names an iteration of `channel` exactly when the channel has a depth.
mlir::LogicalResult verifyIteration(mlir::Operation *op, mlir::Value channel,
                                    mlir::Value iteration);

/// (C126, C160, C325) The tile that threads fill: the op returns it, or has it as its destination.
mlir::FailureOr<SharedType> verifyFilled(mlir::Operation *op, mlir::Value result, mlir::Value dest);

} // namespace fp4::pipe
