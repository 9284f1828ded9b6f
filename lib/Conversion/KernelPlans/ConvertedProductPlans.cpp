//===- ConvertedProductPlans.cpp - Products on tensor cores without fp4 ---===//

#include "CostModel.h"
#include "Families.h"
#include "RolePlans.h"

using namespace mlir;
using namespace fp4;

/// Rows of a tile, 64 for each of two warpgroups, and its depth: what two columns of blocks of
/// nvfp4 scales cover. Its columns.
static constexpr int64_t kTileM = 128, kTileK = 128;
static constexpr std::array<int64_t, 3> kTileNs = {64, 128, 256};

/// What a wave of tiles of 128 columns and one of 256 take, one to the other: 85 us and 146 us for
/// K = 8192 on an H200 (docs/Performance.md).
static constexpr int64_t kTimeNarrow = 7, kTimeWide = 12;

static int64_t chooseColumns(const MatmulSize &size, const hw::TargetModel &target) {
  auto waves = [&](int64_t columns) {
    int64_t tiles = llvm::divideCeil(size.m, kTileM) * llvm::divideCeil(size.n, columns);
    return int64_t(llvm::divideCeil(tiles, target.multiprocessors));
  };
  auto [narrowest, narrow, wide] = kTileNs;
  if (size.n <= narrowest)
    return narrowest;
  return waves(wide) * kTimeWide < waves(narrow) * kTimeNarrow ? wide : narrow;
}

KernelPlan fp4::proposeConvertedProduct(Operation *op, const MatmulSize &size,
                                        const hw::TargetModel &target) {
  KernelPlan plan = planOfFamily(KernelFamily::TileProduct);
  plan.tile = {kTileM, chooseColumns(size, target), kTileK};
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

LogicalResult fp4::checkConvertedProduct(Operation *op, const KernelPlan &plan,
                                         const hw::TargetModel &target) {
  auto [m, n, k] = plan.tile;
  // A tile of 64 columns has the first rows of its block of scales.
  bool narrow = cast<BlockScaledMatmulOp>(op).getColumns() <= kTileNs[0];
  if (m != kTileM || k != kTileK || !llvm::is_contained(kTileNs, n) || (n == kTileNs[0] && !narrow))
    return misfit(op, "tile", "is [128, 128, 128], [128, 256, 128] or, for up to 64 columns, [128, 64, 128]",
                  "[" + Twine(m) + ", " + Twine(n) + ", " + Twine(k) + "]");
  if (plan.pair || plan.swap || plan.cluster[0])
    return misfit(op, plan.pair ? "pair" : plan.swap ? "swap" : "cluster",
                  "is left out on " + StringRef(target.name), "one");
  if (*plan.resident != 1)
    return misfit(op, "resident", "is 1", Twine(*plan.resident));
  if (plan.store == ResultStore::Tma)
    return misfit(op, "store", "is left out on " + StringRef(target.name), "tma");
  using enum pipe::Engine;
  return checkTiling(op, plan, target, {Tma, Convert, Tensor, Threads}, warpgroupRules);
}
