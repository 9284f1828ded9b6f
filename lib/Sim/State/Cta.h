//===- Cta.h - One CTA: warps, shared memory, barriers --------------------===//
#pragma once

#include "Sim/State/AlignedBytes.h"
#include "Sim/State/SharedMemory.h"
#include "Sim/State/Warp.h"
#include <array>

namespace fp4::sim {

class Cluster;

/// State of one hardware barrier (bar / barrier.cta resource 0..15). A warp that arrives with all
/// its live lanes counts 32 threads, else the lanes count.
struct CtaBarrier {
  uint32_t expected = 0;   ///< threads; 0: all the CTA's threads that have not exited
  uint32_t arrived = 0;    ///< threads, in the current phase
  uint64_t generation = 0; ///< completed phases
  uint32_t trues = 0;      ///< barrier.red: threads of this phase whose predicate was true
  uint32_t reducers = 0;   ///< barrier.red: threads of this phase
  uint32_t lastTrues = 0, lastReducers = 0; ///< counts of the last completed phase
};

class Cta {
public:
  Cluster *cluster = nullptr;
  uint32_t rank = 0;               ///< %cluster_ctarank
  std::array<uint32_t, 3> index{}; ///< %ctaid
  uint64_t linear = 0;             ///< x-fastest index in the grid
  uint32_t threads = 0;
  std::vector<Warp> warps;
  AlignedBytes registers;     ///< registers of all warps
  uint32_t freeRegisters = 0; ///< registers that setmaxnreg.dec gave back and .inc has not taken
  uint32_t liveWarps = 0;
  SharedMemory shared;
  std::array<CtaBarrier, 16> barriers;
  bool sawRequestFail = false; ///< clusterlaunchcontrol: a query said that a request has failed

  /// Threads barrier.cta without a count waits for: 32 for each warp that has live lanes.
  uint32_t barrierThreads() const { return 32 * liveWarps; }
  bool done() const { return liveWarps == 0; }
};

} // namespace fp4::sim
