//===- Engine.cpp - Tickets: asynchronous operations of one cluster -------===//
#include "Engine.h"
#include "Sim/Insn/Handlers.h"
#include "Sim/Insn/OpcodeTable.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {

std::unique_ptr<AsyncEngine> makeAsyncEngine(Cluster &cluster) {
  return std::make_unique<Engine>(cluster);
}

std::string_view stringify(EngineKind kind) {
  switch (kind) {
  case EngineKind::Tma:
    return "tma";
  case EngineKind::Bulk:
    return "bulk";
  case EngineKind::ThreadCopy:
    return "cp.async";
  case EngineKind::Mma:
    return "tcgen05.mma";
  case EngineKind::Wgmma:
    return "wgmma";
  case EngineKind::TmemCopy:
    return "tcgen05.cp";
  case EngineKind::TmemShift:
    return "tcgen05.shift";
  case EngineKind::Commit:
    return "tcgen05.commit";
  case EngineKind::TmemLoad:
    return "tcgen05.ld";
  case EngineKind::TmemStore:
    return "tcgen05.st";
  case EngineKind::ClusterLaunch:
    return "clusterlaunchcontrol";
  }
  return "unknown";
}

namespace {

constexpr uint32_t pollPatience = 256; ///< warp polls

tl::unexpected<Error> fail(std::string message, std::string note = "") {
  return makeError(ErrorKind::Simulation, std::move(message), std::move(note));
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t;");
  return first == text.npos ? std::string_view() : text.substr(first, last - first + 1);
}

} // namespace

Agent Ticket::agent(const Cluster &cluster) const {
  return {uint32_t(cluster.index), issuer.rank, issuer.warp, id};
}

CodePoint Ticket::at() const { return {pc, insn ? insn->line : 0}; }

Engine::Engine(Cluster &cluster) : owner(cluster), ctas(cluster.ctas.size()) {}

//===----------------------------------------------------------------------===//
// Policy
//===----------------------------------------------------------------------===//

bool Engine::heldBack(const Ticket &ticket) const {
  const SimOptions &options = *owner.launch->options;
  switch (options.policy) {
  case CompletionPolicy::Eager:
    return false;
  case CompletionPolicy::Lazy:
  case CompletionPolicy::Random:
    return true;
  case CompletionPolicy::Delay:
    break;
  }
  const std::string_view name = stringify(ticket.engine), delayed = options.delayedEngine;
  if (delayed != "all" && !name.starts_with(delayed))
    return false;
  return owner.roundNumber < ticket.issuedRound + options.delayRounds;
}

bool Engine::ready(const Ticket &ticket) const {
  return std::all_of(ticket.after.begin(), ticket.after.end(),
                     [&](uint64_t id) { return done(id); });
}

std::vector<uint64_t> Engine::readyTickets() const {
  std::vector<uint64_t> ids;
  for (const auto &[id, ticket] : inFlight)
    if (ready(ticket))
      ids.push_back(id);
  return ids;
}

Status Engine::runDue() {
  // A finished ticket can only make later ones ready, so one pass in issue order reaches them all.
  for (auto it = inFlight.begin(); it != inFlight.end();) {
    const uint64_t id = it->first;
    if (!heldBack(it->second) && ready(it->second))
      FP4_TRY(runNow(id));
    it = inFlight.upper_bound(id);
  }
  return {};
}

Status Engine::round() {
  if (inFlight.empty())
    return {};
  if (missedPolls > pollPatience)
    if (auto moved = advance(); !moved)
      return tl::unexpected(std::move(moved.error()));
  if (owner.launch->options->policy != CompletionPolicy::Random)
    return runDue();
  while (!inFlight.empty() && owner.nextRandom() % 4 == 0) {
    const auto ids = readyTickets();
    if (ids.empty())
      break;
    FP4_TRY(runStage(ids[owner.nextRandom() % ids.size()]));
  }
  return {};
}

Expected<bool> Engine::advance() {
  if (inFlight.empty())
    return false;
  const auto ids = readyTickets();
  if (ids.empty())
    return false;
  const bool random = owner.launch->options->policy == CompletionPolicy::Random;
  FP4_TRY(runStage(random ? ids[owner.nextRandom() % ids.size()] : ids.front()));
  return true;
}

