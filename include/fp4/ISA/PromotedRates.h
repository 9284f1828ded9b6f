//===- PromotedRates.h - Rates of FP8 GEMMs whose sums are promoted -------===//
//
// The time of an FP8 GEMM with f32 scales on wgmma by the tile of its result, from few numbers that
// are fitted to measured kernels. The planner ranks tiles and split-K factors with it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/Rates.h"

#include <optional>

namespace fp4::hw {

struct TargetModel;

/// Cycles that the warpgroups of a tile take for a scale block of K: once, and for each column.
struct WarpgroupRates {
  double wait, column;
};

/// Cycles of a part of a kernel: once, and for each column.
struct ColumnRates {
  double once, column;
};

/// Bytes that memory delivers in a cycle.
struct MemoryRates {
  double bytes;      ///< to all SMs
  double idle;       ///< the part of the time more that the same bytes take if few SMs ask for them
  double rangeBytes; ///< of the lhs to all split-K ranges, besides
};

/// Cycles of the parts of a GEMM; a k tile is a scale block of 128 elements of K.
struct PromotedRates {
  WarpgroupRates alone;    ///< 64 rows
  WarpgroupRates deep;     ///< 64 rows, two scale blocks in a stage
  WarpgroupRates beside;   ///< 128 rows
  WarpgroupRates tall;     ///< 256 rows
  WarpgroupRates many;     ///< 128 rows of GEMMs of more, with their scales in shared memory
  WarpgroupRates manyTall; ///< 256 rows of such GEMMs
  double select, manySelect; ///< eight columns of a part that select one of two scales
  double feedBytes;        ///< bytes that the L2 cache delivers to an SM in a cycle
  MemoryRates memory;
  ColumnRates tile;        ///< a tile besides its k tiles
  double manyTile;         ///< a tile of GEMMs of many rows besides its k tiles
  double launch;           ///< a kernel besides its tiles
  double overlapped;       ///< a kernel of several waves, in whose last one the next kernel begins
  ColumnRates cluster;     ///< a reduction of two ranges in a cluster
  ColumnRates workspace; ///< a reduction in a workspace: once, and for each column of 128 rows and
                         ///< each range
  Mark mark;
  std::string_view source;
};

/// Returns the rates on `target`, with the memory of its device; nothing where wgmma is missing.
std::optional<PromotedRates> promotedRates(const TargetModel &target);

} // namespace fp4::hw
