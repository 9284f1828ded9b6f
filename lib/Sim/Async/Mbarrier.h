//===- Mbarrier.h - mbarrier objects of one CTA ---------------------------===//
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier". An object has a
// phase number (of which programs see the parity, or a state token), the arrivals expected in every
// phase E, those still pending P, and the transaction count T in bytes. After every operation:
// P = 0 and T = 0 completes the phase: number + 1, P = E.
//
// The objects are stored outside of shared memory, keyed by their offset: the opaque 64 bits of a
// program are not used. Anything that PTX leaves undefined is an error here. The message has no
// place: the caller adds the instruction.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Async/Arrivals.h"
#include "fp4/Support/Error.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fp4::sim {

using MbarrierEvent = ArrivalEvent;

/// Bytes that an instruction announced or delivered in a phase.
struct Transactions {
  CodePoint at;
  bool delivered = false;
  uint64_t bytes = 0, times = 0;
};

struct Mbarrier {
  static constexpr int64_t maxCount = (1 << 20) - 1; ///< most arrivals, and most transaction bytes
  static constexpr int64_t maxReportingCount = (1 << 9) - 1; ///< most arrivals with .layout::v1

  uint32_t offset = 0;    ///< shared::cta byte offset
  uint32_t expected = 0;  ///< E
  uint32_t pending = 0;   ///< P
  int64_t tx = 0;         ///< T, bytes expected and not yet there
  uint64_t phase = 0;     ///< number of the phase in progress
  bool reporting = false; ///< .layout::v1: copies may report to it; none does here
  MbarrierEvent initialised;
  int64_t maxArrivals() const { return reporting ? maxReportingCount : maxCount; }
  ArrivalEvents arrivals;                 ///< arrivals in the current phase, at most kMostArrivals
  ArrivalEvents previousArrivals;         ///< arrivals in the last completed phase
  std::vector<Transactions> transactions; ///< transactions in the current phase, by instruction
  ArrivalEvents deliveries, previousDeliveries; ///< copies that brought bytes
  /// 2 + the last phase that each warp has waited for, which is -1 before the first; 0: none.
  std::vector<uint64_t> awaited;

  /// The token mbarrier.arrive returns: the phase arrived at, and the pending count before it.
  uint64_t token() const { return (phase & 0xFFFFFFFFu) | uint64_t(pending) << 32; }
  /// Returns true when the phase with this parity has completed (test_wait.parity).
  bool parityDone(uint32_t parity) const { return (phase & 1) != (parity & 1); }
  void waited(uint32_t warp, uint64_t phaseDone);
  /// Explains that a warp that waits for `wanted` may wait for ever, since it has missed phases or
  /// has the other parity. Empty if it may not.
  std::string describeParity(uint32_t warp, uint64_t wanted) const;
  std::string describe() const; ///< "phase 3, 1 of 2 arrivals pending, 4096 bytes missing"
  /// The arrivals in this phase and in the one before, and who has not arrived again.
  std::string describeHistory(const Launch *launch = nullptr) const;
  /// The bytes of this phase: "announced: 128 (line 20); delivered: nothing".
  std::string describeBytes(const Launch *launch = nullptr) const;
};

/// The effect of an operation on the phase: how many completed (0 or 1).
using PhasesDone = unsigned;

class MbarrierTable {
public:
  /// mbarrier.init. Fails on a bad count or alignment, and where a live object already is.
  /// `reporting`: .layout::v1.
  Status init(uint32_t offset, uint32_t count, const MbarrierEvent &event, bool reporting = false);
  Status inval(uint32_t offset);

  /// The object at `offset`; the error says which objects are near.
  Expected<Mbarrier *> find(uint32_t offset);
  const Mbarrier *lookup(uint32_t offset) const;

  /// The live object whose 8 bytes [offset, offset + bytes) touches, or null.
  const Mbarrier *overlapping(uint32_t offset, uint32_t bytes) const;

  Expected<PhasesDone> arrive(Mbarrier &barrier, uint32_t count, const MbarrierEvent &event);
  /// arrive.noComplete: fails if the phase would complete.
  Status arriveNoComplete(Mbarrier &barrier, uint32_t count, const MbarrierEvent &event);
  /// arrive_drop: also takes `count` off the arrivals of later phases. `noComplete` as above.
  Expected<PhasesDone> arriveDrop(Mbarrier &barrier, uint32_t count, bool noComplete,
                                  const MbarrierEvent &event);
  Status expectTx(Mbarrier &barrier, uint64_t bytes, CodePoint at = {});
  Expected<PhasesDone> completeTx(Mbarrier &barrier, uint64_t bytes, const MbarrierEvent &event);

  /// test_wait with a state token: whether the token's phase has completed.
  static Expected<bool> tokenDone(const Mbarrier &barrier, uint64_t token);

  const std::map<uint32_t, Mbarrier> &objects() const { return table; }

private:
  Status checkArrival(const Mbarrier &barrier, uint32_t count) const;
  Expected<PhasesDone> settle(Mbarrier &barrier);

  std::map<uint32_t, Mbarrier> table;
};

} // namespace fp4::sim
