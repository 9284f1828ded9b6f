//===- HazardChecker.cpp - Happens-before from the event stream -----------===//
//
// PTX ISA, "Memory Consistency Model": base causality order, with proxy fences anywhere along the
// path (proxy-preserved base causality order); "Asynchronous operations": a ticket begins after
// what its issuer knew and ends before what its completion signals.
//
//===----------------------------------------------------------------------===//
#include "HazardState.h"
#include "Sim/Insn/ProgramImpl.h"
#include "fp4/Sim/Program.h"

#include <bit>
#include <fmt/format.h>
#include <set>

namespace fp4::sim {

using namespace check;

namespace {

constexpr size_t keptAccesses = 64; ///< per granule; beyond, the oldest are forgotten

bool isShared(Space space) { return space == Space::SharedCta || space == Space::SharedCluster; }

bool acquires(MemOrder order) {
  return order == MemOrder::Acquire || order == MemOrder::AcqRel || order == MemOrder::SeqCst;
}
bool releases(MemOrder order) {
  return order == MemOrder::Release || order == MemOrder::AcqRel || order == MemOrder::SeqCst;
}

bool knows(const VectorClock &clock, const Access &access) {
  return access.agent.ticket ? clock.ticket(access.agent.ticket)
                             : access.epoch <= clock.warp(warpIndex(access.agent));
}

uint16_t byteMask(uint32_t from, uint32_t count) { return uint16_t(((1u << count) - 1) << from); }

} // namespace

struct HazardChecker::Impl {
  HazardOptions options;
  std::vector<HazardReport> reports;
  std::set<std::tuple<HazardRule, std::string, uint32_t, uint32_t>> seen;
  std::unordered_map<uint32_t, ClusterState> clusters;
  const ProgramImpl *program = nullptr;
  std::string kernel;
  uint64_t sequence = 0;

  // --- accesses ---
  Access describe(ClusterState &cluster, const Agent &agent, CodePoint at);
  void access(ClusterState &cluster, Access made, uint32_t address, uint32_t bytes);
  void touch(ClusterState &cluster, const Access &made, uint32_t address);
  void check(ClusterState &cluster, const Access &old, const Access &made, uint32_t address);
  void synchronize(ClusterState &cluster, const MemoryEvent &event, uint64_t address);

  // --- reports ---
  HazardRule ruleOf(ClusterState &cluster, const Access &old, const Access &made);
  HazardAccess sideOf(ClusterState &cluster, const Access &access, std::string_view verb = "");
  void report(ClusterState &cluster, HazardRule rule, const Access &old, const Access &made,
              uint32_t address);

