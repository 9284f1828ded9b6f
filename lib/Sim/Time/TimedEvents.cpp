//===- TimedEvents.cpp - Events that only a timed launch has --------------===//
#include "Sim/Time/TimedLaunch.h"

namespace fp4::sim {

/// The CTAs of a cluster begin on their SMs.
void TimedLaunch::tellStart(const Running &running, uint32_t firstSm, double when) {
  if (!inText)
    return;
  setClock(when);
  for (const auto &cta : running.cluster.ctas)
    inText->onLife({.actor = {uint32_t(running.cluster.index), cta->rank, 0, 0},
                    .at = {},
                    .op = LifeOp::CtaStart,
                    .laneMask = 0,
                    .object = firstSm + cta->rank,
                    .count = 0});
}

/// Accounts for a stretch of the life of a warp, in cycles, and tells it.
void TimedLaunch::spend(const Running &running, TimedWarp &warp, Activity activity, double begin,
                        double end) {
  warp.account.cycles[size_t(activity)] += end - begin;
  if (!inText || !(end > begin) || !predicts())
    return;
  inText->onActivity({{uint32_t(running.cluster.index), warp.warp->cta->rank, warp.warp->index, 0},
                      {warp.pc, launch.kernel->code[warp.pc].line},
                      activity,
                      begin / launch.timing.gigahertz,
                      end / launch.timing.gigahertz});
}

} // namespace fp4::sim
