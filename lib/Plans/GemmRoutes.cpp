//===- GemmRoutes.cpp - The rules of GEMMs, by their routes ---------------===//
//
// The table of routes says how a GEMM may reach the core of a target, and which kernel's planner
// chooses among those ways. Each planner has a proposal, a check and the tiles of dynamic sizes.
//
//===----------------------------------------------------------------------===//

#include "GemmRoutes.h"

#include "CostModel.h"
#include "WarpGemmPlans.h"

#include "fp4/Dialect/Fp4/IR/Signature.h"
#include "fp4/Numerics/Formats.h"

using namespace mlir;
using namespace fp4;
using route::Kernel;
using route::Route;

//===----------------------------------------------------------------------===//
// The planners
//===----------------------------------------------------------------------===//

namespace {
struct Planner {
  Kernel kernel;
  decltype(&proposeBlockScaled) propose;
  decltype(&checkBlockScaled) check;
  std::vector<SizedTile> (*tiles)(BlockScaledMatmulOp product, const MatmulSize &size,
                                  const hw::TargetModel &target);
};
} // namespace

/// Tiles whose costs depend on no size that is known before.
template <auto tilesOf>
static std::vector<SizedTile> ofAnySize(BlockScaledMatmulOp product, const MatmulSize &,
                                        const hw::TargetModel &target) {
  return tilesOf(product, target);
}

static constexpr Planner kPlanners[] = {
    {Kernel::BlockScaled, proposeBlockScaled, checkBlockScaled, gemmTiles},
    {Kernel::PromotedTmem, proposeLaneGemm, checkLaneGemm, ofAnySize<laneTiles>},
    {Kernel::WeightTmem, proposeWeightLanes, checkWeightLanes, ofAnySize<weightLaneTiles>},
    {Kernel::Converted, proposeConvertedGemm, checkConvertedGemm, ofAnySize<convertedTiles>},
    {Kernel::Weight, proposeWeightGemm, checkWeightGemm, ofAnySize<weightTiles>},
    {Kernel::Promoted, proposePromotedGemm, checkPromotedGemm, ofAnySize<promotedTiles>},
    {Kernel::Warp, proposeWarpGemm, checkWarpGemm, ofAnySize<warpTiles>}};

/// The planner of `product`, which the target multiplies.
static const Planner &plannerOf(BlockScaledMatmulOp product, const hw::TargetModel &target) {
  Kernel kernel = (*route::requireRoute(signatureOf(product), target))->planner;
  return *llvm::find_if(kPlanners, [&](const Planner &other) { return other.kernel == kernel; });
}

std::vector<SizedTile> fp4::tilesOfGemm(BlockScaledMatmulOp product, const MatmulSize &size,
                                        const hw::TargetModel &target) {
  return plannerOf(product, target).tiles(product, size, target);
}

bool fp4::isPlannedAs(Operation *op, const hw::TargetModel &target, Kernel kernel) {
  const route::Record *record =
      route::findRoute(signatureOf(cast<BlockScaledMatmulOp>(op)), target);
  return record && record->planner == kernel;
}

//===----------------------------------------------------------------------===//
// Requirements
//===----------------------------------------------------------------------===//

/// Checks K of elements of 6 bits: with tensor memory, a kernel packs them before, and TMA loads
/// 128 of them at a time.
static Status requireWholeRuns(BlockScaledMatmulOp product, const hw::TargetModel &target) {
  int64_t depth = cast<RankedTensorType>(product.getLhs().getType()).getDimSize(1);
  bool isPacked = route::pairOf(signatureOf(product)) == route::Pair::Mx6 &&
                  isOn(product, target, route::Core::Tcgen05);
  // The program checks a dynamic K.
  if (!isPacked || ShapedType::isDynamic(depth) || depth % pipe::kPaddedRun == 0)
    return {};
  return makeError(ErrorKind::Compile,
                   "target '" + std::string(target.name) + "' expects K a multiple of " +
                       std::to_string(pipe::kPaddedRun) + " for elements of 6 bits, but got " +
                       std::to_string(depth),
                   "pad the contraction axis of both operands with zeros");
}

/// Returns true when all GEMMs with split-K have so few rows that operands can be swapped.
static bool splitsSmallM(BlockScaledMatmulOp product) {
  auto lhs = cast<RankedTensorType>(product.getLhs().getType());
  uint64_t rows = lhs.isDynamicDim(0) ? product.getSplitRows().value_or(UINT64_MAX)
                                      : uint64_t(lhs.getDimSize(0));
  return rows <= uint64_t(kSwappedTileNs[3]);
}

/// Checks split-K and stream-K of scaled operands whose sums are in registers.
static Status requireSplit(BlockScaledMatmulOp product, Kernel planner,
                           const hw::TargetModel &target) {
  bool areWarps = planner == Kernel::Warp && !product.hasUnitScales();
  if (planner != Kernel::Converted && !areWarps)
    return {};
  bool maySplit = areWarps || splitsSmallM(product);
  bool isSplit = product.getSplitK().value_or(1) > 1 && !maySplit;
  return product.getStreamK() || isSplit ? requireRanges(product, target) : Status();
}

