//===- Machine.h - The SMs of a timed launch ------------------------------===//
#pragma once

#include "Sim/Time/Memory.h"
#include "Sim/Time/TimedCode.h"
#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <vector>

namespace fp4::sim {

inline constexpr unsigned kSchedulers = 4;

/// The instructions that are near an SM: the lines of code that were brought last, for whichever of
/// its schedulers.
class CodeCache {
public:
  static constexpr unsigned lineInsns = 8; ///< 128 bytes
  explicit CodeCache(uint32_t insns = 0) : lines(insns / lineInsns) {}
  /// Returns true when the cache has the line, or has asked for it; `arrival` is then the cycle at
  /// which it came or comes.
  bool has(uint32_t line, double &arrival) const {
    if (line >= known.size() || !known[line].number || brought - known[line].number >= lines)
      return false;
    arrival = known[line].arrival;
    return true;
  }
  /// Brings a line that is asked for at `now`. Lines come one after the other, `interval` apart for
  /// all warps together and `own` behind `now` at the earliest; returns when it comes.
  double bring(uint32_t line, double now, double own, double interval) {
    if (line >= known.size())
      known.resize(line + 1);
    known[line] = {++brought, std::max(now + own, way.serve(now, interval))};
    return known[line].arrival;
  }

private:
  struct Line {
    uint32_t number = 0; ///< among those that were brought; 0: none
    double arrival = 0;
  };
  Server way; ///< to the cache behind this one
  uint32_t lines, brought = 0;
  std::vector<Line> known;
};

/// The lines of a launch's parameters that an SM has asked for.
class ParameterLines {
public:
  /// Returns the cycle at which a warp has the `wanted` lines, a bit for each, that it asks for at
  /// `now`. Each line that nobody asked for before takes `duration`.
  double bring(uint64_t wanted, double now, double duration) {
    for (; wanted; wanted &= wanted - 1) {
      double &arrival = arrivals[size_t(std::countr_zero(wanted))];
      now = std::max(now, arrival ? arrival : arrival = now + duration);
    }
    return now;
  }

private:
  std::array<double, 64> arrivals{}; ///< 0: not asked for
};

/// The warps of a scheduler that only wait for their turn.
class Turns {
public:
  struct Entry {
    uint64_t age;     ///< the less, the earlier its CTA began
    uint64_t arrival; ///< the less, the earlier the warp began to wait
    uint32_t running, warp;
    bool operator<(const Entry &o) const {
      return age != o.age ? age > o.age : arrival > o.arrival;
    }
  };
  bool announced = false; ///< true when the next one has an event
  bool empty() const { return waiting.empty(); }
  /// All of them, about in their order.
  const std::vector<Entry> &entries() const { return waiting; }
  void add(const Entry &entry) {
    waiting.push_back(entry);
    std::push_heap(waiting.begin(), waiting.end());
  }
  /// The one that began first.
  Entry take() {
    std::pop_heap(waiting.begin(), waiting.end());
    const Entry first = waiting.back();
    waiting.pop_back();
    return first;
  }

private:
  std::vector<Entry> waiting; ///< a heap
};

/// The use of register ports that accumulators in registers leave to other pipes.
struct Beside {
  double interval = 0; ///< the least of the pipes that read several registers
  double wide = 0;     ///< the least of integer products of which the upper half is wanted
  double special = 0;  ///< the least of special functions
};

/// The engine of an SM that copies in bulk.
struct CopyEngine {
  Server requests; ///< hands copies to the engine
  Server copies;
  /// A copy of the engine, whose bytes arrive from `first` to `last`.
  struct InFlight {
    double first, last, bytes;
  };
  std::deque<InFlight> inFlight;
  double bytesInFlight = 0;
  double lastRow = 0; ///< cycle at which the engine asked for the last row so far
};

/// The tensor cores of an SM, and their tensor memory.
struct TensorCores {
  Server tcgen05;            ///< tcgen05.mma, all of the SM
  Server scales;             ///< tcgen05.cp
  /// Ends of the last wgmma of each scheduler, of which those that are to come hold a place in the
  /// queue.
  std::array<std::deque<double>, kSchedulers> queued;
  double mmaEnd = 0;         ///< cycle at which the last wgmma so far ends
  double mmaShare = 0;       ///< share of the data path `shared` that wgmma takes until then
  double multiplied = 0;     ///< cycles of all arithmetic
  double multipliedHalf = 0; ///< part of these cycles for f16
  double multipliedFew = 0;  ///< part of those with A in registers
  /// The cycle from which MMAs may use a column of tensor memory that tcgen05.cp wrote.
  std::array<double, hw::tmemMaxColumnCount> copied{};
};

struct Sm {
  std::array<Server, kSchedulers> issue;
  std::array<Turns, kSchedulers> turns;
  std::array<std::array<Server, kPipes>, kSchedulers> pipes;
  std::array<std::array<Server, kBanks>, kSchedulers> registers;
  CodeCache code;
  ParameterLines parameters;
  std::array<Beside, kSchedulers> beside{}; ///< limits beside wgmma
  std::array<Server, kSchedulers> fences;   ///< fences of the device's scope
  std::array<Server, kSchedulers> handing;  ///< ways of each scheduler to `exchange` and `shared`
  Server exchange;                          ///< shuffles and redux
  Server shared;                            ///< the data path of shared memory and L1
  Port port;                                ///< port to L2
  Server remoteStores;                      ///< takes st.async to other CTAs of a cluster
  CopyEngine engine;
  TensorCores tensor;
  Server mbarriers;
  L1Cache l1;
  /// The last store of threads, which a second one of its warp to the same sectors joins.
  struct {
    const void *warp = nullptr;
    std::vector<LineAccess> lines;
  } store;
  double lastStart = -1e9; ///< cycle at which the last CTA began
};

/// The state that all clusters of a launch share.
struct Machine {
  Machine(const Rates &rates, double gigahertz, uint64_t l2Bytes)
      : rates(rates), memory(rates, gigahertz, l2Bytes) {}
  const Rates &rates;
  MemorySystem memory;
  std::vector<Sm> processors;
  double flops = 0; ///< floating-point operations of the MMAs that were executed
};

} // namespace fp4::sim
