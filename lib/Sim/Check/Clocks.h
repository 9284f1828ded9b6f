//===- Clocks.h - Knowledge of an actor of earlier events -----------------===//
//
// A vector clock has an epoch for every slot. Slots are the warps of a cluster, two counters per
// warp for its asynchronous accesses to global memory, and the tickets that are still referred to.
// HazardState recycles tickets, so clocks stay short however long a kernel runs.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Sim/MemoryModel.h"

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace fp4::sim::check {

class VectorClock {
public:
  uint32_t at(uint32_t slot) const { return slot < epochs.size() ? epochs[slot] : 0; }
  void raise(uint32_t slot, uint32_t epoch) {
    if (slot >= epochs.size())
      epochs.resize(slot + 1);
    epochs[slot] = std::max(epochs[slot], epoch);
  }
  /// Knows less of a slot than before.
  void lower(uint32_t slot, uint32_t epoch) {
    if (slot < epochs.size())
      epochs[slot] = std::min(epochs[slot], epoch);
  }
  void join(const VectorClock &other) {
    if (epochs.size() < other.epochs.size())
      epochs.resize(other.epochs.size());
    uint32_t *mine = epochs.data();
    const uint32_t *theirs = other.epochs.data();
    for (size_t i = 0, end = other.epochs.size(); i < end; ++i)
      mine[i] = mine[i] < theirs[i] ? theirs[i] : mine[i];
  }
  /// Returns true when a join with `other` changes nothing.
  bool covers(const VectorClock &other) const {
    for (uint32_t slot = 0; slot < other.epochs.size(); ++slot)
      if (at(slot) < other.epochs[slot])
        return false;
    return true;
  }
  bool empty() const { return epochs.empty(); }
  bool operator==(const VectorClock &) const = default;

private:
  std::vector<uint32_t> epochs;
};

/// Knowledge about another cluster, through global memory.
struct Known {
  VectorClock generic, async, loose;
  void join(const Known &other) {
    generic.join(other.generic);
    async.join(other.async);
    loose.join(other.loose);
  }
};
using Foreign = std::map<uint32_t, Known>; ///< by cluster
using ForeignPtr = std::shared_ptr<const Foreign>;

inline void join(ForeignPtr &mine, const ForeignPtr &other) {
  if (!other || other == mine)
    return;
  if (!mine) {
    mine = other;
    return;
  }
  auto merged = std::make_shared<Foreign>(*mine);
  for (const auto &[cluster, known] : *other)
    (*merged)[cluster].join(known);
  mine = std::move(merged);
}

/// The threads with which operations of a scope synchronize: a CTA, a cluster, or all (Gpu, 0, 0).
struct ScopeInstance {
  Scope scope{};
  uint32_t cluster = 0, rank = 0;
  auto operator<=>(const ScopeInstance &) const = default;
};
/// The clocks published by each fence.sc that a fence.sc in the same instance follows.
using Fences = std::map<ScopeInstance, ForeignPtr>;
using FencesPtr = std::shared_ptr<const Fences>;

/// Returns true when `fences` has all that `other` has.
bool cover(const Fences &fences, const Fences &other);
void join(FencesPtr &mine, const FencesPtr &other);

/// The clocks that travel together.
struct Clocks {
  VectorClock generic;     ///< visible to generic-proxy accesses
  VectorClock async;       ///< to the async proxy in shared memory: follows at proxy fences
  VectorClock asyncGlobal; ///< ... in global memory
  VectorClock loose;       ///< as if nothing were .relaxed or out of scope
  VectorClock tensor;      ///< published by tcgen05.fence::before_thread_sync or a commit
  VectorClock maps;        ///< released to the tensormap proxy
  ForeignPtr foreign;      ///< null: nothing
  FencesPtr fences;        ///< of every fence.sc that comes before
  FencesPtr observed;      ///< of those before a write of which a read that comes before took the
                           ///< value: the next fence.sc comes after them

  void join(const Clocks &other) {
    generic.join(other.generic);
    async.join(other.async);
    asyncGlobal.join(other.asyncGlobal);
    loose.join(other.loose);
    tensor.join(other.tensor);
    maps.join(other.maps);
    check::join(foreign, other.foreign);
    check::join(fences, other.fences);
    check::join(observed, other.observed);
  }
  void joinLoose(const Clocks &other) { loose.join(other.loose); }
  /// Through a barrier that may be .relaxed: it orders execution, which tcgen05 fences rely on.
  void joinExecution(const Clocks &other) {
    joinLoose(other);
    tensor.join(other.tensor);
  }
  /// An event that every proxy sees: the completion of an asynchronous operation.
  void raiseAll(uint32_t slot, uint32_t epoch) {
    for (VectorClock *clock : {&generic, &async, &asyncGlobal, &loose})
      clock->raise(slot, epoch);
  }
};

} // namespace fp4::sim::check
