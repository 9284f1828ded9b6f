//===- WeightSlices.cpp - k slices of GEMMs of weights --------------------===//

#include "WeightSlices.h"

#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/Numerics/BlockScaledGemm.h"

using namespace mlir;
using namespace fp4;

/// Numbers of k slices of a CTA: those that all warps have, and those that have two warpgroups of
/// their own, of 32 warps with the one that loads.
static constexpr int64_t kSharedCounts[] = {1, 2, 4}, kSlicedCounts[] = {2, 3};
static constexpr int64_t kWarpsOfSlice = 8;
/// Elements of K of a unit of split-K.
static constexpr auto kUnit = int64_t(numerics::splitSlice);

int64_t fp4::mostRowsOfSlices(int64_t slices, bool haveWarpgroups) {
  constexpr int64_t ofTwo = 48, ofThree = 8; // beside 96 and 72 registers of a thread
  if (slices == 1)
    return kMostWeightRows;
  return !haveWarpgroups ? kGemmTileM / slices : slices == 2 ? ofTwo : ofThree;
}

static int64_t depthOfMatmul(BlockScaledMatmulOp op) {
  return cast<RankedTensorType>(op.getLhs().getType()).getDimSize(1);
}

/// Returns true when `slices` divide the split-K parts, and these have one length.
static bool haveOneLength(BlockScaledMatmulOp op, int64_t splits, int64_t slices) {
  int64_t k = depthOfMatmul(op);
  return !ShapedType::isDynamic(k) && splits % slices == 0 && k % (splits * kUnit) == 0;
}

/// Returns true when `slices` divide the split-K parts, and these have as many k tiles of `depth`
/// elements. The last tile may be a part of one, since no other slice shares its stage.
static bool haveAsManyTiles(BlockScaledMatmulOp op, int64_t splits, int64_t slices,
                            int64_t depth = kUnit) {
  int64_t k = depthOfMatmul(op);
  return !ShapedType::isDynamic(k) && splits % slices == 0 &&
         llvm::divideCeil(k, kUnit) % splits == 0 && llvm::alignTo(k, depth) % kUnit == 0;
}

SmallVector<int64_t> fp4::countsOfSlices(BlockScaledMatmulOp op, int64_t splits) {
  SmallVector<int64_t> counts;
  if (splits == 1 || !op.isGrouped())
    counts.push_back(1);
  for (int64_t slices : kSlicedCounts)
    if (haveAsManyTiles(op, splits, slices) && (slices == splits || !op.isGrouped()))
      counts.push_back(slices);
  return counts;
}

/// Returns true when all warps may have so many k slices, of parts of one length.
static bool mayBeShared(BlockScaledMatmulOp op, int64_t splits, int64_t slices) {
  return llvm::is_contained(kSharedCounts, slices) && haveOneLength(op, splits, slices);
}

bool fp4::mayHaveManyRows(BlockScaledMatmulOp op, int64_t splits) {
  return splits == 1 || !op.isGrouped() || mayBeShared(op, splits, splits);
}

int64_t fp4::depthOfSliced(BlockScaledMatmulOp op, int64_t rows) {
  constexpr int64_t fewRows = 16, half = kPrepackedTileK / 2;
  bool endsInUnit = llvm::alignTo(depthOfMatmul(op), half) % kUnit != 0;
  return rows <= fewRows || endsInUnit ? kPrepackedTileK : half;
}

/// Returns true when all warps of a CTA should have two k slices: of at most 8 rows, if the CTAs
/// then fill the SMs (notebook/gemm-weights.md).
static bool shouldTakeTurns(const PlannedGemm &gemm) {
  constexpr int64_t smallM = 8, slices = 2;
  const MatmulSize &size = gemm.size;
  int64_t blocks = llvm::divideCeil(size.n, kTileN) * size.splits;
  int64_t places = slices * gemm.target.sms;
  bool isFull = 10 * blocks >= 9 * places && blocks <= places;
  return size.m <= smallM && isFull && haveOneLength(gemm.op, size.splits, slices);
}

/// The numbers of slices with warpgroups of their own that fit K and the split-K parts.
static SmallVector<int64_t> countsOfSliced(const PlannedGemm &gemm) {
  return llvm::filter_to_vector(countsOfSlices(gemm.op, gemm.size.splits),
                                [](int64_t slices) { return slices > 1; });
}

