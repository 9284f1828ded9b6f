//===- RacingLoads.cpp - Loads that may race by default -------------------===//
//
// A load may race if the text of the kernel (LoadUses) and the accesses of its threads show that it
// is harmless: a guess that an atomic operation makes good, or a value that goes into stores alone,
// none of which the loading thread makes.
//
//===----------------------------------------------------------------------===//
#include "HazardImpl.h"

#include <algorithm>
#include <bit>

namespace fp4::sim {

using namespace check;

/// A guess counts as a .relaxed load: it is not torn, but may be old (LoadUses).
bool HazardChecker::Impl::isGuess(const MemoryEvent &event) {
  return !options.strict && kernel && event.kind == AccessKind::Read &&
         event.order == MemOrder::Weak && !event.actor.ticket &&
         loadUses.isGuess(*kernel, event.at.pc);
}

/// Returns true for a load whose value only stores use (LoadUses): threads that do not store it may
/// load it as well.
bool HazardChecker::Impl::isStoredLoad(const MemoryEvent &event) {
  return !options.strict && kernel && event.kind == AccessKind::Read &&
         event.order == MemOrder::Weak &&
         loadUses.onlyStores(*kernel, event.at.pc, LoadUses::Within::Warp);
}

void HazardChecker::Impl::noteStorer(ClusterState &cluster, const MemoryEvent &event) {
  const WarpState &warp = cluster.warp(event.actor);
  auto &ofWarp = cluster.stores[warp.slot];
  if (ofWarp.size() <= event.at.pc)
    ofWarp.resize(event.at.pc + 1);
  if (!ofWarp[event.at.pc]) {
    ofWarp[event.at.pc] = true;
    reportUses(cluster, warp.slot, event.at.pc);
  }
  auto &ofCta = cluster.storers[warp.rank];
  if (ofCta.size() <= event.at.pc)
    ofCta.resize(event.at.pc + 1);
  Storer &storer = ofCta[event.at.pc];
  if (storer.count == Storer::Many)
    return;
  const auto lane = uint8_t(std::countr_zero(event.laneMask));
  const bool same = storer.slot == warp.slot && storer.lane == lane;
  const bool one = std::has_single_bit(event.laneMask) && (storer.count == Storer::None || same);
  storer = {one ? Storer::One : Storer::Many, lane, uint16_t(warp.slot)};
  if (!one)
    reportDeferred(cluster, uint64_t(warp.rank) << 32 | event.at.pc);
}

/// Returns true when one of the two is a load of which only stores use the value, the other is a
/// store, and so far the loading thread has used nothing: its warp has executed none of those
/// stores, or the store is the only one of them and another thread of the warp alone executes it.
bool HazardChecker::Impl::mayBeUnused(const Access &made, const Record &old) {
  const Record &load = old.write() ? made.record : old, &store = old.write() ? old : made.record;
  if (!load.isStoredLoad() || load.write() || store.async() || store.strength() != Weak ||
      old.cluster() != made.record.cluster())
    return false;
  const uint32_t rank = made.warp->rank;
  if (made.cluster.warpOfSlot(old.slot()).rank != rank)
    return false;
  if (load.slot() != store.slot()) {
    const std::vector<bool> &executed = made.cluster.stores[load.slot()];
    return std::ranges::none_of(*loadUses.onlyStores(*kernel, load.pc, LoadUses::Within::Warp),
                                [&](uint32_t pc) { return pc < executed.size() && executed[pc]; });
  }
  const auto *uses = loadUses.onlyStores(*kernel, load.pc, LoadUses::Within::Lane);
  const auto &ofCta = made.cluster.storers[rank];
  return uses && uses->size() == 1 && uses->front() == store.pc && store.pc < ofCta.size() &&
         ofCta[store.pc].count == Storer::One;
}

} // namespace fp4::sim
