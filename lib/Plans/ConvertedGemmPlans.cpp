//===- ConvertedGemmPlans.cpp - GEMMs on tensor cores without fp4 ------===//

#include "GemmPlanner.h"
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

static std::vector<SizedTile> convertedTiles(const PlannedGemm &gemm) {
  std::vector<SizedTile> tiles;
  if (hasSmallTile(gemm.op)) // the only tile that fits
    return tiles;
  auto add = [&](const TileCost &tile, bool isSwapped) {
    tiles.push_back(sizedTile({tile.m, tile.n, kTileK}, [=, &gemm](const MatmulSize &size) {
      return timeOf(tile, size, gemm.target, isSwapped);
    }));
  };
  for (const TileCost &tile : kTiles)
    add(tile, /*isSwapped=*/false);
  if (!mayBeSwapped(gemm.op))
    return tiles;
  for (const TileCost &tile : kFewTiles) {
    add(tile, /*isSwapped=*/true);
    tiles.back().plan.route.orientation = route::Orientation::Swapped;
    tiles.back().plan.guard.m.most = tile.n;
  }
  llvm::append_range(tiles, preDequantizedTiles(gemm));
  return tiles;
}

static TileCost chooseTile(const PlannedGemm &gemm) {
  if (gemm.size.n <= kTileNs[0])
    return {kTileM, kTileNs[0], 0};
  if (hasSmallTile(gemm.op)) // a dual GEMM converts and multiplies once for each of both
    return {kTileM, kTileNs[1], kTiles[2].time * gemm.size.products};
  return cheapest(kTiles,
                  [&](const TileCost &tile) { return timeOf(tile, gemm.size, gemm.target); });
}

/// Returns true when a GEMM can have its operands swapped there: one tile has all the rows of a
/// kernel.
static bool hasSmallM(const PlannedGemm &gemm) {
  return mayBeSwapped(gemm.op) && gemm.hasKnownRows() && gemm.mostRows() <= kSwappedTileNs[3];
}

/// The smallest swapped tile that has all rows.
static int64_t swappedColumns(int64_t rows) {
  return *llvm::find_if(kSwappedTileNs, [&](int64_t columns) { return rows <= columns; });
}

/// Returns true when the lhs is pre-dequantized: if operands are swapped and a tile has more rows
/// than the small-M kernel that converts, or if the plan leaves the choice open and
/// pre-dequantization is faster.
static bool choosesPreDequantized(const PlannedGemm &gemm) {
  const KernelPlan &partial = gemm.plan;
  if (!mayBeSwapped(gemm.op) || !gemm.mayTake({.b = route::Operand::Pre}))
    return false;
  bool hasFew = hasSmallM(gemm);
  if (gemm.isTransposed())
    return partial.tile[1] ? partial.tile[1] > kSwappedTileNs[3] : !hasFew;
  return !gemm.hasDynamicSizes() && !hasFew && !partial.tile[0] && !partial.roles &&
         gemm.size.n > kTileNs[0] &&
         preDequantizedTime(gemm) < timeOf(chooseTile(gemm), gemm.size, gemm.target);
}

/// Completes `plan` for few rows: weights are the operand in registers, and an instruction has no
/// more columns than there are rows.
static void proposeSmallM(const PlannedGemm &gemm, KernelPlan &plan) {
  plan.tile = {kTileM, swappedColumns(gemm.size.m), kTileK};
  int64_t rows = gemm.plan.tile[0] ? gemm.plan.tile[1] : plan.tile[1];
  plan.cluster =
      proposeReduction(gemm, {rows, kMostReducedRows}, llvm::divideCeil(gemm.size.n, kTileM));
}

/// Returns true when warps beside the GEMM do not convert the lhs of few rows. A partial plan may
/// have roles without them.
static bool preDequantizesSmallM(const PlannedGemm &gemm) {
  auto mayBe = [&](route::Operand b) { return gemm.mayTake({.b = b}); };
  if (!mayBe(route::Operand::Pre) || !mayBe(route::Operand::Shared))
    return mayBe(route::Operand::Pre);
  if (auto roles = dyn_cast_or_null<pipe::RolePlanAttr>(gemm.plan.roles))
    return !roles.getAuxiliary();
  return isFasterPreDequantizedSmallM(gemm);
}

