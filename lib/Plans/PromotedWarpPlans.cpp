//===- PromotedWarpPlans.cpp - FP8 with f32 scales by mma.sync ------------===//
//
// A warp has 16 rows of a tile and all of its columns, in an accumulator and in the sums of one
// scale block of K, which threads promote. The plan has the fitting tile whose waves take the
// fewest cycles. A k tile costs the largest of three times: of the tensor cores, of the reads of
// the warps from shared memory, and of its operands from the L2 cache.
//
//===----------------------------------------------------------------------===//

#include "GemmPlanner.h"
#include "RolePlans.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Plans/WarpFragment.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp4;

/// Rows, columns and depth of a tile. A thread has a sum of the accumulator and one of the k tile
/// for each column of two rows: four warps have registers for 128 columns, and eight for 64, since
/// three of nine warps share a scheduler. A dual GEMM has the accumulators of both, and sums of one
/// at a time. Eight warps with these, or that quantize, take registers of a warpgroup that loads.
static constexpr std::array<int64_t, 2> kTileMs = {64, 128};
static constexpr std::array<int64_t, 3> kTileNs = {32, 64, 128};
static constexpr int64_t kTileK = 128, kRowsOfWarp = 16, kMostElements = 64 * 128,
                         kMostDualColumns = 64;

/// Rates of one SM and cycle: multiply-adds of fp8 and bytes of shared memory, as of tiles with
/// scales (WarpGemmPlans.cpp). Bytes of the L2 cache, cycles of a tile beside its k tiles, and
/// those of a k tile in which threads take scales and promote, are assumed.
static constexpr double kMultiplyAdds = 1024, kSharedBytes = 128, kFeedBytes = 32,
                        kTileCycles = 1500, kPromoteCycles = 200;
/// Bytes of barriers and of alignment, of a row of scales of A in a stage, and of those of B; and
/// of the elements that threads which quantize exchange at a time.
static constexpr int64_t kOtherBytes = 2048, kScaleBytes = 16, kGatheredBytes = 16384;

static double cyclesOf(const MatmulSize &size, int64_t m, int64_t n,
                       const hw::TargetModel &target) {
  int64_t waves = llvm::divideCeil(countTiles(size, m, n) * size.splits, target.sms);
  int64_t deep = llvm::divideCeil(size.k, kTileK * size.splits), width = n * size.products;
  double multiply = double(m * width * kTileK) / kMultiplyAdds,
         read = double(m / kRowsOfWarp * (kRowsOfWarp + width) * kTileK) / kSharedBytes,
         feed = double((m + width) * kTileK) / kFeedBytes,
         promote = kPromoteCycles * double(size.products);
  return double(waves) *
         (double(deep) * (std::max({multiply, read, feed}) + promote) + kTileCycles);
}

/// Columns of tiles whose rows threads quantize: whole segments of the threads of two warpgroups,
/// and whole blocks.
static int64_t quantizedColumns(RecipeAttr recipe) {
  return std::max<int64_t>(64, numerics::blockSizeOf(recipe.getDecisions().format));
}

static bool mayHaveTile(BlockScaledMatmulOp product, int64_t m, int64_t n) {
  std::optional<RecipeAttr> recipe = product.getQuantizeRecipe();
  if (recipe)
    return m == kGatheredRows && n == quantizedColumns(*recipe);
  return m * n <= kMostElements && (!product.isDual() || n <= kMostDualColumns);
}

/// Bytes of a stage.
static int64_t stageBytes(const MatmulSize &size, int64_t m, int64_t n) {
  return (m + size.products * n) * kTileK + (m + size.products) * kScaleBytes;
}

/// Tiles that agree with a partial plan: of equals, those of more warps come first.
static SmallVector<std::array<int64_t, 2>> fittingTiles(const PlannedGemm &gemm) {
  SmallVector<std::array<int64_t, 2>> tiles;
  auto [askedM, askedN, k] = gemm.plan.tile;
  for (int64_t m : llvm::reverse(kTileMs))
    for (int64_t n : llvm::reverse(kTileNs))
      if ((!askedM || askedM == m) && (!askedN || askedN == n) && mayHaveTile(gemm.op, m, n))
        tiles.push_back({m, n});
  return tiles;
}

