//===- ApartObserver.h - An observer of clusters at the same time ---------===//
//
// An observer of a launch is told of one cluster after the other. If no cluster uses what another
// writes, each of them does the same alone, and they may run on several host threads. The observer
// knows when they have ended: if one used another's bytes, the simulator takes back what they wrote,
// and runs the launch again, one cluster after the other.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace fp4::sim {

/// An observer that can be told of several clusters of a launch at the same time.
class ApartObserver {
public:
  virtual ~ApartObserver() = default;
  /// Clusters of the last launch run at the same time from now on. Returns false if they may not.
  virtual bool beginApart() = 0;
  /// This host thread runs a cluster from now on, and tells of it.
  virtual void beginCluster() = 0;
  /// The cluster of this host thread has ended. Returns false if the clusters so far do depend on
  /// each other.
  virtual bool endCluster(uint32_t cluster) = 0;
  /// The last cluster has ended. If the clusters did not depend on each other, their events
  /// `count`; otherwise nothing has happened.
  virtual void endApart(bool count) = 0;
};

} // namespace fp4::sim
