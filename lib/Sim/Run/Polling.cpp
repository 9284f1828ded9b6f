//===- Polling.cpp - Loops that read until something changes --------------===//
#include "Sim/Run/Polling.h"
#include "Sim/Run/Scheduler.h"
#include "Sim/State/ConcurrentBytes.h"
#include "fp4/Sim/Events.h"
#include <algorithm>
#include <optional>
#include <utility>

using namespace fp4;
using namespace fp4::sim;

const std::byte *fp4::sim::storageOf(const Cluster &cluster, Space space, uint64_t address,
                                     uint32_t bytes) {
  if (space == Space::Global)
    return cluster.launch->memory->translate(address, bytes);
  const uint32_t rank = static_cast<uint32_t>(address) >> kSharedRankShift;
  const uint32_t offset = static_cast<uint32_t>(address) & kSharedOffsetMask;
  if (space != Space::SharedCluster || rank >= cluster.ctas.size() ||
      !cluster.ctas[rank]->shared.contains(offset, bytes))
    return nullptr;
  return cluster.ctas[rank]->shared.at(offset);
}

//===----------------------------------------------------------------------===//
// The probe
//===----------------------------------------------------------------------===//

bool PolledPlaces::notePlace(const Cluster &cluster, Space space, uint64_t address,
                             uint32_t bytes) {
  if (space == Space::Global)
    if (const Allocation *found = cluster.launch->memory->find(address, bytes);
        found && found->hostWrites())
      return false;
  const std::byte *place = storageOf(cluster, space, address, bytes);
  PolledPlace now{space, address, bytes, {}};
  if (!place || bytes > now.value.size())
    return false;
  loadBytes(now.value.data(), place, bytes);
  const auto [entry, first] = places.try_emplace({address, space, bytes}, now);
  return places.size() <= most && (first || entry->second.value == now.value);
}

PolledPlaces::Access PolledPlaces::note(const Cluster &cluster, const MemoryEvent &event) {
  if (event.kind == AccessKind::Write && (event.laneMask & ~event.unchanged))
    return Access::Changes;
  for (uint32_t rest = event.laneMask; rest; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    if (!notePlace(cluster, event.space, event.addressOf(lane), event.bytes))
      return Access::Unclear;
    if (event.uniform)
      break;
  }
  return Access::Looks;
}

std::vector<PolledPlace> PolledPlaces::list() const {
  std::vector<PolledPlace> list;
  for (const auto &[where, place] : places)
    list.push_back(place);
  return list;
}

void PollProbe::onMemory(const MemoryEvent &event) {
  busy = busy || event.proxy != Proxy::Generic || event.actor.ticket ||
         seen.note(cluster, event) != PolledPlaces::Access::Looks;
  Probe::onMemory(event);
}

void PollProbe::onBarrier(const BarrierEvent &event) {
  busy |= meetsOthers(event);
  Probe::onBarrier(event);
}

void PollProbe::onTicket(const TicketEvent &event) {
  busy = true;
  Probe::onTicket(event);
}

void PollProbe::onLife(const LifeEvent &event) {
  busy = true;
  Probe::onLife(event);
}

bool PollWait::ready() const {
  for (const PolledPlace &place : places) {
    std::array<std::byte, 32> now{};
    const std::byte *bytes = storageOf(cluster, place.space, place.address, place.bytes);
    if (!bytes)
      return true;
    loadBytes(now.data(), bytes, place.bytes);
    if (now != place.value)
      return true;
    if (place.space != Space::SharedCluster)
      continue;
    const uint32_t address = static_cast<uint32_t>(place.address);
    const Cta &owner = *cluster.ctas[address >> kSharedRankShift];
    if (owner.done() || !owner.shared.valid(address & kSharedOffsetMask, place.bytes))
      return true;
  }
  return false;
}

bool fp4::sim::anyParked(const Cluster &cluster) {
  for (const auto &cta : cluster.ctas)
    for (const Warp &warp : cta->warps)
      for (const LaneGroup &group : warp.groups)
        if (group.wait && group.wait->polls())
          return true;
  return false;
}

bool fp4::sim::anyAwake(const Cluster &cluster) {
  for (const auto &cta : cluster.ctas)
    for (const Warp &warp : cta->warps)
      for (const LaneGroup &group : warp.groups)
        if (group.wait && group.wait->polls() && group.wait->ready())
          return true;
  return false;
}

