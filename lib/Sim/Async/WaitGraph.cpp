//===- WaitGraph.cpp - Chains of waits -------------------------------------===//
#include "WaitGraph.h"
#include "ArrivalsAhead.h"
#include "Sim/Decode/Modifiers/Copy.h"
#include "TicketQueue.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace fp4::sim {
namespace {

constexpr std::string_view kFirstParity =
    " (the wait for a stage that nobody has filled yet begins with parity 1)";
constexpr int kLanesRank = 2; ///< rankOf of lanes that wait for others of their warp

using WarpId = std::pair<uint32_t, uint32_t>; ///< rank of the CTA, index

/// Kinds of ends, the most telling first.
enum class Verdict : uint8_t {
  Split,
  Parity,
  Bytes,
  Exited,
  Other,
  Unannounced,
  Partial,
  Ring,
  Nobody,
  Unknown
};

struct Chain {
  Verdict verdict = Verdict::Unknown;
  std::string text;
  const Blocked *last = nullptr; ///< the group that waits at the end
  size_t length = 0;             ///< objects at which somebody waits
  size_t ahead = 0;              ///< arrivals of which the text alone tells

  /// The longest of chains that end alike explains most waits.
  bool explainsMoreThan(const Chain &other) const {
    return !other.last || std::tuple(verdict, ahead, other.length) <
                              std::tuple(other.verdict, other.ahead, length);
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

/// Multicast copies that have reached `twin`, of CTA `rank`, and not `barrier`.
std::string describeMasks(const Mbarrier &barrier, const Mbarrier &twin, uint32_t rank,
                          const Launch *launch) {
  const auto multicasts = [&](const ArrivalEvent &event) {
    const Insn &insn = launch->kernel->code[event.at.pc];
    const auto *tensor = insn.get<TensorModifiers>();
    const auto *bulk = insn.get<BulkModifiers>();
    return (tensor && tensor->multicast) || (bulk && bulk->multicast);
  };
  const auto came = [&](const ArrivalEvent &event) {
    return std::ranges::any_of(barrier.deliveries, [&](const ArrivalEvent &mine) {
      return mine.at.pc == event.at.pc && mine.actor.ctaRank == event.actor.ctaRank;
    });
  };
  const ArrivalEvents &theirs =
      twin.phase > barrier.phase ? twin.previousDeliveries : twin.deliveries;
  for (const ArrivalEvent &event : theirs)
    if (multicasts(event) && !came(event))
      return fmt::format("; the multicast copy of CTA rank {} at {} has reached CTA rank {}, and "
                         "not this one: its mask lacks it",
                         event.actor.ctaRank, describePoint(launch, event.at), rank);
  return "";
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
  std::vector<WarpId> missingAtMbarrier(const Mbarrier &barrier) const;
  std::vector<WarpId> missingAtBarrier(const Awaited &at) const;
  std::vector<WarpId> missingAtWarpgroup(const Awaited &at) const;
  std::string nameOf(const Awaited &at) const;
  const Blocked *waitOf(const WarpId &warp) const;
  std::string splitOf(const WarpId &warp) const;
  bool splitsAt(const std::vector<WarpId> &missing, Chain &chain) const;
  std::string twinsOf(const Awaited &at) const;
  bool exited(const WarpId &warp) const {
    return cluster.ctas[warp.first]->warps[warp.second].done();
  }
  bool endsHere(const Blocked &at, Chain &chain) const;
  std::string goneFrom(const Awaited &at, const Mbarrier &barrier) const;
  std::string alike(const Blocked &at, const std::vector<WarpId> *among = nullptr) const;
  void endAt(const Blocked &at, const std::vector<WarpId> &gone, Chain &chain) const;
  const std::vector<ArrivalAhead> &aheadOf(const Awaited &at) const;
  bool goesAhead(const Blocked &at, Chain &chain, const Blocked *&next) const;
  bool firstWait(const Blocked &at) const;
  bool closesRing(const Blocked &at, const std::vector<const Blocked *> &seen, Chain &chain) const;

  const Cluster &cluster;
  const std::vector<Blocked> &blocked;
  mutable std::map<std::pair<uint32_t, uint32_t>, std::vector<ArrivalAhead>> ahead;
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

/// The warps that arrived in the phase before, or that copied where only bytes are missing.
std::vector<WarpId> Walk::missingAtMbarrier(const Mbarrier &barrier) const {
  if (barrier.pending)
    return warpsOf(missingArrivals(barrier.previousArrivals, barrier.arrivals));
  return warpsOf(missingArrivals(barrier.previousDeliveries, barrier.deliveries));
}

/// The warps that have not issued their part of a wgmma: those that do not wait for it.
std::vector<WarpId> Walk::missingAtWarpgroup(const Awaited &at) const {
  constexpr uint32_t warpsPerGroup = 4;
  const size_t end =
      std::min<size_t>(at.object + warpsPerGroup, cluster.ctas[at.rank]->warps.size());
  std::vector<WarpId> missing;
  for (uint32_t warp = at.object; warp < end; ++warp)
    if (std::ranges::none_of(blocked, [&](const Blocked &one) {
          return one.warp->index == warp && one.awaited && one.awaited->sameObject(at);
        }))
      missing.emplace_back(at.rank, warp);
  return missing;
}

std::vector<WarpId> Walk::missingAt(const Awaited &at) const {
  std::vector<WarpId> missing;
  switch (at.what) {
  case Awaited::What::Mbarrier:
    if (const Mbarrier *barrier = mbarrierOf(at))
      return missingAtMbarrier(*barrier);
    return missing;
  case Awaited::What::Barrier:
    return missingAtBarrier(at);
  case Awaited::What::Warpgroup:
    return missingAtWarpgroup(at);
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

/// "'full' of CTA rank 1, of which 2048 bytes are missing".
std::string Walk::nameOf(const Awaited &at) const {
  const Mbarrier *barrier = at.what == Awaited::What::Mbarrier ? mbarrierOf(at) : nullptr;
  std::string text = at.name + (at.rank ? fmt::format(" of CTA rank {}", at.rank) : "");
  if (barrier && barrier->tx > 0 && !barrier->pending)
    text += fmt::format(", of which {} bytes are missing", barrier->tx);
  return text;
}

/// The places where all lanes of a warp wait for others of its lanes. Empty if some do anything
/// else.
std::string Walk::splitOf(const WarpId &id) const {
  std::vector<std::string> places;
  for (const Blocked &one : blocked)
    if (one.cta->rank == id.first && one.warp->index == id.second && one.awaited &&
        one.awaited->what == Awaited::What::Lanes) {
      const uint32_t pc = waitingAt(*one.group);
      const uint32_t line = cluster.launch->kernel->code[pc].line;
      places.push_back(fmt::format("lanes {:#010x} at {}", one.group->mask,
                                   describePoint(cluster.launch, {pc, line})));
    }
  const size_t groups = cluster.ctas[id.first]->warps[id.second].groups.size();
  return groups > 1 && places.size() == groups ? fmt::format("{}", fmt::join(places, ", ")) : "";
}

/// Ends a chain at a warp whose lanes wait for each other.
bool Walk::splitsAt(const std::vector<WarpId> &missing, Chain &chain) const {
  for (const WarpId &warp : missing)
    if (const std::string places = splitOf(warp); !places.empty()) {
      chain.verdict = Verdict::Split;
      chain.text += fmt::format("{}{}, whose lanes wait for each other: {}",
                                chain.text.empty() ? "" : " <- ", nameWarps({warp}), places);
      return true;
    }
  return false;
}

/// The arrivals and bytes that the mbarriers at the same offset of other CTAs have got: an address
/// or a mask of CTAs may be wrong.
std::string Walk::twinsOf(const Awaited &at) const {
  std::string text;
  for (const auto &cta : cluster.ctas) {
    Awaited other = at;
    other.rank = cta->rank;
    const Mbarrier *twin = cta->rank == at.rank ? nullptr : mbarrierOf(other);
    if (!twin)
      continue;
    const std::string name =
        fmt::format("; the mbarrier at the same address of CTA rank {}", cta->rank);
    const ArrivalEvents &arrivals =
        twin->arrivals.empty() ? twin->previousArrivals : twin->arrivals;
    if (twin->tx < 0)
      text += fmt::format("{} has got {} bytes that nobody announced there ({})", name, -twin->tx,
                          twin->describeBytes(cluster.launch));
    else if (mbarrierOf(at)->pending && !arrivals.empty())
      text += name + " has got those of " + listArrivals(arrivals, cluster.launch);
    else if (!mbarrierOf(at)->pending)
      text += describeMasks(*mbarrierOf(at), *twin, cta->rank, cluster.launch);
  }
  return text;
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
  const bool bytes = barrier->tx && !barrier->pending;
  if (bytes && (missingAtMbarrier(*barrier).empty() || !twinsOf(awaited).empty())) {
    chain.verdict = Verdict::Bytes;
    chain.text +=
        fmt::format(" <- {}: all have arrived, but {} bytes are missing ({}){}", awaited.name,
                    barrier->tx, barrier->describeBytes(cluster.launch), twinsOf(awaited));
    return true;
  }
  return false;
}

/// The warps that wait at the same object, all or those `among` some.
std::string Walk::alike(const Blocked &at, const std::vector<WarpId> *among) const {
  std::vector<WarpId> warps;
  for (const Blocked &one : blocked)
    if (const WarpId id{one.cta->rank, one.warp->index};
        one.awaited && one.awaited->sameObject(*at.awaited) && waitOf(id) && waitOf(id)->awaited &&
        waitOf(id)->awaited->sameObject(*at.awaited) &&
        (!among || std::ranges::find(*among, id) != among->end()))
      warps.push_back(id);
  if (warps.empty())
    warps.emplace_back(at.cta->rank, at.warp->index);
  return nameWarps(warps);
}

/// Returns true when a warp has never passed an mbarrier, and nobody has arrived there.
bool Walk::firstWait(const Blocked &at) const {
  const Mbarrier *barrier =
      at.awaited && at.awaited->what == Awaited::What::Mbarrier ? mbarrierOf(*at.awaited) : nullptr;
  return barrier && !barrier->describeParity(at.warp->index, 0).empty();
}

/// The arrivals that the text has ahead of waiting groups, at an mbarrier at which nobody arrived.
const std::vector<ArrivalAhead> &Walk::aheadOf(const Awaited &at) const {
  const auto [place, fresh] = ahead.try_emplace({at.rank, at.object});
  const Mbarrier *barrier = at.what == Awaited::What::Mbarrier ? mbarrierOf(at) : nullptr;
  if (fresh && barrier && !barrier->phase && barrier->arrivals.empty() && !barrier->tx &&
      twinsOf(at).empty())
    place->second = arrivalsAhead(cluster, blocked, at);
  return place->second;
}

/// Goes on to a group ahead of which the text has an arrival here, or ends at lanes that wait for
/// lanes of their own warp, which wait here.
bool Walk::goesAhead(const Blocked &at, Chain &chain, const Blocked *&next) const {
  const std::vector<ArrivalAhead> &arrivals = aheadOf(*at.awaited);
  if (arrivals.empty())
    return false;
  const ArrivalAhead &first = arrivals.front();
  const WarpId warp{first.by->cta->rank, first.by->warp->index};
  const std::string place = describePoint(cluster.launch, first.at);
  if (first.by->warp == at.warp && first.by != &at && rankOf(*first.by) == kLanesRank) {
    const uint32_t pc = waitingAt(*first.by->group);
    const uint32_t line = cluster.launch->kernel->code[pc].line;
    chain.verdict = Verdict::Split;
    chain.text += fmt::format(
        " <- lanes {:#010x} of warp {}, which would arrive at {}, and wait at "
        "{} for the lanes that wait here",
        first.by->group->mask, at.warp->index, place, describePoint(cluster.launch, {pc, line}));
    return true;
  }
  std::vector<WarpId> among;
  for (const ArrivalAhead &one : arrivals)
    if (one.at.pc == first.at.pc)
      among.emplace_back(one.by->cta->rank, one.by->warp->index);
  next = rankOf(*first.by) < kLanesRank ? first.by : waitOf(warp);
  if (!next)
    return false;
  ++chain.ahead;
  chain.text += fmt::format(" <- {} (arrival ahead: {})",
                            next->awaited ? alike(*next, &among) : nameWarps({warp}), place);
  return true;
}

/// "; warp 4 has exited, and never arrived there": the CTA's warps that may be missing although
/// nobody has seen them at the mbarrier.
std::string Walk::goneFrom(const Awaited &at, const Mbarrier &barrier) const {
  std::set<WarpId> came;
  for (const ArrivalEvents *events : {&barrier.arrivals, &barrier.previousArrivals,
                                      &barrier.deliveries, &barrier.previousDeliveries})
    for (const ArrivalEvent &event : *events)
      came.emplace(event.actor.ctaRank, event.actor.warp);
  std::vector<WarpId> gone;
  for (const Warp &warp : cluster.ctas[at.rank]->warps)
    if (const WarpId id{at.rank, warp.index}; warp.done() && !came.contains(id))
      gone.push_back(id);
  return gone.empty() ? ""
                      : fmt::format("; {} {} exited, and never arrived there", nameWarps(gone),
                                    gone.size() > 1 ? "have" : "has");
}

/// Nobody else is expected, or somebody who has exited.
void Walk::endAt(const Blocked &end, const std::vector<WarpId> &gone, Chain &chain) const {
  const Awaited &at = *end.awaited;
  const Mbarrier *barrier = at.what == Awaited::What::Mbarrier ? mbarrierOf(at) : nullptr;
  if (!gone.empty()) {
    chain.verdict = Verdict::Exited;
    chain.text += fmt::format(" <- {}, which {} exited and without which it never completes",
                              nameWarps(gone), gone.size() > 1 ? "have" : "has");
  } else if (barrier && barrier->tx < 0) {
    chain.verdict = Verdict::Unannounced;
    chain.text += fmt::format(": {} bytes came that nobody of its CTA announced ({})", -barrier->tx,
                              barrier->describeBytes(cluster.launch));
  } else if (barrier && !barrier->arrivals.empty()) {
    chain.verdict = Verdict::Partial;
    chain.text += fmt::format(
        ": {} of {} arrivals are pending behind those of {}{}", barrier->pending, barrier->expected,
        listArrivals(barrier->arrivals, cluster.launch), twinsOf(at) + goneFrom(at, *barrier));
  } else {
    chain.verdict = Verdict::Nobody;
    const std::string twins = barrier ? twinsOf(at) : "";
    chain.text += ": nobody else has ever arrived there" + twins;
    if (twins.empty() && firstWait(end))
      chain.text += kFirstParity;
  }
}

/// Ends a chain at an object that it has met.
bool Walk::closesRing(const Blocked &at, const std::vector<const Blocked *> &seen,
                      Chain &chain) const {
  const auto begin = std::ranges::find_if(
      seen, [&](const Blocked *one) { return one->awaited->sameObject(*at.awaited); });
  if (begin == seen.end())
    return false;
  chain.verdict = Verdict::Ring;
  chain.text += ": a ring, in which each waits for the next";
  if (std::all_of(begin, seen.end(), [&](const Blocked *one) { return firstWait(*one); }))
    chain.text += kFirstParity;
  return true;
}

Chain Walk::from(const Blocked &start) const {
  Chain chain;
  chain.last = &start;
  if (rankOf(start) == kLanesRank) {
    splitsAt({{start.cta->rank, start.warp->index}}, chain);
    return chain;
  }
  chain.text = start.awaited ? alike(start) : nameWarps({{start.cta->rank, start.warp->index}});
  std::vector<const Blocked *> seen;
  for (const Blocked *at = &start;;) {
    chain.last = at;
    if (endsHere(*at, chain))
      return chain;
    const Awaited &awaited = *at->awaited;
    chain.text += " <- " + nameOf(awaited);
    if (closesRing(*at, seen, chain))
      return chain;
    seen.push_back(at);
    ++chain.length;
    const std::vector<WarpId> missing = missingAt(awaited);
    std::vector<WarpId> gone;
    std::ranges::copy_if(missing, std::back_inserter(gone),
                         [&](const WarpId &warp) { return exited(warp); });
    if (missing.empty() && goesAhead(*at, chain, at)) {
      if (chain.verdict == Verdict::Split)
        return chain;
      continue;
    }
    if (missing.empty() || !gone.empty()) {
      endAt(*at, gone, chain);
      return chain;
    }
    if (splitsAt(missing, chain))
      return chain;
    at = waitOf(missing.front());
    if (!at) // it runs
      return chain;
    chain.text += " <- " + (at->awaited ? alike(*at, &missing) : nameWarps({missing.front()}));
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
  case Awaited::What::Warpgroup:
    return 0;
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
    Chain chain = walk.from(start);
    if (chain.explainsMoreThan(best))
      best = std::move(chain);
  }
  if (!best.last)
    return {};
  const bool tells = best.verdict != Verdict::Unknown;
  return {tells ? "the waits end here: " + best.text : "", best.last->cta, best.last->group};
}

} // namespace fp4::sim
