//===- Deadlock.cpp - Roles that wait for each other ----------------------===//

#include "Deadlock.h"

#include "AccessOrder.h"
#include "ChannelEnds.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/PipeRows.h"
#include "fp4/Dialect/Pipe/IR/Scheduled.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Steps of all roles of all CTAs, and of one role in one CTA, after which a kernel is not run.
static constexpr size_t kMostSteps = 1 << 16, kMostOfRole = 1 << 13;

namespace {
/// One role in one CTA of the cluster.
struct RoleTrace {
  std::shared_ptr<const RoleSteps> steps; ///< equal in all CTAs
  uint32_t rank;                          ///< the CTA
  size_t next = 0;

  bool done() const { return next == steps->steps.size(); }
  const RoleStep &current() const { return steps->steps[next]; }
};

/// Stages of a channel that a consumer in one CTA has passed.
struct Used {
  int64_t taken = 0, released = 0;
  bool partly = false; ///< the stage that it holds is released in part
};

/// Clocks at the barriers of each stage, of the iteration that arrived last.
class BarrierClocks {
public:
  void arrive(int64_t iteration, int64_t depth, const Clock &clock) {
    stages.resize(depth);
    auto &[last, found] = stages[iteration % depth];
    if (last < iteration)
      found.clear();
    last = std::max(last, iteration);
    found.resize(clock.size());
    for (size_t i = 0; i < clock.size(); ++i)
      found[i] = std::max(found[i], clock[i]);
  }
  Clock at(int64_t iteration) const {
    return iteration < 0 || stages.empty() ? Clock() : stages[iteration % stages.size()].second;
  }

private:
  std::vector<std::pair<int64_t, Clock>> stages;
};

/// Stages of a channel that the ends in one CTA have passed.
struct Passed {
  int64_t acquired = 0, committed = 0;
  int64_t counted = 0; ///< MMAs that have arrived for a set of scales
  SmallVector<Used, 1> consumers;
  BarrierClocks full, empty, copied, mmas;
};

/// The channels of a cluster.
class ChannelRun {
public:
  ChannelRun(hw::ClusterShape cluster, bool pairs, AccessOrder *order)
      : cluster(cluster), pairs(pairs), order(order) {}
  /// Executes a step of `agent` in CTA `rank`; false when it has to wait, or has failed.
  bool step(size_t agent, const RoleStep &step, uint32_t rank);
  /// (C133) As many stages are used as are filled, if all roles have come to their end.
  LogicalResult checkCounts() const;
  bool hasFailed = false;

private:
  struct State {
    ChannelOp channel;
    ChannelSharing sharing;
    SmallVector<Passed> blocks; ///< stages that each CTA has passed, by rank
    /// Returns the uses that the consumer to which `op` belongs has passed in CTA `rank`.
    Used &usedBy(Operation *op, uint32_t rank);
    bool fills(uint32_t producer, uint32_t rank) const {
      return sharing.producersOf(rank) >> producer & 1;
    }
  };
  State &stateOf(ChannelOp channel);
  bool pass(size_t agent, const RoleStep &step, uint32_t rank);
  bool acquire(size_t agent, State &state, uint32_t rank);
  bool wait(size_t agent, Operation *op, State &state, uint32_t rank);
  void commit(size_t agent, ProducerCommitOp op, State &state, uint32_t rank);
  bool checkArrival(ConsumerReleaseOp op, State &state, uint32_t rank);
  void release(size_t agent, ConsumerReleaseOp op, State &state, uint32_t rank);
  bool await(size_t agent, AwaitReleaseOp op, State &state, uint32_t rank);
  void arriveEmpty(size_t agent, Operation *op, State &state, uint32_t rank, int64_t iteration);
  static bool areReleased(const State &state, uint32_t producer, int64_t needed);
  static bool isFullFor(const State &state, uint32_t consumer, Operation *op, const Used &used);
  void joinEmpty(size_t agent, const State &state, uint32_t producer, int64_t iteration);

  bool checkIteration(const RoleStep &step, State &state, uint32_t rank);
  bool checkHeld(const RoleStep &step, const TileUse &use, uint32_t rank);
  bool access(size_t agent, const RoleStep &step, uint32_t rank);
  bool checkFence(size_t agent, Operation *op);

  hw::ClusterShape cluster;
  bool pairs;
  AccessOrder *order; ///< null where only progress is checked
  llvm::MapVector<Value, State> states;
  llvm::DenseMap<size_t, Operation *> unfenced; ///< the last wait of an agent, without a fence
};
} // namespace

