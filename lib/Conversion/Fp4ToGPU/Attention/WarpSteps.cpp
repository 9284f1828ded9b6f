//===- WarpSteps.cpp - Keys of a step beside the values of the one before --===//
//
// Quantized keys cost instructions, and a step is a chain of conversions, products, exchanges and
// powers. An iteration has two chains that do not wait for each other: the values of its step, and
// the keys of the warp's next one.
//
// The maximum of a row is one of earlier keys, which scores may exceed by up to kGrowth: lanes
// exchange scores, and sums are scaled, where one exceeds it by more. An iteration begins with this
// branch, because it knows the scores of its step. Keys that a row may not see are hidden there.
//
//===----------------------------------------------------------------------===//
#include "Attention/WarpAttention.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"

using namespace mlir;
using namespace fp4;

/// An iteration begins with the state and the scores of its step, the words of its values and of
/// the keys of the next step, and the pages of the keys and values to be loaded.
struct WarpAttention::Step {
  WarpState state;
  SmallVector<Values> scores;
  Values keys, values, pages;
};

WarpAttention::Values WarpAttention::flat(const Step &step) {
  Values all = step.state.flat();
  for (const Values &ofTile : step.scores)
    llvm::append_range(all, ofTile);
  for (const Values *some : {&step.keys, &step.values, &step.pages})
    llvm::append_range(all, *some);
  return all;
}

WarpAttention::Step WarpAttention::stepOf(ValueRange numbers) {
  auto take = [&](int64_t count) {
    Values some(numbers.take_front(size_t(count)));
    numbers = numbers.drop_front(size_t(count));
    return some;
  };
  Step step{makeState(), {}, {}, {}, {}};
  step.state.assign(take(step.state.size()));
  for (int64_t tile = 0; tile < sizes.tiles; ++tile)
    step.scores.push_back(take(kWarpSums));
  step.keys = take(countOf(OfKeys));
  step.values = take(countOf(OfValues));
  step.pages = Values(numbers);
  return step;
}

/// Two steps in an iteration save the moves from the words of the next step to those of this one.
/// Pages, small heads and more rows are slower by it (H200, notebook/attention.md).
bool WarpAttention::unrollsSteps() {
  constexpr int64_t leastElements = 128;
  return op.isQuantized() && !pages && sizes.tiles == 1 && sizes.valueElements >= leastElements;
}

ValueRange WarpAttention::unrolledByTwo(ValueRange results) {
  auto loop = results.front().getDefiningOp<scf::ForOp>();
  FailureOr<UnrolledLoopInfo> loops = loopUnrollByFactor(loop, 2);
  if (failed(loops) || !loops->epilogueLoopOp)
    return results;
  return loops->epilogueLoopOp->getResults();
}

/// Passes over the warp's steps. Steps behind the last one are that one.
WarpState WarpAttention::passOverlapped() {
  Int32 last = Int32(b, arith::MaxUIOp::create(b, work->end, constI32(b, 1))) - 1;
  Int32 first = work->begin + *warp / sizes.strip;
  auto there = [&](int64_t turns) { return minimum(first + turns * sizes.warpsOfHead(), last); };
  Value page = pageOf(there(0)), pageOfNext = pageOf(there(1));
  Step step{makeState(), {}, {}, {}, {}};
  step.state.clear();
  Values ofFirst = load(there(0), page, OfKeys);
  step.values = load(there(0), page, OfValues);
  step.keys = load(there(1), pageOfNext, OfKeys);
  loadQueries(); // keys are on their way
  step.scores = scoresOf(ofFirst, there(0));
  if (pages)
    step.pages = {pageOf(there(2)), pageOfNext};
  // As loopUnrollByFactor asks, no warp begins a whole turn of the warps behind the end.
  ValueRange results = kernel.forEachItem(first, work->end, constI32(b, sizes.warpsOfHead()),
                                          flat(step), [&](Value number, ValueRange before) {
                                            return flat(next(Int32(b, number), stepOf(before)));
                                          });
  if (unrollsSteps())
    results = unrolledByTwo(results);
  WarpState state = stepOf(results).state;
  state.addLanes();
  return state;
}

/// Adds step `number`, and multiplies the keys of the warp's next one.
WarpAttention::Step WarpAttention::next(Int32 number, const Step &step) {
  Int32 last = Int32(b, work->end) - 1;
  auto there = [&](int64_t turns) { return minimum(number + turns * sizes.warpsOfHead(), last); };
  Values numbers = raised(number, step);
  Step after{makeState(), {}, {}, {}, {}};
  auto size = size_t(after.state.size());
  after.state.assign(ArrayRef(numbers).take_front(size));
  SmallVector<Values> powers;
  for (int64_t tile = 0; tile < sizes.tiles; ++tile)
    powers.push_back(powersOf(
        tile, ArrayRef(numbers).slice(size + size_t(tile) * kWarpSums, kWarpSums), after.state));
  if (pages)
    after.pages = {pageOf(there(3)), step.pages[0]};
  after.keys = load(there(2), pages ? step.pages[0] : Value(), OfKeys);
  after.values = load(there(1), pages ? step.pages[1] : Value(), OfValues);
  after.scores = scoresOf(step.keys, number + sizes.warpsOfHead());
  addValues(step.values, powers, after.state);
  return after;
}

/// The state with maxima that the scores exceed by kGrowth at most, and the distances of these.
WarpAttention::Values WarpAttention::raised(Int32 number, const Step &step) {
  const WarpState &state = step.state;
  Values numbers = state.flat();
  Value grows = mayHide(number);
  for (auto [tile, ofTile] : llvm::enumerate(step.scores))
    for (auto [i, score] : llvm::enumerate(ofTile)) {
      Value maximum = state.maxima[tile * kRowsOfLane + i % kRowsOfLane];
      Value distance = s.subtract(score, s.subtract(maximum, s.constant(state.exponent)));
      numbers.push_back(distance);
      Value isMore = arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, distance,
                                           s.constant(kGrowth + state.exponent));
      grows = grows ? arith::OrIOp::create(b, grows, isMore).getResult() : isMore;
    }
  Value any =
      NVVM::VoteSyncOp::create(b, b.getI1Type(), constI32(b, -1), grows, NVVM::VoteSyncKind::any);
  auto scaled = [&] {
    SmallVector<Values> scores = step.scores;
    for (auto [tile, ofTile] : llvm::enumerate(scores))
      hide(int64_t(tile), number, ofTile);
    WarpState after = state;
    raise(scores, after);
    Values all = after.flat();
    llvm::append_range(all, distancesOf(scores, after));
    return all;
  };
  return chooseValues(b, TypeRange(ValueRange(numbers)), any, scaled, [&] { return numbers; });
}

/// Returns true (i1) where the first row may not see the last key of a step. Null: rows see all
/// keys. Keys in front of a window need no condition: a row that they are hidden from has seen
/// none, and all scores exceed its maximum of -infinity.
Value WarpAttention::mayHide(Int32 number) {
  if (!op.getCausal() && !op.getLengths() && sizes.keys % sizes.keysOfStep == 0)
    return {};
  Int32 seen(b, work->keys);
  if (op.getCausal())
    seen = seen + work->firstRow / sizes.headsOfGroup() + (1 - sizes.tokens);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                               number * sizes.keysOfStep + sizes.keysOfStep, seen);
}
