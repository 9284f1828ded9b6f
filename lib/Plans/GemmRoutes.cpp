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

bool fp4::splitsOnlySmallM(BlockScaledMatmulOp product, const hw::TargetModel &target) {
  return isPlannedAs(product, target, Kernel::Converted) &&
         !route::hasCore(target, route::Core::Tcgen05);
}

/// Checks that a GEMM of which only few rows can be split has so few that operands can be swapped.
static Status requireSplit(BlockScaledMatmulOp product, const hw::TargetModel &target) {
  if (product.getMostSplits() == 1 || !splitsOnlySmallM(product, target))
    return {};
  auto lhs = cast<RankedTensorType>(product.getLhs().getType());
  int64_t rows = lhs.isDynamicDim(0) ? product.getMostSplitRows() : lhs.getDimSize(0);
  if (rows <= kSwappedTileNs[3])
    return {};
  Status tmem = route::requireCore(target, route::Core::Tcgen05);
  return makeError(
      ErrorKind::Compile,
      "attribute 'split_k' must be left out of more than 64 rows, because " + tmem.error().message,
      "leave 'split_k' out, or give it to a case of up to 64 rows: dispatch = [#fp4.case<m = [1, "
      "64], split_k = 2 : tile_gemm>, #fp4.case<m = [65, ?] : tile_gemm>]; " +
          tmem.error().note);
}

LogicalResult fp4::requireGemmRoute(Operation *op, const KernelPlan &plan,
                                    const hw::TargetModel &target) {
  auto product = cast<BlockScaledMatmulOp>(op);
  auto found = route::requireRoute(signatureOf(product), target, plan.route);
  Status status = found ? Status() : tl::unexpected<Error>(found.error());
  if (status)
    status = requireSplit(product, target);
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

/// The signature without what routes may exclude, which the check reports.
static route::Signature withoutLimits(BlockScaledMatmulOp product) {
  route::Signature plain = signatureOf(product);
  plain.traits = 0;
  return plain;
}

bool fp4::isTransposed(BlockScaledMatmulOp product, const KernelPlan &plan,
                       const hw::TargetModel &target) {
  bool isAny = false;
  for (const route::Record *record : route::routesOf(withoutLimits(product), target)) {
    if (!plan.route.agreesWith(record->route))
      continue;
    if (record->tile == route::Tile::Result)
      return false;
    isAny = true;
  }
  return isAny;
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

static KernelPlan proposeGemm(Operation *op, const KernelPlan &partial,
                              const hw::TargetModel &target) {
  auto product = cast<BlockScaledMatmulOp>(op);
  MatmulSize size = sizeOfGemm(product, partial);
  KernelPlan plan = plannerOf(product, target).propose(op, partial, size, target);
  plan.route = routeWith(product, plan.route, partial.route, target);
  return plan;
}

//===----------------------------------------------------------------------===//
// The check
//===----------------------------------------------------------------------===//

/// Checks that the route reads all fields of a plan.
static LogicalResult checkFields(Operation *op, const KernelPlan &plan,
                                 const route::Record &record) {
  auto isRead = [&](StringRef field) { return record.reads(field); };
  SmallVector<StringRef> given = plan.fieldsGiven(), fields = plan.fieldsOfFamily();
  const StringRef *unread = llvm::find_if_not(given, isRead);
  if (unread == given.end())
    return success();
  InFlightDiagnostic diag = op->emitOpError()
                            << "must have a plan without '" << *unread << "', which route "
                            << record.route.str() << " does not read";
  diag.attachNote() << "fields that the route reads: "
                    << llvm::join(llvm::make_filter_range(fields, isRead), ", ");
  return diag;
}

static LogicalResult checkGemm(Operation *op, const KernelPlan &plan,
                               const hw::TargetModel &target) {
  auto product = cast<BlockScaledMatmulOp>(op);
  auto record = route::requireRoute(signatureOf(product), target, plan.route);
  if (record && failed(checkFields(op, plan, **record)))
    return failure();
  return failure(failed(plannerOf(product, target).check(op, plan, target)) ||
                 failed(requireGemmRoute(op, plan, target)));
}

const route::Record &fp4::recordOf(BlockScaledMatmulOp product, const KernelPlan &plan,
                                   const hw::TargetModel &target) {
  return **route::requireRoute(signatureOf(product), target, plan.route);
}

constexpr FamilyRules fp4::kGemmRules = {requireGemmRoute, proposeGemm, checkGemm};
