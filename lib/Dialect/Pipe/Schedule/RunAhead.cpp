//===- RunAhead.cpp - Early writes, and waits for sums that come last -----===//
//
// A loop that begins with the write of what the iteration before has computed ends with it instead.
// LLVM rounds numbers where they are written, behind all waits of the iteration, and other
// instructions hide no conversions there.
//
//   for k (x = x0)                             acquire, write x0, commit
//     acquire, write x, commit                 for k
//     x' = .. of scores                  ->      acquire
//     wait for sums, scale, release              x' = .. of scores, write x', commit
//     yield x'                                   wait for sums, scale, release
//   acquire, write x, commit
//
// The loop acquires as early as there is a stage that nobody reads any more: in front of all else
// if there are several, or else behind the last wait in front of the numbers. A write of the only
// stage stays behind another wait that follows the numbers: the stage may be free no earlier.
//
// An MMA that adds to sums which threads have left waits for them last: whatever else it waits for
// is there before.
//
//===----------------------------------------------------------------------===//
#include "Schedule.h"

#include "fp4/Dialect/Pipe/IR/Rings.h"
#include "fp4/Dialect/Pipe/Schedule/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

namespace fp4::pipe {
#define GEN_PASS_DEF_RUNAHEAD
#include "fp4/Dialect/Pipe/Schedule/Passes.h.inc"
} // namespace fp4::pipe

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

namespace {
/// The operations with which an iteration writes what the one before has computed, and those that
/// write the last numbers behind the loop.
struct CarriedWrites {
  mutable scf::ForOp loop;
  SmallVector<Operation *> inLoop, behind;

  static std::optional<CarriedWrites> of(scf::ForOp loop);
  bool isCarried(Value value) const {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getOwner() == loop.getBody() && argument != loop.getInductionVar();
  }
  unsigned numberOf(Value carried) const {
    return cast<BlockArgument>(carried).getArgNumber() - loop.getNumInductionVars();
  }
  bool contains(Operation *op) const { return llvm::is_contained(inLoop, op); }
  /// Returns true when `carried` counts the stages of the writes.
  bool isCounter(Value carried) const {
    Operation *next = loop.getYieldedValues()[numberOf(carried)].getDefiningOp();
    return isa_and_nonnull<arith::AddIOp>(next) && contains(next);
  }

private:
  bool counts(Operation &op) const;
  void collect();
  bool findBehind();
  bool isSame(Operation *op, Operation *other, const IRMapping &mapping) const;
  bool standAlone() const;
};
} // namespace

/// Returns true when `op` counts on what iteration the writes so far name.
bool CarriedWrites::counts(Operation &op) const {
  return isa<arith::AddIOp>(op) && llvm::any_of(inLoop, [&](Operation *other) {
           auto use = dyn_cast<ChannelOpInterface>(other);
           return use && use.getIteration() == op.getOperand(0);
         });
}

/// Collects the acquires, writes and commits with which the loop begins, but for arithmetic, and
/// what counts their stages.
void CarriedWrites::collect() {
  for (Operation &op : *loop.getBody()) {
    if (counts(op) || isa<ProducerAcquireOp, WriteOp, StageOp, ProducerCommitOp>(op))
      inLoop.push_back(&op);
    else if (!isPure(&op))
      break;
  }
  while (!inLoop.empty() && !isa<ProducerCommitOp, arith::AddIOp>(inLoop.back()))
    inLoop.pop_back();
}

/// Returns true when `other` does behind the loop what `op` does in it.
bool CarriedWrites::isSame(Operation *op, Operation *other, const IRMapping &mapping) const {
  if (op->getName() != other->getName() ||
      op->getDiscardableAttrDictionary() != other->getDiscardableAttrDictionary() ||
      op->getNumOperands() != other->getNumOperands())
    return false;
  return llvm::all_of(llvm::zip(op->getOperands(), other->getOperands()), [&](auto pair) {
    auto [mine, theirs] = pair;
    APInt one, two;
    bool areConstant = matchPattern(mine, m_ConstantInt(&one)) &&
                       matchPattern(theirs, m_ConstantInt(&two)) && one == two;
    return areConstant || mapping.lookupOrDefault(mine) == theirs;
  });
}

/// Finds the writes behind the loop; arithmetic may stand between them.
bool CarriedWrites::findBehind() {
  IRMapping mapping;
  mapping.map(loop.getRegionIterArgs(), loop.getResults());
  Operation *next = loop->getNextNode();
  for (Operation *op : inLoop) {
    while (next && !isSame(op, next, mapping) && isPure(next))
      next = next->getNextNode();
    if (!next || !isSame(op, next, mapping))
      return false;
    mapping.map(op->getResults(), next->getResults());
    behind.push_back(next);
    next = next->getNextNode();
  }
  return true;
}

/// Returns true when nothing else in the loop uses the counters of the writes, or computes what
/// they need.
bool CarriedWrites::standAlone() const {
  auto isOfWrites = [&](Operation *user) { return contains(user) || isa<scf::YieldOp>(user); };
  auto isOwn = [&](Value operand) {
    if (isCarried(operand))
      return !isCounter(operand) || llvm::all_of(operand.getUsers(), isOfWrites);
    Operation *origin = operand.getDefiningOp();
    return operand != loop.getInductionVar() &&
           (!origin || origin->getBlock() != loop.getBody() || contains(origin));
  };
  return llvm::all_of(inLoop, [&](Operation *op) {
    return llvm::all_of(op->getUsers(), isOfWrites) && llvm::all_of(op->getOperands(), isOwn);
  });
}

