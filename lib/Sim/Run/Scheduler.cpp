//===- Scheduler.cpp - Runs the warps of one cluster ----------------------===//
#include "Sim/Run/Scheduler.h"
#include "Sim/Insn/Poison/Propagate.h"
#include "Sim/Insn/Warp/Call.h"
#include "Sim/Run/Polling.h"
#include "Sim/State/Barriers.h"
#include "fp4/Sim/Events/LifeEvent.h"
#include "fp4/Sim/Observer.h"
#include "fp4/Sim/Stepper.h"
#include <algorithm>
#include <fmt/format.h>
#include <utility>

using namespace fp4;
using namespace fp4::sim;

/// Rounds of spinning after which a ticket must complete: a program may poll with plain loads.
static constexpr uint64_t kSpinRounds = 64;

Scheduler::Scheduler(Cluster &cluster)
    : cluster(cluster), cx(cluster), stepper(cluster.launch->options->stepper),
      clockless(!cluster.launch->kernel->neighbours.readsClock),
      parkable(clockless && !stepper && !cluster.launch->kernel->neighbours.prints) {}

//===----------------------------------------------------------------------===//
// Rounds
//===----------------------------------------------------------------------===//

bool Scheduler::round() {
  Policy &policy = *cluster.policy;
  policy.beginRound();
  bool progress = false, changed = false;
  size_t ctas = cluster.ctas.size();
  size_t firstCta = policy.first(ctas);
  for (size_t c = 0; c < ctas && !cx.failed; ++c) {
    Cta &cta = *cluster.ctas[(firstCta + c) % ctas];
    size_t warps = cta.warps.size();
    size_t first = policy.first(warps);
    for (size_t w = 0; w < warps && !cx.failed; ++w) {
      Warp &warp = cta.warps[(first + w) % warps];
      if (warp.done())
        continue;
      uint32_t quantum = policy.quantum();
      uint64_t before = instructions;
      progress |= turn(warp, quantum);
      const uint64_t ran = instructions - before;
      changed |= ran > 0 && ran < quantum; // a warp that still waits changes nothing
    }
  }
  busyRounds = changed ? 0 : busyRounds + 1;
  return progress;
}

bool Scheduler::turn(Warp &warp, uint32_t quantum) {
  const uint64_t before = instructions;
  bool progress = false;
  if (std::has_single_bit(warp.turns)) { // ever more seldom
    if (parks(warp, quantum))
      return true;
    progress = instructions > before && lastOutcome != Outcome::Yield;
  }
  const auto ran = [&] { return static_cast<uint32_t>(instructions - before); };
  progress |= ran() < quantum && runWarp(warp, quantum - ran());
  const bool used = ran() == quantum || (ran() && lastOutcome == Outcome::Yield);
  warp.turns = used ? warp.turns + 1 : 0;
  return progress;
}

/// A program that goes on for ever is stopped, where somebody set a limit.
Status Scheduler::checkLimit() const {
  const uint64_t limit = cluster.launch->options->instructionLimit;
  if (!limit || instructions <= limit)
    return {};
  return makeError(ErrorKind::Simulation,
                   fmt::format("kernel '{}' executed more than {} warp instructions in one cluster "
                               "and has not ended",
                               cluster.launch->kernel->info.name, limit),
                   "an endless loop, or a limit that is too low for this launch");
}

Expected<Scheduler::State> Scheduler::run(uint64_t budget) {
  Expected<State> state = runRounds(budget);
  if (!state && stepper)
    stepper->failed(cluster, state.error());
  return state;
}

Expected<Scheduler::State> Scheduler::runRounds(uint64_t budget) {
  const uint64_t before = instructions, end = instructions + budget;
  if (sleeps())
    return cluster.launch->options->spinLimit ? State::Spinning : State::Running;
  if (spinning && !anyParked(cluster))
    if (auto state = pause(); !state || *state == State::Spinning)
      return state;
  while (cluster.liveThreads > 0) {
    bool progress = round();
    if (cx.failed)
      return tl::unexpected<Error>(std::move(cx.error));
    FP4_TRY(cluster.async->round());
    if (parkIsDue()) {
      if (auto all = parksAll(); !all || *all)
        return all.map([](bool) { return State::Running; });
      continue; // its rounds may have ended the cluster, and `progress` is not of them
    }
    if (!progress || busyRounds >= kSpinRounds) {
      busyRounds = 0;
      Expected<bool> advanced = cluster.async->advance();
      if (!advanced)
        return tl::unexpected<Error>(std::move(advanced.error()));
      if (!*advanced && cluster.launch->early)
        return State::Running;                              // until what it depends on has ended
      if (!*advanced && (progress || !allBlocked(cluster))) // it may poll for another cluster
        return !progress && anyParked(cluster) ? idle(instructions == before) : pause();
      if (!*advanced && !expireWaits())
        return blocked();
    }
    if (std::exchange(cluster.turnIsOver, false))
      return State::Running;
    FP4_TRY(checkLimit());
    if (cluster.liveThreads > 0 && (instructions >= end || lookIsDue()))
      if (auto state = pause(); !state || spinning || instructions >= end)
        return state;
  }
  FP4_TRY(close());
  return State::Done;
}

