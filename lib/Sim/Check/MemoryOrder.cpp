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

#include <ranges>

namespace fp4::sim {

using namespace check;

//===----------------------------------------------------------------------===//
// fence.sc that come before
//===----------------------------------------------------------------------===//

static bool covers(const Foreign &foreign, const Foreign &other) {
  return std::ranges::all_of(other, [&](const auto &entry) {
    const auto mine = foreign.find(entry.first);
    return mine != foreign.end() && mine->second.generic.covers(entry.second.generic) &&
           mine->second.async.covers(entry.second.async);
  });
}

bool check::cover(const Fences &fences, const Fences &other) {
  return std::ranges::all_of(other, [&](const auto &entry) {
    const auto mine = fences.find(entry.first);
    return mine != fences.end() &&
           (mine->second == entry.second || covers(*mine->second, *entry.second));
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

/// The instances of the scopes up to `scope` that have the warp.
std::vector<ScopeInstance> instancesOf(const ClusterState &cluster, const WarpState &warp,
                                       Scope scope) {
  std::vector<ScopeInstance> all = {{Scope::Cta, cluster.index, warp.rank}};
  if (reachOf(scope) >= OwnCluster)
    all.push_back({Scope::Cluster, cluster.index, 0});
  if (reachOf(scope) == Elsewhere)
    all.push_back({Scope::Gpu, 0, 0});
  return all;
}

/// Returns what a fence.sc publishes for later ones: the clocks of its warp, and in a scope
/// narrower than the GPU only those of its own cluster.
FencesPtr fenceOf(const ClusterState &cluster, const WarpState &warp, Scope scope,
                  const Clocks &published) {
  const Foreign own{{cluster.index, {published.generic, published.asyncGlobal, published.generic}}};
  const auto near = std::make_shared<Foreign>(own);
  ForeignPtr far = near;
  join(far, published.foreign);
  auto fences = std::make_shared<Fences>();
  for (const ScopeInstance &instance : instancesOf(cluster, warp, scope))
    (*fences)[instance] = instance.scope == Scope::Gpu ? far : near;
  return fences;
}

/// A fence.sc comes after those that were observed, as far as its scope reaches.
void acquireFences(ClusterState &cluster, const FenceEvent &event, WarpState &warp) {
  const FencesPtr observed = cluster.known(warp, event.laneMask).observed;
  if (!observed)
    return;
  for (const ScopeInstance &instance : instancesOf(cluster, warp, event.scope)) {
    const auto found = observed->find(instance);
    if (found == observed->end())
      continue;
    const ForeignPtr &known = found->second;
    if (const auto own = known->find(cluster.index); own != known->end()) {
      Clocks before;
      before.generic = before.loose = own->second.generic;
      before.asyncGlobal = own->second.async;
      cluster.acquire(warp, event.laneMask, before);
    }
    if (instance.scope == Scope::Gpu)
      cluster.teach(warp, event.laneMask, [&](Clocks &clocks) { join(clocks.foreign, known); });
  }
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

Distance distanceOf(const Release &from, const WarpState &warp, uint32_t cluster) {
  return from.cluster != cluster ? Elsewhere : from.rank != warp.rank ? OwnCluster : OwnCta;
}

/// Returns true when a release by `from` and an acquire in scope `acquire` include each other's
/// threads.
bool inScope(const Release &from, const WarpState &warp, uint32_t cluster, Scope acquire) {
  return distanceOf(from, warp, cluster) <= reachOf(std::min(from.scope, acquire));
}

/// Adds what the clocks of another cluster are to this one.
void abroad(const Release &release, bool visible, Foreign &foreign) {
  if (visible && release.clocks.foreign)
    for (const auto &[cluster, known] : *release.clocks.foreign)
      foreign[cluster].join(known);
  Known &known = foreign[release.cluster];
  known.loose.join(release.clocks.loose);
  if (visible) {
    known.generic.join(release.clocks.generic);
    known.async.join(release.clocks.asyncGlobal);
  }
}

/// Returns true when the release is known already, and so is all that the releasing warp knew from
/// others: knowledge of a warp always comes with what that warp knew.
bool isKnown(const Release &release, const Foreign &foreign) {
  auto it = foreign.find(release.cluster);
  return it != foreign.end() && it->second.generic.covers(release.clocks.generic) &&
         it->second.async.covers(release.clocks.asyncGlobal) &&
         it->second.loose.covers(release.clocks.loose);
}

void put(ReleasesAt &at, uint32_t cluster, uint32_t rank, Scope scope, const Clocks &clocks) {
  ++at.changes;
  for (Release &release : at.all)
    if (release.cluster == cluster && release.rank == rank && release.scope == scope)
      return release.clocks.join(clocks);
  at.all.push_back({cluster, rank, scope, clocks});
}

/// Behind a store nobody observes what came before it, but for what its own thread released there.
void beginAnew(ReleasesAt &at, uint32_t cluster, uint32_t rank) {
  std::erase_if(at.all, [&](const Release &release) {
    return release.cluster != cluster || release.rank != rank;
  });
  at.fences = nullptr;
  ++at.changes;
}

} // namespace

bool HazardChecker::Impl::isReduction(uint32_t pc) const {
  return kernel && opcodeTable()[kernel->code[pc].row].base == "red";
}

/// Acquires the releases through an address. If CTAs count there one after the other, each has
/// acquired those before it, so the last release has all clocks.
void HazardChecker::Impl::learn(ClusterState &cluster, const MemoryEvent &event, uint32_t lanes,
                                const Learned &how, const ReleasesAt &at) {
  WarpState &warp = cluster.warp(event.actor);
  if (at.fences && usesValue(event))
    cluster.teach(warp, allLanes, [&](Clocks &clocks) { join(clocks.observed, at.fences); });
  auto foreign = std::make_shared<Foreign>();
  for (const Release &release : std::views::reverse(at.all)) {
    const bool visible = inScope(release, warp, cluster.index, how.scope);
    if (release.cluster != cluster.index) {
      if (!isKnown(release, *foreign))
        abroad(release, visible, *foreign);
      continue;
    }
    cluster.teach(warp, allLanes, [&](Clocks &clocks) { clocks.joinLoose(release.clocks); });
    if (!visible)
      continue;
    warp.unacquired[distanceOf(release, warp, cluster.index)].join(release.clocks);
    if (how.acquire)
      cluster.acquire(warp, lanes, release.clocks);
  }
  if (foreign->empty())
    return;
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
  Releases &all = isShared(event.space) ? cluster.released : globalReleases;
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
    join(at.fences, fences);
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