std::optional<CarriedWrites> CarriedWrites::of(scf::ForOp loop) {
  CarriedWrites writes;
  writes.loop = loop;
  writes.collect();
  bool carriesNumbers = llvm::any_of(writes.inLoop, [&](Operation *op) {
    auto write = dyn_cast<WriteOp>(op);
    return write && writes.isCarried(write.getValue());
  });
  if (!carriesNumbers || !writes.findBehind() || !writes.standAlone())
    return std::nullopt;
  return writes;
}

/// Returns the last of the operations of `block` that compute the `numbers`.
static Operation *lastOf(Block *block, ArrayRef<Value> numbers) {
  Operation *last = nullptr;
  for (Value number : numbers)
    if (Operation *op = number.getDefiningOp(); op && op->getBlock() == block)
      last = last && op->isBeforeInBlock(last) ? last : op;
  return last;
}

/// Returns true when each channel of the writes has several stages.
static bool haveSeveralStages(ArrayRef<Operation *> writes) {
  return llvm::all_of(writes, [](Operation *op) {
    auto acquire = dyn_cast<ProducerAcquireOp>(op);
    return !acquire || *acquire.getChannel().getDefiningOp<ChannelOp>().getDepth() > 1;
  });
}

/// Places the writes of `numbers` behind what computes them, and their acquires in front of it.
static void place(const CarriedWrites &writes, ArrayRef<Value> numbers) {
  Block *body = writes.loop.getBody();
  Operation *computed = lastOf(body, numbers), *wait = nullptr;
  bool waitsBehind = false;
  for (Operation &op : *body) {
    bool isUse = isa<ChannelOpInterface>(op) && !writes.contains(&op);
    if (isUse && op.isBeforeInBlock(computed))
      wait = &op;
    waitsBehind |= isUse && computed->isBeforeInBlock(&op);
  }
  bool isFree = haveSeveralStages(writes.inLoop);
  Operation *last = isFree || !waitsBehind ? computed : body->getTerminator()->getPrevNode();
  Operation *acquired = isFree ? nullptr : last == computed ? wait : last;
  for (Operation *op : writes.inLoop) {
    bool isAcquire = isa<ProducerAcquireOp>(op);
    if (isAcquire && isFree)
      continue;
    Operation *&at = isAcquire && acquired != last ? acquired : last;
    op->moveAfter(at);
    at = op;
  }
}

/// Makes the iterations of a loop write what they compute.
static void writeEarly(const CarriedWrites &writes) {
  scf::ForOp loop = writes.loop;
  OpBuilder b(loop);
  IRMapping first;
  first.map(loop.getRegionIterArgs(), loop.getInitArgs());
  for (Operation *op : writes.inLoop)
    b.clone(*op, first);
  SmallVector<Value> numbers;
  for (Operation *op : writes.inLoop)
    for (OpOperand &operand : op->getOpOperands()) {
      if (!writes.isCarried(operand.get()))
        continue;
      unsigned number = writes.numberOf(operand.get());
      Value next = loop.getYieldedValues()[number];
      if (writes.isCounter(operand.get())) {
        loop.getInitArgsMutable()[number].set(first.lookup(next));
        continue;
      }
      operand.set(next);
      numbers.push_back(next);
    }
  for (auto [op, last] : llvm::zip(writes.inLoop, writes.behind))
    for (auto [result, ofLast] : llvm::zip(op->getResults(), last->getResults()))
      if (auto counter = llvm::find(loop.getYieldedValues(), result);
          counter != loop.getYieldedValues().end())
        ofLast.replaceAllUsesWith(
            loop.getResult(unsigned(counter - loop.getYieldedValues().begin())));
  for (Operation *op : llvm::reverse(writes.behind))
    op->erase();
  place(writes, numbers);
}

//===--- Waits of MMAs -----------------------------------------------------===//

/// Returns when a wait in front of an MMA ends, beside others: tiles that are loaded are there
/// first, and threads write powers before they leave the sums of before.
static int turnOf(Operation *wait) {
  if (isa<ProducerAcquireOp>(wait))
    return 2;
  auto channel = cast<ConsumerWaitOp>(wait).getChannel().getDefiningOp<ChannelOp>();
  return channel.getType().isShared() ? 0 : 1;
}

/// Puts the waits right in front of an MMA with kept sums in the order in which they end, so that
/// the MMA begins one test behind the last of them.
static void orderWaits(MmaOp product) {
  auto sums = product.getAccumulator().getDefiningOp<ProducerAcquireOp>();
  if (!sums || !sums.getChannel().getDefiningOp()->hasAttr(kKeptAttr))
    return;
  SmallVector<Operation *> waits;
  for (Operation *op = product->getPrevNode();
       isa_and_nonnull<ProducerAcquireOp, ConsumerWaitOp>(op); op = op->getPrevNode())
    waits.push_back(op);
  llvm::sort(waits, [](Operation *a, Operation *b) {
    return turnOf(a) != turnOf(b) ? turnOf(a) < turnOf(b) : a->isBeforeInBlock(b);
  });
  for (Operation *wait : waits)
    wait->moveBefore(product);
}

static void runAhead(gpu::GPUFuncOp kernel, const hw::TargetModel &) {
  kernel.walk(orderWaits);
  SmallVector<CarriedWrites> all;
  kernel.walk([&](scf::ForOp loop) {
    if (std::optional<CarriedWrites> writes = CarriedWrites::of(loop))
      all.push_back(*writes);
  });
  for (const CarriedWrites &writes : all)
    writeEarly(writes);
}

namespace {
struct RunAhead : fp4::pipe::impl::RunAheadBase<RunAhead> {
  void runOnOperation() override {
    if (failed(forEachKernel(getOperation(), runAhead)))
      signalPassFailure();
  }
};
} // namespace
