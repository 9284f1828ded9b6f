//===- HazardChecker.cpp - Happens-before from the event stream -----------===//
//
// PTX ISA, "Memory Consistency Model" and "Asynchronous operations": a ticket begins after what its
// issuer knew and ends before what its completion signals.
//
//===----------------------------------------------------------------------===//
#include "Apart.h"
#include "fp4/Sim/Program.h"

#include <fmt/format.h>

namespace fp4::sim {

using namespace check;

HazardChecker::HazardChecker(HazardOptions options) : impl(std::make_unique<Impl>()) {
  impl->options = options;
}
HazardChecker::~HazardChecker() = default;

const std::vector<HazardReport> &HazardChecker::reports() const { return impl->findings.reports; }
uint64_t HazardChecker::found() const { return impl->findings.found; }

/// Removes the reports. A hazard that was reported once is not reported again.
void HazardChecker::clear() {
  impl->findings.reports.clear();
  for (auto &[pair, report] : impl->findings.seen)
    report = ~size_t(0);
}

ClusterState &HazardChecker::Impl::cluster(uint32_t index) {
  if (lastCluster && lastCluster->index == index)
    return *lastCluster;
  auto &state = clusters[index];
  if (!state)
    state = std::make_unique<ClusterState>(index, ctasPerCluster, warpsPerCta, options.strict,
                                           laneHistory);
  lastCluster = state.get();
  return *state;
}

void HazardChecker::onLaunch(const LaunchEvent &event) {
  if (!event.again)
    impl->keepLaunch(event.kernel, event.dependence);
  impl->program = &event.program.impl();
  impl->kernel = impl->program->find(event.kernel);
  auto &numbers = impl->findings.kernelNumbers;
  impl->kernelNumber = numbers
                           .try_emplace(fmt::format("{}:{}", impl->program->name, event.kernel),
                                        uint32_t(numbers.size()))
                           .first->second;
  impl->memory = &event.memory;
  impl->ctasPerCluster = event.ctasPerCluster;
  impl->warpsPerCta = event.warpsPerCta;
  impl->loadUses.clear();
  impl->forgetAccesses(); // launches are in order
}

void HazardChecker::Impl::forgetAccesses() {
  open.reset();
  tmemAllocs.clear();
  clusters.clear();
  lastCluster = nullptr;
  global.clear();
  laneHistory.clear();
}

bool HazardChecker::Impl::goesOn(const MemoryEvent &event) {
  if (!open || open->ticket->id != event.actor.ticket ||
      open->cluster.index != event.actor.cluster || open->record.pc != event.at.pc ||
      open->space != event.space || event.kind != AccessKind::Read ||
      event.proxy == Proxy::Tensormap)
    return false;
  if (isShared(event.space))
    checkExited(open->cluster, *open, event.addresses[0]);
  range(*open, event.addresses[0], event.bytes, 0, wholeCells);
  return true;
}

/// Global memory: who writes initializes, who reads needs that.
void HazardChecker::Impl::initialized(Access &made, const Record &record, uint64_t address,
                                      uint64_t bytes) {
  if (record.write())
    memory->markWritten(address, bytes);
  else if (const auto bad = memory->firstUnwritten(address, bytes))
    report(made, record, HazardRule::UninitializedRead, *bad);
}

void HazardChecker::onMemory(const MemoryEvent &event) {
  Impl &now = impl->told();
  // The shared memory that a ticket writes was checked when the ticket was issued.
  if (event.actor.ticket && event.kind == AccessKind::Write && isShared(event.space))
    return;
  if (now.goesOn(event))
    return;
  ClusterState &cluster = now.next(event);
  if (event.space == Space::Tmem)
    return now.accessTmem(cluster, event);
  if (event.proxy == Proxy::Tensormap)
    return now.useTensorMap(cluster, event);
  if (isShared(event.space) || event.space == Space::Global)
    now.access(cluster, event);
}

void HazardChecker::onBarrier(const BarrierEvent &event) {
  Impl &now = impl->told();
  ClusterState &cluster = now.next(event);
  switch (event.op) {
  case BarrierOp::CtaArrive:
    return now.arrive(cluster, event,
                      cluster.barriers[{event.actor.ctaRank, event.object}][event.count]);
  case BarrierOp::CtaPass: {
    BarrierState &state = cluster.barriers[{event.actor.ctaRank, event.object}];
    now.wait(cluster, event, state[event.count]);
    if (event.count >= 2)
      state.erase(state.begin(), state.lower_bound(event.count - 1));
    return;
  }
  case BarrierOp::ClusterArrive:
    return now.arrive(cluster, event, cluster.clusterBarrier[event.count]);
  case BarrierOp::ClusterWait:
    return now.wait(cluster, event, cluster.clusterBarrier[event.count - 1]);
  case BarrierOp::WarpSync:
    cluster.warp(event.actor).order.sync = ++cluster.sequence;
    return cluster.meet(cluster.warp(event.actor), event.laneMask);
  case BarrierOp::Exchange:
    return now.exchange(cluster, event);
  case BarrierOp::Parted:
    return now.partedWarp(cluster, event);
  default:
    return now.mbarrier(cluster, event);
  }
}

void HazardChecker::onFence(const FenceEvent &event) {
  Impl &now = impl->told();
  now.fence(now.next(event), event);
}

void HazardChecker::onTicket(const TicketEvent &event) {
  Impl &now = impl->told();
  ClusterState &cluster = now.next(event);
  if (event.state == TicketState::Completed)
    return cluster.complete(event.id);
  cluster.fork(event);
  // The writes of a ticket are checked now: until it completes nobody may use their bytes.
  Actor self = event.actor;
  self.ticket = event.id;
  Access made = now.begin(cluster, self, event.at, Space::SharedCluster, true);
  for (const SharedRange &range : event.writes)
    now.range(made, range.address, range.bytes, 0, wholeCells);
}

void HazardChecker::onLife(const LifeEvent &event) {
  Impl &now = impl->told();
  ClusterState &cluster = now.next(event);
  switch (event.op) {
  case LifeOp::CtaExit:
    for (auto &[address, state] : cluster.mbarriers)
      if (address >> rankShift == event.actor.ctaRank && state.phase != ~0ull)
        now.findStalePhases(cluster, address, state, state.phase);
    now.exitCta(cluster, event);
    return cluster.dropCta(event.actor.ctaRank);
  case LifeOp::ClusterEnd:
    now.lastCluster = nullptr;
    now.clusters.erase(event.actor.cluster);
    return;
  case LifeOp::TmemAlloc:
    now.tmemAllocs.insert(event.at.pc);
    return;
  case LifeOp::TmemDealloc:
    return now.freeTmem(cluster, event);
  default:
    return;
  }
}

} // namespace fp4::sim