ChannelRun::State &ChannelRun::stateOf(ChannelOp channel) {
  State &state = states[channel.getResult()];
  if (state.blocks.empty()) {
    state.channel = channel;
    state.sharing = sharingOf(state.channel, pairs).in(cluster);
    state.blocks.resize(state.sharing.cluster.size());
    for (Passed &block : state.blocks)
      block.consumers.resize(state.channel.getConsumers().size());
  }
  return state;
}

Used &ChannelRun::State::usedBy(Operation *op, uint32_t rank) {
  return blocks[rank].consumers[channel.getConsumerNumber(roleOf(op)).value_or(0)];
}

//===----------------------------------------------------------------------===//
// Waits and arrivals
//===----------------------------------------------------------------------===//

/// All consumers of the stages that `producer` fills have released `needed` stages.
bool ChannelRun::areReleased(const State &state, uint32_t producer, int64_t needed) {
  for (uint32_t rank = 0; rank < state.blocks.size(); ++rank)
    if (state.sharing.consumes(rank) && state.fills(producer, rank) &&
        llvm::any_of(state.blocks[rank].consumers,
                     [&](const Used &used) { return used.released < needed; }))
      return false;
  return true;
}

void ChannelRun::joinEmpty(size_t agent, const State &state, uint32_t producer, int64_t iteration) {
  if (!order)
    return;
  for (uint32_t rank = 0; rank < state.blocks.size(); ++rank)
    if (state.sharing.consumes(rank) && state.fills(producer, rank))
      order->join(agent, state.blocks[rank].empty.at(iteration));
}

bool ChannelRun::acquire(size_t agent, State &state, uint32_t rank) {
  ChannelOp channel = state.channel;
  Passed &block = state.blocks[rank];
  // An overlapping stage is filled when the one before has been released.
  int64_t before = block.acquired - (channel.overlaps() ? 1 : int64_t(*channel.getDepth()));
  if (!channel.getWithoutEmpty()) {
    int64_t needed = before + 1;
    if (!areReleased(state, rank, needed + (needed > 0 ? channel.getReleaseDelay() : 0)))
      return false;
    joinEmpty(agent, state, rank, before);
  }
  ++block.acquired;
  return true;
}

/// Returns true when MMAs arrive at the full barriers for the next set of scales.
static bool countsMmas(ChannelOp channel) {
  return llvm::any_of(channel->getUsers(), [](Operation *user) {
    auto await = dyn_cast<AwaitReleaseOp>(user);
    return await && await.getFolded();
  });
}

/// Returns true when the consumer `op` waits for scales that another warp has copied.
static bool followsCopies(ChannelOp channel, Operation *op) {
  return channel.isCopiedAhead() && roleOf(op).drives(Engine::Tensor);
}

/// All producers of the stages of `consumer` have committed the one it wants.
bool ChannelRun::isFullFor(const State &state, uint32_t consumer, Operation *op, const Used &used) {
  const Passed &block = state.blocks[consumer];
  ChannelOp channel = state.channel;
  if (followsCopies(channel, op))
    return llvm::all_of(block.consumers, [&](const Used &other) {
      return &other == &used || other.released > used.taken;
    });
  for (uint32_t rank = 0; rank < state.blocks.size(); ++rank)
    if (state.fills(rank, consumer) && state.blocks[rank].committed <= used.taken)
      return false;
  return !countsMmas(channel) || block.counted >= used.taken;
}

bool ChannelRun::wait(size_t agent, Operation *op, State &state, uint32_t rank) {
  Used &used = state.usedBy(op, rank);
  const Passed &block = state.blocks[rank];
  if (!isFullFor(state, rank, op, used))
    return false;
  if (order && followsCopies(state.channel, op)) {
    order->join(agent, block.copied.at(used.taken));
  } else if (order) {
    order->join(agent, block.full.at(used.taken));
    if (countsMmas(state.channel) && used.taken > 0)
      order->join(agent, block.mmas.at(used.taken));
  }
  ++used.taken;
  return true;
}

void ChannelRun::commit(size_t agent, ProducerCommitOp op, State &state, uint32_t rank) {
  ChannelOp channel = state.channel;
  Passed &block = state.blocks[rank];
  if (order) {
    if (channel.getProducer() == Engine::Threads && channel.getType().isShared() &&
        !op.getUnfenced())
      order->fence(agent);
    Clock clock = order->arrival(agent, channel.getProducer(), channel);
    for (uint32_t other = 0; other < state.blocks.size(); ++other)
      if (state.fills(rank, other))
        state.blocks[other].full.arrive(block.committed, *channel.getDepth(), clock);
  }
  ++block.committed;
}

