//===- PrepackedTiles.h - Reads of prepacked weights by a thread ----------===//
#pragma once

#include "Common/Fragments.h"

#include "PackedHalves.h"

#include "fp4/ISA/WeightLayout.h"

namespace fp4 {

/// The words of a tile that a thread has: the codes of four instructions, and the scales of its two
/// rows, or a word of each row for e4m3.
struct PrepackedWords {
  llvm::SmallVector<mlir::Value> codes, scales;
};

/// Elements that share a scale in `weights`, a tile for 16-bit floats.
inline int64_t blockOfWeights(pipe::SharedType weights) {
  return weights.getInnerBytes() == hw::weightTileBytes(16) ? 16 : 32;
}

/// The tiles of weights that have the rows of a thread, and its number there.
struct RowsOfThread {
  mlir::Value weights;
  Int32 thread;
};

/// The rows of thread `thread` of the role, of the tiles `weights`. Three warpgroups begin at row
/// `first` of them, 0 or 64, and have rows of `next` behind their 128; others have neither of both.
RowsOfThread rowsOfThread(mlir::ImplicitLocOpBuilder &b, Int32 thread, mlir::Value weights,
                          mlir::Value first, mlir::Value next);

/// Loads the words that thread `thread` of the role has of tile `number` of the row of tiles at
/// `weights`.
PrepackedWords loadPrepackedTile(mlir::ImplicitLocOpBuilder &b, mlir::Value weights,
                                 pipe::SharedType type, Int32 thread, int64_t number);

/// Loads the words of thread `thread` of tile `number` for e4m3, as loadPrepackedTile does.
PrepackedWords loadByteTile(mlir::ImplicitLocOpBuilder &b, mlir::Value weights, Int32 thread,
                            int64_t number);

/// The scales of a pair of rows, which thread 4 * pair of a role has, of tile `number`.
llvm::SmallVector<mlir::Value> loadPairScales(mlir::ImplicitLocOpBuilder &b, mlir::Value weights,
                                              pipe::SharedType type, Int32 pair, int64_t number);

/// Returns true when `op` has its conversion of `count` tiles twice, for small scales of mxfp4 and
/// for any. With two conversions, GEMMs on targets with wgmma are faster
/// (notebook/weight-limits.md). Tiles that are multiplied one by one, because later ones may
/// not exist, are left out.
bool convertsByPowers(pipe::MmaOp op, const KernelState &state, int64_t count);
/// An i1, the same in all lanes: all scales in `words`, which a warp has of tiles of mxfp4, are
/// PackedHalves::Powers::Small.
mlir::Value areSmall(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange words);
/// Branches between `body` for small scales, where `areSmall`, and for any scales. Each side loads
/// the weights of `thread` that were not loaded in front of the branch.
void branchByPowers(mlir::ImplicitLocOpBuilder &b, mlir::Value areSmall, Int32 thread,
                    llvm::function_ref<void(PackedHalves::Powers, Int32 thread)> body);

/// The conversion of the weights of `op`.
PackedHalves halvesOf(mlir::ImplicitLocOpBuilder &b, pipe::MmaOp op, const KernelState &state);
/// The conversion of `weights` to `element`.
PackedHalves halvesOf(mlir::ImplicitLocOpBuilder &b, pipe::SharedType weights, mlir::Type element,
                      const KernelState &state);

} // namespace fp4
