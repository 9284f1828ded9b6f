//===- WeightTiles.h - Tiles of products of floats and weights -------------===//
//
// What plans of these products, of 16-bit floats and of e4m3, share: the sizes of their tiles, and
// how long waves of them take (WeightTiles.cpp). FastWeightPlans.cpp has tiles whose sums stay in
// the tensor core.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "CostModel.h"

#include "fp4/Conversion/KernelPlans/KernelPlans.h"

namespace fp4 {

/// Columns of a tile of the result: 64 rows of weights for each of two warpgroups.
inline constexpr int64_t kTileN = 128;
/// Elements of K of prepacked weights, of which one bulk copy loads a row of tiles, at most.
inline constexpr int64_t kPrepackedTileK = 256;
/// Rows of a tile, columns of the instruction, and of the tallest.
inline constexpr int64_t kMostWeightRows = 256;
inline constexpr int64_t kTileMs[] = {8, 16, 32, 64, 128, kMostWeightRows};

/// Tiles along m. A group that is expected to have rows has a tile, however many rows that has.
int64_t tilesOfRows(const MatmulSize &size, int64_t rows);
/// Elements of the tiles that a multiprocessor multiplies.
int64_t timeOfTiles(const MatmulSize &size, int64_t rows, int64_t columns,
                    const hw::TargetModel &target);
/// What the waves of tiles take with what they take besides.
int64_t timeOfRows(const MatmulSize &size, int64_t rows, const hw::TargetModel &target);
/// Of `tiles` of at most `most` rows, the one whose waves take the least; of equals, the largest.
int64_t fastestRows(llvm::ArrayRef<int64_t> tiles, int64_t most, const MatmulSize &size,
                    const hw::TargetModel &target);

/// The tile of a product beside e4m3 whose sums stay in the tensor core: the smallest that has all
/// rows; of more than 128 rows that of 128 or 256 whose waves are faster.
std::array<int64_t, 3> chooseFastTile(const KernelPlan &wish, const MatmulSize &size,
                                      const hw::TargetModel &target);

} // namespace fp4
