//===- GridMax.h - Maxima over all threads of a launch --------------------===//
//
// redux.sync reduces a warp and shared memory a CTA. Each CTA but the first one leaves its maxima
// in a word of its own, whose sign says that they are there. The first CTA waits for the words,
// stores the largest, and leaves the words zero for the next kernel. A word is the message and its
// flag at once, so that no fence orders anything, and the way to the first CTA is one store and one
// load: 0.3 us shorter than an atomic maximum and a counter behind it (an H100, 64 rows of 7168
// elements). No other CTA waits, so that the launch need not be cooperative. Non-negative fp32
// numbers order like their bits, NaN above infinity, so the code is one of integers.
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
  mlir::Value words;  ///< pointer to 32 bits for each CTA and maximum, all 0
  mlir::Value index;  ///< i32, of this CTA among them
  mlir::Value number; ///< i32
};

/// All CTAs of a grid that gridMaxCtas launches, which have `maxima` maxima.
MaxCtas ctasOfGrid(KernelBuilder &kernel, const hw::TargetModel &target, int64_t maxima);

/// Stores to `results` (pointers to fp32) the largest of the `values` (non-negative fp32, or NaN)
/// that the threads of all `ctas` have there, or those of this CTA alone. All threads of a CTA
/// must be here, outside of loops; the kernel has one.
void emitGridMax(KernelBuilder &kernel, Scalars &scalars, llvm::ArrayRef<mlir::Value> values,
                 llvm::ArrayRef<mlir::Value> results, std::optional<MaxCtas> ctas);

/// Has the first thread of a CTA execute the code of `then`, given the bits (i32) of the largest
/// `value` of the CTA. All threads are here, as for emitGridMax.
void emitBlockMax(KernelBuilder &kernel, Scalars &scalars, mlir::Value value,
                  llvm::function_ref<void(mlir::Value)> then);

/// The largest of the `value`s (f32) of all threads of the grid in every thread; the first CTA
/// stores it to `result`. The CTAs leave their maxima to the first one as for emitGridMax, and it
/// leaves the largest in a word of each of them. CTAs wait for each other: the launch is
/// cooperative, of at most kAmaxMostCtas.
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
  std::optional<Share> mine;
  int64_t numBlocks = 0;
};

} // namespace fp4
