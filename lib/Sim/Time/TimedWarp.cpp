//===- TimedWarp.cpp - When a warp has its instructions and their results -===//
#include "Sim/Time/TimedLaunch.h"
#include <algorithm>

namespace fp4::sim {

/// Returns the cycle at which a warp has its next instruction, which is ready at `now`. Lines that
/// the nearest cache does not have come one by one, each behind the one before; a warp that waits
/// for something else does not notice, unless it jumps. Code that fits is there, since the same
/// launch ran before; of other code that launch has left the end.
double TimedLaunch::fetch(TimedWarp &warp, const TimedInsn &insn, double now) {
  if (!insn.count || code.size() <= rates[TimingRate::FetchInstructions])
    return now;
  const uint32_t line = code.placeOf(warp.pc) / CodeCache::lineInsns;
  auto &last = warp.fetched;
  if (line == last.line || phase >= Phase::Probe)
    return now;
  const bool follows = line == last.line + 1;
  last.line = line;
  CodeCache &cache = warp.processor->code;
  if (double arrival; cache.has(line, arrival))
    last.when = std::max(last.when, arrival);
  else
    last.when = cache.bring(line, follows ? last.when : now,
                            follows ? CodeCache::lineInsns * rates[TimingRate::FetchInterval]
                                    : rates[TimingRate::FetchJump],
                            CodeCache::lineInsns * rates[TimingRate::FetchTogether]);
  return std::max(now, last.when);
}

/// Returns the cycle at which a warp has the data that it asked device memory for, which would come
/// at `now` if requests were served in their order. Some requests that came behind it go before.
/// The data that the first CTAs read, all SMs ask for at once, so that a part of all that is behind
/// goes before; what is asked for when device memory has served the warp comes too late for that.
double TimedLaunch::disorder(TimedWarp &warp, double now) const {
  constexpr double rounding = 1; // times of registers are floats
  if ((!warp.early && warp.arrival.late <= 0) || warp.reason != Activity::Global ||
      warp.arrival.when <= 0 || now < warp.arrival.when - rounding)
    return now;
  const bool early = std::exchange(warp.early, false);
  const double late = std::max(0.0, std::exchange(warp.arrival.late, 0) - now);
  const double latency = rates[TimingRate::MemoryLatency],
               window = rates[TimingRate::MemoryWindow] * 1024 /
                        (rates[TimingRate::MemoryTerabytes] * 1e3 / rates[TimingRate::Gigahertz]),
               behind = std::max(0.0, machine.memory.device.end() + latency - now);
  if (!early)
    return now + std::min(late, behind);
  const double served = now - latency,
               before = std::max(0.0, machine.memory.endOfThoseAskedBy(served) - served);
  const double mean = rates[TimingRate::MemoryDisorder],
               part = 1 - 2 * (1 - mean) * (1 - warp.arrival.share);
  return now + part * std::min(before, window);
}

/// Returns the cycles from the issue of arithmetic until its result may be used; for a sequence,
/// the result of its last instruction.
double TimedLaunch::latencyOf(const TimedInsn &insn) const {
  constexpr double apart = 2; // cycles between instructions of a sequence
  const double rest = insn.count ? (insn.count - 1) * apart : 0;
  switch (insn.unit) {
  case Unit::Alu:
  case Unit::Sum:
  case Unit::Shift:
    return rates[TimingRate::AluLatency] + rest;
  case Unit::Imad:
    return rates[TimingRate::ImadLatency] + rest;
  case Unit::Fma:
  case Unit::Half: // a rounded division begins with a reciprocal
    return rates[TimingRate::FmaLatency] + rest +
           (insn.rejoins ? rates[TimingRate::MufuLatency] : 0);
  case Unit::Mufu:
    return rates[TimingRate::MufuLatency] + rest;
  case Unit::Double:
    return rates[TimingRate::DoubleLatency] + rest;
  case Unit::MmaSync:
    return rates[TimingRate::MmaSyncLatency];
  default:
    return 0;
  }
}

/// Returns the cycle, no earlier than `ready`, at which a warp has the registers of its next
/// instruction. A mma.sync has sums of another one, its last operands, sooner than arithmetic has
/// them.
double TimedLaunch::registersReady(TimedWarp &warp, const TimedInsn &insn, double ready) const {
  float last = float(ready - warp.born);
  const float sooner =
      insn.unit == Unit::MmaSync
          ? float(rates[TimingRate::MmaSyncLatency] - rates[TimingRate::MmaSyncChain])
          : 0;
  const auto look = [&](uint32_t r, bool sum) {
    const bool chained = sum && warp.because[r] == Activity::Products;
    const float when = warp.ready[r] - (chained ? sooner : 0);
    if (when > last) {
      last = when;
      warp.reason = warp.because[r];
    }
  };
  const auto reads = code.reads(insn), writes = code.writes(insn);
  for (size_t i = 0; i < reads.size(); ++i)
    look(reads[i], i + writes.size() >= reads.size());
  for (uint32_t r : writes)
    look(r, true);
  return std::max(ready, warp.born + double(last));
}

/// Returns the time that issuing a wgmma takes its warp, by the place of A.
static TimingRate wgmmaIssue(const Insn &insn) {
  return insn.op[1].kind == OperandKind::Vector ? TimingRate::WgmmaIssueRegisters
                                                : TimingRate::WgmmaIssue;
}

/// A fence of the device: the warp goes on when L2 has its stores. Fences of one scheduler's warps
/// begin one after the other.
double TimedLaunch::release(TimedWarp &warp, double issue) const {
  warp.reason = Activity::Fence;
  const double begin =
      warp.processor->fences[warp.scheduler].serve(issue, rates[TimingRate::FenceInterval]) -
      rates[TimingRate::FenceInterval];
  return warp.nextIssue =
             std::max({warp.nextIssue, begin + rates[TimingRate::FenceDevice], warp.stored.global});
}

/// An arrival at the barrier of a cluster, with the fence of one that releases. A cluster of one CTA
/// has the barrier of the CTA, and no fence.
double TimedLaunch::arriveAtCluster(TimedWarp &warp, Running &running, const TimedInsn &insn,
                                    double issue) const {
  const double arrival = insn.releases && clusterSize > 1 ? release(warp, issue) : issue;
  double &last = running.arrivals[warp.odd];
  last = std::max(last, arrival);
  warp.odd = !warp.odd;
  return arrival;
}

/// Returns the cycle at which a warp passes the phase of the cluster's barrier at which it arrived
/// last. All other warps have arrived, in instructions that may have been issued long before their
/// fences end.
double TimedLaunch::clusterBarrierEnd(const TimedWarp &warp, const Running &running) const {
  const double warps = double((volume(launch.config.block) + 31) / 32);
  return running.arrivals[!warp.odd] + rates[TimingRate::BarrierPerWarp] * warps +
         rates[clusterSize > 1 ? TimingRate::ClusterBarrierCycles : TimingRate::BarrierCycles];
}

/// A fence of shared memory: the warp goes on when what it stored is there. Fences come one after
/// the other, behind loads and stores of all warps.
double TimedLaunch::fenceShared(TimedWarp &warp, double issue) const {
  warp.reason = Activity::Fence;
  const double turn = warp.processor->shared.serve(issue, rates[TimingRate::FenceSharedInterval]);
  return warp.nextIssue =
             std::max({warp.nextIssue, issue + rates[TimingRate::FenceProxyAsyncShared], turn,
                       warp.stored.shared});
}

/// A warp stays at its instruction until `cycles` after its issue.
double TimedLaunch::hold(TimedWarp &warp, double issue, double cycles, Activity reason) {
  warp.reason = reason;
  return warp.nextIssue = std::max(warp.nextIssue, issue + cycles);
}

/// The result of a fence, of an arrival or of a wait, all of which hold the warp itself.
double TimedLaunch::synchronize(TimedWarp &warp, Running &running, const TimedInsn &insn,
                                double issue) const {
  switch (insn.unit) {
  case Unit::Mbarrier:
    return hold(warp, issue, rates[TimingRate::MbarrierArrive], Activity::Mbarrier);
  case Unit::FenceAsync:
    return hold(warp, issue, rates[TimingRate::FenceProxyAsync], Activity::Fence);
  case Unit::FenceAsyncShared:
    return fenceShared(warp, issue);
  case Unit::Fence:
    return release(warp, issue);
  case Unit::ClusterArrive:
    return arriveAtCluster(warp, running, insn, issue);
  case Unit::ClusterWait:
    return hold(warp, issue, clusterBarrierEnd(warp, running) - issue, Activity::Barrier);
  default: // setmaxnreg
    return hold(warp, issue, rates[TimingRate::RegisterChange], Activity::Barrier);
  }
}

/// Returns the cycle at which a scheduler hands over an access to shared memory or an exchange, so
/// that a warp alone has a quarter of the rate of an SM (H200, micro: bursts). A warp issues
/// nothing more while as many of its accesses wait as the queue takes.
double TimedLaunch::handOver(TimedWarp &warp, double issue) {
  const double duration = rates[TimingRate::HandOver];
  const double begin = warp.processor->handing[warp.scheduler].serve(issue, duration) - duration;
  warp.nextIssue = std::max(warp.nextIssue, begin - rates[TimingRate::FillQueue]);
  return begin;
}

/// Returns the cycle at which the result of an instruction that issues now is there. Waits of the
/// warp itself move nextIssue.
double TimedLaunch::resultOf(TimedWarp &warp, Running &running, const TimedInsn &insn, double issue,
                             Activity &because) {
  const auto exchange = [&](TimingRate interval, TimingRate latency) {
    because = Activity::Shared;
    const double turn = handOver(warp, issue);
    return warp.processor->exchange.serve(turn, rates[interval]) + rates[latency];
  };
  switch (insn.unit) {
  case Unit::Shuffle:
    return exchange(TimingRate::ShuffleInterval, TimingRate::ShuffleLatency);
  case Unit::Redux:
    return exchange(TimingRate::ReduxInterval, TimingRate::ReduxLatency);
  case Unit::Memory:
    return accessMemory(warp, running, insn, insn.releases ? release(warp, issue) : issue, because);
  case Unit::MbarrierTest:
    because = Activity::Mbarrier;
    return issue + rates[TimingRate::MbarrierTest];
  case Unit::Mbarrier:
  case Unit::FenceAsync:
  case Unit::FenceAsyncShared:
  case Unit::Fence:
  case Unit::ClusterArrive:
  case Unit::ClusterWait:
  case Unit::Registers:
    return synchronize(warp, running, insn, issue);
  case Unit::Wgmma:
    return hold(warp, issue, rates[wgmmaIssue(launch.kernel->code[warp.pc])], Activity::Products);
  case Unit::TmemAlloc:
    return hold(warp, issue, rates[TimingRate::TmemAlloc], Activity::Products);
  case Unit::TmemMove: // the registers of a load wait for it
    because = Activity::Products;
    return std::max(issue, running.policy->newestEnd());
  default:
    because = insn.unit == Unit::MmaSync ? Activity::Products : Activity::Arithmetic;
    return issue + latencyOf(insn);
  }
}

/// Returns the cycle from which an instruction has the registers that it loads from where they were
/// spilled. Spilled registers are taken to be in L1; loads and stores take its data path.
double TimedLaunch::reload(TimedWarp &warp, double issue) const {
  const PipeCounts *counts = code.pipesOf(warp.pc);
  if (!counts || !((*counts)[kReloads] + (*counts)[kSpills]))
    return issue;
  Sm &sm = *warp.processor;
  const double left = issue < sm.tensor.mmaEnd ? 1 - sm.tensor.mmaShare : 1;
  const double row = kLineBytes / rates[TimingRate::SharedBytes] / left;
  const double moved = sm.shared.serve(issue, ((*counts)[kReloads] + (*counts)[kSpills]) * row);
  return (*counts)[kReloads] ? moved + rates[TimingRate::L1Latency] : issue;
}

/// Returns the cycle at which lines arrive from L2.
double TimedLaunch::loadLines(TimedWarp &warp, double now, std::span<const LineAccess> lines) {
  MemorySystem &memory = machine.memory;
  Port &port = warp.processor->port;
  const auto [when, late, waits, share] =
      warp.early ? memory.loadFirst(port, now, lines) : memory.load(port, now, lines);
  if (waits)
    warp.arrival.when = std::max(warp.arrival.when, when);
  warp.arrival.late = std::max(warp.arrival.late, when + late);
  warp.arrival.share = std::max(warp.arrival.share, share);
  return when;
}

/// Returns the cycle at which lines arrive that L1 has not.
double TimedLaunch::loadMissing(TimedWarp &warp, double looked,
                                std::span<const LineAccess> missing) {
  const double arrival = loadLines(warp, looked, missing);
  for (const LineAccess &access : missing)
    warp.processor->l1.arrived(access.line, arrival);
  return arrival;
}

/// Returns the cycle at which the lines of the recorder arrive, of which L1 may have some.
double TimedLaunch::loadThroughL1(TimedWarp &warp, double looked) {
  double result = looked + rates[TimingRate::L1Latency];
  std::vector<LineAccess> missing;
  for (const LineAccess &access : recorder.lines) {
    const L1Cache::Found found = warp.processor->l1.access(access);
    result = std::max(result, found.ready);
    if (found.missing)
      missing.push_back({access.line, found.missing});
  }
  return missing.empty() ? result : std::max(result, loadMissing(warp, looked, missing));
}

/// Returns true when a store goes to L2 with the one before: two of a warp that store parts of the
/// same sectors do if no other warp of the SM stores between them (H200, micro: store-parts: 30
/// bytes a clock of one warp that stores halves of sectors, and 13 of four).
bool TimedLaunch::reductionsStore(const TimedWarp &warp) const {
  auto &before = warp.processor->store;
  if (before.warp == warp.warp && before.lines == recorder.lines) {
    before.warp = nullptr;
    return true;
  }
  before.warp = warp.warp;
  before.lines.assign(recorder.lines.begin(), recorder.lines.end());
  return false;
}

double TimedLaunch::accessMemory(TimedWarp &warp, Running &running, const TimedInsn &insn,
                                 double issue, Activity &because) {
  Sm &sm = *warp.processor;
  const double left = issue < sm.tensor.mmaEnd ? 1 - sm.tensor.mmaShare : 1;
  const double perWavefront = kLineBytes / rates[TimingRate::SharedBytes] / left;
  double result = issue;
  if (recorder.wavefronts) {
    because = Activity::Shared;
    result = sm.shared.serve(handOver(warp, issue), recorder.wavefronts * perWavefront) +
             rates[recorder.atomic ? TimingRate::SharedAtomicLatency : TimingRate::SharedLatency];
    if (recorder.write)
      warp.stored.shared = std::max(warp.stored.shared, result);
  }
  if (recorder.lines.empty())
    return result;
  because = Activity::Global;
  const double lookups = double(recorder.lines.size()) * (insn.fills ? left : 1),
               looked = sm.shared.serve(issue, lookups * perWavefront);
  if (insn.fills) // its ticket reads (TimedPolicy)
    return looked;
  const std::span<const LineAccess> all = recorder.lines;
  const double turn = recorder.atomic ? machine.memory.turnOf(sm.port, all, looked) : looked;
  if (recorder.write && !recorder.atomic && reductionsStore(warp))
    return result;
  if (recorder.write || recorder.atomic) {
    warp.stored.global = std::max(warp.stored.global, machine.memory.write(sm.port, turn, all));
    running.stores = std::max(running.stores, warp.stored.global);
  }
  if (recorder.write && !recorder.atomic)
    return result;
  if (recorder.atomic || recorder.strong || insn.bypassesL1)
    return recorder.atomic ? machine.memory.read(sm.port, turn, all) : loadLines(warp, turn, all);
  return std::max(result, loadThroughL1(warp, looked));
}

} // namespace fp4::sim
