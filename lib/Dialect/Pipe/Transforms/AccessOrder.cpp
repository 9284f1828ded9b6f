//===- AccessOrder.cpp - Order of accesses to tiles -------------------------===//

#include "AccessOrder.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Scheduled.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

AccessOrder::AccessOrder(size_t numAgents, ArrayRef<ChannelOp> channels)
    : channels(channels), parts(FirstChannel + channels.size()),
      clocks(numAgents, Clock(numAgents * parts)), issuedWork(numAgents * parts) {}

uint32_t AccessOrder::partOf(ChannelOp channel) const {
  return FirstChannel + (llvm::find(channels, channel) - channels.begin());
}

/// Returns true when `op` is given to an engine and completes later.
static bool isAsynchronous(Engine engine) {
  return engine == Engine::Tma || engine == Engine::Tensor || engine == Engine::ScaleCopy ||
         engine == Engine::BulkStore;
}

AccessOrder::Access AccessOrder::describe(size_t agent, Operation *op, const TileUse &use) {
  auto engineOp = dyn_cast<EngineOpInterface>(op);
  Engine engine = engineOp ? engineOp.getEngine() : Engine::Threads;
  bool usesTensor = engine == Engine::Tensor || engine == Engine::ScaleCopy;
  Access now = {op, agent, 0, 0, 0, use.iteration, false, false, engine == Engine::ScaleCopy};
  now.issued = clocks[agent][component(agent, Issued)];
  uint32_t part = usesTensor               ? uint32_t(Tensor)
                  : isAsynchronous(engine) ? partOf(use.channel)
                                           : uint32_t(Issued);
  now.component = component(agent, part);
  now.time = part == Issued ? now.issued : ++issuedWork[now.component];
  now.isTensor = usesTensor && roleOf(op).isElected();
  bool isShared = use.place.owner && ChannelOp(use.channel).getType().isShared();
  now.isGeneric = isShared && !isAsynchronous(engine);
  return now;
}

bool AccessOrder::isOrdered(const Access &before, const Access &now) const {
  const Clock &clock = clocks[now.agent];
  // Copies and MMAs of tensor cores run in the order in which they are issued, but for a copy
  // behind the MMA that reads what it overwrites.
  if (before.isTensor && now.isTensor && (before.isScales || !now.isScales))
    return clock[component(before.agent, Issued)] >= before.issued;
  if (clock[before.component] < before.time)
    return false;
  return !before.isGeneric || now.isGeneric ||
         clock[component(before.agent, Fenced)] >= before.issued;
}

bool AccessOrder::checkAll(ArrayRef<Access> before, const Access &now, bool otherIteration) const {
  for (const Access &access : before) {
    bool isSame = access.iteration == now.iteration && roleOf(access.op) == roleOf(now.op);
    if ((otherIteration && isSame) || isOrdered(access, now))
      continue;
    InFlightDiagnostic diag = now.op->emitOpError() // (C628)
                              << "accesses a tile in iteration " << now.iteration
                              << " while an earlier access may not be over";
    diag.attachNote(access.op->getLoc())
        << "'" << access.op->getName() << "' of role " << roleOf(access.op).getName()
        << " accesses it here, in iteration " << access.iteration
        << "; wait for its arrival in between, with a fence where threads read for copies";
    return false;
  }
  return true;
}

void AccessOrder::record(SmallVectorImpl<Access> &all, const Access &now) {
  for (Access &access : all)
    if (access.component == now.component && access.isGeneric == now.isGeneric) {
      access = now;
      return;
    }
  all.push_back(now);
}

bool AccessOrder::access(size_t agent, const RoleStep &step, const TileUse &use, uint32_t rank) {
  Access now = describe(agent, step.op, use);
  History &history = histories[{rank, use.place}];
  if (!use.writes) {
    for (const Access &write : history.writes)
      if (write.iteration > now.iteration) { // (C628)
        InFlightDiagnostic diag = step.op->emitOpError()
                                  << "reads a tile of iteration " << now.iteration
                                  << " that iteration " << write.iteration << " overwrites";
        diag.attachNote(write.op->getLoc()) << "overwritten here; wait until the stage is released";
        return false;
      }
    if (!checkAll(history.writes, now, /*otherIteration=*/false))
      return false;
    auto isOfNow = [&](const Access &write) { return write.iteration == now.iteration; };
    if (!unwritten && llvm::none_of(history.writes, isOfNow))
      unwritten = now;
    record(history.reads, now);
    return true;
  }
  if (!checkAll(history.writes, now, /*otherIteration=*/true) ||
      !checkAll(history.reads, now, /*otherIteration=*/true))
    return false;
  if (!history.writes.empty() && history.writes.front().iteration != now.iteration)
    history = {};
  record(history.writes, now);
  return true;
}

LogicalResult AccessOrder::checkWritten() const {
  if (!unwritten)
    return success();
  return withNote(
      unwritten->op->emitOpError() // (C628)
          << "reads a tile of iteration " << unwritten->iteration
          << " that no operation has written",
      "fill the tile in each iteration before its stage is handed over, and copy scales "
      "to the columns that are read");
}

void AccessOrder::finish(size_t agent, const RoleStep &step) {
  auto engineOp = dyn_cast<EngineOpInterface>(step.op);
  bool isLoop = isa<LoopLikeOpInterface>(step.op);
  if (!isLoop &&
      (!engineOp || engineOp.getEngine() != Engine::Tensor || roleOf(step.op).isElected()))
    return;
  auto mma = dyn_cast<MmaOp>(step.op);
  if (mma && mma.getFencing())
    fence(agent);
  uint32_t place = component(agent, Tensor);
  uint32_t running = mma && mma.goesOn() ? step.uses.size() : 0;
  clocks[agent][place] = std::max(clocks[agent][place], issuedWork[place] - running);
}

void AccessOrder::fence(size_t agent) {
  Clock &clock = clocks[agent];
  clock[component(agent, Fenced)] = clock[component(agent, Issued)];
}

Clock AccessOrder::arrival(size_t agent, Engine engine, ChannelOp channel) {
  Clock clock = clocks[agent];
  uint32_t part = engine == Engine::Tensor ? uint32_t(Tensor) : partOf(channel);
  if (engine == Engine::Tensor || engine == Engine::Tma)
    clock[component(agent, part)] = issuedWork[component(agent, part)];
  return clock;
}

void AccessOrder::join(size_t agent, const Clock &clock) {
  if (clock.empty())
    return;
  Clock &mine = clocks[agent];
  for (size_t i = 0; i < mine.size(); ++i)
    mine[i] = std::max(mine[i], clock[i]);
}

void AccessOrder::completeStores(size_t agent, ChannelOp channel, int64_t delay) {
  std::vector<uint32_t> &ends = stores[{agent, channel.getAsOpaquePointer()}];
  uint32_t place = component(agent, partOf(channel));
  ends.push_back(issuedWork[place]);
  if (int64_t(ends.size()) > delay)
    clocks[agent][place] = std::max(clocks[agent][place], ends[ends.size() - 1 - delay]);
}
