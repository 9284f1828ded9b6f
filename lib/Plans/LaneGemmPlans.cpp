//===- LaneGemmPlans.cpp - FP8 with f32 scales in tensor memory --------===//
//
// A tile has 128 rows, whose sums of one scale block of k the tensor core leaves in tensor memory.
// A warpgroup adds those of up to 128 columns to the sums in its registers; two warpgroups share a
// tile of 256. The plan has the tile whose waves take the fewest cycles. A k tile costs the largest
// of three times: of the tensor core, of its operands from the L2 cache, and of a warpgroup from
// one k tile to the next.
//
// A thread has the sums of both GEMMs of a dual one, of half as many columns. Threads that quantize
// rows have whole blocks, or those of two warpgroups have halves of a block of 128.
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
/// Columns whose elements a warp exchanges; and the part of a block of 128 that one of two
/// warpgroups may have.
static constexpr int64_t kSquare = 32, kPartColumns = 64;

/// Cycles of a warpgroup from one k tile to the next, as the simulator predicts them: of waiting,
/// and of each column, most of which reading tensor memory takes. Two warpgroups have their turns
/// at the same time. Warpgroups of a pair release accumulators to the CTA that leads the pair,
/// which takes longer.
static constexpr double kWaitCycles = 290, kPairWaitCycles = 510, kColumnCycles = 4;

/// Warpgroups that share a tile of so many columns of each of `products` GEMMs.
static int64_t groupsOf(int64_t columns, int64_t products) {
  return columns > kGroupColumns / products ? 2 : 1;
}

/// Returns true when threads can have the sums of such a tile, and quantize what they have of it.
static bool mayHaveColumns(BlockScaledMatmulOp product, int64_t columns) {
  int64_t products = product.isDual() ? 2 : 1, groups = groupsOf(columns, products),
          ofThread = columns / groups;
  if (ofThread * products > kGroupColumns || (product.quantizesColumns() && ofThread < kSquare))
    return false;
  if (!product.quantizesRows())
    return true;
  int64_t block = numerics::blockSizeOf(product.getQuantizeRecipe()->getDecisions().format);
  bool isPart = block == kGroupColumns && groups == 2 && ofThread == kPartColumns;
  return ofThread % block == 0 || isPart;
}

/// Columns of the tiles that a GEMM can have by one CTA or by a pair.
static SmallVector<int64_t> columnsOf(BlockScaledMatmulOp product, bool isPair) {
  return llvm::filter_to_vector(kTileNs, [&](int64_t n) {
    return mayHaveColumns(product, n) && (!isPair || n > kTileNs.front());
  });
}

/// Work of the epilogue where a GEMM is more than sums and their conversion.
static EpilogueWork workOf(const PlannedGemm &gemm) {
  return isFused(gemm.op) ? epilogueWorkOf(gemm.op, gemm.target) : EpilogueWork();
}

/// Cycles of a GEMM with `tile`. Each CTA of a pair loads half of the rows of B.
static double cyclesOf(const MatmulSize &size, const GemmTile &tile,
                       const hw::TargetModel &target) {
  const hw::MmaRates &rates = *target.product;
  int64_t n = tile.n, rows = kTileM * tile.clusterM, ofB = tile.rowsOfB() * size.products;
  int64_t clusters =
      tilesAlongM(size, rows) * size.splits * int64_t(llvm::divideCeil(size.n, n * tile.clusterN));
  int64_t workers = std::max<int64_t>(1, target.sms / tile.blocks());
  auto waves = double(llvm::divideCeil(clusters, workers));
  // The tensor core multiplies half as many elements of 8 bits as of 4 in a cycle, and twice as
  // many with the double K; a multiply-add is two operations.
  double perElement = 4.0 * hw::mmaRowBytes / double(size.stepBytes);
  double multiply = multiplyCycles(perElement * double(kTileM * n * size.products * kTileK),
                                   double((kTileM + ofB) * kTileK), target);
  int64_t active = std::min(clusters, workers) * tile.blocks();
  double feed =
      double((std::min(size.m, kTileM) + ofB) * kTileK) / feedBytesPerCycle(active, target);
  double promote = (tile.pair ? kPairWaitCycles : kWaitCycles) +
                   kColumnCycles * double(n * size.products / tile.epilogueGroups);
  auto deep = double(llvm::divideCeil(size.k, kTileK * size.splits));
  double ofResults = size.epilogue.isPlain() ? rates.epilogueCyclesPerColumn * double(n)
                                             : epilogueCycles(size, tile, target);
  double cycles = deep * std::max({multiply, feed, promote}) + rates.fillCycles + ofResults;
  auto groups = double(std::max<size_t>(1, size.groups.size()));
  double weights = double(size.n * size.products) * groups;
  double memory = memoryCycles((double(size.m) + weights) * double(size.k), 0, target);
  return std::max(waves * cycles + rates.tailCycles, memory) + rates.launchCycles;
}

