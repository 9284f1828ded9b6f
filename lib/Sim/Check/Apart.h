//===- Apart.h - Clusters that are checked at the same time ---------------===//
//
// If no cluster uses what another writes, the hazards of a launch are those of its clusters, in
// their order. Each host thread then has the state of a checker, for one cluster after the other.
// Cells of global memory that clusters used are compared when they end: a cell keeps (Shadow.h) then
// what it would keep if it had been told of all.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "HazardImpl.h"

#include <mutex>

namespace fp4::sim {

class HazardChecker::Impl::Apart {
public:
  explicit Apart(const Impl &whole) : whole(whole) {}
  void begin();
  bool end(uint32_t cluster);
  /// Gives the findings of all clusters to `to`.
  void close(Impl &to);
  /// The state for the cluster that this host thread runs.
  static Impl &ofThread() { return *mine; }

private:
  const Impl &whole;
  std::mutex lock;
  // Guarded by lock:
  std::vector<std::unique_ptr<Impl>> idle;
  std::map<uint32_t, check::Findings> findings; ///< by cluster, where there are any
  check::UsedBytes used;

  static thread_local std::unique_ptr<Impl> mine;
};

} // namespace fp4::sim
