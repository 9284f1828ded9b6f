//===- TimedLaunch.cpp - Runs a launch on a virtual clock -----------------===//
#include "Sim/Time/TimedLaunch.h"
#include "Sim/Async/TicketQueue.h"
#include "Sim/Time/Power.h"
#include <algorithm>
#include <fmt/format.h>
#include <queue>
#include <ranges>

namespace fp4::sim {
namespace {

constexpr double lead = 64; ///< cycles by which one slot may run ahead of another

/// Returns the registers that ptxas gives a thread: those alive, within the limits that the kernel
/// asks for.
uint32_t registersOf(const KernelInfo &kernel, const TimedCode &code, const hw::TargetModel &target,
                     uint64_t threads) {
  constexpr uint32_t granularity = 8;
  if (code.registersKnown())
    return code.registersNeeded();
  if (kernel.maximumRegisters)
    return kernel.maximumRegisters;
  const uint64_t share =
      target.limits.registersPerSM / std::max(1u, kernel.minimumCtasPerSm) / threads;
  return uint32_t(std::min<uint64_t>({code.registersNeeded(), share / granularity * granularity,
                                      target.limits.maxRegistersPerThread}));
}

/// Returns the code that ptxas makes of the kernel, if it is asked for.
MachineCode machineCodeOf(const Launch &launch, InstructionMix mix) {
  if (mix == InstructionMix::Ptx)
    return {};
  return findMachineCode(*launch.program, launch.kernel->info.name, launch.options->target);
}

/// Each scheduler has a quarter of the registers, and a warp has its own with one of them (micro:
/// residency).
uint32_t residentCtasPerSmOf(const hw::TargetModel &target, uint64_t threads, uint64_t sharedBytes,
                             uint32_t registers) {
  const uint64_t warps = (threads + 31) / 32, granularity = 8;
  const uint64_t perWarp =
      (std::max(registers, 16u) + granularity - 1) / granularity * granularity * 32;
  const uint64_t warpsThatFit = target.limits.registersPerSM / kSchedulers / perWarp * kSchedulers;
  return uint32_t(std::clamp<uint64_t>(
      std::min({uint64_t(target.limits.maxThreadsPerSM) / (warps * 32),
                target.limits.ctasByShared(sharedBytes), warpsThatFit / warps}),
      1, target.limits.maxCtasPerSM));
}

} // namespace

TimedLaunch::TimedLaunch(Launch &launch, const hw::TargetModel &target, uint64_t sharedBytes)
    : launch(launch), target(target), predictor(Predictor::of(*launch.options)),
      rates(target.name, predictor.gpu, predictor.gigahertz),
      machineCode(machineCodeOf(launch, predictor.mix)), before(launch.observer),
      kernel(launch.kernel), code(*launch.program, sortedKernel(), machineCode.kernel.get()),
      registers(registersOf(launch.kernel->info, code, target, volume(launch.config.block))),
      residentCtasPerSm(
          residentCtasPerSmOf(target, volume(launch.config.block), sharedBytes, registers)),
      clusterSize(volume(launch.config.cluster)),
      slotsOfAll(std::max<uint64_t>(1, roomFor(clusterSize) / clusterSize)), slots(slotsOfAll),
      machine(ratesOfCode(), rates[TimingRate::Gigahertz], target.l2Bytes), members(membersOf()) {
  machine.processors.resize(slots.size() * clusterSize);
  const double l1 = rates[TimingRate::L1Bytes] * 1024 -
                    double(residentCtasPerSm * (sharedBytes + target.limits.sharedReservedPerCta));
  for (Sm &sm : machine.processors) {
    sm.l1.resize(uint64_t(std::max(l1, 8.0 * 1024)));
    sm.code = CodeCache(uint32_t(rates[TimingRate::FetchInstructions]));
  }
  if (before) {
    inText.emplace(*before, std::move(places));
    observers.add(&*inText);
    observers.add(&recorder);
    launch.observer = &observers;
  } else {
    launch.observer = &recorder;
    launch.timing.onlyTimed = true;
  }
  launch.timing.gigahertz = rates[TimingRate::Gigahertz];
  if (predictor.timesOnly)
    leaveOutIdle();
  machine.memory.setMembers(machine.processors.data(),
                            machine.processors.data() + members * clusterSize);
}

/// The kernel as it is simulated, and where its instructions are in the text.
const Kernel &TimedLaunch::sortedKernel() {
  if (!machineCode.kernel)
    return *kernel;
  sorted = *kernel;
  places = TimedCode(*launch.program, *kernel, machineCode.kernel.get())
               .sortAsMachine(sorted, *machineCode.kernel);
  launch.kernel = &sorted;
  return sorted;
}

/// At the clock that was asked for, or that such a kernel has.
const Rates &TimedLaunch::ratesOfCode() {
  const auto multiplies = [&](uint32_t pc) {
    return code[pc].unit == Unit::Wgmma || code[pc].unit == Unit::MmaSync;
  };
  const auto pcs = std::views::iota(0u, uint32_t(launch.kernel->code.size()));
  if (!predictor.gigahertz && std::ranges::any_of(pcs, multiplies))
    rates.setTensorClock();
  return rates;
}

/// SMs on which clusters of a size find room: large ones do not fit everywhere. Smaller ones that
/// take what is left are timed as if they were large.
uint64_t TimedLaunch::roomFor(uint64_t cluster) const {
  constexpr uint64_t large = 4;
  return cluster < large || launch.fallsBack
             ? target.sms
             : std::min(uint64_t(target.sms), uint64_t(rates[TimingRate::ClustersOfFour]));
}

TimedLaunch::~TimedLaunch() {
  launch.observer = before;
  launch.timing.onlyTimed = false;
  launch.kernel = kernel;
  launch.timing.idleTickets = 0;
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

/// The warps of a cluster that begins in `place` of a slot; `early`: one of the first.
void TimedLaunch::setUp(Running &running, std::span<Sm *const> processors, uint32_t place,
                        double when, bool early) {
  const size_t perWarp = code.registerCount(),
               registers = running.cluster.ctas[0]->warps.size() * clusterSize * perWarp;
  running.ready.assign(registers, 0);
  running.because.assign(registers, Activity::Arithmetic);
  const uint64_t age = order++;
  for (auto &cta : running.cluster.ctas)
    for (Warp &warp : cta->warps) {
      TimedWarp timed;
      timed.warp = &warp;
      timed.processor = processors[cta->rank];
      timed.scheduler = unsigned(warp.index + place * cta->warps.size()) % kSchedulers;
      timed.born = timed.nextIssue = timed.waited = timed.fetched.when = when;
      timed.age = age;
      timed.early = early;
      timed.ready = running.ready.data() + running.warps.size() * perWarp;
      timed.because = running.because.data() + running.warps.size() * perWarp;
      for (uint32_t r : code.specialRegisters())
        timed.ready[r] = float(rates[TimingRate::SpecialLatency]);
      running.warps.push_back(std::move(timed));
    }
}

/// Starts the next cluster of the sample in a free place.
bool TimedLaunch::startNext(Slot &slot, uint32_t place, double when) {
  if (phase >= Phase::Probe || !launch.findNext())
    return false;
  slot.begun += phase == Phase::Sample;
  auto running = std::make_unique<Running>(launch, launch.queue.nextCluster++);
  std::vector<Sm *> processors;
  const bool follows = when > rates[TimingRate::FirstCtas];
  if (follows)
    machine.memory.setInOrder();
  const double warps = double((volume(launch.config.block) + 31) / 32),
               apart = std::max(follows ? rates[TimingRate::CtaStart] : 0,
                                warps * rates[TimingRate::WarpStart]);
  for (uint64_t rank = 0; rank < clusterSize; ++rank)
    processors.push_back(&machine.processors[slot.index * clusterSize + rank]);
  for (Sm *sm : processors) {
    when = std::max(when, sm->lastStart + apart);
    sm->lastStart = when;
  }
  const auto policy = new TimedPolicy(machine, recorder, code, processors, before != nullptr,
                                      [this, &slot, place](uint64_t ticket, double at) {
                                        slot.events.push({at, order++, place, kTicket, ticket});
                                      });
  running->cluster.policy.reset(policy);
  running->policy = policy;
  if (!follows)
    policy->setFirst();
  setUp(*running, processors, place, when, !follows);
  slot.running[place] = std::move(running);
  tellStart(*slot.running[place], uint32_t(slot.index * clusterSize), when);
  for (TimedWarp &warp : slot.running[place]->warps)
    schedule(slot, place, warp);
  return true;
}

/// The cluster in `place` has no live thread.
Status TimedLaunch::finish(Slot &slot, uint32_t place) {
  Running &running = *slot.running[place];
  FP4_TRY(running.scheduler.close());
  double done = running.policy->lastEnd();
  for (TimedWarp &warp : running.warps)
    done = std::max(done, warp.nextIssue);
  if (phase < Phase::Probe)
    end = std::max({end, done, running.stores}); // its successor does not wait for those
  retire(slot, place);
  startNext(slot, place, done + rates[TimingRate::CtaReplace]);
  return {};
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

Expected<LaunchStats> TimedLaunch::run() {
  for (size_t i = 0; i < slots.size(); ++i) {
    slots[i].index = uint32_t(i);
    slots[i].running.resize(residentCtasPerSm);
  }
  for (uint32_t place = 0; place < residentCtasPerSm; ++place)
    for (Slot &slot : slots)
      startNext(slot, place, rates[TimingRate::FirstCtas]);
  FP4_TRY(runSlots(0, uint32_t(slots.size())));
  if (phase == Phase::Sample)
    FP4_TRY(runSlots(0, members));
  end = std::max(end, machine.memory.leastEnd());
  checkSpread();
  predicted = prediction();
  if (phase == Phase::Sample) {
    FP4_TRY(scaleSample());
    FP4_TRY(finishRest());
  }
  nanoseconds = std::numeric_limits<double>::quiet_NaN();
  launch.observer = before;
  launch.timing.onlyTimed = false;
  launch.kernel = kernel;
  return stats;
}

/// Slots from `begin` to `end`, until nothing is left to do or a sample is to go on.
Status TimedLaunch::runSlots(uint32_t begin, uint32_t end) {
  using Turn = std::pair<double, uint32_t>;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
  for (uint32_t i = begin; i < end; ++i)
    if (!slots[i].events.empty())
      turns.push({slots[i].events.top().when, i});
  while (!turns.empty() && !waits) {
    Slot &slot = slots[turns.top().second];
    machine.memory.present = turns.top().first;
    turns.pop();
    const double flops = machine.flops, instructions = double(executed);
    FP4_TRY(runSlot(slot, turns.empty() ? 1e300 : turns.top().first + lead));
    slot.flops += machine.flops - flops;
    slot.instructions += double(executed) - instructions;
    if (!slot.events.empty())
      turns.push({slot.events.top().when, slot.index});
    settle();
    if (phase == Phase::Whole && maySample()) {
      beginSample();
      return {};
    }
  }
  return {};
}

/// The warps of all slots are more than the host's near caches hold: asks for what the next
/// instruction of `warp` reads and writes.
void TimedLaunch::prefetchOperands(const TimedWarp &warp) const {
  constexpr size_t line = 64, lanes = 32, most = 256;
  for (const Operand &operand : launch.kernel->code[warp.pc].op) {
    if (!operand)
      break;
    if (operand.kind == OperandKind::Reg && operand.bank == kRegBank)
      for (size_t at = 0; at < std::min(lanes * operand.width, most); at += line)
        __builtin_prefetch(warp.warp->registers + operand.offset + at, 1);
  }
}

/// Asks the host's caches for the state of the warps that come next.
void TimedLaunch::prefetch(const Slot &slot) const {
  constexpr size_t next = 32, line = 64;
  const auto forNext = [&](auto &&f) {
    slot.events.forFirst(next, [&](const TimedEvent &event) {
      if (event.warp == kTurn) {
        for (const Turns::Entry &entry : turnsOf(slot, event).entries())
          f(*slot.running[entry.running], entry.warp);
      } else if (Running *running = slot.running[event.running].get();
                 running && event.warp != kTicket) {
        f(*running, event.warp);
      }
    });
  };
  forNext([&](Running &running, uint32_t index) {
    const auto *warp = reinterpret_cast<const char *>(&running.warps[index]);
    for (size_t at = 0; at < sizeof(TimedWarp); at += line)
      __builtin_prefetch(warp + at, 1);
    const float *ready = &running.ready[index * code.registerCount()];
    for (size_t at = 0; at < code.registerCount(); at += line / sizeof(float))
      __builtin_prefetch(ready + at, 1);
  });
  forNext([&](Running &running, uint32_t index) { prefetchOperands(running.warps[index]); });
}

Status TimedLaunch::runSlot(Slot &slot, double until) {
  slot.until = until;
  prefetch(slot);
  while (!slot.events.empty() && slot.events.top().when <= until && !waits) {
    const TimedEvent event = slot.events.take();
    if (event.warp == kTurn)
      FP4_TRY(runTurn(slot, event));
    else if (!slot.running[event.running]) // a ticket of a cluster that drained
      continue;
    else if (event.warp == kTicket)
      FP4_TRY(runTicket(slot, event));
    else
      FP4_TRY(runWarp(slot, event));
  }
  return {};
}

/// Something happened in a cluster: it may be done, or all of its warps may wait.
Status TimedLaunch::settlePlace(Slot &slot, uint32_t place) {
  Running &running = *slot.running[place];
  if (running.cluster.liveThreads == 0)
    return finish(slot, place);
  if (running.blocked.size() == running.warps.size())
    return unblock(slot, place);
  return {};
}

/// Every warp that is left waits: if no ticket is to come, nothing will happen by itself.
Status TimedLaunch::unblock(Slot &slot, uint32_t place) {
  Running &running = *slot.running[place];
  running.policy->announceMmas();
  auto &queue = static_cast<TicketQueue &>(*running.cluster.async);
  if (!queue.tickets().empty())
    return {};
  while (running.blocked.size() == running.warps.size()) {
    FP4_TRY(running.scheduler.unblock());
    wake(slot, place, *running.policy->cycles(), 0);
  }
  return {};
}

Status TimedLaunch::runTicket(Slot &slot, const TimedEvent &event) {
  Running &running = *slot.running[event.running];
  auto &queue = static_cast<TicketQueue &>(*running.cluster.async);
  if (queue.done(event.ticket))
    return settlePlace(slot, event.running);
  if (const double when = running.policy->lastRow(event.ticket, event.when); when > event.when) {
    slot.events.push({when, order++, event.running, kTicket, event.ticket});
    return settlePlace(slot, event.running);
  }
  running.policy->setTime(event.when);
  setClock(event.when);
  running.steps = 0;
  FP4_ASSIGN(auto advanced, queue.advance(event.ticket));
  if (!advanced) { // behind what it waits for, which ends at the same time
    slot.events.push({event.when + 1, order++, event.running, kTicket, event.ticket});
    return settlePlace(slot, event.running);
  }
  wake(slot, event.running, event.when, 0);
  return settlePlace(slot, event.running);
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

/// Returns the cycles from the event that a warp waited for to its next instruction.
double TimedLaunch::wakeCycles(const TimedInsn &insn) const {
  switch (insn.unit) {
  case Unit::Barrier:
    return rates[TimingRate::BarrierCycles] +
           rates[TimingRate::BarrierPerWarp] * double((volume(launch.config.block) + 31) / 32);
  case Unit::MbarrierTest:
    return rates[TimingRate::MbarrierWake];
  default:
    return 0; // in the tails of the engines
  }
}

static Activity waitOf(Unit unit) {
  switch (unit) {
  case Unit::MbarrierTest:
    return Activity::Mbarrier;
  case Unit::Wait:
  case Unit::TmemAlloc:
  case Unit::Async:
    return Activity::Products;
  default:
    return Activity::Barrier;
  }
}

/// Puts the next instruction of `warp` on the calendar, or the warp among those that wait.
void TimedLaunch::schedule(Slot &slot, uint32_t place, TimedWarp &warp) {
  Running &running = *slot.running[place];
  const uint32_t index = uint32_t(&warp - running.warps.data());
  const LaneGroup *group = warp.warp->done() ? nullptr : running.scheduler.next(*warp.warp);
  if (!group) {
    warp.blocked = true;
    running.blocked.push_back(index);
    return;
  }
  warp.blocked = warp.queued = false;
  warp.pc = group->pc;
  const TimedInsn &insn = code[group->pc];
  double ready = warp.nextIssue;
  if (insn.count)
    ready = registersReady(warp, insn, ready);
  spend(running, warp, warp.reason, warp.waited, ready);
  warp.waited = ready;
  if (ready <= slot.until)
    prefetchOperands(warp);
  slot.events.push({ready, order++, place, index, 0});
}

/// Something happened that warps may wait for.
void TimedLaunch::wake(Slot &slot, uint32_t place, double now, double extra) {
  Running &running = *slot.running[place];
  std::vector<uint32_t> still;
  still.swap(running.blocked);
  for (uint32_t index : still) {
    TimedWarp &warp = running.warps[index];
    const LaneGroup *group = warp.warp->done() ? nullptr : running.scheduler.next(*warp.warp);
    if (!group) {
      running.blocked.push_back(index);
      continue;
    }
    // Other lanes may have gone on to a wait of their own: the group knows which was its.
    const TimedInsn &waiter = code[group->retry || !group->pc ? group->pc : group->pc - 1];
    warp.reason = waitOf(waiter.unit);
    warp.nextIssue = std::max(warp.nextIssue, waiter.unit == Unit::ClusterWait
                                                  ? clusterBarrierEnd(warp, running)
                                                  : now + wakeCycles(waiter) + extra);
    schedule(slot, place, warp);
  }
}

/// A program that polls for ever is stopped.
Status TimedLaunch::checkProgress(Running &running) {
  constexpr uint64_t patience = 1 << 24;
  if (phase == Phase::Sample && running.steps > patience) {
    waits = true;
    blocks.refused = "the time that CTAs of a sample wait for CTAs outside of it";
  }
  const uint64_t limit = launch.options->spinLimit, most = launch.options->instructionLimit;
  if ((limit && ++running.steps > limit) || (most && running.scheduler.executed() > most))
    return makeError(ErrorKind::Simulation,
                     fmt::format("kernel '{}' executed {} warp instructions in one cluster without "
                                 "progress",
                                 launch.kernel->info.name, running.steps),
                     "an endless loop, or a limit that is too low for this launch");
  return {};
}

/// Returns true when the warp has to wait for its data, its instruction or a unit with a queue, and
/// gives it a new event then.
bool TimedLaunch::putOff(Slot &slot, TimedWarp &warp, const TimedInsn &insn,
                         const TimedEvent &event) {
  Activity reason = warp.reason;
  double when = std::max({disorder(warp, event.when), fetch(warp, insn, event.when),
                          warp.processor->parameters.bring(code.parametersOf(warp.pc), event.when,
                                                           rates[TimingRate::ParameterLine])});
  if (when <= event.when && insn.count && !std::exchange(warp.queued, true)) {
    reason = Activity::Pipe;
    when = queueForUnit(warp, insn, event.when);
  }
  if (when <= event.when)
    return false;
  spend(*slot.running[event.running], warp, reason, warp.waited, when);
  warp.waited = when;
  slot.events.push({when, order++, event.running, event.warp, 0});
  return true;
}

Status TimedLaunch::runWarp(Slot &slot, const TimedEvent &event) {
  TimedWarp &warp = slot.running[event.running]->warps[event.warp];
  return putOff(slot, warp, code[warp.pc], event) ? Status() : runReady(slot, event, warp);
}

/// The next instruction of a warp, which issues now.
Status TimedLaunch::step(Slot &slot, uint32_t place, TimedWarp &warp, double issue) {
  Running &running = *slot.running[place];
  const TimedInsn &insn = code[warp.pc];
  const LaneGroup *group = running.scheduler.next(*warp.warp);
  if (!group) { // another group of its lanes was to run
    schedule(slot, place, warp);
    return settlePlace(slot, place);
  }
  recorder.clear();
  running.policy->setTime(issue);
  running.policy->setLooking(insn.looks);
  setClock(issue);
  FP4_ASSIGN(auto done, running.scheduler.stepOne(*warp.warp, *group));
  ++executed;
  FP4_TRY(checkProgress(running));
  if (code[done.pc].talks && recorder.meets)
    noteTalk(done.pc);
  warp.pc = done.pc;
  complete(running, warp, code[done.pc], issue, done);
  if (warp.warp->done() && phase < Phase::Probe)
    account.add(warp.warp->index, warp.account);
  if (insn.mayWake && !running.blocked.empty())
    wake(slot, place, issue, insn.remote ? rates[TimingRate::RemoteArrive] : 0);
  schedule(slot, place, warp);
  return settlePlace(slot, place);
}

/// Results, and when the warp may go on.
void TimedLaunch::complete(Running &running, TimedWarp &warp, const TimedInsn &insn, double issue,
                           const Scheduler::Step &step) {
  Activity because = Activity::Arithmetic;
  double result = issue;
  warp.reason = Activity::Arithmetic;
  if (step.lanes && step.outcome != Outcome::Retry)
    result = resultOf(warp, running, insn, reload(warp, issue), because);
  if (!insn.count) // it copies in no time
    for (uint32_t r : code.reads(insn))
      if (warp.born + double(warp.ready[r]) > result) {
        result = warp.born + double(warp.ready[r]);
        because = warp.because[r];
      }
  for (uint32_t r : code.writes(insn)) {
    warp.ready[r] = float(result - warp.born);
    warp.because[r] = because;
  }
  warp.nextIssue = std::max(warp.nextIssue, issue + insn.count);
  spend(running, warp, Activity::Issue, issue, issue + insn.count);
  warp.account.instructions += insn.count;
  warp.account.units |= step.lanes ? 1u << unsigned(insn.unit) : 0;
  warp.waited = issue + insn.count;
  if (insn.rejoins) { // around a slow path, when the result tells that nobody needs it
    warp.nextIssue = std::max(warp.nextIssue, result + rates[TimingRate::BranchCycles]);
    warp.reason = Activity::Branch;
  }
  const bool jumped = step.jumped || step.outcome == Outcome::Jump;
  if (jumped && insn.count) {
    warp.nextIssue = std::max(warp.nextIssue, issue + rates[TimingRate::BranchCycles]);
    warp.reason = Activity::Branch;
  }
}

//===----------------------------------------------------------------------===//
// The prediction
//===----------------------------------------------------------------------===//

void TimedLaunch::report() const {
  const std::string why = machineCode.note.empty() ? "" : ": " + machineCode.note;
  if (predictor.receive)
    predictor.receive(predicted, machineCode.kernel ? "of the cubin" : "estimated from PTX" + why);
  else if (launch.options->predicted)
    launch.options->predicted(predicted);
}

KernelTime TimedLaunch::prediction() const {
  KernelTime time;
  time.kernel = launch.kernel->info.name;
  time.target = target.name;
  time.grid = launch.config.grid;
  time.block = launch.config.block;
  time.cluster = launch.config.cluster;
  time.ctasPerSm = residentCtasPerSm;
  time.registers = registers;
  time.spilledBytes = machineCode.kernel ? machineCode.kernel->spilledBytes : 0;
  const size_t simulated =
      phase == Phase::Whole ? machine.processors.size() : members * clusterSize;
  time.sample.simulated = uint32_t(simulated);
  time.sample.sms = uint32_t(slotsOfAll * clusterSize);
  for (TimingRate rate : rates.missing())
    time.missing.push_back(
        fmt::format("{} ({})", hw::describe(rate).name, hw::describe(rate).meaning));
  if (!code.unknown().empty())
    time.missing.push_back(fmt::format("the unit that executes '{}'", code.unknown()));
  if (predictor.mix == InstructionMix::Cubin && !machineCode.kernel)
    time.missing.push_back("the instructions of the cubin: " + machineCode.note);
  if (!blocks.refused.empty())
    time.missing.push_back(blocks.refused + "; --sample-after 0 simulates all CTAs");
  time.sample.whole = blocks.whole;
  if (!time.missing.empty())
    return time;
  time.gigahertz = rates[TimingRate::Gigahertz];
  time.cycles = end;
  time.launchMicroseconds = rates[TimingRate::LaunchMicroseconds];
  time.microseconds = time.launchMicroseconds + end / time.gigahertz * 1e-3;
  time.flops = machine.flops;
  time.memoryBytes = machine.memory.deviceBytes;
  time.l2Bytes = machine.memory.l2Bytes;
  time.resources = resourcesOf(machine, end, simulated);
  time.roles = account.roles();
  time.power = powerOf(time, activityOf(machine, end, simulated), rates);
  return time;
}

} // namespace fp4::sim
