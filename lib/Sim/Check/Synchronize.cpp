//===- Synchronize.cpp - Synchronization among actors ---------------------===//
//
// Barriers, mbarriers, and fences of proxies and of tcgen05; MemoryOrder.cpp has fences of threads
// and flags in memory. A release passes on the clocks of its warp, and an acquire takes them over.
// Operations that are .relaxed or too narrow in scope do so only for the `loose` clock. This clock
// selects the words of a report and, with the tcgen05 fences, says that tensor memory may be used
// (PTX ISA, "tcgen05 memory consistency model, canonical synchronization patterns").
//===----------------------------------------------------------------------===//
#include "HazardImpl.h"

namespace fp4::sim {

using namespace check;

/// An .aligned instruction of lanes that a branch has split.
void HazardChecker::Impl::partedWarp(ClusterState &cluster, const BarrierEvent &event) {
  if (!options.strict)
    return;
  Access made = begin(cluster, event.actor, event.at, Space::Generic, false);
  Record branch = made.record;
  branch.pc = uint32_t(event.count);
  report(made, branch, HazardRule::PartedWarp, 0);
}

//===----------------------------------------------------------------------===//
// mbarriers
//===----------------------------------------------------------------------===//

/// Any operation on an mbarrier but init.
void HazardChecker::Impl::useMbarrier(ClusterState &cluster, const BarrierEvent &event) {
  auto it = cluster.mbarriers.find(uint32_t(event.object));
  if (it == cluster.mbarriers.end())
    return;
  const MbarrierState &state = it->second;
  Access made = begin(cluster, event.actor, event.at, Space::SharedCluster, false, event.laneMask);
  if (state.init.sameAgent(made.record))
    return;
  // A .relaxed cluster barrier without the fence is what CUTLASS has for one of its barriers.
  const VectorClock &known = options.strict ? made.now->generic : made.now->loose;
  if (known.at(state.init.slot()) < state.init.epoch() &&
      !isReleased(laneHistory, known, state.init, state.init.mask))
    return report(made, state.init, HazardRule::MbarrierInit, it->first);
  // cp.async is of the generic proxy: a barrier is enough for its arrival.
  const bool needsFence =
      event.actor.ticket && cluster.ticket(event.actor.ticket).proxy == Proxy::Async;
  // A barrier that releases and acquires is enough in practice, as CUTLASS has it in a cluster, and
  // for mbarriers of the CTA whose operations signal them, as in Triton, any.
  const bool own = event.actor.ctaRank == event.object >> rankShift;
  const bool ordered = made.now->generic.at(state.init.slot()) >= state.init.epoch();
  if (needsFence && !state.fenced && (options.strict || !(own || ordered)))
    report(made, state.init, HazardRule::MbarrierInitFence, it->first);
}

/// Returns true when a wait in the scope of the CTA takes this arrival over. A thread of another
/// CTA is out of scope, and so is its commit, which releases in the scope of the cluster. The bytes
/// of a copy are visible to whoever waits for them.
bool HazardChecker::Impl::isNear(ClusterState &cluster, const BarrierEvent &event) const {
  return event.actor.ctaRank == event.object >> rankShift ||
         (event.actor.ticket && cluster.ticket(event.actor.ticket).kind != TicketKind::Commit);
}

void HazardChecker::Impl::arrive(ClusterState &cluster, const BarrierEvent &event, Clocks &to,
                                 Clocks *near) {
  if (near && !isNear(cluster, event))
    near = nullptr;
  if (event.actor.ticket) { // a completion: what it knew, and itself
    for (Clocks *clocks : {&to, near})
      if (clocks)
        clocks->join(cluster.clocks(event.actor));
    return;
  }
  if (event.op == BarrierOp::MbarArrive && !event.laneMask)
    return; // a later lane arrives too: a phase that ends before does not cover what it did
  WarpState &warp = cluster.warp(event.actor);
  const bool mbarrier = event.op == BarrierOp::MbarArrive || event.op == BarrierOp::MbarCompleteTx;
  const bool outOfScope = options.strict && mbarrier && event.scope == Scope::Cta &&
                          event.actor.ctaRank != event.object >> rankShift;
  const Clocks &published = cluster.published(warp, event.laneMask, event.at.pc);
  for (Clocks *clocks : {&to, near}) {
    if (!clocks)
      continue;
    if (!outOfScope && releases(event.order))
      clocks->join(published);
    else if (!outOfScope && !warp.released.empty())
      clocks->join(warp.released.back().clocks);
    outOfScope ? clocks->joinLoose(published) : clocks->joinExecution(published);
    join(clocks->observed, published.fences); // a write of the mbarrier, for who reads it
  }
  cluster.advance(warp);
}

/// A wait that acquires has passed.
static void acquired(ClusterState &cluster, const BarrierEvent &event, const Clocks &from) {
  WarpState &warp = cluster.warp(event.actor);
  cluster.acquire(warp, event.laneMask, from);
  if (event.op == BarrierOp::CtaPass)
    cluster.meet(warp, event.laneMask);
}

void HazardChecker::Impl::wait(ClusterState &cluster, const BarrierEvent &event, const Clocks &from,
                               const Clocks *near) {
  WarpState &warp = cluster.warp(event.actor);
  warp.order.sync = ++cluster.sequence;
  const Clocks &inScope = near && event.scope == Scope::Cta ? *near : from;
  cluster.teach(warp, allLanes, [&](Clocks &clocks) {
    clocks.joinLoose(from);
    clocks.joinExecution(inScope);
    join(clocks.observed, from.observed);
  });
  if (acquires(event.order))
    return acquired(cluster, event, inScope);
  warp.unacquired[OwnCta].join(near ? *near : from);
  if (near)
    warp.unacquired[OwnCluster].join(inScope);
}

/// A wait instruction that passes twice for one phase may have a parity that is not flipped.
void HazardChecker::Impl::waited(ClusterState &cluster, const BarrierEvent &event,
                                 MbarrierState &state) {
  WaitHistory &history = state.waits[{cluster.warp(event.actor).slot, event.at.pc}];
  if (history.phase != event.count)
    history = {event.count, 0, false, {}};
  history.repeated |= (history.lanes & event.laneMask) != 0;
  history.lanes |= event.laneMask;
  history.last = begin(cluster, event.actor, event.at, Space::SharedCluster, false).record;
}

/// The phase of `event` is over: every wait for the one before must have happened before that.
void HazardChecker::Impl::findLappedWaits(ClusterState &cluster, const BarrierEvent &event,
                                          const MbarrierState &state) {
  // Lanes pass a wait together: which of them arrives makes no difference.
  const VectorClock &known = options.strict ? state.passed.generic : state.passed.loose;
  const auto isKnown = [&](Record wait) {
    wait.sequence = 0;
    return known.at(wait.slot()) >= wait.epoch() || isReleased(laneHistory, known, wait, 0);
  };
  for (const auto &[who, history] : state.waits)
    if (history.phase + 1 == event.count && !isKnown(history.last)) {
      Access made = begin(cluster, event.actor, event.at, Space::SharedCluster, false);
      report(made, history.last, HazardRule::LappedWait, uint32_t(event.object));
    }
}

/// Phase `consumed` is over: whoever passed twice before it and never waited for it is told.
void HazardChecker::Impl::findStalePhases(ClusterState &cluster, uint32_t address,
                                          MbarrierState &state, uint64_t consumed) {
  for (auto &[who, history] : state.waits) {
    const uint32_t slot = who.first;
    if (!history.repeated || history.phase + 1 != consumed)
      continue;
    history.repeated = false;
    const bool elsewhere = std::any_of(state.waits.begin(), state.waits.end(), [&](auto &other) {
      return other.first.first == slot && other.second.phase != ~0ull &&
             other.second.phase >= consumed;
    });
    if (elsewhere)
      continue;
    const WarpState &warp = cluster.warps[slot];
    Access made = begin(cluster, {cluster.index, warp.rank, warp.index, 0}, {who.second, 0},
                        Space::SharedCluster, false);
    report(made, made.record, HazardRule::StalePhase, address);
  }
}

/// Makes a record of one lane: the last that arrives with this instruction.
static Record remoteArrival(Record record, uint32_t lanes) {
  const int last = lanes ? 31 - std::countl_zero(lanes) : 0;
  record.who |= Record::laneBits(last) | wholeCells << Record::laneShiftAt;
  return record;
}

void HazardChecker::Impl::mbarrier(ClusterState &cluster, const BarrierEvent &event) {
  const uint32_t address = uint32_t(event.object);
  if (event.op == BarrierOp::MbarInit || event.op == BarrierOp::MbarInval) {
    Access made = begin(cluster, event.actor, event.at, Space::SharedCluster, true);
    const int lane = event.laneMask ? std::countr_zero(event.laneMask) : 0;
    range(made, address, 8, lane, 3);
    cluster.mbarriers.erase(address);
    if (event.op == BarrierOp::MbarInit)
      cluster.mbarriers[address].init = made.record;
    return;
  }
  if (event.op != BarrierOp::MbarPhaseDone)
    useMbarrier(cluster, event);
  MbarrierState &state = cluster.mbarriers[address];
  const bool scoped = options.strict && ctasPerCluster > 1;
  if (event.op == BarrierOp::MbarArrive || event.op == BarrierOp::MbarCompleteTx) {
    if (!event.actor.ticket && event.actor.ctaRank != address >> rankShift)
      state.remote[cluster.warp(event.actor).slot] = remoteArrival(
          begin(cluster, event.actor, event.at, Space::SharedCluster, true).record, event.laneMask);
    arrive(cluster, event, state.arrived, scoped ? &state.arrivedNear : nullptr);
  } else if (event.op == BarrierOp::MbarPhaseDone) {
    state.passed = state.arrived;
    state.passedNear = state.arrivedNear;
    state.phase = event.count;
    findLappedWaits(cluster, event, state);
    if (event.count)
      findStalePhases(cluster, address, state, event.count - 1);
  } else if (event.op == BarrierOp::MbarWaitPass) {
    waited(cluster, event, state);
    if (event.count == state.phase)
      wait(cluster, event, state.passed, scoped ? &state.passedNear : nullptr);
  }
}

//===----------------------------------------------------------------------===//
// Fences
//===----------------------------------------------------------------------===//

namespace {

/// All but the newest groups of each thread are read, or done.
void waitForGroups(ClusterState &cluster, const FenceEvent &event, WarpState &warp) {
  for (uint32_t rest = event.laneMask; rest; rest &= rest - 1) {
    auto it = cluster.groups.find({warp.slot, uint32_t(std::countr_zero(rest))});
    if (it == cluster.groups.end())
      continue;
    auto &committed = it->second.committed;
    for (size_t i = 0; i + event.groups < committed.size(); ++i)
      for (const TicketRef &ref : committed[i])
        cluster.teach(warp, rest & (0 - rest),
                      [&](Clocks &clocks) { cluster.learn(clocks, ref, !event.readOnly); });
    while (!event.readOnly && committed.size() > event.groups)
      committed.pop_front();
  }
}

void commitGroups(ClusterState &cluster, const FenceEvent &event, const WarpState &warp) {
  for (uint32_t rest = event.laneMask; rest; rest &= rest - 1) {
    ThreadGroups &groups = cluster.groups[{warp.slot, uint32_t(std::countr_zero(rest))}];
    groups.committed.push_back(std::move(groups.open));
    groups.open.clear();
  }
}

void fenceMbarriers(ClusterState &cluster, const WarpState &warp) {
  for (auto &[address, state] : cluster.mbarriers)
    state.fenced |= warp.clocks.generic.at(state.init.slot()) >= state.init.epoch();
}

void tensorMapFence(ClusterState &cluster, const FenceEvent &event, WarpState &warp) {
  constexpr size_t kept = 64; // of one map and warp
  if (releases(event.order)) {
    const VectorClock done = cluster.published(warp, event.laneMask, event.at.pc).generic;
    cluster.teach(warp, event.laneMask, [&](Clocks &clocks) { clocks.maps.join(done); });
  } else {
    auto &acquires = cluster.mapAcquires[event.groups][warp.slot];
    const VectorClock &maps = cluster.known(warp, event.laneMask).maps;
    if (!acquires.empty() && acquires.back().released == maps)
      return; // whoever knows of this one knows of that one too
    acquires.push_back({warp.epoch, maps});
    if (acquires.size() > kept)
      acquires.pop_front();
  }
  cluster.advance(warp);
}

/// Makes accesses of the generic proxy visible to the async proxy, in other clusters too.
void fenceForeign(Clocks &clocks) {
  if (!clocks.foreign)
    return;
  auto foreign = std::make_shared<Foreign>(*clocks.foreign);
  foreign->fence();
  clocks.foreign = std::move(foreign);
}

void proxyFence(ClusterState &cluster, const FenceEvent &event, WarpState &warp) {
  const VectorClock done = cluster.published(warp, event.laneMask, event.at.pc).generic;
  if (event.space != Space::Global)
    fenceMbarriers(cluster, warp);
  cluster.teach(warp, event.laneMask, [&](Clocks &clocks) {
    if (event.space != Space::Global)
      clocks.async.join(done);
    if (isShared(event.space))
      return;
    clocks.asyncGlobal.join(done);
    fenceForeign(clocks);
  });
  cluster.advance(warp);
}

/// tcgen05.wait: the warp knows that its loads (or stores) are done, and its later tcgen05
/// operations come after them.
void drain(ClusterState &cluster, WarpState &warp, std::vector<TicketRef> &operations) {
  for (const TicketRef &ref : operations) {
    cluster.teach(warp, allLanes, [&](Clocks &clocks) { cluster.learn(clocks, ref, false); });
    warp.tensorIn.raise(ref.slot, ref.epoch);
  }
  operations.clear();
}

/// One tcgen05.ld, cp.async or wgmma is done.
void ticketWaited(ClusterState &cluster, const FenceEvent &event, WarpState &warp) {
  cluster.mmaWaited(warp, event.groups);
  for (auto *list : {&warp.loads, &warp.copies})
    std::erase_if(*list, [&](const TicketRef &ref) {
      if (cluster.ticketAt(ref.slot).id != event.groups)
        return false;
      cluster.teach(warp, allLanes, [&](Clocks &clocks) { cluster.learn(clocks, ref, false); });
      return true;
    });
}

/// Publishes the warp's tcgen05 operations, so that others may be ordered after them.
void publishTensor(ClusterState &cluster, WarpState &warp) {
  cluster.teach(warp, allLanes, [&](Clocks &clocks) {
    clocks.tensor.join(clocks.generic);
    for (const auto &[thread, pipeline] : warp.pipelines)
      for (const Pipeline::Alike &earlier : pipeline.issued)
        clocks.tensor.join(earlier.clock);
  });
}

/// Orders later tcgen05 operations of the warp after those that were published to it, and after
/// everything else that it has synchronized with.
void acquireTensor(ClusterState &cluster, const FenceEvent &event, WarpState &warp) {
  const Clocks &known = cluster.known(warp, event.laneMask);
  warp.tensorIn.join(known.tensor);
  if (cluster.strict)
    warp.fenced.join(known.generic);
}

} // namespace

void HazardChecker::Impl::fence(ClusterState &cluster, const FenceEvent &event) {
  WarpState &warp = cluster.warp(event.actor);
  switch (event.kind) {
  case FenceKind::Thread:
    return threadFence(cluster, event);
  case FenceKind::ProxyAsync:
    return proxyFence(cluster, event, warp);
  case FenceKind::ProxyTensormap:
    return tensorMapFence(cluster, event, warp);
  case FenceKind::MbarrierInit:
    // Also a release, of the initializations: a relaxed cluster barrier then publishes them.
    fenceMbarriers(cluster, warp);
    warp.release(Scope::Cluster, cluster.published(warp, event.laneMask, event.at.pc));
    return cluster.advance(warp);
  case FenceKind::BulkCommit:
    return commitGroups(cluster, event, warp);
  case FenceKind::BulkWait:
    return waitForGroups(cluster, event, warp);
  case FenceKind::Tcgen05Before:
    return publishTensor(cluster, warp);
  case FenceKind::Tcgen05After:
    return acquireTensor(cluster, event, warp);
  case FenceKind::Tcgen05WaitLd:
    return drain(cluster, warp, warp.loads);
  case FenceKind::Tcgen05WaitSt:
    return drain(cluster, warp, warp.stores);
  case FenceKind::TicketWaited:
    return ticketWaited(cluster, event, warp);
  case FenceKind::GridTrigger:
  case FenceKind::GridWait:
    return signalGrid(cluster, event);
  case FenceKind::WgmmaUnfenced:
    return unfencedWgmma(cluster, event);
  default:
    return;
  }
}

} // namespace fp4::sim
