//===- OrderedLaunch.cpp - A launch, step by step in every order ----------===//
#include "Sim/Orders/OrderedLaunch.h"
#include "Sim/Async/TicketQueue.h"
#include "Sim/Decode/OpcodeTable.h"
#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace fp4::sim {
namespace {

/// The first word of an order whose steps end after every access.
constexpr std::string_view kEveryAccess = "accesses ";

/// Instructions after which a step of a warp ends that nobody else can notice.
constexpr uint64_t kLongStep = 4096;
/// States of a warp that only looks at memory, after which its loop is one that never closes; and
/// of one that reads with plain accesses, which need not be a loop.
constexpr size_t kMostLooks = 1 << 14, kMostReads = 1 << 16;

/// Completes no operation by itself, and passes on what only a policy is told.
class OrderPolicy final : public Policy {
public:
  OrderPolicy(OrderRecorder &recorder, uint64_t cluster) : recorder(recorder), cluster(cluster) {}

  bool due(const Ticket &) const override { return false; }
  void touches(Shared what, Touch how, uint32_t rank, uint64_t phase) override {
    static constexpr ObjectKind kinds[] = {ObjectKind::Registers, ObjectKind::PairCalls,
                                           ObjectKind::WorkQueue, ObjectKind::MmaGroups};
    static constexpr ObjectUse uses[] = {ObjectUse::Read,  ObjectUse::Write, ObjectUse::Arrive,
                                         ObjectUse::Await, ObjectUse::Give,  ObjectUse::Take};
    const uint64_t where = what == Shared::WorkQueue ? 0 : cluster; // one for all clusters
    const bool writes = what == Shared::Registers && recorder.ordersRegisters;
    recorder.touch(kinds[size_t(what)], writes ? ObjectUse::Write : uses[size_t(how)], where, rank,
                   phase);
  }
  bool synchronized(uint32_t rank, uint32_t warp, uint64_t ticket) override {
    return recorder.follows(warpProcess(cluster, rank, warp), recorder.processOf(cluster, ticket));
  }
  void polled(uint32_t mbarrier) override { recorder.poll(cluster, mbarrier); }

private:
  OrderRecorder &recorder;
  uint64_t cluster;
};

bool cancelsClusters(const Kernel &kernel) {
  return std::ranges::any_of(kernel.code, [](const Insn &insn) {
    return opcodeTable()[insn.row].base.starts_with("clusterlaunchcontrol");
  });
}

/// Returns a hash of everything that decides how a warp goes on while memory does not change.
size_t stateOf(const Warp &warp, size_t registerBytes) {
  const auto hash = [](const std::byte *bytes, size_t size) {
    return std::hash<std::string_view>()({reinterpret_cast<const char *>(bytes), size});
  };
  size_t state = hash(warp.registers, registerBytes) + warp.carry;
  const auto mix = [&](uint64_t value) { state = (state ^ value) * 0x9E3779B97F4A7C15ull; };
  mix(hash(warp.local.data(), warp.local.size()));
  for (const LaneGroup &group : warp.groups)
    mix(uint64_t(group.pc) << 32 | group.mask);
  return state;
}

} // namespace

OrderedLaunch::OrderedLaunch(Launch &launch, uint64_t ctasPerSm,
                             std::function<void(bool again)> tell)
    : launch(launch), options(*launch.options), silent(options), tell(std::move(tell)),
      polls(*launch.kernel), before(launch.observer), cancels(cancelsClusters(*launch.kernel)) {
  silent.print = [](std::string_view) {};
  resident = std::max<uint64_t>(1, launch.sms * ctasPerSm / launch.largestCluster());
  observers.add(&recorder);
  if (before)
    observers.add(before);
  launch.observer = &observers;
  for (const auto &allocation : launch.memory->allocations()) {
    if (allocation->readOnly)
      continue;
    Contents contents{allocation.get(), {}, {}, {}};
    const std::byte *bytes = allocation->bytes.get();
    contents.before.assign(bytes, bytes + allocation->size);
    if (const uint64_t *written = allocation->written.get())
      contents.written.assign(written, written + allocation->size / 64 + 1);
    memory.push_back(std::move(contents));
  }
}