void ChannelRun::arriveEmpty(size_t agent, Operation *op, State &state, uint32_t rank,
                             int64_t iteration) {
  ChannelOp channel = state.channel;
  if (!order || iteration < 0 || channel.getWithoutEmpty())
    return;
  state.blocks[rank].empty.arrive(
      iteration, *channel.getDepth(),
      order->arrival(agent, consumerEngine(channel, roleOf(op)), channel));
}

/// (C621) A stage that is released in part has been arrived for.
bool ChannelRun::checkArrival(ConsumerReleaseOp op, State &state, uint32_t rank) {
  if (!order || !state.usedBy(op, rank).partly || op.getBy() == Arrival::Nobody)
    return true;
  withNote(op.emitOpError("behind a partial release of its stage must be by nobody, but is by ")
               << stringifyArrival(op.getBy()),
           "the partial release arrives, and a second arrival would release the next stage too");
  return false;
}

void ChannelRun::release(size_t agent, ConsumerReleaseOp op, State &state, uint32_t rank) {
  ChannelOp channel = state.channel;
  Used &used = state.usedBy(op, rank);
  int64_t delay = channel.getReleaseDelay(), iteration = used.released;
  bool isPartly = std::exchange(used.partly, false);
  if (order) {
    Engine engine = consumerEngine(channel, roleOf(op));
    if (engine == Engine::BulkStore)
      order->completeStores(agent, channel, delay);
    if (engine == Engine::Threads && channel.getType().isShared() && !op.getUnfenced())
      order->fence(agent);
    if (channel.isCopiedAhead() && roleOf(op).drives(Engine::ScaleCopy))
      state.blocks[rank].copied.arrive(iteration, *channel.getDepth(),
                                       order->arrival(agent, Engine::Threads, channel));
    if (op.getBy() != Arrival::Nobody)
      arriveEmpty(agent, op, state, rank, iteration - delay);
  }
  used.released += !isPartly;
}

