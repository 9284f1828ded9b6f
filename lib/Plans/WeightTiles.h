//===- WeightTiles.h - Tiles of GEMMs of floats and weights ---------------===//
//
// Sizes of tiles and times of their waves, which plans of weights beside 16-bit floats and beside
// e4m3 share (WeightTiles.cpp).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "CostModel.h"

#include "fp4/ISA/WeightRates.h"
#include "fp4/Plans/KernelPlans.h"

namespace fp4 {

/// Columns of a tile of the result: 64 rows of weights for each of two warpgroups.
inline constexpr int64_t kTileN = 128;
/// Columns of a tile of three warpgroups, which have one and a half tiles of prepacked weights.
inline constexpr int64_t kUnevenTileN = 192;
/// Elements of K of prepacked weights, of which one bulk copy loads a row of tiles, at most.
inline constexpr int64_t kPrepackedTileK = 256;
/// Rows of a tile, columns of the instruction, and of the tallest.
inline constexpr int64_t kMostWeightRows = 256;
inline constexpr int64_t kTileMs[] = {8, 16, 32, 64, 128, kMostWeightRows};

/// Returns true for a matmul of activations of e4m3 without scales, and for one of which threads
/// add sums of 128 elements of K in fp32.
bool takesBytes(mlir::Operation *op);
bool isPromoted(mlir::Operation *op);
/// Returns true for a matmul that quantizes its elements.
bool isQuantized(mlir::Operation *op);
/// Returns true when a tile of so many rows has whole blocks of what `op`, a matmul, quantizes of
/// its elements. The threads of a warpgroup have a row each, and those of a warp the blocks of
/// columns.
bool haveWholeBlocks(mlir::Operation *op, int64_t rows);
/// Returns true when the rows of a tile are any multiple of 8.
bool mayHaveUnevenRows(mlir::Operation *op, const hw::TargetModel &target);
/// Returns true when three warpgroups may multiply so many rows: for elements of which a CTA has
/// all of K.
bool mayHaveThreeGroups(mlir::Operation *op, int64_t rows, const hw::TargetModel &target);

/// Tiles along m. A group that is expected to have rows has a tile, however many rows the tile has,
/// but no tile is without a row.
int64_t tilesOfRows(const MatmulSize &size, int64_t rows);
/// Elements of the tiles that an SM multiplies.
int64_t timeOfTiles(const MatmulSize &size, int64_t rows, int64_t columns,
                    const hw::TargetModel &target);
/// Elements of the waves of tiles, with the time besides their MMAs counted as rows.
int64_t timeOfRows(const MatmulSize &size, int64_t rows, const hw::TargetModel &target);
/// The one of `tiles` with at most `most` rows whose waves take the least time; of equals, the
/// largest.
int64_t fastestRows(llvm::ArrayRef<int64_t> tiles, int64_t most, const MatmulSize &size,
                    const hw::TargetModel &target);

/// The rows of the fastest tile of a matmul that quantizes its elements.
int64_t fastestQuantizedRows(mlir::Operation *op, const MatmulSize &size,
                             const hw::TargetModel &target);

/// Step of the rows of a tile: the columns of wgmma are multiples of 8.
inline constexpr int64_t kRowStep = 8;
/// The most CTAs per SM of a tile. Two CTAs with few sums have registers enough beside each other,
/// and hide each other's waits.
int64_t mostResident(int64_t rows, int64_t columns);
/// Cycles of a GEMM of weights in registers, in tiles of rows x columns.
double cyclesOfWeights(const MatmulSize &size, std::array<int64_t, 2> tile,
                       const hw::WeightRates &rates, const hw::TargetModel &target);
/// Returns true for a GEMM of prepacked weights in registers whose rates are measured, and the
/// cycles of its fastest tile (WeightGemmPlans.cpp). Split-K ranges may take several waves: a wave
/// of few whole tiles costs as much as one of many.
bool hasWeightRates(BlockScaledMatmulOp product, const hw::TargetModel &target);
double weightCycles(BlockScaledMatmulOp product, const MatmulSize &size,
                    const hw::TargetModel &target);

/// A tile that all SMs share, and the cycles of the GEMM.
struct SharedTile {
  std::array<int64_t, 2> tile; ///< rows and columns; zeros where no tile is shared
  double cycles;
};
/// The fastest tile of a GEMM with `hasWeightRates` that all SMs share (stream-K).
SharedTile fastestSharedTile(BlockScaledMatmulOp product, MatmulSize size,
                             const hw::TargetModel &target);

/// The rows and columns of the tile that takes the fewest cycles, of all with multiples of 8 rows
/// that are no more than the GEMM needs and that `isLegal` accepts; of equals, the widest and then
/// the tallest.
std::array<int64_t, 2> fastestTile(const MatmulSize &size, const hw::WeightRates &rates,
                                   const hw::TargetModel &target,
                                   llvm::function_ref<bool(int64_t, int64_t)> isLegal);

} // namespace fp4
