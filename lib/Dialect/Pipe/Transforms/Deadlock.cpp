//===- Deadlock.cpp - Roles that wait for each other ----------------------===//

#include "Deadlock.h"

#include "ChannelEnds.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp4::pipe;

/// Channel ops of all roles after which a kernel is not run: deep loop nests grow exponentially.
static constexpr size_t kMaxSteps = 1 << 18;

namespace {
struct RoleTrace {
  std::vector<Operation *> steps;
  size_t next = 0;

  bool done() const { return next == steps.size(); }
};

/// Stages of a channel in use, from acquire to release, and filled but not yet taken.
struct Occupancy {
  int64_t used = 0, full = 0;
};
} // namespace

/// Appends the channel ops of `block` in the order of execution; false when there are too many.
static bool unroll(Block *block, int64_t trips, std::vector<Operation *> &steps) {
  for (Operation &op : *block) {
    if (isTake(&op) || isHandOver(&op))
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

/// Executes one op; false when it has to wait.
static bool step(Operation *op, Occupancy &channel, int64_t depth) {
  if (isa<ProducerAcquireOp>(op)) {
    if (channel.used == depth)
      return false;
    ++channel.used;
  } else if (isa<ConsumerWaitOp>(op)) {
    if (channel.full == 0)
      return false;
    --channel.full;
  } else if (isa<ProducerCommitOp>(op)) {
    ++channel.full;
  } else {
    --channel.used;
  }
  return true;
}

static LogicalResult reportDeadlock(ArrayRef<RoleTrace> traces) {
  SmallVector<Operation *> waiting;
  for (const RoleTrace &trace : traces)
    if (!trace.done())
      waiting.push_back(trace.steps[trace.next]);
  auto roleOf = [](Operation *op) {
    return op->getParentOfType<RoleRegionOp>().getRole().getName();
  };
  auto wanted = [](Operation *op) {
    return isa<ProducerAcquireOp>(op) ? "an empty stage" : "a full stage";
  };
  InFlightDiagnostic diag = waiting.front()->emitOpError()
                            << "role " << roleOf(waiting.front()) << " waits forever for "
                            << wanted(waiting.front());
  for (Operation *op : ArrayRef(waiting).drop_front())
    diag.attachNote(op->getLoc()) << "role " << roleOf(op) << " waits here for " << wanted(op);
  return diag;
}

LogicalResult fp4::pipe::verifyProgress(gpu::GPUFuncOp kernel) {
  llvm::DenseMap<Value, Occupancy> channels;
  int64_t trips = 1;
  for (ChannelOp channel : kernel.getBody().getOps<ChannelOp>())
    trips = std::max<int64_t>(trips, *channel.getDepth() + 1);
  SmallVector<RoleTrace> traces;
  for (RoleRegionOp role : kernel.getBody().getOps<RoleRegionOp>()) {
    traces.emplace_back();
    if (!unroll(&role.getBody().front(), trips, traces.back().steps))
      return success();
  }
  bool moved = true;
  while (std::exchange(moved, false))
    for (RoleTrace &trace : traces)
      while (!trace.done()) {
        Operation *op = trace.steps[trace.next];
        auto channel = channelOf(op).getDefiningOp<ChannelOp>();
        if (!step(op, channels[channel], *channel.getDepth()))
          break;
        ++trace.next;
        moved = true;
      }
  return llvm::all_of(traces, [](const RoleTrace &trace) { return trace.done(); })
             ? success()
             : reportDeadlock(traces);
}
