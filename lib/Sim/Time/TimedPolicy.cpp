//===- TimedPolicy.cpp - Asynchronous operations end when they would ------===//
#include "Sim/Time/TimedPolicy.h"
#include "Sim/State/SharedMemory.h"
#include <cmath>

namespace fp4::sim {

/// Bulk copies that device memory may have to read.
static bool isLoad(const Ticket &ticket) {
  return (ticket.kind == TicketKind::Tma || ticket.kind == TicketKind::Bulk) &&
         ticket.engine != Engine::BulkStore;
}

void TimedPolicy::issued(const Ticket &ticket) {
  machine.flops += code[ticket.pc].unused ? 0 : double(ticket.work.flops);
  if (stopped)
    return;
  double firstStage = 0;
  const double end = endOfThoseBefore(ticket, endOf(ticket, firstStage));
  for (std::vector<double> *times : {&ends, &reached})
    if (times->size() <= ticket.id)
      times->resize(std::max<size_t>(ticket.id + 1, 2 * times->size()));
  ends[ticket.id] = newest = end;
  reached[ticket.id] = ticket.kind == TicketKind::Commit ? lastReached(ticket, now) : end;
  last = std::max(last, end);
  if (ticket.kind == TicketKind::Mma && !watched) {
    mmas.tickets.push_back(ticket.id);
    mmas.end = std::max(mmas.end, end);
    return;
  }
  announceMmas();
  if (firstCopies.areCounted && !firstCopies.haveEnded && !ticket.work.global.empty() &&
      isLoad(ticket))
    firstCopies.tickets.insert(ticket.id);
  for (size_t stage = 0; stage < std::max<size_t>(1, ticket.stages.size()); ++stage)
    announce(ticket.id, stage == 0 && ticket.stages.size() > 1 ? firstStage : end);
}

/// Nobody sees an MMA of tcgen05 before what is issued behind it, such as its commit. So those that
/// are issued in a row happen in a row, when the last of them ends: their accumulator is in the
/// host's cache then.
void TimedPolicy::announceMmas() {
  for (uint64_t id : mmas.tickets)
    announce(id, std::max(now, mmas.end));
  mmas.tickets.clear();
}

/// All SMs ask for their first copies at once, and device memory serves what was asked for in no
/// order, as it does for warps (TimedLaunch::disorder). A warp waits for one of the accesses, and a
/// copy for the last of many rows, so that nearly all that was asked for by then goes before it
/// (H200, micro: first-boxes: a copy of 32 KiB of each of 128 SMs takes 2690 clk of all of them,
/// and with two more copies behind it 4000).
double TimedPolicy::lastRow(uint64_t ticket, double when) {
  if (!firstCopies.tickets.erase(ticket))
    return when;
  firstCopies.haveEnded = true;
  const double window = rates[TimingRate::MemoryWindow] * 1024 /
                        (rates[TimingRate::MemoryTerabytes] * 1e3 / rates[TimingRate::Gigahertz]);
  const double served = when - rates[TimingRate::MemoryLatency] - rates[TimingRate::TmaLatency];
  const double before = machine.memory.endOfThoseAskedBy(served) - served;
  return when + std::clamp(before, 0.0, window);
}

double TimedPolicy::endOfThoseBefore(const Ticket &ticket, double least) const {
  for (uint64_t id : ticket.after)
    if (id < ends.size())
      least = std::max(least, ends[id]);
  return least;
}

double TimedPolicy::lastReached(const Ticket &ticket, double least) const {
  for (uint64_t id : ticket.after)
    if (id < reached.size())
      least = std::max(least, reached[id]);
  return least;
}

double TimedPolicy::endOf(const Ticket &ticket, double &firstStage) {
  switch (ticket.kind) {
  case TicketKind::Tma:
  case TicketKind::Bulk:
    if (ticket.engine == Engine::BulkStore)
      return firstStage = copyOut(ticket);
    return copyIn(ticket);
  case TicketKind::ThreadCopy: {
    Sm &sm = *processors[ticket.issuer.rank];
    if (recorder.lines.empty())
      return now;
    return machine.memory.fill(sm.port, now, recorder.lines);
  }
  case TicketKind::Wgmma:
    return code[ticket.pc].unused ? now : wgmma(ticket);
  case TicketKind::Mma:
    return tcgen05Mma(ticket);
  case TicketKind::Commit: {
    const TimingRate tail =
        ticket.tcgen05.ctaGroup == 2 ? TimingRate::Tcgen05PairTail : TimingRate::Tcgen05Tail;
    const double seen = rates[TimingRate::MbarrierWake] + rates[TimingRate::MbarrierTest];
    return lastReached(ticket, now) + std::max(0.0, rates[tail] - seen);
  }
  case TicketKind::TmemCopy:
    return tmemCopy(ticket);
  case TicketKind::TmemLoad:
  case TicketKind::TmemStore:
    return tmemMove(ticket);
  case TicketKind::TmemShift:
    return now + rates[TimingRate::ScaleCopyInterval];
  case TicketKind::ClusterLaunch: // the request goes to the far side of L2 and back
    return now + rates[TimingRate::MemoryLatency];
  }
  return now;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Returns the cycle at which the engine begins a copy whose rows take it `fill`. Copies come to
/// the engine one after the other, and a small one may come while a large one is in the engine.
double TimedPolicy::startOf(Sm &sm, double fill) const {
  const double issue = rates[TimingRate::TmaIssue];
  const double begin = sm.engine.requests.serve(now, issue) - std::min(fill, issue);
  return sm.engine.copies.serve(begin, fill) - fill;
}

/// Returns how long the rows of a load take that take `fill` alone. The requests of the load and
/// stored data take the same way to L2, a cycle for a row and four for one that is stored. If both
/// wait, a quarter of the way is for loads (micro: store-beside: 31.9 bytes a clock are loaded and
/// 23.9 stored).
double TimedPolicy::besideStores(Sm &sm, double fill) const {
  constexpr double part = 0.25;
  const double begin = std::max(now, sm.engine.copies.free);
  const double stores = std::max(0.0, sm.port.stores.end() - begin);
  sm.port.stores.serve(begin, std::min(fill, stores * part / (1 - part)), machine.memory.present);
  return std::min(fill / part, fill + stores);
}

/// The rows of a load, each of which takes the engine a cycle for every 128 bytes or part of them,
/// and the bytes that come from memory.
static std::pair<double, double> rowsOf(const Ticket &ticket) {
  double rows = ticket.work.outsideRows, asked = 0;
  for (const GlobalRun &run : ticket.work.global) {
    rows += std::ceil(run.bytes / 128.0);
    asked += double(run.bytes);
  }
  return {rows, asked};
}

double TimedPolicy::copyIn(const Ticket &ticket) {
  const uint32_t address = ticket.writes.shared.empty() ? 0 : ticket.writes.shared[0].address;
  const size_t rank = std::min<size_t>(address >> kSharedRankShift, processors.size() - 1);
  Sm &to = *processors[rank], &from = *processors[ticket.issuer.rank];
  const double bytes = double(ticket.work.bytes              ? ticket.work.bytes
                              : ticket.writes.shared.empty() ? 0
                                                             : ticket.writes.shared[0].bytes);
  if (ticket.engine == Engine::Threads) // st.async
    return from.remoteStores.serve(now, bytes / rates[TimingRate::RemoteStoreBytes]) +
           rates[TimingRate::RemoteArrive];
  if (ticket.work.global.empty() && !ticket.work.outsideRows) // between CTAs of the cluster
    return startOf(from, bytes / rates[TimingRate::TmaBytes]) +
           bytes / rates[TimingRate::TmaBytes] + rates[TimingRate::TmaLatency] +
           rates[TimingRate::RemoteLatency];
  const auto [rows, asked] = rowsOf(ticket);
  double fill = rows * 128 / rates[TimingRate::TmaBytes];
  const bool again = copy.insn == ticket.insn && copy.now == now && copy.issuer == ticket.issuer &&
                     copy.rank != rank;
  if (again) { // another destination of a multicast
    const double arrival = std::max(copy.arrival, machine.memory.deliver(now, bytes));
    return &to == &from ? arrival : std::max(arrival, to.engine.copies.serve(now, fill));
  }
  fill = besideStores(from, fill);
  const double start = startOf(from, fill);
  const CopyTurn turn = turnOf(from, start, fill, asked);
  const double latency = rates[TimingRate::TmaLatency] +
                         (ticket.kind == TicketKind::Tma ? rates[TimingRate::TensorMapLatency] : 0);
  double arrival =
      machine.memory.read(from.port, turn.first, turn.last, ticket.work.global) + latency;
  const double spread = std::max(turn.last - turn.first, bytes / rates[TimingRate::L2PortBytes]);
  from.engine.inFlight.push_back({arrival - spread, arrival, asked});
  from.engine.bytesInFlight += asked;
  if (ticket.work.outsideRows) // they are not among the bytes in flight
    arrival = std::max(arrival, machine.memory.fillOutside(turn.first, ticket.work.outsideRows,
                                                           ticket.work.global.empty()) +
                                    latency);
  copy = {ticket.insn, now, arrival, ticket.issuer, rank};
  return &to == &from ? arrival : std::max(arrival, to.engine.copies.serve(now, fill));
}

/// Copies behind a prefetch wait until the engine has asked for its rows, and no longer: it keeps
/// none of them in flight (micro: prefetches).
void TimedPolicy::prefetched(uint32_t rank, std::span<const GlobalRun> runs) {
  Sm &sm = *processors[rank];
  for (const GlobalRun &run : runs) {
    const double fill = std::ceil(run.bytes / 128.0) * 128 / rates[TimingRate::TmaBytes];
    const double start = startOf(sm, fill);
    machine.memory.prefetch(sm.port, start, start + fill, {&run, 1});
  }
}

/// Returns the cycles at which the engine asks for the first and the last row of a copy that begins
/// at `start` at the earliest: it asks for as many bytes as may be in flight, and for more when
/// others have arrived.
TimedPolicy::CopyTurn TimedPolicy::turnOf(Sm &sm, double start, double fill, double bytes) const {
  const double limit = rates[TimingRate::TmaInFlight] * 1024;
  start = std::max(start, sm.engine.lastRow);
  while (!sm.engine.inFlight.empty() && sm.engine.inFlight.front().last <= start) {
    sm.engine.bytesInFlight -= sm.engine.inFlight.front().bytes;
    sm.engine.inFlight.pop_front();
  }
  const auto whenFor = [&](double need) {
    double excess = sm.engine.bytesInFlight + std::min(need, limit) - limit, when = start;
    for (const CopyEngine::InFlight &one : sm.engine.inFlight) {
      if (excess <= 0)
        break;
      const double part = std::min(1.0, excess / one.bytes);
      when = std::max(when, one.first + (one.last - one.first) * part);
      excess -= one.bytes;
    }
    return when;
  };
  const double first = whenFor(kLineBytes);
  return {first, sm.engine.lastRow = std::max(first + fill, whenFor(bytes))};
}

/// Lanes of a warp that store the same at a time do so once: ptxas makes one UTMASTG of an
/// instruction whose operands are those of the warp, as CuTe's epilogues have it, and no loop over
/// its lanes. The source has been read when L2 has taken it. `.read` makes no difference to a wait:
/// ptxas waits for the same scoreboard, for L2's answer in neither case.
double TimedPolicy::copyOut(const Ticket &ticket) {
  Thread warp = ticket.issuer;
  warp.lane = 0;
  const uint64_t begin = ticket.work.global.empty() ? 0 : ticket.work.global[0].address;
  const bool again = ticket.kind == TicketKind::Tma && store.insn == ticket.insn &&
                     store.now == now && store.warp == warp && store.begin == begin &&
                     store.bytes == ticket.work.bytes;
  if (!again) {
    Sm &sm = *processors[ticket.issuer.rank];
    const double issue = rates[TimingRate::TmaIssue];
    const double taken = machine.memory.write(sm.port, sm.engine.requests.serve(now, issue) - issue,
                                              std::span<const GlobalRun>(ticket.work.global));
    last = std::max(last, taken + machine.memory.latencyOfL2());
    store = {ticket.insn, now,   taken + rates[TimingRate::StoreLatency],
             warp,        begin, ticket.work.bytes};
  }
  return store.end;
}

//===----------------------------------------------------------------------===//
// MMAs
//===----------------------------------------------------------------------===//

using RateOfColumns = std::pair<double, TimingRate>;

/// The rate for n columns, between those that were measured.
static double rateBetween(const Rates &rates, std::span<const RateOfColumns> rows, double n) {
  size_t above = 1;
  while (above + 1 < rows.size() && n > rows[above].first)
    ++above;
  const auto [low, rateOfLow] = rows[above - 1];
  const auto [high, rateOfHigh] = rows[above];
  const double part = std::clamp((n - low) / (high - low), 0.0, 1.0);
  return rates[rateOfLow] + part * (rates[rateOfHigh] - rates[rateOfLow]);
}

/// The intervals of arithmetic beside MMAs of n columns.
static Beside besideMma(const Rates &rates, double n, bool registers) {
  constexpr RateOfColumns ofShared[] = {{16, TimingRate::BesideShared16},
                                        {64, TimingRate::BesideShared64},
                                        {256, TimingRate::BesideShared256}};
  constexpr RateOfColumns ofRegisters[] = {{8, TimingRate::BesideRegisters8},
                                           {16, TimingRate::BesideRegisters16},
                                           {32, TimingRate::BesideRegisters32},
                                           {64, TimingRate::BesideRegisters64},
                                           {256, TimingRate::BesideRegisters256}};
  constexpr RateOfColumns ofWide[] = {{16, TimingRate::WideBeside16},
                                      {32, TimingRate::WideBeside32},
                                      {64, TimingRate::WideBeside64}};
  using Rows = std::span<const RateOfColumns>;
  const Rows rows = registers ? Rows(ofRegisters) : Rows(ofShared);
  return {rateBetween(rates, rows, n), rateBetween(rates, ofWide, n),
          rates[TimingRate::MufuBeside]};
}

/// A warp's quarter of an MMA: 16 rows. B, and A unless it is in registers, come from shared
/// memory, which a warpgroup reads once.
double TimedPolicy::wgmma(const Ticket &ticket) {
  constexpr double rows = 16, rowBytes = 32;
  Sm &sm = *processors[ticket.issuer.rank];
  const double n = ticket.insn->as<WgmmaModifiers>().n;
  const unsigned k = unsigned(double(ticket.work.flops) / (2 * rows * n) + 0.5);
  const bool registers = ticket.insn->op[1].kind == OperandKind::Vector;
  const double compute = double(ticket.work.flops) / (rates[flopsOf(k)] / kSchedulers);
  const double row = rowBytes / rates[TimingRate::SharedBytes], columns = n / kSchedulers * row,
               read = columns + (registers ? 0 : rows * row);
  const double least = registers ? rates[TimingRate::WgmmaMinimum] : 0;
  Server &pipe = sm.pipes[ticket.issuer.warp % kSchedulers][PipeTensor];
  sm.beside[ticket.issuer.warp % kSchedulers] = besideMma(rates, n, registers);
  double &chain = chains[ticket.issuer];
  const double begin = registers ? std::max(now, chain + rates[TimingRate::WgmmaGap]) : now;
  const double duration = std::max({compute, read * kSchedulers, least});
  const double end = chain = pipe.serve(begin, duration);
  sm.tensor.queued[ticket.issuer.warp % kSchedulers].push_back(end);
  sm.shared.busy += read;
  sm.tensor.multiplied += compute / kSchedulers;
  if (ticket.insn->as<WgmmaModifiers>().aType == FactorType::F16) {
    sm.tensor.multipliedHalf += compute / kSchedulers;
    sm.tensor.multipliedFew += registers ? compute / kSchedulers : 0;
  }
  sm.tensor.mmaEnd = std::max(sm.tensor.mmaEnd, end);
  // Loads of threads have what is left, and an MMA is no slower beside them (H200, micro: beside: a
  // tenth beside m64n64 with A in shared memory, 0.31 beside those that read B alone all the time).
  constexpr double most = 0.9, ofColumns = 1.52;
  const double taken = std::max(read, ofColumns * columns) * kSchedulers;
  sm.tensor.mmaShare = std::min(taken / duration, most);
  // The next MMA begins `duration` later, and the result is there behind the arithmetic alone.
  return std::max(end - duration + compute, sm.shared.free) +
         rates[registers ? TimingRate::WgmmaTailRegisters : TimingRate::WgmmaTail];
}

/// Returns the columns that exist: an address beyond them is an error of the copy or the MMA.
static std::span<double> columnsOf(Sm &sm, const TmemRange &range) {
  const size_t first = std::min<size_t>(range.column, sm.tensor.copied.size());
  return std::span(sm.tensor.copied)
      .subspan(first, std::min<size_t>(range.columns, sm.tensor.copied.size() - first));
}

/// Begins a copy to tensor memory: a thread's copies and MMAs begin in the order of their issue. An
/// MMA waits for the copies of its scales alone, whoever issued them.
double TimedPolicy::tmemCopy(const Ticket &ticket) {
  const double latency = rates[TimingRate::ScaleCopyLatency];
  const double begin = std::max(now, starts[ticket.issuer]);
  for (const TmemCells &cells : ticket.writes.tmem)
    std::ranges::fill(columnsOf(*processors[cells.rank], cells.range), begin + latency);
  Server &scales = processors[ticket.issuer.rank]->tensor.scales;
  return scales.serve(begin, rates[TimingRate::ScaleCopyInterval]) + latency -
         rates[TimingRate::Tcgen05Tail];
}

/// The end of an MMA that keeps the tensor core for `duration`, `compute` of it for arithmetic.
double TimedPolicy::multiply(Sm &sm, const Ticket &ticket, double duration, double compute) {
  double begin = now;
  for (const TmemRange &range : ticket.tcgen05.scales)
    for (double copied : columnsOf(sm, range))
      begin = std::max(begin, copied);
  const double end = sm.tensor.tcgen05.serve(begin, duration);
  sm.tensor.multiplied += compute;
  starts[ticket.issuer] = end - duration;
  return end;
}

/// An MMA takes the tensor core for its arithmetic or, if that is longer, for the reads of both
/// operands; its result needs A before the arithmetic, and B while it goes on. One CTA multiplies
/// 64 rows no faster than 128. The smallest interval is that of 128 rows of A and a few of B, which
/// take as long as 48. The tail that the table has includes the read of 128 rows of A. K = 96 takes
/// as long as K = 64 (QRC, B300), and half as many bytes more; the double K as long, and twice the
/// bytes.
double TimedPolicy::tcgen05Mma(const Ticket &ticket) {
  constexpr double fullRows = 128;
  const uint64_t shape = ticket.tcgen05.pipelined ? ticket.tcgen05.pipelined->accumulator >> 25 : 0;
  const double m = double(shape >> 24 & 0xFFF), n = double(shape >> 12 & 0xFFF);
  const unsigned k = unsigned(shape & 0xFFF);
  const unsigned single = hw::mmaK(ticket.insn->as<Tcgen05MmaModifiers>().kind);
  const double longer = double(k) / single, rowBytes = 32 * longer;
  const bool pair = ticket.tcgen05.ctaGroup == 2,
             inTmem = ticket.insn->op[1].kind == OperandKind::Address;
  const double blocks = pair ? 2 : 1, idle = pair || m <= 0 ? 1 : std::max(1.0, fullRows / m);
  const double compute =
      double(ticket.work.flops) * idle / blocks / (rates[flopsOf(single)] * longer);
  const double perRow = rowBytes / rates[TimingRate::SharedBytes];
  const double ofA = inTmem ? 0 : m / blocks * perRow, least = rates[TimingRate::Tcgen05Minimum];
  const double ofB = std::max(n / blocks * perRow, pair ? 0 : least - fullRows * perRow);
  const double duration = std::max({compute, ofA + ofB, pair ? least / 2 : 0});
  double end = 0;
  for (size_t rank = 0; rank < processors.size(); ++rank)
    if (ticket.sharedReads >> rank & 1)
      end = std::max(end, multiply(*processors[rank], ticket, duration, compute));
  end = end ? end : multiply(*processors[ticket.issuer.rank], ticket, duration, compute);
  return std::max(now, end - (duration - compute) - (fullRows * perRow - ofA));
}

double TimedPolicy::tmemMove(const Ticket &ticket) {
  Sm &sm = *processors[ticket.issuer.rank];
  uint64_t bytes = ticket.work.bytes;
  for (const RegisterRange &range : ticket.writes.registers)
    bytes += range.end - range.begin;
  for (const TmemCells &cells : ticket.writes.tmem)
    bytes += 4ull * cells.range.lanes * cells.range.columns;
  const TimingRate rate =
      ticket.kind == TicketKind::TmemLoad ? TimingRate::TmemBytes : TimingRate::TmemStoreBytes;
  Server &pipe = sm.pipes[ticket.issuer.warp % kSchedulers][PipeTensor];
  return pipe.serve(now, double(bytes) / rates[rate]) + rates[TimingRate::TmemLatency];
}

} // namespace fp4::sim
