//===- PreDequantizedPlans.cpp - GEMMs with a pre-dequantized lhs -----------===//
//
// Plans with a pre-dequantized lhs, on targets without fp4 tensor cores: the rhs is converted in
// registers, for 128 rows at a time, and the lhs by a kernel of its own
// (lib/Conversion/Fp4ToPipe/PreDequantize.cpp), which reads and writes it once. The GEMM converts
// half as much, and no warps convert beside those that multiply. In a small-M GEMM a tile has all
// rows, and the warps that multiply have the registers, the issue slots and the shared memory of
// warps that would convert.
//
//===----------------------------------------------------------------------===//

#include "GemmPlanner.h"
#include "RolePlans.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"

#include <limits>

using namespace mlir;
using namespace fp4;

/// Columns of the result, 64 for each of two warpgroups or twice as many, its rows, and the depth.
static constexpr int64_t kNarrow = 128, kWide = 256, kRows = 128, kDepth = 128;

/// Returns true when a tile may be wide. With dynamic columns, the kernel knows which columns of a
/// wide tile exist.
static bool mayBeWide(BlockScaledMatmulOp product) {
  return hasDynamicColumns(product) || product.getColumns() % kWide == 0;
}

/// The order of the tiles. Rows are floats of 16 bits, and columns are codes with their scales. The
/// number of columns may be unknown.
static pipe::WorkScheduleAttrInterface scheduleOf(const PlannedGemm &gemm, int64_t columns) {
  constexpr int64_t panelOfAnySize = 4;
  if (gemm.hasDynamicSizes())
    return inPanels(gemm.context(), panelOfAnySize);
  const MatmulSize &size = gemm.size;
  TileGrid grid = {int64_t(llvm::divideCeil(size.m, kRows)),
                   int64_t(llvm::divideCeil(size.n, columns)), 2.0 * double(kRows),
                   bytesOfCodes(gemm.op.getFormatOfRhs()) * double(columns * size.products)};
  return rasterOfOperands(gemm, grid);
}

/// Columns of a tile, and the time of a wave of such tiles in the unit of
/// ConvertedGemmPlans.cpp: 84 and 49 us for K = 8192 on an H200 (notebook/gemm-fp4.md).
struct PreDequantizedTile {
  int64_t columns, time;
};
static constexpr PreDequantizedTile kTiles[] = {{kWide, 10}, {kNarrow, 6}};

static double timeOf(const PreDequantizedTile &tile, const MatmulSize &size,
                     const hw::TargetModel &target) {
  int64_t tiles = llvm::divideCeil(size.m, kRows) * llvm::divideCeil(size.n, tile.columns);
  return timeOfWaves(int64_t(llvm::divideCeil(tiles, target.sms)), tile.time, size);
}

/// Returns true when registers allow the narrow tile only. A thread of a dual GEMM has the sums of
/// a wide tile, which are those of both GEMMs. Elements of 32 bits that threads exchange take as
/// many registers as sums.
static bool hasNarrowTile(BlockScaledMatmulOp product) {
  return product.isDual() || (isFused(product) && product.getElementType().isF32());
}

static PreDequantizedTile chooseTile(const PlannedGemm &gemm) {
  if (gemm.size.products > 1)
    return {kNarrow, kTiles[0].time};
  auto time = [&](const PreDequantizedTile &tile) { return timeOf(tile, gemm.size, gemm.target); };
  bool isWide = mayBeWide(gemm.op) && !hasNarrowTile(gemm.op);
  return isWide ? cheapest(kTiles, time) : kTiles[1];
}

/// The time of the conversion, which moves its bytes at the speed of a copy, and is one more
/// launch.
static double conversionTime(const MatmulSize &size) {
  constexpr double launch = 1.5, bytesPerMicrosecond = 3.5e6;
  double bytes = double(size.m) * double(size.k) * (2.0 + (size.stepK == 32 ? 1.0 : 0.5));
  return launch + bytes / bytesPerMicrosecond;
}

double fp4::preDequantizedTime(const PlannedGemm &gemm) {
  if (gemm.size.k % kDepth)
    return std::numeric_limits<double>::infinity();
  return timeOf(chooseTile(gemm), gemm.size, gemm.target) + conversionTime(gemm.size);
}

