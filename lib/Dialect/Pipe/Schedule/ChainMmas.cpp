//===- ChainMmas.cpp - MMAs that follow each other without a gap ----------===//
//
// If the parts of a tile have their sums in one fragment, the MMA of a part waits until the sums of
// the part before are read: the tensor core works for the other warpgroup. Otherwise ptxas begins
// the MMA early, in 44 registers more, and spills accumulators. If a stage has two k tiles, both
// MMAs begin together, and the first sums are added while the second MMA runs.
//
// An MMA of floats begins with the one before it where threads read the sums of that one meanwhile.
//
//===----------------------------------------------------------------------===//
#include "Schedule.h"

#include "fp4/Dialect/Pipe/Schedule/Passes.h"

#include "llvm/ADT/SetVector.h"

namespace fp4::pipe {
#define GEN_PASS_DEF_CHAINMMAS
#include "fp4/Dialect/Pipe/Schedule/Passes.h.inc"
} // namespace fp4::pipe

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Lets an MMA behind which another one of the same form and the same B follows in the block of
/// code be awaited by that one. MMAs that the next iteration awaits go on anyway.
static void awaitByNext(MmaOp mma) {
  if (mma.goesOn())
    return;
  bool hasNext = llvm::any_of(mma.getB().getUsers(), [&](Operation *user) {
    return mmaOfForm(user, mma.getForm()) && user->getBlock() == mma->getBlock() &&
           mma->isBeforeInBlock(user);
  });
  if (hasNext)
    mma.setChain(MmaChain::UntilMma);
}

/// The MMA before `product` with sums of its own, if the tiles of `product` are there too by then;
/// else null.
static MmaOp mmaBefore(MmaOp product) {
  for (Operation *op = product->getPrevNode(); op; op = op->getPrevNode()) {
    MmaOp before = mmaOfForm(op, hw::MmaForm::WgmmaShared);
    if (!before)
      continue;
    Value sums = product.getAccumulator();
    bool begins = before.getAccumulator() != sums &&
                  before.getAccumulator().getType() == sums.getType() && isThereBy(op, sums) &&
                  isThereBy(op, product.getA()) && isThereBy(op, product.getB());
    return begins ? before : MmaOp();
  }
  return {};
}

/// Returns true when an operation between `before` and `product` of their block, or one inside of
/// it, uses `value`.
static bool isUsedBetween(MmaOp before, MmaOp product, Value value) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    Operation *op = before->getBlock()->findAncestorOpInBlock(*user);
    return op && before->isBeforeInBlock(op) && op->isBeforeInBlock(product);
  });
}

