//===- HazardState.h - What the hazard checker remembers of a cluster -----===//
//
// Shadow of shared memory in granules of 16 bytes, each with the accesses that a later one could
// still race with; clocks of warps, tickets and barriers. Lanes of a warp share one clock.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Clocks.h"
#include "fp4/Sim/HazardChecker.h"
#include <array>
#include <deque>
#include <map>
#include <unordered_map>

namespace fp4::sim::check {

constexpr uint32_t granuleBytes = 16;
constexpr uint32_t warpsPerCta = 32; ///< at most; numbers warps of a cluster
constexpr uint32_t rankShift = 24;   ///< of shared::cluster addresses

/// An access that was made, by one agent, to bytes of one granule.
struct Access {
  Agent agent;
  uint32_t epoch = 0; ///< of a warp
  uint32_t line = 0;
  uint16_t bytes = 0; ///< mask of the granule's bytes
  bool write = false;
  bool strong = false;    ///< not .weak: two such do not race
  bool pipelined = false; ///< by a tcgen05 ticket, which its issuer's next commit covers
  uint64_t sequence = 0;  ///< in the order of events

  bool sameAgent(const Access &other) const {
    return agent.ticket ? agent.ticket == other.agent.ticket
                        : !other.agent.ticket && agent.ctaRank == other.agent.ctaRank &&
                              agent.warp == other.agent.warp;
  }
};

inline uint32_t warpIndex(const Agent &agent) { return agent.ctaRank * warpsPerCta + agent.warp; }

struct WarpState {
  Clocks clocks;
  Clocks released;      ///< what the last release fence published for later relaxed operations
  Clocks unacquired;    ///< what relaxed waits saw: an acquire fence takes it over
  VectorClock pipeline; ///< its tcgen05.mma, .cp and .shift tickets
  uint32_t epoch = 1;
};

/// A ticket that has not completed, or whose signal has not been sent.
struct TicketInfo {
  Clocks clocks;
  uint64_t issued = 0; ///< sequence
  bool pipelined = false;
  std::string engine;
};

struct MbarrierState {
  Access init;
  bool fenced = false;    ///< fence.mbarrier_init or fence.proxy.async came between init and now
  Clocks arrived, passed; ///< of the phase in progress, of the last one completed
  uint64_t phase = ~uint64_t(0); ///< of `passed`
};

/// Arrivals by generation; old ones are dropped.
using BarrierState = std::map<uint64_t, Clocks>;

struct ThreadGroups {
  std::vector<uint64_t> open;
  std::deque<std::vector<uint64_t>> committed;
};

struct ClusterState {
  std::unordered_map<uint32_t, WarpState> warps;
  std::map<uint64_t, TicketInfo> tickets;
  std::map<uint32_t, MbarrierState> mbarriers; ///< by shared::cluster address
  std::map<std::pair<uint32_t, uint64_t>, BarrierState> barriers;
  BarrierState clusterBarrier;
  std::map<std::pair<uint32_t, uint32_t>, ThreadGroups> groups; ///< by warp and lane
  std::map<uint64_t, Clocks> released; ///< by address: what its last release published
  std::map<uint32_t, std::vector<std::vector<Access>>> shadow; ///< by CTA rank and granule
  uint64_t finished = 0; ///< a completed ticket that is still in `tickets`, or 0

  WarpState &warp(const Agent &agent);
  /// The clocks of a warp or ticket.
  Clocks &clocks(const Agent &agent);
  TicketInfo &ticket(uint64_t id) { return tickets[id]; }
  std::vector<Access> *granule(uint32_t sharedAddress);

  /// Others may learn what the warp did so far; what it does from now on is later.
  void advance(WarpState &warp, const Agent &agent);
  void fork(const TicketEvent &event, uint64_t sequence);
  void complete(uint64_t id);
};

} // namespace fp4::sim::check
