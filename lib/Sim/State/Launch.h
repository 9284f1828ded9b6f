//===- Launch.h - One kernel launch: what all its clusters share ----------===//
#pragma once

#include "Sim/Decode/AddressSpace.h"
#include "Sim/Decode/ProgramImpl.h"
#include "Sim/State/AlignedBytes.h"
#include "Sim/State/ClusterSizes.h"
#include "Sim/State/SmColumns.h"
#include "fp4/Sim/MemoryModel.h"
#include "fp4/Sim/Simulator.h"
#include <atomic>
#include <mutex>

namespace fp4::hw {
struct TargetModel;
}

namespace fp4::sim {

/// Each quarter of an SM has the registers of every fourth warp, so that the last warps of a CTA
/// count as four.
constexpr uint64_t threadsWithRegisters(uint64_t threads) {
  constexpr uint64_t together = 4 * 32;
  return (threads + together - 1) / together * together;
}

/// The part of a timed launch that runs first, and stands for the rest.
struct LaunchSample {
  uint64_t members = 0, slots = 0; ///< `members` clusters of each `slots` in a row. 0: all
  bool runs = false;               ///< true while the sample runs

  /// The begins of samples follow the golden section, so that sampled clusters have no property of
  /// their own: the work of a CTA often depends on its index modulo something.
  bool has(uint64_t cluster) const {
    constexpr uint64_t golden = 0x9E3779B97F4A7C15; // of 2^64
    const uint64_t first = (cluster / slots * golden >> 32) * slots >> 32;
    return (cluster % slots + slots - first) % slots < members;
  }
  /// True for a cluster that does not run now.
  bool skips(uint64_t cluster) const { return slots && has(cluster) != runs; }
};

/// Facts of a launch of which times are predicted.
struct LaunchTiming {
  bool onlyTimed = false; ///< the observer is that of a prediction, which asynchronous operations
                          ///< do not tell
  double gigahertz = 1;
  double epoch = 0;         ///< nanoseconds at which the launch begins
  uint32_t idleTickets = 0; ///< mask of the kinds that move and compute nothing (--time-only)
  std::vector<SharedRange> loadedShared; ///< offsets at which such operations write all the same
};

/// Stores of SMs that CTAs have while they run.
struct SmStores {
  SpareBytes registers;               ///< registers that ended CTAs have left
  std::unique_ptr<SmColumns> columns; ///< null: every CTA has the tensor memory of an SM to itself
};

/// Clusters that have not started; guarded by the lock of the launch.
struct ClusterQueue {
  uint64_t nextCluster = 0;
  uint64_t canceledClusters = 0;
  uint64_t canceledCtas = 0;
  uint64_t totalClusters = 0; ///< does not change while clusters run
};

/// Immutable while clusters run, except what `lock` guards.
struct Launch {
  const SimOptions *options = nullptr;
  const hw::TargetModel *target = nullptr; ///< that of the options
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
  LaunchTiming timing;
  Observer *ticketObserver() const { return timing.onlyTimed ? nullptr : observer; }
  uint32_t sms = 1; ///< SMs of the target
  /// %globaltimer at a cycle of this launch.
  uint64_t nanoseconds(double cycles) const {
    return uint64_t(timing.epoch + cycles / timing.gigahertz);
  }

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

  LaunchSample sampling;
  /// Skips the clusters that do not run now; false when none is left. Under the lock.
  bool findNext() {
    while (queue.nextCluster < queue.totalClusters && sampling.skips(queue.nextCluster))
      ++queue.nextCluster;
    return queue.nextCluster < queue.totalClusters;
  }

  /// The launch has begun before launches that it depends on have ended.
  std::atomic<bool> early = false;
  mutable std::atomic<bool> awaited = false; ///< a thread has executed griddepcontrol.wait

  SmStores sm;
  std::mutex lock;
  ClusterQueue queue;
};

} // namespace fp4::sim