bool ChannelRun::await(size_t agent, AwaitReleaseOp op, State &state, uint32_t rank) {
  Used &used = state.usedBy(op, rank);
  if (op.getFolded()) {
    Passed &block = state.blocks[rank];
    ++block.counted;
    if (order)
      block.mmas.arrive(block.counted, *state.channel.getDepth(),
                        order->arrival(agent, Engine::Tensor, state.channel));
    return true;
  }
  if (!order) // pipe-verify-sync of the pipelined form finds out by (C137)
    return true;
  int64_t before = used.taken - 1 - int64_t(op.getDistance());
  if (before < 0)
    return true;
  if (!areReleased(state, rank, before + 1))
    return false;
  joinEmpty(agent, state, rank, before);
  return true;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// (C134) The iteration of an op is the number of stages that its end has passed.
bool ChannelRun::checkIteration(const RoleStep &step, State &state, uint32_t rank) {
  if (!order || !step.iteration)
    return true;
  const Passed &block = state.blocks[rank];
  int64_t expected = *step.iteration;
  bool isHeld = true;
  switch (cast<ChannelOpInterface>(step.op).getChannelUse()) {
  case ChannelUse::Acquire:
    expected = block.acquired;
    break;
  case ChannelUse::Commit:
    expected = block.committed;
    isHeld = block.committed < block.acquired;
    break;
  case ChannelUse::Wait:
    expected = state.usedBy(step.op, rank).taken;
    break;
  case ChannelUse::Release: {
    const Used &used = state.usedBy(step.op, rank);
    expected = used.released - used.partly;
    isHeld = expected < used.taken;
    break;
  }
  default:
    break;
  }
  if (isHeld && expected == *step.iteration)
    return true;
  InFlightDiagnostic diag = step.op->emitOpError();
  if (isHeld)
    diag << "iteration must be " << expected
         << ", the number of stages that this role has handed over, but is " << *step.iteration;
  else
    diag << "hands over a stage that is not held";
  diag.attachNote(state.channel.getLoc())
      << (isHeld ? "each stage of the channel counts once"
                 : "take a stage of the channel before, in each turn");
  return false;
}

/// (C131) A tile is used while its stage is held.
bool ChannelRun::checkHeld(const RoleStep &step, const TileUse &use, uint32_t rank) {
  if (!use.place.owner)
    return true;
  State &state = stateOf(use.channel);
  const Used &used = state.usedBy(step.op, rank);
  bool writes = use.writes && !isa<ScaleRowsOp>(step.op); // which a consumer does
  bool produces = writes || used.taken == 0;
  int64_t over = produces ? state.blocks[rank].committed : used.released - used.partly;
  if (use.iteration >= over)
    return true;
  withNote(step.op->emitOpError() << "uses a tile of iteration " << use.iteration
                                  << " after it was handed over",
           "move the op in front of the one that hands the stage over");
  return false;
}

bool ChannelRun::access(size_t agent, const RoleStep &step, uint32_t rank) {
  for (const TileUse &use : step.uses) {
    if (!checkHeld(step, use, rank))
      return false;
    State &state = stateOf(use.channel);
    for (uint32_t other = 0; other < state.blocks.size(); ++other) {
      bool isOfPair = state.sharing.pairUses && (other ^ 1) == rank;
      bool touches =
          other == rank || (use.place.owner && (use.writes ? state.fills(rank, other) : isOfPair));
      if (touches && !order->access(agent, step, use, other))
        return false;
    }
  }
  order->finish(agent, step);
  return true;
}

/// (C629) A fence of tcgen05 stands between a wait and the operations that it orders.
bool ChannelRun::checkFence(size_t agent, Operation *op) {
  if (ordersTensorCore(op, roleOf(op))) {
    auto isUnfenced = [](auto wait) { return wait.getUnfenced(); };
    bool misses = isa<AwaitReleaseOp>(op)   ? isUnfenced(cast<AwaitReleaseOp>(op))
                  : isa<ConsumerWaitOp>(op) ? isUnfenced(cast<ConsumerWaitOp>(op))
                                            : isUnfenced(cast<ProducerAcquireOp>(op));
    unfenced[agent] = misses ? op : nullptr;
    return true;
  }
  Operation *wait = unfenced.lookup(agent);
  if (!wait || !usesTensorCore(op))
    return true;
  InFlightDiagnostic diag = op->emitOpError( // (C629)
      "must be behind a fence of the wait that it follows, which is unfenced");
  diag.attachNote(wait->getLoc()) << "leave 'unfenced' out here, where no later wait has the fence";
  return false;
}

bool ChannelRun::pass(size_t agent, const RoleStep &step, uint32_t rank) {
  State &state = stateOf(channelOf(step.op).getDefiningOp<ChannelOp>());
  if (!checkIteration(step, state, rank))
    return !(hasFailed = true);
  switch (cast<ChannelOpInterface>(step.op).getChannelUse()) {
  case ChannelUse::Acquire:
    return acquire(agent, state, rank);
  case ChannelUse::Wait:
    return wait(agent, step.op, state, rank);
  case ChannelUse::Commit:
    commit(agent, cast<ProducerCommitOp>(step.op), state, rank);
    return true;
  case ChannelUse::PartialRelease: {
    Used &used = state.usedBy(step.op, rank);
    arriveEmpty(agent, step.op, state, rank, used.released);
    ++used.released;
    used.partly = true;
    return true;
  }
  case ChannelUse::Release:
    if (!checkArrival(cast<ConsumerReleaseOp>(step.op), state, rank))
      return !(hasFailed = true);
    release(agent, cast<ConsumerReleaseOp>(step.op), state, rank);
    return true;
  case ChannelUse::AwaitRelease:
    return await(agent, cast<AwaitReleaseOp>(step.op), state, rank);
  default:
    return true;
  }
}

bool ChannelRun::step(size_t agent, const RoleStep &step, uint32_t rank) {
  if (order)
    order->advance(agent);
  if (channelOf(step.op) && !pass(agent, step, rank))
    return false;
  if (!order)
    return true;
  hasFailed |= !isa<LoopLikeOpInterface>(step.op) && !checkFence(agent, step.op);
  hasFailed |= !hasFailed && !access(agent, step, rank);
  return !hasFailed;
}

LogicalResult ChannelRun::checkCounts() const {
  for (const auto &[_, state] : states)
    for (const Passed &block : state.blocks)
      for (const Used &used : block.consumers) {
        uint32_t rank = &block - state.blocks.begin();
        bool isSame = used.taken == used.released && block.committed == block.acquired;
        for (uint32_t other = 0; other < state.blocks.size(); ++other)
          isSame &= !state.fills(other, rank) || !state.sharing.consumes(rank) ||
                    !state.sharing.produces(other) || state.blocks[other].committed == used.taken;
        if (isSame)
          continue;
        ChannelOp channel = state.channel;
        return withNote(channel.emitOpError()
                            << "stages must be used as often as they are filled, but "
                            << block.acquired << " are acquired, " << block.committed
                            << " committed, " << used.taken << " taken and " << used.released
                            << " released",
                        "give both ends the same loops, and each stage one release"); // (C133)
      }
  return success();
}

//===----------------------------------------------------------------------===//
// The run
//===----------------------------------------------------------------------===//

static LogicalResult reportDeadlock(ArrayRef<RoleTrace> traces) {
  SmallVector<Operation *> waiting;
  for (const RoleTrace &trace : traces)
    if (!trace.done())
      waiting.push_back(trace.current().op);
  auto nameOf = [](Operation *op) { return roleOf(op).getName(); };
  auto wanted = [](Operation *op) {
    return isa<ConsumerWaitOp>(op) ? "a full stage" : "an empty stage";
  };
  InFlightDiagnostic diag = waiting.front()->emitOpError()
                            << "role " << nameOf(waiting.front()) << " waits forever for "
                            << wanted(waiting.front());
  llvm::SmallPtrSet<Operation *, 4> said = {waiting.front()};
  for (Operation *op : waiting)
    if (said.insert(op).second) // once for all CTAs of the cluster
      diag.attachNote(op->getLoc()) << "role " << nameOf(op) << " waits here for " << wanted(op);
  return diag;
}

/// Returns the steps that every CTA of the cluster runs.
static FailureOr<SmallVector<RoleTrace>> tracesOf(gpu::GPUFuncOp kernel, hw::ClusterShape cluster,
                                                  bool pairs, bool isScheduled) {
  RoleLimits limits = {1, 0, isScheduled};
  for (ChannelOp channel : kernel.getBody().getOps<ChannelOp>())
    limits.trips = std::max<int64_t>(limits.trips, *channel.getDepth() + 1);
  auto roles = kernel.getBody().getOps<RoleRegionOp>();
  size_t numAgents = llvm::range_size(roles) * cluster.size();
  limits.steps = std::min(kMostOfRole, kMostSteps / numAgents);
  SmallVector<RoleTrace> traces;
  for (RoleRegionOp role : roles) {
    FailureOr<RoleSteps> steps = stepsOf(role, limits);
    if (failed(steps))
      return failure();
    auto shared = std::make_shared<const RoleSteps>(std::move(*steps));
    for (uint32_t rank = 0; rank < cluster.size(); ++rank)
      if (rank % 2 == 0 || !runsOnLeaders(role.getRole(), pairs))
        traces.push_back({shared, rank});
  }
  return traces;
}

/// The CTAs of a cluster of this shape come to their end.
static LogicalResult runCluster(gpu::GPUFuncOp kernel, hw::ClusterShape cluster) {
  bool pairs = usesPairs(kernel), isScheduled = kernel->hasAttr(PipeDialect::kScheduledAttr);
  FailureOr<SmallVector<RoleTrace>> traces = tracesOf(kernel, cluster, pairs, isScheduled);
  if (failed(traces))
    return failure();
  SmallVector<ChannelOp> all = llvm::to_vector(kernel.getBody().getOps<ChannelOp>());
  std::optional<AccessOrder> order;
  if (isScheduled)
    order.emplace(traces->size(), all);
  ChannelRun channels(cluster, pairs, order ? &*order : nullptr);
  bool moved = true;
  while (std::exchange(moved, false))
    for (auto [agent, trace] : llvm::enumerate(*traces))
      while (!channels.hasFailed && !trace.done() &&
             channels.step(agent, trace.current(), trace.rank)) {
        ++trace.next;
        moved = true;
      }
  if (channels.hasFailed)
    return failure();
  if (llvm::any_of(*traces, [](const RoleTrace &trace) { return !trace.steps->isWhole; }))
    return success(); // others wait for what comes behind the last step
  if (llvm::any_of(*traces, [](const RoleTrace &trace) { return !trace.done(); }))
    return reportDeadlock(*traces);
  if (order && failed(order->checkWritten()))
    return failure();
  return isScheduled ? channels.checkCounts() : success();
}

LogicalResult fp4::pipe::verifyProgress(gpu::GPUFuncOp kernel) {
  if (failed(runCluster(kernel, clusterOf(kernel))))
    return failure();
  std::optional<hw::ClusterShape> fallback = fallbackOf(kernel);
  return fallback ? runCluster(kernel, *fallback) : success();
}
