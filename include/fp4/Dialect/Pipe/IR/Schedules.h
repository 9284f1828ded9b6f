//===- Schedules.h - Orders of the tiles of a grid ------------------------===//
// The enumerators of rasters, and the facts about each of them that the planner, the schedules and
// their parser share. Each fact is a switch in lib/Dialect/Pipe/IR/Schedules/Rasters.cpp, so that
// the compiler names the places which a new raster needs. Pipe.h declares the enumeration only.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/Dialect/Pipe/IR/PipeRasters.h.inc"

#include "llvm/ADT/Sequence.h"

#include <utility>

namespace fp4::pipe {

/// All rasters, in the order of their enumerators.
inline auto allRasters() {
  return llvm::enum_seq_inclusive(Raster(0), Raster(getMaxEnumValForRaster()),
                                  llvm::force_iteration_on_noniterable_enum);
}

/// Returns true when a raster has a width: the columns of its panels, at least 1.
bool hasWidth(Raster raster);

/// The rasters as a schedule spells them, such as `along_m` and `panels<WIDTH>`.
std::string rasterNames();

/// The order of tiles: a raster and the width of its panels, 0 where it has none.
struct TileOrder {
  Raster raster;
  int64_t width = 0;

  /// Row and column of tile number `t` of a grid; what tileOf computes in a kernel.
  std::pair<int64_t, int64_t> placeOf(int64_t t, int64_t rows, int64_t columns) const;
};

} // namespace fp4::pipe