Status Engine::drain() {
  while (!inFlight.empty()) {
    auto moved = advance();
    if (!moved)
      return tl::unexpected(std::move(moved.error()));
    if (!*moved)
      return makeError(ErrorKind::Internal, "asynchronous operations wait for each other");
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Life of a ticket
//===----------------------------------------------------------------------===//

Ticket Engine::makeTicket(ExecContext &cx, const Insn &insn, EngineKind engine, int lane) {
  Ticket ticket;
  ticket.id = nextId++;
  ticket.engine = engine;
  ticket.issuer = {cx.cta().rank, cx.warp().index, lane};
  ticket.insn = &insn;
  ticket.pc = cx.pc;
  ticket.issuedRound = owner.roundNumber;
  return ticket;
}

void Engine::event(const Ticket &ticket, TicketState state) {
  Observer *observer = owner.launch->observer;
  if (!observer)
    return;
  Agent agent = ticket.agent(owner);
  agent.ticket = 0;
  const PipelinedOp op = ticket.pipelined.value_or(PipelinedOp());
  observer->onTicket({agent, ticket.at(), state, ticket.id, stringify(ticket.engine),
                      uint32_t(ticket.issuer.lane), ticket.bulkGroup, ticket.ctaGroup,
                      op.accumulator, op.narrow, ticket.proxy, ticket.sharedWrites,
                      ticket.signals});
  if (state == TicketState::Issued)
    for (const TmemCells &cells : ticket.tmemWrites)
      emitTmem(ticket, AccessKind::Write, cells);
}

Status Engine::checkDestinations(const Ticket &ticket) {
  for (const SharedRange &range : ticket.sharedWrites)
    FP4_TRY(checkShared(range.address, range.bytes));
  for (const TmemCells &cells : ticket.tmemWrites)
    FP4_TRY(state(cells.rank).tmem.checkAllocated(cells.range));
  return {};
}

Status Engine::issue(Ticket ticket) {
  if (Status valid = checkDestinations(ticket); !valid)
    return tl::unexpected(located(ticket, std::move(valid.error())));
  event(ticket, TicketState::Issued);
  if (!ticket.registerWrites.empty()) {
    Warp &warp = warpOf(ticket);
    unwaitedLoads.push_back(
        {ticket.id, ticket.engine, &warp, ticket.insn, ticket.chained, ticket.registerWrites});
    ++warp.loadsInFlight;
  }
  const uint64_t id = ticket.id;
  std::erase_if(ticket.after, [&](uint64_t other) { return done(other); });
  const bool now = !heldBack(ticket) && ready(ticket);
  auto it = inFlight.emplace(id, std::move(ticket)).first;
  if (now)
    return runNow(id);
  poison(it->second);
  return {};
}

Warp &Engine::warpOf(const Ticket &ticket) {
  return owner.ctas[ticket.issuer.rank]->warps[ticket.issuer.warp];
}

void Engine::poison(Ticket &ticket) {
  constexpr int garbage = 0xA5; // for a program that gets to see it in spite of useRegisters
  for (const RegisterRange &range : ticket.registerWrites)
    if (!ticket.chained) // an accumulator is read as well
      std::memset(warpOf(ticket).registers + range.begin, garbage, range.end - range.begin);
  for (const SharedRange &range : ticket.sharedWrites)
    owner.ctaOfSharedAddress(range.address)
        ->shared.poison(range.address & kSharedOffsetMask, range.bytes, ticket.id);
  for (const TmemCells &cells : ticket.tmemWrites)
    state(cells.rank).tmem.poison(cells.range, ticket.id);
}

Status Engine::runStage(uint64_t id) {
  Ticket &ticket = inFlight.at(id);
  missedPolls = 0;
  if (ticket.stagesDone < ticket.stages.size()) {
    if (Status status = ticket.stages[ticket.stagesDone](ticket); !status)
      return tl::unexpected(located(ticket, std::move(status.error())));
    ++ticket.stagesDone;
  }
  return ticket.stagesDone >= ticket.stages.size() ? finish(id) : Status();
}

Status Engine::runNow(uint64_t id) {
  while (!done(id))
    FP4_TRY(runStage(id));
  return {};
}

Status Engine::finish(uint64_t id) {
  auto node = inFlight.extract(id);
  Ticket &ticket = node.mapped();
  for (const SharedRange &range : ticket.sharedWrites)
    owner.ctaOfSharedAddress(range.address)
        ->shared.markValid(range.address & kSharedOffsetMask, range.bytes);
  for (const TmemCells &cells : ticket.tmemWrites)
    state(cells.rank).tmem.written(cells.range, id);
  if (!ticket.registerWrites.empty() && ticket.engine != EngineKind::TmemLoad)
    warpOf(ticket).loadsInFlight -= uint32_t(
        std::erase_if(unwaitedLoads, [&](const UnwaitedLoad &load) { return load.id == id; }));
  ++owner.tickets;
  event(ticket, TicketState::Completed);
  // Signals come last: whoever waits for them finds the data valid.
  if (ticket.signal)
    if (Status status = ticket.signal(ticket); !status)
      return tl::unexpected(located(ticket, std::move(status.error())));
  return {};
}

bool Engine::sourceRead(uint64_t id) const {
  auto it = inFlight.find(id);
  return it == inFlight.end() || it->second.stagesDone > 0;
}

Status Engine::ctaExited(Cta &cta) {
  // Arrivals that nobody waits for any more are harmless, and stores still read shared memory after
  // the last thread has left (CUTLASS ends kernels so): let them happen while the CTA is there.
  const auto mayOutlive = [](const Ticket &ticket) {
    const bool copy = ticket.engine == EngineKind::Tma || ticket.engine == EngineKind::Bulk;
    return ticket.engine == EngineKind::Commit ||
           (copy && ticket.sharedWrites.empty() && ticket.signals.empty());
  };
  leaving = &cta;
  for (uint64_t id : readyTickets())
    if (!done(id) && mayOutlive(inFlight.at(id)) && ready(inFlight.at(id)))
      FP4_TRY(runNow(id));
  leaving = nullptr;
  const uint32_t bit = 1u << cta.rank;
  for (const auto &[id, ticket] : inFlight) {
    bool touches = ticket.stagesDone == 0 && (ticket.sharedReads & bit);
    for (const SharedRange &range : ticket.sharedWrites)
      touches |= range.address >> kSharedRankShift == cta.rank;
    for (const TmemCells &cells : ticket.tmemWrites)
      touches |= cells.rank == cta.rank;
    for (uint32_t address : ticket.signals)
      touches |= address >> kSharedRankShift == cta.rank;
    if (touches)
      return tl::unexpected(located(
          ticket,
          {ErrorKind::Simulation,
           fmt::format("CTA ({},{},{}) exits while this operation is in flight to its memory",
                       cta.index[0], cta.index[1], cta.index[2]),
           "wait for its completion before the last thread exits"}));
  }
  const TensorMemory &tmem = state(cta.rank).tmem;
  if (!tmem.allocations().empty())
    return fail(fmt::format("CTA ({},{},{}) exits with tensor memory allocated: {}", cta.index[0],
                            cta.index[1], cta.index[2], tmem.describeAllocations()),
                "every tcgen05.alloc needs a tcgen05.dealloc of the same columns");
  return {};
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

namespace {

/// Whether an operand names a register of the ranges.
bool names(const Operand &o, const std::vector<RegisterRange> &ranges, const Kernel &kernel) {
  if (o.kind == OperandKind::Vector) {
    const Operand *elements = kernel.operandPool.data() + o.offset;
    return std::any_of(elements, elements + o.imm,
                       [&](const Operand &e) { return names(e, ranges, kernel); });
  }
  if ((o.kind != OperandKind::Reg && o.kind != OperandKind::Address) || o.bank != kRegBank)
    return false;
  const uint32_t end = o.offset + 32u * o.width;
  return std::any_of(ranges.begin(), ranges.end(), [&](const RegisterRange &range) {
    return o.offset < range.end && range.begin < end;
  });
}

} // namespace

void Engine::watchRegisters(Warp &warp) {
  if (state(warp.cta->rank).wgmmaRegisters.try_emplace(warp.index).second)
    ++warp.loadsInFlight; // for as long as the warp lives
}

Status Engine::useRegisters(const Warp &warp, const Insn &insn) {
  auto &watched = state(warp.cta->rank).wgmmaRegisters;
  if (auto it = watched.find(warp.index); it != watched.end() && !isWgmma(insn.handler)) {
    const Kernel &kernel = *owner.launch->kernel;
    it->second.use(insn, kernel.operandPool.data(), uint32_t(&insn - kernel.code.data()),
                   opcodeTable()[insn.row].base == "mov");
  }
  for (size_t i = 0; i < unwaitedLoads.size();) {
    const UnwaitedLoad &load = unwaitedLoads[i];
    const bool used = load.warp == &warp && load.chained != insn.handler &&
                      std::any_of(insn.op.begin(), insn.op.end(), [&](const Operand &o) {
                        return names(o, load.registers, *owner.launch->kernel);
                      });
    if (!used) {
      ++i;
      continue;
    }
    const uint64_t id = load.id;
    // Nothing waits for a wgmma but wgmma.wait_group.
    if (owner.launch->options->judgement == Judgement::Letter || load.engine == EngineKind::Wgmma)
      return fail(
          fmt::format("uses a register of the {} of line {} before it is known to be written",
                      stringify(load.engine), load.insn->line),
          load.engine == EngineKind::Wgmma ? "execute wgmma.wait_group first"
                                           : "execute tcgen05.wait::ld first");
    if (!done(id))
      FP4_TRY(runNow(id));
    if (Observer *observer = owner.launch->observer)
      observer->onFence({{uint32_t(owner.index), warp.cta->rank, warp.index, 0},
                         {0, insn.line},
                         FenceKind::TicketWaited,
                         MemOrder::AcqRel,
                         Scope::Cta,
                         Space::Tmem,
                         warp.live,
                         id});
    unwaitedLoads.erase(unwaitedLoads.begin() + ptrdiff_t(i));
    --owner.ctas[warp.cta->rank]->warps[warp.index].loadsInFlight;
  }
  return {};
}

void Engine::loadsWaited(Warp &warp) {
  warp.loadsInFlight -= uint32_t(std::erase_if(unwaitedLoads, [&](const UnwaitedLoad &load) {
    return load.warp == &warp && load.engine == EngineKind::TmemLoad;
  }));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Status Engine::checkShared(uint32_t address, uint32_t bytes) const {
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

Expected<const std::byte *> Engine::sharedSource(uint32_t address, uint32_t bytes,
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
      return fail(fmt::format("reads shared memory at {:#x} that was never written", bad->offset));
    if (bad->ticket && bad->ticket < reader.id)
      return fail(fmt::format("reads shared memory at {:#x} too early: {} has still to write it",
                              bad->offset, describeTicket(bad->ticket)),
                  "wait on its mbarrier first");
    at = bad->offset + 1; // what a later ticket will overwrite still holds the old data
  }
  return shared.at(offset);
}

Expected<std::byte *> Engine::sharedDestination(uint32_t address, uint32_t bytes) {
  FP4_TRY(checkShared(address, bytes));
  return owner.ctaOfSharedAddress(address)->shared.at(address & kSharedOffsetMask);
}

Status Engine::checkCells(uint32_t rank, const TmemRange &range, uint64_t reader,
                          std::string_view what) {
  TensorMemory &tmem = state(rank).tmem;
  FP4_TRY(tmem.checkAllocated(range));
  const auto bad = tmem.firstBad(range, reader);
  if (!bad)
    return {};
  if (bad->ticket)
    return fail(fmt::format("reads {} in tensor memory at lane {}, column {} too early: {} has "
                            "still to write it",
                            what, bad->lane, bad->column, describeTicket(bad->ticket)));
  if (owner.launch->options->uninitializedReads == UninitializedReads::Ignore)
    return {};
  return fail(fmt::format("reads {} in tensor memory at lane {}, column {} that was never written",
                          what, bad->lane, bad->column));
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

Expected<Mbarrier *> Engine::mbarrier(uint32_t address) {
  FP4_TRY(checkShared(address, 8));
  return state(address >> kSharedRankShift).mbarriers.find(address & kSharedOffsetMask);
}

Status Engine::completeTx(uint32_t address, uint64_t bytes, const Ticket &ticket) {
  auto barrier = mbarrier(address);
  if (!barrier)
    return tl::unexpected(barrier.error());
  MbarrierTable &table = state(address >> kSharedRankShift).mbarriers;
  emit(ticket.agent(owner), ticket.at(), BarrierOp::MbarCompleteTx, address, bytes);
  auto phases = table.completeTx(**barrier, bytes, {ticket.agent(owner), ticket.at()});
  if (!phases)
    return tl::unexpected(phases.error());
  emitPhase(ticket.agent(owner), ticket.at(), address, **barrier, *phases);
  return {};
}

Status Engine::arrive(uint32_t address, const Ticket &ticket) {
  auto barrier = mbarrier(address);
  if (!barrier)
    return tl::unexpected(barrier.error());
  MbarrierTable &table = state(address >> kSharedRankShift).mbarriers;
  emit(ticket.agent(owner), ticket.at(), BarrierOp::MbarArrive, address, 1, MemOrder::Release,
       Scope::Cluster);
  auto phases = table.arrive(**barrier, 1, {ticket.agent(owner), ticket.at()});
  if (!phases)
    return tl::unexpected(phases.error());
  emitPhase(ticket.agent(owner), ticket.at(), address, **barrier, *phases);
  return {};
}

void Engine::emit(const Agent &agent, CodePoint at, BarrierOp op, uint32_t address, uint64_t count,
                  MemOrder order, Scope scope, uint32_t lanes) {
  owner.changes += op != BarrierOp::MbarWaitPass;
  if (Observer *observer = owner.launch->observer)
    observer->onBarrier({agent, at, op, address, count, lanes, order, scope});
}

void Engine::emitPhase(const Agent &agent, CodePoint at, uint32_t address, const Mbarrier &barrier,
                       PhasesDone phases) {
  if (phases)
    emit(agent, at, BarrierOp::MbarPhaseDone, address, barrier.phase - 1);
}

void Engine::emitAccess(const Ticket &ticket, AccessKind kind, Space space, uint64_t address,
                        uint32_t bytes, Proxy proxy) {
  Observer *observer = owner.launch->observer;
  if (!observer)
    return;
  MemoryEvent event{ticket.agent(owner), ticket.at(), kind, space, proxy};
  event.laneMask = 1;
  event.bytes = bytes;
  event.contiguous = true;
  event.addresses = &address;
  observer->onMemory(event);
}

void Engine::emitTmem(const Ticket &ticket, AccessKind kind, const TmemCells &cells) {
  Observer *observer = owner.launch->observer;
  if (!observer)
    return;
  const uint64_t address = hw::TmemAddress{cells.range.lane, cells.range.column}.pack();
  MemoryEvent event{ticket.agent(owner), ticket.at(), kind, Space::Tmem, Proxy::Tcgen05};
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

void Engine::publish(const Thread &thread) {
  for (auto &[id, ticket] : inFlight)
    ticket.published |= ticket.issuer == thread;
}

void Engine::acquire(const Thread &thread) {
  std::vector<uint64_t> &ids = acquiredTickets[thread];
  ids.clear();
  for (const auto &[id, ticket] : inFlight)
    if (ticket.published)
      ids.push_back(id);
}

const std::vector<uint64_t> &Engine::acquired(const Thread &thread) const {
  static const std::vector<uint64_t> none;
  auto it = acquiredTickets.find(thread);
  return it == acquiredTickets.end() ? none : it->second;
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

std::string Engine::describeTicket(uint64_t id) const {
  auto it = inFlight.find(id);
  if (it == inFlight.end())
    return fmt::format("ticket {}", id);
  const Ticket &ticket = it->second;
  return fmt::format("ticket {} ('{}', line {}, issued by warp {} of CTA rank {})", id,
                     trimmed(owner.launch->program->shownLine(ticket.insn->line)),
                     ticket.insn->line, ticket.issuer.warp, ticket.issuer.rank);
}

Error Engine::located(const Ticket &ticket, Error error) const {
  const Cta &cta = *owner.ctas[ticket.issuer.rank];
  error.message = fmt::format(
      "{}: {}: {}",
      describeLocation(*owner.launch, cta, ticket.issuer.warp, ticket.issuer.lane, *ticket.insn),
      stringify(ticket.engine), error.message);
  return error;
}

bool TicketWait::ready() const {
  return std::all_of(ids.begin(), ids.end(), [&](uint64_t id) {
    return readOnly ? engine.sourceRead(id) : engine.done(id);
  });
}

std::string TicketWait::describe() const {
  for (uint64_t id : ids)
    if (!engine.done(id))
      return fmt::format("{}: {}", what, engine.describeTicket(id));
  return what;
}

} // namespace fp4::sim
