//===- EpilogueWork.h - Work of threads on the sums of a GEMM -------------===//
//
// The cycles that a scheduler of an SM is busy with a column of 32 sums: their alpha, the epilogue
// region of the matmul, the conversion of its elements, and the values derived from them. The
// operations are those that a kernel gets: the emitters that lowerings call (KernelArithmetic)
// write them once for a thread with 32 columns, and they are counted by pipe, at the rates that the
// simulator has too (fp4/ISA/TimingRates.h). A warp issues in order, so that it waits for the
// results of earlier instructions; two warps of a scheduler fill such gaps for each other, until
// its pipes are busy all the time.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/TargetModel.h"

#include <cstdint>

namespace fp4 {

class BlockScaledMatmulOp;

/// Cycles of a scheduler.
struct SchedulerCycles {
  double alone = 0;        ///< cycles of one warp, from its first instruction to its last result
  double busy = 0;         ///< least cycles of its issue, or of one of its pipes
  double instructions = 0; ///< instructions that are issued in these cycles
};

/// The work of an epilogue besides reading sums and storing elements; nothing for a plain GEMM.
struct EpilogueWork {
  /// Columns that a thread reads and converts at a time.
  static constexpr int64_t kChunk = 32;

  SchedulerCycles column;     ///< work of 32 sums, or of those of both GEMMs
  SchedulerCycles conversion; ///< the part of the work that every epilogue has
  int64_t group = kChunk;     ///< columns that become results together: code without a loop
  bool hasBody = false;       ///< the registers of a thread hold fewer results
  bool derives = false;       ///< codes or an amax, which leave the kernel directly
  bool storesElements = true; ///< elements are a result of their own
  bool foldsAmax = false;     ///< each warp raises one number in memory
  double derivedBytes = 0;    ///< bytes of codes and their scales, of an element
  double inputBytes = 0; ///< bytes of the matrices that the epilogue region takes, of an element
  /// The epilogue region takes numbers of columns, which each chunk loads.
  bool loadsColumns = false;

  /// Returns true when threads only convert and store.
  bool isPlain() const { return !hasBody && !derives; }
};

/// The work of the epilogue of `product` on a target with tcgen05.
EpilogueWork epilogueWorkOf(BlockScaledMatmulOp product, const hw::TargetModel &target);

} // namespace fp4