/// No warp can run, and nothing is in flight.
Expected<Scheduler::State> Scheduler::blocked() {
  if (awaitsClusters(cluster))
    return State::Spinning;
  return tl::unexpected<Error>(cluster.async->deadlock());
}

Status Scheduler::close() {
  FP4_TRY(cluster.async->drain());
  if (cx.observer) {
    Actor actor;
    actor.cluster = static_cast<uint32_t>(cluster.index);
    cx.observer->onLife({actor, {}, LifeOp::ClusterEnd, 0, 0, 0});
  }
  return {};
}

Expected<Scheduler::Step> Scheduler::stepOne(Warp &warp, const LaneGroup &group) {
  constexpr uint64_t turn = 1024; // instructions after which other groups of a warp have theirs
  cx.select(warp);
  cx.mask = 0;
  Step result{group.pc, 0, Outcome::Next, false};
  runGroup(warp, static_cast<size_t>(&group - warp.groups.data()), 1);
  if (warp.executed % turn && lastOutcome != Outcome::Yield)
    warp.passedOver = 0;
  if (cx.failed)
    return tl::unexpected<Error>(std::move(cx.error));
  result.lanes = cx.mask;
  result.outcome = lastOutcome;
  result.jumped = lastOutcome == Outcome::Next && group.pc != result.pc + 1;
  return result;
}

Status Scheduler::unblock() {
  FP4_ASSIGN(auto advanced, cluster.async->advance());
  if (!advanced && !expireWaits())
    return tl::unexpected<Error>(cluster.async->deadlock());
  return {};
}

