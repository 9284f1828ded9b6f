//===- ArrivalsAhead.h - Arrivals behind a wait ----------------------------===//
//
// Nobody has arrived at an mbarrier yet, so that no phase before says who does. The text says it:
// the arrivals to which the way of a waiting group leads, if their addresses are sums of constants.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Async/WaitGraph.h"

namespace fp4::sim {

struct ArrivalAhead {
  const Blocked *by; ///< group behind whose wait it stands
  CodePoint at;
};

/// The first arrival at the mbarrier `at` ahead of each waiting group. Groups that wait there
/// themselves count only where no others come.
std::vector<ArrivalAhead> arrivalsAhead(const Cluster &cluster, const std::vector<Blocked> &blocked,
                                        const Awaited &at);

} // namespace fp4::sim
