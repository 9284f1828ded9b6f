//===- Rasters.cpp - Orders of tiles that share their operands ------------===//
//
// Tiles that run at a time share rows of their operands, and go through K together. Shared rows
// come once from memory and cross the chip once. All other loads take energy, and, if power sets
// the clock, time: a GEMM of 4096 rows takes up to 4 % longer in panels that are too narrow, at the
// same number of cycles (notebook/weight-limits.md). So waves should load few bytes. A
// column of NVFP4 weights has 0.56 bytes for an element of K, a row of 16-bit floats 2.
//
//===----------------------------------------------------------------------===//
#include "GemmPlanner.h"
#include "RolePlans.h"

#include "fp4/Dialect/Pipe/IR/Schedules.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace fp4;

pipe::WorkScheduleAttrInterface fp4::neighboursAlongM(MLIRContext *context) {
  return pipe::StaticPersistentAttr::get(context, pipe::Raster::AlongM, /*width=*/0);
}

pipe::WorkScheduleAttrInterface fp4::inPanels(MLIRContext *context, int64_t width) {
  return pipe::StaticPersistentAttr::get(context, pipe::Raster::Panels, width);
}

int64_t fp4::tilesAlongM(const MatmulSize &size, int64_t m) {
  if (size.groups.empty())
    return int64_t(llvm::divideCeil(size.m, m));
  int64_t tiles = 0, halves = 0;
  for (int64_t rows : size.groups) {
    tiles += llvm::divideCeil(rows, m);
    halves += 2 * rows + m;
  }
  return size.expectsGroups ? int64_t(llvm::divideCeil(halves, 2 * m)) : tiles;
}

pipe::WorkScheduleAttrInterface fp4::rasterOfTiles(const PlannedGemm &gemm,
                                                   const std::array<int64_t, 3> &tile) {
  const MatmulSize &size = gemm.size;
  int64_t tilesM = std::max<int64_t>(1, tilesAlongM(size, tile[0])), workers = gemm.target.sms;
  auto columns = int64_t(llvm::divideCeil(size.n, tile[1]));
  double width = std::sqrt(double(workers * tile[0]) / double(tile[1]));
  int64_t rowsOfA = std::min(tilesM, workers) * tile[0];
  double rowsOfPanels = 2 * width * double(tile[1]);
  if (size.splits > 1 || columns < 2 || double(rowsOfA) < 2 * rowsOfPanels)
    return neighboursAlongM(gemm.context());
  auto half = int64_t(llvm::bit_floor(uint64_t(std::max(width / 2, 1.0))));
  return inPanels(gemm.context(), std::min(half, columns));
}

/// Widths of a raster that the planner tries, 0 where the raster has none; empty: the planner does
/// not take the raster. Wider panels were not measured.
static ArrayRef<int64_t> widthsToTry(pipe::Raster raster) {
  static constexpr int64_t without[] = {0}, panels[] = {2, 4, 8, 16};
  switch (raster) {
  case pipe::Raster::AlongM:
  case pipe::Raster::AlongN:
    return without;
  case pipe::Raster::Panels:
    return panels;
  }
  llvm_unreachable("all rasters are handled");
}

/// Orders of tiles that the planner tries, the preferred first: the place of a tile takes two
/// instructions in the first two.
static SmallVector<pipe::TileOrder> ordersToTry() {
  SmallVector<pipe::TileOrder> orders;
  for (pipe::Raster raster : pipe::allRasters())
    for (int64_t width : widthsToTry(raster))
      orders.push_back({raster, width});
  return orders;
}

double fp4::bytesOfCodes(Format format) {
  return (hasPackedData(format) ? 0.5 : 1.0) + 1.0 / double(blockSize(format));
}

/// Bytes of an element of K that the waves of `workers` tiles load, each row and column of tiles
/// once in a wave.
static double bytesOfWaves(pipe::TileOrder order, const TileGrid &grid, int64_t workers) {
  constexpr int64_t mostWaves = 64; // enough to tell orders apart
  int64_t tiles = std::min(grid.rows * grid.columns, mostWaves * workers);
  double bytes = 0;
  llvm::BitVector rows(unsigned(grid.rows)), columns(unsigned(grid.columns));
  for (int64_t first = 0; first < tiles; first += workers) {
    rows.reset();
    columns.reset();
    for (int64_t t = first; t < std::min(first + workers, tiles); ++t) {
      auto [row, column] = order.placeOf(t, grid.rows, grid.columns);
      rows.set(unsigned(row));
      columns.set(unsigned(column));
    }
    bytes += double(rows.count()) * grid.bytesOfRow + double(columns.count()) * grid.bytesOfColumn;
  }
  return bytes;
}

/// Returns true when the L2 cache keeps both operands in any order, or all rows along m. With rows
/// of a quarter of the cache, panels were 4 % slower (FP8, 4096 x 24576 x 1536 on an H100).
static bool staysInCache(const TileGrid &grid, int64_t k, const hw::TargetModel &target) {
  double rows = double(k * grid.rows) * grid.bytesOfRow,
         columns = double(k * grid.columns) * grid.bytesOfColumn;
  auto cache = double(target.l2Bytes);
  return rows + columns <= cache / 2 || rows <= cache / 4;
}

pipe::WorkScheduleAttrInterface fp4::rasterOfOperands(const PlannedGemm &gemm,
                                                      const TileGrid &grid) {
  constexpr double nearlyAsFew = 1.02;
  if (grid.rows < 2 || grid.columns < 2 || staysInCache(grid, gemm.size.k, gemm.target))
    return neighboursAlongM(gemm.context());
  SmallVector<pipe::TileOrder> orders = ordersToTry();
  SmallVector<double> bytes = llvm::map_to_vector(
      orders, [&](pipe::TileOrder order) { return bytesOfWaves(order, grid, gemm.target.sms); });
  double few = nearlyAsFew * *llvm::min_element(bytes);
  auto isFew = [&](double ofOrder) { return ofOrder <= few; };
  pipe::TileOrder order = orders[llvm::find_if(bytes, isFew) - bytes.begin()];
  return pipe::StaticPersistentAttr::get(gemm.context(), order.raster, order.width);
}
