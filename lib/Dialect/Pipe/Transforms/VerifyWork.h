//===- VerifyWork.h - Roles that take work from one ring -------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

namespace mlir::gpu {
class GPUFuncOp;
} // namespace mlir::gpu

namespace fp4::pipe {

/// (C303) All roles of `kernel` take every response to a request for work once, and one role asks.
mlir::LogicalResult verifyWork(mlir::gpu::GPUFuncOp kernel);

/// (C630) The loops over work of the scheduled form go over the same numbers in all roles of
/// `kernel`, each of which may compute them itself.
mlir::LogicalResult verifyScheduledWork(mlir::gpu::GPUFuncOp kernel);

} // namespace fp4::pipe
