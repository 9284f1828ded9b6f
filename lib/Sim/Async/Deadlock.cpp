//===- Deadlock.cpp - A deadlock in words ---------------------------------===//
//
// Called when no warp can run and no asynchronous operation is left that could wake one. One line
// per blocked group of lanes says where it is and what it waits for (Wait::describe: the barrier,
// the phase wanted and found, the arrivals). Then follow the warps that have exited, because one of
// them is often the one whose arrival is missing.
//
//===----------------------------------------------------------------------===//
#include "Deadlock.h"
#include "TicketQueue.h"

#include <fmt/format.h>

namespace fp4::sim {
namespace {

/// Warps of a CTA that have exited: "warps 0, 1, 5".
std::string exitedWarps(const Cta &cta) {
  std::string text;
  for (const Warp &warp : cta.warps)
    if (warp.done())
      text += fmt::format("{}{}", text.empty() ? "" : ", ", warp.index);
  return text;
}

std::string describeGroup(const Launch &launch, const Cta &cta, const Warp &warp,
                          const LaneGroup &group) {
  // The pc of a group that will not retry already points to the next instruction.
  const uint32_t pc = group.retry || group.pc == 0 ? group.pc : group.pc - 1;
  std::string line = describeLocation(launch, cta, warp.index, -1, launch.kernel->code[pc]);
  if (group.mask != warp.live)
    line += fmt::format(", lanes {:#010x}", group.mask);
  return line + " waits for " + group.wait->describe();
}

} // namespace

std::string describeBlocked(const Cluster &cluster) {
  std::string text;
  for (const auto &cta : cluster.ctas)
    for (const Warp &warp : cta->warps)
      for (const LaneGroup &group : warp.groups)
        if (group.wait)
          text += "\n  " + describeGroup(*cluster.launch, *cta, warp, group);
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
