//===- MmaWarps.cpp - One warp that multiplies and copies scales, or two --===//
//
// GEMMs whose scales are copied to tensor memory have a role that drives tensor and scale_copy. A
// single warp does both in turn, or a second one copies scales ahead of the first
// (docs/rationale/engines-and-roles.md). The second warp costs a barrier for each stage, and a
// phase of that barrier in every k tile, so it must gain a hundredth of a k tile, for known sizes.
//
//===----------------------------------------------------------------------===//

#include "CostModel.h"
#include "DynamicPlans.h"
#include "GemmRoutes.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"

using namespace mlir;
using namespace fp4;

LogicalResult fp4::checkMmaWarps(Operation *op, const KernelPlan &plan) {
  if (plan.mmaWarps.value_or(1) > 2)
    return misfit(op, "mma_warps", "is 1 or 2", Twine(*plan.mmaWarps));
  return success();
}

LogicalResult fp4::checkMmaRole(Operation *op, const KernelPlan &plan) {
  auto roles = cast<pipe::RolePlanAttr>(plan.roles);
  int64_t warps = roles.getDriver(pipe::Engine::Tensor).getNumWarps();
  if (warps == plan.mmaWarps.value_or(warps))
    return success();
  return misfit(op, "roles",
                "drive the engine tensor with " + Twine(*plan.mmaWarps) +
                    (*plan.mmaWarps == 1 ? " warp" : " warps") + ", as 'mma_warps' says",
                Twine(warps));
}

/// Returns true when all sizes are known, from which the number of SMs that share L2 follows.
static bool hasKnownSizes(BlockScaledMatmulOp product) {
  bool isDynamic = cast<RankedTensorType>(product.getLhs().getType()).isDynamicDim(0);
  return !isDynamic && !hasDynamicSizes(product) && !product.getOffsets();
}

std::optional<int64_t> fp4::proposeMmaWarps(BlockScaledMatmulOp product, const KernelPlan &partial,
                                            const MatmulSize &size, const GemmTile &tile,
                                            const hw::TargetModel &target) {
  constexpr double leastGain = 0.01;
  bool isOpen = !partial.mmaWarps && !partial.roles && hasKnownSizes(product);
  if (isOpen && gainOfScaleWarp(size, tile, target) < leastGain)
    return 1;
  return partial.mmaWarps;
}
