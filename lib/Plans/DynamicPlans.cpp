//===- DynamicPlans.cpp - GEMMs of any N and K ----------------------------===//

#include "DynamicPlans.h"

#include "CostModel.h"
#include "GemmRoutes.h"

using namespace mlir;
using namespace fp4;

bool fp4::hasDynamicSizes(BlockScaledMatmulOp product) {
  return hasDynamicColumns(product) || hasDynamicDepth(product);
}

int64_t fp4::knownUnitOfDepth(BlockScaledMatmulOp op, const KernelPlan &plan) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  return hasDynamicDepth(op) ? plan.guard.kUnit.value_or(1) : lhs.getDimSize(1);
}

LogicalResult fp4::checkDynamicSizes(BlockScaledMatmulOp product, const KernelPlan &plan,
                                     const hw::TargetModel &target, bool mayTranspose) {
  if (!hasDynamicSizes(product))
    return success();
  if (isTransposed(product, plan, target) && !mayTranspose)
    return misfit(product, "route", "has the orientation normal for dynamic N and K",
                  plan.route.str());
  if (plan.pair && plan.tile[0] == kGemmTileM)
    return misfit(product, "pair", "has tiles of 256 rows for dynamic N and K", "128");
  return success();
}
