//===- TicketQueue.cpp - Tickets: asynchronous operations of one cluster -------===//
#include "TicketQueue.h"
#include "Sim/Async/Fail.h"
#include "Sim/Decode/OpcodeTable.h"
#include "fp4/ISA/TargetModel.h"
#include "fp4/Sim/Events/BarrierEvent.h"
#include "fp4/Sim/Events/FenceEvent.h"
#include "fp4/Sim/Events/MemoryEvent.h"
#include "fp4/Sim/Events/TicketEvent.h"
#include "fp4/Sim/Observer.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {

std::unique_ptr<AsyncWork> makeAsyncWork(Cluster &cluster) {
  return std::make_unique<TicketQueue>(cluster);
}

namespace {

constexpr uint32_t pollPatience = 256; ///< warp polls

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t;");
  return first == text.npos ? std::string_view() : text.substr(first, last - first + 1);
}

} // namespace

TicketQueue::TicketQueue(Cluster &cluster) : owner(cluster), ctas(cluster.ctas.size()) {
  const hw::TargetLimits &limits = cluster.launch->target->limits;
  for (CtaAsync &cta : ctas)
    if (limits.tmemColumns)
      cta.tmem.setColumns(limits.tmemExclusiveColumns);
  SmColumns *columns = cluster.launch->sm.columns.get();
  const auto owner = [&](uint32_t rank) {
    return ColumnsOwner{cluster.index, cluster.columnsPlace, rank, cluster.ctas[rank]->index};
  };
  for (uint32_t rank = 0; columns && rank < ctas.size(); ++rank)
    ctas[rank].tmem.share(*columns, owner(rank), owner(rank & ~1u));
}

//===----------------------------------------------------------------------===//
// Policy
//===----------------------------------------------------------------------===//

bool TicketQueue::ready(const Ticket &ticket) const {
  return std::all_of(ticket.after.begin(), ticket.after.end(),
                     [&](uint64_t id) { return done(id); });
}

void TicketQueue::addReady(uint64_t id) {
  readyTickets.insert(std::ranges::upper_bound(readyTickets, id), id);
}

/// Takes a ticket that is done from the ready ones, and adds those that waited for it alone.
void TicketQueue::removeFromReady(uint64_t id) {
  if (auto at = std::ranges::lower_bound(readyTickets, id); at != readyTickets.end() && *at == id)
    readyTickets.erase(at);
  if (auto node = waiting.extract(id))
    for (uint64_t other : node.mapped())
      if (auto it = inFlight.find(other); it != inFlight.end() && ready(it->second))
        addReady(other);
}

uint64_t TicketQueue::chooseReady() {
  const size_t count = std::min(owner.policy->mostChoices(), readyTickets.size());
  return owner.policy->choose(std::span(readyTickets).first(count));
}

Status TicketQueue::runDue() {
  if (!owner.policy->hasDue()) // thousands may be in flight
    return {};
  // A finished ticket can only make later ones ready, so one pass in issue order reaches them all.
  for (auto it = inFlight.begin(); it != inFlight.end();) {
    if (!owner.policy->due(it->second) || !ready(it->second)) {
      ++it;
      continue;
    }
    const uint64_t id = it->first;
    FP4_TRY(runNow(id));
    it = inFlight.upper_bound(id);
  }
  return {};
}

Status TicketQueue::round() {
  if (inFlight.empty())
    return {};
  if (missedPolls > pollPatience)
    if (auto moved = advance(); !moved)
      return tl::unexpected(std::move(moved.error()));
  FP4_TRY(runDue());
  while (!inFlight.empty() && owner.policy->completesAnother()) {
    if (readyTickets.empty())
      break;
    FP4_TRY(runStage(chooseReady()));
  }
  return {};
}

Expected<bool> TicketQueue::advance() {
  if (readyTickets.empty())
    return false;
  FP4_TRY(runStage(chooseReady()));
  return true;
}

