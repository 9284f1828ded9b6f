//===- Watchdog.cpp - Progress of a cluster -------------------------------===//
//
// A cluster that gives up its turn is examined from time to time, less often the longer it has run.
// Instructions do not become slower by that.
//
//===----------------------------------------------------------------------===//
#include "Sim/Async/Deadlock.h"
#include "Sim/Decode/OpcodeTable.h"
#include "Sim/Run/Polling.h"
#include "Sim/Run/Scheduler.h"
#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

using namespace fp4;
using namespace fp4::sim;

/// Instructions between two looks: an eighth of what has run, within these.
static constexpr uint64_t kNextLook = 1 << 20, kLastLook = 1 << 22;
/// The limits of a look: rounds, instructions beyond the first of them, since warps that meet at
/// barriers do little in a round, and steps of a trace.
static constexpr unsigned kLookRounds = 4096, kFirstRounds = 256, kTraceSteps = 4096;
static constexpr uint64_t kLookInstructions = 1 << 18;
/// The factor by which a cluster that does change memory may go on longer.
static constexpr uint64_t kChanging = 16;
/// Instructions of a cluster that repeats itself until another thread of the host writes: some
/// seconds.
static constexpr uint64_t kLongestHostWait = 1 << 25;

/// Returns true when a cluster that goes on has not been looked at for long.
bool Scheduler::lookIsDue() const { return instructions - looked > kLastLook; }

/// The cluster's turn may be over.
Expected<Scheduler::State> Scheduler::pause() {
  if (!cluster.launch->options->spinLimit || (!spinning && instructions < nextLook))
    return State::Running;
  const bool spun = spinning;
  const Motion seen = look();
  if (cx.failed)
    return tl::unexpected<Error>(std::move(cx.error));
  looked = instructions;
  nextLook = instructions + std::clamp(instructions / 8, kNextLook, kLastLook);
  FP4_TRY(checkProgress(seen));
  // The time limit of a wait may pass meanwhile, and its warp do something else.
  spinning = seen == Motion::Repeats && !expireWaits();
  return spun && spinning ? State::Spinning : State::Running;
}

/// All warps wait, sleep or are parked: they repeat themselves. `still`: none has run in this run
/// of the cluster. Warps that sleep in a loop that cannot be parked are looked at too.
Expected<Scheduler::State> Scheduler::idle(bool still) {
  if (!still && instructions >= nextLook) {
    spinning = false; // some ran, so that this run alone decides nothing
    return pause();
  }
  spinning = !expireWaits();
  return spinning && still && cluster.launch->options->spinLimit ? State::Spinning : State::Running;
}

/// Runs some rounds under a probe.
Scheduler::Motion Scheduler::look() {
  LoopProbe probe(cluster, cx.observer);
  Observer *before = std::exchange(cx.observer, &probe);
  Recurrence recurrence(cluster);
  const uint64_t changes = cluster.changes + cluster.tickets;
  Motion motion = cluster.async->canAdvance() ? Motion::Changes : Motion::Unclear;
  const uint64_t enough = instructions + kLookInstructions;
  for (unsigned i = 0; i < kLookRounds && motion == Motion::Unclear && !cx.failed; ++i) {
    if (i >= kFirstRounds && instructions > enough)
      break;
    const uint64_t ran = instructions;
    round();
    if (probe.changed() || cluster.changes + cluster.tickets != changes)
      motion = Motion::Changes;
    else if (instructions == ran && anyParked(cluster))
      motion = Motion::Repeats;
    else if (recurrence.complete(probe.synchronized()) && (clockless || !looksAtTime(probe)))
      motion = probe.readsHostMemory() ? Motion::AwaitsHost : Motion::Repeats;
  }
  cx.observer = before;
  return cluster.async->canAdvance() ? Motion::Changes : motion; // something was issued
}

bool Scheduler::looksAtTime(const LoopProbe &probe) {
  constexpr unsigned longest = 1 << 16;
  const auto &code = cluster.launch->kernel->code;
  Recurrence recurrence(cluster);
  for (unsigned step = 0; step < longest && !cx.failed; ++step) {
    for (auto &cta : cluster.ctas)
      for (Warp &warp : cta->warps) {
        for (const LaneGroup &group : warp.groups)
          if (!group.wait && code[group.pc].get<ClockModifiers>())
            return true;
        if (!warp.done() && !cx.failed)
          runWarp(warp, 1);
      }
    if (recurrence.complete(probe.synchronized()))
      return false;
  }
  return true;
}

