//===- MemoryOrder.cpp - Order by strong operations on memory -------------===//
//
// PTX ISA, "Memory Consistency Model". A release pattern is a release operation, or a release fence
// and a strong write behind it; an acquire pattern is an acquire operation, or a strong read and an
// acquire fence behind it. The first synchronizes with the second if the read takes the value of
// the write, or of atomics behind it ("Observation Order"), and if each end has a scope with the
// other's thread ("Morally strong operations"). A red reads nothing.
//
// A fence.sc also synchronizes with those behind it in the Fence-SC order, which no text of the
// program shows. A value shows this order if the first fence comes before a write W in causality
// order, a read R that observes W comes before the second fence, and the scopes reach. With the
// fences the other way around R would come before W, which the axioms forbid. The two fences may be
// those of other threads than W and R, with a barrier between: the last CTAs of PyTorch's and CUB's
// reductions count so. Orders that only an old value shows, or that of two writes, are not
// followed: a program cannot rely on an order that no value tells it.
//
//===----------------------------------------------------------------------===//
#include "HazardImpl.h"

#include "Sim/Decode/OpcodeTable.h"

#include <algorithm>
#include <span>
#include <utility>

namespace fp4::sim {

using namespace check;

//===----------------------------------------------------------------------===//
// fence.sc that come before
//===----------------------------------------------------------------------===//

/// Returns whether `fences` has all that `other` has.
static bool cover(const Fences &fences, const Fences &other) {
  return std::ranges::all_of(other, [&](const auto &entry) {
    const auto mine = fences.find(entry.first);
    return mine != fences.end() && mine->second->covers(*entry.second);
  });
}

void check::join(FencesPtr &mine, const FencesPtr &other) {
  if (!other || other == mine || (mine && cover(*mine, *other)))
    return;
  if (!mine || cover(*other, *mine)) {
    mine = other;
    return;
  }
  auto merged = std::make_shared<Fences>(*mine);
  for (const auto &[instance, known] : *other)
    join((*merged)[instance], known);
  mine = std::move(merged);
}

namespace {

Distance reachOf(Scope scope) {
  return scope == Scope::Cta ? OwnCta : scope == Scope::Cluster ? OwnCluster : Elsewhere;
}

constexpr ScopeInstance kGpu{Scope::Gpu, 0};

/// The instances of the scopes up to `scope` that have the warp.
std::vector<ScopeInstance> instancesOf(const WarpState &warp, Scope scope) {
  std::vector<ScopeInstance> all = {{Scope::Cta, warp.rank}};
  if (reachOf(scope) >= OwnCluster)
    all.push_back({Scope::Cluster, 0});
  if (reachOf(scope) == Elsewhere)
    all.push_back(kGpu);
  return all;
}

/// Returns what a fence.sc publishes for later ones: the clocks of its warp, and in a scope
/// narrower than the GPU only those of its own cluster.
FencesPtr fenceOf(const ClusterState &cluster, const WarpState &warp, Scope scope,
                  const Clocks &published) {
  const ForeignPtr near =
      foreignOf(cluster.index, {published.generic, published.asyncGlobal, published.generic});
  ForeignPtr far = near;
  join(far, published.foreign);
  auto fences = std::make_shared<Fences>();
  for (const ScopeInstance &instance : instancesOf(warp, scope))
    (*fences)[instance] = instance == kGpu ? far : near;
  return fences;
}

/// A fence.sc comes after those that were observed, as far as its scope reaches.
void acquireFences(ClusterState &cluster, const FenceEvent &event, WarpState &warp) {
  const FencesPtr observed = cluster.known(warp, event.laneMask).observed;
  if (!observed)
    return;
  for (const ScopeInstance &instance : instancesOf(warp, event.scope)) {
    const auto found = observed->find(instance);
    if (found == observed->end())
      continue;
    const ForeignPtr &known = found->second;
    if (const Known *own = known->find(cluster.index)) {
      Clocks before;
      before.generic = before.loose = own->generic;
      before.asyncGlobal = own->async;
      cluster.acquire(warp, event.laneMask, before);
    }
    if (instance == kGpu)
      cluster.teach(warp, event.laneMask, [&](Clocks &clocks) { join(clocks.foreign, known); });
  }
}

/// Adds the fences before a write of the cluster.
void put(FencesAt &at, uint32_t cluster, const FencesPtr &fences) {
  join(at.near[cluster], fences);
  if (const auto far = fences->find(kGpu); far != fences->end())
    join(at.far, far->second);
}

/// Returns the fences that a read of the cluster observes.
FencesPtr observedBy(uint32_t cluster, const FencesAt &at) {
  const auto near = at.near.find(cluster);
  if (!at.far)
    return near == at.near.end() ? nullptr : near->second;
  auto fences = std::make_shared<Fences>();
  if (near != at.near.end())
    *fences = *near->second;
  join((*fences)[kGpu], at.far);
  return fences;
}

} // namespace

void HazardChecker::Impl::threadFence(ClusterState &cluster, const FenceEvent &event) {
  WarpState &warp = cluster.warp(event.actor);
  if (acquires(event.order))
    for (size_t distance = OwnCta; distance <= reachOf(event.scope); ++distance)
      cluster.acquire(warp, event.laneMask, warp.unacquired[distance]);
  if (event.order == MemOrder::SeqCst)
    acquireFences(cluster, event, warp);
  if (!releases(event.order))
    return;
  const Scope scope = event.scope == Scope::None ? Scope::Sys : event.scope;
  const Clocks &published = cluster.published(warp, event.laneMask, event.at.pc);
  warp.release(scope, published);
  if (event.order == MemOrder::SeqCst) {
    const FencesPtr fence = fenceOf(cluster, warp, scope, published);
    cluster.teach(warp, event.laneMask, [&](Clocks &clocks) { join(clocks.fences, fence); });
  }
  cluster.advance(warp);
}

//===----------------------------------------------------------------------===//
// Flags in memory
//===----------------------------------------------------------------------===//

namespace {

Scope scopeOf(const MemoryEvent &event) {
  return event.scope == Scope::None ? Scope::Sys : event.scope; // .volatile
}

/// Returns the distance from a release of the same cluster.
Distance distanceOf(const Release &from, const WarpState &warp) {
  return from.rank != warp.rank ? OwnCluster : OwnCta;
}

/// Returns whether a release of the same cluster and an acquire in scope `acquire` include each
/// other's threads.
bool inScope(const Release &from, const WarpState &warp, Scope acquire) {
  return distanceOf(from, warp) <= reachOf(std::min(from.scope, acquire));
}

/// Adds what a release says to other clusters.
void spread(const Release &release, Abroad &abroad) {
  const Clocks &clocks = release.clocks;
  const ForeignPtr narrow = foreignOf(release.cluster, {{}, {}, clocks.loose});
  join(abroad.narrow, narrow);
  if (reachOf(release.scope) < Elsewhere)
    return join(abroad.wide, narrow);
  join(abroad.wide, clocks.foreign);
  join(abroad.wide, foreignOf(release.cluster, {clocks.generic, clocks.asyncGlobal, clocks.loose}));
}

/// Returns what the releases at an address say to other clusters. Few addresses are asked: the
/// answer is made then.
const Abroad &abroadOf(ReleasesAt &at) {
  for (uint32_t cluster : at.fresh)
    for (Release &release : at.all[cluster])
      if (!std::exchange(release.spread, true))
        spread(release, at.abroad);
  at.fresh.clear();
  return at.abroad;
}

void put(ReleasesAt &at, uint32_t cluster, uint32_t rank, Scope scope, const Clocks &clocks) {
  ++at.changes;
  std::vector<Release> &own = at.all[cluster];
  const auto same = std::ranges::find_if(
      own, [&](const Release &release) { return release.rank == rank && release.scope == scope; });
  if (same == own.end()) {
    own.push_back({cluster, rank, scope, clocks});
    at.fresh.push_back(cluster);
    return;
  }
  same->clocks.join(clocks);
  if (std::exchange(same->spread, false))
    at.fresh.push_back(cluster);
}

/// Behind a store nobody observes what came before it, but for what its own thread released there.
void beginAnew(ReleasesAt &at, uint32_t cluster, uint32_t rank) {
  std::vector<Release> own = std::move(at.all[cluster]);
  std::erase_if(own, [&](const Release &release) { return release.rank != rank; });
  for (Release &release : own)
    release.spread = false;
  at.all = {{cluster, std::move(own)}};
  at.abroad = {};
  at.fresh = {cluster};
  at.fences = {};
  ++at.changes;
}

} // namespace

bool HazardChecker::Impl::isReduction(uint32_t pc) const {
  return kernel && opcodeTable()[kernel->code[pc].row].base == "red";
}

/// Learns from the releases through an address.
void HazardChecker::Impl::learn(ClusterState &cluster, const MemoryEvent &event, uint32_t lanes,
                                const Learned &how, ReleasesAt &at) {
  WarpState &warp = cluster.warp(event.actor);
  if (usesValue(event))
    if (const FencesPtr fences = observedBy(cluster.index, at.fences))
      cluster.teach(warp, allLanes, [&](Clocks &clocks) { join(clocks.observed, fences); });
  const auto own = at.all.find(cluster.index);
  const std::span<const Release> releases =
      own == at.all.end() ? std::span<const Release>() : own->second;
  for (const Release &release : releases) {
    cluster.teach(warp, allLanes, [&](Clocks &clocks) { clocks.joinLoose(release.clocks); });
    if (!inScope(release, warp, how.scope))
      continue;
    warp.unacquired[distanceOf(release, warp)].join(release.clocks);
    if (how.acquire)
      cluster.acquire(warp, lanes, release.clocks);
  }
  if (isShared(event.space))
    return; // other clusters do not reach it
  const Abroad &abroad = abroadOf(at);
  const ForeignPtr &foreign = reachOf(how.scope) == Elsewhere ? abroad.wide : abroad.narrow;
  join(warp.unacquired[Elsewhere].foreign, foreign);
  if (how.acquire)
    cluster.teach(warp, lanes, [&](Clocks &clocks) { join(clocks.foreign, foreign); });
}

/// Lanes that access one address do so together.
void HazardChecker::Impl::synchronize(ClusterState &cluster, const MemoryEvent &event) {
  for (uint32_t rest = event.laneMask; rest;) {
    const uint64_t address = event.addressOf(uint32_t(std::countr_zero(rest)));
    uint32_t lanes = 0;
    for (uint32_t others = rest; others; others &= others - 1)
      if (event.addressOf(uint32_t(std::countr_zero(others))) == address)
        lanes |= others & (0 - others);
    rest &= ~lanes;
    synchronize(cluster, event, address, lanes);
  }
}

void HazardChecker::Impl::synchronize(ClusterState &cluster, const MemoryEvent &event,
                                      uint64_t address, uint32_t lanes) {
  WarpState &warp = cluster.warp(event.actor);
  Releases &all = isShared(event.space) ? cluster.released : global.releases;
  const Scope scope = scopeOf(event);
  if (const auto it = all.find(address); it != all.end()) {
    if (event.kind == AccessKind::Write) {
      beginAnew(it->second, cluster.index, warp.rank);
    } else {
      const Learned how{address, it->second.changes, lanes, scope, acquires(event.order)};
      if (!isReduction(event.at.pc)) { // which reads nothing that its thread gets
        if (how != warp.learned)
          learn(cluster, event, lanes, how, it->second);
        warp.learned = how;
        warp.order.sync = ++cluster.sequence;
      }
    }
  }
  if (event.kind == AccessKind::Read)
    return;
  if (const FencesPtr &fences = cluster.known(warp, lanes).fences) {
    ReleasesAt &at = all[address];
    put(at.fences, cluster.index, fences);
    ++at.changes;
  }
  if (releases(event.order)) {
    put(all[address], cluster.index, warp.rank, scope, cluster.published(warp, lanes, event.at.pc));
    cluster.advance(warp);
    return;
  }
  for (const ReleaseFence &fence : warp.released)
    put(all[address], cluster.index, warp.rank, std::min(scope, fence.scope), fence.clocks);
}

} // namespace fp4::sim
