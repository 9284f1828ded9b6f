//===- ConvertedGemmPlans.cpp - GEMMs on tensor cores without fp4 ------===//

#include "CostModel.h"
#include "DynamicPlans.h"
#include "GemmRoutes.h"
#include "RolePlans.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"

using namespace mlir;
using namespace fp4;

/// Rows of a tile, 64 or twice 64 for each of two warpgroups, and its depth: the K of two columns
/// of scale tiles of nvfp4. Columns of a tile follow.
static constexpr int64_t kTileM = 128, kTallM = 256, kTileK = 128;
static constexpr std::array<int64_t, 3> kTileNs = {64, 128, 256};

/// Tiles, and the time of a wave of each, in units of kUnit: 101, 109 and 67 us for K = 8192 on an
/// H200 (notebook/gemm-fp4.md). The first of two that take as long is better: it converts less of
/// B, which passes through shared memory.
struct TileCost {
  int64_t m, n, time;
};
static constexpr TileCost kTiles[] = {{kTallM, 128, 12}, {kTileM, 256, 13}, {kTileM, 128, 8}};

/// Swapped tiles, with columns of the result and rows, and the time of a wave of each: 10.6, 11.1,
/// 11.4 and 13.1 us for K = 2048 (predicted by simulation).
static constexpr TileCost kFewTiles[] = {
    {kTileM, 8, 5}, {kTileM, 16, 5}, {kTileM, 32, 5}, {kTileM, 64, 6}};

/// Microseconds, and the elements of K that take as long.
static constexpr double kUnit = 8.4, kUnitDepth = 8192;

double fp4::timeOfWaves(int64_t waves, int64_t time, const MatmulSize &size) {
  return double(waves * time) * kUnit * double(size.k) / kUnitDepth;
}

static double timeOf(const TileCost &tile, const MatmulSize &size, const hw::TargetModel &target,
                     bool transposed = false) {
  int64_t tiles = transposed ? countTiles(size, tile.n, tile.m) : countTiles(size, tile.m, tile.n);
  return timeOfWaves(int64_t(llvm::divideCeil(tiles, target.sms)), tile.time, size);
}

/// Returns true when operands may be swapped. GEMMs of dynamic sizes have kernels with swapped
/// operands if they give nothing but elements.
static bool mayBeSwapped(BlockScaledMatmulOp product) {
  return !product.isGrouped() && !(hasDynamicSizes(product) && isFused(product));
}

/// Returns true when registers have room for no more than 128 rows and columns: a thread has sums
/// of both GEMMs, or elements of 32 bits beside its sums, or values that quantize a row.
static bool hasSmallTile(BlockScaledMatmulOp product) {
  return product.isDual() || product.getQuantizeRecipe() ||
         (product.getWithAmax() && product.getElementType().isF32());
}

std::vector<SizedTile> fp4::convertedTiles(BlockScaledMatmulOp product,
                                           const hw::TargetModel &target) {
  std::vector<SizedTile> tiles;
  if (hasSmallTile(product)) // the only tile that fits
    return tiles;
  for (const TileCost &tile : kTiles)
    tiles.push_back(sizedTile({tile.m, tile.n, kTileK},
                              [=](const MatmulSize &size) { return timeOf(tile, size, target); }));
  if (!mayBeSwapped(product))
    return tiles;
  for (const TileCost &tile : kFewTiles) {
    tiles.push_back(sizedTile({tile.m, tile.n, kTileK}, [=](const MatmulSize &size) {
      return timeOf(tile, size, target, /*transposed=*/true);
    }));
    tiles.back().plan.route.orientation = route::Orientation::Swapped;
    tiles.back().plan.guard.m.most = tile.n;
  }
  llvm::append_range(tiles, preDequantizedTiles(product, target));
  return tiles;
}

static TileCost chooseTile(BlockScaledMatmulOp product, const MatmulSize &size,
                           const hw::TargetModel &target) {
  if (size.n <= kTileNs[0])
    return {kTileM, kTileNs[0], 0};
  if (hasSmallTile(product)) // a dual GEMM converts and multiplies once for each of both
    return {kTileM, kTileNs[1], kTiles[2].time * size.products};
  auto time = [&](const TileCost &tile) { return timeOf(tile, size, target); };
  return *std::min_element(std::begin(kTiles), std::end(kTiles),
                           [&](const TileCost &x, const TileCost &y) { return time(x) < time(y); });
}

bool fp4::hasSmallM(BlockScaledMatmulOp product, const KernelPlan &plan) {
  int64_t rows = mostRowsOf(product, plan);
  return mayBeSwapped(product) && !ShapedType::isDynamic(rows) && rows <= kSwappedTileNs[3];
}

