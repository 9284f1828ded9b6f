//===- FastWeightPlans.cpp - Tiles whose sums stay in the tensor core -----===//
//
// GEMMs of e4m3 activations and prepacked weights with fast accumulation. A tile of 256 rows
// converts its weights for twice as many multiplications as one of 128 rows, whose loop waits for
// conversions. So the taller tile is faster if it leaves few SMs idle.
//
//===----------------------------------------------------------------------===//
#include "WeightTiles.h"

#include "fp4/ISA/WeightLayout.h"

using namespace mlir;
using namespace fp4;

/// Rows of the tile beside which the tallest may be faster.
static constexpr int64_t kManyRows = 128;

/// Cycles of the waves of tiles of so many rows whose sums stay in the tensor core: of 128 k, and
/// of a tile besides, with the reduction of split-K ranges (notebook/gemm-weights.md).
static int64_t cyclesOfFast(const MatmulSize &size, int64_t rows, const hw::TargetModel &target) {
  constexpr int64_t ofTile = 5000, ofReduction = 50; // for each row
  int64_t waves = timeOfTiles(size, rows, kTileN, target) / (rows * kTileN);
  int64_t ofKTile = rows == kMostWeightRows ? 1040 : 630;
  int64_t kTiles = llvm::divideCeil(size.k, hw::byteTileColumns * size.splits);
  return waves * (kTiles * ofKTile + ofTile + (size.splits > 1 ? ofReduction * rows : 0));
}

/// Chooses a tile. Two k tiles to a stage are faster in tiles of 128 rows, except with split-K.
std::array<int64_t, 3> fp4::chooseFastTile(const KernelPlan &partial, const MatmulSize &size,
                                           const hw::TargetModel &target) {
  int64_t rows = partial.tile[0];
  if (!rows && !size.groups.empty())
    rows = fastestRows(kTileMs, kMostWeightRows, size, target);
  if (!rows && size.m > kManyRows)
    rows = cyclesOfFast(size, kMostWeightRows, target) < cyclesOfFast(size, kManyRows, target)
               ? kMostWeightRows
               : kManyRows;
  if (!rows)
    rows = *llvm::find_if(kTileMs, [&](int64_t tile) { return size.m <= tile; });
  bool isDeep = rows < kManyRows || (rows == kManyRows && size.splits == 1);
  int64_t ranges = partial.kSlices.value_or(1);
  int64_t depth = isDeep ? kPrepackedTileK : hw::byteTileColumns;
  return {rows, partial.tile[1] ? partial.tile[1] : kTileN,
          partial.tile[2] ? partial.tile[2] : std::max(depth / ranges, hw::byteTileColumns)};
}
