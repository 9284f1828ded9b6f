//===- DispatchPlans.cpp - Plans of one GEMM by its sizes -----------------===//
//
// No plan is good for all sizes if some are dynamic. `dispatch` has one for each small range of
// rows, or plans whose waves host code compares (SizePlans.cpp), and host code chooses when it
// knows the sizes. Each plan is one more kernel, so there are few: for the numbers of rows at which
// the tile of a family changes much.
//
//===----------------------------------------------------------------------===//

#include "DispatchPlans.h"

#include "WeightTiles.h"

using namespace mlir;
using namespace fp4;

static bool hasDynamicRows(BlockScaledMatmulOp op) {
  return cast<RankedTensorType>(op.getLhs().getType()).isDynamicDim(0);
}

int64_t fp4::mostRowsOf(BlockScaledMatmulOp op, const KernelPlan &plan) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  return hasDynamicRows(op) ? plan.guard.m.most.value_or(ShapedType::kDynamic) : lhs.getDimSize(0);
}

int64_t fp4::splitsOf(BlockScaledMatmulOp op, const KernelPlan &plan) {
  int64_t rows = mostRowsOf(op, plan);
  return op.splitsOfRows(ShapedType::isDynamic(rows) ? INT64_MAX : rows);
}

int64_t fp4::knownUnitOfDepth(BlockScaledMatmulOp op, const KernelPlan &plan) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  return hasDynamicDepth(op) ? plan.guard.kUnit.value_or(1) : lhs.getDimSize(1);
}

bool fp4::mayHaveRowPlans(BlockScaledMatmulOp op) { return hasDynamicRows(op) && !op.getGroups(); }

//===----------------------------------------------------------------------===//
// Lists of plans
//===----------------------------------------------------------------------===//

std::vector<KernelPlan> fp4::plansOn(BlockScaledMatmulOp op) {
  std::vector<KernelPlan> plans;
  for (CaseAttr one : op.getCases())
    plans.push_back(one.getPlan());
  if (auto plan = op->getAttrOfType<PlanAttr>(Fp4Dialect::kPlanAttr))
    plans.push_back(plan.getPlan());
  return plans;
}

void fp4::cutAfter(std::vector<KernelPlan> &plans, int64_t rows) {
  auto holds = [&](const KernelPlan &plan) { return plan.guard.m.has(rows); };
  auto place = llvm::find_if(plans, holds);
  if (rows < 1 || place == plans.end() || place->guard.m.most == rows)
    return;
  KernelPlan after = *place;
  after.guard.m.least = rows + 1;
  place->guard.m.most = rows;
  plans.insert(std::next(place), after);
}

void fp4::setPlans(BlockScaledMatmulOp op, ArrayRef<KernelPlan> plans, ArrayRef<int64_t> factors) {
  bool isCut = llvm::any_of(factors, [](int64_t factor) { return factor > 1; });
  if (plans.size() == 1 && plans.front().guard.isAll() && !isCut) {
    op.removeDispatchAttr();
    op->setAttr(Fp4Dialect::kPlanAttr, PlanAttr::get(op.getContext(), plans.front()));
    return;
  }
  SmallVector<Attribute> cases;
  for (auto [number, plan] : llvm::enumerate(plans)) {
    bool isSplit = isCut && factors[number] > 1;
    cases.push_back(CaseAttr::get(op.getContext(), plan,
                                  isSplit ? std::optional(factors[number]) : std::nullopt));
  }
  op->removeAttr(Fp4Dialect::kPlanAttr);
  op.setDispatchAttr(ArrayAttr::get(op.getContext(), cases));
}

/// The split-K factors that the cases of `op` give `plans`; none where no case has one.
static SmallVector<int64_t> factorsOf(BlockScaledMatmulOp op, ArrayRef<KernelPlan> plans) {
  SmallVector<int64_t> factors;
  if (llvm::any_of(op.getCases(), [](CaseAttr one) { return one.getSplitK().has_value(); }))
    for (const KernelPlan &plan : plans)
      factors.push_back(splitsOf(op, plan));
  return factors;
}

