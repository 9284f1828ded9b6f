//===- GridMax.h - Maxima over all threads of a launch --------------------===//
//
// redux.sync reduces a warp, shared memory a block, and one atomic maximum per block the grid. A
// non-negative fp32 orders like its bits, NaN above infinity, so all of it is integer arithmetic.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "KernelBuilder.h"
#include "Scalars.h"

namespace fp4 {

/// Raises each of `results` (pointers to fp32, zeroed by the host) to the largest of the `values`
/// (non-negative fp32, or NaN) that the threads of the grid have there. All threads of a block
/// must be here, outside of loops; the kernel has one.
void emitGridMax(KernelBuilder &kernel, Scalars &scalars, llvm::ArrayRef<mlir::Value> values,
                 llvm::ArrayRef<mlir::Value> results);

/// Blocks (an index) to launch for `items` (an index) of such a kernel: enough threads to cover the
/// latency of memory, few enough atomics, and at least one block.
mlir::Value gridMaxBlocks(KernelBuilder &kernel, const hw::TargetModel &target, mlir::Value items);

/// Emits `then` for the threads where `condition` holds.
void emitWhen(mlir::ImplicitLocOpBuilder &b, mlir::Value condition,
              llvm::function_ref<void()> then);

} // namespace fp4
