//===- PastLaunches.cpp - Launches that may still run beside this one -----===//
//
// PTX ISA, "griddepcontrol": a dependent launch may begin before the one before it has ended, and
// griddepcontrol.wait returns when that one has, and not those before it. It has ended behind them
// if it began when they had, or if one of its threads waited. Otherwise they may run beside every
// dependent launch that follows, up to the next ordinary one.
//
//===----------------------------------------------------------------------===//
#include "HazardImpl.h"

#include <bit>
#include <utility>

namespace fp4::sim {

using namespace check;

/// Keeps what the launches that may run beside the next one did.
void HazardChecker::Impl::keepLaunch(bool isDependent) {
  if (!isDependent)
    older.clear();
  else if (dependent && !awaits)
    older.add(before.launch);
  before = {};
  if (isDependent)
    before = {{std::move(global), std::exchange(readers, {})}, program && !dependent};
  dependent = isDependent;
  awaits = false;
}

/// Whether `past` writes what this one reads, or uses what it writes.
template <typename Past>
bool HazardChecker::Impl::meets(const Past &past, const MemoryEvent &event) const {
  const bool writes = event.kind != AccessKind::Read;
  if (event.actor.ticket)
    return past.used(event.addresses[0], event.bytes, writes);
  for (uint32_t rest = event.laneMask; rest; rest &= rest - 1)
    if (past.used(event.addressOf(uint32_t(std::countr_zero(rest))), event.bytes, writes))
      return true;
  return false;
}

/// The launch before may still write what this one reads, and read what it writes. What an earlier
/// one writes is known to be there if the launch before began when that had ended, or waited for
/// it.
bool HazardChecker::Impl::meetsLaunchBefore(const MemoryEvent &event, bool waited) const {
  if (waited)
    return meets(older, event);
  return !before.alone || meets(before.launch, event);
}

void HazardChecker::Impl::checkGridWait(Access &made, const MemoryEvent &event) {
  // What an operation reads when it is issued it reads before it is known as a ticket.
  const bool isIssued = made.ticket && made.ticket->id == 0;
  const WarpState &issuer = made.cluster.warp(event.actor);
  const Clocks &known = isIssued ? made.cluster.known(issuer, issuer.lanes.fewLanes) : *made.now;
  if (!meetsLaunchBefore(event, known.generic.at(made.cluster.gridSlot())))
    return;
  const bool one = made.ticket || event.contiguous || event.uniform;
  const uint32_t first = one ? 0 : uint32_t(std::countr_zero(event.laneMask));
  report(made, made.record, HazardRule::MissingGridWait, event.addresses[first]);
}

size_t HazardChecker::keptPages() const { return impl->older.numPages(); }

} // namespace fp4::sim
