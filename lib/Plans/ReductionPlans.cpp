//===- ReductionPlans.cpp - Reductions of split-K in a cluster ------------===//
//
// With tcgen05, the CTAs of a cluster, or its pairs, have the split-K ranges of one tile, and add
// them in their shared memory (pipe.reduce). Each CTA sends the others the columns that these add,
// so shared memory has room for as many beside the stages.
//
//===----------------------------------------------------------------------===//

#include "GemmPlanner.h"
#include "RolePlans.h"

#include "fp4/ISA/ClusterLimit.h"

using namespace mlir;
using namespace fp4;

/// The most columns of a tile that a cluster reduces. A thread has loads of all ranges of its
/// columns on their way, one for each column of the tile; with wider tiles registers are spilled.
static constexpr int64_t kMostReducedColumns = 128;

int64_t fp4::reducedColumns(int64_t columns, int64_t blocks) {
  int64_t unit = columns >= 8 * blocks ? 8 : 4;
  return int64_t(llvm::divideCeil(columns, unit * blocks)) * unit;
}

int64_t fp4::reductionBytes(int64_t columns, int64_t splits) {
  constexpr int64_t sumBytes = 4, barriers = 16;
  return (splits - 1) * reducedColumns(columns, splits) * kGemmTileM * sumBytes + barriers;
}

/// Returns true when a workspace is faster. If clusters have several tiles one after the other, and
/// few sums of each, CTAs that leave them in a workspace, and wait for nobody, are faster: 8.4
/// instead of 9.2 us for 1 x 8192 x 8192 with four ranges, and 13.8 instead of 10.1 for 64 rows
/// (predicted by simulation).
static bool waitsForLittle(const GemmTile &tile, const MatmulSize &size,
                           const hw::TargetModel &target) {
  constexpr int64_t fewColumns = 32;
  int64_t rows = tile.transposed ? tile.n : tile.rows(),
          columns = tile.transposed ? tile.rows() : tile.n;
  auto tiles = int64_t(llvm::divideCeil(size.m, rows) * llvm::divideCeil(size.n, columns));
  return std::min(size.m, tile.n) < fewColumns && tiles * size.splits > gemmWorkers(tile, target);
}

/// The tile with a cluster that reduces its ranges; larger clusters than every device runs are not
/// proposed.
static std::optional<GemmTile> joined(GemmTile tile, const KernelPlan &partial,
                                      const MatmulSize &size, const hw::TargetModel &target) {
  int64_t blocks = size.splits * (tile.pair ? 2 : 1);
  bool isWanted = partial.split.reduction == ReductionPlace::Cluster;
  if (tile.narrow || (!isWanted && partial.cluster[0]) || tile.n > kMostReducedColumns ||
      blocks > int64_t(isWanted ? hw::mostClusterCtas(target) : target.limits.maxClusterSize))
    return std::nullopt;
  tile.clusterM = blocks;
  tile.clusterN = 1;
  tile.joins = true;
  if (!isWanted && waitsForLittle(tile, size, target))
    return std::nullopt;
  return tile;
}

void fp4::addReduced(const KernelPlan &partial, const MatmulSize &size,
                     const hw::TargetModel &target, llvm::function_ref<bool(const GemmTile &)> fits,
                     SmallVectorImpl<GemmTile> &tiles) {
  if (size.splits < 2 || partial.split.reduction == ReductionPlace::Workspace ||
      partial.fallback[0] || requestsWork(partial.schedule))
    return;
  SmallVector<GemmTile> found;
  for (const GemmTile &tile : tiles)
    if (auto other = joined(tile, partial, size, target); other && fits(*other))
      found.push_back(*other);
  if (partial.split.reduction && !found.empty())
    tiles.clear();
  llvm::append_range(tiles, found);
}

/// Columns of the accumulator. Weights beside floats are TMEM lanes, and rows of the result
/// columns.
static int64_t columnsOfAccumulator(const KernelPlan &plan) {
  return plan.tile[plan.route.a == route::Operand::Tmem ? 0 : 1];
}

