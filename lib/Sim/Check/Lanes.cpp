//===- Lanes.cpp - Order among the lanes of a warp ------------------------===//
//
// Strict mode. PTX ISA, "bar.warp.sync": memory is ordered among the threads that execute it.
// Barriers, releases and acquires order it too, but instructions that lanes execute together (shfl,
// elect, vote) do not. A release publishes the accesses that its own lanes made since they met the
// others, and an acquire by one lane tells the others nothing. A warp whose lanes meet before one
// of them releases, and after one has acquired, has one clock, as by default.
//
// By default a value that lanes exchange orders later accesses behind the loads that it was made
// of: the exchange waits for the operands of all its lanes. An exchange orders no store.
//
//===----------------------------------------------------------------------===//
#include "HazardImpl.h"

#include <array>
#include <fmt/format.h>

namespace fp4::sim {

using namespace check;

namespace check {

//===----------------------------------------------------------------------===//
// Acquires by lanes
//===----------------------------------------------------------------------===//

void ClusterState::part(WarpState &warp, uint32_t lanes) {
  LaneState &parted = warp.lanes;
  if (!parted.fewLanes) {
    parted.few = warp.clocks;
    parted.fewMet = parted.met;
  }
  parted.fewLanes |= lanes;
}

void ClusterState::join(WarpState &warp) {
  LaneState &parted = warp.lanes;
  std::swap(warp.clocks, parted.few);
  parted.met = std::max(parted.met, parted.fewMet);
  parted.fewLanes = 0;
}

void ClusterState::acquire(WarpState &warp, uint32_t lanes, const Clocks &from) {
  teach(warp, lanes, [&](Clocks &clocks) { clocks.join(from); });
  LaneState &parted = warp.lanes;
  const uint32_t own = from.generic.at(warp.slot);
  const bool all = lanes == allLanes || !parted.fewLanes;
  parted.fewMet = std::max(parted.fewMet, own);
  if (all)
    parted.met = std::max(parted.met, own);
}

void ClusterState::meet(WarpState &warp, uint32_t lanes) {
  if (!strict)
    return;
  LaneState &parted = warp.lanes;
  if (parted.fewLanes & lanes)
    parted.fewLanes |= lanes;
  if (parted.fewLanes == allLanes)
    join(warp);
  if (parted.touched & ~lanes) {
    parted.together |= lanes;
  } else if (parted.touched) {
    parted.met = parted.fewMet = warp.epoch;
    parted.touched = parted.together = 0;
    advance(warp);
  }
}

//===----------------------------------------------------------------------===//
// Releases by lanes
//===----------------------------------------------------------------------===//

const Clocks &ClusterState::published(WarpState &warp, uint32_t lanes, uint32_t pc) {
  LaneState &parted = warp.lanes;
  const bool few = parted.fewLanes & lanes;
  const Clocks &all = few ? parted.few : warp.clocks;
  const uint32_t met = few ? parted.fewMet : parted.met;
  if (parted.lastTouch <= met)
    parted.touched = parted.together = 0;
  const uint32_t reach = lanes & parted.together ? lanes | parted.together : lanes;
  if (!(parted.touched & ~reach))
    return all;
  LaneReleases &releases = laneHistory[{index, warp.slot}];
  if (!releases.slot) {
    releases.slot = takeSlot();
    ticketAt(releases.slot).done = false; // it is nobody else's
  }
  releases.all.push_back({warp.epoch, reach, pc});
  scratch = all;
  for (VectorClock *clock :
       {&scratch.generic, &scratch.async, &scratch.asyncGlobal, &scratch.tensor, &scratch.maps}) {
    clock->raise(releases.slot, clock->at(warp.slot));
    clock->lower(warp.slot, met);
  }
  return scratch;
}

/// Returns true when a lane that made the access is one of those that released.
static bool reaches(const LaneRelease &release, const Record &old, uint32_t byte) {
  if (!old.sequence) // of a set: which lane, is not known
    return true;
  if (old.manyLanes())
    return !std::has_single_bit(release.lanes);
  return release.lanes >> (old.laneOf(byte) & 31) & 1;
}

bool isReleased(const LaneHistory &history, const VectorClock &clock, const Record &old,
                uint32_t overlap) {
  const auto found = history.find({old.cluster(), old.slot()});
  if (found == history.end())
    return false;
  const auto &[slot, all] = found->second;
  const uint32_t until = clock.at(slot);
  const uint32_t byte = overlap ? uint32_t(std::countr_zero(overlap)) : 0;
  auto release = std::ranges::lower_bound(all, old.epoch(), {}, &LaneRelease::epoch);
  for (; release != all.end() && release->epoch <= until; ++release)
    if (reaches(*release, old, byte))
      return true;
  return false;
}

} // namespace check

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

void HazardChecker::Impl::byLanes(Access &made, const MemoryEvent &event) {
  LaneState &lanes = made.cluster.warp(event.actor).lanes;
  lanes.touched |= event.laneMask;
  lanes.lastTouch = made.record.epoch();
  if (event.laneMask & lanes.fewLanes && event.laneMask & ~lanes.fewLanes)
    return partedRanges(made, event);
  made.now = &made.cluster.known(*made.warp, event.laneMask);
  ranges(made, event);
}

/// Lanes that have acquired what the others have not make their accesses first.
void HazardChecker::Impl::partedRanges(Access &made, const MemoryEvent &event) {
  std::array<uint64_t, 32> addresses{};
  for (uint32_t rest = event.laneMask; rest; rest &= rest - 1) {
    const auto lane = uint32_t(std::countr_zero(rest));
    addresses[lane] = event.addressOf(lane);
  }
  MemoryEvent part = event;
  part.contiguous = part.uniform = false;
  part.addresses = addresses.data();
  if (event.contiguous || event.uniform)
    part.unchanged = event.unchanged == allLanes ? allLanes : 0;
  const uint32_t few = made.warp->lanes.fewLanes;
  for (const uint32_t lanes : {event.laneMask & few, event.laneMask & ~few}) {
    part.laneMask = lanes;
    made.now = &made.cluster.known(*made.warp, lanes);
    ranges(made, part);
  }
}

/// The lane of an access to a byte; all where it is not one.
static uint32_t lanesOf(const Record &record, uint32_t byte) {
  return record.manyLanes() ? allLanes : 1u << (record.laneOf(byte) & 31);
}

/// Returns true when different lanes of one warp made the two accesses, with nothing between that
/// may order lanes.
bool HazardChecker::Impl::lanesRace(const Access &made, const Record &old, uint32_t overlap) {
  if (old.async() || made.space == Space::Tmem || bothStrong(made, old))
    return false;
  const uint32_t byte = uint32_t(std::countr_zero(overlap));
  if (made.ticket) // in strict mode its clocks tell
    return !options.strict && old.slot() == made.ticket->warpSlot &&
           old.sequence > made.ticket->laneSync && old.sequence < made.ticket->issued &&
           (old.manyLanes() || old.laneOf(byte) != int(made.ticket->lane)) &&
           !haveExchanged(made, old, byte);
  if (haveMet(made, old, overlap) || old.sequence == made.record.sequence)
    return false;
  const uint32_t both = lanesOf(old, byte) | lanesOf(made.record, byte);
  return !std::has_single_bit(both) && !haveExchanged(made, old, byte);
}

/// Returns true when something orders what lanes of the warp did then and do now.
bool HazardChecker::Impl::haveMet(const Access &made, const Record &old, uint32_t overlap) const {
  if (!options.strict)
    return made.warp->order.sync >= old.sequence;
  const LaneState &lanes = made.warp->lanes;
  const bool few = made.now == &lanes.few;
  return old.epoch() <= (few ? lanes.fewMet : lanes.met) ||
         isReleased(laneHistory, made.now->generic, old, overlap);
}

/// Records an exchange. If lanes name different members, the last execution is kept.
void HazardChecker::Impl::exchange(ClusterState &cluster, const BarrierEvent &event) {
  if (options.strict)
    return;
  LaneOrder &order = cluster.warp(event.actor).order;
  order.exchange = ++cluster.sequence;
  auto &last = order.exchanges[event.at.pc];
  std::erase_if(last, [&](const Exchange &older) { return older.lanes & event.laneMask; });
  last.push_back({event.laneMask, order.exchange});
}

/// Returns true when lanes have exchanged the value of `old`, a load, before the other access was
/// made.
bool HazardChecker::Impl::haveExchanged(const Access &made, const Record &old, uint32_t byte) {
  if (options.strict || old.write() || !kernel)
    return false;
  const WarpState &warp = made.warp ? *made.warp : made.cluster.warps[made.ticket->warpSlot];
  const uint32_t until = made.ticket ? made.ticket->issued : made.record.sequence;
  const uint32_t both =
      lanesOf(old, byte) | (made.ticket ? 1u << made.ticket->lane : lanesOf(made.record, byte));
  return std::ranges::any_of(warp.order.exchanges, [&](const auto &entry) {
    const bool ofBoth = std::ranges::any_of(entry.second, [&](const Exchange &last) {
      return last.sequence > old.sequence && last.sequence < until && !(both & ~last.lanes);
    });
    return ofBoth && loadUses.reaches(*kernel, old.pc, entry.first);
  });
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

/// The first release that would have ordered the access if all lanes had met before it, where the
/// program synchronized; or null.
const LaneRelease *HazardChecker::Impl::releasedByOthers(const Access &made,
                                                         const Record &old) const {
  const auto found = laneHistory.find({old.cluster(), old.slot()});
  const VectorClock *loose = clockOf(made, &Clocks::loose, &Known::loose, old);
  if (found == laneHistory.end() || !loose)
    return nullptr;
  const auto &all = found->second.all;
  const auto release = std::ranges::lower_bound(all, old.epoch(), {}, &LaneRelease::epoch);
  const bool synchronized = release != all.end() && release->epoch <= loose->at(old.slot());
  return synchronized ? &*release : nullptr;
}

/// Returns true when other lanes of its warp know of the access.
bool HazardChecker::Impl::acquiredByOthers(const Access &made, const Record &old) const {
  if (!made.warp || !made.warp->lanes.fewLanes || made.now == &made.warp->lanes.few)
    return false;
  Access other = made;
  other.now = &made.warp->lanes.few;
  const VectorClock *known = clockOf(other, &Clocks::generic, &Known::generic, old);
  return known && known->at(old.slot()) >= old.epoch();
}

static std::string lanesOf(uint32_t mask) {
  if (std::has_single_bit(mask))
    return fmt::format("lane {}", std::countr_zero(mask));
  return fmt::format("some lanes ({:#x})", mask);
}

std::string HazardChecker::Impl::lanesDetail(const Access &made, const Record &old) const {
  if (const LaneRelease *release = releasedByOthers(made, old))
    return fmt::format("only {} of warp {} released, at line {}, and made no such access, or made "
                       "it with others",
                       lanesOf(release->lanes), old.slot() % made.cluster.warpsPerCta,
                       kernel ? kernel->code[release->pc].line : 0);
  return fmt::format("only {} of warp {} acquired it", lanesOf(made.warp->lanes.fewLanes),
                     made.warp->index);
}

} // namespace fp4::sim
