//===- CarriedStages.cpp - Stages that loops carry ------------------------===//
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
// (FoldedAwaits.cpp) has a stage and a phase of its own, those of iteration it + depth - distance.
//
// Scales in two sets: a loop of an even number of k tiles does two of them in an iteration. The set
// of each k tile is then known, and so are the addresses of its copies and MMAs. Every output tile
// must begin with the first set, which an even number of k tiles ensures.
//
// The first iteration over k tiles of an output tile comes before the loop, and the accumulator is
// acquired in it behind the copies of scales, or behind the wait for the copies of another warp
// (ScaleWarps.cpp). Copies do not need the accumulator, which the epilogue of the tile before may
// still read.
//
//   acc = producer_acquire accs          wait, copy            (of the first k tile)
//   for k from 0                   ->    acc = producer_acquire accs
//     wait, copy, mma                    mma
//                                        for k from 1: wait, copy, mma
//
//===----------------------------------------------------------------------===//
#include "Lowering.h"

#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp4;

namespace {

/// A counter that a loop carries: its values in an iteration, each of which is one more than the
/// one before. The loop continues with one more than the last.
struct Counter {
  scf::ForOp loop;
  unsigned number; ///< number of the iteration argument
  SmallVector<Value> values;

  static std::optional<Counter> of(scf::ForOp loop, unsigned number) {
    Counter counter = {loop, number, {}};
    Value argument = loop.getRegionIterArg(number), value = loop.getYieldedValues()[number];
    while (value != argument) {
      auto next = value.getDefiningOp<arith::AddIOp>();
      if (!next || next->getBlock() != loop.getBody() || !matchPattern(next.getRhs(), m_One()))
        return std::nullopt;
      value = next.getLhs();
      counter.values.push_back(value);
    }
    std::reverse(counter.values.begin(), counter.values.end());
    if (counter.values.empty() || !argument.getType().isInteger(32))
      return std::nullopt;
    return counter;
  }

  /// The channel that counts with this counter; null if there is none or several.
  pipe::ChannelOp channel() const {
    pipe::ChannelOp found;
    for (Value value : values)
      for (Operation *user : value.getUsers()) {
        auto use = dyn_cast<pipe::ChannelOpInterface>(user);
        if (!use || use.getIteration() != value)
          continue;
        auto channel = use.getChannel().getDefiningOp<pipe::ChannelOp>();
        if (!channel || (found && channel != found))
          return {};
        found = channel;
      }
    return found;
  }

  /// The iterations at which a wait happens, from the counter on: 0 or what await_release adds.
  SmallVector<int64_t> offsets(pipe::ChannelOp channel, const KernelState &state) const {
    SmallVector<int64_t> all = {0};
    if (state.countedMmas.contains(channel))
      return all;
    for (Value value : values)
      for (Operation *user : value.getUsers())
        if (auto await = dyn_cast<pipe::AwaitReleaseOp>(user))
          if (int64_t offset = *channel.getDepth() - await.getDistance();
              !llvm::is_contained(all, offset))
            all.push_back(offset);
    return all;
  }

  /// Returns true when a wait is for the phase before, as a producer's wait is.
  bool waitsForEmpty() const {
    return llvm::any_of(values, [](Value value) {
      return llvm::any_of(value.getUsers(), llvm::IsaPred<pipe::ProducerAcquireOp>);
    });
  }
};

} // namespace

/// The stage and phase of the iteration `offset` after `counter`, which is not in the loop.
static CarriedStage firstStage(OpBuilder &b, Location loc, Value counter, int64_t offset,
                               int64_t depth, bool inverted) {
  Value count = constantI32(b, loc, depth), one = constantI32(b, loc, 1);
  if (offset)
    counter = arith::AddIOp::create(b, loc, counter, constantI32(b, loc, offset));
  Value stage = arith::RemUIOp::create(b, loc, counter, count);
  Value phase = arith::AndIOp::create(b, loc, arith::DivUIOp::create(b, loc, counter, count), one);
  if (inverted)
    phase = arith::XOrIOp::create(b, loc, phase, one);
  return {stage, phase, inverted};
}