/// The smallest swapped tile that has all rows.
static int64_t swappedColumns(int64_t rows) {
  return *llvm::find_if(kSwappedTileNs, [&](int64_t columns) { return rows <= columns; });
}

/// Returns true when the lhs is pre-dequantized: if operands are swapped and a tile has more rows
/// than the small-M kernel that converts, or if the plan leaves the choice open and
/// pre-dequantization is faster.
static bool choosesPreDequantized(Operation *op, const KernelPlan &partial, const MatmulSize &size,
                                  const hw::TargetModel &target) {
  auto product = cast<BlockScaledMatmulOp>(op);
  if (!mayBeSwapped(product) || !mayTake(product, partial, {.b = route::Operand::Pre}, target))
    return false;
  bool hasFew = hasSmallM(product, partial);
  if (isTransposed(product, partial, target))
    return partial.tile[1] ? partial.tile[1] > kSwappedTileNs[3] : !hasFew;
  return !hasDynamicSizes(product) && !hasFew && !partial.tile[0] && !partial.roles &&
         size.n > kTileNs[0] &&
         preDequantizedTime(op, size, target) <
             timeOf(chooseTile(product, size, target), size, target);
}

/// Completes `plan` for few rows: weights are the operand in registers, and an instruction has no
/// more columns than there are rows.
static void proposeSmallM(Operation *op, const KernelPlan &partial, const MatmulSize &size,
                          const hw::TargetModel &target, KernelPlan &plan) {
  plan.tile = {kTileM, swappedColumns(size.m), kTileK};
  plan.cluster = proposeReduction(
      partial, {partial.tile[0] ? partial.tile[1] : plan.tile[1], kMostReducedRows},
      llvm::divideCeil(size.n, kTileM), /*resident=*/1, size, target);
}

/// Returns true when warps beside the GEMM do not convert the lhs of few rows. A partial plan may
/// have roles without them.
static bool preDequantizesSmallM(BlockScaledMatmulOp product, const KernelPlan &partial,
                                 const MatmulSize &size, const hw::TargetModel &target) {
  auto mayBe = [&](route::Operand b) { return mayTake(product, partial, {.b = b}, target); };
  if (!mayBe(route::Operand::Pre) || !mayBe(route::Operand::Shared))
    return mayBe(route::Operand::Pre);
  if (auto roles = dyn_cast_or_null<pipe::RolePlanAttr>(partial.roles))
    return !roles.getAuxiliary();
  return isFasterPreDequantizedSmallM(product, size, target);
}

KernelPlan fp4::proposeConvertedGemm(Operation *op, const KernelPlan &partial,
                                     const MatmulSize &size, const hw::TargetModel &target) {
  if (choosesPreDequantized(op, partial, size, target))
    return proposePreDequantized(op, partial, size, target);
  KernelPlan plan = planOfFamily(KernelFamily::TileGemm);
  auto product = cast<BlockScaledMatmulOp>(op);
  bool mayBeSmallM =
      mayTake(product, partial, {.orientation = route::Orientation::Swapped}, target);
  bool isAsked = isTransposed(product, partial, target);
  bool isSmallM = hasSmallM(product, partial) && (isAsked || (!partial.tile[0] && mayBeSmallM));
  bool isPre = isSmallM && preDequantizesSmallM(product, partial, size, target);
  plan.route = {.b = isPre ? route::Operand::Pre : route::Operand::Shared,
                .orientation =
                    isSmallM || isAsked ? route::Orientation::Swapped : route::Orientation::Normal};
  if (isSmallM) {
    proposeSmallM(op, partial, size, target, plan);
  } else {
    TileCost tile = chooseTile(product, size, target);
    plan.tile = {tile.m, tile.n, kTileK};
  }
  plan.schedule = neighboursAlongM(op->getContext());
  bool hasManyPlaces = product.isDual() && (product.isGrouped() || hasDynamicSizes(product));
  plan.roles = isPre ? fragmentRoles(op->getContext(), /*groups=*/2, RegisterShares())
                     : warpgroupRoles(op->getContext(), hasManyPlaces);
  // The next launch begins while this one ends, unless this one is a conversion before a GEMM,
  // whose CTAs would then take places unevenly (notebook/gemm-fp4.md).
  if (isSmallM)
    plan.pdl = isPre ? PdlMode::Waits : PdlMode::Both;
  plan.ctasPerSm = 1;
  return plan;
}

/// Rules of roles: the accumulators of a warpgroup never leave its registers, and operands are
/// loaded and converted while others are multiplied.
static StringRef warpgroupRules(pipe::RolePlanAttr roles) {
  using enum pipe::Engine;
  pipe::RoleAttr math = roles.getDriver(Tensor), load = roles.getDriver(Tma);
  if (math != roles.getDriver(Threads) || math.getNumThreads() != 2 * kTileM ||
      math.getFirstWarp() % 4)
    return "drive the engines tensor and threads with 8 warps from a multiple of 4";
  if (load == math)
    return "drive the engines tma and tensor from two roles";
  if (!roles.getAuxiliary())
    return "have an auxiliary role of threads, which converts";
  return {};
}