/// The number of slices with warpgroups of their own that takes the fewest cycles; of equals, the
/// fewest, beside which a tile may have the most rows. Two where none fits, which the check
/// refuses.
static int64_t fastestSliced(const PlannedGemm &gemm, function_ref<double(int64_t)> cycles) {
  SmallVector<int64_t> counts = countsOfSliced(gemm);
  if (counts.empty())
    return kSlicedCounts[0];
  return *llvm::min_element(counts, [&](int64_t a, int64_t b) { return cycles(a) < cycles(b); });
}

/// The slices of a GEMM of groups, of which a CTA has all.
static WeightSlices slicesOfGroups(const PlannedGemm &gemm) {
  int64_t splits = gemm.size.splits;
  int64_t rows = gemm.plan.tile[0] ? gemm.plan.tile[0] : *llvm::max_element(gemm.size.groups);
  bool isShared = mayBeShared(gemm.op, splits, splits) && !mayBeSliced(splits, rows);
  return {splits, llvm::is_contained(kSlicedCounts, splits) && !isShared &&
                      route::hasCore(gemm.target, route::Core::Wgmma)};
}

/// Returns true when the sizes of a tile that `plan` gives go with slices that have warpgroups.
static bool fitsTile(const PlannedGemm &gemm, const KernelPlan &plan, int64_t slices) {
  bool hasColumns = !plan.tile[1] || plan.tile[1] == kTileN;
  return hasColumns && mayBeSliced(slices, plan.tile[0]) &&
         (!plan.tile[2] || haveAsManyTiles(gemm.op, gemm.size.splits, slices, plan.tile[2]));
}

WeightSlices fp4::chooseSlices(const PlannedGemm &gemm, function_ref<double(int64_t)> cycles) {
  constexpr double leastGain = 0.03;
  const KernelPlan &partial = gemm.plan;
  if (partial.split.kSlices)
    return {partial.split.kSlices, partial.split.slicedK};
  if (partial.split.slicedK)
    return {fastestSliced(gemm, cycles), true};
  if (gemm.size.splits == 1)
    return {};
  if (gemm.op.isGrouped())
    return slicesOfGroups(gemm);
  if (partial.cluster[0] || partial.ctasPerSm || partial.roles)
    return {};
  if (!partial.tile[0] && !partial.tile[1] && shouldTakeTurns(gemm))
    return {2, false};
  WeightSlices best;
  double least = route::hasCore(gemm.target, route::Core::Wgmma) ? cycles(1) : 0;
  for (int64_t slices : ArrayRef(countsOfSlices(gemm.op, gemm.size.splits)).drop_front())
    if (double other = cycles(slices);
        other < (1 - leastGain) * least && fitsTile(gemm, partial, slices)) {
      best = {slices, true};
      least = other;
    }
  return best;
}

/// Checks that a CTA may have all parts of K of groups, in slices of either kind.
static LogicalResult checkSplitOfGroups(const PlannedGemm &gemm) {
  int64_t splits = gemm.splits(), k = depthOfMatmul(gemm.op);
  bool haveSliced = route::hasCore(gemm.target, route::Core::Wgmma);
  if (!gemm.op.isGrouped() || splits == 1 || mayBeShared(gemm.op, splits, splits) ||
      (haveSliced && !countsOfSliced(gemm).empty()))
    return success();
  InFlightDiagnostic diag = gemm.op.emitOpError()
                            << "must have groups whose 'split_k' is 2 or 4 and cuts K into parts "
                               "of as many whole units of 256 elements";
  if (haveSliced)
    diag << ", or is 2 or 3 and divides the units";
  diag << ", but got " << splits
       << " for K = " << (ShapedType::isDynamic(k) ? "?" : std::to_string(k));
  diag.attachNote() << "leave 'split_k' out, or let 'split_k = fastest' choose the factor";
  return diag;
}

