//===- Deadlock.cpp - Roles that wait for each other ----------------------===//

#include "Deadlock.h"

#include "ChannelEnds.h"

#include "fp4/Dialect/Pipe/IR/Cluster.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp4::pipe;

/// Channel ops of all roles after which a kernel is not run: deep loop nests grow exponentially.
static constexpr size_t kMaxSteps = 1 << 18;

namespace {
/// One role in one CTA of the cluster.
struct RoleTrace {
  std::shared_ptr<const std::vector<Operation *>> steps; ///< equal in all CTAs
  uint32_t rank;                                         ///< the CTA
  size_t next = 0;

  bool done() const { return next == steps->size(); }
  Operation *current() const { return (*steps)[next]; }
};

/// Stages of a channel that a consumer in one CTA has passed.
struct Used {
  int64_t taken = 0, released = 0;
  bool partly = false; ///< the stage that it holds is released in part
};

/// Stages of a channel that the ends in one CTA have passed.
struct Passed {
  int64_t acquired = 0, committed = 0;
  SmallVector<Used, 1> consumers;
};

/// The channels of a cluster.
class ChannelRun {
public:
  ChannelRun(fp4::hw::ClusterShape cluster, bool pairs) : cluster(cluster), pairs(pairs) {}
  /// Executes one op of CTA `rank`; false when it has to wait.
  bool step(Operation *op, uint32_t rank);

private:
  struct State {
    ChannelOp channel;
    ChannelSharing sharing;
    SmallVector<Passed> blocks; ///< by rank
    /// Returns the uses that the consumer to which `op` belongs has passed in CTA `rank`.
    Used &usedBy(Operation *op, uint32_t rank);
  };
  State &stateOf(Operation *op);
  static bool isEmptyFor(const State &state, uint32_t producer);
  static bool isFullFor(const State &state, uint32_t consumer, const Used &used);

  fp4::hw::ClusterShape cluster;
  bool pairs;
  llvm::DenseMap<Value, State> states;
};
} // namespace

/// Appends the channel ops of `block` in the order of execution; false when there are too many.
static bool unroll(Block *block, int64_t trips, std::vector<Operation *> &steps) {
  for (Operation &op : *block) {
    if (isTake(&op) || isa<PartialReleaseOp>(op) || isHandOver(&op))
      steps.push_back(&op);
    int64_t times = isa<LoopLikeOpInterface>(op) ? trips : 1;
    for (int64_t i = 0; i < times; ++i)
      for (Region &region : op.getRegions().take_front(1))
        for (Block &inner : region)
          if (!unroll(&inner, trips, steps))
            return false;
  }
  return steps.size() <= kMaxSteps;
}

ChannelRun::State &ChannelRun::stateOf(Operation *op) {
  State &state = states[channelOf(op)];
  if (state.blocks.empty()) {
    state.channel = channelOf(op).getDefiningOp<ChannelOp>();
    state.sharing = sharingOf(state.channel, pairs).in(cluster);
    state.blocks.resize(state.sharing.cluster.size());
    for (Passed &block : state.blocks)
      block.consumers.resize(state.channel.getConsumers().size());
  }
  return state;
}

/// All consumers of the stages that `producer` fills have released the one it wants.
bool ChannelRun::isEmptyFor(const State &state, uint32_t producer) {
  ChannelOp channel = state.channel;
  // An overlapping stage is filled when the one before has been released.
  int64_t unreleased = channel.overlaps() ? 1 : *channel.getDepth();
  int64_t needed = state.blocks[producer].acquired + 1 - unreleased;
  needed += needed > 0 ? channel.getReleaseDelay() : 0;
  for (uint32_t rank = 0; rank < state.blocks.size(); ++rank)
    if (state.sharing.consumes(rank) && (state.sharing.producersOf(rank) >> producer & 1) &&
        llvm::any_of(state.blocks[rank].consumers,
                     [&](const Used &used) { return used.released < needed; }))
      return false;
  return true;
}

Used &ChannelRun::State::usedBy(Operation *op, uint32_t rank) {
  RoleAttr role = op->getParentOfType<RoleRegionOp>().getRole();
  return blocks[rank].consumers[channel.getConsumerNumber(role).value_or(0)];
}

