//===- ChannelEnds.cpp - The two ends of a channel, compared --------------===//

#include "ChannelEnds.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

//===----------------------------------------------------------------------===//
// Ops on channels
//===----------------------------------------------------------------------===//

static std::optional<ChannelUse> useOf(Operation *op) {
  auto user = dyn_cast<ChannelOpInterface>(op);
  return user ? std::optional(user.getChannelUse()) : std::nullopt;
}

bool fp4::pipe::isTake(Operation *op) {
  std::optional<ChannelUse> use = useOf(op);
  return use == ChannelUse::Acquire || use == ChannelUse::Wait;
}

bool fp4::pipe::isHandOver(Operation *op) {
  std::optional<ChannelUse> use = useOf(op);
  return use == ChannelUse::Commit || use == ChannelUse::Release;
}

bool fp4::pipe::isEndOf(Operation *end, Operation *take) {
  return isa<ProducerCommitOp>(end) == isa<ProducerAcquireOp>(take);
}

StringRef fp4::pipe::handOverName(Operation *take) {
  return isa<ProducerAcquireOp>(take) ? ProducerCommitOp::getOperationName()
                                      : ConsumerReleaseOp::getOperationName();
}

StringRef fp4::pipe::takeName(Operation *handOver) {
  return isa<ProducerCommitOp>(handOver) ? ProducerAcquireOp::getOperationName()
                                         : ConsumerWaitOp::getOperationName();
}

Value fp4::pipe::channelOf(Operation *op) {
  auto user = dyn_cast<ChannelOpInterface>(op);
  return user ? user.getChannel() : Value();
}

static Value iterationOf(Operation *op) { return cast<ChannelOpInterface>(op).getIteration(); }

//===----------------------------------------------------------------------===//
// Roles at the ends (C132)
//===----------------------------------------------------------------------===//

/// Reports a role at an end of a channel that has all its roles already, the first of them `first`.
static LogicalResult refuseRole(Operation *op, RoleRegionOp role, RoleRegionOp first,
                                StringRef ordinal) {
  InFlightDiagnostic diag = op->emitOpError() << "channel has a " << ordinal
                                              << " role at this end, " << role.getRole().getName();
  diag.attachNote(first.getLoc()) << "the first is here; give each its own channel";
  return diag;
}

/// Records that `op` stands at an end of `channel`.
static LogicalResult addUse(ChannelEnds &ends, ChannelOp channel, Operation *op) {
  auto role = op->getParentOfType<RoleRegionOp>(); // verifyInRoles
  ChannelUse use = cast<ChannelOpInterface>(op).getChannelUse();
  bool consumes = use == ChannelUse::Wait || use == ChannelUse::PartialRelease ||
                  use == ChannelUse::Release || use == ChannelUse::AwaitRelease;
  if (!consumes) {
    if (ends.producer && ends.producer != role)
      return refuseRole(op, role, ends.producer, "second");
    ends.producer = role;
    if (use == ChannelUse::Acquire)
      ends.producerTakes.push_back(op);
    return success();
  }
  auto *consumer =
      llvm::find_if(ends.consumers, [&](const auto &other) { return other.role == role; });
  if (consumer == ends.consumers.end()) {
    if (ends.consumers.size() == channel.getConsumers().size())
      return refuseRole(op, role, ends.consumers.front().role,
                        ends.consumers.size() == 1 ? "second" : "further");
    ends.consumers.push_back({role, {}});
    consumer = &ends.consumers.back();
  }
  if (use == ChannelUse::Wait)
    consumer->takes.push_back(op);
  return success();
}

/// Checks the engine that completes an end, and its arrivals: they are those of the role there.
static LogicalResult checkCompletion(ChannelOp channel, RoleRegionOp region, StringRef end,
                                     Engine engine, int64_t arrivals) {
  RoleAttr role = region.getRole();
  Engine expected = role.getCompletion(role.drives(engine) ? engine : role.getEngines().front());
  int64_t count = role.getArrivals(expected);
  if (engine == expected && arrivals == count)
    return success();
  InFlightDiagnostic diag = channel.emitOpError() << end << " must be " << stringifyEngine(expected)
                                                  << " with " << count << " arrivals, but got "
                                                  << stringifyEngine(engine) << " with " << arrivals;
  diag.attachNote(region.getLoc()) << "the " << end << " is role " << role.getName();
  return diag;
}

