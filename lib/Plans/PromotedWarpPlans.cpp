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
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp4;

/// Rows, columns and depth of a tile. A thread has a sum of the accumulator and one of the k tile
/// for each column of two rows: four warps have registers for 128 columns, and eight for 64, since
/// three of nine warps share a scheduler.
static constexpr std::array<int64_t, 2> kTileMs = {64, 128};
static constexpr std::array<int64_t, 3> kTileNs = {32, 64, 128};
static constexpr int64_t kTileK = 128, kRowsOfWarp = 16, kMostElements = 64 * 128;

/// Rates of one SM and cycle: multiply-adds of fp8 and bytes of shared memory, as of tiles with
/// scales (WarpGemmPlans.cpp). Bytes of the L2 cache, cycles of a tile beside its k tiles, and
/// those of a k tile in which threads take scales and promote, are assumed.
static constexpr double kMultiplyAdds = 1024, kSharedBytes = 128, kFeedBytes = 32,
                        kTileCycles = 1500, kPromoteCycles = 200;
/// Bytes of barriers and of alignment, of a row of scales of A in a stage, and of those of B.
static constexpr int64_t kOtherBytes = 2048, kScaleBytes = 16;

static double cyclesOf(const MatmulSize &size, int64_t m, int64_t n,
                       const hw::TargetModel &target) {
  int64_t waves = llvm::divideCeil(countTiles(size, m, n) * size.splits, target.sms);
  int64_t deep = llvm::divideCeil(size.k, kTileK * size.splits);
  double multiply = double(m * n * kTileK) / kMultiplyAdds,
         read = double(m / kRowsOfWarp * (kRowsOfWarp + n) * kTileK) / kSharedBytes,
         feed = double((m + n) * kTileK) / kFeedBytes;
  return double(waves) *
         (double(deep) * (std::max({multiply, read, feed}) + kPromoteCycles) + kTileCycles);
}

static bool mayHaveTile(int64_t m, int64_t n) { return m * n <= kMostElements; }

/// Tiles that agree with a partial plan: of equals, those of more warps come first.
static SmallVector<std::array<int64_t, 2>> fittingTiles(const PlannedGemm &gemm) {
  SmallVector<std::array<int64_t, 2>> tiles;
  auto [askedM, askedN, k] = gemm.plan.tile;
  for (int64_t m : llvm::reverse(kTileMs))
    for (int64_t n : llvm::reverse(kTileNs))
      if ((!askedM || askedM == m) && (!askedN || askedN == n) && mayHaveTile(m, n))
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

static pipe::RolePlanAttr rolesOf(MLIRContext *context, int64_t m) {
  using enum pipe::Engine;
  auto warps = int32_t(m / kRowsOfWarp);
  return pipe::RolePlanAttr::get(
      context, {pipe::RoleAttr::get(context, "load", warps, warps + 1, {Tma}, 0),
                pipe::RoleAttr::get(context, "math", 0, warps, {Tensor, Threads}, 0)});
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
  plan.roles = rolesOf(gemm.context(), best[0]);
  plan.ctasPerSm = 1;
  return plan;
}

static LogicalResult checkPromotedWarp(const PlannedGemm &gemm) {
  constexpr int64_t fewestStages = 2;
  auto [m, n, k] = gemm.plan.tile;
  if (!llvm::is_contained(kTileMs, m) || !llvm::is_contained(kTileNs, n) || !mayHaveTile(m, n) ||
      k != kTileK)
    return gemm.misfitTile(
        "is [64, n, 128] with n = 32, 64 or 128, or [128, n, 128] with n = 32 or 64");
  int64_t stage = (m + n) * k + (m + 1) * kScaleBytes;
  if (fewestStages * stage + kOtherBytes > int64_t(gemm.target.limits.sharedBytesPerCta))
    return misfitStages(gemm, gemm.target.limits.sharedBytesPerCta, stage);
  if (failed(checkNoCluster(gemm)) || failed(checkCtasPerSm(gemm)))
    return failure();
  using enum pipe::Engine;
  return gemm.checkTiling({Tma, Tensor, Threads},
                          {.areOneRole = true, .warps = {int64_t(m / kRowsOfWarp)}});
}

constexpr GemmPlanner fp4::kPromotedWarpPlanner = {
    route::Planner::PromotedWarp, proposePromotedWarp, checkPromotedWarp, promotedWarpTiles};
