//===- SplitPlans.cpp - Split-K factors of a GEMM -------------------------===//
//
// The pass fp4-choose-splits gives matmuls whose `split_k` is a policy their factors, or workers
// that share tiles. Both are orders of sums, so they belong to the program: no plan changes them
// afterwards, and the reference reads them. The pass compares the cost of the cheapest tile with
// each factor by the model of the planner, or of the waves of all tiles where the model has no
// split-K.
//
//===----------------------------------------------------------------------===//

#include "fp4/Plans/Passes.h"

#include "DispatchPlans.h"
#include "WeightSlices.h"

#include "fp4/Dialect/Fp4/IR/Target.h"

#include "mlir/IR/BuiltinOps.h"

namespace fp4 {
#define GEN_PASS_DEF_CHOOSESPLITS
#include "fp4/Plans/Passes.h.inc"
} // namespace fp4

using namespace mlir;
using namespace fp4;

/// Factors that are tried, and numbers of rows at which another one may begin. K of more rows than
/// the last is not cut where rows are dynamic.
static constexpr int64_t kFactors[] = {1, 2, 3, 4, 6, 8};
static constexpr int64_t kRowsOfFactors[] = {8, 16, 32, 64, 96, 128, 192, 256};
/// Rows of the GEMM that decides the factor of all others, as a decoder has them.
static constexpr int64_t kFixedRows = 16;
/// The part of the cost that a larger factor must save: by a model of the planner, by that of
/// promoted sums, which errs by more, and by waves.
static constexpr double kLeastGainOfFactor = 0.02, kLeastGainOfPromoted = 0.03,
                        kLeastGainOfWaves = 0.1;
/// The part of the cost that workers must save which share tiles: more than the model errs, and
/// than the clock falls where no SM is idle.
static constexpr double kLeastGainOfShares = 0.05;

/// Returns true when K of `op` may be cut: of groups, whose CTAs have k slices, where a model knows
/// these.
static bool mayBeCut(BlockScaledMatmulOp op, const hw::TargetModel &target) {
  return (!op.isGrouped() || hasWeightRates(op, target)) && !op.isDual() && !op.usesFma() &&
         !op.usesK96() && !op.getStreamK() && op.hasOnlyElements() && !hasDynamicSizes(op);
}

/// Time of the waves of tiles of 128 x 128 and of their reduction, in slices of 256 elements of K:
/// a tile takes one and a half besides its own, and so does a reduction, with a quarter for each
/// range.
static double slicesOfWaves(const MatmulSize &size, const hw::TargetModel &target) {
  constexpr double besides = 1.5, ofRange = 0.25;
  int64_t tiles = countTiles(size, kGemmTileM, kGemmTileM) * size.splits;
  auto waves = double(llvm::divideCeil(tiles, int64_t(target.sms)));
  double ofTile = double(llvm::divideCeil(size.slices(), size.splits)) + besides;
  return waves * ofTile + (size.splits > 1 ? besides + ofRange * double(size.splits) : 0);
}

namespace {
/// The cost of a GEMM in a unit that all factors share, and the part of it that a larger factor
/// must save.
struct Cost {
  double value, leastGain;
};
} // namespace

/// The cost of the cheapest tile by the model of the planner, or of its waves where no model knows
/// split-K. The tiles of tensor memory depend on whether rows are static, which `fixed` must not.
static Cost costOf(BlockScaledMatmulOp op, const MatmulSize &size, const hw::TargetModel &target) {
  if (hasWeightRates(op, target))
    return {weightCycles(op, size, target), kLeastGainOfFactor};
  bool isPromoted = isPlannedAs(op, target, route::Planner::Promoted);
  if (!isPromoted && (op.getSplitPolicy() == SplitPolicy::Fixed ||
                      !isPlannedAs(op, target, route::Planner::BlockScaled)))
    return {slicesOfWaves(size, target), kLeastGainOfWaves};
  KernelPlan open = planOfFamily(KernelFamily::TileGemm);
  PlannedGemm gemm(op, open, target);
  gemm.size = size;
  double least = INFINITY;
  for (const SizedTile &tile : plannerOf(op, target).tiles(gemm))
    if (tile.plan.guard.m.has(size.m))
      least = std::min(least, tile.cost(size));
  return {least, isPromoted ? kLeastGainOfPromoted : kLeastGainOfFactor};
}

/// The size of a GEMM of so many rows. Groups of unknown rows share these, and so do all groups
/// where `fixed` may not depend on their rows, given or expected.
static MatmulSize sizeOfRows(BlockScaledMatmulOp op, int64_t rows) {
  MatmulSize size = sizeOfGemm(op, planOfFamily(KernelFamily::TileGemm));
  bool isFixed = op.getSplitPolicy() == SplitPolicy::Fixed;
  size.m = rows;
  size.expectsGroups |= isFixed && op.isGrouped();
  if (size.expectsGroups && (isFixed || !op.getExpectedRows()))
    size.groups.assign(size.groups.size(), int64_t(llvm::divideCeil(rows, size.groups.size())));
  return size;
}

/// The factor of a GEMM of so many rows.
static int64_t fastestFactor(BlockScaledMatmulOp op, int64_t rows, const hw::TargetModel &target) {
  MatmulSize size = sizeOfRows(op, rows);
  auto factors = ArrayRef(kFactors).take_while([&](int64_t f) { return f <= size.slices(); });
  if (!maySplit(op, rows, target))
    return 1;
  int64_t best = 1;
  double least = INFINITY;
  for (int64_t factor : factors) {
    // The rows that `fixed` meets may be many more.
    if (op.getSplitPolicy() == SplitPolicy::Fixed && !mayHaveManyRows(op, factor))
      continue;
    size.splits = factor;
    Cost cost = costOf(op, size, target);
    if (cost.value < (1 - cost.leastGain) * least) {
      best = factor;
      least = cost.value;
    }
  }
  return best;
}

