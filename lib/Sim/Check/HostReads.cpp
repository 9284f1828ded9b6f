//===- HostReads.cpp - Memory that the host reads while kernels run -------===//
//
// PTX ISA, "Memory Consistency Model", with the host as one more thread: it waits for a word with
// acquires of system scope, and reads the memory around it then. The host may read at any time,
// also when the program is wrong. No run shows this: a launch of the simulator ends before the host
// goes on.
//===----------------------------------------------------------------------===//
#include "HazardImpl.h"

#include <algorithm>
#include <bit>

namespace fp4::sim {

using namespace check;

namespace {

/// Returns true when the host may wait for an access: .volatile is relaxed in system scope.
bool isForHost(const MemoryEvent &event) {
  return !event.actor.ticket && (event.order == MemOrder::Volatile ||
                                 (event.order != MemOrder::Weak && event.scope == Scope::Sys));
}

} // namespace

/// Returns true when a thread that acquires at `address`, as the host does, knows of `written`.
bool HazardChecker::Impl::isPublished(uint64_t address, const Record &written) const {
  const auto at = global.releases.find(address);
  if (at == global.releases.end())
    return false;
  const auto publishes = [&](const auto &ofCluster) {
    return std::ranges::any_of(ofCluster.second, [&](const Release &from) {
      const VectorClock *clock = &from.clocks.generic;
      if (from.cluster != written.cluster()) {
        const Foreign *foreign = from.clocks.foreign.get();
        const Known *known = foreign ? foreign->find(written.cluster()) : nullptr;
        if (!known)
          return false;
        clock = &known->generic;
      }
      return from.scope == Scope::Sys && (clock->at(written.slot()) >= written.epoch() ||
                                          isReleased(laneHistory, *clock, written, written.mask));
    });
  };
  return std::ranges::any_of(at->second.all, publishes);
}

/// A strong store for the host, which may read all that is written then.
void HazardChecker::Impl::showHost(Access &made, const Unpublished &seen) {
  std::erase_if(global.unpublished, [&](const Unpublished &written) {
    if (written.allocation != seen.allocation)
      return false;
    const bool isSameWord = written.address < seen.address + seen.bytes &&
                            seen.address < written.address + written.bytes;
    if (isSameWord || !isPublished(seen.address, written.record))
      report(made, written.record, HazardRule::HostRace, written.address);
    return true;
  });
}

void HazardChecker::Impl::writePolled(Access &made, const MemoryEvent &event) {
  for (uint32_t rest = event.actor.ticket ? 1 : event.laneMask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const uint64_t address = event.addressOf(uint32_t(lane));
    const Allocation *allocation = memory->find(address, event.bytes);
    if (!allocation || !allocation->polled)
      continue;
    Record record = made.record;
    record.who &= ~(Record::laneFields | Record::manyLanesBit);
    record.who |= Record::laneBits(lane) | wholeCells << Record::laneShiftAt;
    record.mask = byteMask(address % cellBytes, 1);
    const Unpublished written{allocation, address, event.bytes, record};
    if (isForHost(event))
      showHost(made, written);
    else
      global.unpublished.push_back(written);
  }
}

/// Nobody publishes what a CTA that exits has not.
void HazardChecker::Impl::leavePolled(const Access &exit) {
  Access made = exit;
  made.space = Space::Global;
  made.record.who &= ~Record::writeBit;
  std::erase_if(global.unpublished, [&](const Unpublished &written) {
    const Record &record = written.record;
    if (record.cluster() != made.cluster.index || record.async() ||
        made.cluster.warpOfSlot(record.slot()).rank != made.warp->rank)
      return false;
    report(made, record, HazardRule::HostRace, written.address);
    return true;
  });
}

} // namespace fp4::sim