/// Drops plans that do not hold for the static sizes of `op`, and the guards that all sizes meet.
static void dropStatic(BlockScaledMatmulOp op, std::vector<KernelPlan> &plans) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  auto drop = [&](SizeRange Guard::*member, int64_t size) {
    if (ShapedType::isDynamic(size))
      return;
    llvm::erase_if(plans, [&](const KernelPlan &plan) {
      bool isMultiple = member != &Guard::k || size % plan.guard.kUnit.value_or(1) == 0;
      return !(plan.guard.*member).has(size) || !isMultiple;
    });
    for (KernelPlan &plan : plans) {
      plan.guard.*member = {};
      if (member == &Guard::k)
        plan.guard.kUnit.reset();
    }
  };
  drop(&Guard::m, lhs.getDimSize(0));
  drop(&Guard::n, hasDynamicColumns(op) ? ShapedType::kDynamic : op.getColumns());
  drop(&Guard::k, lhs.getDimSize(1));
}

//===----------------------------------------------------------------------===//
// Proposals by rows
//===----------------------------------------------------------------------===//

/// Numbers of rows at which a plan of its own begins to pay; none if one plan is for all. In a
/// grouped GEMM they are the rows of each group: few, because a kernel of many experts takes long
/// to compile.
static ArrayRef<int64_t> boundsOf(BlockScaledMatmulOp op, const hw::TargetModel &target) {
  // Prepacked weights in registers have a tile for each range; other swapped operands, tiles of 8,
  // 16, 64 and 128 rows, two of the last; FP8, one of 64 rows; and tiles of 128 rows, the columns
  // that give work to most SMs.
  static constexpr int64_t ofWeights[] = {8, 16, 32, 64, 96, 128, 192, 256},
                           ofColumns[] = {8, 16, 64, 256}, ofRows[] = {64, 256}, ofLanes[] = {128},
                           ofGroups[] = {1, 8, 64};
  if (op.isGrouped())
    return ofGroups;
  if (op.usesK96())
    return {};
  if (hasWeightRates(op, target))
    return ofWeights;
  auto isPlanned = [&](route::Planner planner) { return isPlannedAs(op, target, planner); };
  if (isPlanned(route::Planner::BlockScaled) || isPlanned(route::Planner::PromotedTmem))
    return ofLanes;
  bool isPromoted = isPlanned(route::Planner::Promoted) || isPlanned(route::Planner::PromotedWarp);
  return isPromoted ? ArrayRef(ofRows) : ArrayRef(ofColumns);
}

/// Returns true when the kernel of `plan` differs from that of `next`, which is for more rows.
static bool differs(BlockScaledMatmulOp op, const KernelPlan &plan, const KernelPlan &next,
                    const hw::TargetModel &target) {
  return plan.tile != next.tile || plan.split.kSlices != next.split.kSlices ||
         plan.split.slicedK != next.split.slicedK ||
         PlannedGemm(op, plan, target).isTransposed() !=
             PlannedGemm(op, next, target).isTransposed();
}

/// The proposals of the family beside `last`, which is for the most rows, without plans that equal
/// those of more rows. A plan ends at each of `ends`, where split-K factors do.
static std::vector<KernelPlan> proposeRows(BlockScaledMatmulOp op, const KernelPlan &last,
                                           ArrayRef<int64_t> ends, const hw::TargetModel &target) {
  SmallVector<int64_t> bounds(ends);
  int64_t several = op.isGrouped() ? op.getNumGroups() : 1;
  for (int64_t rows : boundsOf(op, target))
    bounds.push_back(rows * several);
  llvm::sort(bounds);
  bounds.erase(llvm::unique(bounds), bounds.end());
  std::vector<KernelPlan> plans = {last};
  for (int64_t rows : llvm::reverse(bounds)) {
    KernelPlan partial = planOfFamily(KernelFamily::TileGemm);
    partial.guard.m.most = rows;
    FailureOr<KernelPlan> plan = completePlan(op, partial, target);
    if (succeeded(plan) &&
        (llvm::is_contained(ends, rows) || differs(op, *plan, plans.front(), target))) {
      plans.front().guard.m.least = rows + 1;
      plans.insert(plans.begin(), *plan);
    }
  }
  return plans;
}

//===----------------------------------------------------------------------===//
// The plans of a GEMM
//===----------------------------------------------------------------------===//

/// Completes `plans` in their places.
static LogicalResult complete(BlockScaledMatmulOp op, std::vector<KernelPlan> &plans,
                              const hw::TargetModel &target) {
  for (KernelPlan &plan : plans) {
    FailureOr<KernelPlan> whole = completePlan(op, plan, target);
    if (failed(whole))
      return failure();
    plan = *whole;
  }
  return success();
}