LogicalResult fp4::requireGemmRoute(Operation *op, const KernelPlan &plan,
                                    const hw::TargetModel &target) {
  auto product = cast<BlockScaledMatmulOp>(op);
  auto found = route::requireRoute(signatureOf(product), target, plan.route);
  Status status = found ? Status() : tl::unexpected<Error>(found.error());
  if (status)
    status = requireSplit(product, (*found)->planner, target);
  if (status)
    status = requireWholeRuns(product, target);
  if (status)
    return success();
  InFlightDiagnostic diag = op->emitOpError(status.error().message);
  diag.attachNote() << status.error().note;
  return diag;
}

//===----------------------------------------------------------------------===//
// The proposal
//===----------------------------------------------------------------------===//

bool fp4::mayTake(BlockScaledMatmulOp product, const KernelPlan &partial, const Route &axes,
                  const hw::TargetModel &target) {
  return axes.agreesWith(partial.route) &&
         route::findRoute(signatureOf(product), target, partial.route.orElse(axes));
}

/// Returns true when every route that `partial` leaves has tiles of the transposed result.
static bool mustTranspose(BlockScaledMatmulOp product, const KernelPlan &partial,
                          const hw::TargetModel &target) {
  auto isOther = [&](const route::Record *record) {
    return partial.route.agreesWith(record->route) && record->tile == route::Tile::Result;
  };
  return llvm::none_of(route::routesOf(signatureOf(product), target), isOther);
}

/// The signature without what routes may exclude, which the check reports.
static route::Signature withoutLimits(BlockScaledMatmulOp product) {
  route::Signature plain = signatureOf(product);
  plain.traits = 0;
  return plain;
}

/// The route with the axes that a planner has chosen. A plan that asks for something else gets the
/// axes that it asks for, and an error of the check.
static Route routeWith(BlockScaledMatmulOp product, const Route &chosen, const Route &asked,
                       const hw::TargetModel &target) {
  route::Signature plain = withoutLimits(product);
  const route::Record *record = route::findRoute(plain, target, asked.orElse(chosen));
  return record ? record->route
                : asked.orElse(chosen).orElse(route::findRoute(plain, target)->route);
}

static KernelPlan proposeGemm(Operation *op, const KernelPlan &given,
                              const hw::TargetModel &target) {
  auto product = cast<BlockScaledMatmulOp>(op);
  KernelPlan partial = given;
  partial.swap |= mustTranspose(product, partial, target);
  MatmulSize size = sizeOfGemm(product, partial);
  KernelPlan plan = plannerOf(product, target).propose(op, partial, size, target);
  plan.route = routeWith(product, plan.route, given.route, target);
  return plan;
}

//===----------------------------------------------------------------------===//
// The check
//===----------------------------------------------------------------------===//

/// Checks that the tile of a plan is of the matrix that its route says, for pairs with both kinds
/// of routes. Planners of other pairs say why they have no swapped tiles.
static LogicalResult checkTileOfRoute(Operation *op, const KernelPlan &plan,
                                      const hw::TargetModel &target) {
  route::Signature plain = withoutLimits(cast<BlockScaledMatmulOp>(op));
  auto isTransposed = [](const route::Record *record) {
    return record->tile == route::Tile::Transpose;
  };
  const route::Record *record = route::findRoute(plain, target, plan.route);
  if (!record || plan.swap == isTransposed(record) ||
      llvm::none_of(route::routesOf(plain, target), isTransposed))
    return success();
  return misfit(op, "swap",
                (isTransposed(record) ? "is there with route " : "is left out with route ") +
                    plan.route.str(),
                isTransposed(record) ? "none" : "it");
}

/// Checks a GEMM: fields that some kernels have, then those of its planner.
static LogicalResult checkGemm(Operation *op, const KernelPlan &plan,
                               const hw::TargetModel &target) {
  auto product = cast<BlockScaledMatmulOp>(op);
  if (failed(checkTileOfRoute(op, plan, target)) || failed(checkFallback(op, plan, target)))
    return failure();
  if (plan.kSlices.value_or(1) > 1 && !mayHaveRanges(op, target))
    return misfit(op, "k_slices",
                  "is left out but for prepacked weights beside bf16 and f16 on targets without "
                  "tcgen05",
                  Twine(*plan.kSlices));
  if (failed(checkEpilogueWarps(op, plan, target)) || failed(checkMmaWarps(op, plan, target)) ||
      failed(checkAccumulators(op, plan, target)))
    return failure();
  if (plan.reduction == ReductionPlace::Cluster && !mayReduceTmem(op, target))
    return misfit(op, "reduction",
                  "is left out but for GEMMs on targets with tcgen05 whose scales are not f32",
                  "cluster");
  return failure(failed(plannerOf(product, target).check(op, plan, target)) ||
                 failed(requireGemmRoute(op, plan, target)));
}

const route::Record &fp4::recordOf(BlockScaledMatmulOp product, const KernelPlan &plan,
                                   const hw::TargetModel &target) {
  return **route::requireRoute(signatureOf(product), target, plan.route);
}

constexpr FamilyRules fp4::kGemmRules = {requireGemmRoute, proposeGemm, checkGemm};
