//===- CarryStages.cpp - Stages that loops carry ------------------------===//
//
// The pipelined form counts the iterations of a channel, and its stage is the rest of a division
// (docs/rationale/pipeline-state.md). Some loops also carry the stage and the phase: those of a
// whole warp (Roles.cpp), of a thread that loads, and of the warps of a small-M GEMM or of
// prepacked weights, because a comparison and two selections are fewer instructions than two
// divisions:
//
//   for k (it = i)                   for k (it = i, s = i % depth, p = i / depth % 2)
//     consumer_wait ab[it]      ->     consumer_wait ab[it]     ... of stage s, phase p
//     yield it + 1                     yield it + 1, s + 1 == depth ? 0 : s + 1,
//                                            p ^ (s + 1 == depth)
//
// Depths that are powers of two need no division. Roles that load carry such stages too, except
// beside wgmma, so that a CTA computes less before its first load. An await_release that waits
// (FoldAwaits.cpp) has a stage and a phase of its own, those of iteration it + depth - distance.
//
// The first iteration over k tiles of an output tile comes before the loop, and the accumulator is
// acquired in it behind the copies of scales, or behind the wait for the copies of another warp
// (SplitWarps.cpp). Copies do not need the accumulator, which the epilogue of the tile before may
// still read.
//
//   acc = producer_acquire accs          wait, copy            (of the first k tile)
//   for k from 0                   ->    acc = producer_acquire accs
//     wait, copy, mma                    mma
//                                        for k from 1: wait, copy, mma
//
//===----------------------------------------------------------------------===//
#include "Schedule.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/Schedule/Passes.h"
#include "fp4/Routes/Route.h"

#include "mlir/IR/IRMapping.h"

namespace fp4::pipe {
#define GEN_PASS_DEF_CARRYSTAGES
#include "fp4/Dialect/Pipe/Schedule/Passes.h.inc"
} // namespace fp4::pipe

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// The iterations at which a wait happens, from the counter on: 0 or what await_release adds.
static SmallVector<int64_t> offsetsOf(const Counter &counter, ChannelOp channel) {
  SmallVector<int64_t> all = {0};
  for (Value value : counter.values)
    for (Operation *user : value.getUsers())
      if (auto await = dyn_cast<AwaitReleaseOp>(user); await && !await.getFolded())
        if (int64_t offset = *channel.getDepth() - await.getDistance();
            !llvm::is_contained(all, offset))
          all.push_back(offset);
  return all;
}

/// Returns true when a wait is for the phase before, as a producer's wait is.
static bool waitsForEmpty(const Counter &counter) {
  return llvm::any_of(counter.values, [](Value value) {
    return llvm::any_of(value.getUsers(), llvm::IsaPred<ProducerAcquireOp>);
  });
}

/// The stage and phase of the iteration `offset` after `counter`, which is not in the loop.
static StageAndPhase firstStage(OpBuilder &b, Location loc, Value counter, int64_t offset,
                                int64_t depth, bool opposite) {
  Value count = number(b, loc, depth), one = number(b, loc, 1);
  if (offset)
    counter = arith::AddIOp::create(b, loc, counter, number(b, loc, offset));
  Value stage = arith::RemUIOp::create(b, loc, counter, count);
  Value phase = arith::AndIOp::create(b, loc, arith::DivUIOp::create(b, loc, counter, count), one);
  if (opposite)
    phase = arith::XOrIOp::create(b, loc, phase, one);
  return {stage, phase, opposite};
}

/// The loops around `loop` that only pass its iteration argument `number` to `loop` and carry what
/// comes back, the innermost first, each with the number of its own argument.
static SmallVector<std::pair<scf::ForOp, unsigned>> loopsAround(scf::ForOp loop, unsigned number) {
  SmallVector<std::pair<scf::ForOp, unsigned>> all;
  while (true) {
    auto around = dyn_cast<scf::ForOp>(loop->getParentOp());
    auto argument = dyn_cast<BlockArgument>(loop.getInitArgs()[number]);
    if (!around || !argument || argument.getOwner() != around.getBody() ||
        argument == around.getInductionVar())
      return all;
    unsigned outer = argument.getArgNumber() - around.getNumInductionVars();
    if (around.getYieldedValues()[outer] != loop.getResult(number))
      return all;
    all.push_back({around, outer});
    loop = around;
    number = outer;
  }
}

