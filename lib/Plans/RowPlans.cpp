//===- RowPlans.cpp - Plans of one GEMM by its number of rows -------------===//
//
// No plan is good for all sizes if the number of rows is dynamic. `fp4.row_plans` has one for each
// small range of rows, and host code chooses when it knows the number. Each plan is one more
// kernel, so there are few: for the numbers of rows at which the tile of a family changes much.
//
//===----------------------------------------------------------------------===//

#include "GemmRoutes.h"
#include "WeightTiles.h"

#include <map>

using namespace mlir;
using namespace fp4;

int64_t fp4::mostRowsOf(BlockScaledMatmulOp op, const KernelPlan &plan) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  return lhs.isDynamicDim(0) ? plan.maxRows.value_or(ShapedType::kDynamic) : lhs.getDimSize(0);
}

int64_t fp4::splitsOf(BlockScaledMatmulOp op, const KernelPlan &plan) {
  int64_t rows = mostRowsOf(op, plan);
  return op.splitsOfRows(ShapedType::isDynamic(rows) ? INT64_MAX : rows);
}

bool fp4::mayHaveRowPlans(BlockScaledMatmulOp op) {
  return cast<RankedTensorType>(op.getLhs().getType()).isDynamicDim(0) && !op.getGroups();
}

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
  if (weightCycles(op, sizeOfGemm(op, planOfFamily(KernelFamily::TileGemm)), target))
    return ofWeights;
  auto isPlanned = [&](route::Kernel kernel) { return isPlannedAs(op, target, kernel); };
  if (isPlanned(route::Kernel::BlockScaled) || isPlanned(route::Kernel::PromotedTmem))
    return ofLanes;
  return isPlanned(route::Kernel::Promoted) ? ArrayRef(ofRows) : ArrayRef(ofColumns);
}

static std::vector<KernelPlan> rowPlansOn(BlockScaledMatmulOp op) {
  std::vector<KernelPlan> plans;
  if (auto list = op->getAttrOfType<ArrayAttr>(Fp4Dialect::kRowPlansAttr))
    for (auto plan : list.getAsRange<PlanAttr>())
      plans.push_back(plan.getPlan());
  return plans;
}

/// The numbers of rows at which a split-K factor ends, if rows are dynamic: a kernel ends there
/// too.
static ArrayRef<int64_t> splitRowsOf(BlockScaledMatmulOp op) {
  return op.getMostSplits() > 1 && mayHaveRowPlans(op) ? op.getSplitRows() : ArrayRef<int64_t>();
}

/// Returns true when the kernel of `plan` differs from that of `next`, which is for more rows.
static bool differs(BlockScaledMatmulOp op, const KernelPlan &plan, const KernelPlan &next,
                    const hw::TargetModel &target) {
  return plan.tile != next.tile || plan.kSlices != next.kSlices ||
         isTransposed(op, plan, target) != isTransposed(op, next, target);
}

/// The proposals of the family, without plans that equal those of more rows.
static std::vector<KernelPlan> proposeRowPlans(BlockScaledMatmulOp op,
                                               const hw::TargetModel &target) {
  auto next = op->getAttrOfType<PlanAttr>(Fp4Dialect::kPlanAttr).getPlan();
  SmallVector<int64_t> bounds(boundsOf(op, target));
  ArrayRef<int64_t> splitRows = splitRowsOf(op);
  for (int64_t rows : splitRows)
    if (!llvm::is_contained(bounds, rows))
      bounds.push_back(rows);
  llvm::sort(bounds);
  std::vector<KernelPlan> plans;
  for (int64_t rows : llvm::reverse(bounds)) {
    KernelPlan partial = planOfFamily(KernelFamily::TileGemm);
    partial.maxRows = rows * (op.isGrouped() ? op.getNumGroups() : 1);
    FailureOr<KernelPlan> plan = completePlan(op, partial, target);
    if (failed(plan) || (!llvm::is_contained(splitRows, rows) && !differs(op, *plan, next, target)))
      continue;
    plans.insert(plans.begin(), *plan);
    next = *plan;
  }
  return plans;
}

LogicalResult fp4::planRows(BlockScaledMatmulOp op, ArrayRef<KernelPlan> given,
                            const KernelPlan &partial, const hw::TargetModel &target) {
  std::map<int64_t, KernelPlan> partials;
  for (const KernelPlan &plan : rowPlansOn(op))
    partials.emplace(*plan.maxRows, plan);
  if (mayHaveRowPlans(op))
    for (const KernelPlan &plan : given) {
      auto [place, isNew] = partials.emplace(*plan.maxRows, plan);
      if (!isNew)
        place->second = place->second.orElse(plan);
    }
  std::vector<KernelPlan> plans;
  if (partials.empty() && partial == planOfFamily(partial.family) && mayHaveRowPlans(op))
    plans = proposeRowPlans(op, target);
  else
    for (int64_t rows : splitRowsOf(op))
      partials.emplace(rows, partial).first->second.maxRows = rows;
  for (const auto &[rows, ofRows] : partials) {
    FailureOr<KernelPlan> plan = completePlan(op, ofRows, target);
    if (failed(plan))
      return failure();
    plans.push_back(*plan);
  }
  if (plans.empty())
    return failure(failed(plansOf(op, target)));
  auto attributes = llvm::map_range(plans, [&](const KernelPlan &plan) -> Attribute {
    return PlanAttr::get(op.getContext(), plan);
  });
  op->setAttr(Fp4Dialect::kRowPlansAttr,
              ArrayAttr::get(op.getContext(), llvm::to_vector(attributes)));
  return failure(failed(plansOf(op, target)));
}

/// Checks that a kernel ends at each number of rows at which a split-K factor does.
static LogicalResult checkSplitRows(BlockScaledMatmulOp op, ArrayRef<KernelPlan> plans) {
  const int64_t *missing = llvm::find_if(splitRowsOf(op), [&](int64_t rows) {
    return llvm::none_of(plans, [&](const KernelPlan &plan) { return plan.maxRows == rows; });
  });
  if (missing == splitRowsOf(op).end())
    return success();
  InFlightDiagnostic diag =
      op->emitOpError("must have a plan in fp4.row_plans whose 'max_rows' is ")
      << *missing << ", as 'split_rows' says, but got none";
  diag.attachNote() << "fp4-plan-kernels adds it where nothing is said of its plans";
  return failure();
}

FailureOr<std::vector<KernelPlan>> fp4::plansOf(BlockScaledMatmulOp op,
                                                const hw::TargetModel &target) {
  std::vector<KernelPlan> plans = rowPlansOn(op);
  if (!plans.empty() && !mayHaveRowPlans(op)) {
    InFlightDiagnostic diag = op->emitOpError("must have dynamic rows with fp4.row_plans, but got ")
                              << op.getLhs().getType();
    diag.attachNote() << "leave fp4.row_plans out, and give its plan as fp4.plan";
    return failure();
  }
  for (const KernelPlan &plan : plans)
    if (failed(checkComplete(op, plan, target)))
      return failure();
  FailureOr<KernelPlan> last = planOf(op, target);
  if (failed(last) || failed(checkSplitRows(op, plans)))
    return failure();
  plans.push_back(*last);
  return plans;
}