CarriedStage fp4::nextStage(OpBuilder &b, Location loc, const CarriedStage &at, int64_t depth) {
  Value next = arith::AddIOp::create(b, loc, at.stage, constantI32(b, loc, 1));
  Value wraps =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, next, constantI32(b, loc, depth));
  Value stage = arith::SelectOp::create(b, loc, wraps, constantI32(b, loc, 0), next);
  Value turn = arith::ExtUIOp::create(b, loc, b.getI32Type(), wraps);
  return {stage, arith::XOrIOp::create(b, loc, at.phase, turn), at.inverted};
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
/// Facts about the values that `loop` carried are moved to those of the new loop.
static scf::ForOp widen(scf::ForOp loop, ArrayRef<Value> firsts, const NewYieldValuesFn &nexts,
                        KernelState &state) {
  IRRewriter rewriter(loop);
  auto before = llvm::to_vector_of<Value>(loop.getRegionIterArgs());
  auto wider = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, firsts, /*replaceInitOperandUsesInLoop=*/false, nexts));
  auto now = [&](Value value) -> Value {
    auto *found = llvm::find(before, value);
    return found == before.end() ? value : wider.getRegionIterArg(found - before.begin());
  };
  decltype(state.carriedStages) carried;
  for (const auto &[place, at] : state.carriedStages)
    carried[{now(place.first), place.second}] = {now(at.stage), now(at.phase), at.inverted};
  state.carriedStages = std::move(carried);
  return wider;
}

/// Carries, beside `counter`, the stages that begin as `firsts`, two values each: `stages` of each
/// value of the counter. Replaces its loop.
static scf::ForOp widen(Counter &counter, ArrayRef<Value> firsts, ArrayRef<bool> inverted,
                        int64_t depth, MutableArrayRef<SmallVector<CarriedStage>> stages,
                        KernelState &state) {
  return widen(
      counter.loop, firsts,
      [&](OpBuilder &b, Location loc, ArrayRef<BlockArgument> arguments) {
        SmallVector<Value> nexts;
        for (auto [i, steps] : llvm::enumerate(stages)) {
          steps.push_back({arguments[2 * i], arguments[2 * i + 1], inverted[i]});
          for (Value value : ArrayRef(counter.values).drop_front()) {
            OpBuilder::InsertionGuard restore(b);
            b.setInsertionPointAfterValue(value);
            steps.push_back(nextStage(b, loc, steps.back(), depth));
          }
          CarriedStage next = nextStage(b, loc, steps.back(), depth);
          llvm::append_range(nexts, ValueRange{next.stage, next.phase});
        }
        return nexts;
      },
      state);
}

/// Carries the stages of `counter` through its loop and the loops around it, all of which are
/// replaced.
static void carry(Counter &counter, pipe::ChannelOp channel, KernelState &state) {
  int64_t depth = *channel.getDepth();
  auto arounds = loopsAround(counter.loop, counter.number);
  scf::ForOp outermost = arounds.empty() ? counter.loop : arounds.back().first;
  unsigned number = arounds.empty() ? counter.number : arounds.back().second;
  IRRewriter rewriter(outermost);
  SmallVector<int64_t> offsets = counter.offsets(channel, state);
  SmallVector<Value> firsts;
  SmallVector<bool> inverted;
  for (int64_t offset : offsets) {
    inverted.push_back(offset || counter.waitsForEmpty());
    CarriedStage at = firstStage(rewriter, outermost.getLoc(), outermost.getInitArgs()[number],
                                 offset, depth, inverted.back());
    llvm::append_range(firsts, ValueRange{at.stage, at.phase});
  }
  SmallVector<SmallVector<CarriedStage>> stages(offsets.size());
  scf::ForOp loop = widen(counter, firsts, inverted, depth, stages, state);
  for (auto [offset, steps] : llvm::zip_equal(offsets, stages))
    for (auto [j, at] : llvm::enumerate(steps)) {
      Value value = j == 0 ? loop.getRegionIterArg(counter.number) : counter.values[j];
      state.carriedStages[{value, offset}] = at;
    }
  for (auto [around, _] : arounds) {
    SmallVector<Value> lasts =
        llvm::to_vector_of<Value>(loop.getResults().take_back(firsts.size()));
    scf::ForOp wider = widen(
        around, firsts, [&](OpBuilder &, Location, ArrayRef<BlockArgument>) { return lasts; },
        state);
    loop.getInitArgsMutable()
        .slice(loop.getInitArgs().size() - firsts.size(), firsts.size())
        .assign(wider.getRegionIterArgs().take_back(firsts.size()));
    loop = wider;
  }
}

