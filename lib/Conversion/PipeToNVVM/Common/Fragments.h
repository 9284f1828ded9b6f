//===- Fragments.h - Fragments in the frame of a thread -------------------===//
//
// A fragment is an array in the frame of its thread whose elements have constant numbers
// everywhere, so that LLVM keeps it in registers.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Common/Lowering.h"

#include "Int32.h"

namespace fp4 {

/// Thread of the role around the op.
Int32 threadOfRole(mlir::ImplicitLocOpBuilder &b, mlir::Operation *op, const KernelState &state);

/// Warpgroup of the role, in which the thread is.
Int32 groupOfThread(mlir::ImplicitLocOpBuilder &b, mlir::Operation *op, const KernelState &state);

/// The first of the two rows, 8 apart, that thread `thread` of a role has in a fragment: of the
/// rows of all warpgroups of the role, 64 each.
Int32 rowOfThread(Int32 thread);

/// Returns true when `value` is a multiple of `of` by the arithmetic that computes it. Rows of
/// tiles are, unless a table of groups says where they begin.
bool isMultiple(mlir::Value value, int64_t of);

/// An array of f32 in the frame of a thread, which LLVM keeps in registers where the numbers of its
/// elements are constant.
mlir::Value frameArray(mlir::ImplicitLocOpBuilder &b, const KernelState &state, int64_t count);

/// `count` elements of a fragment from `first` on, and all of them from the first.
llvm::SmallVector<mlir::Value> loadElements(mlir::ImplicitLocOpBuilder &b, mlir::Value fragment,
                                            int64_t first, int64_t count);
void storeElements(mlir::ImplicitLocOpBuilder &b, mlir::Value fragment, mlir::ValueRange elements);
/// `count` elements of a fragment from `first` on, as loadElements has them, in a vector of `type`.
mlir::Value loadVector(mlir::ImplicitLocOpBuilder &b, mlir::Value fragment, int64_t first,
                       mlir::VectorType type);

/// An i32 that stays in a register. Otherwise ptxas makes a constant that it recognizes anew in
/// each turn of a loop.
mlir::Value keptConstant(mlir::ImplicitLocOpBuilder &b, const KernelState &state, uint32_t value);
/// Returns true for math.exp2, math.log2 and the reciprocal 1 / x of a vector of f32 that may be
/// approximate (`afn`): one instruction each.
bool isApproximate(mlir::Operation *op);

/// `count` words (i32) of shared memory, from a pointer that is aligned to all of them.
llvm::SmallVector<mlir::Value> loadSharedWords(mlir::ImplicitLocOpBuilder &b, mlir::Value pointer,
                                               int64_t count);

/// Calls `multiply` with the first tile and the number of the tiles of K that exist: all `tiles`,
/// or, where `existing` (i32) are fewer, one by one.
void forExistingTiles(mlir::ImplicitLocOpBuilder &b, mlir::Value existing, int64_t tiles,
                      llvm::function_ref<void(int64_t first, int64_t count)> multiply);

/// All elements of an accumulator before a tile of K, which without `accumulate` (i1, or null) are
/// 0 before the first tile.
llvm::SmallVector<mlir::Value> loadAccumulator(mlir::ImplicitLocOpBuilder &b,
                                               pipe::FragmentType type, mlir::Value fragment,
                                               mlir::Value accumulate, bool isFirst);

/// Returns `elements` of an accumulator, or zeros without `accumulate` (i1, or null).
llvm::SmallVector<mlir::Value> orZeros(mlir::ImplicitLocOpBuilder &b, mlir::Value accumulate,
                                       llvm::SmallVector<mlir::Value> elements);

/// The first place of the sums of this thread in a `tile` of them (fp4/ISA/StagedSums.h).
mlir::Value placeOfSums(mlir::ImplicitLocOpBuilder &b, mlir::Operation *op,
                        const KernelState &state, mlir::Value tile);

/// A warpgroup has 128 threads, and 64 rows of a fragment.
inline constexpr int64_t kGroupThreads = 128, kGroupRows = 64;
/// The barrier of a role whose threads exchange elements or maxima. Barrier 0 is the CTA's, and
/// those from 1 on are those of its warpgroups (FragmentElements.cpp). The barriers from 8 on are
/// those of turns of warpgroups (Turns.cpp). Barrier 15, the last one, is that of
/// ResiduePatterns.cpp.
inline constexpr int64_t kExchangeBarrier = 14;
void meetAtExchange(mlir::ImplicitLocOpBuilder &b, mlir::Operation *op, const KernelState &state);
/// Bytes of a line of layout swizzle_128B.
inline constexpr int64_t kLineBytes = 128;

} // namespace fp4