/// Replaces `loop` by one that also carries `firsts` and continues with the values of `nexts`.
static scf::ForOp widen(scf::ForOp loop, ArrayRef<Value> firsts, const NewYieldValuesFn &nexts) {
  IRRewriter rewriter(loop);
  return cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, firsts, /*replaceInitOperandUsesInLoop=*/false, nexts));
}

/// Carries, beside `counter`, the stages that begin as `firsts`, two values each: `stages` of each
/// value of the counter. Replaces its loop.
static scf::ForOp widen(Counter &counter, ArrayRef<Value> firsts, ArrayRef<bool> opposite,
                        int64_t depth, MutableArrayRef<SmallVector<StageAndPhase>> stages) {
  return widen(counter.loop, firsts,
               [&](OpBuilder &b, Location loc, ArrayRef<BlockArgument> arguments) {
                 SmallVector<Value> nexts;
                 for (auto [i, steps] : llvm::enumerate(stages)) {
                   steps.push_back({arguments[2 * i], arguments[2 * i + 1], opposite[i]});
                   for (Value value : ArrayRef(counter.values).drop_front()) {
                     OpBuilder::InsertionGuard restore(b);
                     b.setInsertionPointAfterValue(value);
                     steps.push_back(nextStage(b, loc, steps.back(), depth));
                   }
                   StageAndPhase next = nextStage(b, loc, steps.back(), depth);
                   llvm::append_range(nexts, ValueRange{next.stage, next.phase});
                 }
                 return nexts;
               });
}

/// Carries the stages of `counter` through its loop and the loops around it, all of which are
/// replaced.
static void carry(Counter &counter, ChannelOp channel) {
  int64_t depth = *channel.getDepth();
  auto arounds = loopsAround(counter.loop, counter.number);
  scf::ForOp outermost = arounds.empty() ? counter.loop : arounds.back().first;
  unsigned argument = arounds.empty() ? counter.number : arounds.back().second;
  IRRewriter rewriter(outermost);
  SmallVector<int64_t> offsets = offsetsOf(counter, channel);
  SmallVector<Value> firsts;
  SmallVector<bool> opposite;
  for (int64_t offset : offsets) {
    opposite.push_back(offset || waitsForEmpty(counter));
    StageAndPhase at = firstStage(rewriter, outermost.getLoc(), outermost.getInitArgs()[argument],
                                  offset, depth, opposite.back());
    llvm::append_range(firsts, ValueRange{at.stage, at.phase});
  }
  SmallVector<SmallVector<StageAndPhase>> stages(offsets.size());
  scf::ForOp loop = widen(counter, firsts, opposite, depth, stages);
  for (auto [offset, steps] : llvm::zip_equal(offsets, stages))
    for (auto [j, at] : llvm::enumerate(steps)) {
      Value value = j == 0 ? loop.getRegionIterArg(counter.number) : counter.values[j];
      nameStage(channel, value, offset, at);
    }
  for (auto [around, _] : arounds) {
    SmallVector<Value> lasts =
        llvm::to_vector_of<Value>(loop.getResults().take_back(firsts.size()));
    scf::ForOp wider = widen(around, firsts,
                             [&](OpBuilder &, Location, ArrayRef<BlockArgument>) { return lasts; });
    loop.getInitArgsMutable()
        .slice(loop.getInitArgs().size() - firsts.size(), firsts.size())
        .assign(wider.getRegionIterArgs().take_back(firsts.size()));
    loop = wider;
  }
}

/// Returns true when `region` waits for its stages in front of the first load. Roles beside wgmma
/// keep the divisions, because their threads have no registers for both.
static bool isOnWayToLoad(RoleRegionOp region, const hw::TargetModel &target) {
  return region.getRole().drives(Engine::Tma) && !route::hasCore(target, route::Core::Wgmma);
}

/// Returns true when carrying the stages of a counter pays. Residues of powers of two need no
/// division, but carried stages take fewer instructions before the first load. A loop that goes
/// around a ring in every iteration has the same stages in each.
static bool isWorthCarrying(RoleRegionOp region, const Counter &counter, int64_t depth,
                            const hw::TargetModel &target) {
  if (!llvm::isPowerOf2_64(depth))
    return true;
  return depth > 1 && counter.values.size() % depth != 0 && isOnWayToLoad(region, target);
}

