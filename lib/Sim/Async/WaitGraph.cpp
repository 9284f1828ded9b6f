//===- WaitGraph.cpp - Chains of waits -------------------------------------===//
#include "WaitGraph.h"
#include "TicketQueue.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

namespace fp4::sim {
namespace {

constexpr int kLanesRank = 2; ///< rankOf of lanes that wait for others of their warp

using WarpId = std::pair<uint32_t, uint32_t>; ///< rank of the CTA, index

/// Kinds of ends, the most telling first.
enum class Verdict : uint8_t { Parity, Bytes, Exited, Other, Partial, Ring, Nobody, Unknown };

struct Chain {
  Verdict verdict = Verdict::Unknown;
  std::string text;
  const Blocked *last = nullptr; ///< the group that waits at the end
  size_t length = 0;             ///< objects at which somebody waits

  /// The longest of chains that end alike explains most waits.
  bool explainsMoreThan(const Chain &other) const {
    return !other.last || verdict < other.verdict ||
           (verdict == other.verdict && length > other.length);
  }
};

std::string nameWarps(const std::vector<WarpId> &warps) {
  std::string text;
  for (size_t i = 0; i < warps.size();) {
    std::vector<uint32_t> indices;
    const uint32_t rank = warps[i].first;
    for (; i < warps.size() && warps[i].first == rank; ++i)
      indices.push_back(warps[i].second);
    text += fmt::format("{}warp{} {}", text.empty() ? "" : ", ", indices.size() > 1 ? "s" : "",
                        listNumbers(indices));
    if (rank)
      text += fmt::format(" of CTA rank {}", rank);
  }
  return text;
}

class Walk {
public:
  Walk(const Cluster &cluster, const std::vector<Blocked> &blocked)
      : cluster(cluster), blocked(blocked) {}
  Chain from(const Blocked &start) const;

private:
  TicketQueue &queue() const { return static_cast<TicketQueue &>(*cluster.async); }
  const Mbarrier *mbarrierOf(const Awaited &at) const {
    return queue().state(at.rank).mbarriers.lookup(at.object);
  }
  std::vector<WarpId> missingAt(const Awaited &at) const;
  std::vector<WarpId> missingAtBarrier(const Awaited &at) const;
  const Blocked *waitOf(const WarpId &warp) const;
  bool exited(const WarpId &warp) const {
    return cluster.ctas[warp.first]->warps[warp.second].done();
  }
  bool endsHere(const Blocked &at, Chain &chain) const;
  std::string alike(const Blocked &at) const;
  void endAt(const Awaited &at, const std::vector<WarpId> &gone, Chain &chain) const;