static bool isOpen(const KernelPlan &plan) {
  KernelPlan open = planOfFamily(plan.family);
  open.guard = plan.guard;
  return plan == open;
}

/// Replaces plans that say nothing by the proposals of the family: by sizes where N or K is
/// dynamic, or by rows.
static LogicalResult propose(BlockScaledMatmulOp op, std::vector<KernelPlan> &plans,
                             const hw::TargetModel &target) {
  auto isOfRows = [](const KernelPlan &plan) { return plan.guard.isOfRows(); };
  if (!llvm::all_of(plans, isOfRows) || !(mayHaveRowPlans(op) || hasDynamicSizes(op)))
    return complete(op, plans, target);
  SmallVector<int64_t> ends;
  for (const KernelPlan &plan : ArrayRef(plans).drop_back())
    ends.push_back(*plan.guard.m.most);
  FailureOr<KernelPlan> last = completePlan(op, planOfFamily(KernelFamily::TileGemm), target);
  if (failed(last))
    return failure();
  if (ends.empty() && hasDynamicSizes(op))
    if (std::vector<KernelPlan> ofSizes = proposeSizes(op, target); !ofSizes.empty()) {
      plans = std::move(ofSizes);
      dropStatic(op, plans); // small-M tiles where rows are static
      return complete(op, plans, target);
    }
  plans = mayHaveRowPlans(op) ? proposeRows(op, *last, ends, target) : std::vector{*last};
  return success();
}

/// Plans of the options, which say what plans of the program leave open. Plans for some rows come
/// before plans for all, and are cases of their own.
static void takeGiven(std::vector<KernelPlan> &plans, ArrayRef<KernelPlan> given) {
  for (const KernelPlan &other : given) {
    cutAfter(plans, other.guard.m.least - 1);
    if (other.guard.m.most)
      cutAfter(plans, *other.guard.m.most);
  }
  for (bool ofRows : {true, false})
    for (const KernelPlan &other : given)
      for (KernelPlan &plan : plans)
        if (other.guard.isAll() != ofRows && other.guard.m.has(plan.guard.m.least))
          plan = plan.orElse(other);
}

LogicalResult fp4::planCases(BlockScaledMatmulOp op, ArrayRef<KernelPlan> given,
                             const hw::TargetModel &target) {
  std::vector<KernelPlan> plans = plansOn(op);
  if (plans.empty())
    plans.push_back(planOfFamily(KernelFamily::TileGemm));
  SmallVector<int64_t> factors = factorsOf(op, plans);
  dropStatic(op, plans);
  takeGiven(plans, given);
  if (failed(llvm::all_of(plans, isOpen) ? propose(op, plans, target)
                                         : complete(op, plans, target)))
    return failure();
  if (!factors.empty())
    factors = factorsOf(op, plans);
  setPlans(op, plans, factors);
  return failure(failed(plansOf(op, target)));
}

/// Checks that guards are of dynamic sizes.
static LogicalResult checkGuard(BlockScaledMatmulOp op, const Guard &guard) {
  std::tuple<StringRef, bool, bool> sizes[] = {
      {"m", guard.m.isAll(), hasDynamicRows(op)},
      {"n", guard.n.isAll(), hasDynamicColumns(op)},
      {"k", guard.k.isAll() && !guard.kUnit, hasDynamicDepth(op)}};
  for (const auto &[name, isForAll, isDynamic] : sizes)
    if (!isForAll && !isDynamic)
      return withNote(op->emitOpError("must have dynamic ")
                          << name << " with a guard of it in 'dispatch'",
                      "fp4-plan-kernels takes the case that holds for a static size");
  return success();
}

FailureOr<std::vector<KernelPlan>> fp4::plansOf(BlockScaledMatmulOp op,
                                                const hw::TargetModel &target) {
  if (!op.getDispatch()) {
    FailureOr<KernelPlan> plan = planOf(op, target);
    if (failed(plan))
      return failure();
    return std::vector<KernelPlan>{*plan};
  }
  std::vector<KernelPlan> plans = plansOn(op);
  for (const KernelPlan &plan : plans)
    if (failed(checkGuard(op, plan.guard)) || failed(checkComplete(op, plan, target)))
      return failure();
  return plans;
}