void fp4::sim::unpark(Cluster &cluster) {
  for (auto &cta : cluster.ctas)
    for (Warp &warp : cta->warps)
      for (LaneGroup &group : warp.groups)
        if (group.wait && group.wait->polls())
          group.wait.reset();
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

/// The group of these lanes, or null when they have parted or met others.
static LaneGroup *groupOf(Warp &warp, uint32_t lanes) {
  for (LaneGroup &group : warp.groups)
    if (group.mask == lanes)
      return &group;
  return nullptr;
}

/// Runs at most `quantum` instructions. Returns true when the warp is parked; if not, its turn goes
/// on.
bool Scheduler::parks(Warp &warp, uint32_t quantum) {
  constexpr unsigned longest = 512, twice = 2;
  if (!parkable || cluster.launch->options->instructionLimit)
    return false;
  const Insn *code = cluster.launch->kernel->code.data();
  PollProbe probe(cluster, cx.observer);
  Observer *observer = std::exchange(cx.observer, &probe);
  const WarpState state(warp, cluster.launch->kernel->registerBytes);
  const uint64_t changes = cluster.changes + cluster.tickets;
  uint32_t lanes = 0; // of the group that runs: the others stand still
  unsigned returns = 0;
  for (unsigned i = 0; i < std::min(longest, quantum) && returns < twice; ++i) {
    const uint64_t before = instructions;
    runWarp(warp, 1);
    const bool quiet = lastOutcome == Outcome::Next ||
                       (lastOutcome == Outcome::Yield && code[cx.pc].flow == Flow::Sleep);
    const LaneGroup *group = groupOf(warp, cx.groupMask);
    if (instructions == before || !quiet || cx.failed || probe.acts() || !group ||
        (i && lanes != group->mask))
      break;
    lanes = group->mask;
    returns += state == warp;
  }
  cx.observer = observer;
  LaneGroup *group = groupOf(warp, lanes);
  if (returns < twice || probe.acts() || cluster.changes + cluster.tickets != changes || !group)
    return false;
  group->wait = std::make_unique<PollWait>(cluster, probe.places());
  group->retry = true;
  return true;
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

/// Counts a round. Returns true when the cluster is to be examined after it.
bool Scheduler::parkIsDue() {
  const Quiet::Progress now{cluster.changes, cluster.tickets, cluster.liveThreads};
  if (quiet.progress != now)
    quiet = {now};
  // A cluster that began early may be woken by the end of another grid, which is no place in
  // memory.
  return parkable && !cluster.launch->early && !cluster.launch->options->instructionLimit &&
         ++quiet.rounds >= quiet.next;
}

/// Runs some rounds under a probe: an eighth as many as there were, if there were many. Returns
/// true when the cluster is parked now.
Expected<bool> Scheduler::parksAll() {
  constexpr uint64_t kLeastRounds = 96, kPart = 8;
  quiet.next = 2 * quiet.rounds;
  if (!repeatsItself(std::max(kLeastRounds, quiet.rounds / kPart)))
    return cx.failed ? Expected<bool>(tl::unexpected<Error>(std::move(cx.error))) : false;
  quiet = Quiet{quiet.progress, 0, Quiet::kAgain};
  if (!cluster.async->canAdvance() && !expireWaits())
    return true;
  parked.reset(); // perhaps it polls for what is in flight
  return cluster.async->advance().map([](bool) { return false; });
}

/// Returns true when all warps come back to the same state twice and change nothing: `parked` says
/// what they have read of global memory. The schedule decides which state that is, so several are
/// tried.
bool Scheduler::repeatsItself(uint64_t rounds) {
  constexpr uint64_t kFirst = 24;
  LoopProbe probe(cluster, cx.observer);
  Observer *observer = std::exchange(cx.observer, &probe);
  const Quiet::Progress before{cluster.changes, cluster.tickets, cluster.liveThreads};
  std::optional<Recurrence> recurrence;
  bool goesOn = true, repeats = false;
  for (uint64_t i = 0, renew = 0; i < rounds && goesOn && !repeats && !cx.failed; ++i) {
    if (i == renew) {
      recurrence.emplace(cluster);
      renew = 2 * renew + kFirst;
    }
    const uint64_t ran = instructions;
    round();
    goesOn = instructions > ran && probe.watchable() && !probe.changed() &&
             before == Quiet::Progress{cluster.changes, cluster.tickets, cluster.liveThreads};
    repeats = goesOn && recurrence->complete(probe.synchronized());
  }
  cx.observer = observer;
  if (repeats)
    parked = std::make_unique<PollWait>(cluster, probe.watched());
  return repeats && !cx.failed;
}

/// Nothing that a parked cluster has read has changed. Else it goes on.
bool Scheduler::sleeps() {
  if (parked && (parked->ready() || anyAwake(cluster)))
    parked.reset();
  return parked != nullptr;
}
