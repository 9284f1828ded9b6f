//===- TimedSample.cpp - Large launches by a sample -----------------------===//
//
// All slots run until enough instructions were executed to know what they do to each other: which
// part of the lines that one asks for others have brought into L2, and which they ask for at the
// same time. Then the first slots go on alone, to the end of the launch, with their part of L2 and
// device memory and with these shares. They have as many clusters as any slot has: of a persistent
// grid their own, of others those whose index they would have got.
//
// The other slots stand still. If anybody wants results, they finish what they have begun after the
// sample, without a time, and what has not begun runs without a clock.
//
//===----------------------------------------------------------------------===//
#include "Sim/Time/TimedLaunch.h"
#include <algorithm>

namespace fp4::sim {

/// Eight multiprocessors, in two clusters or more, so that they see enough of the values of a large
/// grid. The blocks of a persistent grid go on for long and see many: two clusters are enough.
uint32_t TimedLaunch::membersOf() const {
  constexpr uint64_t processors = 8, clusters = 2;
  const bool persistent = launch.totalClusters <= slotsOfAll * residentBlocks;
  const uint64_t enough = persistent ? 1 : (processors + clusterSize - 1) / clusterSize;
  return uint32_t(std::min(slotsOfAll, std::max(clusters, enough)));
}

/// Of a member, so that eight multiprocessors meet in L2.
static unsigned companionsOf(uint64_t processors) {
  constexpr uint64_t together = 8;
  return processors < together ? unsigned(together / processors) - 1 : 0;
}

/// Where the others have to finish all the same, standing still saves nothing. A grid that
/// synchronizes is never sampled.
bool TimedLaunch::maySample() const {
  const uint64_t after = predictor.sampleAfter;
  if (!after || executed < after || launch.config.gridWorkspace || members >= slots.size())
    return false;
  const uint64_t notBegun = launch.totalClusters - launch.nextCluster;
  return predictor.timesOnly || notBegun > slots.size() * residentBlocks;
}

void TimedLaunch::beginSample() {
  phase = Phase::Sample;
  left = launch.nextCluster;
  launch.sample = members;
  launch.sampleOf = slots.size();
  launch.sampling = true;
  machine.scale = double(slots.size()) / double(members);
  machine.memory.sample(1 / machine.scale, companionsOf(members * clusterSize));
}

uint64_t TimedLaunch::firstLeft() const {
  return predictor.timesOnly || phase == Phase::Whole ? launch.totalClusters : left;
}

Status TimedLaunch::finishRest() {
  phase = Phase::Rest;
  if (!predictor.timesOnly) {
    const bool waited = std::exchange(waits, false);
    FP4_TRY(runSlots(0, uint32_t(slots.size())));
    waits = waited;
  }
  return {};
}

} // namespace fp4::sim
