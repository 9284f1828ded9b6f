//===- Deadlock.h - Roles that wait for each other ------------------------===//
//
// The roles of a pipelined kernel and its channels form a process network: the next step of a role
// depends only on the stages that it has passed. A deadlock is therefore independent of the
// schedule, and one run of only the channel ops decides it for given trip counts. Loops run one
// iteration more than the deepest channel has stages, so that every ring fills once and wraps.
//
// In the scheduled form, loops of known length have that length, and the run also compares the
// counters and the order of all accesses to tiles (AccessOrder.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

namespace mlir::gpu {
class GPUFuncOp;
} // namespace mlir::gpu

namespace fp4::pipe {

/// (C136) Runs the channel ops of `kernel`; fails with an error at a role's op that waits forever
/// and a note at each other that does. Kernels too large to run in a moment pass.
mlir::LogicalResult verifyProgress(mlir::gpu::GPUFuncOp kernel);

} // namespace fp4::pipe
