//===- DynamicPlans.cpp - Products of any N and K --------------------------===//

#include "DynamicPlans.h"

#include "CostModel.h"
#include "Families.h"

using namespace mlir;
using namespace fp4;

bool fp4::hasDynamicSizes(BlockScaledMatmulOp product) {
  return hasDynamicColumns(product) || hasDynamicDepth(product);
}

Status fp4::requireDynamicSizes(BlockScaledMatmulOp product, const hw::TargetModel &target) {
  bool isPacked = hasPackedData(product.getFormat()) && hasPackedData(product.getFormatOfRhs());
  if (!hasDynamicSizes(product) || product.hasF32Scales() || isPacked)
    return {};
  return makeError(
      ErrorKind::Compile,
      "target '" + std::string(target.name) +
          "' has no kernel for dynamic N and K of these operands",
      "give N and K static sizes, and compile a function for each; M may be dynamic. "
      "Kernels for any N and K exist where both operands have 4 bits, and for fp8_block128");
}

LogicalResult fp4::checkDynamicSizes(BlockScaledMatmulOp product, const KernelPlan &plan) {
  if (!hasDynamicSizes(product))
    return success();
  if (plan.swap)
    return misfit(product, "swap", "is left out for dynamic N and K", "it");
  if (plan.pair && plan.tile[0] == kProductTileM)
    return misfit(product, "pair", "has tiles of 256 rows for dynamic N and K", "128");
  return success();
}