  const Cluster &cluster;
  const std::vector<Blocked> &blocked;
};

std::vector<WarpId> warpsOf(const ArrivalEvents &events) {
  std::set<WarpId> warps;
  for (const ArrivalEvent &event : events)
    warps.emplace(event.actor.ctaRank, event.actor.warp);
  return {warps.begin(), warps.end()};
}

/// The warps that a barrier of a CTA expects: all, or with a count those of the phase before.
std::vector<WarpId> Walk::missingAtBarrier(const Awaited &at) const {
  const Cta &cta = *cluster.ctas[at.rank];
  const CtaBarrier &barrier = cta.barriers[at.object];
  const BarrierArrivals &arrivals = queue().state(at.rank).barrierArrivals[at.object];
  const ArrivalEvents &now = arrivals.now(barrier.generation);
  if (barrier.expected && barrier.expected < 32 * cta.warps.size())
    return warpsOf(missingArrivals(arrivals.before(barrier.generation), now));
  const std::vector<WarpId> there = warpsOf(now);
  std::vector<WarpId> missing;
  for (const Warp &warp : cta.warps)
    if (const WarpId id{at.rank, warp.index};
        !std::ranges::binary_search(there, id) && (barrier.expected || !warp.done()))
      missing.push_back(id);
  return missing;
}

std::vector<WarpId> Walk::missingAt(const Awaited &at) const {
  std::vector<WarpId> missing;
  switch (at.what) {
  case Awaited::What::Mbarrier:
    if (const Mbarrier *barrier = mbarrierOf(at); barrier && barrier->pending)
      return warpsOf(missingArrivals(barrier->previousArrivals, barrier->arrivals));
    return missing;
  case Awaited::What::Barrier:
    return missingAtBarrier(at);
  case Awaited::What::ClusterBarrier:
    for (const auto &cta : cluster.ctas)
      for (const Warp &warp : cta->warps)
        if (warp.live & ~warp.clusterArrived)
          missing.emplace_back(cta->rank, warp.index);
    return missing;
  case Awaited::What::Lanes:
    return {{at.rank, at.object}};
  }
  return missing;
}

/// The wait of a warp that tells most; null when some of its lanes run.
const Blocked *Walk::waitOf(const WarpId &warp) const {
  const Blocked *best = nullptr;
  for (const Blocked &one : blocked)
    if (one.cta->rank == warp.first && one.warp->index == warp.second && rankOf(one) < kLanesRank &&
        (!best || rankOf(one) < rankOf(*best)))
      best = &one;
  return best;
}

/// Ends a chain at a wait for something else than warps.
bool Walk::endsHere(const Blocked &at, Chain &chain) const {
  if (!at.awaited) {
    chain.verdict = Verdict::Other;
    chain.text += ", which waits for " + at.group->wait->describe();
    return true;
  }
  const Awaited &awaited = *at.awaited;
  const Mbarrier *barrier = awaited.what == Awaited::What::Mbarrier ? mbarrierOf(awaited) : nullptr;
  if (!barrier)
    return false;
  if (const std::string parity = barrier->describeParity(at.warp->index, barrier->phase);
      !parity.empty() && barrier->phase) {
    chain.verdict = Verdict::Parity;
    chain.text +=
        fmt::format(" <- {}: the parity of the wait is wrong, or a phase was missed", awaited.name);
    return true;
  }
  if (barrier->tx && !barrier->pending) {
    chain.verdict = Verdict::Bytes;
    chain.text += fmt::format(" <- {}: all have arrived, but {} bytes are missing ({})",
                              awaited.name, barrier->tx, barrier->describeBytes(cluster.launch));
    return true;
  }
  return false;
}

/// The warps that wait at the same object.
std::string Walk::alike(const Blocked &at) const {
  std::vector<WarpId> warps;
  for (const Blocked &one : blocked)
    if (const WarpId id{one.cta->rank, one.warp->index};
        one.awaited && one.awaited->sameObject(*at.awaited) && waitOf(id) &&
        waitOf(id)->awaited->sameObject(*at.awaited))
      warps.push_back(id);
  if (warps.empty())
    warps.emplace_back(at.cta->rank, at.warp->index);
  return nameWarps(warps);
}

/// Nobody else is expected, or somebody who has exited.
void Walk::endAt(const Awaited &at, const std::vector<WarpId> &gone, Chain &chain) const {
  const Mbarrier *barrier = at.what == Awaited::What::Mbarrier ? mbarrierOf(at) : nullptr;
  if (!gone.empty()) {
    chain.verdict = Verdict::Exited;
    chain.text += fmt::format(" <- {}, which {} exited and without which it never completes",
                              nameWarps(gone), gone.size() > 1 ? "have" : "has");
  } else if (barrier && !barrier->arrivals.empty()) {
    chain.verdict = Verdict::Partial;
    chain.text +=
        fmt::format(": {} of {} arrivals are pending behind those of {}", barrier->pending,
                    barrier->expected, listArrivals(barrier->arrivals, cluster.launch));
  } else {
    chain.verdict = Verdict::Nobody;
    chain.text += ": nobody else has ever arrived there";
  }
}

Chain Walk::from(const Blocked &start) const {
  Chain chain;
  chain.text = start.awaited ? alike(start) : nameWarps({{start.cta->rank, start.warp->index}});
  std::vector<const Awaited *> seen;
  for (const Blocked *at = &start;;) {
    chain.last = at;
    if (endsHere(*at, chain))
      return chain;
    const Awaited &awaited = *at->awaited;
    chain.text += " <- " + awaited.name;
    if (std::ranges::any_of(seen, [&](const Awaited *a) { return a->sameObject(awaited); })) {
      chain.verdict = Verdict::Ring;
      chain.text += ": a ring, in which each waits for the next";
      return chain;
    }
    seen.push_back(&awaited);
    ++chain.length;
    const std::vector<WarpId> missing = missingAt(awaited);
    std::vector<WarpId> gone;
    std::ranges::copy_if(missing, std::back_inserter(gone),
                         [&](const WarpId &warp) { return exited(warp); });
    if (missing.empty() || !gone.empty()) {
      endAt(awaited, gone, chain);
      return chain;
    }
    at = waitOf(missing.front());
    if (!at) // it runs
      return chain;
    chain.text += " <- " + (at->awaited ? alike(*at) : nameWarps({missing.front()}));
  }
}

} // namespace

std::vector<Blocked> blockedGroups(const Cluster &cluster) {
  std::vector<Blocked> list;
  for (const auto &cta : cluster.ctas)
    for (const Warp &warp : cta->warps)
      for (const LaneGroup &group : warp.groups)
        if (group.wait) {
          list.push_back({cta.get(), &warp, &group, std::nullopt});
          if (const auto *awaits = dynamic_cast<const AwaitsWarps *>(group.wait.get()))
            list.back().awaited = awaits->awaited();
        }
  return list;
}

int rankOf(const Blocked &blocked) {
  if (!blocked.awaited)
    return 0;
  switch (blocked.awaited->what) {
  case Awaited::What::Mbarrier:
    return 0;
  case Awaited::What::Barrier:
    return blocked.cta->barriers[blocked.awaited->object].expected ? 0 : 1;
  case Awaited::What::ClusterBarrier:
    return 1;
  case Awaited::What::Lanes:
    return kLanesRank;
  }
  return 0;
}

WaitEnd findEnd(const Cluster &cluster, const std::vector<Blocked> &blocked) {
  const Walk walk(cluster, blocked);
  Chain best;
  for (const auto &cta : cluster.ctas)
    for (const Warp &warp : cta->warps)
      for (const LaneGroup &group : warp.groups)
        if (!group.wait || group.wait->polls())
          return {}; // it may be the one for which all wait
  for (const Blocked &start : blocked) {
    if (rankOf(start) == kLanesRank)
      continue;
    Chain chain = walk.from(start);
    if (chain.explainsMoreThan(best))
      best = std::move(chain);
  }
  if (!best.last)
    return {};
  const bool tells = best.verdict != Verdict::Unknown;
  return {tells ? "the waits end here: " + best.text : "", best.last->cta, best.last->awaited};
}

} // namespace fp4::sim
