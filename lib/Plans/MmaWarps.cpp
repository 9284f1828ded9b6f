//===- MmaWarps.cpp - One warp that multiplies and copies scales, or two --===//
//
// GEMMs whose scales are copied to tensor memory have a role that drives tensor and scale_copy. A
// single warp does both in turn, or a second one copies scales ahead of the first
// (docs/rationale/engines-and-roles.md). The second warp costs a barrier for each stage, and a
// phase of that barrier in every k tile, so it must gain a hundredth of a k tile, for known sizes.
//
//===----------------------------------------------------------------------===//

#include "GemmPlanner.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"

using namespace mlir;
using namespace fp4;

LogicalResult fp4::checkMmaWarps(const PlannedGemm &gemm) {
  if (gemm.plan.pipeline.mmaWarps.value_or(1) > 2)
    return gemm.misfit("mma_warps", "is 1 or 2", Twine(*gemm.plan.pipeline.mmaWarps));
  return success();
}

LogicalResult fp4::checkMmaRole(const PlannedGemm &gemm) {
  auto roles = cast<pipe::RolePlanAttr>(gemm.plan.roles);
  int64_t warps = roles.getDriver(pipe::Engine::Tensor).getNumWarps(),
          asked = gemm.plan.pipeline.mmaWarps.value_or(warps);
  if (warps == asked)
    return success();
  return gemm.misfit("roles",
                     "drive the engine tensor with " + Twine(asked) +
                         (asked == 1 ? " warp" : " warps") + ", as 'mma_warps' says",
                     Twine(warps));
}

/// Returns true when all sizes are known, from which the number of SMs that share L2 follows.
static bool hasKnownSizes(const PlannedGemm &gemm) {
  bool isDynamic = cast<RankedTensorType>(gemm.op.getLhs().getType()).isDynamicDim(0);
  return !isDynamic && !gemm.hasDynamicSizes() && !gemm.op.getOffsets();
}

std::optional<int64_t> fp4::proposeMmaWarps(const PlannedGemm &gemm, const GemmTile &tile) {
  constexpr double leastGain = 0.01;
  bool isOpen = !gemm.plan.pipeline.mmaWarps && !gemm.plan.roles && hasKnownSizes(gemm);
  if (isOpen && gainOfScaleWarp(gemm.size, tile, gemm.target) < leastGain)
    return 1;
  return gemm.plan.pipeline.mmaWarps;
}