/// Checks that the roles have two warpgroups for each k slice that has its own, and no others.
static LogicalResult checkSliceRoles(const PlannedGemm &gemm) {
  auto roles = dyn_cast<pipe::RolePlanAttr>(gemm.plan.roles);
  SmallVector<pipe::RoleAttr> others = roles ? roles.getSlices() : SmallVector<pipe::RoleAttr>();
  if (!gemm.plan.split.slicedK && !others.empty()) {
    InFlightDiagnostic diag = gemm.op.emitOpError()
                              << "must have a plan with 'sliced_k' beside auxiliary roles of k "
                                 "slices, but got "
                              << spell(roles);
    diag.attachNote() << "add 'sliced_k', or leave 'roles' out, and fp4-plan-kernels decides it";
    return diag;
  }
  int64_t slices = gemm.plan.split.slicedK ? gemm.plan.split.kSlices.value_or(1) : 1;
  bool areWhole = llvm::all_of(others, [](pipe::RoleAttr role) {
    return role.getNumWarps() == kWarpsOfSlice && role.getFirstWarp() % kWarpsOfSlice == 0;
  });
  if (!roles || (areWhole && int64_t(others.size()) == slices - 1))
    return success();
  return gemm.misfit("roles",
                     "have " + Twine(slices - 1) +
                         " auxiliary roles of 8 warps that drive tensor and threads, one for each "
                         "k slice behind the first with 'sliced_k'",
                     spell(roles));
}

/// Checks slices with warpgroups of their own.
static LogicalResult checkSliced(const PlannedGemm &gemm) {
  const KernelPlan &plan = gemm.plan;
  int64_t slices = plan.split.kSlices.value_or(1), splits = gemm.splits();
  if (!llvm::is_contained(kSlicedCounts, slices))
    return gemm.misfit("k_slices", "is 2 or 3 with 'sliced_k'", Twine(slices));
  if (!haveAsManyTiles(gemm.op, splits, slices))
    return gemm.misfit("k_slices", "divides 'split_k', " + Twine(splits), Twine(slices));
  if (plan.tile[1] != kTileN || !mayBeSliced(slices, plan.tile[0]))
    return gemm.misfitTile("is [m, 128, k] with m up to " +
                           Twine(mostRowsOfSlices(slices, /*haveWarpgroups=*/true)) + " for " +
                           Twine(slices) + " k slices with 'sliced_k'");
  if (!haveAsManyTiles(gemm.op, splits, slices, plan.tile[2]))
    return gemm.misfitTile("is [m, 128, 256] with 'sliced_k', where K ends in the first half of a "
                           "unit of 256 elements");
  if (*plan.ctasPerSm != 1)
    return gemm.misfit("ctas_per_sm", "is 1 with 'sliced_k'", Twine(*plan.ctasPerSm));
  return success();
}

/// Checks slices that all warps have.
static LogicalResult checkShared(const PlannedGemm &gemm) {
  int64_t slices = gemm.plan.split.kSlices.value_or(1), splits = gemm.splits();
  if (slices == 1)
    return success();
  if (!llvm::is_contained(kSharedCounts, slices))
    return gemm.misfit("k_slices", "is 1, 2 or 4 without 'sliced_k'", Twine(slices));
  if (!haveOneLength(gemm.op, splits, slices))
    return gemm.misfit("k_slices",
                       "divides 'split_k', " + Twine(splits) +
                           ", whose parts have as many whole units of 256 elements",
                       Twine(slices));
  if (gemm.plan.tile[1] != kTileN)
    return gemm.misfitTile("is [m, 128, k] for several k slices");
  return success();
}

LogicalResult fp4::checkSlices(const PlannedGemm &gemm) {
  int64_t slices = gemm.plan.split.kSlices.value_or(1), splits = gemm.splits();
  if (failed(checkSplitOfGroups(gemm)) || failed(checkSliceRoles(gemm)))
    return failure();
  if (gemm.plan.split.slicedK && countsOfSliced(gemm).empty())
    return gemm.misfit(
        "sliced_k",
        Twine("goes with a 'split_k' ") +
            (gemm.op.isGrouped() ? "of groups that is 2 or 3" : "that 2 or 3 divides") +
            " and that divides the units of 256 elements of K",
        "'split_k' = " + Twine(splits));
  if (gemm.op.isGrouped() && slices != splits)
    return gemm.misfit("k_slices",
                       "is 'split_k' of groups, " + Twine(splits) + ": a CTA has all parts of K",
                       Twine(slices));
  return gemm.plan.split.slicedK ? checkSliced(gemm) : checkShared(gemm);
}
