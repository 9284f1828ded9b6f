//===- EpilogueWork.h - What threads do with the sums of a product --------===//
//
// How many cycles a scheduler of a multiprocessor is busy with a column of 32 sums: their alpha,
// the body of the product, the conversion of its elements, and what is derived of them. The
// operations are those that a kernel gets: the emitters that lowerings call (KernelArithmetic)
// write them once for a thread with 32 columns, and they are counted by pipe, at the rates that the
// simulator has too (fp4/ISA/TimingRates.h). A warp issues in order, so that it waits for results
// that others need; two warps of a scheduler fill such gaps for each other, until its pipes are
// busy all the time.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/TargetModel.h"

#include <cstdint>

namespace fp4 {

class BlockScaledMatmulOp;

/// Cycles of a scheduler.
struct SchedulerCycles {
  double alone = 0;        ///< of one warp, from its first instruction to its last result
  double busy = 0;         ///< that its issue or one of its pipes takes at least
  double instructions = 0; ///< in them
};

/// What an epilogue does besides reading sums and storing elements; nothing for a plain product.
struct EpilogueWork {
  /// Columns that a thread reads and converts at a time.
  static constexpr int64_t kChunk = 32;

  SchedulerCycles column;     ///< of 32 sums, or of those of both products
  SchedulerCycles conversion; ///< the part of it that every epilogue has
  int64_t group = kChunk;     ///< columns that become results together: code without a loop
  bool hasBody = false;       ///< the registers of a thread hold fewer results
  bool derives = false;       ///< codes or an amax, which leave the kernel directly
  bool storesElements = true; ///< as a result of their own
  bool foldsAmax = false;     ///< each warp raises one number in memory
  double derivedBytes = 0;    ///< of codes and their scales, of an element
  double inputBytes = 0;      ///< of the matrices that the body takes, of an element
  bool loadsColumns = false;  ///< the body takes numbers of columns, which each chunk loads

  /// Threads only convert and store.
  bool isPlain() const { return !hasBody && !derives; }
};

/// The work of the epilogue of `product` on a target with tcgen05.
EpilogueWork epilogueWorkOf(BlockScaledMatmulOp product, const hw::TargetModel &target);

} // namespace fp4