/// All producers of the stages of `consumer` have committed the one it wants.
bool ChannelRun::isFullFor(const State &state, uint32_t consumer, const Used &used) {
  for (uint32_t rank = 0; rank < state.blocks.size(); ++rank)
    if ((state.sharing.producersOf(consumer) >> rank & 1) &&
        state.blocks[rank].committed <= used.taken)
      return false;
  return true;
}

bool ChannelRun::step(Operation *op, uint32_t rank) {
  State &state = stateOf(op);
  Passed &block = state.blocks[rank];
  switch (cast<ChannelOpInterface>(op).getChannelUse()) {
  case ChannelUse::Acquire:
    if (!isEmptyFor(state, rank))
      return false;
    ++block.acquired;
    return true;
  case ChannelUse::Wait:
    if (!isFullFor(state, rank, state.usedBy(op, rank)))
      return false;
    ++state.usedBy(op, rank).taken;
    return true;
  case ChannelUse::Commit:
    ++block.committed;
    return true;
  case ChannelUse::PartialRelease:
    ++state.usedBy(op, rank).released;
    state.usedBy(op, rank).partly = true;
    return true;
  case ChannelUse::Release: {
    Used &used = state.usedBy(op, rank);
    used.released += !std::exchange(used.partly, false);
    return true;
  }
  default:
    return true;
  }
}

static LogicalResult reportDeadlock(ArrayRef<RoleTrace> traces) {
  SmallVector<Operation *> waiting;
  for (const RoleTrace &trace : traces)
    if (!trace.done())
      waiting.push_back(trace.current());
  auto roleOf = [](Operation *op) {
    return op->getParentOfType<RoleRegionOp>().getRole().getName();
  };
  auto wanted = [](Operation *op) {
    return isa<ProducerAcquireOp>(op) ? "an empty stage" : "a full stage";
  };
  InFlightDiagnostic diag = waiting.front()->emitOpError()
                            << "role " << roleOf(waiting.front()) << " waits forever for "
                            << wanted(waiting.front());
  llvm::SmallPtrSet<Operation *, 4> said = {waiting.front()};
  for (Operation *op : waiting)
    if (said.insert(op).second) // once for all CTAs of the cluster
      diag.attachNote(op->getLoc()) << "role " << roleOf(op) << " waits here for " << wanted(op);
  return diag;
}

/// Returns the steps that every CTA of the cluster runs; nothing when there are too many.
static SmallVector<RoleTrace> tracesOf(gpu::GPUFuncOp kernel, fp4::hw::ClusterShape cluster,
                                       bool pairs, int64_t trips) {
  SmallVector<RoleTrace> traces;
  for (RoleRegionOp role : kernel.getBody().getOps<RoleRegionOp>()) {
    auto steps = std::make_shared<std::vector<Operation *>>();
    if (!unroll(&role.getBody().front(), trips, *steps))
      return {};
    for (uint32_t rank = 0; rank < cluster.size(); ++rank)
      if (rank % 2 == 0 || !runsOnLeaders(role.getRole(), pairs))
        traces.push_back({steps, rank});
  }
  return traces;
}

/// The CTAs of a cluster of this shape come to their end.
static LogicalResult runCluster(gpu::GPUFuncOp kernel, fp4::hw::ClusterShape cluster) {
  bool pairs = usesPairs(kernel);
  int64_t trips = 1;
  for (ChannelOp channel : kernel.getBody().getOps<ChannelOp>())
    trips = std::max<int64_t>(trips, *channel.getDepth() + 1);
  SmallVector<RoleTrace> traces = tracesOf(kernel, cluster, pairs, trips);
  ChannelRun channels(cluster, pairs);
  bool moved = true;
  while (std::exchange(moved, false))
    for (RoleTrace &trace : traces)
      while (!trace.done() && channels.step(trace.current(), trace.rank)) {
        ++trace.next;
        moved = true;
      }
  return llvm::all_of(traces, [](const RoleTrace &trace) { return trace.done(); })
             ? success()
             : reportDeadlock(traces);
}

LogicalResult fp4::pipe::verifyProgress(gpu::GPUFuncOp kernel) {
  if (failed(runCluster(kernel, clusterOf(kernel))))
    return failure();
  std::optional<fp4::hw::ClusterShape> fallback = fallbackOf(kernel);
  return fallback ? runCluster(kernel, *fallback) : success();
}