static std::vector<SizedTile> promotedWarpTiles(const PlannedGemm &gemm) {
  std::vector<SizedTile> tiles;
  for (auto [m, n] : fittingTiles(gemm))
    tiles.push_back(sizedTile({m, n, kTileK}, [m = m, n = n, &gemm](const MatmulSize &size) {
      return cyclesOf(size, m, n, gemm.target);
    }));
  return tiles;
}

/// The roles of a tile of `m` rows. Loads of sizes that the program knows, of no groups, take the
/// fewest registers.
static pipe::RolePlanAttr rolesOf(const PlannedGemm &gemm, int64_t m) {
  using enum pipe::Engine;
  BlockScaledMatmulOp product = gemm.op;
  MLIRContext *context = gemm.context();
  auto warps = int32_t(m / kRowsOfWarp);
  auto roles = pipe::RolePlanAttr::get(
      context, {pipe::RoleAttr::get(context, "load", warps, warps + 1, {Tma}, 0),
                pipe::RoleAttr::get(context, "math", 0, warps, {Tensor, Threads}, 0)});
  bool needsMore = product.isDual() || product.getQuantizeRecipe();
  bool isKnown = product.getLhs().getType().hasStaticShape() && !gemm.hasDynamicSizes() &&
                 !product.isGrouped();
  return needsMore ? withRegisters(roles, isKnown ? kFewBeside : kMoreBeside) : roles;
}

static KernelPlan proposePromotedWarp(const PlannedGemm &gemm) {
  KernelPlan plan = planOfFamily(KernelFamily::TileGemm);
  std::array<int64_t, 2> best = {kTileMs[0], kTileNs[1]}; // or an error of the check
  if (auto tiles = fittingTiles(gemm); !tiles.empty())
    best = cheapest(tiles, [&](const auto &tile) {
      return cyclesOf(gemm.size, tile[0], tile[1], gemm.target);
    });
  plan.tile = {best[0], best[1], kTileK};
  plan.schedule = neighboursAlongM(gemm.context());
  plan.roles = rolesOf(gemm, best[0]);
  plan.ctasPerSm = 1;
  return plan;
}

/// The tiles that a GEMM may have, in the words of an error.
static std::string tilesInWords(BlockScaledMatmulOp product) {
  if (std::optional<RecipeAttr> recipe = product.getQuantizeRecipe())
    return "is [128, " + std::to_string(quantizedColumns(*recipe)) +
           ", 128], whose rows threads quantize";
  if (product.isDual())
    return "is [m, n, 128] with m = 64 or 128 and n = 32 or 64 for a dual GEMM";
  return "is [64, n, 128] with n = 32, 64 or 128, or [128, n, 128] with n = 32 or 64";
}

static LogicalResult checkPromotedWarp(const PlannedGemm &gemm) {
  constexpr int64_t fewestStages = 2;
  auto [m, n, k] = gemm.plan.tile;
  if (!llvm::is_contained(kTileMs, m) || !llvm::is_contained(kTileNs, n) ||
      !mayHaveTile(gemm.op, m, n) || k != kTileK)
    return gemm.misfitTile(tilesInWords(gemm.op));
  int64_t stage = stageBytes(gemm.size, m, n);
  int64_t others = kOtherBytes + (gemm.op.getQuantizeRecipe() ? kGatheredBytes : 0);
  if (fewestStages * stage + others > int64_t(gemm.target.limits.sharedBytesPerCta))
    return misfitStages(gemm, gemm.target.limits.sharedBytesPerCta, stage);
  if (failed(checkNoCluster(gemm)) || failed(checkCtasPerSm(gemm)))
    return failure();
  using enum pipe::Engine;
  return gemm.checkTiling({Tma, Tensor, Threads},
                          {.areOneRole = true, .warps = {int64_t(m / kRowsOfWarp)}});
}

constexpr GemmPlanner fp4::kPromotedWarpPlanner = {
    route::Planner::PromotedWarp, proposePromotedWarp, checkPromotedWarp, promotedWarpTiles};
