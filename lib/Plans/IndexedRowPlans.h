//===- IndexedRowPlans.h - Plans of rows that read others -----------------===//
//
// An element of a rotation is computed of another column of its row, and a sum of rows by number of
// other rows. Threads that combine nothing along a row have no reason to have it together.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Families.h"

namespace fp4 {

/// Threads of a CTA whose elements read others, and those of a long row of sums.
inline constexpr int64_t kThreadsOfIndexed = 128, kThreadsOfLongSums = 512;
/// CTAs of an SM that add many rows (addsManyShortRows).
inline constexpr int64_t kCtasOfManyRows = 6;

/// Returns true when an element is computed of other columns than its own, and a thread waits for
/// no other thread: nothing is combined along rows.
bool readsOtherColumnsAlone(mlir::Operation *op);

/// Returns true when rows are heads, elements of which are computed of other columns than their
/// own.
bool isOfHeads(mlir::Operation *op);

/// Returns true when a thread of a row of `chunks` should have one chunk, so that no loop parts the
/// loads of the rows that it adds.
bool addsSomeLongRows(mlir::Operation *op, int64_t chunks);

/// Returns true when a thread adds one chunk of more rows than ptxas begins to load at once unless
/// it knows that few CTAs are enough.
bool addsManyShortRows(mlir::Operation *op, int64_t chunks);

/// The fewest heads with which threads that have several of them fill all SMs.
int64_t fewestOfHeads(mlir::Operation *op, const KernelPlan &plan, const hw::TargetModel &target);

/// The most heads for which threads have fewer of them than in `plan`; 0 where none have.
int64_t mostOfSomeHeads(mlir::Operation *op, const KernelPlan &plan, const hw::TargetModel &target);

/// Proposes heads of a thread and CTAs on an SM for a rotation of at most `mostRows` rows, which
/// ptxas gives more registers than it needs.
void planRotation(mlir::Operation *op, KernelPlan &plan, const KernelPlan &partial,
                  std::optional<int64_t> mostRows, const hw::TargetModel &target);

} // namespace fp4
