//===- Launch.h - One kernel launch: what all its clusters share ----------===//
#pragma once

#include "Sim/Decode/AddressSpace.h"
#include "Sim/Decode/ProgramImpl.h"
#include "Sim/State/AlignedBytes.h"
#include "Sim/State/ClusterSizes.h"
#include "fp4/Sim/MemoryModel.h"
#include "fp4/Sim/Simulator.h"
#include <atomic>
#include <mutex>

namespace fp4::sim {

/// Each quarter of an SM has the registers of every fourth warp, so that the last warps of a CTA
/// count as four.
constexpr uint64_t threadsWithRegisters(uint64_t threads) {
  constexpr uint64_t together = 4 * 32;
  return (threads + together - 1) / together * together;
}

/// Immutable while clusters run, except what `lock` guards.
struct Launch {
  const SimOptions *options = nullptr;
  const ProgramImpl *program = nullptr;
  const Kernel *kernel = nullptr;
  GlobalMemory *memory = nullptr;
  LaunchConfig config;              ///< cluster filled in
  std::vector<ClusterPlace> places; ///< clusters of a launch with two cluster sizes, else empty
  std::vector<std::byte> params;
  bool explicitCluster = false; ///< a cluster was asked for, even one of 1 CTA
  /// SMs that have no room for such a cluster run smaller ones in its place.
  bool fallsBack = false;
  std::vector<AlignedBytes> constantsByRank; ///< bank 1
  Observer *observer = nullptr;
  bool onlyTimed = false; ///< it is that of a prediction, which asynchronous operations do not tell
  Observer *ticketObserver() const { return onlyTimed ? nullptr : observer; }
  uint32_t sms = 1;             ///< SMs of the target
  double gigahertz = 1;         ///< clock of a timed launch
  double epoch = 0;             ///< nanoseconds at which a timed launch begins
  uint32_t idleTickets = 0;     ///< mask of the kinds that move and compute nothing (--time-only)
  std::vector<SharedRange> loadedShared; ///< offsets at which such operations write all the same
  /// %globaltimer at a cycle of this launch.
  uint64_t nanoseconds(double cycles) const { return uint64_t(epoch + cycles / gigahertz); }

  /// Returns the number of such clusters of a grid along each axis.
  Extent3 clustersOf(const Extent3 &shape) const;
  ClusterPlace placeOf(uint64_t cluster) const;
  const Extent3 &shapeOf(const ClusterPlace &place) const {
    return place.preferred ? config.preferredCluster : config.cluster;
  }
  /// CTAs of the largest clusters.
  uint64_t largestCluster() const {
    return volume(places.empty() ? config.cluster : config.preferredCluster);
  }

  /// Cluster launch control: takes the next cluster that has not started, if any is left and it has
  /// the shape of the one that asks. The caller owns its work from then on.
  bool cancelNextCluster(const Extent3 &shape, Extent3 &firstCta);

  /// If a sample of the launch is timed: `sample` clusters of each `sampleOf` in a row, which run
  /// first. 0: all run at once.
  uint64_t sample = 0, sampleOf = 0;
  /// The begins of samples follow the golden section, so that sampled clusters have no property of
  /// their own: the work of a CTA often depends on its index modulo something.
  bool isSample(uint64_t cluster) const {
    constexpr uint64_t golden = 0x9E3779B97F4A7C15; // of 2^64
    const uint64_t first = (cluster / sampleOf * golden >> 32) * sampleOf >> 32;
    return (cluster % sampleOf + sampleOf - first) % sampleOf < sample;
  }
  bool sampling = false; ///< true while the sample runs
  /// Skips the clusters that do not run now; false when none is left. Under the lock.
  bool findNext() {
    while (nextCluster < totalClusters && sampleOf && isSample(nextCluster) != sampling)
      ++nextCluster;
    return nextCluster < totalClusters;
  }

  /// The launch has begun before launches that it depends on have ended.
  std::atomic<bool> early = false;
  mutable std::atomic<bool> awaited = false; ///< a thread has executed griddepcontrol.wait

  SpareBytes registers; ///< registers that ended CTAs have left
  std::mutex lock;
  uint64_t nextCluster = 0;      ///< guarded by lock
  uint64_t canceledClusters = 0; ///< guarded by lock
  uint64_t canceledCtas = 0;     ///< guarded by lock
  uint64_t totalClusters = 0;
};

} // namespace fp4::sim
