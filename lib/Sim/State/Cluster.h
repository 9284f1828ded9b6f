//===- Cluster.h - CTAs that run together, on one host thread -------------===//
#pragma once

#include "Sim/State/AsyncWork.h"
#include "Sim/State/ClusterSizes.h"
#include "Sim/State/Cta.h"
#include "Sim/State/Policy.h"

namespace fp4::sim {

struct Launch;

/// barrier.cluster: a generation completes when every live thread of the cluster has arrived.
struct ClusterBarrier {
  uint64_t generation = 0;
  uint32_t arrived = 0; ///< live threads in this generation
};

class Cluster {
public:
  /// Starts the CTAs of cluster `index`: registers, shared memory and tickets are ready to run.
  Cluster(Launch &launch, uint64_t index);
  ~Cluster();

  Launch *launch = nullptr;
  uint64_t index = 0;                     ///< number in the order of the launch
  ClusterPlace place;                     ///< place in the grid
  std::array<uint32_t, 3> shape{};        ///< %cluster_nctaid
  std::vector<std::unique_ptr<Cta>> ctas; ///< CTAs by rank
  ClusterBarrier barrier;
  uint32_t liveThreads = 0; ///< threads that have not exited
  uint64_t tickets = 0;     ///< tickets that completed; the queue counts them
  uint64_t mmas = 0;        ///< MMAs that were executed; handlers count them
  uint64_t changes = 0;     ///< changes of mbarriers; the queue counts them
  uint32_t columnsPlace = 0; ///< place among Launch::sm.columns
  bool turnIsOver = false;   ///< other clusters shall have a turn now
  std::unique_ptr<Policy> policy;
  std::unique_ptr<AsyncWork> async;

  /// The CTA of a shared::cluster address, or null when the rank does not exist.
  Cta *ctaOfSharedAddress(uint32_t address) {
    uint32_t rank = address >> kSharedRankShift;
    return rank < ctas.size() ? ctas[rank].get() : nullptr;
  }
};

} // namespace fp4::sim
