//===- MemoryPlan.h - Depths and places of a kernel's buffers -------------===//
//
// Shared memory from offset 0: the tiles of shared channels, widest alignment first, all stages of
// a tile adjacent; then the pieces that reductions of a cluster receive; then what staged stores or
// gathered rows exchange; then the ring of responses to requests for work with its barriers, if
// there is one; then full and empty barriers of every channel, 8 bytes each; then the word that
// receives the tensor memory address. Tensor memory from column 0 of the kernel's allocation: the
// tiles of tensor memory channels, then the tiles that a role makes for itself from a stage.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

namespace mlir::gpu {
class GPUFuncOp;
} // namespace mlir::gpu

namespace fp4::hw {
struct TargetModel;
} // namespace fp4::hw

namespace fp4::pipe {

/// The part of an SM's memories that a CTA has.
struct Capacity {
  int64_t sharedBytes, tmemColumns;
};

/// Bytes of shared memory that each of `blocks` CTAs of an SM can have, besides what the system
/// keeps.
int64_t sharedBytesOfEach(const hw::TargetModel &target, int64_t blocks);

/// The share of a CTA of `kernel`: as many CTAs fit on an SM as its attribute nvvm.minctasm says,
/// else one.
Capacity capacityOf(mlir::gpu::GPUFuncOp kernel, const hw::TargetModel &target);

/// A response of cluster launch control, and what each takes with its two barriers.
inline constexpr int64_t kResponseBytes = 16, kRingBytesPerResponse = 32;

/// Responses that the schedules of `kernel` have room for, 0 where none asks for work.
int64_t workRingDepth(mlir::gpu::GPUFuncOp kernel);

struct PlanOptions {
  unsigned maxStages = 8;       ///< per shared memory channel
  unsigned maxAccumulators = 4; ///< per tensor memory channel
  unsigned reserveBytes = 0;    ///< shared memory left to others
};

struct ChannelPlan {
  ChannelOp channel;
  int64_t depth = 1;
  llvm::SmallVector<int64_t> places; ///< bytes or columns of stage 0, per tile
  int64_t barriers = 0;              ///< byte offset of the full barriers
  int64_t stride = 0;                ///< columns between two stages that overlap, else 0
  int64_t step = 1;                  ///< divisor of the depth

  bool isShared() const { return ChannelOp(channel).getType().isShared(); }
};

/// A tensor memory tile that a role makes for itself from a stage, or the tiles of stages in a row.
struct StageTilePlan {
  llvm::SmallVector<TmemTileOpInterface> ops; ///< ops that fill its sets in turns
  ChannelOp channel; ///< channel of the stages from which the tiles are made
  int64_t column = 0;
  int64_t sets = 1;

  int64_t getSetColumns() const;
};

/// Pieces that the CTAs of a cluster send to this one.
struct ReductionPlan {
  ClusterReductionOpInterface op;
  int64_t place = 0;
};

struct MemoryPlan {
  llvm::SmallVector<ChannelPlan> channels;
  llvm::SmallVector<ReductionPlan> joins;
  llvm::SmallVector<StageTilePlan> stageTiles;
  int64_t stagedBytes = 0; ///< bytes that staged stores, or gathered rows, exchange
  int64_t stagedPlace = 0; ///< byte offset of the stage
  int64_t workDepth = 0;   ///< responses to requests for work
  int64_t workRing = 0;    ///< byte offset of their ring
  int64_t sharedBytes = 0; ///< dynamic shared memory of a CTA
  int64_t tmemSlot = 0;    ///< byte offset of the address word
  int64_t usedColumns = 0;
  int64_t tmemColumns = 0; ///< columns to allocate: a power of two, at least 32
};

/// Returns how many of `most` stages a channel can use.
int64_t mostStages(ChannelOp channel, int64_t most);

/// Chooses depths and lays out both memories. Fails, with an error on `kernel`, when one stage per
/// channel does not fit.
llvm::FailureOr<MemoryPlan> planMemory(mlir::gpu::GPUFuncOp kernel, const hw::TargetModel &target,
                                       const PlanOptions &options);

} // namespace fp4::pipe
