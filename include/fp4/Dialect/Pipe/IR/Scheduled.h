//===- Scheduled.h - Facts of the scheduled form about an op ---------------===//
//
// Questions that the passes of phase `scheduled`, the verifiers and convert-pipe-to-nvvm ask about
// ops on channels and about MMAs.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/PipeMma.h"
#include "fp4/ISA/TargetModel.h"
#include "fp4/ISA/WeightLayout.h"
#include "fp4/Routes/Route.h"

namespace fp4::pipe {

/// A UnitAttr at a pipe.consumer_wait of the tile of an MMA that begins together with the one
/// before it: the tile is awaited once that one runs (pipe-chain-mmas).
inline constexpr llvm::StringLiteral kAwaitedByMmaAttr = "pipe.awaited_by_mma";

/// A stage of a channel, and its phase or the opposite one, i32 each.
struct StageAndPhase {
  mlir::Value stage, phase;
  bool opposite = false;
};

/// The op that names the stage of `iteration`; null where the stage is not carried.
inline StageOfOp stageOf(mlir::Value iteration) {
  return iteration ? iteration.getDefiningOp<StageOfOp>() : StageOfOp();
}
/// The iteration itself, where an op names its stage.
inline mlir::Value countedIteration(mlir::Value iteration) {
  StageOfOp known = stageOf(iteration);
  return known ? known.getIteration() : iteration;
}
/// Returns the stage and phase of the iteration after `at`.
StageAndPhase nextStage(mlir::OpBuilder &, mlir::Location, const StageAndPhase &at, int64_t depth);

/// Returns the op that keeps `region` from being executed by a whole warp, or null: all lanes may
/// wait, compute, and load from memory that nobody writes, and one is elected for each instruction
/// that is issued. Threads that read a response of the work queue would have to meet before one
/// gives it back. Lanes would part where the code, or that in front of all roles, asks which thread
/// executes it.
mlir::Operation *findOfOneThread(RoleRegionOp region);

/// The engine that completes the end of `channel` that `role` consumes.
Engine consumerEngine(ChannelOp channel, RoleAttr role);

/// Returns true when `op`, of `role`, waits before operations of the tensor core that follow, so
/// that a tcgen05.fence::after_thread_sync stands between them.
bool ordersTensorCore(mlir::Operation *op, RoleAttr role);

/// Returns true when `op` becomes asynchronous tcgen05 instructions, or accesses tensor memory.
bool usesTensorCore(mlir::Operation *op);

/// Returns true when `value` is there by the time of `op`: it is not made behind it in its block.
bool isThereBy(mlir::Operation *op, mlir::Value value);

/// Returns true for an MMA in registers that has no unfenced reads of shared memory behind it: its
/// reads are those of the tensor core, or it fences its own.
bool fencesItsReads(mlir::Operation *op);

/// Returns true for an MMA whose operands the tensor core itself reads from shared memory, and
/// whose accumulator is in registers: it ends for all threads of a warp together.
bool isSharedMma(mlir::Operation *op);

/// Returns true when all that the role of `release` does with the tiles of its channel satisfies
/// `isReader`.
bool areReadBy(ConsumerReleaseOp release, llvm::function_ref<bool(mlir::Operation *)> isReader);

/// Returns true for targets with tcgen05, whose elected threads name tiles in shared memory and do
/// not read them. Their addresses have 32 bits, and their roles are whole warps that elect a thread
/// for each instruction. Kernels of other cores keep the code that was verified on a GPU.
inline bool namesTiles(const hw::TargetModel &target) {
  return route::hasCore(target, route::Core::Tcgen05);
}

/// Parts of a tile of prepacked weights for e4m3 without powers: its halves.
inline constexpr int64_t kBytePartsOfTile = 2;

/// Columns at which an MMA of prepacked weights takes mma.sync (PrepackedFew.cpp). With 16,
/// mma.sync was slower than wgmma (notebook/gemm-weights.md).
inline constexpr int64_t kFewColumns = 8;
inline bool takesWarpMmas(MmaOp op) {
  return op.getForm() == hw::MmaForm::WgmmaPrepacked && !op.hasByteTiles() &&
         op.getB().getType().getRows() == kFewColumns;
}

} // namespace fp4::pipe