/// Nothing can run, or what runs gets nowhere: the time limits of mbarrier.try_wait pass. Programs
/// look at a barrier that way before they do what completes it. False when this very state was
/// tried before.
bool Scheduler::expireWaits() {
  uint64_t state = cluster.tickets + lastChange.instructions;
  auto mix = [&](uint64_t value) { state = (state ^ value) * 0x9E3779B97F4A7C15ull ^ state >> 31; };
  std::vector<LaneGroup *> waiting;
  for (auto &cta : cluster.ctas)
    for (Warp &warp : cta->warps)
      for (LaneGroup &group : warp.groups) {
        if (!group.wait)
          continue;
        mix(uint64_t(cta->rank) << 32 | warp.index);
        mix(uint64_t(group.pc) << 32 | group.mask);
        mix(group.wait->state());
        if (group.wait->expires())
          waiting.push_back(&group);
      }
  if (waiting.empty() || !expiredStates.insert(state).second)
    return false;
  for (LaneGroup *group : waiting) {
    group->wait.reset();
    group->expired = true;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Groups of lanes
//===----------------------------------------------------------------------===//

/// Groups at the same PC become one, unless one of them is in the middle of an instruction.
void Scheduler::mergeGroups(Warp &warp) {
  auto &groups = warp.groups;
  for (size_t i = 0; i < groups.size(); ++i)
    for (size_t j = i + 1; j < groups.size();) {
      auto open = [](const LaneGroup &g) { return (!g.wait || g.retry) && !g.token; };
      if (groups[i].pc != groups[j].pc || !open(groups[i]) || !open(groups[j])) {
        ++j;
        continue;
      }
      groups[i].mask |= groups[j].mask;
      groups[i].wait.reset();
      groups[i].expired |= groups[j].expired;
      groups.erase(groups.begin() + static_cast<ptrdiff_t>(j));
    }
}

/// Kernel::turns of where `group` is.
const LaneTurn &Scheduler::turnOf(const LaneGroup &group) const {
  return cluster.launch->kernel->turns[group.pc];
}

/// The runnable group whose turn comes first; when a quantum ran out in a diverged warp, the next
/// one behind it has its turn before.
LaneGroup *Scheduler::pickGroup(Warp &warp) {
  if (warp.groups.size() == 1) { // a prediction asks twice for each instruction
    LaneGroup &only = warp.groups.front();
    if (only.wait && only.wait->ready())
      only.wait.reset();
    warp.passedOver = 0;
    return only.wait ? nullptr : &only;
  }
  for (LaneGroup &group : warp.groups)
    if (group.wait && group.wait->ready())
      group.wait.reset();
  mergeGroups(warp);
  LaneGroup *lowest = nullptr, *next = nullptr;
  for (LaneGroup &group : warp.groups) {
    if (group.wait)
      continue;
    const uint32_t order = turnOf(group).order;
    if (!lowest || order < turnOf(*lowest).order)
      lowest = &group;
    if (warp.passedOver && order >= warp.passedOver && (!next || order < turnOf(*next).order))
      next = &group;
  }
  warp.passedOver = 0;
  return next ? next : lowest;
}

bool Scheduler::runWarp(Warp &warp, uint32_t quantum) {
  bool progress = false;
  uint64_t end = instructions + quantum;
  cx.select(warp);
  while (instructions < end && !warp.done() && !cx.failed) {
    LaneGroup *group = pickGroup(warp);
    if (!group)
      break;
    bool worked = stepper ? runStepped(warp, *group, end)
                          : runGroup(warp, static_cast<size_t>(group - warp.groups.data()),
                                     static_cast<uint32_t>(end - instructions));
    progress |= worked;
    if (!worked)
      break;
  }
  return progress;
}

/// The group whose turn comes first goes on, as it would in one quantum up to `end`.
bool Scheduler::runStepped(Warp &warp, LaneGroup &group, uint64_t end) {
  if (!stepper->before(cluster, warp, group)) {
    cx.fail("the debugger ended the launch", "");
    return false;
  }
  const bool worked = runGroup(warp, static_cast<size_t>(&group - warp.groups.data()), 1);
  if (instructions < end && lastOutcome != Outcome::Yield)
    warp.passedOver = 0;
  return worked;
}

/// Returns true when the registers that `insn` names have arrived.
bool Scheduler::registersReady(Warp &warp, const Insn &insn) {
  Status ready = cluster.async->useRegisters(warp, insn);
  if (!ready)
    cx.fail(std::move(ready.error().message), std::move(ready.error().note));
  return ready.has_value();
}

/// The lanes of `group` that execute `insn`.
[[gnu::always_inline]] inline uint32_t guarded(const Insn &insn, const std::byte *registers,
                                               uint32_t group) {
  if (insn.guard == kNoGuard)
    return group;
  const uint32_t guard = *reinterpret_cast<const uint32_t *>(registers + insn.guard);
  return group & (insn.guardNegated ? ~guard : guard);
}

[[gnu::always_inline]] inline Outcome execute(ExecContext &cx, const Warp &warp, const Insn &insn) {
  return warp.poison ? executePoisoned(cx, insn) : insn.handler(cx, insn);
}

/// Executes instructions while nothing but the PC of the group changes. The instruction that ended
/// that is left in cx; Outcome::Next: the quantum is over, or `meet` is reached, where other groups
/// wait.
[[gnu::always_inline]] inline Outcome Scheduler::step(Warp &warp, const LaneGroup &group,
                                                      uint32_t meet, uint32_t &left) {
  const Insn *code = cluster.launch->kernel->code.data();
  const std::byte *registers = warp.registers;
  const bool diverged = warp.groups.size() > 1;
  const uint32_t groupMask = group.mask;
  uint32_t pc = group.pc, rest = left; // locals stay in registers
  while (rest > 0) {
    const Insn &insn = code[pc];
    const uint32_t mask = guarded(insn, registers, groupMask);
    --rest;
    cx.pc = pc;
    if (warp.poison && !beginPoisoned(cx, insn, groupMask)) [[unlikely]]
      return Outcome::Error;
    if (mask == 0) {
      if (++pc >= meet)
        break;
      continue;
    }
    cx.mask = mask;
    const Outcome outcome = warp.loadsInFlight && !registersReady(warp, insn)
                                ? Outcome::Error
                                : execute(cx, warp, insn);
    if (outcome == Outcome::Next) [[likely]] {
      if (++pc >= meet)
        break;
      continue;
    }
    if (outcome != Outcome::Jump || mask != groupMask) {
      left = rest;
      return outcome;
    }
    pc = cx.target;
    if (diverged)
      break;
  }
  left = rest;
  cx.pc = pc;
  return Outcome::Next;
}

bool Scheduler::runGroup(Warp &warp, size_t groupIndex, uint32_t quantum) {
  LaneGroup &group = warp.groups[groupIndex];
  uint32_t meet = ~0u; // where to stop and look at the other groups again
  if (warp.groups.size() > 1)
    meet = turnOf(group).until;
  for (const LaneGroup &other : warp.groups)
    if (other.pc > group.pc)
      meet = std::min(meet, other.pc);
  cx.groupMask = group.mask;
  cx.token = std::exchange(group.token, 0);
  cx.expired = std::exchange(group.expired, false);
  uint32_t left = quantum;
  const Outcome outcome = lastOutcome = step(warp, group, meet, left);
  const uint32_t ran = quantum - left;
  group.pc = cx.pc;
  instructions += ran;
  warp.executed += ran;
  if (outcome != Outcome::Next)
    return finish(warp, groupIndex, outcome) || (outcome == Outcome::Retry && ran > 1);
  if (left == 0 && warp.groups.size() > 1)
    warp.passedOver = 1 + turnOf(group).order;
  return true;
}

/// Updates the group after its last instruction; returns false when the instruction only polled.
bool Scheduler::finish(Warp &warp, size_t groupIndex, Outcome outcome) {
  switch (outcome) {
  case Outcome::Jump:
    jump(warp, groupIndex);
    return true;
  case Outcome::Scatter:
    scatter(warp, groupIndex);
    return true;
  case Outcome::Retry:
  case Outcome::NextWhenReady:
    suspend(warp, groupIndex, outcome == Outcome::Retry);
    return outcome == Outcome::NextWhenReady;
  case Outcome::Yield:
    ++warp.groups[groupIndex].pc; // it is passed over where it goes on
    warp.passedOver = 1 + turnOf(warp.groups[groupIndex]).order;
    return false;
  case Outcome::Exit:
    exitLanes(warp, groupIndex);
    return true;
  default:
    return true;
  }
}

/// A branch that some lanes take.
void Scheduler::jump(Warp &warp, size_t groupIndex) {
  LaneGroup &group = warp.groups[groupIndex];
  warp.parted = group.pc + 1;
  LaneGroup taken{cx.target, cx.mask, nullptr, false, 0, false};
  group.mask &= ~cx.mask;
  group.pc += 1;
  warp.groups.push_back(std::move(taken));
}

/// Lanes that continue at different places.
void Scheduler::scatter(Warp &warp, size_t groupIndex) {
  uint32_t stay = warp.groups[groupIndex].mask & ~cx.mask;
  warp.parted = warp.groups[groupIndex].pc + 1;
  for (uint32_t rest = cx.mask; rest;) {
    uint32_t target = cx.targets[static_cast<size_t>(std::countr_zero(rest))], together = 0;
    for (uint32_t lanes = rest; lanes; lanes &= lanes - 1)
      if (cx.targets[static_cast<size_t>(std::countr_zero(lanes))] == target)
        together |= lanes & (0 - lanes);
    warp.groups.push_back(LaneGroup{target, together, nullptr, false, 0, false});
    rest &= ~together;
  }
  LaneGroup &group = warp.groups[groupIndex];
  group.mask = stay;
  group.pc += 1;
  if (!stay)
    warp.groups.erase(warp.groups.begin() + static_cast<ptrdiff_t>(groupIndex));
}

/// The active lanes block; lanes that the guard switched off go on.
void Scheduler::suspend(Warp &warp, size_t groupIndex, bool retry) {
  LaneGroup &group = warp.groups[groupIndex];
  uint32_t rest = group.mask & ~cx.mask;
  uint32_t next = group.pc + 1;
  group.mask = cx.mask;
  group.wait = std::move(cx.pendingWait);
  group.retry = retry;
  group.token = std::exchange(cx.token, 0);
  if (!retry)
    group.pc = next;
  if (rest)
    warp.groups.push_back(LaneGroup{next, rest, nullptr, false, 0, false});
}

void Scheduler::exitLanes(Warp &warp, size_t groupIndex) {
  LaneGroup &group = warp.groups[groupIndex];
  warp.live &= ~cx.mask;
  cluster.liveThreads -= static_cast<uint32_t>(std::popcount(cx.mask));
  group.mask &= ~cx.mask;
  group.pc += 1;
  if (cx.observer)
    cx.observer->onLife({cx.actor(), cx.here(), LifeOp::WarpExit, cx.mask, 0, 0});
  if (group.mask == 0)
    warp.groups.erase(warp.groups.begin() + static_cast<ptrdiff_t>(groupIndex));
  Cta &cta = *warp.cta;
  if (warp.done())
    --cta.liveWarps;
  lanesExited(warp, cx.mask);
  if (!cta.done())
    return;
  if (cx.observer)
    cx.observer->onLife({cx.actor(), cx.here(), LifeOp::CtaExit, cx.mask, 0, 0});
  if (Status ended = cluster.async->ctaExited(cta); !ended)
    cx.fail(std::move(ended.error()));
}
