//===- ConvertedProductPlans.cpp - Products on tensor cores without fp4 ---===//

#include "CostModel.h"
#include "Families.h"
#include "RolePlans.h"

using namespace mlir;
using namespace fp4;

/// Rows of a tile, 64 or twice 64 for each of two warpgroups, and its depth: what two columns of
/// blocks of nvfp4 scales cover. Its columns.
static constexpr int64_t kTileM = 128, kTallM = 256, kTileK = 128;
static constexpr std::array<int64_t, 3> kTileNs = {64, 128, 256};

/// Tiles, and what a wave of them takes, one to the other: 101, 109 and 67 us for K = 8192 on an
/// H200 (docs/Performance.md). Of two that take as long the first is better: it converts less of B,
/// which passes through shared memory.
struct TileCost {
  int64_t m, n, time;
};
static constexpr TileCost kTiles[] = {{kTallM, 128, 12}, {kTileM, 256, 13}, {kTileM, 128, 8}};

static TileCost chooseTile(const MatmulSize &size, const hw::TargetModel &target) {
  if (size.n <= kTileNs[0])
    return {kTileM, kTileNs[0], 0};
  auto time = [&](const TileCost &tile) {
    int64_t tiles = llvm::divideCeil(size.m, tile.m) * llvm::divideCeil(size.n, tile.n);
    return int64_t(llvm::divideCeil(tiles, target.multiprocessors)) * tile.time;
  };
  return *std::min_element(std::begin(kTiles), std::end(kTiles),
                           [&](const TileCost &x, const TileCost &y) { return time(x) < time(y); });
}

KernelPlan fp4::proposeConvertedProduct(Operation *op, const MatmulSize &size,
                                        const hw::TargetModel &target) {
  KernelPlan plan = planOfFamily(KernelFamily::TileProduct);
  TileCost tile = chooseTile(size, target);
  plan.tile = {tile.m, tile.n, kTileK};
  plan.schedule = neighboursAlongM(op->getContext());
  plan.roles = warpgroupRoles(op->getContext());
  plan.resident = 1;
  return plan;
}

/// The accumulators of a warpgroup never leave its registers; operands are loaded and converted
/// while they are multiplied.
static StringRef warpgroupRules(pipe::RolePlanAttr roles) {
  using enum pipe::Engine;
  pipe::RoleAttr math = roles.getDriver(Tensor), load = roles.getDriver(Tma);
  pipe::RoleAttr convert = roles.getDriver(Convert);
  if (math != roles.getDriver(Threads) || math.getNumThreads() != 2 * kTileM ||
      math.getFirstWarp() % 4)
    return "drive the engines tensor and threads with 8 warps from a multiple of 4";
  if (load == math || convert == math || load == convert)
    return "drive the engines tma, convert and tensor from three roles";
  return {};
}

LogicalResult fp4::checkFragmentPlan(Operation *op, const KernelPlan &plan,
                                     const hw::TargetModel &target) {
  if (plan.pair || plan.swap || plan.cluster[0])
    return misfit(op, plan.pair ? "pair" : plan.swap ? "swap" : "cluster",
                  "is left out on " + StringRef(target.name), "one");
  if (*plan.resident != 1)
    return misfit(op, "resident", "is 1", Twine(*plan.resident));
  if (plan.store == ResultStore::Tma)
    return misfit(op, "store", "is left out on " + StringRef(target.name), "tma");
  return success();
}

LogicalResult fp4::checkConvertedProduct(Operation *op, const KernelPlan &plan,
                                         const hw::TargetModel &target) {
  auto [m, n, k] = plan.tile;
  // A tile of 64 columns has the first rows of its block of scales.
  bool narrow = cast<BlockScaledMatmulOp>(op).getColumns() <= kTileNs[0];
  bool tall = m == kTallM && n <= kTallM / 2; // a thread has 128 sums at most
  if ((m != kTileM && !tall) || k != kTileK || !llvm::is_contained(kTileNs, n) ||
      (n == kTileNs[0] && !narrow))
    return misfit(op, "tile",
                  "is [256, 128, 128], [128, 128, 128], [128, 256, 128] or, for up to 64 columns, "
                  "[256, 64, 128] or [128, 64, 128]",
                  "[" + Twine(m) + ", " + Twine(n) + ", " + Twine(k) + "]");
  if (failed(checkFragmentPlan(op, plan, target)))
    return failure();
  using enum pipe::Engine;
  return checkTiling(op, plan, target, {Tma, Convert, Tensor, Threads}, warpgroupRules);
}
