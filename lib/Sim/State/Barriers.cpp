//===- Barriers.cpp - barrier.cta and barrier.cluster ---------------------===//
#include "Sim/State/Barriers.h"
#include <bit>

using namespace fp4::sim;

static void completeIfFull(Cta &cta, CtaBarrier &barrier) {
  uint32_t wanted = barrier.expected ? barrier.expected : cta.barrierThreads();
  if (barrier.arrived == 0 || barrier.arrived < wanted)
    return;
  barrier.arrived = 0;
  barrier.expected = 0;
  barrier.lastTrues = barrier.trues;
  barrier.lastReducers = barrier.reducers;
  barrier.trues = barrier.reducers = 0;
  ++barrier.generation;
}

static void completeIfFull(Cluster &cluster) {
  ClusterBarrier &barrier = cluster.barrier;
  if (barrier.arrived == 0 || barrier.arrived < cluster.liveThreads)
    return;
  barrier.arrived = 0;
  ++barrier.generation;
  for (auto &cta : cluster.ctas)
    for (Warp &warp : cta->warps)
      warp.clusterArrived = 0;
}

void fp4::sim::arriveAt(Cta &cta, uint32_t barrier, uint32_t threads) {
  cta.barriers[barrier].arrived += threads;
  completeIfFull(cta, cta.barriers[barrier]);
}

void fp4::sim::arriveAtCluster(Warp &warp, uint32_t lanes) {
  Cluster &cluster = *warp.cta->cluster;
  warp.clusterArrived |= lanes;
  cluster.barrier.arrived += static_cast<uint32_t>(std::popcount(lanes));
  completeIfFull(cluster);
}

void fp4::sim::lanesExited(Warp &warp, uint32_t lanes) {
  Cta &cta = *warp.cta;
  for (CtaBarrier &barrier : cta.barriers)
    if (!barrier.expected)
      completeIfFull(cta, barrier);
  Cluster &cluster = *cta.cluster;
  cluster.barrier.arrived -= static_cast<uint32_t>(std::popcount(lanes & warp.clusterArrived));
  warp.clusterArrived &= ~lanes;
  completeIfFull(cluster);
}

bool fp4::sim::awaitsClusters(const Cluster &cluster) {
  for (const auto &cta : cluster.ctas)
    for (const Warp &warp : cta->warps)
      for (const LaneGroup &group : warp.groups)
        if (group.wait && group.wait->awaitsClusters())
          return true;
  return false;
}

bool fp4::sim::allBlocked(const Cluster &cluster) {
  for (const auto &cta : cluster.ctas)
    for (const Warp &warp : cta->warps)
      for (const LaneGroup &group : warp.groups)
        if (!group.wait || group.wait->polls() || group.wait->ready())
          return false;
  return true;
}