  // --- barriers ---
  void useMbarrier(ClusterState &cluster, const BarrierEvent &event);
  void arrive(ClusterState &cluster, const BarrierEvent &event, Clocks &to);
  void wait(ClusterState &cluster, const BarrierEvent &event, const Clocks &from);
  void mbarrier(ClusterState &cluster, const BarrierEvent &event);
};

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

Access HazardChecker::Impl::describe(ClusterState &cluster, const Agent &agent, CodePoint at) {
  Access access;
  access.agent = agent;
  access.line = at.line;
  access.sequence = ++sequence;
  if (agent.ticket)
    access.pipelined = cluster.ticket(agent.ticket).pipelined;
  else
    access.epoch = cluster.warp(agent).epoch;
  return access;
}

void HazardChecker::Impl::access(ClusterState &cluster, Access made, uint32_t address,
                                 uint32_t bytes) {
  while (bytes > 0) {
    const uint32_t from = address % granuleBytes, part = std::min(bytes, granuleBytes - from);
    made.bytes = byteMask(from, part);
    touch(cluster, made, address - from);
    address += part;
    bytes -= part;
  }
}

/// Checks against what the granule remembers, then remembers: a write replaces what it covers, a
/// read what is known to come before it.
void HazardChecker::Impl::touch(ClusterState &cluster, const Access &made, uint32_t address) {
  std::vector<Access> *granule = cluster.granule(address);
  if (!granule)
    return;
  const Clocks &now = cluster.clocks(made.agent);
  for (const Access &old : *granule)
    if ((old.bytes & made.bytes) && (old.write || made.write))
      check(cluster, old, made, address);
  for (Access &old : *granule) {
    const bool sameCommit =
        old.pipelined && made.pipelined && warpIndex(old.agent) == warpIndex(made.agent);
    const bool replaced =
        made.write || (!old.write && (old.sameAgent(made) || sameCommit || knows(now.async, old)));
    if (replaced)
      old.bytes &= uint16_t(~made.bytes);
  }
  std::erase_if(*granule, [](const Access &old) { return !old.bytes; });
  // Neighbouring bytes of one instruction are one access.
  if (!granule->empty() && granule->back().sameAgent(made) && granule->back().line == made.line &&
      granule->back().epoch == made.epoch && granule->back().write == made.write) {
    granule->back().bytes |= made.bytes;
    return;
  }
  if (granule->size() >= keptAccesses)
    granule->erase(granule->begin());
  granule->push_back(made);
}

void HazardChecker::Impl::check(ClusterState &cluster, const Access &old, const Access &made,
                                uint32_t address) {
  if (old.sameAgent(made) || (old.strong && made.strong))
    return;
  const Clocks &now = cluster.clocks(made.agent);
  const uint32_t at = address + uint32_t(std::countr_zero(uint32_t(old.bytes & made.bytes)));
  if (!knows(now.generic, old))
    return report(cluster, ruleOf(cluster, old, made), old, made, at);
  // Ordered. From the generic to the async proxy that takes a fence; for a read that is then
  // overwritten, practice relies on the barrier alone.
  const bool needsFence = made.agent.ticket && !old.agent.ticket && (old.write || options.strict);
  if (needsFence && !knows(now.async, old))
    report(cluster, HazardRule::MissingProxyFence, old, made, at);
}

/// Release and acquire through a location of memory.
void HazardChecker::Impl::synchronize(ClusterState &cluster, const MemoryEvent &event,
                                      uint64_t address) {
  if (event.agent.ticket || event.order == MemOrder::Weak)
    return;
  WarpState &warp = cluster.warp(event.agent);
  const uint64_t key = address | (isShared(event.space) ? 1ull << 63 : 0);
  if (event.kind != AccessKind::Write)
    if (auto it = cluster.released.find(key); it != cluster.released.end()) {
      warp.unacquired.join(it->second);
      warp.clocks.joinLoose(it->second);
      if (acquires(event.order))
        warp.clocks.join(it->second);
    }
  if (event.kind == AccessKind::Read)
    return;
  if (releases(event.order)) {
    cluster.released[key].join(warp.clocks);
    cluster.advance(warp, event.agent);
  } else if (!warp.released.generic.empty()) {
    cluster.released[key].join(warp.released);
  }
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

HazardRule HazardChecker::Impl::ruleOf(ClusterState &cluster, const Access &old,
                                       const Access &made) {
  if (knows(cluster.clocks(made.agent).loose, old))
    return HazardRule::RelaxedSync;
  // A ticket reads when its data moves, which may be after a write that came after its issue.
  const bool late =
      made.agent.ticket && old.write && cluster.ticket(made.agent.ticket).issued < old.sequence;
  const bool reuse = made.write && (old.write ? old.agent.ticket && made.agent.ticket
                                              : old.agent.ticket || made.agent.ticket);
  if (reuse || late)
    return HazardRule::OverwrittenWhileRead;
  return old.agent.ticket && old.write ? HazardRule::UnwaitedCopy : HazardRule::SharedRace;
}

HazardAccess HazardChecker::Impl::sideOf(ClusterState &, const Access &access,
                                         std::string_view verb) {
  HazardAccess side{access.agent, access.line, "", ""};
  if (verb.empty())
    verb = access.write ? "write" : "read";
  const std::string warp =
      fmt::format("warp {} of CTA rank {}", access.agent.warp, access.agent.ctaRank);
  side.what = access.agent.ticket ? fmt::format("{} by asynchronous operation {}, issued by {}",
                                                verb, access.agent.ticket, warp)
                                  : fmt::format("{} by {}", verb, warp);
  side.source = program ? program->sourceLine(access.line) : "";
  return side;
}

namespace {

struct Words {
  std::string message, remedy;
};

Words wordsOf(HazardRule rule, const Access &old, const Access &made) {
  switch (rule) {
  case HazardRule::SharedRace:
    return {
        "two accesses to shared memory are not ordered",
        made.agent.ticket
            ? "fence.proxy.async after the generic access and a barrier before the operation is "
              "issued"
            : "missing: bar.sync, or an mbarrier arrival after the first and a wait before the "
              "second"};
  case HazardRule::UnwaitedCopy:
    return {"shared memory is used before the asynchronous write to it is known to be complete",
            "missing: a wait on the phase of the full barrier (the mbarrier that the operation "
            "signals)"};
  case HazardRule::OverwrittenWhileRead:
    if ((old.agent.ticket != 0 && !old.write) || (made.agent.ticket != 0 && !made.write))
      return {"shared memory is overwritten while an asynchronous operation may still read it",
              "missing: a wait for the reader: cp.async.bulk.wait_group, or the mbarrier that its "
              "tcgen05.commit or copy signals"};
    return {"shared memory is overwritten by an asynchronous operation before its readers are done",
            "missing: an arrival of the reader on the empty barrier and a wait on it before the "
            "operation is issued"};
  case HazardRule::MissingProxyFence:
    return {"an asynchronous operation uses shared memory that the generic proxy accessed, without "
            "a proxy fence between them",
            "missing: fence.proxy.async between the two (by the writer, before the barrier)"};
  case HazardRule::RelaxedSync:
    return {"two accesses to shared memory are synchronized only by .relaxed operations or in too "
            "narrow a scope",
            "missing: .release on the arrival and .acquire on the wait, in a scope that has both "
            "threads, or fences beside them"};
  case HazardRule::MbarrierInit:
    return {
        "an mbarrier is used without being ordered after its initialization",
        "missing: bar.sync (with a cluster: barrier.cluster) between mbarrier.init and the use"};
  case HazardRule::MbarrierInitFence:
    return {"an asynchronous operation signals an mbarrier whose initialization was not fenced",
            "missing: fence.mbarrier_init.release.cluster after mbarrier.init"};
  }
  return {};
}

} // namespace

void HazardChecker::Impl::report(ClusterState &cluster, HazardRule rule, const Access &old,
                                 const Access &made, uint32_t address) {
  if (reports.size() >= options.maxReports ||
      !seen.insert({rule, kernel, std::min(old.line, made.line), std::max(old.line, made.line)})
           .second)
    return;
  const bool barrier = rule == HazardRule::MbarrierInit || rule == HazardRule::MbarrierInitFence;
  Words words = wordsOf(rule, old, made);
  words.message += fmt::format(" (shared {:#x} of CTA rank {})", address & ((1u << rankShift) - 1),
                               address >> rankShift);
  reports.push_back({rule, program ? program->name : "", kernel, address,
                     sideOf(cluster, old, barrier ? "initialization" : ""),
                     sideOf(cluster, made, barrier ? "use" : ""), std::move(words.message),
                     std::move(words.remedy)});
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

/// Any operation on an mbarrier but init.
void HazardChecker::Impl::useMbarrier(ClusterState &cluster, const BarrierEvent &event) {
  auto it = cluster.mbarriers.find(uint32_t(event.object));
  if (it == cluster.mbarriers.end())
    return;
  const MbarrierState &state = it->second;
  const Access use = describe(cluster, event.agent, event.at);
  if (state.init.sameAgent(use))
    return;
  const uint32_t address = it->first;
  if (!knows(cluster.clocks(event.agent).generic, state.init))
    return report(cluster, HazardRule::MbarrierInit, state.init, use, address);
  if (event.agent.ticket && !state.fenced)
    report(cluster, HazardRule::MbarrierInitFence, state.init, use, address);
}

void HazardChecker::Impl::arrive(ClusterState &cluster, const BarrierEvent &event, Clocks &to) {
  if (event.agent.ticket) { // a completion: what it knew, and itself
    to.join(cluster.clocks(event.agent));
    return;
  }
  WarpState &warp = cluster.warp(event.agent);
  const bool mbarrier = event.op == BarrierOp::MbarArrive || event.op == BarrierOp::MbarCompleteTx;
  const bool outOfScope = options.strict && mbarrier && event.scope == Scope::Cta &&
                          event.agent.ctaRank != event.object >> rankShift;
  if (!outOfScope)
    to.join(releases(event.order) ? warp.clocks : warp.released);
  to.joinLoose(warp.clocks);
  cluster.advance(warp, event.agent);
}

void HazardChecker::Impl::wait(ClusterState &cluster, const BarrierEvent &event,
                               const Clocks &from) {
  WarpState &warp = cluster.warp(event.agent);
  warp.clocks.joinLoose(from);
  (acquires(event.order) ? warp.clocks : warp.unacquired).join(from);
}

void HazardChecker::Impl::mbarrier(ClusterState &cluster, const BarrierEvent &event) {
  const uint32_t address = uint32_t(event.object);
  if (event.op == BarrierOp::MbarInit || event.op == BarrierOp::MbarInval) {
    Access made = describe(cluster, event.agent, event.at);
    made.write = true;
    access(cluster, made, address, 8);
    cluster.mbarriers.erase(address);
    if (event.op == BarrierOp::MbarInit)
      cluster.mbarriers[address].init = made;
    return;
  }
  if (event.op != BarrierOp::MbarPhaseDone)
    useMbarrier(cluster, event);
  MbarrierState &state = cluster.mbarriers[address];
  if (event.op == BarrierOp::MbarArrive || event.op == BarrierOp::MbarCompleteTx) {
    arrive(cluster, event, state.arrived);
  } else if (event.op == BarrierOp::MbarPhaseDone) {
    state.passed = state.arrived;
    state.phase = event.count;
  } else if (event.op == BarrierOp::MbarWaitPass && event.count == state.phase) {
    wait(cluster, event, state.passed);
  }
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

HazardChecker::HazardChecker(HazardOptions options) : impl(std::make_unique<Impl>()) {
  impl->options = options;
}
HazardChecker::~HazardChecker() = default;

const std::vector<HazardReport> &HazardChecker::reports() const { return impl->reports; }

void HazardChecker::clear() {
  impl->reports.clear();
  impl->seen.clear();
}

void HazardChecker::onLaunch(const Program &program, std::string_view kernel) {
  impl->program = &program.impl();
  impl->kernel = kernel;
  impl->clusters.clear();
}

void HazardChecker::onMemory(const MemoryEvent &event) {
  ClusterState &cluster = impl->clusters[event.agent.cluster];
  if (event.agent.ticket && event.kind == AccessKind::Write)
    return; // checked when it was issued
  Access made;
  if (isShared(event.space)) {
    made = impl->describe(cluster, event.agent, event.at);
    made.write = event.kind != AccessKind::Read;
    made.strong = event.order != MemOrder::Weak || event.kind == AccessKind::Atomic;
  }
  for (uint32_t rest = event.laneMask; rest;) {
    const int lane = std::countr_zero(rest);
    const uint64_t address = event.addresses[lane];
    if (event.order != MemOrder::Weak)
      impl->synchronize(cluster, event, address);
    uint32_t bytes = event.bytes;
    rest &= rest - 1;
    if (!isShared(event.space))
      continue;
    for (; rest && event.addresses[std::countr_zero(rest)] == address + bytes; rest &= rest - 1) {
      if (event.order != MemOrder::Weak)
        impl->synchronize(cluster, event, address + bytes);
      bytes += event.bytes;
    }
    impl->access(cluster, made, uint32_t(address), bytes);
  }
}

void HazardChecker::onBarrier(const BarrierEvent &event) {
  ClusterState &cluster = impl->clusters[event.agent.cluster];
  switch (event.op) {
  case BarrierOp::CtaArrive:
    return impl->arrive(cluster, event,
                        cluster.barriers[{event.agent.ctaRank, event.object}][event.count]);
  case BarrierOp::CtaPass: {
    BarrierState &state = cluster.barriers[{event.agent.ctaRank, event.object}];
    impl->wait(cluster, event, state[event.count]);
    if (event.count >= 2)
      state.erase(state.begin(), state.lower_bound(event.count - 1));
    return;
  }
  case BarrierOp::ClusterArrive:
    return impl->arrive(cluster, event, cluster.clusterBarrier[event.count]);
  case BarrierOp::ClusterWait:
    return impl->wait(cluster, event, cluster.clusterBarrier[event.count - 1]);
  case BarrierOp::WarpSync:
    return;
  default:
    return impl->mbarrier(cluster, event);
  }
}

/// All but the newest `pending` groups of each thread are read or done.
static void waitForGroups(ClusterState &cluster, const FenceEvent &event, WarpState &warp) {
  for (uint32_t rest = event.laneMask; rest; rest &= rest - 1) {
    auto it = cluster.groups.find({warpIndex(event.agent), uint32_t(std::countr_zero(rest))});
    if (it == cluster.groups.end())
      continue;
    auto &committed = it->second.committed;
    for (; committed.size() > event.groups; committed.pop_front())
      for (uint64_t id : committed.front())
        warp.clocks.addTicket(id);
  }
}

static void commitGroups(ClusterState &cluster, const FenceEvent &event) {
  for (uint32_t rest = event.laneMask; rest; rest &= rest - 1) {
    ThreadGroups &groups =
        cluster.groups[{warpIndex(event.agent), uint32_t(std::countr_zero(rest))}];
    groups.committed.push_back(std::move(groups.open));
    groups.open.clear();
  }
}

static void fenceMbarriers(ClusterState &cluster, const WarpState &warp) {
  for (auto &[address, state] : cluster.mbarriers)
    state.fenced |= knows(warp.clocks.generic, state.init);
}

void HazardChecker::onFence(const FenceEvent &event) {
  ClusterState &cluster = impl->clusters[event.agent.cluster];
  WarpState &warp = cluster.warp(event.agent);
  switch (event.kind) {
  case FenceKind::Thread:
    if (acquires(event.order))
      warp.clocks.join(warp.unacquired);
    if (releases(event.order)) {
      warp.released = warp.clocks;
      cluster.advance(warp, event.agent);
    }
    return;
  case FenceKind::ProxyAsync:
    if (event.space == Space::Global)
      return;
    fenceMbarriers(cluster, warp);
    warp.clocks.async.join(warp.clocks.generic);
    return cluster.advance(warp, event.agent);
  case FenceKind::MbarrierInit:
    // Also a release, of the initializations: a relaxed cluster barrier then publishes them.
    fenceMbarriers(cluster, warp);
    warp.released = warp.clocks;
    return cluster.advance(warp, event.agent);
  case FenceKind::BulkCommit:
    return commitGroups(cluster, event);
  case FenceKind::BulkWait:
    return waitForGroups(cluster, event, warp);
  default:
    return;
  }
}

void HazardChecker::onTicket(const TicketEvent &event) {
  ClusterState &cluster = impl->clusters[event.agent.cluster];
  if (event.state == TicketState::Completed)
    return cluster.complete(event.id);
  cluster.fork(event, ++impl->sequence);
  // Its writes are checked now: until it completes nobody may use what it will write.
  Agent self = event.agent;
  self.ticket = event.id;
  Access made = impl->describe(cluster, self, event.at);
  made.write = true;
  for (const SharedRange &range : event.writes)
    impl->access(cluster, made, range.address, range.bytes);
}

void HazardChecker::onLife(const LifeEvent &event) {
  if (event.op == LifeOp::CtaExit)
    impl->clusters[event.agent.cluster].shadow.erase(event.agent.ctaRank);
}

} // namespace fp4::sim
