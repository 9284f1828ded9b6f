//===- Cta.h - A thread block: warps, shared memory, barriers -------------===//
#pragma once

#include "Sim/State/SharedMemory.h"
#include "Sim/State/Warp.h"
#include <array>

namespace fp4::sim {

class Cluster;

/// State of one hardware barrier (bar / barrier.cta resource 0..15).
struct CtaBarrier {
  uint32_t expected = 0;   ///< threads; 0 while nobody waits
  uint32_t arrived = 0;    ///< threads
  uint64_t generation = 0; ///< completed phases
  uint32_t reduction = 0;  ///< barrier.red: running value of popc, and, or
  uint32_t result = 0;     ///< of the last completed phase
};

class Cta {
public:
  Cluster *cluster = nullptr;
  uint32_t rank = 0;                ///< %cluster_ctarank
  std::array<uint32_t, 3> index{};  ///< %ctaid
  uint64_t linear = 0;              ///< x-fastest index in the grid
  uint32_t threads = 0;
  std::vector<Warp> warps;
  uint32_t liveWarps = 0;
  SharedMemory shared;
  std::array<CtaBarrier, 16> barriers;
  uint64_t clusterArrivals = 0;     ///< barrier.cluster phases this CTA's threads arrived at

  bool done() const { return liveWarps == 0; }
};

} // namespace fp4::sim
