//===- Contributions.cpp - Values that count on relaxed operations --------===//
//
// Strong accesses do not race. But where threads add to a value, and count or raise a flag, and one
// reads the value then, it relies on an order that .relaxed operations do not give. A release and
// an acquire of the count do (PTX ISA, "Memory Consistency Model", causality order). Strict mode.
//
//===----------------------------------------------------------------------===//
#include "HazardImpl.h"

#include <optional>
#include <utility>

namespace fp4::sim {

using namespace check;

/// The program looks at what it reads.
bool HazardChecker::Impl::usesValue(const MemoryEvent &event) {
  return event.kind == AccessKind::Read ||
         (event.kind == AccessKind::Atomic && isUsed(event.at.pc));
}

/// Accesses to one place happen in the order in which their values are seen: who has seen one there
/// counts on nothing else.
void HazardChecker::Impl::observe(Access &made, const MemoryEvent &event) {
  if (!usesValue(event))
    return;
  WarpState &warp = made.cluster.warp(event.actor);
  made.observes = true;
  for (uint32_t rest = event.laneMask; rest; rest &= rest - 1)
    made.observes &= warp.observed.insert(event.addressOf(uint32_t(std::countr_zero(rest)))).second;
}

/// Returns true when `made` relies on the contribution of `old`, a strong access that causality
/// does not order before it: the value that is read may lack the contribution, although the program
/// synchronized before, by .relaxed operations or in too narrow a scope.
bool HazardChecker::Impl::countsOn(const Access &made, const Record &old) {
  if (!made.observes || !old.write() || old.async() || isUsed(old.pc))
    return false;
  const ForeignPtr &counted = made.warp->counted;
  const Known *seen = counted ? counted->find(old.cluster()) : nullptr;
  return seen && seen->loose.at(old.slot()) >= old.epoch();
}

/// Counts an access that the program takes for synchronization: a thread that sees it may count on
/// what the warp did before. Sums of floats are left out: nobody waits for them, and there may be
/// very many.
void HazardChecker::Impl::count(ClusterState &cluster, const MemoryEvent &event) {
  WarpState &warp = cluster.warp(event.actor);
  Releases &all = isShared(event.space) ? cluster.released : global.releases;
  const bool writes =
      event.kind != AccessKind::Read && !(kernel && isFloat(kernel->code[event.at.pc].type));
  const ForeignPtr own =
      writes ? foreignOf(cluster.index, {{}, {}, warp.clocks.loose}) : ForeignPtr();
  std::optional<uint64_t> before;
  for (uint32_t rest = event.laneMask; rest; rest &= rest - 1) {
    const uint64_t address = event.addressOf(uint32_t(std::countr_zero(rest)));
    if (std::exchange(before, address) == address && !writes)
      continue; // lanes that poll mostly read one word, and learn the same
    const auto it = writes ? all.try_emplace(address).first : all.find(address);
    if (it == all.end())
      continue;
    if (usesValue(event))
      join(warp.counted, it->second.counted);
    join(it->second.counted, own);
  }
  if (writes)
    cluster.advance(warp);
}

} // namespace fp4::sim
