//===- TimedPipes.cpp - The arithmetic pipes of a scheduler ---------------===//
#include "Sim/Time/TimedLaunch.h"
#include <algorithm>

namespace fp4::sim {

/// What the accumulators of a wgmma leave of the registers' ports: the least interval of the pipes
/// that read several of them.
static double besideOf(const Multiprocessor &sm, unsigned scheduler, double now) {
  return sm.pipes[scheduler][PipeTensor].free > now ? sm.beside[scheduler] : 0;
}

/// A product of which the upper half is wanted keeps the other pipes from what comes to them.
static void holdOthers(std::array<Server, kPipes> &pipes, double now, double duration) {
  for (Pipe pipe : {PipeAlu, PipeLite})
    pipes[pipe].serve(now, duration);
}

/// Takes the banks of registers that machine instructions read, each of which delivers one register
/// at a time. An instruction is issued a cycle before a bank is free for it. Returns when.
double TimedLaunch::readRegisters(Multiprocessor &sm, unsigned scheduler, const PipeCounts &counts,
                                  double now) {
  constexpr double ahead = 1; // cycles: what is read waits in front of the pipes
  double when = now;
  for (unsigned bank = 0; bank < kBanks; ++bank)
    if (const unsigned reads = counts[kBankReads + bank]) {
      Server &server = sm.registers[scheduler][bank];
      when = std::max(when, server.free - ahead);
      server.serve(now, reads * rates[TimingRate::RegisterInterval]);
    }
  return when;
}

/// Takes the pipes of machine instructions. Returns when all are free; each has them in a row.
double TimedLaunch::reservePipes(Multiprocessor &sm, unsigned scheduler, const PipeCounts &counts,
                                 double now) {
  auto &pipes = sm.pipes[scheduler];
  double when = readRegisters(sm, scheduler, counts, now);
  const auto take = [&](Pipe pipe, double duration) {
    when = std::max(when, pipes[pipe].free);
    pipes[pipe].serve(now, duration);
  };
  constexpr TimingRate intervals[] = {TimingRate::AluInterval,  TimingRate::ImadInterval,
                                      TimingRate::FmaInterval,  TimingRate::HalfInterval,
                                      TimingRate::MufuInterval, TimingRate::DoubleInterval};
  const double beside = besideOf(sm, scheduler, now);
  for (unsigned pipe = 0; pipe < std::size(intervals); ++pipe)
    if (counts[pipe]) {
      const bool slows = pipe == PipeAlu || pipe == PipeHeavy || pipe == PipeHalf;
      take(Pipe(pipe), std::max(rates[intervals[pipe]], slows ? beside : 0) * counts[pipe]);
    }
  if (counts[kWide]) {
    take(PipeHeavy, std::max(rates[TimingRate::WideInterval], beside) * counts[kWide]);
    holdOthers(pipes, now, rates[TimingRate::WideHold] * counts[kWide]);
  }
  if (const unsigned fp32 = counts[kEitherHalf])
    take(pipes[PipeHeavy].free <= pipes[PipeLite].free ? PipeHeavy : PipeLite,
         2 * rates[TimingRate::FmaInterval] * fp32);
  return when;
}

/// Where the integer pipe and that of products are both busy, an instruction delays the product.
static void delayProduct(std::array<Server, kPipes> &pipes, Pipe pipe, double now, double delay) {
  if (pipes[pipe == PipeAlu ? PipeHeavy : PipeAlu].free > now)
    pipes[PipeTensor].free += delay;
}

static Pipe freer(const std::array<Server, kPipes> &pipes, Pipe a, Pipe b) {
  return pipes[a].free <= pipes[b].free ? a : b;
}

/// Takes the unit. False when it is busy: `when` is when it will be this warp's.
bool TimedLaunch::reserve(TimedWarp &warp, const TimedInsn &insn, double now, double &when) {
  auto &pipes = warp.processor->pipes[warp.scheduler];
  const double beside = besideOf(*warp.processor, warp.scheduler, now);
  const auto slowed = [&](TimingRate rate) { return std::max(rates[rate], beside); };
  const auto take = [&](Pipe pipe, double interval) {
    when = std::max(now, pipes[pipe].free);
    pipes[pipe].serve(now, interval * insn.count);
    if (beside > 0)
      delayProduct(pipes, pipe, now, rates[TimingRate::BesideDelay] * insn.count);
    return when <= now;
  };
  if (const auto *counts = code.pipesOf(warp.pc); counts && insn.unit != Unit::MmaSync)
    return (when = reservePipes(*warp.processor, warp.scheduler, *counts, now)) <= now;
  switch (insn.unit) {
  case Unit::Alu:
    return take(PipeAlu, slowed(TimingRate::AluInterval));
  case Unit::Sum:
  case Unit::Shift: {
    const Pipe pipe = freer(pipes, PipeAlu, PipeHeavy);
    return take(pipe, slowed(pipe == PipeAlu ? TimingRate::AluInterval : TimingRate::ImadInterval));
  }
  case Unit::Imad:
    holdOthers(pipes, now, insn.wide ? rates[TimingRate::WideHold] * insn.count : 0);
    return take(PipeHeavy, slowed(insn.wide ? TimingRate::WideInterval : TimingRate::ImadInterval));
  case Unit::Fma:
    return take(freer(pipes, PipeHeavy, PipeLite), 2 * rates[TimingRate::FmaInterval]);
  case Unit::Half:
    return take(PipeHalf, slowed(TimingRate::HalfInterval));
  case Unit::Mufu:
    return take(PipeMufu, rates[TimingRate::MufuInterval]);
  case Unit::MmaSync: {
    const double flops = rates[insn.product] * rates[TimingRate::MmaSyncShare];
    return take(PipeTensor, flops > 0 ? insn.flops * kSchedulers / flops : 0);
  }
  case Unit::Double:
    return take(PipeDouble, rates[TimingRate::DoubleInterval]);
  default:
    return true;
  }
}

} // namespace fp4::sim