/// A counter of `region` whose stages are not carried yet, but should be; with its channel.
static std::optional<std::pair<Counter, ChannelOp>> nextCounter(RoleRegionOp region,
                                                                const hw::TargetModel &target) {
  std::optional<std::pair<Counter, ChannelOp>> found;
  region.walk([&](scf::ForOp loop) {
    for (unsigned number = 0, count = loop.getNumRegionIterArgs(); number < count; ++number) {
      std::optional<Counter> counter = Counter::of(loop, number);
      ChannelOp channel = counter ? counter->channel() : ChannelOp();
      if (!channel || channel.overlaps() ||
          !isWorthCarrying(region, *counter, *channel.getDepth(), target))
        continue;
      found = {*counter, channel};
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return found;
}

//===--- The first k tile of an output tile --------------------------------===//

/// The op that acquires the accumulator of the MMAs of `loop`, in front of the loop. Null unless
/// `loop` has a known number of iterations, more than one, and copies scales, and no other op uses
/// the accumulator.
static ProducerAcquireOp acquireBefore(scf::ForOp loop) {
  std::optional<APInt> count = loop.getStaticTripCount();
  if (!count || count->ule(1) || loop.getOps<CopyScalesOp>().empty())
    return {};
  ProducerAcquireOp found;
  for (auto product : loop.getOps<MmaOp>()) {
    auto acquire = product.getAccumulator().getDefiningOp<ProducerAcquireOp>();
    if (!acquire || acquire->getBlock() != loop->getBlock() || (found && found != acquire))
      return {};
    found = acquire;
  }
  auto isInLoop = [&](Operation *user) { return loop->isProperAncestor(user); };
  return found && llvm::all_of(found->getUsers(), isInLoop) ? found : ProducerAcquireOp();
}

/// Puts the first iteration of `loop` in front of it. Returns the first MMA of that iteration.
static MmaOp peelFirst(scf::ForOp loop) {
  OpBuilder b(loop);
  IRMapping first;
  first.map(loop.getInductionVar(), loop.getLowerBound());
  first.map(loop.getRegionIterArgs(), loop.getInitArgs());
  MmaOp product;
  for (Operation &op : loop.getBody()->without_terminator()) {
    Operation *copied = b.clone(op, first);
    if (!product)
      product = dyn_cast<MmaOp>(copied);
  }
  Value next =
      arith::AddIOp::create(b, loop.getLoc(), loop.getLowerBound(), loop.getStep()).getResult();
  loop.setLowerBound(next);
  for (auto [number, value] : llvm::enumerate(loop.getYieldedValues()))
    loop.getInitArgsMutable()[number].set(first.lookupOrDefault(value));
  return product;
}

/// Acquires accumulators behind the copies of the first k tile.
static void acquireLate(RoleRegionOp region) {
  SmallVector<scf::ForOp> loops;
  region.walk([&](scf::ForOp loop) {
    if (acquireBefore(loop))
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops) {
    ProducerAcquireOp acquire = acquireBefore(loop);
    acquire->moveBefore(peelFirst(loop));
  }
}

/// Returns true when the warps of `region` decode weights or convert a tile: such warps wait for
/// the division before they begin. Among GEMMs that convert both operands, only small-M ones have
/// registers for what a loop would carry.
static bool decodes(RoleRegionOp region) {
  constexpr int64_t smallM = 64;
  return region
      .walk([](Operation *op) {
        MmaOp product = mmaOfForm(op, hw::MmaForm::WgmmaDequantized);
        auto conversion = dyn_cast<DequantizeTileOp>(op);
        bool isOfFew = (product && product.getB().getType().getRows() <= smallM) ||
                       (conversion && isa<SharedType>(conversion.getFilledType()) &&
                        conversion.getSource().getType().getRows() <= smallM);
        return isOfFew || mmaOfForm(op, hw::MmaForm::WgmmaPrepacked) ? WalkResult::interrupt()
                                                                     : WalkResult::advance();
      })
      .wasInterrupted();
}

static void carryStages(gpu::GPUFuncOp kernel, const hw::TargetModel &target) {
  for (auto region : kernel.getOps<RoleRegionOp>()) {
    if (!region.getRole().getWhole() && !decodes(region) && !isOnWayToLoad(region, target))
      continue;
    while (auto next = nextCounter(region, target))
      carry(next->first, next->second);
    acquireLate(region);
  }
  hideKnownStages(kernel);
}

namespace {
struct CarryStages : fp4::pipe::impl::CarryStagesBase<CarryStages> {
  void runOnOperation() override {
    if (failed(forEachKernel(getOperation(), carryStages)))
      signalPassFailure();
  }
};
} // namespace
