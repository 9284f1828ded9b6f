//===- TimedTurns.cpp - The warp that a scheduler issues ------------------===//
//
// A scheduler issues the warp that began first, as long as it can go on. So instructions of a new
// CTA before its first load wait until earlier CTAs have computed, and nothing hides the latency of
// that load then (H200, micro: streams, order).
//
//===----------------------------------------------------------------------===//
#include "Sim/Time/TimedLaunch.h"
#include <algorithm>

namespace fp4::sim {

/// Returns the turns of the scheduler that an event of a turn names.
const Turns &TimedLaunch::turnsOf(const Slot &slot, const TimedEvent &event) const {
  const size_t first = size_t(slot.index) * clusterSize;
  return machine.processors[first + event.running / kSchedulers].turns[event.running % kSchedulers];
}

/// Makes an event for the next time at which a scheduler may issue one of the warps that wait. The
/// event comes behind others of that time, so that a warp that goes on then takes part.
void TimedLaunch::announceTurn(Slot &slot, Sm &sm, unsigned scheduler, double now) {
  constexpr uint64_t last = uint64_t(1) << 63;
  Turns &turns = sm.turns[scheduler];
  if (turns.announced || turns.empty())
    return;
  turns.announced = true;
  const auto index = uint32_t(&sm - &machine.processors[slot.index * clusterSize]);
  slot.events.push({std::max(now, sm.issue[scheduler].free), order++ | last,
                    index * kSchedulers + scheduler, kTurn, 0});
}

/// The warp of an event has its data and its instruction.
Status TimedLaunch::runReady(Slot &slot, const TimedEvent &event, TimedWarp &warp) {
  if (!code[warp.pc].count)
    return step(slot, event.running, warp, event.when);
  Turns &turns = warp.processor->turns[warp.scheduler];
  if (turns.empty() && warp.processor->issue[warp.scheduler].free <= event.when) {
    const auto issued = tryIssue(slot, event.running, event.warp, event.when);
    return issued ? Status() : tl::unexpected<Error>(issued.error());
  }
  turns.add({warp.age, order++, event.running, event.warp});
  announceTurn(slot, *warp.processor, warp.scheduler, event.when);
  return {};
}

Status TimedLaunch::runTurn(Slot &slot, const TimedEvent &event) {
  Sm &sm = machine.processors[slot.index * clusterSize + event.running / kSchedulers];
  const unsigned scheduler = event.running % kSchedulers;
  sm.turns[scheduler].announced = false;
  for (bool issued = false; !issued && !sm.turns[scheduler].empty();) {
    const Turns::Entry next = sm.turns[scheduler].take();
    FP4_ASSIGN(issued, tryIssue(slot, next.running, next.warp, event.when));
  }
  announceTurn(slot, sm, scheduler, event.when);
  return {};
}

/// Issues the next instruction of a warp if its unit is free. Otherwise the warp comes again when
/// that is so, and others go on.
Expected<bool> TimedLaunch::tryIssue(Slot &slot, uint32_t place, uint32_t index, double now) {
  Running &running = *slot.running[place];
  TimedWarp &warp = running.warps[index];
  const TimedInsn &insn = code[warp.pc];
  spend(running, warp, Activity::Scheduler, warp.waited, now);
  warp.waited = now;
  double when = now;
  if (!reserve(warp, insn, now, when)) {
    spend(running, warp, Activity::Pipe, now, when);
    warp.waited = when;
    slot.events.push({when, order++, place, index, 0});
    return false;
  }
  warp.processor->issue[warp.scheduler].serve(now, insn.count);
  FP4_TRY(step(slot, place, warp, now));
  return true;
}

} // namespace fp4::sim
