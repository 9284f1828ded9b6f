//===- WaitGraph.h - Chains of waits ---------------------------------------===//
//
// A group of lanes waits at a barrier for the warps that are expected there: those of the CTA, or,
// at an mbarrier and at a barrier with a count, those that arrived in the phase before, or copied
// bytes, and have not again. Such a warp waits at another barrier, has exited, or runs. From wait
// to wait that leads to an end, or around in a ring.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/State/Awaited.h"
#include "Sim/State/Cluster.h"
#include <optional>
#include <string>
#include <vector>

namespace fp4::sim {

/// A group of lanes that waits.
struct Blocked {
  const Cta *cta;
  const Warp *warp;
  const LaneGroup *group;
  std::optional<Awaited> awaited; ///< none: it does not wait for warps
};

std::vector<Blocked> blockedGroups(const Cluster &cluster);

/// The place of a wait in a report: 0 for one that tells most, 2 for one that tells least, since
/// other lanes of its own warp have not come.
int rankOf(const Blocked &blocked);

/// The instruction at which a group waits. The pc of a group that will not retry already points to
/// the next one.
inline uint32_t waitingAt(const LaneGroup &group) {
  return group.retry || group.pc == 0 ? group.pc : group.pc - 1;
}

/// The end of a chain of waits.
struct WaitEnd {
  std::string text; ///< "warp 0 <- 'empty' <- warps 4-7 <- 'full' <- warp 0: a ring"; may be empty
  const Cta *cta = nullptr; ///< CTA of the group that waits there
  const LaneGroup *group = nullptr;
};

/// Follows the waits of each group, and returns the end that explains most; none while a warp runs.
WaitEnd findEnd(const Cluster &cluster, const std::vector<Blocked> &blocked);

} // namespace fp4::sim
