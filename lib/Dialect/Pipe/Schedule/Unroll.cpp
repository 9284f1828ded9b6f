//===- Unroll.cpp - Loops that become several iterations ------------------===//
//
// A loop of few iterations, with the scales of its scale blocks in a tile, becomes its iterations:
// ptxas then computes the barriers and descriptors of a k tile while the sums of the one before are
// added. All iterations have their sums in one fragment, for the same reason as parts of a tile
// (ChainMmas.cpp).
//
// Between the iterations of the loop around it there is a branch, which ptxas moves nothing across.
// So the last sums of an iteration are added in the next one, while it asks for its stage, and
// those of the last iteration behind the loop. The first iteration adds zeros, times a scale of
// zero. With mma.sync ptxas would load operands of later iterations early, and spill sums.
//
// Scales in two sets: a loop of an even number of k tiles does two of them in an iteration. The set
// of each k tile is then known, and so are the addresses of its copies and MMAs. Every output tile
// must begin with the first set, which an even number of k tiles ensures.
//
//===----------------------------------------------------------------------===//
#include "Schedule.h"

#include "fp4/Dialect/Pipe/Schedule/Passes.h"

#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/IR/Matchers.h"

namespace fp4::pipe {
#define GEN_PASS_DEF_UNROLL
#include "fp4/Dialect/Pipe/Schedule/Passes.h.inc"
} // namespace fp4::pipe

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Loops over at most as many scale blocks become their iterations.
static constexpr uint64_t kMostIterations = 8;

/// Returns true for sums that an MMA overwrites; other fragments begin as zeros in each turn of a
/// loop.
static bool areOverwritten(OpOperand &use) {
  if (MmaOp product = mmaOfForm(use.getOwner(), hw::MmaForm::WgmmaShared))
    return product.getAccumulator() == use.get();
  auto promote = dyn_cast<PromoteOp>(use.getOwner());
  return promote && promote.getAccumulator() != use.get();
}

/// MMAs of `loop` of which both operands are in shared memory, and the accumulator in registers.
static SmallVector<MmaOp> sharedMmasOf(scf::ForOp loop) {
  return llvm::filter_to_vector(
      loop.getOps<MmaOp>(), [](MmaOp mma) { return mma.getForm() == hw::MmaForm::WgmmaShared; });
}

static void hoistSums(scf::ForOp loop) {
  for (auto sums : llvm::make_early_inc_range(loop.getOps<AccumulatorOp>()))
    if (sums.getFragmentType() && llvm::all_of(sums->getUses(), areOverwritten))
      sums->moveBefore(loop);
}

namespace {
/// The last sums of an iteration, which those of the first MMA of the next iteration replace.
struct LastSums {
  PromoteOp promote;
  ConsumerWaitOp wait; ///< wait for the stage of the first MMA

  static std::optional<LastSums> of(scf::ForOp loop);
};
} // namespace

std::optional<LastSums> LastSums::of(scf::ForOp loop) {
  SmallVector<MmaOp> products = sharedMmasOf(loop);
  auto promotes = llvm::to_vector(loop.getOps<PromoteOp>());
  if (products.empty() || promotes.empty() || !promotes.back().isOfFragment())
    return std::nullopt;
  LastSums last = {promotes.back(), products.front().getA().getDefiningOp<ConsumerWaitOp>()};
  PromoteOp promote = last.promote;
  bool isLast = promote.getSums() == products.back().getAccumulator() &&
                products.back()->isBeforeInBlock(promote);
  bool isReplaced = promote.getSums() == products.front().getAccumulator();
  bool isOutside =
      llvm::all_of(ValueRange{promote.getAccumulator(), promote.getSums(), promote.getColumn()},
                   [&](Value value) { return loop.isDefinedOutsideOfLoop(value); });
  if (!isLast || !isReplaced || !isOutside || !last.wait || last.wait->getBlock() != loop.getBody())
    return std::nullopt;
  return last;
}

static void postponeLastSums(scf::ForOp loop) {
  std::optional<LastSums> last = LastSums::of(loop);
  if (!last)
    return;
  PromoteOp promote = last->promote;
  IRRewriter rewriter(loop);
  auto type = cast<VectorType>(promote.getScales().getType());
  Value zeros = arith::ConstantOp::create(rewriter, loop.getLoc(), rewriter.getZeroAttr(type));
  Value scales = promote.getScales();
  auto wider = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, zeros, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &, Location, ArrayRef<BlockArgument>) { return SmallVector<Value>{scales}; }));
  auto add = [&](Value ofScales) {
    PromoteOp::create(rewriter, promote.getLoc(), promote.getAccumulator(), promote.getSums(),
                      ofScales, promote.getColumn());
  };
  rewriter.setInsertionPoint(last->wait);
  add(wider.getRegionIterArgs().back());
  rewriter.setInsertionPointAfter(wider);
  add(wider.getResults().back());
  rewriter.eraseOp(promote);
}