OrderedLaunch::~OrderedLaunch() {
  launch.observer = before;
  launch.options = &options;
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

void OrderedLaunch::restore() {
  for (const Contents &contents : memory) {
    std::ranges::copy(contents.before, contents.allocation->bytes.get());
    std::ranges::copy(contents.written, contents.allocation->written.get());
  }
}

bool OrderedLaunch::mayStart() const {
  const auto live = std::ranges::count_if(running, [](auto &r) { return !r.second->ended; });
  return launch.queue.nextCluster < launch.queue.totalClusters && uint64_t(live) < resident;
}

Cluster &OrderedLaunch::startNext() {
  const uint64_t index = launch.queue.nextCluster++;
  auto &started = running[index] = std::make_unique<Running>(launch, index);
  started->cluster.policy = std::make_unique<OrderPolicy>(recorder, index);
  clusters[index] = &started->cluster;
  started->live = started->cluster.liveThreads;
  return started->cluster;
}

/// The step that starts a cluster happens before all that the cluster does.
void OrderedLaunch::issueWarps(const Cluster &cluster) {
  for (const auto &cta : cluster.ctas)
    for (const Warp &warp : cta->warps)
      recorder.issue(warpProcess(cluster.index, cta->rank, warp.index));
}

Status OrderedLaunch::begin() {
  constexpr uint64_t most = 1 << 16; // in the name of a process
  if (launch.queue.totalClusters > most)
    return makeError(ErrorKind::Usage,
                     fmt::format("the policy exhaustive expects at most {} clusters, but kernel "
                                 "'{}' has {}",
                                 most, launch.kernel->info.name, launch.queue.totalClusters),
                     "run a smaller problem");
  running.clear();
  clusters.clear();
  loops.clear();
  loopsLast.clear();
  launch.queue.nextCluster = launch.queue.canceledClusters = launch.queue.canceledCtas = 0;
  last = 0;
  restore();
  recorder.begin(*launch.kernel, clusters);
  tell(std::exchange(told, true));
  startNext();
  while (!cancels && mayStart())
    startNext();
  return {};
}

/// Nothing is left to do: compares what the launch leaves in global memory with the first order.
Status OrderedLaunch::end() {
  stats = {};
  for (const auto &[index, cluster] : running) {
    stats.warpInstructions += cluster->scheduler.executed();
    stats.mmas += cluster->cluster.mmas;
    stats.tickets += cluster->cluster.tickets;
    stats.ctas += cluster->cluster.ctas.size();
  }
  const bool compare = !std::exchange(first, false);
  launch.options = &silent;
  if (options.orders.ended) {
    options.orders.ended();
    return {};
  }
  for (Contents &contents : memory) {
    const std::byte *now = contents.allocation->bytes.get();
    const size_t size = contents.allocation->size;
    if (!compare) {
      contents.after.assign(now, now + size);
      continue;
    }
    const auto at = size_t(std::mismatch(now, now + size, contents.after.begin()).first - now);
    if (at < size)
      return makeError(ErrorKind::Mismatch,
                       fmt::format("kernel '{}': the result depends on the order: byte {} of '{}' "
                                   "is {:#04x} in this order, but {:#04x} in the first",
                                   launch.kernel->info.name, at, contents.allocation->name,
                                   unsigned(now[at]), unsigned(contents.after[at])));
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

std::vector<Process> OrderedLaunch::candidates() {
  std::vector<Process> warps;
  for (auto &[index, cluster] : running)
    for (auto &cta : cluster->cluster.ctas)
      for (Warp &warp : cta->warps) {
        const Process process = warpProcess(index, cta->rank, warp.index);
        const auto loop = loops.find(process);
        const bool closed = loop != loops.end() && loop->second.closed;
        if (!warp.done() && !closed && cluster->scheduler.next(warp))
          warps.push_back(process);
      }
  if (const auto same = std::ranges::find(warps, last); same != warps.end())
    std::rotate(warps.begin(), same, same + 1);
  if (cancels && mayStart()) // before a request takes the cluster: of that, no step would tell
    warps.insert(warps.begin(), kLauncher);
  return warps;
}

std::vector<Process> OrderedLaunch::operations(size_t most) {
  std::vector<Process> all;
  for (auto &[index, cluster] : running) {
    auto &queue = static_cast<TicketQueue &>(*cluster->cluster.async);
    for (const auto &[id, ticket] : queue.tickets()) {
      if (all.size() == most)
        return all;
      if (queue.ready(ticket))
        all.push_back(recorder.processOf(index, id));
    }
  }
  return all;
}

/// The warp, or the one that issued the operation; null where the launch has none of that name.
Warp *OrderedLaunch::warpOf(Process process) const {
  const auto found = running.find(process >> 40);
  const uint32_t rank = process >> 32 & 0xFF, index = process >> 24 & 0xFF;
  if (found == running.end() || rank >= found->second->cluster.ctas.size() ||
      index >= found->second->cluster.ctas[rank]->warps.size())
    return nullptr;
  return &found->second->cluster.ctas[rank]->warps[index];
}

Expected<bool> OrderedLaunch::step(Process process) {
  recorder.beginStep(process);
  bool moved = true;
  if (process == kLauncher) {
    if (!mayStart())
      return false;
    issueWarps(startNext());
    recorder.touch(ObjectKind::WorkQueue, ObjectUse::Write, 0, 0);
  } else {
    Warp *warp = warpOf(process);
    if (!warp)
      return false;
    Running &cluster = *running.at(process >> 40);
    FP4_ASSIGN(moved, isTicket(process) ? stepTicket(process, cluster)
                                        : stepWarp(process, *warp, cluster.scheduler));
    if (moved)
      FP4_TRY(checkLimit(cluster));
  }
  if (!moved)
    return false;
  FP4_TRY(afterStep(process));
  return true;
}

/// A warp goes on until others can notice it.
Expected<bool> OrderedLaunch::stepWarp(Process process, Warp &warp, Scheduler &scheduler) {
  if (const auto loop = loops.find(process); loop != loops.end() && loop->second.closed)
    return false;
  const uint64_t limit = options.instructionLimit ? options.instructionLimit : options.spinLimit;
  uint64_t count = 0;
  for (; !warp.done() && !recorder.visible(); ++count) {
    if (count >= kLongStep && !recorder.footprint().empty())
      break; // a loop of plain accesses may wait for another
    const LaneGroup *group = polls.next(scheduler, warp, loopsLast.contains(process));
    if (!group || (polls.beginsAt(group->pc) && !recorder.footprint().empty()))
      break; // a pass of a loop that waits is a step by itself
    recorder.beginInstruction();
    const uint64_t executed = warp.executed;
    FP4_ASSIGN(auto done, scheduler.stepOne(warp, *group));
    if (done.outcome == Outcome::Retry && !recorder.visible())
      warp.executed = executed; // it has only looked whether it may go on
    if (limit && count > limit)
      return makeError(ErrorKind::Simulation,
                       fmt::format("endless loop: warp {} has executed {} instructions that no "
                                   "other can notice",
                                   warp.index, count));
  }
  recorder.endStep();
  if (recorder.footprint().empty())
    return false;
  FP4_TRY(noteLoop(process, warp, recorder.looked() || count >= kLongStep));
  return true;
}

std::vector<Process> OrderedLaunch::pollers() {
  std::vector<Process> all;
  if (polls.empty())
    return all;
  for (const auto &[index, cluster] : running)
    for (const auto &cta : cluster->cluster.ctas)
      for (const Warp &warp : cta->warps)
        if (!warp.done())
          all.push_back(warpProcess(index, cta->rank, warp.index));
  return all;
}

Expected<const Footprint *> OrderedLaunch::waits(Process process) {
  Warp &warp = *warpOf(process);
  Scheduler &scheduler = running.at(process >> 40)->scheduler;
  const bool last = loopsLast.contains(process);
  if (const auto known = loops.find(process); known != loops.end() && known->second.closed) {
    const LaneGroup *group = polls.next(scheduler, warp, last);
    if (!last || !group || polls.beginsAt(group->pc) || !known->second.states.empty())
      return &known->second.reads;
    loops.erase(known); // other lanes no longer wait
  }
  FP4_TRY(polls.settle(scheduler, warp, last));
  recorder.beginStep(process);
  FP4_ASSIGN(auto back, polls.fails(scheduler, warp, last, recorder));
  recorder.endStep();
  if (!back || !footprint().readsOnly())
    return nullptr;
  Loop &loop = loops[process];
  loop.reads = footprint();
  loop.closed = true;
  return &loop.reads;
}

/// A warp that comes back to a state in which it has been, and has only looked at memory since then,
/// has to wait until what it looks at changes.
Status OrderedLaunch::noteLoop(Process process, const Warp &warp, bool looked) {
  if (!(looked || recorder.everyAccess) || !footprint().readsOnly()) {
    loops.erase(process);
    return {};
  }
  Loop &loop = loops[process];
  loop.reads.join(footprint());
  loop.closed = !loop.states.insert(stateOf(warp, launch.kernel->registerBytes)).second;
  if (loop.states.size() < (looked ? kMostLooks : kMostReads))
    return {};
  const uint32_t pc = warp.groups.empty() ? 0 : warp.groups.front().pc;
  return makeError(
      ErrorKind::Simulation,
      fmt::format("kernel '{}', cluster {}, CTA rank {}, warp {}, at {}:{}: has looked at memory {} "
                  "times, did nothing else, and never came back to the same registers",
                  launch.kernel->info.name, process >> 40, process >> 32 & 0xFF, warp.index,
                  launch.program->name, launch.kernel->code[pc].line, loop.states.size()),
      "the orders of a loop that counts while it waits have no end: choose another policy, or let "
      "it wait without the count");
}

bool OrderedLaunch::wantsRegisters(Process process) const {
  const Warp *warp = isTicket(process) ? nullptr : warpOf(process);
  return warp && std::ranges::any_of(warp->groups, [&](const LaneGroup &group) {
           return opcodeTable()[launch.kernel->code[group.pc].row].base == "setmaxnreg";
         });
}

/// The limits of Watchdog.cpp, of one order.
Status OrderedLaunch::checkLimit(Running &cluster) const {
  constexpr uint64_t kChanging = 16;
  const uint64_t now = cluster.scheduler.executed(), all = options.instructionLimit,
                 still = options.spinLimit;
  if (!footprint().readsOnly())
    cluster.atChange = now;
  if (std::exchange(cluster.live, cluster.cluster.liveThreads) != cluster.cluster.liveThreads)
    cluster.atExit = now;
  const bool beyond = all ? now > all
                          : still && (now - cluster.atChange > still ||
                                      (now - cluster.atExit) / kChanging > still);
  if (!beyond)
    return {};
  return makeError(ErrorKind::Simulation,
                   fmt::format("endless loop: kernel '{}', cluster {} has executed {} warp "
                               "instructions in one order and has not ended",
                               launch.kernel->info.name, cluster.cluster.index, now),
                   "--limit chooses another limit, 0 none");
}

Expected<bool> OrderedLaunch::stepTicket(Process process, Running &cluster) {
  auto &queue = static_cast<TicketQueue &>(*cluster.cluster.async);
  const uint64_t id = recorder.ticketOf(process);
  const auto found = queue.tickets().find(id);
  if (id == 0 || found == queue.tickets().end() || !queue.ready(found->second))
    return false;
  const Ticket &ticket = found->second;
  recorder.beginInstruction();
  recorder.touchCopy(process);
  recorder.awaitPipeline(process);
  for (const uint64_t earlier : ticket.after)
    recorder.await(cluster.cluster.index, earlier);
  if (ticket.stagesDone + 1 >= ticket.stages.size())
    for (const TmemCells &cells : ticket.writes.tmem)
      recorder.touchCells(ByteUse::Write, cluster.cluster.index, cells.rank,
                          cells.range.lane << 16 | cells.range.column, cells.range.lanes,
                          cells.range.columns);
  FP4_ASSIGN(auto advanced, queue.advance(id));
  (void)advanced; // it was ready
  recorder.endStep();
  return true;
}

/// Ends clusters, and wakes warps whose loops read what has changed.
Status OrderedLaunch::afterStep(Process process) {
  if (!isTicket(process))
    last = process;
  FP4_TRY(endClusters());
  std::erase_if(loops, [&](const auto &loop) {
    return loop.first != process && dependent(loop.second.reads, footprint());
  });
  return {};
}

/// The first cluster that waits for a place starts with the step that ends another cluster. If
/// requests cancel clusters, the launcher starts it later. The clusters that end first decide when
/// those that wait start; the order of the other clusters does not matter.
Status OrderedLaunch::endClusters() {
  for (auto &[index, cluster] : running) {
    auto &queue = static_cast<TicketQueue &>(*cluster->cluster.async);
    if (cluster->ended || cluster->cluster.liveThreads > 0 || !queue.tickets().empty())
      continue;
    cluster->ended = true;
    FP4_TRY(cluster->scheduler.close());
    const bool waiting = launch.queue.nextCluster < launch.queue.totalClusters;
    if (launch.queue.totalClusters > resident)
      recorder.freePlace(waiting);
    if (!cancels && mayStart()) {
      issueWarps(startNext());
      break;
    }
  }
  return {};
}

bool OrderedLaunch::hasClosedLoop(uint64_t cluster) const {
  return std::ranges::any_of(
      loops, [&](const auto &loop) { return loop.first >> 40 == cluster && loop.second.closed; });
}

/// Lanes behind those that wait in a loop have their turn from now on.
bool OrderedLaunch::passOverLoops() {
  return std::erase_if(loops, [&](const auto &entry) {
    const auto &[process, loop] = entry;
    Warp &warp = *warpOf(process);
    Scheduler &scheduler = running.at(process >> 40)->scheduler;
    const bool others = loop.closed && scheduler.next(warp) && warp.groups.size() > 1 &&
                        std::ranges::count_if(warp.groups, [](auto &g) { return !g.wait; }) > 1;
    return others && loopsLast.insert(process).second;
  });
}

/// No warp and no operation can go on: the time limits of waits pass.
Expected<bool> OrderedLaunch::expire() {
  const bool live = std::ranges::any_of(
      running, [](auto &r) { return r.second->cluster.liveThreads > 0; });
  if (!live)
    return false;
  for (const Process process : pollers())
    FP4_TRY(waits(process)); // an order that is repeated has not asked before
  recorder.beginStep(kTimeLimit);
  recorder.touchEverything();
  if (passOverLoops())
    return true;
  Status failed;
  bool passed = false;
  Scheduler *looping = nullptr;
  for (auto &[index, cluster] : running)
    if (cluster->cluster.liveThreads > 0) {
      Status status = cluster->scheduler.unblock();
      passed |= status.has_value();
      if (!status && failed)
        failed = std::move(status);
      if (!looping && !status && hasClosedLoop(index))
        looping = &cluster->scheduler;
    }
  if (!passed)
    return tl::unexpected<Error>(looping ? looping->livelock() : std::move(failed.error()));
  loops.clear();
  return true;
}

//===----------------------------------------------------------------------===//
// The launch
//===----------------------------------------------------------------------===//

/// Adds the order that failed to what failed.
Status OrderedLaunch::explain(Status failed, const OrderReport &report) const {
  if (failed)
    return failed;
  Error &error = failed.error();
  if (error.kind == ErrorKind::Mismatch)
    error.kind = ErrorKind::Simulation;
  if (error.kind != ErrorKind::Simulation)
    return failed;
  const uint64_t orders = report.orders + report.pruned;
  error.note += fmt::format("{}this is order {} of the kernel; --replay '{}' repeats it",
                            error.note.empty() ? "" : "; ", orders, report.order);
  return failed;
}

Expected<LaunchStats> OrderedLaunch::run() {
  const auto start = std::chrono::steady_clock::now();
  if (!options.orders.replay.empty())
    return replay();
  OrderReport report;
  report.kernel = launch.kernel->info.name;
  Explorer explorer(*this, options.orders);
  Status status = explorer.run(report);
  if (const uint64_t all = report.orders + report.pruned; options.orders.progress)
    options.orders.progress(all, all);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  report.seconds = stats.seconds = passed.count();
  if (!report.order.empty())
    report.order = fmt::format("{}: {}{}", report.kernel, report.everyAccess ? kEveryAccess : "",
                               report.order);
  status = explain(std::move(status), report);
  if (options.orders.report)
    options.orders.report(report);
  FP4_TRY(status);
  return stats;
}

/// The order of the kernel that it names; other launches run in any.
Expected<LaunchStats> OrderedLaunch::replay() {
  const std::string &text = options.orders.replay;
  const size_t colon = text.find(": ");
  std::vector<Process> order;
  if (colon != text.npos && text.substr(0, colon) == launch.kernel->info.name) {
    std::string_view steps = std::string_view(text).substr(colon + 2);
    recorder.everyAccess = steps.starts_with(kEveryAccess);
    if (recorder.everyAccess)
      steps.remove_prefix(kEveryAccess.size());
    FP4_ASSIGN(order, parseOrder(steps));
  }
  if (!order.empty()) { // with whose result the order's is compared
    launch.options = &silent;
    (void)Explorer(*this, options.orders).replay({});
    launch.options = &options;
  }
  Explorer explorer(*this, options.orders);
  if (Status status = explorer.replay(order); !status) {
    if (status.error().kind == ErrorKind::Mismatch)
      status.error().kind = ErrorKind::Simulation;
    return tl::unexpected<Error>(std::move(status.error()));
  }
  return stats;
}

} // namespace fp4::sim