/// Returns true when cases of the matmul may have factors (C643).
static bool takeFactors(BlockScaledMatmulOp op) {
  return llvm::all_of(plansOn(op), [](const KernelPlan &plan) {
    return plan.guard.isOfRows() && plan.waveCost[0] == 0;
  });
}

/// The factors of `op`: one where rows are static, or the policy wants one for any number of rows.
static SmallVector<BlockScaledMatmulOp::RowSplit> chooseFactors(BlockScaledMatmulOp op,
                                                                const hw::TargetModel &target) {
  if (!mayBeCut(op, target))
    return {{INT64_MAX, 1}};
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  if (op.getSplitPolicy() == SplitPolicy::Fixed) {
    // One factor for all devices of the target, whose SMs and memory differ.
    const hw::TargetModel &all = *hw::lookupTarget(target.name);
    return {{INT64_MAX, maySplit(op, INT64_MAX, all) ? fastestFactor(op, kFixedRows, all) : 1}};
  }
  if (!lhs.isDynamicDim(0))
    return {{INT64_MAX, fastestFactor(op, lhs.getDimSize(0), target)}};
  if (!takeFactors(op))
    return {{INT64_MAX, 1}};
  SmallVector<BlockScaledMatmulOp::RowSplit> splits;
  for (int64_t rows : kRowsOfFactors) {
    int64_t factor = fastestFactor(op, rows, target);
    if (splits.empty() || splits.back().factor != factor)
      splits.push_back({rows, factor});
    splits.back().rows = rows;
  }
  if (splits.back().factor == 1)
    splits.pop_back();
  splits.push_back({INT64_MAX, 1});
  return splits;
}

/// Returns true when CTAs may share the tiles of `op`, a GEMM of weights in registers.
static bool mayShareTiles(BlockScaledMatmulOp op, const hw::TargetModel &target) {
  const route::Record *record =
      route::findRoute(signatureOf(op).with(route::Limit::Shares, true), target);
  return record && record->planner == route::Planner::Weight;
}

/// Workers and the tile that they share, where they take fewer cycles than `factor`, the fastest:
/// under `fastest`, of a GEMM without a plan.
static SmallVector<int64_t> chooseShares(BlockScaledMatmulOp op, int64_t factor,
                                         const hw::TargetModel &target) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  if (op.getSplitPolicy() != SplitPolicy::Fastest || lhs.isDynamicDim(0) || op.isGrouped() ||
      !mayBeCut(op, target) || !hasWeightRates(op, target) || !plansOn(op).empty() ||
      !mayShareTiles(op, target))
    return {};
  MatmulSize size = sizeOfRows(op, lhs.getDimSize(0));
  SharedTile shared = fastestSharedTile(op, size, target);
  size.splits = factor;
  if (shared.cycles >= (1 - kLeastGainOfShares) * weightCycles(op, size, target))
    return {};
  return {int64_t(target.sms), shared.tile[0], shared.tile[1]};
}

/// Gives `op` the factor, or the workers that share tiles, beside the other members of its work.
static void setWork(BlockScaledMatmulOp op, std::optional<int64_t> factor,
                    ArrayRef<int64_t> shares) {
  WorkAttr work = *op.getWork();
  bool saysMore = !shares.empty() || !work.getGroups().empty() || work.getExpectedRows() ||
                  work.getUnspecifiedRows();
  if (factor || saysMore)
    op.setWorkAttr(WorkAttr::get(op.getContext(), factor, std::nullopt, shares, work.getGroups(),
                                 work.getExpectedRows(), work.getUnspecifiedRows()));
  else
    op.removeWorkAttr();
}

/// Gives `op` workers that share tiles, or the factors: one in `work`, or several in cases.
static void chooseSplits(BlockScaledMatmulOp op, const hw::TargetModel &target) {
  SmallVector<BlockScaledMatmulOp::RowSplit> splits = chooseFactors(op, target);
  if (auto shares = chooseShares(op, splits.front().factor, target); !shares.empty())
    return setWork(op, std::nullopt, shares);
  std::optional<int64_t> factor;
  if (splits.size() == 1 && splits.front().factor > 1)
    factor = splits.front().factor;
  setWork(op, factor, op.getWork()->getStreamK());
  if (splits.size() == 1)
    return;
  std::vector<KernelPlan> plans = plansOn(op);
  if (plans.empty())
    plans.push_back(planOfFamily(KernelFamily::TileGemm));
  for (auto [rows, ofRows] : ArrayRef(splits).drop_back())
    cutAfter(plans, rows);
  auto factors = llvm::map_to_vector(plans, [&](const KernelPlan &plan) {
    int64_t most = plan.guard.m.most.value_or(INT64_MAX);
    return llvm::find_if(splits, [&](auto split) { return most <= split.rows; })->factor;
  });
  setPlans(op, plans, factors);
}

namespace {
struct ChooseSplits : fp4::impl::ChooseSplitsBase<ChooseSplits> {
  using ChooseSplitsBase::ChooseSplitsBase;

  void runOnOperation() override {
    SmallVector<BlockScaledMatmulOp> open;
    getOperation().walk([&](BlockScaledMatmulOp op) {
      if (op.getSplitPolicy())
        open.push_back(op);
    });
    if (open.empty())
      return;
    FailureOr<hw::TargetModel> target = targetOf(open.front());
    if (failed(target))
      return signalPassFailure();
    for (BlockScaledMatmulOp op : open)
      chooseSplits(op, *target);
  }
};
} // namespace