static void unrollPromotion(gpu::GPUFuncOp kernel) {
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](Operation *op) {
    auto scales = dyn_cast<ScalesOp>(op);
    if (!scales || !scales.isOfTiles() || !scales.isOfFragment())
      return;
    auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
    std::optional<llvm::APInt> count = loop ? loop.getStaticTripCount() : std::nullopt;
    if (count && count->ule(kMostIterations) && !llvm::is_contained(loops, loop))
      loops.push_back(loop);
  });
  // A loop around another one of the list is replaced with it.
  llvm::erase_if(loops, [&](scf::ForOp loop) {
    return llvm::any_of(loops, [&](scf::ForOp inner) { return loop->isProperAncestor(inner); });
  });
  for (scf::ForOp loop : loops) {
    auto around = dyn_cast<scf::ForOp>(loop->getParentOp());
    hoistSums(loop);
    (void)loopUnrollFull(loop); // loopUnrollFull succeeds with a known number of iterations
    if (!around || sharedMmasOf(around).empty())
      continue;
    hoistSums(around);
    postponeLastSums(around);
  }
}

//===--- Sets of scales ----------------------------------------------------===//

/// Loops of `region`, the innermost first.
static SmallVector<scf::ForOp> loopsOf(RoleRegionOp region) {
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

/// The counter of the loop around `tile`, a tile of scales, whose iterations choose its set, and
/// the number of that value.
static std::optional<std::pair<Counter, size_t>> counterOf(CopyScalesOp tile) {
  auto loop = dyn_cast<scf::ForOp>(tile->getParentOp());
  auto wait = tile.getSource().getDefiningOp<ConsumerWaitOp>();
  if (!loop || !wait || !wait.getIteration())
    return std::nullopt;
  for (unsigned number = 0; number < loop.getNumRegionIterArgs(); ++number)
    if (std::optional<Counter> counter = Counter::of(loop, number))
      if (auto *found = llvm::find(counter->values, wait.getIteration());
          found != counter->values.end())
        return std::pair(*counter, size_t(found - counter->values.begin()));
  return std::nullopt;
}

static constexpr int64_t kMostSets = 2; ///< sets of columns, and k tiles of an iteration

/// Returns true when all tiles of scales of `loop` have two sets, which its iterations take in
/// turn.
static bool takeTwoSets(scf::ForOp loop) {
  return llvm::all_of(loop.getOps<CopyScalesOp>(), [](CopyScalesOp tile) {
    auto counter = counterOf(tile);
    return tile.getSets().value_or(1) == kMostSets && counter &&
           counter->first.values.size() == 1 && beginsWithFirst(counter->first, kMostSets);
  });
}

/// Writes the set of each tile whose iterations have one residue.
static void nameSets(RoleRegionOp region) {
  region.walk([&](CopyScalesOp tile) {
    int64_t sets = tile.getSets().value_or(1);
    auto counter = counterOf(tile);
    if (sets > 1 && counter && counter->first.values.size() % sets == 0 &&
        beginsWithFirst(counter->first, sets))
      tile.setSet(counter->second % sets);
  });
}

static void unrollScaleSets(gpu::GPUFuncOp kernel) {
  for (auto region : kernel.getOps<RoleRegionOp>()) {
    if (!region.getRole().getWhole())
      continue;
    for (scf::ForOp loop : loopsOf(region)) {
      if (!loop.getOps<CopyScalesOp>().empty() && takeTwoSets(loop))
        (void)loopUnrollByFactor(loop, kMostSets); // two divide the number of iterations
    }
    nameSets(region);
  }
}

namespace {
struct Unroll : fp4::pipe::impl::UnrollBase<Unroll> {
  void runOnOperation() override {
    auto unroll = [](gpu::GPUFuncOp kernel, const hw::TargetModel &target) {
      if (route::hasCore(target, route::Core::Wgmma))
        unrollPromotion(kernel);
      unrollScaleSets(kernel);
    };
    if (failed(forEachKernel(getOperation(), unroll)))
      signalPassFailure();
  }
};
} // namespace