/// The tiles with a pre-dequantized lhs. Waves do not say how many rows they have, so the
/// conversion is counted with the assumed number of columns, as a part of each k tile.
std::vector<SizedTile> fp4::preDequantizedTiles(const PlannedGemm &gemm) {
  std::vector<SizedTile> tiles;
  bool isDynamic = hasDynamicDepth(gemm.op);
  if (!isDynamic && knownUnitOfDepth(gemm.op, {}) % kDepth)
    return tiles;
  for (const PreDequantizedTile &tile : kTiles) {
    if (tile.columns == kWide && (!mayBeWide(gemm.op) || hasNarrowTile(gemm.op)))
      continue;
    tiles.push_back(sizedTile({tile.columns, kRows, kDepth}, [=, &gemm](const MatmulSize &size) {
      MatmulSize converted = size;
      converted.m = size.m * size.n / kAssumedColumns;
      return timeOf(tile, size, gemm.target) + conversionTime(converted);
    }));
    tiles.back().plan.route = {.b = route::Operand::Pre,
                               .orientation = route::Orientation::Swapped};
    if (isDynamic)
      tiles.back().plan.guard.kUnit = kDepth;
  }
  return tiles;
}

/// Returns true when a pre-dequantized lhs is faster in a small-M GEMM. A k tile then takes 70 to
/// 110 ns less (predicted), and the conversion takes 1.2 to 3.4 us alone, of which PDL hides a
/// part. Programs of 16 rows took as long or longer with 14 k tiles and less with 32, and those of
/// 32 and 64 rows less with both (notebook/gemm-fp4.md).
bool fp4::isFasterPreDequantizedSmallM(const PlannedGemm &gemm) {
  constexpr int64_t smallM = 16, fewestKTiles = 14, fewestOfFew = 28;
  BlockScaledMatmulOp product = gemm.op;
  const MatmulSize &size = gemm.size;
  bool isPlain = !isFused(product) && !gemm.hasDynamicSizes() &&
                 hasPackedData(product.getFormat()) && hasPackedData(product.getFormatOfRhs()) &&
                 product.getLhsScales();
  if (!isPlain || size.k % kDepth || size.n <= kNarrow)
    return false;
  int64_t blocks = llvm::divideCeil(size.n, kNarrow) * size.splits;
  auto waves = int64_t(llvm::divideCeil(blocks, gemm.target.sms));
  int64_t fewest = size.m <= smallM ? fewestOfFew : fewestKTiles;
  return waves * (size.k / size.splits / kDepth) >= fewest;
}

KernelPlan fp4::proposePreDequantized(const PlannedGemm &gemm) {
  KernelPlan plan = planOfFamily(KernelFamily::TileGemm);
  plan.tile = {gemm.plan.tile[0] ? gemm.plan.tile[0] : chooseTile(gemm).columns, kRows, kDepth};
  plan.route = {.b = route::Operand::Pre, .orientation = route::Orientation::Swapped};
  plan.schedule = scheduleOf(gemm, plan.tile[0]);
  const RegisterShares &shares = gemm.hasDynamicSizes() ? kMoreBeside : kFewBeside;
  plan.roles = fragmentRoles(gemm.context(), /*groups=*/2,
                             plan.tile[0] == kWide || isFused(gemm.op) ? shares : RegisterShares());
  plan.ctasPerSm = 1;
  return plan;
}

LogicalResult fp4::checkPreDequantizedTiling(const PlannedGemm &gemm) {
  if (failed(checkNoCluster(gemm)) || failed(checkCtasPerSm(gemm)))
    return failure();
  using enum pipe::Engine;
  return gemm.checkTiling({Tma, Tensor, Threads}, RoleRules::ofFragments());
}

LogicalResult fp4::checkPreDequantized(const PlannedGemm &gemm) {
  auto [m, n, k] = gemm.plan.tile;
  bool isNarrow = hasNarrowTile(gemm.op);
  bool fits = n == kRows && (m == kNarrow || (m == kWide && mayBeWide(gemm.op) && !isNarrow));
  if (int64_t unit = knownUnitOfDepth(gemm.op, gemm.plan); unit % kDepth)
    return gemm.misfit(
        "route", "has the orientation normal for more than 64 rows where K is no multiple of 128",
        gemm.plan.route.str() + " and K " + (hasDynamicDepth(gemm.op) ? "a multiple of " : "= ") +
            Twine(unit));
  if (fits && k == kDepth)
    return checkPreDequantizedTiling(gemm);
  return gemm.misfitTile(
      isNarrow ? "is, with swapped operands and 128 rows, [128, 128, 128] of a dual GEMM, and of "
                 "one that derives results from elements of f32"
               : "is, with swapped operands and 128 rows, [128, 128, 128] or, for a multiple of "
                 "256 columns, [256, 128, 128]");
}
