//===- GridMax.h - Maxima over all threads of a launch --------------------===//
//
// redux.sync reduces a warp, shared memory a CTA, and one atomic maximum per CTA the grid. The last
// CTA to come stores it, and leaves the words that they share zero for the next kernel.
// Non-negative fp32 numbers order like their bits, NaN above infinity, so this is integer code.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Int32.h"
#include "KernelBuilder.h"
#include "Scalars.h"

#include <optional>

namespace fp4 {

/// Threads of a warp.
inline constexpr int64_t kWarp = 32;

/// The bits of a magnitude (fp32), every NaN as the quiet one that lib/Numerics returns.
mlir::Value magnitudeBits(mlir::ImplicitLocOpBuilder &b, Scalars &scalars, mlir::Value x);

/// CTAs that have maxima together, and where they meet.
struct MaxCtas {
  mlir::Value words;  ///< pointer to an i32 for each maximum and one that counts, all 0
  mlir::Value number; ///< i32
};

/// All CTAs of the grid, which have `maxima` maxima.
MaxCtas ctasOfGrid(KernelBuilder &kernel, int64_t maxima);

/// Stores to `results` (pointers to fp32) the largest of the `values` (non-negative fp32, or NaN)
/// that the threads of all `blocks` have there, or those of this CTA alone. All threads of a CTA
/// must be here, outside of loops; the kernel has one.
void emitGridMax(KernelBuilder &kernel, Scalars &scalars, llvm::ArrayRef<mlir::Value> values,
                 llvm::ArrayRef<mlir::Value> results, std::optional<MaxCtas> blocks);

/// Has the first thread of a CTA execute the code of `then`, given the bits (i32) of the largest
/// `value` of the CTA. All threads are here, as for emitGridMax.
void emitBlockMax(KernelBuilder &kernel, Scalars &scalars, mlir::Value value,
                  llvm::function_ref<void(mlir::Value)> then);

/// The largest of the `value`s (f32) of all threads of the grid, as emitGridMax, in every thread;
/// the last CTA to read it stores it to `result`. CTAs wait for each other: the launch is
/// cooperative. A CTA takes one round trip to count that it has come, one to see that all have, and
/// one to read the maximum and count that it has: both are in one word of 64 bits, so nothing is
/// left to do at the end.
mlir::Value emitMaxOfAll(KernelBuilder &kernel, Scalars &scalars, mlir::Value value,
                         mlir::Value result);

/// CTAs (an index) to launch for `items` (an index) of such a kernel: enough threads to cover the
/// latency of memory, few enough atomics, and at least one CTA.
mlir::Value gridMaxCtas(KernelBuilder &kernel, const hw::TargetModel &target, mlir::Value items);

/// The CTAs of such a launch shared out over groups of work items, each with a maximum of its own:
/// no CTA has items of two groups.
class GroupedGrid {
public:
  /// `items` of each group; those without any have no CTAs.
  GroupedGrid(KernelBuilder &kernel, const hw::TargetModel &target, llvm::ArrayRef<int64_t> items);

  int64_t blocks() const { return numBlocks; }
  Int32 group() const { return mine->group; }
  /// Returns the CTAs of the group, which have `maxima` maxima.
  MaxCtas ctasOfGroup(int64_t maxima);
  /// The first item of the group, among those of all groups; and their number.
  Int32 firstItem() const { return mine->firstItem; }
  Int32 items() const { return mine->items; }
  /// The items of this CTA's share below `bound`, numbered in the group. See KernelBuilder.
  mlir::ValueRange forEachItem(mlir::Value bound, mlir::ValueRange carried,
                               KernelBuilder::ItemBody item);

private:
  struct Share {
    Int32 group, firstItem, items, firstBlock, blocks;
  };
  KernelBuilder &kernel;
  int64_t numGroups;
  std::optional<Share> mine;
  int64_t numBlocks = 0;
};

/// Emits `then` for the threads where `condition` holds.
void emitWhen(mlir::ImplicitLocOpBuilder &b, mlir::Value condition,
              llvm::function_ref<void()> then);

} // namespace fp4