/// Returns true when `region` waits for its stages in front of the first load. Roles beside wgmma
/// keep the divisions, because their threads have no registers for both.
static bool isOnWayToLoad(pipe::RoleRegionOp region, const KernelState &state) {
  return region.getRole().drives(pipe::Engine::Tma) &&
         !route::hasCore(*state.target, route::Core::Wgmma);
}

/// Returns true when carrying the stages of a counter pays. Residues of powers of two need no
/// division, but carried stages take fewer instructions before the first load. A loop that goes
/// around a ring in every iteration has the same stages in each.
static bool isWorthCarrying(pipe::RoleRegionOp region, const Counter &counter, int64_t depth,
                            const KernelState &state) {
  if (!llvm::isPowerOf2_64(depth))
    return true;
  return depth > 1 && counter.values.size() % depth != 0 && isOnWayToLoad(region, state);
}

/// A counter of `region` whose stages are not carried yet, but should be; with its channel.
static std::optional<std::pair<Counter, pipe::ChannelOp>> nextCounter(pipe::RoleRegionOp region,
                                                                      const KernelState &state) {
  std::optional<std::pair<Counter, pipe::ChannelOp>> found;
  region.walk([&](scf::ForOp loop) {
    for (unsigned number = 0, count = loop.getNumRegionIterArgs(); number < count; ++number) {
      std::optional<Counter> counter = Counter::of(loop, number);
      pipe::ChannelOp channel = counter ? counter->channel() : pipe::ChannelOp();
      if (!channel || channel.overlaps() ||
          !isWorthCarrying(region, *counter, *channel.getDepth(), state) ||
          state.carriedStages.contains({counter->values.front(), 0}))
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
/// `loop` has a known number of iterations, more than one, and copies scales.
static pipe::ProducerAcquireOp acquireBefore(scf::ForOp loop) {
  std::optional<APInt> count = loop.getStaticTripCount();
  if (!count || count->ule(1) || loop.getOps<pipe::CopyScalesOp>().empty())
    return {};
  pipe::ProducerAcquireOp found;
  for (auto product : loop.getOps<pipe::MmaOp>()) {
    auto acquire = product.getAccumulator().getDefiningOp<pipe::ProducerAcquireOp>();
    if (!acquire || acquire->getBlock() != loop->getBlock() || (found && found != acquire))
      return {};
    found = acquire;
  }
  return found;
}

/// Puts the first iteration of `loop` in front of it. Returns the first MMA of that iteration.
static pipe::MmaOp peelFirst(scf::ForOp loop, KernelState &state) {
  OpBuilder b(loop);
  IRMapping first;
  first.map(loop.getInductionVar(), loop.getLowerBound());
  first.map(loop.getRegionIterArgs(), loop.getInitArgs());
  pipe::MmaOp product;
  for (Operation &op : loop.getBody()->without_terminator()) {
    Operation *copied = b.clone(op, first);
    if (auto known = state.scaleSets.find(&op); known != state.scaleSets.end())
      state.scaleSets[copied] = int64_t(known->second);
    if (!product)
      product = dyn_cast<pipe::MmaOp>(copied);
  }
  auto carried = llvm::to_vector(state.carriedStages);
  for (const auto &[place, at] : carried)
    if (first.contains(place.first))
      state.carriedStages[{first.lookup(place.first), place.second}] = {
          first.lookupOrDefault(at.stage), first.lookupOrDefault(at.phase), at.inverted};
  Value next =
      arith::AddIOp::create(b, loop.getLoc(), loop.getLowerBound(), loop.getStep()).getResult();
  loop.setLowerBound(next);
  for (auto [number, value] : llvm::enumerate(loop.getYieldedValues()))
    loop.getInitArgsMutable()[number].set(first.lookupOrDefault(value));
  return product;
}

/// Acquires accumulators behind the copies of the first k tile.
static void acquireLate(pipe::RoleRegionOp region, KernelState &state) {
  SmallVector<scf::ForOp> loops;
  region.walk([&](scf::ForOp loop) {
    if (acquireBefore(loop))
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops) {
    pipe::ProducerAcquireOp acquire = acquireBefore(loop);
    acquire->moveBefore(peelFirst(loop, state));
  }
}

/// Returns true when the warps of `region` decode weights or convert a tile: such warps wait for
/// the division before they begin. Among GEMMs that convert both operands, only small-M ones have
/// registers for what a loop would carry.
static bool decodes(pipe::RoleRegionOp region) {
  constexpr int64_t smallM = 64;
  return region
      .walk([](Operation *op) {
        auto product = dyn_cast<pipe::MmaConvertedOp>(op);
        auto conversion = dyn_cast<pipe::ConvertTileOp>(op);
        bool isOfFew = (product && product.getB().getType().getRows() <= smallM) ||
                       (conversion && conversion.getSource().getType().getRows() <= smallM);
        return isOfFew || isa<pipe::MmaPrepackedOp>(op) ? WalkResult::interrupt()
                                                        : WalkResult::advance();
      })
      .wasInterrupted();
}

void fp4::carryStages(gpu::GPUFuncOp kernel, KernelState &state) {
  for (auto region : kernel.getOps<pipe::RoleRegionOp>()) {
    if (!state.wholeRoles.contains(region.getRole()) && !decodes(region) &&
        !isOnWayToLoad(region, state))
      continue;
    while (auto next = nextCounter(region, state))
      carry(next->first, next->second, state);
    acquireLate(region, state);
  }
}

//===--- Sets of scales ----------------------------------------------------===//

/// Loops of `region`, the innermost first.
static SmallVector<scf::ForOp> loopsOf(pipe::RoleRegionOp region) {
  SmallVector<scf::ForOp> loops;
  region.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  return loops;
}

/// Returns true when the counter is a multiple of `sets` each time its loop begins.
static bool beginsWithFirst(const Counter &counter, int64_t sets) {
  scf::ForOp loop = counter.loop;
  std::optional<APInt> count = loop.getStaticTripCount();
  auto isMultiple = [&](Value value) {
    APInt constant;
    return matchPattern(value, m_ConstantInt(&constant)) && constant.urem(sets) == 0;
  };
  if (!count || (*count * counter.values.size()).urem(sets) != 0)
    return false;
  Value first = loop.getInitArgs()[counter.number];
  auto around = dyn_cast<scf::ForOp>(loop->getParentOp());
  auto argument = dyn_cast<BlockArgument>(first);
  if (!around || !argument || argument.getOwner() != around.getBody() ||
      argument == around.getInductionVar())
    return isMultiple(first);
  unsigned number = argument.getArgNumber() - 1;
  return isMultiple(around.getInitArgs()[number]) &&
         around.getYieldedValues()[number] == loop.getResult(counter.number);
}

/// The counter of the loop around `copy` whose iterations choose the set that `copy` fills, and the
/// number of that value.
static std::optional<std::pair<Counter, size_t>> counterOf(pipe::CopyScalesOp copy) {
  auto loop = dyn_cast<scf::ForOp>(copy->getParentOp());
  auto wait = copy.getSource().getDefiningOp<pipe::ConsumerWaitOp>();
  if (!loop || !wait || !wait.getIteration())
    return std::nullopt;
  for (unsigned number = 0; number < loop.getNumRegionIterArgs(); ++number)
    if (std::optional<Counter> counter = Counter::of(loop, number))
      if (auto *found = llvm::find(counter->values, wait.getIteration());
          found != counter->values.end())
        return std::pair(*counter, size_t(found - counter->values.begin()));
  return std::nullopt;
}

void fp4::unrollScaleSets(gpu::GPUFuncOp kernel, KernelState &state) {
  constexpr int64_t most = 2; // as many k tiles of code
  for (auto region : kernel.getOps<pipe::RoleRegionOp>()) {
    if (!state.wholeRoles.contains(region.getRole()))
      continue;
    for (scf::ForOp loop : loopsOf(region)) {
      auto copies = llvm::to_vector(loop.getOps<pipe::CopyScalesOp>());
      bool isKnown = !copies.empty() && llvm::all_of(copies, [](pipe::CopyScalesOp copy) {
        auto counter = counterOf(copy);
        return copy.getSets().value_or(1) == most && counter && counter->first.values.size() == 1 &&
               beginsWithFirst(counter->first, most);
      });
      if (isKnown)
        (void)loopUnrollByFactor(loop, most); // two divide the number of iterations
    }
    region.walk([&](pipe::CopyScalesOp copy) {
      int64_t sets = copy.getSets().value_or(1);
      auto counter = counterOf(copy);
      if (counter && counter->first.values.size() % sets == 0 &&
          beginsWithFirst(counter->first, sets))
        state.scaleSets[copy] = counter->second % sets;
    });
  }
}
