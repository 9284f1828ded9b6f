//===- WeightTiles.cpp - Times of tiles of weights ------------------------===//
#include "WeightTiles.h"

#include "Families.h"

using namespace mlir;
using namespace fp4;

int64_t fp4::tilesOfRows(const MatmulSize &size, int64_t rows) {
  int64_t fewest = size.expectsGroups ? int64_t(size.groups.size()) : 0;
  return std::max(fewest, tilesAlongM(size, rows));
}

int64_t fp4::timeOfTiles(const MatmulSize &size, int64_t rows, int64_t columns,
                         const hw::TargetModel &target) {
  int64_t tiles = tilesOfRows(size, rows) * llvm::divideCeil(size.n, columns);
  return int64_t(llvm::divideCeil(tiles * size.splits, target.sms)) * rows * columns;
}

/// Rows whose time a tile takes beside its MMAs, in which weights are loaded and converted. If
/// warps multiply, 8192 x 8192 weights and 64 rows on sm_120a are predicted to take 107 us with 64
/// rows and 60 with 32, which leave fewer SMs idle (notebook/time.md). With wgmma, half of these
/// weights took 11.2 us with 8, 16.8 with 64 and 24.1 with 128 rows of an H200
/// (notebook/weight-limits.md).
static int64_t otherRows(const hw::TargetModel &target) {
  return route::hasCore(target, route::Core::Wgmma) ? 80 : 16;
}

int64_t fp4::timeOfRows(const MatmulSize &size, int64_t rows, const hw::TargetModel &target) {
  return timeOfTiles(size, rows, kTileN, target) / rows * (rows + otherRows(target));
}

int64_t fp4::fastestRows(ArrayRef<int64_t> tiles, int64_t most, const MatmulSize &size,
                         const hw::TargetModel &target) {
  int64_t best = most;
  auto time = [&](int64_t rows) { return timeOfRows(size, rows, target); };
  for (int64_t rows : llvm::reverse(tiles))
    if (rows <= most && time(rows) < time(best))
      best = rows;
  return best;
}
