//===- TimedPipes.cpp - The arithmetic pipes of a scheduler ---------------===//
#include "Sim/Time/TimedLaunch.h"
#include <algorithm>

namespace fp4::sim {

/// Returns the use of the registers' ports that a wgmma leaves to others; nothing where there is
/// none.
static Beside besideOf(const Sm &sm, unsigned scheduler, double now) {
  return sm.pipes[scheduler][PipeTensor].free > now ? sm.beside[scheduler] : Beside();
}

/// Returns the interval of products of which the upper half is wanted.
static double wideInterval(const Beside &beside, const Rates &rates) {
  return std::max(rates[TimingRate::WideInterval], beside.wide);
}

/// Lets products of which the upper half is wanted delay other pipes and a wgmma.
static void holdOthers(std::array<Server, kPipes> &pipes, const Beside &beside, const Rates &rates,
                       double now, unsigned count) {
  const double rest = rates[TimingRate::WideInterval] - rates[TimingRate::WideHold];
  const double hold = wideInterval(beside, rates) - rest;
  for (Pipe pipe : {PipeAlu, PipeLite})
    pipes[pipe].serve(now, hold * count);
  if (beside.wide > 0)
    pipes[PipeTensor].free += rates[TimingRate::WideDelay] * count;
}

constexpr double ahead = 1; ///< cycles: what is read waits in front of the pipes

/// Returns the cycle at which the banks have the registers that machine instructions read; each
/// bank delivers one register at a time. An instruction is issued a cycle before a bank is free for
/// it, and a mma.sync two.
static double registersFree(const Sm &sm, unsigned scheduler, const PipeCounts &counts,
                            bool multiplies) {
  double when = 0;
  for (unsigned bank = 0; bank < kBanks; ++bank)
    if (counts[kBankReads + bank] || multiplies)
      when = std::max(when, sm.registers[scheduler][bank].free - ahead * (multiplies ? 2 : 1));
  return when;
}

/// Returns how long machine instructions of a line of PTX take each pipe that has no queue.
std::array<double, kPipes> TimedLaunch::pipeTimes(const Sm &sm, unsigned scheduler,
                                                  const PipeCounts &counts, double now) const {
  constexpr std::pair<Pipe, TimingRate> intervals[] = {{PipeAlu, TimingRate::AluInterval},
                                                       {PipeHeavy, TimingRate::ImadInterval},
                                                       {PipeLite, TimingRate::FmaInterval},
                                                       {PipeHalf, TimingRate::HalfInterval}};
  constexpr double whole = 2; // cycles of a warp in a pipe of 16 lanes
  std::array<double, kPipes> times{};
  const Beside beside = besideOf(sm, scheduler, now);
  for (const auto &[pipe, interval] : intervals)
    if (counts[pipe])
      times[pipe] = std::max({rates[interval], pipe == PipeHalf ? whole : 0,
                              pipe != PipeLite ? beside.interval : 0}) *
                    counts[pipe];
  if (counts[kWide])
    times[PipeHeavy] += wideInterval(beside, rates) * counts[kWide];
  if (counts[kEitherHalf]) {
    const auto &pipes = sm.pipes[scheduler];
    times[pipes[PipeHeavy].free <= pipes[PipeLite].free ? PipeHeavy : PipeLite] +=
        2 * rates[TimingRate::FmaInterval] * counts[kEitherHalf];
  }
  return times;
}

/// Takes the pipes of machine instructions, and the registers that they read, if all are free. A
/// mma.sync reads its registers all the time that it takes the tensor core, and nothing is issued
/// meanwhile that reads any (H200, micro: conversions, mma-sync). False if not: `when` is
/// when they will be.
bool TimedLaunch::reservePipes(TimedWarp &warp, const TimedInsn &insn, double now, double &when) {
  Sm &sm = *warp.processor;
  const unsigned scheduler = warp.scheduler;
  const PipeCounts &counts = *code.pipesOf(warp.pc);
  const double ofMma = cyclesOfMma(insn, true);
  auto &pipes = sm.pipes[scheduler];
  const std::array<double, kPipes> times = pipeTimes(sm, scheduler, counts, now);
  when = registersFree(sm, scheduler, counts, ofMma > 0);
  for (unsigned pipe = 0; pipe < kPipes; ++pipe)
    when = times[pipe] > 0 ? std::max(when, pipes[pipe].free) : when;
  if (when > now)
    return false;
  for (unsigned pipe = 0; pipe < kPipes; ++pipe)
    if (times[pipe] > 0)
      pipes[pipe].serve(now, times[pipe]);
  if (counts[kWide])
    holdOthers(pipes, besideOf(sm, scheduler, now), rates, now, counts[kWide]);
  for (unsigned bank = 0; bank < kBanks; ++bank) {
    Server &registers = sm.registers[scheduler][bank];
    if (const unsigned reads = counts[kBankReads + bank])
      registers.serve(now, reads * rates[TimingRate::RegisterInterval]);
    if (ofMma > 0)
      registers.free = std::max(registers.free, now + ofMma + ahead);
  }
  return true;
}

/// Delays an MMA by an instruction, if the integer pipe and that of products are both busy.
static void delayMma(std::array<Server, kPipes> &pipes, Pipe pipe, double now, double delay) {
  if (pipes[pipe == PipeAlu ? PipeHeavy : PipeAlu].free > now)
    pipes[PipeTensor].free += delay;
}

static Pipe freer(const std::array<Server, kPipes> &pipes, Pipe a, Pipe b) {
  return pipes[a].free <= pipes[b].free ? a : b;
}

/// Returns how long a mma.sync takes the tensor core of its scheduler; 0 for others. `known`: the
/// other machine instructions of its line are moves.
double TimedLaunch::cyclesOfMma(const TimedInsn &insn, bool known) const {
  if (insn.unit != Unit::MmaSync)
    return 0;
  const double flops = rates[insn.mma.rate] * rates[TimingRate::MmaSyncShare];
  return flops > 0 ? insn.mma.flops * kSchedulers / flops * (known ? 1 : insn.count) : 0;
}

/// Returns the interval of special functions, which MMAs of other warps slow.
double TimedLaunch::specialInterval(const Sm &sm, unsigned scheduler, double now) const {
  return std::max(rates[TimingRate::MufuInterval], besideOf(sm, scheduler, now).special);
}

/// Returns the cycle at which a unit with a queue serves the next instruction of `warp`: results of
/// such units come behind scoreboards. Other units make a warp wait for its turn first.
double TimedLaunch::queueForUnit(TimedWarp &warp, const TimedInsn &insn, double now) {
  auto &pipes = warp.processor->pipes[warp.scheduler];
  double when = now;
  const auto take = [&](Pipe pipe, double duration) {
    if (duration <= 0)
      return;
    when = std::max(when, pipes[pipe].free);
    pipes[pipe].serve(now, duration);
  };
  const PipeCounts *counts = code.pipesOf(warp.pc);
  const auto countOf = [&](Pipe pipe, Unit unit) {
    return counts ? (*counts)[pipe] : insn.unit == unit ? insn.count : 0u;
  };
  if (const unsigned count = countOf(PipeMufu, Unit::Mufu)) {
    const double interval = specialInterval(*warp.processor, warp.scheduler, now) * count;
    take(PipeMufu, interval);
    when = warp.special.after(when, interval, rates[TimingRate::MufuAmong]);
  } else {
    warp.special.pass(insn.count);
  }
  if (const unsigned count = countOf(PipeDouble, Unit::Double))
    take(PipeDouble, rates[TimingRate::DoubleInterval] * count);
  if (insn.unit == Unit::MmaSync) {
    const double share = rates[TimingRate::MmaSyncShare], cycles = cyclesOfMma(insn, counts);
    take(PipeTensor, cycles);
    warp.processor->tensor.multiplied += cycles * share / kSchedulers;
    warp.processor->tensor.multipliedHalf += insn.mma.halves ? cycles * share / kSchedulers : 0;
  }
  return when;
}

/// Returns the cycle at which a cp.async has a place in the queue of shared memory.
double TimedLaunch::whenQueued(const Sm &sm) const {
  return sm.shared.free - rates[TimingRate::FillQueue];
}

/// Returns the cycle at which the tensor core of a scheduler has room for another wgmma of any of
/// its warps. Warps that wait for that take turns (H200, micro: queue).
double TimedLaunch::whenTaken(Sm &sm, unsigned scheduler, double now) const {
  std::deque<double> &queued = sm.tensor.queued[scheduler];
  while (!queued.empty() && queued.front() <= now)
    queued.pop_front();
  const auto room = size_t(rates[TimingRate::WgmmaQueue]);
  return queued.size() < room ? now : queued[queued.size() - room];
}

/// Returns the cycle at which the queue that an instruction goes to has a place for it.
double TimedLaunch::whenAdmitted(const TimedWarp &warp, const TimedInsn &insn, double now) const {
  if (insn.fills)
    return whenQueued(*warp.processor);
  return insn.unit == Unit::Wgmma ? whenTaken(*warp.processor, warp.scheduler, now) : now;
}

/// Takes the unit. False when it is busy: `when` is when it will be free.
bool TimedLaunch::reserve(TimedWarp &warp, const TimedInsn &insn, double now, double &when) {
  if ((when = whenAdmitted(warp, insn, now)) > now)
    return false;
  auto &pipes = warp.processor->pipes[warp.scheduler];
  const Beside beside = besideOf(*warp.processor, warp.scheduler, now);
  const auto slowed = [&](TimingRate rate) { return std::max(rates[rate], beside.interval); };
  const auto take = [&](Pipe pipe, double interval) {
    when = pipes[pipe].free;
    if (when > now)
      return false;
    pipes[pipe].serve(now, interval * insn.count);
    if (beside.interval > 0)
      delayMma(pipes, pipe, now, rates[TimingRate::BesideDelay] * insn.count);
    return true;
  };
  if (code.pipesOf(warp.pc))
    return reservePipes(warp, insn, now, when);
  switch (insn.unit) {
  case Unit::Alu:
    return take(PipeAlu, slowed(TimingRate::AluInterval));
  case Unit::Sum:
  case Unit::Shift: {
    const Pipe pipe = freer(pipes, PipeAlu, PipeHeavy);
    return take(pipe, slowed(pipe == PipeAlu ? TimingRate::AluInterval : TimingRate::ImadInterval));
  }
  case Unit::Imad:
    if (!insn.wide)
      return take(PipeHeavy, slowed(TimingRate::ImadInterval));
    if (!take(PipeHeavy, wideInterval(beside, rates)))
      return false;
    holdOthers(pipes, beside, rates, now, insn.count);
    return true;
  case Unit::Fma:
    return take(freer(pipes, PipeHeavy, PipeLite), 2 * rates[TimingRate::FmaInterval]);
  case Unit::Half:
    return take(PipeHalf, slowed(TimingRate::HalfInterval));
  default:
    return true;
  }
}

} // namespace fp4::sim
