//===- RowStripPlans.h - Plans of rows that a CTA takes one by one --------===//
//
// A CTA may take rows of a kernel one after the other (RowStrip.h of lib/Conversion). The
// next one waits in shared memory or in registers. The choice follows from registers and shared
// memory of a row, CTAs on an SM, and how often threads wait for each other. Strips pay where there
// are so many rows that all SMs have CTAs to the end.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Families.h"

namespace fp4 {

/// The plan of `op`, whose row has `chunks`, with a strip, for any number of rows; none where it
/// does not pay, or `partial` asks for threads.
std::optional<KernelPlan> planWithStrip(mlir::Operation *op, const KernelPlan &partial,
                                        int64_t chunks, const hw::TargetModel &target);

/// The fewest rows for which `plan` has a strip: one wave of CTAs and half of another, or three
/// quarters of one where eight CTAs of an SM have rows in shared memory, or six waves of CTAs that
/// have eight rows.
int64_t fewestOfStrips(const KernelPlan &plan, const hw::TargetModel &target);

/// Checks the strip of a plan: all threads of a CTA have its rows together, and registers keep one
/// of them while the next is loaded.
mlir::LogicalResult checkStrip(mlir::Operation *op, const KernelPlan &plan);

} // namespace fp4
