//===- LongRowPlans.h - Plans of rows of more than 16384 elements ---------===//
//
// The planner compares one CTA for a row with the CTAs of a cluster by one estimate of clocks. Both
// may keep the row in registers, or read it again for each number of it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Families.h"

namespace fp4 {

/// The most threads of a CTA that has a row.
inline constexpr int64_t kMostThreadsOfRow = 512;

/// Registers of a thread that keeps so many words: these and about 32 others.
int64_t registersOf(int64_t words);

/// The facts about rows that are no part of an operation.
struct LongRows {
  std::optional<int64_t> few; ///< the most rows, where no SM has several
  bool needWhole;             ///< a quantizer needs a number of the whole row
};

/// Fills threads, CTAs on an SM and the cluster of `plan`.
void planLongRows(mlir::Operation *op, KernelPlan &plan, const KernelPlan &partial,
                  const LongRows &rows, const hw::TargetModel &target);

} // namespace fp4
