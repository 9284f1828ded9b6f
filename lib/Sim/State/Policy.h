//===- Policy.h - Decisions about order that PTX leaves open --------------===//
//
// A policy says when a ticket completes, which of several does, and in which turns warps run. A
// correct program gives the same result under every policy. Each cluster has a policy of its own,
// so that a run is the same whatever other clusters do.
//
// A ticket may complete when all that PTX orders before it is done ("ready"). The queue asks
//   due      for each ready ticket, when it is issued and once in every round;
//   completesAnother  once in every round, until the answer is no;
//   choose   which ready ticket completes, then, or when no warp can run.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace fp4::sim {

struct GlobalRun;
struct SimOptions;
struct Ticket;

class Policy {
public:
  virtual ~Policy() = default;

  //===--- Time -------------------------------------------------------===//

  /// The policy's time, which Ticket::issued has too: scheduling rounds, unless it has a better
  /// one.
  virtual uint64_t clock() const { return rounds; }
  virtual void beginRound() { ++rounds; }

  /// Cycles of an SM, of a policy that predicts time: what %clock reads.
  virtual std::optional<double> cycles() const { return std::nullopt; }

  //===--- Tickets ----------------------------------------------------===//

  /// A ticket goes in flight.
  virtual void issued(const Ticket &) {}
  /// The copy engine of the CTA with this rank is asked to bring these bytes to L2, and no further.
  virtual void prefetched(uint32_t rank, std::span<const GlobalRun>) {}

  /// Returns true when a ready ticket completes although nobody waits for it.
  virtual bool due(const Ticket &ticket) const = 0;
  /// Returns true when `due` may hold of a ticket at all.
  virtual bool hasDue() const { return true; }
  /// Returns true when one more ready ticket completes in this round.
  virtual bool completesAnother() { return false; }
  /// The most ready tickets, from the oldest, among which `choose` decides.
  virtual size_t mostChoices() const { return 1; }
  /// One of `ready`, which are in the order of issue and not empty.
  virtual uint64_t choose(std::span<const uint64_t> ready) { return ready.front(); }

  //===--- Warps ------------------------------------------------------===//

  /// Warp instructions until another warp has its turn.
  virtual uint32_t quantum() { return 1024; }
  /// The CTA or warp, of `count`, that begins a round; the others follow it.
  virtual size_t first(size_t count) { return 0; }
  /// Returns true when the hardware now uses a freedom that it always has: a wait that ends before
  /// its phase, or a refused request for a cluster. A policy that uses the freedom does so once in
  /// `odds` times.
  virtual bool spurious(uint32_t odds) { return false; }

  //===--- Facts that no event tells, for a policy that orders steps -----===//

  /// State that warps share besides memory and barriers.
  enum class Shared : uint8_t {
    Registers, ///< registers that setmaxnreg gives back and takes, of the CTA of this rank
    PairCalls, ///< tcgen05.alloc and dealloc of a pair, by the CTA of this rank
    WorkQueue, ///< the clusters that have not started
    MmaGroups, ///< wgmma groups that a warp commits; the low byte of the rank is the warp
  };
  enum class Touch : uint8_t { Read, Write, Arrive, Await, Give, Take };
  /// The step that executes touches `what`. Arrivals at one `phase` commute; who awaits the phase
  /// has waited for all of them.
  virtual void touches(Shared what, Touch how, uint32_t rank, uint64_t phase) {}
  /// Returns true when a thread that executes tcgen05.fence::after_thread_sync synchronized with
  /// the one that published this ticket of its cluster by fence::before_thread_sync. A policy that
  /// does not know takes it for granted.
  virtual bool synchronized(uint32_t rank, uint32_t warp, uint64_t ticket) { return true; }
  /// A test of the mbarrier at this shared::cluster address found its phase incomplete.
  virtual void polled(uint32_t mbarrier) {}

private:
  uint64_t rounds = 0;
};

/// Makes the policy that SimOptions::policy names, for the cluster with this index.
std::unique_ptr<Policy> makePolicy(const SimOptions &options, uint64_t cluster);

} // namespace fp4::sim