static KernelPlan proposeConverted(const PlannedGemm &gemm) {
  if (choosesPreDequantized(gemm))
    return proposePreDequantized(gemm);
  using enum route::Orientation;
  KernelPlan plan = planOfFamily(KernelFamily::TileGemm);
  bool isAsked = gemm.isTransposed();
  bool mayBeSmallM = isAsked || (!gemm.plan.tile[0] && gemm.mayTake({.orientation = Swapped}));
  bool isSmallM = hasSmallM(gemm) && mayBeSmallM;
  bool isPre = isSmallM && preDequantizesSmallM(gemm);
  plan.route = {.b = isPre ? route::Operand::Pre : route::Operand::Shared,
                .orientation = isSmallM || isAsked ? Swapped : Normal};
  if (isSmallM) {
    proposeSmallM(gemm, plan);
  } else {
    TileCost tile = chooseTile(gemm);
    plan.tile = {tile.m, tile.n, kTileK};
  }
  plan.schedule = neighboursAlongM(gemm.context());
  bool hasManyPlaces = gemm.op.isDual() && (gemm.op.isGrouped() || gemm.hasDynamicSizes());
  plan.roles = isPre ? fragmentRoles(gemm.context(), /*groups=*/2, RegisterShares())
                     : warpgroupRoles(gemm.context(), hasManyPlaces);
  // The next launch begins while this one ends, unless this one is a conversion before a GEMM,
  // whose CTAs would then take places unevenly (notebook/gemm-fp4.md).
  if (isSmallM)
    plan.pdl = isPre ? LaunchDependents::AtEnd : LaunchDependents::BeforeWait;
  plan.ctasPerSm = 1;
  return plan;
}

/// Checks that all rows are columns of one tile.
static LogicalResult checkSwappedTile(const PlannedGemm &gemm) {
  auto [m, n, k] = gemm.plan.tile;
  int64_t rows = gemm.mostRows();
  if (!hasSmallM(gemm))
    return gemm.misfitTile("is, with swapped operands, [128, 128, 128] or [256, 128, 128] for more "
                           "than 64 rows and for dynamic ones");
  if (m == kTileM && k == kTileK && llvm::is_contained(kSwappedTileNs, n) && rows <= n)
    return success();
  return gemm.misfitTile(
      "is, with swapped operands, [128, n, 128] with n = " + spellChoice(kSwappedTileNs) +
      " and no fewer than " + Twine(rows) + " rows");
}

static LogicalResult checkConvertedTile(const PlannedGemm &gemm) {
  auto [m, n, k] = gemm.plan.tile;
  if (hasSmallTile(gemm.op) && (m != kTileM || n > kTileNs[1]))
    return gemm.misfitTile("is [128, 128, 128] or, for up to 64 columns, [128, 64, 128] of a dual "
                           "GEMM, and of one that quantizes its elements or has the amax of f32");
  if (gemm.splits() > 1)
    return gemm.misfit("route", "has the orientation swapped for split-K", gemm.plan.route.str());
  // A tile of 64 columns has the first rows of its scale tile.
  bool narrow = !hasDynamicColumns(gemm.op) && gemm.op.getColumns() <= kTileNs[0];
  bool tall = m == kTallM && n <= kTallM / 2; // a thread has 128 sums at most
  if ((m == kTileM || tall) && k == kTileK && llvm::is_contained(kTileNs, n) &&
      (n != kTileNs[0] || narrow))
    return success();
  return gemm.misfitTile("is [256, 128, 128], [128, 128, 128], [128, 256, 128] or, for up to 64 "
                         "columns, [256, 64, 128] or [128, 64, 128]");
}

/// Checks a GEMM whose lhs a kernel converts before.
static LogicalResult checkPreTiling(const PlannedGemm &gemm) {
  auto roles = dyn_cast<pipe::RolePlanAttr>(gemm.plan.roles);
  if (roles && roles.getAuxiliary())
    return gemm.misfit("roles", "have no auxiliary role with route " + gemm.plan.route.str(),
                       "one");
  if (int64_t unit = knownUnitOfDepth(gemm.op, gemm.plan); unit % kTileK)
    return gemm.misfit("roles",
                       "have an auxiliary role, which converts, where K is no multiple of 128",
                       "none that does for K = " + Twine(unit));
  using enum pipe::Engine;
  return gemm.checkTiling({Tma, Tensor, Threads}, RoleRules::ofFragments());
}

static LogicalResult checkConverted(const PlannedGemm &gemm) {
  if (failed(checkDynamicSizes(gemm, mayBeSwapped(gemm.op))))
    return failure();
  int64_t columns = gemm.plan.tile[1];
  bool isPre = gemm.plan.route.b == route::Operand::Pre;
  if (isPre && columns > kSwappedTileNs[3])
    return checkPreDequantized(gemm);
  if (failed(gemm.isSwapped() ? checkSwappedTile(gemm) : checkConvertedTile(gemm)) ||
      (gemm.isSwapped() && failed(checkReductionPlace(gemm, {columns, kMostReducedRows}))) ||
      failed(checkCtasPerSm(gemm)))
    return failure();
  if (isPre)
    return checkPreTiling(gemm);
  using enum pipe::Engine;
  return gemm.checkTiling(
      {Tma, Tensor, Threads},
      {.areOneRole = true, .warps = {8}, .converting = SmallVector<int64_t, 3>()});
}

constexpr GemmPlanner fp4::kConvertedPlanner = {route::Planner::Converted, proposeConverted,
                                                checkConverted, convertedTiles};
