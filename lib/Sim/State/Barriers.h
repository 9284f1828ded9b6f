//===- Barriers.h - barrier.cta and barrier.cluster -----------------------===//
#pragma once

#include "Sim/State/Cluster.h"

namespace fp4::sim {

/// Adds `threads` to a barrier, and completes its phase when that was the last.
void arriveAt(Cta &cta, uint32_t barrier, uint32_t threads);
/// Lanes of `warp` exited (and have left Warp::live): barriers that wait for all threads may be
/// complete now.
void lanesExited(Warp &warp, uint32_t lanes);
/// Lanes of `warp` arrive at barrier.cluster.
void arriveAtCluster(Warp &warp, uint32_t lanes);

/// Returns true when a group waits for what another cluster has.
bool awaitsClusters(const Cluster &cluster);
/// Returns true when no group of the cluster is runnable (all live groups wait).
bool allBlocked(const Cluster &cluster);

} // namespace fp4::sim
