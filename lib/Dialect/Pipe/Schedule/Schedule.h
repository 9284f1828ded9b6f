//===- Schedule.h - Common part of the passes of phase `scheduled` ---------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/Dialect/Pipe/IR/Scheduled.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fp4::pipe {

/// Calls `body` with each kernel of `module` in the pipelined form, and with the target. Kernels of
/// other forms are skipped.
llvm::LogicalResult
forEachKernel(mlir::Operation *module,
              llvm::function_ref<void(mlir::gpu::GPUFuncOp, const hw::TargetModel &)> body);

/// The i32 `value`.
mlir::Value number(mlir::OpBuilder &, mlir::Location, int64_t value);

/// A counter that a loop carries: its values in an iteration, each of which is one more than the
/// one before. The loop continues with one more than the last.
struct Counter {
  mlir::scf::ForOp loop;
  unsigned number; ///< number of the iteration argument
  llvm::SmallVector<mlir::Value> values;

  static std::optional<Counter> of(mlir::scf::ForOp loop, unsigned number);
  /// The channel that counts with this counter; null if there is none or several.
  ChannelOp channel() const;
};

/// Makes the ops of `channel` with iteration `value` name the stage `at` of the iteration `ahead`
/// behind: waits for a release if `ahead` is not 0, else all other ops.
void nameStage(ChannelOp channel, mlir::Value value, int64_t ahead, const StageAndPhase &at);

/// Gives acquires of roles that load the stages that are the same in every iteration of their loop
/// (KnownStages.cpp).
void hideKnownStages(mlir::gpu::GPUFuncOp kernel);

/// Marks channels whose stages are known to be empty (ImpliedReleases.cpp), and the waits that need
/// no fence (Fences.cpp).
void findImpliedReleases(mlir::gpu::GPUFuncOp kernel);
void findUnfencedWaits(mlir::gpu::GPUFuncOp kernel);

} // namespace fp4::pipe
