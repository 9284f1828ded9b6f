//===- PastLaunches.cpp - Launches that may still run beside this one -----===//
//
// PTX ISA, "griddepcontrol": a dependent launch may begin when every CTA of those that it depends
// on has executed launch_dependents or has ended, and griddepcontrol.wait returns when those have
// ended. A launch that was waited for has ended when the waiting launch has ended, and when the
// next one begins if a CTA triggers behind its wait. A launch in the middle that never waits says
// nothing of those before it, which then run on beside the next one, also behind its wait. An
// ordinary launch begins when all have ended.
//
//===----------------------------------------------------------------------===//
#include "PastLaunches.h"
#include "HazardImpl.h"
#include "fp4/Sim/Events/FenceEvent.h"
#include "fp4/Sim/Program.h"

#include <bit>
#include <fmt/format.h>
#include <utility>

namespace fp4::sim {

using namespace check;

namespace check {

/// `to` and all of `from`.
static void unite(std::shared_ptr<const UsedBytes> &to,
                  const std::shared_ptr<const UsedBytes> &from) {
  if (!from || to == from)
    return;
  if (!to) {
    to = from;
    return;
  }
  auto both = std::make_shared<UsedBytes>(*to);
  both->add(*from);
  to = std::move(both);
}

/// `to` and the launches that `beside` begins beside, without those of `but`.
static void uniteAll(std::shared_ptr<const UsedBytes> &to, const Beside &beside,
                     const std::vector<std::shared_ptr<const PastLaunch>> &but) {
  unite(to, beside.early);
  std::shared_ptr<UsedBytes> more;
  for (const auto &launch : beside.before) {
    if (std::ranges::count(but, launch))
      continue;
    if (!more)
      more = to ? std::make_shared<UsedBytes>(*to) : std::make_shared<UsedBytes>();
    more->add(*launch);
  }
  if (more)
    to = std::move(more);
}

void History::keep(std::weak_ptr<const LaunchMark> mark, std::shared_ptr<const PastLaunch> launch,
                   Beside beside, GridSignals signals) {
  kept.push_back({std::move(mark), std::move(launch), std::move(beside), std::move(signals)});
}

void History::forget() {
  std::erase_if(kept, [](const Kept &launch) { return launch.mark.expired(); });
}

const History::Kept *History::find(const LaunchRef &mark) const {
  const auto found =
      std::ranges::find_if(kept, [&](const Kept &launch) { return launch.mark.lock() == mark; });
  return found == kept.end() ? nullptr : &*found;
}

Beside History::besideOf(const std::vector<Prerequisite> &on) const {
  Beside made;
  std::vector<std::pair<const Kept *, bool>> launches; ///< and whether their triggers count
  for (const Prerequisite &prerequisite : on)
    if (const Kept *launch = find(prerequisite.launch)) {
      launches.emplace_back(launch, prerequisite.triggers);
      made.before.push_back(launch->launch);
    }
  for (const auto &[launch, triggers] : launches) {
    if (triggers && launch->signals.triggersBehindWait())
      unite(made.early, launch->beside.late);
    else
      uniteAll(made.early, launch->beside, made.before);
    if (launch->signals.awaits())
      unite(made.late, launch->beside.late);
    else
      uniteAll(made.late, launch->beside, made.before);
  }
  return made;
}

} // namespace check

/// Keeps what the last launch did, if a later one may depend on it.
void HazardChecker::Impl::keepLaunch(std::string_view name, const Dependence &next) {
  grids.history.forget();
  if (!grids.mark.expired()) {
    grids.usedApart.copyTo(global.shadow);
    grids.history.keep(std::exchange(grids.mark, {}),
                       std::make_shared<PastLaunch>(std::move(global.shadow),
                                                    std::exchange(global.readers, {}),
                                                    std::move(grids.launched)),
                       std::move(grids.beside), std::move(grids.signals));
  }
  grids.beside = grids.history.besideOf(next.on);
  grids.signals = {};
  grids.mark = next.mark;
  grids.launched = name;
  grids.dependent = !next.on.empty();
  grids.dependentBy = next.by;
  grids.usedApart = {};
}

void HazardChecker::Impl::signalGrid(ClusterState &cluster, const FenceEvent &event) {
  WarpState &warp = cluster.warp(event.actor);
  const uint64_t cta = cluster.ctaNumber(event.actor);
  const uint32_t slot = cluster.gridSlot();
  if (event.kind == FenceKind::GridTrigger)
    return grids.signals.triggers(cta, cluster.known(warp, event.laneMask).generic.at(slot));
  grids.signals.waits(cta);
  cluster.teach(warp, event.laneMask, [&](Clocks &clocks) { clocks.raiseAll(slot, 1); });
}

/// Returns true when `past` writes what this launch reads, or uses what this launch writes.
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

void HazardChecker::Impl::checkGridWait(Access &made, const MemoryEvent &event) {
  // Reads at the issue of an operation come before the operation is known as a ticket.
  const bool isIssued = made.ticket && made.ticket->id == 0;
  const WarpState &issuer = made.cluster.warp(event.actor);
  const Clocks &known = isIssued ? made.cluster.known(issuer, issuer.lanes.fewLanes) : *made.now;
  const bool waited = known.generic.at(made.cluster.gridSlot()) != 0;
  const std::shared_ptr<const UsedBytes> &others = waited ? grids.beside.late : grids.beside.early;
  const auto met = std::ranges::find_if(
      grids.beside.before, [&](const auto &launch) { return !waited && meets(*launch, event); });
  if (met == grids.beside.before.end() && !(others && meets(*others, event)))
    return;
  grids.met = {met == grids.beside.before.end() ? nullptr : met->get(), waited};
  const bool one = made.ticket || event.contiguous || event.uniform;
  const uint32_t first = one ? 0 : uint32_t(std::countr_zero(event.laneMask));
  report(made, made.record, HazardRule::MissingGridWait, event.addresses[first]);
}

/// Describes how the launch came to run beside others, and names them.
std::string HazardChecker::Impl::gridWaitDetail() const {
  const std::string by = grids.dependentBy.empty() ? "" : fmt::format("by {} ", grids.dependentBy);
  if (grids.met.waited)
    return by +
           "the launch may run beside earlier ones: it waited for the one before, but a launch "
           "between the two accesses did not wait, and the first may still run";
  if (grids.met.launch)
    return by + fmt::format("the launch may begin before '{}' has ended",
                            displayName(grids.met.launch->kernel));
  return by + "the launch may begin before earlier ones have ended: the one before it may not have "
              "waited for them by then";
}

size_t HazardChecker::keptPages() const {
  return impl->grids.beside.early ? impl->grids.beside.early->numPages() : 0;
}

} // namespace fp4::sim
