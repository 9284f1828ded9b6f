//===- WarpGemmPlans.cpp - Block-scaled GEMMs of mma.sync --------------===//
//
// Up to eight warps multiply and one loads. The plan has the fitting tile whose waves take the
// fewest cycles. A k tile costs the largest of three times: of the tensor cores, of the reads of
// the warps from shared memory, and of its operands from the L2 cache (docs/concepts/plans.md).
//
//===----------------------------------------------------------------------===//

#include "GemmPlanner.h"
#include "RolePlans.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Plans/WarpFragment.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp4;

/// Rows and columns of a tile, and its depth: rows have 64 bytes with a depth of 128, and 128 bytes
/// with 256, or with 128 elements of 8 bits.
static constexpr std::array<int64_t, 4> kTileMs = {16, 32, 64, 128};
static constexpr std::array<int64_t, 3> kTileNs = {64, 128, 256};
static constexpr int64_t kTileK = 128, kDeepTileK = 256;
/// The most elements of a tile, over all GEMMs: with more, eight warps would have more than 64 sums
/// in a thread, and ptxas spills.
static constexpr int64_t kMostElements = 128 * 128;

/// Rows of one instruction, rows that a register has the scales of, sums of a thread, and warps.
static constexpr int64_t kWarpRows = 16, kScaleRows = 32, kMostSums = 128, kMostWarps = 8;

/// Bytes of barriers, and of the alignment of tiles.
static constexpr int64_t kOtherSharedBytes = 2048;
/// The fewest stages; with fewer no load is in flight.
static constexpr int64_t kFewestStages = 2;

std::optional<std::array<int64_t, 2>> fp4::warpFragment(int64_t m, int64_t n, int64_t warps) {
  std::optional<std::array<int64_t, 2>> best;
  for (int64_t below = 1; below <= warps; ++below) {
    if (warps % below || m % below || n % (warps / below))
      continue;
    int64_t rows = m / below, columns = n / (warps / below);
    bool exists = (rows == kWarpRows || rows % kScaleRows == 0) && columns % kScaleRows == 0;
    if (!exists || rows * columns / 32 > kMostSums)
      continue;
    if (!best || rows + columns <= (*best)[0] + (*best)[1]) // of equals, the widest
      best = {rows, columns};
  }
  return best;
}