/// An error when the limit is met.
Status Scheduler::checkProgress(Motion seen) {
  const uint64_t limit = cluster.launch->options->spinLimit;
  const Mark now{instructions, cluster.tickets, cluster.liveThreads};
  if (now.liveThreads != lastExit.liveThreads)
    lastExit = lastChange = now;
  if (seen == Motion::Changes || now.tickets != lastChange.tickets)
    lastChange = now;
  if (seen == Motion::AwaitsHost &&
      now.instructions - lastChange.instructions > std::min(limit, kLongestHostWait))
    return tl::unexpected<Error>(hostWait());
  const bool still = now.instructions - lastChange.instructions > limit;
  if (!still && (now.instructions - lastExit.instructions) / kChanging <= limit)
    return {};
  const uint64_t executed = now.instructions - (still ? lastChange : lastExit).instructions;
  return makeError(
      ErrorKind::Simulation,
      fmt::format("endless loop: cluster {} has executed {} warp instructions in which no warp "
                  "exited{}",
                  cluster.index, executed,
                  still ? ", no asynchronous operation completed and no memory was seen to change"
                        : "") +
          describeLoops(cluster, trace()),
      fmt::format(
          "the limit without progress is {} warp instructions of a cluster; --limit chooses "
          "another, 0 none",
          limit));
}

/// Steps every warp by itself and notes where it is.
LoopTrace Scheduler::trace() {
  LoopProbe probe(cluster, nullptr);
  cx.observer = &probe;
  unpark(cluster);
  std::map<const Warp *, std::set<uint32_t>> visited;
  for (unsigned step = 0; step < kTraceSteps && !cx.failed; ++step)
    for (auto &cta : cluster.ctas)
      for (Warp &warp : cta->warps) {
        for (const LaneGroup &group : warp.groups)
          if (!group.wait)
            visited[&warp].insert(group.pc);
        if (!warp.done() && !cx.failed)
          runWarp(warp, 1);
      }
  LoopTrace found;
  for (const auto &[warp, pcs] : visited)
    found.pcs[warp].assign(pcs.begin(), pcs.end());
  found.reads = probe.reads();
  return found;
}

Error Scheduler::hostWait() {
  return {
      ErrorKind::Simulation,
      "livelock: warps wait for host memory, which no thread of the host has changed for some "
      "seconds" +
          describeLoops(cluster, trace()),
      "a launch returns only when it has ended: what the program writes behind the launch comes "
      "too late; write before the launch, or in another thread of the host; --limit 0 waits "
      "for ever"};
}

/// "CTAs 132-191 have not begun: ...", with the reason. Empty when all have.
static std::string describeUnstarted(const Cluster &cluster) {
  Launch &launch = *cluster.launch;
  const std::lock_guard<std::mutex> guard(launch.lock);
  if (launch.queue.nextCluster >= launch.queue.totalClusters)
    return "";
  const uint64_t size = cluster.ctas.size(), first = launch.queue.nextCluster * size;
  return fmt::format(
      "CTAs {}-{} have not begun: those that have fill {} SMs, with {} threads and {} "
      "bytes of shared memory each; no CTA may wait for one that begins later, unless "
      "all fit at once; ",
      first, launch.queue.totalClusters * size - 1, launch.sms, cluster.ctas.front()->threads,
      cluster.ctas.front()->shared.end() - kSharedBase);
}

/// The launches that cannot change what a loop reads.
static std::string describeLaunches(const Launch &launch) {
  if (launch.config.dependence.mark && launch.kernel->neighbours.triggers)
    return "a dependent launch begins only when every CTA of this one has executed "
           "griddepcontrol.launch_dependents or has ended, and may begin later: do not wait for it";
  return "launches run in the order in which the program makes them: one that is made later, also "
         "in another stream, changes nothing here";
}

Error Scheduler::livelock() {
  if (allBlocked(cluster))
    return cluster.async->deadlock();
  const std::string exited = describeExited(cluster), unstarted = describeUnstarted(cluster);
  return {
      ErrorKind::Simulation,
      "livelock: warps repeat loops in which nothing changes, and no warp or asynchronous "
      "operation that has begun is left that could change it" +
          describeLoops(cluster, trace()),
      unstarted +
          "a loop goes on until what it reads changes: a store or an arrival is missing, or comes "
          "too early; " +
          describeLaunches(*cluster.launch) + (exited.empty() ? "" : "; " + exited)};
}
