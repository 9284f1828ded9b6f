//===- Rasters.cpp - Orders of tiles that share their operands ------------===//
//
// Tiles that run at a time share rows of their operands, and go through K together. What they have
// in common comes once from memory and crosses the chip once; what else they load takes energy, and
// where power sets the clock, time: a product of 4096 rows takes up to 4 % longer in panels that
// are too narrow, at the same number of cycles (docs/Performance/WeightLimits.md). So the fewest
// bytes decide, in which a column of 4-bit weights counts a quarter of a row of 16-bit floats.
//
//===----------------------------------------------------------------------===//
#include "CostModel.h"
#include "Families.h"
#include "RolePlans.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace fp4;

/// The widest panel that is proposed: of wider ones a wave has too few rows to share columns.
static constexpr int64_t kMostColumns = 32;

pipe::WorkScheduleAttrInterface fp4::rasterOfTiles(MLIRContext *context,
                                                   const std::array<int64_t, 3> &tile,
                                                   const MatmulSize &size,
                                                   const hw::TargetModel &target) {
  int64_t tilesM = std::max<int64_t>(1, tilesAlongM(size, tile[0])),
          workers = target.multiprocessors;
  auto columns = int64_t(llvm::divideCeil(size.n, tile[1]));
  double width = std::sqrt(double(workers * tile[0]) / double(tile[1]));
  int64_t rowsOfA = std::min(tilesM, workers) * tile[0];
  double rowsOfPanels = 2 * width * double(tile[1]);
  if (size.splits > 1 || columns < 2 || double(rowsOfA) < 2 * rowsOfPanels)
    return neighboursAlongM(context);
  auto half = int64_t(llvm::bit_floor(uint64_t(std::max(width / 2, 1.0))));
  return pipe::StaticPersistentAttr::get(context, pipe::Raster::Panels, std::min(half, columns));
}

/// Bytes of an element of K that `workers` tiles load, each row and column of tiles once, in panels
/// of `width` columns.
static double bytesOfWave(const TileGrid &grid, int64_t workers, int64_t width) {
  double ofAllRows = double(workers) / double(std::max<int64_t>(grid.rows, 1));
  double columns = std::max(double(std::min(width, grid.columns)), ofAllRows);
  double rows = double(workers) / columns;
  return rows * grid.bytesOfRow + std::min(columns, double(grid.columns)) * grid.bytesOfColumn;
}

/// The L2 cache keeps both operands, or one of them, in any order. Of one that is a quarter of it,
/// panels were 4 % slower (FP8, 4096 x 24576 x 1536 on an H100).
static bool staysInCache(const TileGrid &grid, int64_t k, const hw::TargetModel &target) {
  double rows = double(k * grid.rows) * grid.bytesOfRow,
         columns = double(k * grid.columns) * grid.bytesOfColumn;
  auto cache = double(target.l2Bytes);
  return rows + columns <= cache / 2 || std::min(rows, columns) <= cache / 4;
}

pipe::WorkScheduleAttrInterface fp4::rasterOfOperands(MLIRContext *context, const TileGrid &grid,
                                                      int64_t k, const hw::TargetModel &target) {
  constexpr double nearlyAsFew = 1.02; // a quotient less on the path to the first load
  int64_t workers = target.multiprocessors, best = 1;
  for (int64_t width = 2; width <= kMostColumns && width / 2 < grid.columns; width *= 2)
    if (bytesOfWave(grid, workers, width) < bytesOfWave(grid, workers, best))
      best = width;
  if (staysInCache(grid, k, target) ||
      bytesOfWave(grid, workers, 1) <= nearlyAsFew * bytesOfWave(grid, workers, best))
    return neighboursAlongM(context);
  if (best >= grid.columns)
    return pipe::StaticPersistentAttr::get(context, pipe::Raster::AlongN, /*width=*/0);
  return pipe::StaticPersistentAttr::get(context, pipe::Raster::Panels, best);
}
