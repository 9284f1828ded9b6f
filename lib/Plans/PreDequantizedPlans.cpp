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

#include "CostModel.h"
#include "DynamicPlans.h"
#include "Families.h"
#include "RolePlans.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"

#include <limits>

using namespace mlir;
using namespace fp4;

/// Columns of the result, 64 for each of two warpgroups or twice as many, its rows, and the depth.
static constexpr int64_t kNarrow = 128, kWide = 256, kRows = 128, kDepth = 128;

static int64_t columnsOf(Operation *op) { return cast<BlockScaledMatmulOp>(op).getColumns(); }
/// Returns true when a tile may be wide. With dynamic columns, the kernel knows which columns of a
/// wide tile exist.
static bool mayBeWide(Operation *op) {
  return ShapedType::isDynamic(columnsOf(op)) || columnsOf(op) % kWide == 0;
}

/// The order of the tiles. Rows are floats of 16 bits, and columns are codes with their scales. The
/// number of columns may be unknown.
static pipe::WorkScheduleAttrInterface scheduleOf(BlockScaledMatmulOp product, int64_t columns,
                                                  const MatmulSize &size,
                                                  const hw::TargetModel &target) {
  constexpr int64_t panelOfAnySize = 4;
  if (hasDynamicSizes(product))
    return inPanels(product.getContext(), panelOfAnySize);
  TileGrid grid = {int64_t(llvm::divideCeil(size.m, kRows)),
                   int64_t(llvm::divideCeil(size.n, columns)), 2.0 * double(kRows),
                   bytesOfCodes(product.getFormatOfRhs()) * double(columns * size.products)};
  return rasterOfOperands(product.getContext(), grid, size.k, target);
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

static PreDequantizedTile chooseTile(Operation *op, const MatmulSize &size,
                                     const hw::TargetModel &target) {
  if (size.products > 1)
    return {kNarrow, kTiles[0].time};
  bool isWide = mayBeWide(op) && !hasNarrowTile(cast<BlockScaledMatmulOp>(op)) &&
                timeOf(kTiles[0], size, target) <= timeOf(kTiles[1], size, target);
  return kTiles[isWide ? 0 : 1];
}

/// The time of the conversion, which moves its bytes at the speed of a copy, and is one more
/// launch.
static double conversionTime(const MatmulSize &size) {
  constexpr double launch = 1.5, bytesPerMicrosecond = 3.5e6;
  double bytes = double(size.m) * double(size.k) * (2.0 + (size.stepK == 32 ? 1.0 : 0.5));
  return launch + bytes / bytesPerMicrosecond;
}

double fp4::preDequantizedTime(Operation *op, const MatmulSize &size,
                               const hw::TargetModel &target) {
  if (size.k % kDepth)
    return std::numeric_limits<double>::infinity();
  return timeOf(chooseTile(op, size, target), size, target) + conversionTime(size);
}

/// The tiles with a pre-dequantized lhs. Waves do not say how many rows they have, so the
/// conversion is counted with the assumed number of columns, as a part of each k tile.
std::vector<SizedTile> fp4::preDequantizedTiles(BlockScaledMatmulOp product,
                                                const hw::TargetModel &target) {
  std::vector<SizedTile> tiles;
  bool isDynamic = hasDynamicDepth(product);
  if (!isDynamic && knownUnitOfDepth(product, {}) % kDepth)
    return tiles;
  for (const PreDequantizedTile &tile : kTiles) {
    if (tile.columns == kWide && (!mayBeWide(product) || hasNarrowTile(product)))
      continue;
    tiles.push_back(sizedTile({tile.columns, kRows, kDepth}, [=](const MatmulSize &size) {
      MatmulSize converted = size;
      converted.m = size.m * size.n / kAssumedColumns;
      return timeOf(tile, size, target) + conversionTime(converted);
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
bool fp4::isFasterPreDequantizedSmallM(BlockScaledMatmulOp product, const MatmulSize &size,
                                       const hw::TargetModel &target) {
  constexpr int64_t smallM = 16, fewestKTiles = 14, fewestOfFew = 28;
  bool isPlain = product.hasOnlyElements() && !product.isDual() && !hasDynamicSizes(product) &&
                 hasPackedData(product.getFormat()) && hasPackedData(product.getFormatOfRhs()) &&
                 product.getLhsScales();
  if (!isPlain || size.k % kDepth || size.n <= kNarrow)
    return false;
  int64_t blocks = llvm::divideCeil(size.n, kNarrow) * size.splits;
  auto waves = int64_t(llvm::divideCeil(blocks, target.sms));
  int64_t fewest = size.m <= smallM ? fewestOfFew : fewestKTiles;
  return waves * (size.k / size.splits / kDepth) >= fewest;
}

KernelPlan fp4::proposePreDequantized(Operation *op, const KernelPlan &partial,
                                      const MatmulSize &size, const hw::TargetModel &target) {
  KernelPlan plan = planOfFamily(KernelFamily::TileGemm);
  plan.tile = {partial.tile[0] ? partial.tile[0] : chooseTile(op, size, target).columns, kRows,
               kDepth};
  plan.route = {.b = route::Operand::Pre, .orientation = route::Orientation::Swapped};
  auto product = cast<BlockScaledMatmulOp>(op);
  plan.schedule = scheduleOf(product, plan.tile[0], size, target);
  const RegisterShares &shares = hasDynamicSizes(product) ? kMoreBeside : kFewBeside;
  plan.roles = fragmentRoles(op->getContext(), /*groups=*/2,
                             plan.tile[0] == kWide || isFused(product) ? shares : RegisterShares());
  plan.ctasPerSm = 1;
  return plan;
}

LogicalResult fp4::checkPreDequantizedTiling(Operation *op, const KernelPlan &plan,
                                             const hw::TargetModel &target) {
  if (failed(checkFragmentPlan(op, plan, target)))
    return failure();
  using enum pipe::Engine;
  return checkTiling(op, plan, target, {Tma, Tensor, Threads}, fragmentRules);
}

LogicalResult fp4::checkPreDequantized(Operation *op, const KernelPlan &plan,
                                       const hw::TargetModel &target) {
  auto [m, n, k] = plan.tile;
  bool isNarrow = hasNarrowTile(cast<BlockScaledMatmulOp>(op));
  bool fits = n == kRows && (m == kNarrow || (m == kWide && mayBeWide(op) && !isNarrow));
  int64_t unit = knownUnitOfDepth(cast<BlockScaledMatmulOp>(op), plan);
  if (unit % kDepth)
    return misfit(
        op, "route",
        "has the orientation normal for more than 64 rows where K is no multiple of 128",
        plan.route.str() + " and K " +
            Twine(hasDynamicDepth(cast<BlockScaledMatmulOp>(op)) ? "a multiple of " : "= ") +
            Twine(unit));
  if (!fits || k != kDepth)
    return misfitTile(
        op, plan,
        isNarrow
            ? "is, with swapped operands and 128 rows, [128, 128, 128] of a dual GEMM, and of one "
              "that derives results from elements of f32"
            : "is, with swapped operands and 128 rows, [128, 128, 128] or, for a multiple of 256 "
              "columns, "
              "[256, 128, 128]");
  return checkPreDequantizedTiling(op, plan, target);
}
