//===- WeightTiles.h - Tiles of GEMMs of floats and weights ---------------===//
//
// Sizes of tiles and times of their waves, which plans of weights beside 16-bit floats and beside
// e4m3 share (WeightTiles.cpp). FastWeightPlans.cpp has tiles whose sums stay in the tensor core.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "CostModel.h"

#include "fp4/Plans/KernelPlans.h"

namespace fp4 {

/// Columns of a tile of the result: 64 rows of weights for each of two warpgroups.
inline constexpr int64_t kTileN = 128;
/// Elements of K of prepacked weights, of which one bulk copy loads a row of tiles, at most.
inline constexpr int64_t kPrepackedTileK = 256;
/// Rows of a tile, columns of the instruction, and of the tallest.
inline constexpr int64_t kMostWeightRows = 256;
inline constexpr int64_t kTileMs[] = {8, 16, 32, 64, 128, kMostWeightRows};

/// Tiles along m. A group that is expected to have rows has a tile, however many rows the tile has.
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

/// The tile of a GEMM beside e4m3 whose sums stay in the tensor core: the smallest that has all
/// rows; for more than 128 rows, the one of 128 or 256 whose waves are faster.
std::array<int64_t, 3> chooseFastTile(const KernelPlan &partial, const MatmulSize &size,
                                      const hw::TargetModel &target);

} // namespace fp4
