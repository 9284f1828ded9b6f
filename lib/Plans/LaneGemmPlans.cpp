//===- LaneGemmPlans.cpp - FP8 with f32 scales in tensor memory --------===//
//
// A tile has 128 rows, whose sums of one scale block of k the tensor core leaves in tensor memory.
// A warpgroup adds those of up to 128 columns to the sums in its registers; two warpgroups share a
// tile of 256. The plan has the tile whose waves take the fewest cycles. A k tile costs the largest
// of three times: of the tensor core, of its operands from the L2 cache, and of a warpgroup from
// one k tile to the next.
//
//===----------------------------------------------------------------------===//

#include "GemmPlanner.h"
#include "RolePlans.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp4;

/// The rows and the depth of a tile, one scale block, and the columns that it can have.
static constexpr int64_t kTileM = 128, kTileK = 128;
static constexpr std::array<int64_t, 5> kTileNs = {16, 32, 64, 128, 256};
/// Columns of a warpgroup: with them a thread has as many sums in registers.
static constexpr int64_t kGroupColumns = 128;

/// Cycles of a warpgroup from one k tile to the next, as the simulator predicts them: of waiting,
/// and of each column, most of which reading tensor memory takes. Two warpgroups have their turns
/// at the same time. Warpgroups of a pair release accumulators to the CTA that leads the pair,
/// which takes longer.
static constexpr double kWaitCycles = 290, kPairWaitCycles = 510, kColumnCycles = 4;

static int64_t groupsOf(int64_t columns) { return columns > kGroupColumns ? 2 : 1; }

/// Cycles of a GEMM with `tile`. Each CTA of a pair loads half of the rows of B.
static double cyclesOf(const MatmulSize &size, const GemmTile &tile,
                       const hw::TargetModel &target) {
  const hw::MmaRates &rates = *target.product;
  int64_t n = tile.n, rows = kTileM * tile.clusterM;
  int64_t clusters =
      tilesAlongM(size, rows) * size.splits * int64_t(llvm::divideCeil(size.n, n * tile.clusterN));
  int64_t workers = std::max<int64_t>(1, target.sms / tile.blocks());
  auto waves = double(llvm::divideCeil(clusters, workers));
  // The tensor core multiplies half as many elements of 8 bits as of 4 in a cycle, and twice as
  // many with the double K; a multiply-add is two operations.
  double perElement = 4.0 * hw::mmaRowBytes / double(size.stepBytes);
  double multiply = multiplyCycles(perElement * double(kTileM * n * kTileK),
                                   double((kTileM + tile.rowsOfB()) * kTileK), target);
  int64_t active = std::min(clusters, workers) * tile.blocks();
  double feed = double((std::min(size.m, kTileM) + tile.rowsOfB()) * kTileK) /
                feedBytesPerCycle(active, target);
  double promote =
      (tile.pair ? kPairWaitCycles : kWaitCycles) + kColumnCycles * double(n / groupsOf(n));
  auto deep = double(llvm::divideCeil(size.k, kTileK * size.splits));
  double cycles = deep * std::max({multiply, feed, promote}) + rates.fillCycles +
                  rates.epilogueCyclesPerColumn * double(n);
  auto groups = double(std::max<size_t>(1, size.groups.size()));
  double memory =
      memoryCycles((double(size.m) + double(size.n) * groups) * double(size.k), 0, target);
  return std::max(waves * cycles + rates.tailCycles, memory) + rates.launchCycles;
}

static std::vector<SizedTile> laneTiles(const PlannedGemm &gemm) {
  std::vector<SizedTile> tiles;
  for (int64_t n : llvm::drop_begin(kTileNs)) // a tile of 16 columns is for so few
    for (bool pair : {false, true}) {
      if (pair && !gemm.target.features.hasCtaPairs)
        continue;
      GemmTile tile{pair, n, pair ? 2 : 1, 1};
      tiles.push_back(sizedTile({tile.rows(), n, kTileK}, [=, &gemm](const MatmulSize &size) {
        return cyclesOf(size, tile, gemm.target);
      }));
    }
  return tiles;
}