LogicalResult fp4::checkClusterReduction(const PlannedGemm &gemm) {
  const KernelPlan &plan = gemm.plan;
  int64_t splits = gemm.splits(), ofRange = plan.pair ? 2 : 1, blocks = splits * ofRange;
  int64_t most = hw::mostClusterCtas(gemm.target);
  if (splits < 2 || blocks > most)
    return gemm.misfit("reduction",
                       "is cluster for 2 to " + Twine(most / ofRange) + " split-K ranges" +
                           (plan.pair ? " with 'pair'" : ""),
                       "it for " + Twine(splits));
  if (plan.pair && plan.tile[0] == kGemmTileM)
    return gemm.misfit("reduction", "is left out with pairs of 128 rows", "cluster");
  int64_t columns = columnsOfAccumulator(plan);
  if (columns > kMostReducedColumns)
    return gemm.misfit("reduction",
                       "is left out for accumulators of more than " + Twine(kMostReducedColumns) +
                           " columns",
                       "it for " + Twine(columns));
  if (plan.fallback[0])
    return gemm.misfit("fallback", "is left out with reduction = cluster", "one");
  if (requestsWork(plan.schedule))
    return gemm.misfit("schedule", "is static_persistent with reduction = cluster",
                       spell(plan.schedule));
  if (plan.cluster[0] == blocks && plan.cluster[1] == 1)
    return success();
  return gemm.misfit("cluster",
                     "is [" + Twine(blocks) + ", 1] with reduction = cluster, " +
                         (plan.pair ? "a pair" : "a CTA") + " for each split-K range",
                     spell(plan.cluster));
}

//===----------------------------------------------------------------------===//
// Sums in registers
//===----------------------------------------------------------------------===//

/// Clusters of more than two CTAs have room if 70 to 85 % of the places for CTAs are taken. The SMs
/// of a GPC are no multiple of a cluster, so that 256 CTAs take two waves in an H200's 264 places.
/// With 128 CTAs, two share an SM and leave another idle (notebook/gemm-weights.md).
bool fp4::haveRoomForClusters(int64_t ctasOfCluster, int64_t ctas, int64_t places) {
  return ctasOfCluster == 2 || (14 * places <= 20 * ctas && 20 * ctas <= 17 * places);
}

/// Proposes a cluster that reduces split-K ranges, if shared memory fits the sums that its CTAs
/// send beside their stages.
std::array<int64_t, 3> fp4::proposeReduction(const PlannedGemm &gemm, ReducedTile tile,
                                             int64_t tiles, int64_t resident) {
  const KernelPlan &partial = gemm.plan;
  if (partial.cluster[0])
    return partial.cluster;
  int64_t blocksOfTile = gemm.size.splits / partial.split.kSlices.value_or(1),
          blocks = tiles * blocksOfTile, places = resident * gemm.target.sms;
  bool joins = blocksOfTile > 1 && blocksOfTile <= gemm.target.limits.maxClusterSize &&
               tile.rows <= tile.mostRows && haveRoomForClusters(blocksOfTile, blocks, places);
  return joins ? std::array<int64_t, 3>{blocksOfTile, 1} : std::array<int64_t, 3>{};
}

LogicalResult fp4::checkReductionPlace(const PlannedGemm &gemm, ReducedTile tile) {
  auto [m, n, none] = gemm.plan.cluster;
  int64_t most = gemm.target.limits.maxClusterSize;
  bool joins = m * gemm.plan.split.kSlices.value_or(1) == gemm.splits() && m <= most &&
               tile.rows <= tile.mostRows;
  if (m == 0 || (n == 1 && (m == 1 || joins)))
    return success();
  return gemm.misfit("cluster",
                     "is [1, 1], or [split_k / ranges, 1] for up to " + Twine(most) +
                         " split-K ranges of tiles of up to " + Twine(tile.mostRows) + " rows",
                     spell(gemm.plan.cluster));
}
