//===- WeightSlices.h - k slices of GEMMs of weights ----------------------===//
//
// The split-K parts that one CTA has of a tile. Either all of its warps multiply all of them, so
// that the MMAs of one do not wait for those of another; or each has warpgroups of its own
// (sliced-K), whose loads, conversions and MMAs hide each other's latency. Both add the sums in the
// order of the parts, so no bit depends on the choice.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "GemmPlanner.h"
#include "WeightTiles.h"

namespace fp4 {

struct WeightSlices {
  std::optional<int64_t> count;
  bool haveWarpgroups = false; ///< each has its own
};

/// The most rows of a tile of `slices` k slices, whose sums threads have in registers.
int64_t mostRowsOfSlices(int64_t slices, bool haveWarpgroups);
/// Returns true when a CTA may have so many k slices, with warpgroups of their own, of such a tile.
inline bool mayBeSliced(int64_t slices, int64_t rows) {
  return rows <= mostRowsOfSlices(slices, /*haveWarpgroups=*/true);
}

/// The depth of a tile of so many rows whose k slices have warpgroups of their own: twice as deep
/// with few rows, or where K ends in the middle of a unit of split-K.
int64_t depthOfSliced(BlockScaledMatmulOp op, int64_t rows);

/// Numbers of k slices with warpgroups of their own that a CTA may have of so many split-K parts:
/// of groups, it has all of them.
llvm::SmallVector<int64_t> countsOfSlices(BlockScaledMatmulOp op, int64_t splits);

/// Returns true when a GEMM of so many split-K parts has fast tiles of many rows. A CTA has all
/// parts of groups, and only slices that all warps have leave registers for the sums of many rows.
bool mayHaveManyRows(BlockScaledMatmulOp op, int64_t splits);

/// The k slices of the plan that `gemm.plan` begins. A plan that leaves them open gets those of the
/// least `cycles`, where these say anything of so many slices with warpgroups of their own.
WeightSlices chooseSlices(const PlannedGemm &gemm,
                          llvm::function_ref<double(int64_t slices)> cycles);

llvm::LogicalResult checkSlices(const PlannedGemm &gemm);

} // namespace fp4
