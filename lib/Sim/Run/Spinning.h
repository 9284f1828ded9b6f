//===- Spinning.h - Warps that run and get nowhere ------------------------===//
//
// A cluster whose warps run for long without an exit is examined (Scheduler::look): for some rounds
// a probe records what its warps read and write. If each of its warps returns to an earlier state
// (program counters, registers, local memory) and nothing has changed that they could see, the
// cluster will repeat this forever, unless another cluster writes to global memory. If all clusters
// of a launch do so, that is a livelock.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Run/Polling.h"
#include "Sim/Run/Probe.h"
#include "fp4/Sim/Actor.h"
#include "fp4/Sim/MemoryModel.h"
#include <array>
#include <map>
#include <unordered_map>

namespace fp4::sim {

/// Sees the accesses of warps and hands every event on.
class LoopProbe final : public Probe {
public:
  LoopProbe(const Cluster &cluster, Observer *next) : Probe(cluster, next), polled(4096) {}

  void onMemory(const MemoryEvent &event) override;
  void onBarrier(const BarrierEvent &event) override;
  void onLife(const LifeEvent &event) override;

  /// A place that was written holds another value than it held at an earlier write. Asked when
  /// every loop has been run through twice, this misses no change.
  bool changed();
  /// Warps met at a barrier: what one does depends on the others.
  bool synchronized() const { return barriers; }
  /// Something was read that the host may change meanwhile.
  bool readsHostMemory() const { return hostMemory; }

  /// All that was read of global memory can be watched, and has not changed meanwhile.
  bool watchable() const { return steady; }
  std::vector<PolledPlace> watched() const { return polled.list(); }

  /// The bytes that the first lane of a warp read at a line.
  struct Read {
    Space space;
    uint64_t address;
    uint32_t bytes;
  };
  /// The CTA rank, warp and line of a read.
  using Reader = std::array<uint32_t, 3>;
  const std::map<Reader, Read> &reads() const { return firstReads; }

private:
  using Value = std::array<std::byte, 32>;
  void note(Space space, uint64_t address, uint32_t bytes);

  bool different = false, barriers = false, hostMemory = false, steady = true;
  PolledPlaces polled;
  struct Written {
    Space space;
    uint32_t bytes;
    Value value;
  };
  /// Values by address: shared addresses lie below global ones.
  std::unordered_map<uint64_t, Written> written;
  std::map<Reader, Read> firstReads;
};

/// The state that determines how a warp continues while memory does not change.
class WarpState {
public:
  WarpState(const Warp &warp, size_t registerBytes);
  bool operator==(const Warp &warp) const { return sameGroups(warp) && sameData(warp); }
  bool sameGroups(const Warp &warp) const { return groups == groupsOf(warp); }
  /// Compares what only instructions of the warp change while no asynchronous operation completes.
  bool sameData(const Warp &warp) const;

private:
  struct Group {
    uint32_t pc, mask;
    bool inside, blocked; ///< true in the middle of an instruction, and while the group waits
    bool operator==(const Group &) const = default;
  };
  static std::vector<Group> groupsOf(const Warp &warp);
  std::vector<Group> groups;
  std::vector<std::byte> registers, local;
  uint32_t carry;
};

/// A cluster at the beginning of a look, and how often it was so again.
class Recurrence {
public:
  explicit Recurrence(const Cluster &cluster);
  /// Counts a round. Returns true when everything has come back twice: each warp by itself or, with
  /// `together`, all warps at once, since they synchronize.
  bool complete(bool together);

private:
  static std::vector<uint32_t> arrivals(const Cluster &cluster);
  struct Anchor {
    const Warp *warp;
    WarpState state;
    uint64_t executed; ///< Warp::executed when `same` was found
    bool same = true;
    unsigned returns = 0;
    bool isBack();
  };
  const Cluster &cluster;
  std::vector<Anchor> anchors;
  std::vector<uint32_t> arrived; ///< arrivals at each barrier
  unsigned returns = 0;          ///< times that all warps and barriers were back at once
};

/// The instructions that the warps of a cluster repeat, and what they read there.
struct LoopTrace {
  std::map<const Warp *, std::vector<uint32_t>> pcs; ///< sorted
  std::map<LoopProbe::Reader, LoopProbe::Read> reads;
};

/// A line for each loop: whose, where, what it reads, where it would leave; then blocked warps.
std::string describeLoops(const Cluster &cluster, const LoopTrace &trace);

} // namespace fp4::sim