/// A tile of n columns, by one CTA or by a pair.
static GemmTile tileOf(const PlannedGemm &gemm, int64_t n, bool isPair) {
  GemmTile tile{isPair, n, isPair ? 2 : 1, 1};
  tile.epilogueGroups = groupsOf(n, gemm.size.products);
  return tile;
}

static std::vector<SizedTile> laneTiles(const PlannedGemm &gemm) {
  std::vector<SizedTile> tiles;
  for (int64_t n : columnsOf(gemm.op, /*isPair=*/true)) // a tile of 16 columns is for so few
    for (bool pair : {false, true}) {
      if (pair && !gemm.target.features.hasCtaPairs)
        continue;
      GemmTile tile = tileOf(gemm, n, pair);
      auto cost = [tile, work = workOf(gemm), &target = gemm.target](MatmulSize size) {
        size.epilogue = work;
        return cyclesOf(size, tile, target);
      };
      tiles.push_back(sizedTile({tile.rows(), n, kTileK}, cost));
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
  const SmallVector<int64_t> columns = columnsOf(gemm.op, mustPair);
  for (int64_t n : llvm::reverse(columns)) {
    if ((gemm.size.splits > 1 && groupsOf(n, gemm.size.products) > 1) ||
        (partial.tile[1] && partial.tile[1] != n))
      continue;
    for (bool pair : {false, true}) {
      if (pair ? !mayPair || n == kTileNs.front() : mustPair)
        continue;
      GemmTile tile = tileOf(gemm, n, pair);
      if (mayHaveCluster(gemm)) {
        tile.clusterM = partial.cluster[0];
        tile.clusterN = partial.cluster[1];
      }
      tiles.push_back(tile);
    }
  }
  if (tiles.empty()) // the check says what is wrong with the tile that was asked for
    tiles.push_back(tileOf(gemm, partial.tile[1] ? partial.tile[1] : kGroupColumns, mustPair));
  return tiles;
}

/// Proposes the best tile; of equals, the first, which has the most columns.
static KernelPlan proposeLane(const PlannedGemm &gemm) {
  MatmulSize size = gemm.size;
  size.epilogue = workOf(gemm);
  auto cost = [&](const GemmTile &tile) { return cyclesOf(size, tile, gemm.target); };
  GemmTile tile = cheapest(candidatesOf(gemm), cost);
  if (llvm::is_contained(columnsOf(gemm.op, tile.pair), tile.n)) // else the check reports it
    remarkOnTile(gemm, {tile.rows(), tile.n}, tile.pair ? "a pair of CTAs" : "one CTA", cost(tile));
  KernelPlan plan = planOfFamily(KernelFamily::TileGemm);
  plan.tile = {tile.rows(), tile.n, kTileK};
  plan.pair = tile.pair;
  if (tile.blocks() > 1)
    plan.cluster = {tile.clusterM, tile.clusterN};
  plan.schedule = rasterOfGemm(gemm, tile);
  plan.roles = laneRoles(gemm.context(), int32_t(tile.epilogueGroups));
  plan.ctasPerSm = 1;
  return plan;
}

static LogicalResult checkLane(const PlannedGemm &gemm) {
  auto [m, n, k] = gemm.plan.tile;
  bool isPair = gemm.plan.pair;
  SmallVector<int64_t> columns = columnsOf(gemm.op, isPair);
  bool fits = m == (isPair ? 2 : 1) * kTileM && llvm::is_contained(columns, n);
  if (!fits || k != kTileK)
    return gemm.misfitTile(
        (isPair ? "is, with 'pair', [256, n, 128] with n = " : "is [128, n, 128] with n = ") +
        spellChoice(columns));
  if (failed(checkCtasPerSm(gemm)) || failed(checkGemmCluster(gemm)))
    return failure();
  bool isShared = groupsOf(n, gemm.size.products) > 1;
  if (isShared && gemm.splits() > 1)
    return gemm.misfit("tile", "has at most " + Twine(kGroupColumns) + " columns for split-K",
                       Twine(n));
  using enum pipe::Engine;
  return gemm.checkTiling({Tma, Tensor, Threads}, {.warps = {isShared ? 8 : 4}});
}

constexpr GemmPlanner fp4::kPromotedTmemPlanner = {route::Planner::PromotedTmem, proposeLane,
                                                   checkLane, laneTiles};
