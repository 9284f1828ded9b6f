//===- TimedPipes.cpp - The arithmetic pipes of a scheduler ---------------===//
#include "Sim/Time/TimedLaunch.h"
#include <algorithm>

namespace fp4::sim {

/// Takes the pipes of machine instructions. Returns when all are free; each has them in a row.
double TimedLaunch::reservePipes(std::array<Server, kPipes> &pipes,
                                 const std::array<uint8_t, kPipes + 1> &counts, double now) {
  double when = now;
  const auto take = [&](Pipe pipe, double duration) {
    when = std::max(when, pipes[pipe].free);
    pipes[pipe].serve(now, duration);
  };
  const bool beside = target.hasWgmma && pipes[PipeTensor].free > now;
  const TimingRate intervals[] = {
      beside ? TimingRate::WgmmaAluInterval : TimingRate::AluInterval, TimingRate::ImadInterval,
      TimingRate::FmaInterval, TimingRate::HalfInterval, TimingRate::MufuInterval,
      TimingRate::DoubleInterval};
  for (unsigned pipe = 0; pipe < std::size(intervals); ++pipe)
    if (counts[pipe])
      take(Pipe(pipe), rates[intervals[pipe]] * counts[pipe]);
  if (const unsigned fp32 = counts[kPipes])
    take(pipes[PipeHeavy].free <= pipes[PipeLite].free ? PipeHeavy : PipeLite,
         2 * rates[TimingRate::FmaInterval] * fp32);
  return when;
}

/// Takes the unit. False when it is busy: `when` is when it will be this warp's.
bool TimedLaunch::reserve(TimedWarp &warp, const TimedInsn &insn, double now, double &when) {
  auto &pipes = warp.processor->pipes[warp.scheduler];
  const auto take = [&](Pipe pipe, double interval) {
    when = std::max(now, pipes[pipe].free);
    pipes[pipe].serve(now, interval * insn.count);
    return when <= now;
  };
  const auto freer = [&](Pipe a, Pipe b) { return pipes[a].free <= pipes[b].free ? a : b; };
  if (const auto *counts = code.pipesOf(warp.pc); counts && insn.unit != Unit::MmaSync) {
    when = reservePipes(pipes, *counts, now);
    return when <= now;
  }
  switch (insn.unit) {
  case Unit::Alu: { // the accumulators of wgmma take the ports of the registers
    const bool beside = target.hasWgmma && pipes[PipeTensor].free > now;
    return take(PipeAlu, rates[beside ? TimingRate::WgmmaAluInterval : TimingRate::AluInterval]);
  }
  case Unit::Sum:
  case Unit::Shift: {
    const Pipe pipe = freer(PipeAlu, PipeHeavy);
    return take(pipe, rates[pipe == PipeAlu ? TimingRate::AluInterval : TimingRate::ImadInterval]);
  }
  case Unit::Imad:
    return take(PipeHeavy, rates[TimingRate::ImadInterval]);
  case Unit::Fma:
    return take(freer(PipeHeavy, PipeLite), 2 * rates[TimingRate::FmaInterval]);
  case Unit::Half:
    return take(PipeHalf, rates[TimingRate::HalfInterval]);
  case Unit::Mufu:
    return take(PipeMufu, rates[TimingRate::MufuInterval]);
  case Unit::MmaSync: {
    const double flops = rates[flopsOf(insn.depth)] * rates[TimingRate::MmaSyncShare];
    return take(PipeTensor, flops > 0 ? insn.flops * kSchedulers / flops : 0);
  }
  case Unit::Double:
    return take(PipeDouble, rates[TimingRate::DoubleInterval]);
  default:
    return true;
  }
}

} // namespace fp4::sim
