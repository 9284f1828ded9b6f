//===- Polling.h - Loops that read until something changes ----------------===//
//
// A warp that has used up its turn may be in a loop that reads a flag. After 1, 2, 4, ... such
// turns in a row Scheduler::parks runs it under a probe. If the warp comes back to the same
// registers twice, and has only read memory, or changed nothing by stores and atomics, each further
// turn would be the same: the warp is parked. A parked warp waits until the bytes that it has read
// change, and the loop goes on where it stood.
//
// Warps that meet at barriers in each turn of such a loop cannot be parked one by one. After 16,
// 32, 64, ... rounds of a cluster in which no warp exited and nothing asynchronous happened,
// Scheduler::parksAll looks at all of them together (Spinning.h). If they repeat themselves, the
// cluster is parked until the global memory that it has read there changes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Run/Probe.h"
#include "Sim/State/Wait.h"
#include "fp4/Sim/MemoryModel.h"
#include <array>
#include <map>
#include <tuple>
#include <vector>

namespace fp4::sim {

/// Returns the bytes of memory at an address, or null.
const std::byte *storageOf(const Cluster &cluster, Space space, uint64_t address, uint32_t bytes);

/// Bytes that a loop reads, and what it has found there.
struct PolledPlace {
  Space space;
  uint64_t address;
  uint32_t bytes;
  std::array<std::byte, 32> value;
};

/// Places that a loop has read so far.
class PolledPlaces {
public:
  /// No loop reads more than `most` places.
  explicit PolledPlaces(size_t most) : most(most) {}
  /// The meaning of an access for the loop that makes it.
  enum class Access : uint8_t {
    Changes, ///< an access that writes what was not there: nothing is noted
    Looks,   ///< an access whose places were noted and hold what they held before
    Unclear, ///< an access to a place that cannot be watched, or holds something else
  };
  /// Notes the places of an access that changes nothing. A store of what is there already is one,
  /// because somebody else may overwrite it.
  Access note(const Cluster &cluster, const MemoryEvent &event);
  std::vector<PolledPlace> list() const;

private:
  /// Returns whether the place can be watched and holds what it held when it was noted before. The
  /// host may change its own memory, and nobody says when it does.
  bool notePlace(const Cluster &cluster, Space space, uint64_t address, uint32_t bytes);

  size_t most;
  std::map<std::tuple<uint64_t, Space, uint32_t>, PolledPlace> places;
};

/// Sees what one warp does, and hands every event on.
class PollProbe final : public Probe {
public:
  PollProbe(const Cluster &cluster, Observer *next) : Probe(cluster, next), seen(64) {}

  void onMemory(const MemoryEvent &event) override;
  void onBarrier(const BarrierEvent &event) override;
  void onTicket(const TicketEvent &event) override;
  void onLife(const LifeEvent &event) override;

  /// Returns true when the warp did more than look, or when what it reads changes.
  bool acts() const { return busy; }
  /// Asked after the loop was run through twice: whatever an atomic changes has been seen then.
  std::vector<PolledPlace> places() const { return seen.list(); }

private:
  bool busy = false;
  PolledPlaces seen;
};

/// A wait until one of the places holds something else, or would be an error to read.
class PollWait final : public Wait {
public:
  PollWait(const Cluster &cluster, std::vector<PolledPlace> places)
      : cluster(cluster), places(std::move(places)) {}

  bool ready() const override;
  bool polls() const override { return true; }
  std::string describe() const override { return "a change of what it reads in a loop"; }

private:
  const Cluster &cluster;
  const std::vector<PolledPlace> places;
};

bool anyParked(const Cluster &cluster);
/// One of them may go on.
bool anyAwake(const Cluster &cluster);
/// Lets all parked groups of a cluster go on.
void unpark(Cluster &cluster);

} // namespace fp4::sim