/// Tiles that agree with a partial plan: of n columns, by one CTA or by a pair, or by the CTAs of
/// the cluster that is asked for.
static SmallVector<GemmTile> candidatesOf(const PlannedGemm &gemm) {
  const KernelPlan &partial = gemm.plan;
  SmallVector<GemmTile> tiles;
  bool mustPair = partial.pair || partial.tile[0] == 2 * kTileM;
  bool mayPair =
      mustPair || (!partial.tile[0] && !partial.cluster[0] && gemm.target.features.hasCtaPairs);
  for (int64_t n : llvm::reverse(kTileNs)) {
    if ((gemm.size.splits > 1 && groupsOf(n) > 1) || (partial.tile[1] && partial.tile[1] != n))
      continue;
    for (bool pair : {false, true}) {
      if (pair ? !mayPair || n == kTileNs.front() : mustPair)
        continue;
      GemmTile tile{pair, n, pair ? 2 : 1, 1};
      if (mayHaveCluster(gemm)) {
        tile.clusterM = partial.cluster[0];
        tile.clusterN = partial.cluster[1];
      }
      tiles.push_back(tile);
    }
  }
  if (tiles.empty()) // the check says what is wrong with the tile that was asked for
    tiles.push_back(
        {mustPair, partial.tile[1] ? partial.tile[1] : kGroupColumns, mustPair ? 2 : 1, 1});
  return tiles;
}

/// Proposes the best tile; of equals, the first, which has the most columns.
static KernelPlan proposeLane(const PlannedGemm &gemm) {
  auto cost = [&](const GemmTile &tile) { return cyclesOf(gemm.size, tile, gemm.target); };
  GemmTile tile = cheapest(candidatesOf(gemm), cost);
  if (llvm::is_contained(kTileNs, tile.n)) // the check reports any other tile
    remarkOnTile(gemm, {tile.rows(), tile.n}, tile.pair ? "a pair of CTAs" : "one CTA", cost(tile));
  KernelPlan plan = planOfFamily(KernelFamily::TileGemm);
  plan.tile = {tile.rows(), tile.n, kTileK};
  plan.pair = tile.pair;
  if (tile.blocks() > 1)
    plan.cluster = {tile.clusterM, tile.clusterN};
  plan.schedule = rasterOfGemm(gemm, tile);
  plan.roles = laneRoles(gemm.context(), int32_t(groupsOf(tile.n)));
  plan.ctasPerSm = 1;
  return plan;
}

static LogicalResult checkLane(const PlannedGemm &gemm) {
  auto [m, n, k] = gemm.plan.tile;
  bool isPair = gemm.plan.pair;
  bool fits = m == (isPair ? 2 : 1) * kTileM && llvm::is_contained(kTileNs, n);
  if (!fits || k != kTileK || (isPair && n == kTileNs.front()))
    return gemm.misfitTile(isPair ? "is, with 'pair', [256, n, 128] with n = 32, 64, 128 or 256"
                                  : "is [128, n, 128] with n = 16, 32, 64, 128 or 256");
  if (failed(checkCtasPerSm(gemm)) || failed(checkGemmCluster(gemm)))
    return failure();
  bool isShared = groupsOf(n) > 1;
  if (isShared && gemm.splits() > 1)
    return gemm.misfit("tile", "has at most " + Twine(kGroupColumns) + " columns for split-K",
                       Twine(n));
  using enum pipe::Engine;
  return gemm.checkTiling({Tma, Tensor, Threads}, {.warps = {isShared ? 8 : 4}});
}

constexpr GemmPlanner fp4::kPromotedTmemPlanner = {route::Planner::PromotedTmem, proposeLane,
                                                   checkLane, laneTiles};