/// Checks that each consumer that the channel lists is one of the roles.
static LogicalResult checkConsumers(ChannelOp channel, const ChannelEnds &ends) {
  llvm::SmallDenseSet<size_t> found;
  SmallVector<Engine> engines = channel.getConsumerEngines();
  for (const ChannelEnds::Consumer &consumer : ends.consumers) {
    RoleRegionOp region = consumer.role;
    std::optional<size_t> number = channel.getConsumerNumber(region.getRole());
    if (!number || !found.insert(*number).second)
      return checkCompletion(channel, region, "consumer", engines.front(),
                             channel.getConsumerArrivals().front());
    if (ends.producer == region)
      return withNote(channel.emitOpError() << "ends must be different roles, but both are "
                                            << region.getRole().getName(),
                      "a role keeps its tiles without a channel: move one end to another role, or "
                      "remove the channel");
  }
  return success();
}

bool fp4::pipe::shareSets(TmemTileOpInterface one, TmemTileOpInterface other) {
  auto slot = dyn_cast<OpResult>(one.getStageTile()),
       next = dyn_cast<OpResult>(other.getStageTile());
  if (!slot || !next || slot.getResultNumber() != next.getResultNumber())
    return false;
  auto wait = dyn_cast<ConsumerWaitOp>(slot.getOwner()),
       later = dyn_cast<ConsumerWaitOp>(next.getOwner());
  auto kernel = one->getParentOfType<gpu::GPUFuncOp>();
  bool isScheduled = kernel && kernel->hasAttr(PipeDialect::kScheduledAttr);
  return wait && later && wait != later && wait.getChannel() == later.getChannel() &&
         (isScheduled || (wait->getBlock() == later->getBlock() &&
                          one->getBlock() == other->getBlock())) &&
         one.getTmemTile().getType() == other.getTmemTile().getType();
}