LogicalResult fp4::checkFragmentPlan(Operation *op, const KernelPlan &plan,
                                     const hw::TargetModel &target, int64_t resident,
                                     bool mayReduce) {
  if (plan.cluster[0] && !mayReduce)
    return misfit(op, "cluster", "is left out for such a GEMM on " + StringRef(target.name), "one");
  if (*plan.ctasPerSm < 1 || *plan.ctasPerSm > resident)
    return misfit(op, "ctas_per_sm", (resident == 1 ? "is " : "is at most ") + Twine(resident),
                  Twine(*plan.ctasPerSm));
  return success();
}

/// Checks that all rows are columns of one tile.
static LogicalResult checkSwappedTile(Operation *op, const KernelPlan &plan) {
  auto product = cast<BlockScaledMatmulOp>(op);
  auto [m, n, k] = plan.tile;
  int64_t rows = mostRowsOf(product, plan);
  if (!hasSmallM(product, plan))
    return misfitTile(
        op, plan,
        "is, with swapped operands, [128, 128, 128] or [256, 128, 128] for more than 64 rows and "
        "for dynamic ones");
  if (m == kTileM && k == kTileK && llvm::is_contained(kSwappedTileNs, n) && rows <= n)
    return success();
  return misfitTile(
      op, plan,
      "is, with swapped operands, [128, n, 128] with n = 8, 16, 32 or 64 and no fewer than " +
          Twine(rows) + " rows");
}

static LogicalResult checkConvertedTile(Operation *op, const KernelPlan &plan) {
  auto [m, n, k] = plan.tile;
  auto product = cast<BlockScaledMatmulOp>(op);
  if (hasSmallTile(product) && (m != kTileM || n > kTileNs[1]))
    return misfitTile(op, plan,
                      "is [128, 128, 128] or, for up to 64 columns, [128, 64, 128] of a dual GEMM, "
                      "and of one that quantizes its elements or has the amax of f32");
  if (splitsOf(product, plan) > 1)
    return misfit(op, "route", "has the orientation swapped for split-K", plan.route.str());
  // A tile of 64 columns has the first rows of its scale tile.
  bool narrow = !hasDynamicColumns(product) && product.getColumns() <= kTileNs[0];
  bool tall = m == kTallM && n <= kTallM / 2; // a thread has 128 sums at most
  if ((m == kTileM || tall) && k == kTileK && llvm::is_contained(kTileNs, n) &&
      (n != kTileNs[0] || narrow))
    return success();
  return misfitTile(
      op, plan,
      "is [256, 128, 128], [128, 128, 128], [128, 256, 128] or, for up to 64 columns, "
      "[256, 64, 128] or [128, 64, 128]");
}

LogicalResult fp4::checkConvertedGemm(Operation *op, const KernelPlan &plan,
                                      const hw::TargetModel &target) {
  auto product = cast<BlockScaledMatmulOp>(op);
  if (failed(checkDynamicSizes(product, plan, target, mayBeSwapped(product))))
    return failure();
  bool isSwapped = plan.route.orientation == route::Orientation::Swapped;
  bool isPreDequantized = plan.route.b == route::Operand::Pre;
  if (isPreDequantized && plan.tile[1] > kSwappedTileNs[3])
    return checkPreDequantized(op, plan, target);
  if (failed(isSwapped ? checkSwappedTile(op, plan) : checkConvertedTile(op, plan)))
    return failure();
  if (isSwapped && failed(checkReductionPlace(op, plan, {plan.tile[1], kMostReducedRows}, target)))
    return failure();
  if (failed(checkFragmentPlan(op, plan, target, /*resident=*/1, /*mayReduce=*/true)))
    return failure();
  using enum pipe::Engine;
  if (!isPreDequantized)
    return checkTiling(op, plan, target, {Tma, Tensor, Threads}, warpgroupRules);
  auto roles = dyn_cast<pipe::RolePlanAttr>(plan.roles);
  if (roles && roles.getAuxiliary())
    return misfit(op, "roles", "have no auxiliary role with route " + plan.route.str(), "one");
  if (int64_t unit = knownUnitOfDepth(product, plan); unit % kTileK)
    return misfit(op, "roles",
                  "have an auxiliary role, which converts, where K is no multiple of 128",
                  "none that does for K = " + Twine(unit));
  return checkTiling(op, plan, target, {Tma, Tensor, Threads}, fragmentRules);
}
