//===- Deadlock.cpp - A deadlock in words ---------------------------------===//
//
// Called when no warp can run and no asynchronous operation is left that could wake one. A line
// says where the chain of waits ends (WaitGraph.h). One line for equal groups of lanes says where
// they are and what they wait for (Wait::describe): first who waits for that end, last who waits
// for all threads. Then follow the warps that have exited, because one of them is often the one
// whose arrival is missing.
//
//===----------------------------------------------------------------------===//
#include "Deadlock.h"
#include "TicketQueue.h"
#include "WaitGraph.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

namespace fp4::sim {
namespace {

/// Warps of a CTA that have exited: "0, 1, 5".
std::string exitedWarps(const Cta &cta) {
  std::vector<uint32_t> exited;
  for (const Warp &warp : cta.warps)
    if (warp.done())
      exited.push_back(warp.index);
  return listNumbers(exited);
}

/// Groups of lanes that wait alike, in warps of one CTA.
struct Waiters {
  const Blocked *first;
  std::string what;
  std::vector<uint32_t> warps;
};

std::vector<Waiters> waitersOf(const std::vector<Blocked> &blocked) {
  std::map<std::tuple<const Cta *, uint32_t, uint32_t, std::string>, size_t> known;
  std::vector<Waiters> list;
  for (const Blocked &one : blocked) {
    std::string what = one.group->wait->describe();
    const uint32_t lanes = one.group->mask == one.warp->live ? 0 : one.group->mask;
    const auto [place, fresh] =
        known.try_emplace({one.cta, waitingAt(*one.group), lanes, what}, list.size());
    if (fresh)
      list.push_back({&one, std::move(what), {}});
    list[place->second].warps.push_back(one.warp->index);
  }
  return list;
}

std::string describeWaiters(const Launch &launch, const Waiters &waiters) {
  const Blocked &first = *waiters.first;
  const LaneGroup &group = *first.group;
  std::string line = describeLocation(launch, *first.cta, first.warp->index, -1,
                                      launch.kernel->code[waitingAt(group)]);
  const std::string one = fmt::format(", warp {}", first.warp->index);
  if (waiters.warps.size() > 1)
    line.replace(line.find(one), one.size(), ", warps " + listNumbers(waiters.warps));
  if (group.mask != first.warp->live)
    line += fmt::format(", lanes {:#010x}", group.mask);
  return line + (waiters.warps.size() > 1 ? ", each waits for " : " waits for ") + waiters.what;
}

} // namespace

std::string describeBlocked(const Cluster &cluster) {
  const std::vector<Blocked> blocked = blockedGroups(cluster);
  const WaitEnd end = findEnd(cluster, blocked);
  const std::string last = end.group ? end.group->wait->describe() : "";
  std::vector<Waiters> list = waitersOf(blocked);
  std::ranges::stable_sort(list, {}, [&](const Waiters &w) {
    return w.first->cta == end.cta && w.what == last ? -1 : rankOf(*w.first);
  });
  std::string text = end.text.empty() ? "" : "\n  " + end.text;
  for (const auto &cta : cluster.ctas)
    if (const std::string others =
            static_cast<TicketQueue &>(*cluster.async).state(cta->rank).tmem.describeWaiters();
        !others.empty())
      text += "\n  " + others;
  for (const Waiters &waiters : list)
    text += "\n  " + describeWaiters(*cluster.launch, waiters);
  return text;
}

std::string describeExited(const Cluster &cluster) {
  std::string text;
  for (const auto &cta : cluster.ctas)
    if (const std::string exited = exitedWarps(*cta); !exited.empty() && !cta->done())
      text += fmt::format("{}warps {} of CTA rank {} have exited", text.empty() ? "" : "; ", exited,
                          cta->rank);
  return text;
}

Error TicketQueue::deadlock() {
  return {ErrorKind::Simulation,
          "deadlock: no warp can run and no asynchronous operation is in flight" +
              describeBlocked(owner),
          describeExited(owner)};
}

} // namespace fp4::sim