FailureOr<ChannelEnds> fp4::pipe::findEnds(ChannelOp channel) {
  ChannelEnds ends;
  WalkResult result = channel->getParentOp()->walk([&](Operation *op) {
    if (channelOf(op) != channel.getResult())
      return WalkResult::advance();
    return failed(addUse(ends, channel, op)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  size_t missing = channel.getConsumers().size() - ends.consumers.size();
  if (!ends.producer || missing) {
    InFlightDiagnostic diag = channel.emitOpError()
                              << "channel must have a " << (ends.producer ? "consumer" : "producer")
                              << " role";
    diag.attachNote() << "the other end waits for it forever";
    return diag;
  }
  if (failed(checkCompletion(channel, ends.producer, "producer", channel.getProducer(),
                             channel.getProducerArrivals())) ||
      failed(checkConsumers(channel, ends)))
    return failure();
  return ends;
}

//===----------------------------------------------------------------------===//
// Loops around the ends (C133)
//===----------------------------------------------------------------------===//

/// The loop counts with this argument; it does not carry a value with it.
static bool isInductionVar(BlockArgument argument) {
  auto loop = dyn_cast<LoopLikeOpInterface>(argument.getOwner()->getParentOp());
  return loop && loop.getLoopInductionVars() &&
         llvm::is_contained(*loop.getLoopInductionVars(), argument);
}

/// Returns true when two values are computed alike from the same values, given loops already found
/// alike.
static bool sameValue(Value x, Value y, ArrayRef<std::pair<Operation *, Operation *>> alike) {
  if (x == y)
    return true;
  auto argX = dyn_cast<BlockArgument>(x), argY = dyn_cast<BlockArgument>(y);
  if (argX && argY)
    return argX.getArgNumber() == argY.getArgNumber() && isInductionVar(argX) &&
           llvm::is_contained(
               alike, std::pair(argX.getOwner()->getParentOp(), argY.getOwner()->getParentOp()));
  auto resX = dyn_cast<OpResult>(x), resY = dyn_cast<OpResult>(y);
  if (!resX || !resY || resX.getResultNumber() != resY.getResultNumber())
    return false;
  Operation *opX = resX.getOwner(), *opY = resY.getOwner();
  if (opX->getName() != opY->getName() || opX->getNumRegions() || !isMemoryEffectFree(opX) ||
      opX->getAttrDictionary() != opY->getAttrDictionary() ||
      opX->getNumOperands() != opY->getNumOperands())
    return false;
  return llvm::all_of(llvm::zip(opX->getOperands(), opY->getOperands()), [&](auto pair) {
    return sameValue(std::get<0>(pair), std::get<1>(pair), alike);
  });
}

/// Ops around `op` up to its role, outermost first.
static SmallVector<Operation *> enclosing(Operation *op) {
  SmallVector<Operation *> ops;
  for (Operation *p = op->getParentOp(); p && !isa<RoleRegionOp>(p); p = p->getParentOp())
    ops.insert(ops.begin(), p);
  return ops;
}

static bool sameControl(Operation *x, Operation *y,
                        ArrayRef<std::pair<Operation *, Operation *>> alike) {
  auto loopX = dyn_cast<scf::ForOp>(x), loopY = dyn_cast<scf::ForOp>(y);
  if (loopX && loopY)
    return sameValue(loopX.getLowerBound(), loopY.getLowerBound(), alike) &&
           sameValue(loopX.getUpperBound(), loopY.getUpperBound(), alike) &&
           sameValue(loopX.getStep(), loopY.getStep(), alike);
  auto workX = dyn_cast<ForEachWorkOp>(x), workY = dyn_cast<ForEachWorkOp>(y);
  if (workX && workY)
    return sameValue(workX.getNumM(), workY.getNumM(), alike) &&
           sameValue(workX.getNumN(), workY.getNumN(), alike) &&
           workX.getSchedule() == workY.getSchedule();
  auto ifX = dyn_cast<scf::IfOp>(x), ifY = dyn_cast<scf::IfOp>(y);
  return ifX && ifY && sameValue(ifX.getCondition(), ifY.getCondition(), alike);
}

/// (C133) for one consumer.
static LogicalResult verifyLoopsOf(const ChannelEnds::Consumer &consumer, const ChannelEnds &ends) {
  if (ends.producerTakes.size() != consumer.takes.size()) {
    InFlightDiagnostic diag = consumer.takes.front()->emitOpError()
                              << "channel is taken from in " << consumer.takes.size()
                              << " places, but filled in " << ends.producerTakes.size();
    diag.attachNote(ends.producerTakes.front()->getLoc()) << "the first that fills it is here";
    return diag;
  }
  for (auto [fill, take] : llvm::zip_equal(ends.producerTakes, consumer.takes)) {
    SmallVector<Operation *> around = enclosing(take), other = enclosing(fill);
    SmallVector<std::pair<Operation *, Operation *>> alike;
    bool same = around.size() == other.size();
    for (size_t i = 0; same && i < around.size(); ++i) {
      same = sameControl(around[i], other[i], alike);
      alike.push_back({around[i], other[i]});
    }
    if (same)
      continue;
    InFlightDiagnostic diag = take->emitOpError()
                              << "must be in the same loops as the producer_acquire of its "
                                 "channel, so that as many stages are consumed as are produced";
    diag.attachNote(fill->getLoc()) << "the stage is filled here";
    return diag;
  }
  return success();
}

LogicalResult fp4::pipe::verifyLoopsAgree(const ChannelEnds &ends) {
  for (const ChannelEnds::Consumer &consumer : ends.consumers)
    if (failed(verifyLoopsOf(consumer, ends)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Iterations (C134)
//===----------------------------------------------------------------------===//

namespace {
/// A counter value: `base` (null for a constant) plus `offset`.
struct Count {
  Value base;
  int64_t offset = 0;
  bool operator==(const Count &) const = default;
};

/// Follows the counter of one channel through a role.
class IterationChecker {
public:
  explicit IterationChecker(ChannelOp channel) : channel(channel) {}
  /// Checks `block` given the count before it; the count behind it.
  FailureOr<Count> run(Block *block, Count count);

private:
  bool contains(Operation *op) {
    return op
        ->walk([&](Operation *inner) {
          return channelOf(inner) == channel.getResult() ? WalkResult::interrupt()
                                                         : WalkResult::advance();
        })
        .wasInterrupted();
  }
  LogicalResult checkOp(Operation *op, const Count &count);
  FailureOr<Count> runLoop(LoopLikeOpInterface loop, Count count);

  ChannelOp channel;
};
} // namespace

static Count countOf(Value value) {
  Count count;
  APInt constant;
  while (auto sum = value.getDefiningOp<arith::AddIOp>()) {
    if (!matchPattern(sum.getRhs(), m_ConstantInt(&constant)))
      break;
    count.offset += constant.getSExtValue();
    value = sum.getLhs();
  }
  if (matchPattern(value, m_ConstantInt(&constant)))
    count.offset += constant.getSExtValue();
  else
    count.base = value;
  return count;
}

LogicalResult IterationChecker::checkOp(Operation *op, const Count &count) {
  Count actual = countOf(iterationOf(op));
  if (actual == count)
    return success();
  auto loop = op->getParentOfType<LoopLikeOpInterface>();
  InFlightDiagnostic diag = op->emitOpError();
  if (!actual.base && loop)
    diag << "iteration must not be the constant " << actual.offset << " in a loop";
  else if (loop && actual.base && !loop->isAncestor(actual.base.getParentRegion()->getParentOp()))
    diag << "iteration must vary with the loop around it";
  else
    diag << "iteration must be the number of stages that this role has handed over";
  diag.attachNote() << "carry a counter through the loops that starts at 0 and advances by 1 with "
                       "every stage";
  return diag;
}

/// The value that `value`, used in `loop`, counts on from: through the loops within, to what they
/// start with.
static Value counterIn(LoopLikeOpInterface loop, Value value) {
  while (Value base = countOf(value).base) {
    auto result = dyn_cast<OpResult>(base);
    auto argument = dyn_cast<BlockArgument>(base);
    auto inner = dyn_cast_or_null<LoopLikeOpInterface>(
        result ? result.getOwner() : argument.getOwner()->getParentOp());
    if (!inner || !loop->isProperAncestor(inner))
      return base;
    OpOperand *init = result ? inner.getTiedLoopInit(result) : inner.getTiedLoopInit(argument);
    if (!init)
      return base;
    value = init->get();
  }
  return {};
}

FailureOr<Count> IterationChecker::runLoop(LoopLikeOpInterface loop, Count count) {
  Block *body = &loop.getLoopRegions().front()->front();
  for (auto [i, init] : llvm::enumerate(loop.getInits())) {
    if (countOf(init) != count)
      continue;
    Value argument = loop.getRegionIterArgs()[i];
    // Several counters may start alike; take the one that an op of the channel names.
    bool named = loop->walk([&](Operation *op) {
                       bool same = channelOf(op) == channel.getResult() && iterationOf(op) &&
                                   counterIn(loop, iterationOf(op)) == argument;
                       return same ? WalkResult::interrupt() : WalkResult::advance();
                     })
                     .wasInterrupted();
    if (!named)
      continue;
    FailureOr<Count> next = run(body, {argument, 0});
    if (failed(next))
      return failure();
    if (countOf(loop.getYieldedValues()[i]) != *next) {
      InFlightDiagnostic diag = loop->emitOpError()
                                << "must yield the advanced counter of a channel";
      diag.attachNote(channel.getLoc()) << "iterations of this channel would repeat";
      return diag;
    }
    return Count{(*loop.getLoopResults())[i], 0};
  }
  // No counter enters this loop: the first op within says what is wrong.
  FailureOr<Count> next = run(body, {loop.getLoopInductionVars()->front(), 0});
  if (failed(next))
    return failure();
  return withNote(
      loop->emitOpError("must carry the counter of a channel, starting with that before it"),
      "begin the loop with the number of iterations before it, and yield it plus one for each");
}

FailureOr<Count> IterationChecker::run(Block *block, Count count) {
  for (Operation &op : *block) {
    if (channelOf(&op) == channel.getResult()) {
      if (failed(checkOp(&op, count)))
        return failure();
      if (isHandOver(&op))
        ++count.offset;
    } else if (op.getNumRegions() && contains(&op)) {
      auto loop = dyn_cast<LoopLikeOpInterface>(op);
      if (!loop || !loop.getLoopResults() || !loop.getLoopInductionVars())
        return withNote(
            op.emitOpError(
                "channel ops must be in straight-line code, scf.for or pipe.for_each_work"),
            "other control flow has no number of iterations: use arith.select inside of a loop");
      FailureOr<Count> next = runLoop(loop, count);
      if (failed(next))
        return failure();
      count = *next;
    }
  }
  return count;
}

LogicalResult fp4::pipe::verifyIterations(ChannelOp channel, RoleRegionOp role) {
  return IterationChecker(channel).run(&role.getBody().front(), Count{});
}
