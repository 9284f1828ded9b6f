//===- Clocks.h - Knowledge of an actor of earlier events -----------------===//
//
// A vector clock has an epoch for every slot. Slots are the warps of a cluster, two counters per
// warp for its asynchronous accesses to global memory, and the tickets that are still referred to.
// HazardState recycles tickets, so clocks stay short however long a kernel runs.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Foreign.h"
#include "fp4/Sim/MemoryModel.h"

#include <compare>
#include <map>

namespace fp4::sim::check {

/// The threads of a cluster with which operations of a scope synchronize: those of a CTA, all of
/// it, or (Gpu) those of other clusters too.
struct ScopeInstance {
  Scope scope{};
  uint32_t rank = 0;
  auto operator<=>(const ScopeInstance &) const = default;
};
/// Knowledge of each fence.sc of some threads, for a fence.sc in the same instance behind it.
using Fences = std::map<ScopeInstance, ForeignPtr>;
using FencesPtr = std::shared_ptr<const Fences>;

void join(FencesPtr &mine, const FencesPtr &other);

/// The clocks that travel together.
struct Clocks {
  VectorClock generic;     ///< visible to generic-proxy accesses
  VectorClock async;       ///< visible to the async proxy in shared memory: follows at proxy fences
  VectorClock asyncGlobal; ///< visible to the async proxy in global memory
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
  /// Knows nothing, and keeps its memory.
  void clear() {
    for (VectorClock *clock : {&generic, &async, &asyncGlobal, &loose, &tensor, &maps})
      clock->clear();
    foreign = nullptr;
    fences = observed = nullptr;
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