/// Moves the wait for the tile of `product` in front of `before`, with what computes its iteration;
/// returns false if that needs something later.
static bool hoistWait(MmaOp before, MmaOp product) {
  llvm::SmallSetVector<Operation *, 8> moved;
  SmallVector<Operation *> work;
  if (Operation *origin = product.getB().getDefiningOp())
    work.push_back(origin);
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (op->getBlock() != before->getBlock() || op->isBeforeInBlock(before))
      continue;
    if (!isa<ConsumerWaitOp>(op) && !(isMemoryEffectFree(op) && op->getNumRegions() == 0))
      return false;
    moved.insert(op);
    for (Value operand : op->getOperands())
      if (Operation *origin = operand.getDefiningOp())
        work.push_back(origin);
  }
  auto inOrder = moved.takeVector();
  llvm::sort(inOrder, [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
  for (Operation *op : inOrder)
    op->moveBefore(before);
  return true;
}

/// Lets the second MMA await its tile once the first one runs, where nothing in front of both uses
/// the tile. A of the second MMA is in registers, as powers are, and no other MMA has its tile:
/// gradients of heads of 128 take 5 to 19 % longer so (an H200, notebook/attention.md). ptxas
/// serializes the MMAs of a role of one warpgroup then (C7520).
static void awaitBetween(MmaOp before, MmaOp product) {
  auto wait = product.getB().getDefiningOp<ConsumerWaitOp>();
  auto channel = wait ? wait.getChannel().getDefiningOp<ChannelOp>() : ChannelOp();
  auto region = product->getParentOfType<RoleRegionOp>();
  if (!channel || channel.isCluster() || channel.overlaps() || !region ||
      region.getRole().isOneWarpgroup() || !isa<RankedTensorType>(product.getA().getType()))
    return;
  auto comesLater = [&](Operation *user) {
    return user->getBlock() == before->getBlock() && before->isBeforeInBlock(user) &&
           (user == product || !isa<MmaOp>(user));
  };
  if (wait->getBlock() == before->getBlock() && llvm::all_of(wait->getUsers(), comesLater))
    wait->setAttr(kAwaitedByMmaAttr, UnitAttr::get(wait.getContext()));
}

/// Returns true when both MMAs add to sums of their own, with A in registers: one wait is enough.
static bool addTogether(MmaOp before, MmaOp product) {
  return llvm::all_of(std::array{before, product}, [](MmaOp mma) {
    return mma.getAccumulate() && isa<RankedTensorType>(mma.getA().getType());
  });
}

/// Returns true when all that `product` has in registers is there by `op`.
static bool hasRegistersBy(Operation *op, MmaOp product) {
  return isThereBy(op, product.getAccumulator()) && isThereBy(op, product.getA()) &&
         (!product.getFactors() || isThereBy(op, product.getFactors()));
}

/// Lets an MMA of floats begin with the one before it, whose sums are read meanwhile: the tensor
/// core works on while threads have numbers to compute. MMAs of one A in registers do not: these
/// are the first one's until it ends.
static void overlap(MmaOp product) {
  Operation *op = product->getPrevNode();
  while (op && !isa<MmaOp>(op))
    op = op->getPrevNode();
  auto before = dyn_cast_or_null<MmaOp>(op);
  bool isOfWgmma = isSharedMma(op) || mmaOfForm(op, hw::MmaForm::WgmmaFloat);
  if (!isOfWgmma || before.getChain() != MmaChain::Alone ||
      before.getAccumulator() == product.getAccumulator() || before.getA() == product.getA())
    return;
  if ((!isUsedBetween(before, product, before.getAccumulator()) && !addTogether(before, product)) ||
      isUsedBetween(before, product, product.getAccumulator()) || !hasRegistersBy(op, product) ||
      !hoistWait(before, product))
    return;
  before.setChain(MmaChain::Leads);
  product.setChain(MmaChain::Follows);
  awaitBetween(before, product);
}

/// Returns true when `promote` adds sums of a fragment behind the loop over K, and is the last one
/// of its accumulator.
static bool completesTile(PromoteOp promote) {
  return promote.isOfFragment() &&
         promote.getAccumulator().getParentBlock() == promote->getBlock() &&
         llvm::none_of(promote.getAccumulator().getUsers(), [&](Operation *user) {
           return isa<PromoteOp>(user) && user->getBlock() == promote->getBlock() &&
                  promote->isBeforeInBlock(user);
         });
}

/// Finishes the sums of a tile behind its loop. LLVM would add the last sums where each part of the
/// tile is stored, and keep them beside the accumulators until then. The sums are added once stages
/// that nobody reads any more are released.
static void completeTiles(ArrayRef<PromoteOp> promotions) {
  for (PromoteOp promote : promotions) {
    while (isa_and_nonnull<ConsumerReleaseOp>(promote->getNextNode()))
      promote->moveAfter(promote->getNextNode());
    promote.setComplete(true);
  }
}

/// Says what `product` waits for: sums in its registers that somebody reads, and its tiles.
static void chain(MmaOp product) {
  for (Operation *user : product.getAccumulator().getUsers()) {
    bool isBefore = user->getBlock() == product->getBlock() && user->isBeforeInBlock(product);
    if (isBefore && isa<MmaOp, PromoteOp>(user))
      product.setChain(MmaChain::Replaces);
    if (auto promote = dyn_cast<PromoteOp>(user); isBefore && promote)
      promote.setComplete(true);
  }
  if (MmaOp before = mmaBefore(product); before && before.getChain() != MmaChain::Follows) {
    before.setChain(MmaChain::Leads);
    product.setChain(MmaChain::Follows);
  }
}

static void chainMmas(gpu::GPUFuncOp kernel, const hw::TargetModel &) {
  SmallVector<PromoteOp> complete;
  SmallVector<MmaOp> floats;
  kernel.walk([&](Operation *op) {
    auto mma = dyn_cast<MmaOp>(op);
    if (mma && intersect(mma.getAtom()->fields, hw::MmaFields::GoesOn))
      awaitByNext(mma);
    else if (mma && mma.getForm() == hw::MmaForm::WgmmaFloat)
      floats.push_back(mma);
    else if (mma && intersect(mma.getAtom()->fields, hw::MmaFields::Chain))
      chain(mma);
    else if (auto promote = dyn_cast<PromoteOp>(op); promote && completesTile(promote))
      complete.push_back(promote);
  });
  llvm::for_each(floats, overlap);
  completeTiles(complete);
}

namespace {
struct ChainMmas : fp4::pipe::impl::ChainMmasBase<ChainMmas> {
  void runOnOperation() override {
    if (failed(forEachKernel(getOperation(), chainMmas)))
      signalPassFailure();
  }
};
} // namespace