Status TicketQueue::drain() {
  while (!inFlight.empty()) {
    FP4_ASSIGN(auto moved, advance());
    if (!moved)
      return makeError(ErrorKind::Internal, "asynchronous operations wait for each other");
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Life of a ticket
//===----------------------------------------------------------------------===//

Ticket TicketQueue::makeTicket(ExecContext &cx, const Insn &insn, TicketKind kind, int lane) {
  Ticket ticket;
  ticket.id = nextId++;
  ticket.kind = kind;
  ticket.engine = engineOf(kind);
  ticket.issuer = {cx.cta().rank, cx.warp().index, lane};
  ticket.insn = &insn;
  ticket.pc = cx.pc;
  ticket.issued = owner.policy->clock();
  return ticket;
}

/// Counts the bytes of the destinations that a ticket lists.
static uint64_t bytesWritten(const Ticket &ticket) {
  uint64_t bytes = 0;
  for (const SharedRange &range : ticket.writes.shared)
    bytes += range.bytes;
  for (const TmemCells &cells : ticket.writes.tmem)
    bytes += 4ull * cells.range.lanes * cells.range.columns;
  for (const RegisterRange &range : ticket.writes.registers)
    bytes += range.end - range.begin;
  return bytes;
}

void TicketQueue::event(const Ticket &ticket, TicketState state) {
  Observer *observer = owner.launch->ticketObserver();
  if (!observer)
    return;
  const PipelinedOp op = ticket.tcgen05.pipelined.value_or(PipelinedOp());
  TicketEvent event;
  event.actor = ticket.actor(owner);
  event.actor.ticket = 0;
  event.at = ticket.at();
  event.state = state;
  event.id = ticket.id;
  event.kind = ticket.kind;
  event.engine = ticket.engine;
  event.bytes = ticket.work.bytes ? ticket.work.bytes : bytesWritten(ticket);
  event.flops = ticket.work.flops;
  event.lane = uint32_t(ticket.issuer.lane);
  event.bulkGroup = ticket.bulkGroup;
  event.ctaGroup = ticket.tcgen05.ctaGroup;
  event.accumulator = op.accumulator;
  event.narrowCopy = op.narrow;
  event.proxy = ticket.proxy;
  event.writes = ticket.writes.shared;
  event.signals = ticket.signals;
  observer->onTicket(event);
  if (state == TicketState::Issued)
    for (const TmemCells &cells : ticket.writes.tmem)
      emitTmem(ticket, AccessKind::Write, cells);
}

Status TicketQueue::checkDestinations(const Ticket &ticket) {
  for (const SharedRange &range : ticket.writes.shared)
    FP4_TRY(checkShared(range.address, range.bytes));
  for (const TmemCells &cells : ticket.writes.tmem)
    FP4_TRY(state(cells.rank).tmem.checkAllocated(cells.range));
  return {};
}

/// Neighbours among `ranges` become one: an accumulator is a row of registers.
static std::vector<RegisterRange> joined(const std::vector<RegisterRange> &ranges) {
  std::vector<RegisterRange> result;
  for (const RegisterRange &range : ranges)
    if (!result.empty() && result.back().end == range.begin)
      result.back().end = range.end;
    else
      result.push_back(range);
  return result;
}

Status TicketQueue::issue(Ticket ticket) {
  if (Status valid = checkDestinations(ticket); !valid)
    return tl::unexpected(located(ticket, std::move(valid.error())));
  event(ticket, TicketState::Issued);
  if (!ticket.writes.registers.empty()) {
    Warp &warp = warpOf(ticket);
    unwaitedLoads.push_back({ticket.id, ticket.kind, &warp, ticket.insn, ticket.chained,
                             joined(ticket.writes.registers)});
    ++warp.loadsInFlight;
    claim(claimsOf(warp), unwaitedLoads.back());
  }
  const uint64_t id = ticket.id;
  owner.policy->issued(ticket);
  std::erase_if(ticket.after, [&](uint64_t other) { return done(other); });
  const bool now = owner.policy->due(ticket) && ready(ticket);
  auto it = inFlight.emplace(id, std::move(ticket)).first;
  for (uint64_t other : it->second.after)
    if (auto &others = waiting[other]; others.empty() || others.back() != id)
      others.push_back(id);
  if (it->second.after.empty())
    addReady(id);
  if (now)
    return runNow(id);
  poison(it->second);
  return {};
}

Warp &TicketQueue::warpOf(const Ticket &ticket) {
  return owner.ctas[ticket.issuer.rank]->warps[ticket.issuer.warp];
}

void TicketQueue::poison(Ticket &ticket) {
  constexpr int garbage = 0xA5; // for a program that gets to see it in spite of useRegisters
  for (const RegisterRange &range : ticket.writes.registers)
    if (!ticket.chained && !idle(ticket.kind)) // an accumulator is read as well
      std::memset(warpOf(ticket).registers + range.begin, garbage, range.end - range.begin);
  for (const SharedRange &range : ticket.writes.shared)
    owner.ctaOfSharedAddress(range.address)
        ->shared.poison(range.address & kSharedOffsetMask, range.bytes, ticket.id);
  if (!idle(TicketKind::TmemLoad)) // then somebody reads them
    for (const TmemCells &cells : ticket.writes.tmem)
      state(cells.rank).tmem.poison(cells.range, ticket.id);
}

/// Returns true when a program that computes no results may still load what a ticket writes: shared
/// memory where it loads, stores of threads, and bulk stores and reductions to global memory, which
/// other threads may poll. Boxes of tensors in global memory are results.
bool TicketQueue::writesWhatIsLoaded(const Ticket &ticket) const {
  if (ticket.kind == TicketKind::Bulk &&
      (ticket.engine == Engine::Threads || ticket.writes.shared.empty()))
    return true;
  return std::ranges::any_of(ticket.writes.shared, [&](const SharedRange &range) {
    const uint32_t begin = range.address & kSharedOffsetMask, end = begin + range.bytes;
    return std::ranges::any_of(owner.launch->timing.loadedShared, [&](const SharedRange &loaded) {
      return begin < loaded.address + loaded.bytes && loaded.address < end;
    });
  });
}

Status TicketQueue::runStage(uint64_t id) {
  Ticket &ticket = inFlight.at(id);
  missedPolls = 0;
  if (ticket.stagesDone < ticket.stages.size()) {
    if (!idle(ticket.kind) || writesWhatIsLoaded(ticket))
      if (Status status = ticket.stages[ticket.stagesDone](ticket); !status)
        return tl::unexpected(located(ticket, std::move(status.error())));
    ++ticket.stagesDone;
  }
  return ticket.stagesDone >= ticket.stages.size() ? finish(id) : Status();
}

Expected<bool> TicketQueue::advance(uint64_t id) {
  if (!ready(inFlight.at(id)))
    return false;
  FP4_TRY(runStage(id));
  return true;
}

Status TicketQueue::runNow(uint64_t id) {
  while (!done(id))
    FP4_TRY(runStage(id));
  return {};
}

Status TicketQueue::finish(uint64_t id) {
  auto node = inFlight.extract(id);
  Ticket &ticket = node.mapped();
  removeFromReady(id);
  for (const SharedRange &range : ticket.writes.shared)
    owner.ctaOfSharedAddress(range.address)
        ->shared.markValid(range.address & kSharedOffsetMask, range.bytes);
  if (!idle(TicketKind::TmemLoad))
    for (const TmemCells &cells : ticket.writes.tmem)
      state(cells.rank).tmem.written(cells.range, id);
  ++owner.tickets;
  event(ticket, TicketState::Completed);
  // Signals come last: whoever waits for them finds the data valid.
  if (ticket.signal)
    if (Status status = ticket.signal(ticket); !status)
      return tl::unexpected(located(ticket, std::move(status.error())));
  return {};
}

bool TicketQueue::sourceRead(uint64_t id) const {
  auto it = inFlight.find(id);
  return it == inFlight.end() || it->second.stagesDone > 0;
}

static bool reads(const Ticket &ticket, const Cta &cta) {
  return ticket.sharedReads & (1u << cta.rank);
}

static bool signals(const Ticket &ticket, const Cta &cta) {
  return std::ranges::any_of(
      ticket.signals, [&](uint32_t address) { return address >> kSharedRankShift == cta.rank; });
}

/// Returns true when a ticket uses memory of `cta`, which ends with the CTA.
static bool touches(const Ticket &ticket, const Cta &cta) {
  const auto inShared = [&](const SharedRange &range) {
    return range.address >> kSharedRankShift == cta.rank;
  };
  const auto inTmem = [&](const TmemCells &cells) { return cells.rank == cta.rank; };
  return (ticket.stagesDone == 0 && reads(ticket, cta)) || signals(ticket, cta) ||
         std::ranges::any_of(ticket.writes.shared, inShared) ||
         std::ranges::any_of(ticket.writes.tmem, inTmem);
}

/// Arrivals that nobody waits for any more are harmless, and stores still read shared memory after
/// the last thread has left (CUTLASS ends kernels so).
static bool mayOutlive(const Ticket &ticket, const Cta &cta) {
  if (ticket.kind == TicketKind::Commit)
    return signals(ticket, cta);
  const bool copy = ticket.kind == TicketKind::Tma || ticket.kind == TicketKind::Bulk;
  return copy && reads(ticket, cta) && ticket.writes.shared.empty() && ticket.signals.empty();
}

Status TicketQueue::ctaExited(Cta &cta) {
  leaving = &cta; // operations that may outlive the CTA happen while it is there
  for (uint64_t id : std::vector(readyTickets)) // a stage may end others
    if (!done(id) && mayOutlive(inFlight.at(id), cta) && ready(inFlight.at(id)))
      FP4_TRY(runNow(id));
  leaving = nullptr;
  for (const auto &[id, ticket] : inFlight)
    if (touches(ticket, cta))
      return tl::unexpected(located(
          ticket,
          {ErrorKind::Simulation,
           fmt::format("CTA ({},{},{}) exits while this operation is in flight to its memory",
                       cta.index[0], cta.index[1], cta.index[2]),
           "wait for its completion before the last thread exits"}));
  const TensorMemory &tmem = state(cta.rank).tmem;
  if (!tmem.allocations().empty())
    return fail(fmt::format("CTA ({},{},{}) exits with tensor memory allocated: {}", cta.index[0],
                            cta.index[1], cta.index[2], tmem.describeAllocations()),
                "every tcgen05.alloc needs a tcgen05.dealloc of the same columns");
  return {};
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Status TicketQueue::checkShared(uint32_t address, uint32_t bytes) const {
  const uint32_t rank = address >> kSharedRankShift, offset = address & kSharedOffsetMask;
  if (rank >= owner.ctas.size())
    return fail(fmt::format("shared address {:#x} names CTA rank {} of a cluster of {}", address,
                            rank, owner.ctas.size()));
  const Cta &cta = *owner.ctas[rank];
  if (!cta.shared.contains(offset, bytes))
    return fail(fmt::format("shared addresses {:#x}..{:#x} are outside the CTA's shared memory, "
                            "which is {:#x}..{:#x}",
                            offset, uint64_t(offset) + bytes - 1, kSharedBase,
                            cta.shared.end() - 1));
  if (cta.done() && &cta != leaving)
    return fail(fmt::format("shared address {:#x} belongs to CTA rank {}, which has exited",
                            address, rank));
  return {};
}

Expected<const std::byte *> TicketQueue::sharedSource(uint32_t address, uint32_t bytes,
                                                      const Ticket &reader) {
  FP4_TRY(checkShared(address, bytes));
  SharedMemory &shared = owner.ctaOfSharedAddress(address)->shared;
  const uint32_t offset = address & kSharedOffsetMask;
  if (shared.valid(offset, bytes))
    return shared.at(offset);
  for (uint32_t at = offset; at < offset + bytes;) {
    const auto bad = shared.firstBad(at, offset + bytes - at);
    if (!bad)
      break;
    if (!bad->ticket && owner.launch->options->uninitializedReads == UninitializedReads::Error)
      return fail(bad->stored
                      ? fmt::format("reads shared memory at {:#x}, which has a value of shared "
                                    "byte {:#x}, which was never written",
                                    bad->offset, bad->stored->origin.address & kSharedOffsetMask)
                      : fmt::format("reads shared memory at {:#x} that was never written",
                                    bad->offset));
    if (bad->ticket && bad->ticket < reader.id)
      return fail(fmt::format("reads shared memory at {:#x} too early: {} has still to write it",
                              bad->offset, describeTicket(bad->ticket)),
                  "wait on its mbarrier first");
    at = bad->offset + 1; // cells that a later ticket will overwrite still hold the old data
  }
  return shared.at(offset);
}

Expected<std::byte *> TicketQueue::sharedDestination(uint32_t address, uint32_t bytes) {
  FP4_TRY(checkShared(address, bytes));
  return owner.ctaOfSharedAddress(address)->shared.at(address & kSharedOffsetMask);
}

Status TicketQueue::checkCells(uint32_t rank, const TmemRange &range, uint64_t reader,
                               std::string_view what) {
  TensorMemory &tmem = state(rank).tmem;
  FP4_TRY(tmem.checkAllocated(range));
  if (idle(TicketKind::TmemLoad))
    return {};
  const auto bad = tmem.firstBad(range, reader);
  if (!bad)
    return {};
  if (bad->ticket)
    return fail(fmt::format("reads {} at TMEM lane {}, column {} too early: {} has still to "
                            "write it",
                            what, bad->lane, bad->column, describeTicket(bad->ticket)));
  if (owner.launch->options->uninitializedReads == UninitializedReads::Ignore)
    return {};
  return fail(fmt::format("reads {} at TMEM lane {}, column {} that was never written", what,
                          bad->lane, bad->column));
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

Expected<Mbarrier *> TicketQueue::mbarrier(uint32_t address) {
  FP4_TRY(checkShared(address, 8));
  return state(address >> kSharedRankShift).mbarriers.find(address & kSharedOffsetMask);
}

Error TicketQueue::atMbarrier(Error error, uint32_t address) const {
  const uint32_t offset = address & kSharedOffsetMask;
  const Mbarrier *barrier = ctas[address >> kSharedRankShift].mbarriers.lookup(offset);
  if (!barrier)
    return error;
  const std::string symbol = owner.launch->kernel->sharedSymbol(offset);
  error.note += fmt::format(
      "{}the mbarrier{} was initialised at {}; {}", error.note.empty() ? "" : "; ",
      symbol.empty() ? "" : " '" + symbol + "'",
      describePoint(owner.launch, barrier->initialised.at), barrier->describeBytes(owner.launch));
  return error;
}

Status TicketQueue::completeTx(uint32_t address, uint64_t bytes, const Ticket &ticket) {
  FP4_ASSIGN(auto barrier, mbarrier(address));
  MbarrierTable &table = state(address >> kSharedRankShift).mbarriers;
  emit(ticket.actor(owner), ticket.at(), BarrierOp::MbarCompleteTx, address, bytes);
  auto phases = table.completeTx(*barrier, bytes, {ticket.actor(owner), ticket.at()});
  if (!phases)
    return tl::unexpected<Error>(atMbarrier(std::move(phases.error()), address));
  emitPhase(ticket.actor(owner), ticket.at(), address, *barrier, *phases);
  return {};
}

Status TicketQueue::arrive(uint32_t address, const Ticket &ticket) {
  FP4_ASSIGN(auto barrier, mbarrier(address));
  MbarrierTable &table = state(address >> kSharedRankShift).mbarriers;
  emit(ticket.actor(owner), ticket.at(), BarrierOp::MbarArrive, address, 1, MemOrder::Release,
       Scope::Cluster);
  FP4_ASSIGN(auto phases, table.arrive(*barrier, 1, {ticket.actor(owner), ticket.at()}));
  emitPhase(ticket.actor(owner), ticket.at(), address, *barrier, phases);
  return {};
}

void TicketQueue::emit(const Actor &actor, CodePoint at, BarrierOp op, uint32_t address,
                       uint64_t count, MemOrder order, Scope scope, uint32_t lanes) {
  owner.changes += op != BarrierOp::MbarWaitPass;
  if (Observer *observer = owner.launch->ticketObserver())
    observer->onBarrier({actor, at, op, address, count, lanes, order, scope});
}

void TicketQueue::emitPhase(const Actor &actor, CodePoint at, uint32_t address,
                            const Mbarrier &barrier, PhasesDone phases) {
  if (phases)
    emit(actor, at, BarrierOp::MbarPhaseDone, address, barrier.phase - 1);
}

void TicketQueue::emitAccess(const Ticket &ticket, AccessKind kind, Space space, uint64_t address,
                             uint32_t bytes, Proxy proxy, bool unchanged) {
  Observer *observer = owner.launch->ticketObserver();
  if (!observer)
    return;
  MemoryEvent event{ticket.actor(owner), ticket.at(), kind, space, proxy};
  event.laneMask = 1;
  event.unchanged = unchanged ? ~0u : 0;
  event.bytes = bytes;
  event.contiguous = true;
  event.addresses = &address;
  observer->onMemory(event);
}

void TicketQueue::emitTmem(const Ticket &ticket, AccessKind kind, const TmemCells &cells) {
  Observer *observer = owner.launch->ticketObserver();
  if (!observer)
    return;
  const uint64_t address = hw::TmemAddress{cells.range.lane, cells.range.column}.pack();
  MemoryEvent event{ticket.actor(owner), ticket.at(), kind, Space::Tmem, Proxy::Tcgen05};
  event.laneMask = 1;
  event.bytes = 4 * cells.range.columns;
  event.tmemLanes = cells.range.lanes;
  event.tmemRank = cells.rank;
  event.contiguous = true;
  event.addresses = &address;
  observer->onMemory(event);
}

//===----------------------------------------------------------------------===//
// tcgen05.fence
//===----------------------------------------------------------------------===//

void TicketQueue::publish(const Thread &thread) {
  for (auto &[id, ticket] : inFlight)
    if (ticket.issuer == thread && ticket.tcgen05.pipelined)
      ticket.tcgen05.published = true;
}

void TicketQueue::acquire(const Thread &thread) {
  std::vector<uint64_t> &ids = acquiredTickets[thread];
  ids.clear();
  for (const auto &[id, ticket] : inFlight)
    if (ticket.tcgen05.published && owner.policy->synchronized(thread.rank, thread.warp, id))
      ids.push_back(id);
}

const std::vector<uint64_t> &TicketQueue::acquired(const Thread &thread) const {
  static const std::vector<uint64_t> none;
  auto it = acquiredTickets.find(thread);
  return it == acquiredTickets.end() ? none : it->second;
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

std::string TicketQueue::describeTicket(uint64_t id) const {
  auto it = inFlight.find(id);
  if (it == inFlight.end())
    return fmt::format("ticket {}", id);
  const Ticket &ticket = it->second;
  return fmt::format("ticket {} ('{}', line {}, issued by warp {} of CTA rank {})", id,
                     trimmed(owner.launch->program->shownLine(ticket.insn->line)),
                     ticket.insn->line, ticket.issuer.warp, ticket.issuer.rank);
}

Error TicketQueue::located(const Ticket &ticket, Error error) const {
  const Cta &cta = *owner.ctas[ticket.issuer.rank];
  error.message = fmt::format(
      "{}: {}: {}",
      describeLocation(*owner.launch, cta, ticket.issuer.warp, ticket.issuer.lane, *ticket.insn),
      stringify(ticket.kind), error.message);
  return error;
}

bool TicketWait::ready() const {
  return std::all_of(ids.begin(), ids.end(),
                     [&](uint64_t id) { return readOnly ? queue.sourceRead(id) : queue.done(id); });
}

std::string TicketWait::describe() const {
  for (uint64_t id : ids)
    if (!queue.done(id))
      return fmt::format("{}: {}", what, queue.describeTicket(id));
  return what;
}

} // namespace fp4::sim
