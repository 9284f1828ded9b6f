//===- DotsPlans.cpp - Plans of products of threads -----------------------===//
//
// A warp multiplies all rows of the lhs with four rows of the rhs. Warps need nothing of each
// other, so the threads of a block only decide how blocks share a multiprocessor.
//
//===----------------------------------------------------------------------===//

#include "Families.h"

using namespace mlir;
using namespace fp4;

/// Eight warps read adjacent rows of scales, which are in one piece of 128 bytes.
static KernelPlan proposeDots(Operation *, const KernelPlan &, const hw::TargetModel &) {
  KernelPlan plan = planOfFamily(KernelFamily::StreamDots);
  plan.threads = 256;
  return plan;
}

static LogicalResult checkDots(Operation *op, const KernelPlan &plan,
                               const hw::TargetModel &target) {
  return checkThreads(op, *plan.threads, plan.resident.value_or(1), target);
}

constexpr FamilyRules fp4::kDotsRules = {requireNothing, proposeDots, checkDots};
