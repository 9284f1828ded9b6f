//===- Polling.cpp - Loops that read until something changes --------------===//
#include "Sim/State/Polling.h"
#include "Sim/Insn/Handlers.h"
#include "Sim/State/ConcurrentBytes.h"
#include "Sim/State/Scheduler.h"
#include "fp4/Sim/Events.h"
#include <algorithm>
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

/// A place that is read again must hold what it held. No loop reads many.
void PollProbe::note(Space space, uint64_t address, uint32_t bytes) {
  constexpr size_t kMostPlaces = 64;
  const std::byte *place = storageOf(cluster, space, address, bytes);
  PolledPlace now{space, address, bytes, {}};
  if (!place || bytes > now.value.size()) {
    busy = true;
    return;
  }
  loadBytes(now.value.data(), place, bytes);
  for (const PolledPlace &before : seen)
    if (before.address == address && before.space == space && before.bytes == bytes) {
      busy |= before.value != now.value;
      return;
    }
  seen.push_back(now);
  busy |= seen.size() > kMostPlaces;
}

/// What the host may change is read again and again: nobody says when it does.
void PollProbe::onMemory(const MemoryEvent &event) {
  busy |= event.kind == AccessKind::Write || event.proxy != Proxy::Generic || event.actor.ticket;
  for (uint32_t rest = busy ? 0 : event.laneMask; rest; rest &= rest - 1) {
    const uint64_t address = event.addressOf(static_cast<uint32_t>(std::countr_zero(rest)));
    note(event.space, address, event.bytes);
    const Allocation *found =
        event.space == Space::Global ? cluster.launch->memory->find(address, 1) : nullptr;
    busy |= found && found->shared();
    if (busy || event.uniform)
      break;
  }
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

/// Runs at most `quantum` instructions. Whether the warp is parked now; if not, its turn goes on.
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
                       (lastOutcome == Outcome::Yield && isSleep(code[cx.pc].handler));
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
