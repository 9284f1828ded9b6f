//===- EpiloguePlans.cpp - Epilogues of two warpgroups --------------------===//
//
// Eight warps read an accumulator in tensor memory, each four of them a half of its columns. While
// one warp of a scheduler waits for results of instructions, loads or fences, another one runs.
// Eight warps gain nothing if instructions fill the pipes already, or if stores or loads bound a
// kernel. So eight warps are proposed for threads that do more than convert and store elements.
//
//===----------------------------------------------------------------------===//

#include "GemmPlanner.h"
#include "RolePlans.h"

#include "fp4/Numerics/BlockScaledGemm.h"

using namespace mlir;
using namespace fp4;

/// The reason why no GEMM of this kind has two warpgroups; empty if it may have them.
static std::string whyOneGroup(const PlannedGemm &gemm) {
  const KernelPlan &plan = gemm.plan;
  BlockScaledMatmulOp product = gemm.op;
  if (product.getStreamK() ||
      (gemm.splits() > 1 && plan.split.reduction != ReductionPlace::Cluster))
    return "where split-K is reduced in a workspace";
  if (plan.pair && plan.tile[0] == kGemmTileM)
    return "with pairs of 128 rows, whose TMEM lanes have halves of the columns";
  constexpr int64_t lanes = 32; // of a warp, which exchanges as many columns
  constexpr int64_t narrowest = 32; // bytes of a row of a swizzled tile
  int64_t unit = product.quantizesColumns()                         ? lanes
                 : isa<Float8E4M3FNType>(product.getElementType()) ? narrowest
                                                                    : 16;
  if (product.quantizesRows())
    unit = numerics::elementsOfScaleWord(product.getQuantizeRecipe()->getDecisions().format);
  if (plan.tile[1] % (2 * unit) == 0)
    return {};
  return "for tiles whose columns are no multiple of " + std::to_string(2 * unit);
}

LogicalResult fp4::checkEpilogueWarps(const PlannedGemm &gemm) {
  int64_t warps = gemm.plan.pipeline.epilogueWarps.value_or(4);
  if (warps == 4)
    return success();
  if (warps != 8)
    return gemm.misfit("epilogue_warps", "is 4 or 8", Twine(warps));
  std::string why = whyOneGroup(gemm);
  return why.empty() ? success() : LogicalResult(gemm.misfit("epilogue_warps", "is 4 " + why, "8"));
}

void fp4::addWideEpilogues(const PlannedGemm &gemm,
                           llvm::function_ref<KernelPlan(const GemmTile &)> planOf,
                           SmallVectorImpl<GemmTile> &tiles) {
  if (gemm.plan.pipeline.epilogueWarps == 8)
    for (GemmTile &tile : tiles)
      tile.epilogueGroups = 2;
  if (gemm.plan.pipeline.epilogueWarps || gemm.plan.roles || gemm.size.epilogue.isPlain())
    return;
  for (GemmTile tile : llvm::to_vector(tiles)) {
    tile.epilogueGroups = 2;
    if (whyOneGroup(gemm.with(planOf(tile))).empty())
      tiles.push_back(tile);
  }
}

/// Gives registers to an epilogue. Two sums of each element and an epilogue region take more than a
/// third of the registers. Codes take over 232 of them, and so does an epilogue region if the host
/// alone has the sizes.
pipe::RolePlanAttr fp4::withEpilogueRegisters(BlockScaledMatmulOp product, const GemmTile &tile,
                                              pipe::RolePlanAttr roles) {
  if (!product.isDual() || tile.epilogueGroups != 2)
    return roles;
  bool hasRoom = product.hasOnlyElements() && !hasDynamicSizes(product);
  return withRegisters(roles, hasRoom ? kMoreBeside : kFewBeside);
}
