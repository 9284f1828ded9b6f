//===- GemmRoutes.cpp - The rules of GEMMs, by their routes ---------------===//

#include "GemmPlanner.h"

#include "fp4/Dialect/Fp4/IR/Signature.h"
#include "fp4/Numerics/Formats.h"

using namespace mlir;
using namespace fp4;
using route::Planner;
using route::Route;

//===----------------------------------------------------------------------===//
// The planners
//===----------------------------------------------------------------------===//

const GemmPlanner &fp4::plannerOf(BlockScaledMatmulOp product, const hw::TargetModel &target) {
  static constexpr const GemmPlanner *planners[] = {
      &kBlockScaledPlanner, &kPromotedTmemPlanner, &kWeightTmemPlanner, &kConvertedPlanner,
      &kWeightPlanner,      &kPromotedPlanner,     &kWarpPlanner,       &kPromotedWarpPlanner};
  Planner name = (*route::requireRoute(signatureOf(product), target))->planner;
  return **llvm::find_if(planners, [&](const GemmPlanner *other) { return other->name == name; });
}

bool fp4::isPlannedAs(Operation *op, const hw::TargetModel &target, Planner planner) {
  const route::Record *record =
      route::findRoute(signatureOf(cast<BlockScaledMatmulOp>(op)), target);
  return record && record->planner == planner;
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

bool fp4::maySplit(BlockScaledMatmulOp product, int64_t rows, const hw::TargetModel &target) {
  return rows <= kSwappedTileNs[3] || route::hasCore(target, route::Core::Tcgen05) ||
         !isPlannedAs(product, target, Planner::Converted);
}

/// Checks that a grouped GEMM whose K is cut has a route of which a CTA may have all k slices.
static Status requireSlices(BlockScaledMatmulOp product, const hw::TargetModel &target) {
  auto readsSlices = [](const route::Record *record) { return record->reads("k_slices"); };
  if (product.getMostSplits() == 1 ||
      llvm::any_of(route::routesOf(signatureOf(product), target), readsSlices))
    return {};
  return makeError(ErrorKind::Compile,
                   "attribute 'split_k' must be left out of these groups on target '" +
                       std::string(target.name) + "'",
                   "leave it out; K is cut beside groups where prepacked weights have routes that "
                   "read 'k_slices'");
}

/// Checks that a GEMM whose K is cut has no more rows than it may have.
static Status requireSplit(BlockScaledMatmulOp product, const hw::TargetModel &target) {
  if (product.isGrouped())
    return requireSlices(product, target);
  auto lhs = cast<RankedTensorType>(product.getLhs().getType());
  int64_t rows = lhs.isDynamicDim(0) ? product.getMostSplitRows() : lhs.getDimSize(0);
  if (product.getMostSplits() == 1 || maySplit(product, rows, target))
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
  return report(op, status.error());
}

//===----------------------------------------------------------------------===//
// The proposal
//===----------------------------------------------------------------------===//

bool PlannedGemm::mayTake(const Route &axes) const {
  return axes.agreesWith(plan.route) &&
         route::findRoute(signatureOf(op), target, plan.route.orElse(axes));
}

/// The signature without what routes may exclude, which the check reports.
static route::Signature withoutLimits(BlockScaledMatmulOp product) {
  route::Signature plain = signatureOf(product);
  plain.traits = 0;
  return plain;
}

bool PlannedGemm::isTransposed() const {
  bool isAny = false;
  for (const route::Record *record : route::routesOf(withoutLimits(op), target)) {
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
  KernelPlan plan = plannerOf(product, target).propose({product, partial, target});
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
  return withNote(op->emitOpError() << "must have a plan without '" << *unread << "', which route "
                                    << record.route.str() << " does not read",
                  "fields that the route reads: " +
                      llvm::join(llvm::make_filter_range(fields, isRead), ", "));
}

bool fp4::hasDynamicSizes(BlockScaledMatmulOp product) {
  return hasDynamicColumns(product) || hasDynamicDepth(product);
}

LogicalResult fp4::checkDynamicSizes(const PlannedGemm &gemm, bool mayTranspose) {
  if (!gemm.hasDynamicSizes())
    return success();
  if (gemm.isTransposed() && !mayTranspose)
    return gemm.misfit("route", "has the orientation normal for dynamic N and K",
                       gemm.plan.route.str());
  if (gemm.plan.pair && gemm.plan.tile[0] == kGemmTileM)
    return gemm.misfit("pair", "has tiles of 256 rows for dynamic N and K", "128");
  return success();
}

LogicalResult fp4::checkNoCluster(const PlannedGemm &gemm) {
  if (!gemm.plan.cluster[0])
    return success();
  return gemm.misfit("cluster", "is left out for such a GEMM on " + StringRef(gemm.target.name),
                     "one");
}

LogicalResult fp4::checkCtasPerSm(const PlannedGemm &gemm, int64_t resident) {
  int64_t ctas = *gemm.plan.ctasPerSm;
  if (ctas >= 1 && ctas <= resident)
    return success();
  return gemm.misfit("ctas_per_sm", (resident == 1 ? "is " : "is at most ") + Twine(resident),
                     Twine(ctas));
}

LogicalResult fp4::misfitStages(const PlannedGemm &gemm, int64_t room, int64_t stageBytes) {
  return gemm.misfit("tile",
                     "has two stages in the " + Twine(room) +
                         " bytes of shared memory that a CTA of " + StringRef(gemm.target.name) +
                         " has",
                     spell(gemm.plan.tile) + " with stages of " + Twine(stageBytes) + " bytes");
}

static LogicalResult checkGemm(Operation *op, const KernelPlan &plan,
                               const hw::TargetModel &target) {
  auto product = cast<BlockScaledMatmulOp>(op);
  auto record = route::requireRoute(signatureOf(product), target, plan.route);
  if (record && failed(checkFields(op, plan, **record)))
    return failure();
  return failure(failed(plannerOf(product, target).check({product, plan, target})) ||
                 failed(requireGemmRoute(op, plan, target)));
}

const route::Record &fp4::recordOf(BlockScaledMatmulOp product, const KernelPlan &plan,
                                   const hw::TargetModel &target) {
  return **route::requireRoute(signatureOf(product), target, plan.route);
}

constexpr FamilyRules fp4::kGemmRules = {KernelFamily::TileGemm, requireGemmRoute, proposeGemm,
                                         checkGemm};
