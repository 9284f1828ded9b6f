//===- SplitPlans.cpp - Split-K factors of a GEMM -------------------------===//
//
// The pass fp4-choose-splits gives matmuls whose `split_k` is a policy their factors. A factor is
// an order of sums, so it belongs to the program: no plan changes it afterwards, and the reference
// reads it. The pass compares the cost of the cheapest tile with each factor by the model of the
// planner, or of the waves of all tiles where the model has no split-K.
//
//===----------------------------------------------------------------------===//

#include "fp4/Plans/Passes.h"

#include "CostModel.h"
#include "DynamicPlans.h"
#include "GemmRoutes.h"
#include "WeightTiles.h"

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
/// The part of the cost that a larger factor must save, by a model of the planner and by waves.
static constexpr double kLeastGainOfFactor = 0.02, kLeastGainOfWaves = 0.1;

/// Returns true when K of `op` may be cut.
static bool maySplit(BlockScaledMatmulOp op) {
  return !op.isGrouped() && !op.isDual() && !op.usesFma() && !op.usesK96() && !op.getStreamK() &&
         op.hasOnlyElements() && !hasDynamicSizes(op);
}

/// Returns true when only operands of few rows can be split (GemmRoutes.cpp, requireSplit).
static bool splitsFewRows(BlockScaledMatmulOp op, const hw::TargetModel &target) {
  return isPlannedAs(op, target, route::Kernel::Converted) &&
         !route::hasCore(target, route::Core::Tcgen05);
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
/// The cost of a GEMM in a unit that all factors share, and the part of it that a larger factor must
/// save.
struct Cost {
  double value, leastGain;
};
} // namespace

/// The cost of the cheapest tile by the model of the planner, or of its waves where no model knows
/// split-K. The tiles of tensor memory depend on whether rows are static, which `fixed` must not.
static Cost costOf(BlockScaledMatmulOp op, const MatmulSize &size, const hw::TargetModel &target) {
  if (auto cycles = weightCycles(op, size, target))
    return {*cycles, kLeastGainOfFactor};
  if (op.getSplitPolicy() == SplitPolicy::Fixed ||
      !isPlannedAs(op, target, route::Kernel::BlockScaled))
    return {slicesOfWaves(size, target), kLeastGainOfWaves};
  double least = INFINITY;
  for (const SizedTile &tile : tilesOfGemm(op, size, target))
    if (size.m <= tile.plan.maxRows.value_or(INT64_MAX))
      least = std::min(least, tile.cost(size));
  return {least, kLeastGainOfFactor};
}

/// The factor of a GEMM of so many rows.
static int64_t fastestFactor(BlockScaledMatmulOp op, int64_t rows, const hw::TargetModel &target) {
  MatmulSize size = sizeOfGemm(op, planOfFamily(KernelFamily::TileGemm));
  size.m = rows;
  auto factors = ArrayRef(kFactors).take_while([&](int64_t f) { return f <= size.slices(); });
  if (splitsFewRows(op, target) && rows > kSwappedTileNs[3])
    return 1;
  int64_t best = 1;
  double least = INFINITY;
  for (int64_t factor : factors) {
    size.splits = factor;
    Cost cost = costOf(op, size, target);
    if (cost.value < (1 - cost.leastGain) * least) {
      best = factor;
      least = cost.value;
    }
  }
  return best;
}

namespace {
/// Factors, and the rows up to which each holds.
struct Splits {
  SmallVector<int64_t> factors, rows;
};
} // namespace

/// The factors of `op`: one where rows are static, or the policy wants one for any number of rows.
static Splits chooseFactors(BlockScaledMatmulOp op, const hw::TargetModel &target) {
  if (!maySplit(op))
    return {};
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  if (op.getSplitPolicy() == SplitPolicy::Fixed)
    return {{splitsFewRows(op, target) ? 1 : fastestFactor(op, kFixedRows, target)}, {}};
  if (!lhs.isDynamicDim(0))
    return {{fastestFactor(op, lhs.getDimSize(0), target)}, {}};
  Splits splits;
  for (int64_t rows : kRowsOfFactors) {
    int64_t factor = fastestFactor(op, rows, target);
    if (splits.factors.empty() || splits.factors.back() != factor) {
      splits.factors.push_back(factor);
      splits.rows.push_back(rows);
    }
    splits.rows.back() = rows;
  }
  while (!splits.factors.empty() && splits.factors.back() == 1) {
    splits.factors.pop_back();
    splits.rows.pop_back();
  }
  return splits;
}

static void chooseSplits(BlockScaledMatmulOp op, const hw::TargetModel &target) {
  WorkAttr work = *op.getWork();
  Splits splits = chooseFactors(op, target);
  if (llvm::all_of(splits.factors, [](int64_t factor) { return factor == 1; }))
    splits = {};
  if (splits.factors.empty() && !work.getExpectedRows() && !work.getUnspecifiedRows()) {
    op.removeWorkAttr();
    return;
  }
  op.setWorkAttr(WorkAttr::get(op.getContext(), splits.factors, splits.rows, std::nullopt,
                               work.getStreamK(), work.getGroups(), work.getExpectedRows(),
                               work.getUnspecifiedRows()));
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