/// Warps that multiply a tile: eight, or as many as it has smallest fragments.
static int64_t warpsOf(int64_t m, int64_t n) {
  return std::min(kMostWarps, m / kWarpRows * (n / kScaleRows));
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

/// Rates of one SM and cycle: FLOP of fp4, half as many of fp8 (ninfer#160 measured 4094.8 to
/// 4095.8 on an RTX 5090), and bytes of shared memory (CUDA guide: 32 banks).
static constexpr double kFlops = 4096, kSharedBytes = 128;
/// Bytes that the L2 cache delivers to an SM per cycle, and cycles of a tile beside its k tiles:
/// assumed, since nobody has published them.
static constexpr double kFeedBytes = 32, kTileCycles = 1500;

namespace {
/// A tile of a GEMM.
struct WarpTile {
  int64_t m, n, block, stepK, products; ///< members as in MatmulSize

  /// Bytes of a stage, whole scale tiles of 128 rows included.
  int64_t stageBytes(int64_t k) const {
    int64_t scaleRows = int64_t(llvm::alignTo(m, 128) + products * llvm::alignTo(n, 128));
    return (m + products * n) * k * 32 / stepK + scaleRows * k / block;
  }
  /// Bytes that the warps read from shared memory for a k tile.
  int64_t readBytes() const {
    int64_t warps = warpsOf(m, n);
    auto [rows, columns] = *warpFragment(m, n, warps);
    return products * warps * (rows + columns) * kTileK * 32 / stepK;
  }
};
} // namespace

static double cyclesOf(const MatmulSize &size, const WarpTile &tile,
                       const hw::TargetModel &target) {
  int64_t tiles = countTiles(size, tile.m, tile.n);
  int64_t waves = llvm::divideCeil(tiles * size.splits, target.sms);
  double multiply =
      2.0 * tile.m * tile.n * double(tile.products) * kTileK * 64 / double(tile.stepK) / kFlops;
  double read = tile.readBytes() / kSharedBytes;
  double feed = tile.stageBytes(kTileK) / kFeedBytes;
  int64_t deep = llvm::divideCeil(size.k, kTileK * size.splits);
  return waves * (deep * std::max({multiply, read, feed}) + kTileCycles);
}

/// Bytes of shared memory that `warps` exchange rows of `n` columns in.
static int64_t gatheredBytes(BlockScaledMatmulOp product, int64_t n, int64_t warps) {
  int64_t bytes = product.getElementType().getIntOrFloatBitWidth() / 8;
  return product.getQuantizeRecipe() ? kGatheredRows * gatheredColumns(n, 32 * warps) * bytes : 0;
}

/// Bytes of a tile of `warps` with the fewest stages.
static int64_t sharedBytesOf(BlockScaledMatmulOp product, const WarpTile &tile, int64_t k,
                             int64_t warps) {
  return kFewestStages * tile.stageBytes(k) + gatheredBytes(product, tile.n, warps) +
         kOtherSharedBytes;
}

/// Elements of a tile that registers have room for. Elements of 32 bits that threads exchange take
/// as many registers as sums.
static int64_t mostElements(BlockScaledMatmulOp product) {
  bool isWide = product.getQuantizeRecipe() && product.getElementType().isF32();
  return kMostElements / (product.isDual() || isWide ? 2 : 1);
}

/// Returns true when blocks of results are as wide as the tile of most elements.
static bool hasWideResults(BlockScaledMatmulOp product) {
  std::optional<RecipeAttr> recipe = product.getQuantizeRecipe();
  return recipe && numerics::hasF32Scales(recipe->getDecisions().format);
}

/// Returns true when a GEMM may have the tile; one that quantizes elements has rows for all
/// threads, and whole blocks.
static bool mayHaveTile(BlockScaledMatmulOp product, int64_t m, int64_t n) {
  return m * n <= mostElements(product) && (!product.getQuantizeRecipe() || m == kGatheredRows) &&
         (!hasWideResults(product) || n == kGatheredRows);
}

/// Returns true when a GEMM may have the tile and shared memory fits its shortest k tiles.
static bool fitsTarget(BlockScaledMatmulOp product, int64_t m, int64_t n,
                       const hw::TargetModel &target) {
  WarpTile tile = {m, n, blockSize(product.getFormat()), product.isMXF8F6F4() ? 32 : 64,
                   product.isDual() ? 2 : 1};
  return mayHaveTile(product, m, n) && sharedBytesOf(product, tile, kTileK, warpsOf(m, n)) <=
                                           int64_t(target.limits.sharedBytesPerCta);
}

/// Tiles that agree with a partial plan, the largest first.
static SmallVector<std::array<int64_t, 2>> fittingTiles(const PlannedGemm &gemm) {
  SmallVector<std::array<int64_t, 2>> tiles;
  auto [askedM, askedN, k] = gemm.plan.tile;
  for (int64_t m : llvm::reverse(kTileMs))
    for (int64_t n : llvm::reverse(kTileNs))
      if ((!askedM || askedM == m) && (!askedN || askedN == n) &&
          fitsTarget(gemm.op, m, n, gemm.target))
        tiles.push_back({m, n});
  return tiles;
}

static double cyclesOfTile(const MatmulSize &size, const std::array<int64_t, 2> &tile,
                           const hw::TargetModel &target) {
  return cyclesOf(size, {tile[0], tile[1], size.block, size.stepK, size.products}, target);
}

static std::vector<SizedTile> warpTiles(const PlannedGemm &gemm) {
  std::vector<SizedTile> tiles;
  SmallVector<std::array<int64_t, 2>> fitting = fittingTiles(gemm);
  for (const auto &tile : llvm::reverse(fitting))
    tiles.push_back(sizedTile({tile[0], tile[1], kTileK}, [=, &gemm](const MatmulSize &size) {
      return cyclesOfTile(size, tile, gemm.target);
    }));
  return tiles;
}

//===----------------------------------------------------------------------===//
// The rules
//===----------------------------------------------------------------------===//

/// Roles of a tile. With nine warps a thread has up to 168 registers, so no role releases registers
/// to another.
static pipe::RolePlanAttr rolesOf(MLIRContext *context, int64_t m, int64_t n) {
  using enum pipe::Engine;
  auto warps = int32_t(std::max<int64_t>(1, warpsOf(m, n)));
  return pipe::RolePlanAttr::get(
      context, {pipe::RoleAttr::get(context, "load", warps, warps + 1, {Tma}, 0),
                pipe::RoleAttr::get(context, "math", 0, warps, {Tensor, Threads}, 0)});
}

static KernelPlan proposeWarp(const PlannedGemm &gemm) {
  auto [m, n, k] = gemm.plan.tile;
  if (auto tiles = fittingTiles(gemm); !tiles.empty()) {
    auto best = cheapest(
        tiles, [&](const auto &tile) { return cyclesOfTile(gemm.size, tile, gemm.target); });
    m = best[0];
    n = best[1];
  } else { // an error of the check
    m = m ? m : kGatheredRows;
    n = n ? n : mostElements(gemm.op) / kGatheredRows;
  }
  KernelPlan plan = planOfFamily(KernelFamily::TileGemm);
  plan.tile = {m, n, k ? k : kTileK};
  plan.schedule = neighboursAlongM(gemm.context());
  plan.roles = rolesOf(gemm.context(), m, n);
  plan.ctasPerSm = 1;
  return plan;
}

static LogicalResult checkTile(const PlannedGemm &gemm) {
  auto [m, n, k] = gemm.plan.tile;
  BlockScaledMatmulOp product = gemm.op;
  bool isWide = product.isMXF8F6F4(), isDeep = k == kDeepTileK && !isWide;
  if (!llvm::is_contained(kTileMs, m) || !llvm::is_contained(kTileNs, n) ||
      !mayHaveTile(product, m, n) || (k != kTileK && !isDeep))
    return gemm.misfitTile("is [m, n, k] with m = " +
                           Twine(product.getQuantizeRecipe() ? "128, whose rows threads quantize"
                                                             : "16, 32, 64 or 128") +
                           ", n = " + Twine(hasWideResults(product) ? "128" : "64, 128 or 256") +
                           ", m * n up to " + Twine(mostElements(product)) + " and k = 128" +
                           Twine(isWide ? "" : " or 256"));
  WarpTile tile = {m, n, gemm.size.block, gemm.size.stepK, gemm.size.products};
  pipe::RoleAttr math = // of roles that have not been checked yet
      cast<pipe::RolePlanAttr>(gemm.plan.roles).getDriver(pipe::Engine::Tensor);
  int64_t warps = math ? math.getNumWarps() : warpsOf(m, n);
  if (sharedBytesOf(product, tile, k, warps) <= int64_t(gemm.target.limits.sharedBytesPerCta))
    return success();
  return misfitStages(gemm, gemm.target.limits.sharedBytesPerCta, tile.stageBytes(k));
}

/// Checks that warps which quantize rows are whole warpgroups, and that a thread gets all its sums
/// at a time: four warps have too many of more than 64 columns.
static LogicalResult checkGathering(const PlannedGemm &gemm, pipe::RoleAttr math) {
  int64_t n = gemm.plan.tile[1], warps = math.getNumWarps();
  bool mayBeFour = gatheredColumns(n, 4 * 32) == n;
  if (math.getFirstWarp() % 4 == 0 && (warps == kMostWarps || (warps == 4 && mayBeFour)))
    return success();
  return gemm.misfit("roles",
                     "quantize rows of " + Twine(n) + " columns with " +
                         (mayBeFour ? "4 or 8" : "8") +
                         " warps for tensor, from a multiple of 4 on",
                     Twine(warps) + " from " + Twine(math.getFirstWarp()));
}

static LogicalResult checkWarp(const PlannedGemm &gemm) {
  using enum pipe::Engine;
  if (failed(checkTile(gemm)) || failed(checkNoCluster(gemm)) || failed(checkCtasPerSm(gemm)) ||
      failed(gemm.checkTiling({Tma, Tensor, Threads}, {.areOneRole = true})))
    return failure();
  pipe::RoleAttr math = cast<pipe::RolePlanAttr>(gemm.plan.roles).getDriver(Threads);
  if (gemm.op.getQuantizeRecipe() && failed(checkGathering(gemm, math)))
    return failure();
  int64_t warps = math.getNumWarps();
  auto [m, n, k] = gemm.plan.tile;
  if (warpFragment(m, n, warps))
    return success();
  return gemm.misfit(
      "roles",
      "have a number of warps for tensor that share the tile in parts of 16 rows, or a "
      "multiple of 32, and a multiple of 32 columns, with at most 4096 elements",
      Twine(warps) + " warps for " + Twine(m) + "x" + Twine(n));
}

constexpr GemmPlanner fp4::kWarpPlanner = {route::Planner::Warp, proposeWarp, checkWarp, warpTiles};
