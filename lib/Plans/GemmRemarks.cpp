//===- GemmRemarks.cpp - Remarks on the plan of a GEMM -----------------===//

#include "GemmPlanner.h"

#include "fp4/Numerics/BlockScaledGemm.h"

#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fp4;

void fp4::remarkOnTile(const PlannedGemm &gemm, std::array<int64_t, 2> tile, StringRef workers,
                       double cycles, StringRef bound) {
  double clock = gemm.target.product->gigahertz;
  remark::passed(gemm.op.getLoc(), remark::RemarkOpts::name("matmul").category("fp4-plan"))
      << llvm::formatv("tiles of {0}x{1} by {2}, predicted {3:f2} us at {4:f3} GHz{5}", tile[0],
                       tile[1], workers, cycles / clock / 1000, clock, bound)
             .str();
}

/// Remarks on the decision, and on the prediction of the model for it.
static void explain(const PlannedGemm &gemm, const GemmTile &tile, const GemmCost &cost) {
  std::string blocks = tile.pair         ? "a pair of CTAs"
                       : tile.transposed ? "one CTA with swapped operands"
                                         : "one CTA";
  if (tile.pair && tile.blocks() > 2 && !tile.joins)
    blocks = llvm::formatv("pairs in clusters of {0} x {1}", tile.clusterM, tile.clusterN).str();
  if (tile.joins)
    blocks += ", whose split-K ranges are reduced in a cluster of " + std::to_string(tile.blocks());
  if (tile.epilogueGroups > 1)
    blocks += ", with an epilogue of eight warps";
  std::string bound = llvm::formatv(", bound by {0}", spell(cost.bound));
  remarkOnTile(gemm, {tile.rows(), tile.n}, blocks, cost.cycles, bound);
}

/// Cycles of the better reduction of split-K ranges, in a workspace or in a cluster.
static double reductionCycles(const MatmulSize &size, const GemmTile &tile,
                              const hw::TargetModel &target) {
  SmallVector<GemmTile> ways = {tile};
  // Every tile that a cluster reduces leaves room for stages.
  addReduced(KernelPlan(), size, target, [](const GemmTile &) { return true; }, ways);
  return gemmCost(size, cheapestTile(ways, size, target), target).cycles;
}

/// The number of split-K ranges with which the model expects to save at least a tenth of the
/// `cycles` of one, and their cycles; of numbers that are nearly as good, the smallest.
static std::optional<std::pair<int64_t, double>> betterSplit(const MatmulSize &size,
                                                             const GemmTile &tile, double cycles,
                                                             const hw::TargetModel &target) {
  std::optional<std::pair<int64_t, double>> best;
  double least = 0.9 * cycles;
  for (int64_t splits = 2; splits <= std::min(size.slices(), BlockScaledMatmulOp::kMaxSplits);
       ++splits) {
    MatmulSize split = size;
    split.splits = splits;
    double joined = reductionCycles(split, tile, target);
    if (joined >= least)
      continue;
    best = {splits, joined};
    least = 0.98 * joined;
  }
  return best;
}

/// Returns true when the GEMM neither fixes the order of its sums nor how they are shared out.
static bool mayChangeSums(BlockScaledMatmulOp op) {
  return !op.isGrouped() && op.getMostSplits() == 1 && !op.getStreamK() && !op.isDual() &&
         !op.usesK96() && op.hasOnlyElements();
}

/// Remarks on the gain of split-K. The order of a sum is not the pass's to change.
static void adviseSplit(const PlannedGemm &gemm, const GemmTile &tile, double chosen) {
  auto better = betterSplit(gemm.size, tile, chosen, gemm.target);
  if (!better)
    return;
  auto name = remark::RemarkOpts::name("split_k").category("fp4-plan");
  remark::missed(gemm.op.getLoc(), name) << remark::reason(
      "split_k = {0} is predicted to take {1:f2} us; it changes the order of sums", better->first,
      better->second / gemm.target.product->gigahertz / 1000);
}

/// Remarks on the gain of workers that share the tiles of the last wave but one.
static void adviseStream(const PlannedGemm &gemm, const GemmTile &tile, double chosen) {
  auto lhs = cast<RankedTensorType>(gemm.op.getLhs().getType());
  int64_t ofTile = tile.pair ? 2 : 1;
  if (lhs.isDynamicDim(0) || tile.transposed || tile.blocks() != ofTile)
    return;
  MatmulSize shared = gemm.size;
  shared.sharers = gemmWorkers(tile, gemm.target);
  double cycles = gemmCost(shared, tile, gemm.target).cycles;
  if (cycles > 0.95 * chosen)
    return;
  auto name = remark::RemarkOpts::name("stream_k").category("fp4-plan");
  remark::missed(gemm.op.getLoc(), name) << remark::reason(
      "stream_k = [{0}, {1}, {2}] is predicted to take {3:f2} us; it changes the order of sums",
      shared.sharers, tile.rows(), tile.n, cycles / gemm.target.product->gigahertz / 1000);
}

void fp4::remarkOnGemm(const PlannedGemm &gemm, const GemmTile &tile) {
  GemmCost cost = gemmCost(gemm.size, tile, gemm.target);
  explain(gemm, tile, cost);
  if (!mayChangeSums(gemm.op))
    return;
  GemmTile other = tile; // no plan proposes a cluster of several tiles with split-K
  if (!gemm.plan.cluster[0] && !tile.joins)
    other.clusterN = 1;
  adviseSplit(gemm, other, cost.cycles);
  adviseStream(gemm, other, cost.cycles);
}
