//===- OrderRecorder.cpp - Footprint of the step that executes ------------===//
#include "Sim/Orders/OrderRecorder.h"
#include "Sim/Async/TicketQueue.h"
#include "Sim/Decode/OpcodeTable.h"
#include "fp4/Sim/Events.h"
#include <algorithm>
#include <bit>
#include <cstring>

namespace fp4::sim {
namespace {

// The space of all memories: global addresses as they are, the others above them.
constexpr uint64_t kSharedBytes = 1ull << 60, kTensorCells = 2ull << 60;

constexpr uint64_t sharedByte(uint64_t cluster, uint64_t address) {
  return kSharedBytes | cluster << 32 | address;
}

Process warpOf(const Actor &actor) { return warpProcess(actor.cluster, actor.ctaRank, actor.warp); }

uint32_t rankOf(uint64_t address) { return uint32_t(address) >> kSharedRankShift; }

void forLanes(uint32_t mask, auto body) {
  for (; mask; mask &= mask - 1)
    body(uint32_t(std::countr_zero(mask)));
}

bool isShared(Space space) { return space == Space::SharedCta || space == Space::SharedCluster; }

} // namespace

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void OrderRecorder::begin(const Kernel &running, const std::map<uint64_t, Cluster *> &all) {
  kernel = &running;
  clusters = &all;
  issued.clear();
  names.clear();
  tickets.clear();
  unwaited.clear();
  groups.clear();
  copies.clear();
  pipelines.clear();
  inOrder.clear();
  published.clear();
  acquired.clear();
  pastAt = {};
  unused.clear();
  countsPending = std::ranges::any_of(running.code, [](const Insn &insn) {
    return opcodeTable()[insn.row].base == "mbarrier.pending_count";
  });
}

void OrderRecorder::beginStep(Process process) {
  step = Footprint();
  step.ticket = isTicket(process);
  step.visible = step.ticket; // one stage, whatever it touches
  running = process;
  ends = looks = touchedHere = false;
  rangesEarlier = {};
  atomics.clear();
}

void OrderRecorder::endStep() {
  // arrive.expect_tx is one operation on its mbarrier, and commutes as an arrival does.
  std::erase_if(step.objects, [all = step.objects](const ObjectAccess &access) {
    return access.use == ObjectUse::Expect &&
           std::ranges::any_of(all, [&](const ObjectAccess &other) {
             return other.use == ObjectUse::Arrive && other.object == access.object;
           });
  });
  for (const Atomic &atomic : atomics) {
    const auto &[begin, end] = atomic.range;
    const bool changed = std::memcmp(atomic.at, atomic.before.data(), end - begin) != 0;
    step.add(changed ? ByteUse::Write : ByteUse::Read, begin, end);
    looks |= !changed;
  }
  for (uint8_t use = 0; use < kByteUses; ++use)
    step.earlier[use].assign(step.bytes[use].begin(),
                             step.bytes[use].begin() + ptrdiff_t(rangesEarlier[use]));
  step.normalize();
}

/// The instruction does something that others could notice.
void OrderRecorder::noticed(bool endsStep) {
  if (!touchedHere)
    rangesEarlier = rangesBefore;
  step.visible += !touchedHere;
  touchedHere = true;
  ends |= endsStep;
}

void OrderRecorder::touch(ObjectKind kind, ObjectUse use, uint64_t cluster, uint32_t index,
                          uint64_t phase) {
  step.objects.push_back({objectId(kind, cluster, index), phase, use});
  noticed(true);
}

uint64_t OrderRecorder::ticketOf(Process process) const {
  const auto found = tickets.find(process);
  return found == tickets.end() ? 0 : found->second;
}

Process OrderRecorder::processOf(uint64_t cluster, uint64_t ticket) const {
  const auto found = names.find({cluster, ticket});
  return found == names.end() ? 0 : found->second;
}

/// An operation, or a warp of another CTA, uses memory of the CTA: it must not have exited.
void OrderRecorder::touchLife(uint64_t cluster, uint32_t rank) {
  if (isTicket(running) || (running >> 32 & 0xFF) != rank || running >> 40 != cluster) {
    const ObjectAccess life{objectId(ObjectKind::CtaLife, cluster, rank), 0, ObjectUse::Read};
    for (const ObjectAccess &known : step.objects)
      if (known.object == life.object)
        return;
    step.objects.push_back(life);
  }
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Returns true when nothing mentions the register that the atomic returns to: then it is a
/// reduction.
bool OrderRecorder::isUnused(uint32_t pc) {
  const auto [known, fresh] = unused.try_emplace(pc, false);
  if (!fresh)
    return known->second;
  const Operand &result = kernel->code[pc].op[0];
  size_t mentions = 0;
  const auto count = [&](const Operand &operand) {
    const bool isRegister = operand && operand.kind != OperandKind::Vector;
    mentions += isRegister && operand.bank == kRegBank && operand.offset == result.offset;
  };
  for (const Insn &insn : kernel->code) {
    std::ranges::for_each(insn.op, count);
    mentions += insn.guard == result.offset;
  }
  std::ranges::for_each(kernel->operandPool, count);
  return known->second = result.kind == OperandKind::Reg && mentions == 1;
}

/// red.add of integers and the like leave the same result in any order.
ByteUse OrderRecorder::useOf(const MemoryEvent &event) {
  if (event.kind == AccessKind::Read)
    return ByteUse::Read;
  const Insn &insn = kernel->code[event.at.pc];
  const auto *atomic = insn.get<AtomicModifiers>();
  if (!atomic || event.kind == AccessKind::Write || event.actor.ticket)
    return ByteUse::Write;
  const AtomicOp op = atomic->op;
  if (op == AtomicOp::Exch || op >= AtomicOp::Inc || (op == AtomicOp::Add && isFloat(insn.type)))
    return ByteUse::Write;
  const std::string_view base = opcodeTable()[insn.row].base;
  const bool orders = event.order != MemOrder::Weak && event.order != MemOrder::Relaxed;
  if (base != "red" && (base != "atom" || orders || !isUnused(event.at.pc)))
    return ByteUse::Write;
  if (const auto known = reductions.find({op, insn.type}); known != reductions.end())
    return known->second;
  const size_t next = size_t(ByteUse::Reduce) + reductions.size();
  if (next >= kByteUses)
    return ByteUse::Write;
  return reductions[{op, insn.type}] = ByteUse(next);
}

void OrderRecorder::touchBytes(const MemoryEvent &event, ByteUse use) {
  const uint64_t base = isShared(event.space) ? sharedByte(event.actor.cluster, 0) : 0;
  if (event.contiguous) {
    const auto first = unsigned(std::countr_zero(event.laneMask)),
               last = 31u - unsigned(std::countl_zero(event.laneMask));
    return step.add(use, base + event.addressOf(first), base + event.addressOf(last) + event.bytes);
  }
  for (uint32_t rest = event.laneMask; rest; rest &= rest - 1) {
    const uint64_t address = base + event.addressOf(unsigned(std::countr_zero(rest)));
    step.add(use, address, address + event.bytes);
    if (event.uniform)
      return;
  }
}

/// Notes an atomic before it happens. For memory that does not exist, an error follows.
void OrderRecorder::noteAtomic(const MemoryEvent &event) {
  const bool shared = isShared(event.space);
  const Cluster &own = cluster(event.actor.cluster);
  for (uint32_t rest = event.laneMask; rest; rest &= rest - 1) {
    const uint64_t address = event.addressOf(unsigned(std::countr_zero(rest)));
    const uint32_t rank = shared ? rankOf(address) : 0;
    const std::byte *at = nullptr;
    if (!shared)
      at = own.launch->memory->translate(address, event.bytes);
    else if (const auto offset = uint32_t(address & kSharedOffsetMask);
             rank < own.ctas.size() && own.ctas[rank]->shared.contains(offset, event.bytes))
      at = own.ctas[rank]->shared.at(offset);
    if (!at || event.bytes > sizeof(Atomic::before))
      continue;
    const uint64_t begin = shared ? sharedByte(event.actor.cluster, address) : address;
    Atomic &atomic = atomics.emplace_back(Atomic{{begin, begin + event.bytes}, at, {}});
    std::memcpy(atomic.before.data(), at, event.bytes);
  }
}

/// Sixteen lanes are told apart from the next: those of a warp are 32, and an access with the
/// shapes of 16 lanes has half of them.
void OrderRecorder::touchCells(ByteUse use, uint64_t cluster, uint32_t rank, uint32_t address,
                               uint32_t lanes, uint32_t columns) {
  constexpr uint32_t partLanes = 16;
  const uint32_t lane = address >> 16, column = address & 0xFFFF;
  const uint64_t base = kTensorCells | cluster << 32 | uint64_t(rank) << 16;
  for (uint32_t part = lane / partLanes; part * partLanes < lane + lanes; ++part) {
    const uint64_t first = base + part * TensorMemory::pitch + column;
    step.add(use, first, first + columns);
  }
  touchLife(cluster, rank);
}

void OrderRecorder::onMemory(const MemoryEvent &event) {
  if (!event.laneMask)
    return;
  const ByteUse use = useOf(event);
  lanesReading |= use == ByteUse::Read ? event.laneMask : 0;
  if (event.space == Space::Tmem) {
    if (use != ByteUse::Read) // told when it is issued; what an operation lists when it is done
      return;
    touchCells(use, event.actor.cluster, event.tmemRank, uint32_t(event.addressOf(0)),
               event.tmemLanes, event.bytes / 4);
  } else {
    const bool atomic = event.kind == AccessKind::Atomic && !event.actor.ticket;
    if (atomic && use == ByteUse::Write && event.bytes <= sizeof(Atomic::before))
      noteAtomic(event);
    else
      touchBytes(event, use);
    if (isShared(event.space))
      touchLife(event.actor.cluster,
                rankOf(event.addressOf(uint32_t(std::countr_zero(event.laneMask)))));
  }
  const bool strong = event.kind == AccessKind::Atomic || event.order != MemOrder::Weak;
  looks |= strong && event.kind == AccessKind::Read;
  noticed(everyAccess || strong);
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

void OrderRecorder::touchMbarrier(uint64_t index, uint32_t address, ObjectUse use) {
  auto &queue = static_cast<TicketQueue &>(*cluster(index).async);
  const Mbarrier *barrier =
      queue.state(rankOf(address)).mbarriers.lookup(address & kSharedOffsetMask);
  touch(ObjectKind::Mbarrier, use, index, address, barrier ? barrier->phase : 0);
  touchLife(index, rankOf(address));
}

void OrderRecorder::poll(uint64_t index, uint32_t mbarrier) {
  touchMbarrier(index, mbarrier, ObjectUse::Read);
  looks = true;
}

void OrderRecorder::onBarrier(const BarrierEvent &event) {
  const uint64_t index = event.actor.cluster;
  const auto barrier = uint32_t(event.actor.ctaRank << 8 | event.object);
  switch (event.op) {
  case BarrierOp::CtaArrive:
    return touch(ObjectKind::CtaBarrier, ObjectUse::Arrive, index, barrier, event.count);
  case BarrierOp::CtaPass:
    return touch(ObjectKind::CtaBarrier, ObjectUse::Await, index, barrier, event.count);
  case BarrierOp::ClusterArrive:
    return touch(ObjectKind::ClusterBarrier, ObjectUse::Arrive, index, 0, event.count);
  case BarrierOp::ClusterWait:
    return touch(ObjectKind::ClusterBarrier, ObjectUse::Await, index, 0, event.count - 1);
  case BarrierOp::MbarInit:
  case BarrierOp::MbarInval:
    return touchMbarrier(index, uint32_t(event.object), ObjectUse::Write);
  case BarrierOp::MbarArrive:
  case BarrierOp::MbarCompleteTx:
    return touchMbarrier(index, uint32_t(event.object),
                         countsPending ? ObjectUse::Write : ObjectUse::Arrive);
  case BarrierOp::MbarExpectTx:
    return touchMbarrier(index, uint32_t(event.object), ObjectUse::Expect);
  case BarrierOp::MbarPhaseDone:
    for (ObjectAccess &access : step.objects)
      if (access.object == objectId(ObjectKind::Mbarrier, index, uint32_t(event.object)))
        access.completes = true;
    return;
  case BarrierOp::MbarWaitPass: {
    const bool parity = kernel->code[event.at.pc].as<MbarrierModifiers>().parity;
    touchMbarrier(index, uint32_t(event.object), parity ? ObjectUse::Read : ObjectUse::Await);
    step.objects.back().passed = parity; // of the own CTA: nothing came after it
    if (!parity)
      step.objects.back().phase = event.count;
    return;
  }
  case BarrierOp::WarpSync:
  case BarrierOp::Exchange:
  case BarrierOp::Parted:
    return;
  }
}

//===----------------------------------------------------------------------===//
// Asynchronous operations
//===----------------------------------------------------------------------===//

void OrderRecorder::onTicket(const TicketEvent &event) {
  const uint64_t index = event.actor.cluster;
  if (event.state == TicketState::Completed) {
    if (const Process process = processOf(index, event.id); process != running)
      step.absorbed.push_back(process);
    return;
  }
  const Process warp = warpOf(event.actor), process = ticketProcess(warp, ++issued[warp]);
  names[{index, event.id}] = process;
  tickets[process] = event.id;
  step.issued.push_back(process);
  if (event.kind == TicketKind::TmemLoad || event.kind == TicketKind::TmemStore)
    unwaited[{warp, event.kind}].push_back(process);
  if (event.bulkGroup)
    groups[{warp, event.lane}].open.push_back(process);
  for (const SharedRange &range : event.writes)
    step.add(ByteUse::Poison, sharedByte(index, range.address),
             sharedByte(index, uint64_t(range.address) + range.bytes));
  if (event.kind == TicketKind::ThreadCopy)
    noteCopy(event, warp, process);
  orderInPipeline(event, warp, process);
  noticed(true);
  const auto *arrive = kernel->code[event.at.pc].get<CopyArriveModifiers>();
  const bool increments = arrive && !arrive->noIncrement;
  for (const uint32_t signal : event.signals)
    if (increments) // cp.async.mbarrier.arrive without .noinc
      touch(ObjectKind::Mbarrier, ObjectUse::Write, index, signal);
}

/// Copies of threads say when they are issued what they read: they read it when they are done. An
/// arrival comes behind all copies that its lane issued, those that are done already, too.
void OrderRecorder::noteCopy(const TicketEvent &event, Process warp, Process process) {
  auto &reads = step.bytes[uint8_t(ByteUse::Read)];
  ThreadCopy copy{warp, lanesReading, {}, {}, {}};
  copy.reads.assign(reads.begin() + ptrdiff_t(readsBefore), reads.end());
  reads.resize(readsBefore);
  for (const SharedRange &range : event.writes) {
    const uint64_t begin = sharedByte(event.actor.cluster, range.address);
    copy.writes.push_back({begin, begin + range.bytes});
  }
  for (const auto &[earlier, other] : copies)
    if (!event.signals.empty() && other.warp == warp && other.lanes >> event.lane & 1)
      copy.after.push_back(earlier);
  copies[process] = std::move(copy);
}

void OrderRecorder::touchCopy(Process ticket) {
  const auto found = copies.find(ticket);
  if (found == copies.end())
    return;
  for (const ByteRange &range : found->second.reads)
    step.add(ByteUse::Read, range.begin, range.end);
  for (const ByteRange &range : found->second.writes)
    step.add(ByteUse::Write, range.begin, range.end);
  for (const Process earlier : found->second.after)
    step.awaited.push_back({earlier});
}

/// A wgmma is to those of its warp what a tcgen05.mma is to those of its thread.
static std::optional<PipelinedOp> pipelinedOp(const TicketEvent &event) {
  return event.kind == TicketKind::Wgmma ? PipelinedOp{PipelinedOp::Mma, false, event.accumulator}
                                         : tcgen05Op(event);
}

/// Returns true when the CTAs of two warps, or their pairs, are one.
static bool isSameGroup(Process first, Process second, uint32_t ctaGroup) {
  const uint64_t ranks = (1ull << 32) * (ctaGroup - 1); // that a pair does not tell apart
  const auto group = [&](Process warp) { return (warp & ~ranks) >> 32; };
  return group(first) == group(second);
}

/// An operation of the tensor core comes after earlier ones of its thread in every order, also
/// where those are done when it is issued and it has nothing to wait for.
void OrderRecorder::orderInPipeline(const TicketEvent &event, Process warp, Process operation) {
  const std::optional<PipelinedOp> op = pipelinedOp(event);
  if (!op && event.kind != TicketKind::Commit)
    return;
  const uint32_t lane = event.kind == TicketKind::Wgmma ? 0 : event.lane; // MMAs of a warp
  Pipeline &pipeline = pipelines[{{warp, lane}, event.ctaGroup}];
  std::vector<Process> &before = inOrder[operation];
  for (const auto &[earlier, process] : pipeline.issued)
    if (!op || keepOrder(earlier, *op, /*textOnly=*/false))
      before.push_back(process);
  if (!op) {
    if (pipeline.commit)
      before.push_back(pipeline.commit);
    pipeline.commit = operation;
    return publish(warp, lane);
  }
  for (const Process earlier : acquired[{warp, lane}])
    if (const Published &other = published.at(earlier);
        other.ctaGroup == event.ctaGroup && isSameGroup(other.thread.first, warp, event.ctaGroup) &&
        keepOrder(other.op, *op, /*textOnly=*/false))
      before.push_back(earlier);
  // An operation that all later ones follow stands for those that it follows itself.
  const auto leads = [&](PipelinedOp::Kind kind) { return keepOrder(*op, {kind}, false); };
  if (leads(PipelinedOp::Mma) && leads(PipelinedOp::Copy) && leads(PipelinedOp::Shift))
    std::erase_if(pipeline.issued, [&](const auto &earlier) {
      return keepOrder(earlier.first, *op, /*textOnly=*/false);
    });
  pipeline.issued.push_back({*op, operation});
}

/// Operations so far are before those of threads that synchronize with this one.
void OrderRecorder::publish(Process warp, uint32_t lane) {
  for (const auto &[key, pipeline] : pipelines)
    if (key.first == ThreadKey{warp, lane})
      for (const auto &[op, process] : pipeline.issued)
        published.try_emplace(process, Published{op, key.first, key.second, trace->stepsOf(warp)});
}

/// Lets operations that others published come before all that the thread issues from here on, if
/// their steps come before this one.
void OrderRecorder::acquire(Process warp, uint32_t lane) {
  std::vector<Process> &operations = acquired[{warp, lane}];
  operations.clear();
  for (const auto &[operation, other] : published)
    if (other.thread != ThreadKey{warp, lane} && follows(warp, operation))
      operations.push_back(operation);
}

bool OrderRecorder::follows(Process warp, Process operation) {
  const auto other = published.find(operation);
  if (other == published.end())
    return false;
  const auto &[publisher, lane] = other->second.thread;
  if (publisher == warp)
    return true;
  size_t touched = step.objects.size() + step.awaited.size();
  for (const auto &ranges : step.bytes)
    touched += ranges.size();
  const auto here = std::tuple(warp, trace->size(), touched);
  if (here != pastAt) {
    past = trace->pastOf(warp, step);
    pastAt = here;
  }
  return trace->isIn(past, publisher, other->second.steps);
}

void OrderRecorder::awaitPipeline(Process ticket) {
  if (const auto found = inOrder.find(ticket); found != inOrder.end())
    for (const Process earlier : found->second)
      step.awaited.push_back({earlier});
}

void OrderRecorder::waitForKind(Process warp, TicketKind kind) {
  for (const Process ticket : unwaited[{warp, kind}])
    step.awaited.push_back({ticket});
  unwaited[{warp, kind}].clear();
  noticed(true);
}

void OrderRecorder::waitForGroups(const FenceEvent &event) {
  for (uint32_t rest = event.laneMask; rest; rest &= rest - 1) {
    auto &committed = groups[{warpOf(event.actor), uint32_t(std::countr_zero(rest))}].committed;
    for (size_t i = 0; i + event.groups < committed.size(); ++i)
      for (const Process ticket : committed[i])
        step.awaited.push_back({ticket, event.readOnly ? 0 : ~0u});
  }
  noticed(true);
}

void OrderRecorder::onFence(const FenceEvent &event) {
  const Process warp = warpOf(event.actor);
  switch (event.kind) {
  case FenceKind::Tcgen05WaitLd:
    return waitForKind(warp, TicketKind::TmemLoad);
  case FenceKind::Tcgen05WaitSt:
    return waitForKind(warp, TicketKind::TmemStore);
  case FenceKind::TicketWaited:
    step.awaited.push_back({processOf(event.actor.cluster, event.groups)});
    return noticed(true);
  case FenceKind::Tcgen05Before:
    return forLanes(event.laneMask, [&](uint32_t lane) { publish(warp, lane); });
  case FenceKind::Tcgen05After:
    return forLanes(event.laneMask, [&](uint32_t lane) { acquire(warp, lane); });
  case FenceKind::BulkCommit:
    return forLanes(event.laneMask, [&](uint32_t lane) {
      Groups &own = groups[{warp, lane}];
      own.committed.push_back(std::move(own.open));
      own.open.clear();
    });
  case FenceKind::BulkWait:
    return waitForGroups(event);
  default:
    return;
  }
}

/// Barriers that wait for all threads no longer wait for these.
void OrderRecorder::exitWarp(uint64_t index, uint32_t rank) {
  touch(ObjectKind::CtaExits, ObjectUse::Arrive, index, rank);
  const Cluster &all = cluster(index);
  const auto &barriers = all.ctas[rank]->barriers;
  for (uint32_t i = 0; i < barriers.size(); ++i)
    if (barriers[i].arrived && !barriers[i].expected)
      touch(ObjectKind::CtaBarrier, ObjectUse::Arrive, index, rank << 8 | i,
            barriers[i].generation);
  if (all.barrier.arrived)
    touch(ObjectKind::ClusterBarrier, ObjectUse::Arrive, index, 0, all.barrier.generation);
}

void OrderRecorder::onLife(const LifeEvent &event) {
  const uint64_t index = event.actor.cluster;
  const uint32_t rank = event.actor.ctaRank;
  switch (event.op) {
  case LifeOp::WarpExit:
    return exitWarp(index, rank);
  case LifeOp::CtaExit:
    touch(ObjectKind::CtaExits, ObjectUse::Await, index, rank);
    return touch(ObjectKind::CtaLife, ObjectUse::Write, index, rank);
  case LifeOp::CtaStart:
  case LifeOp::ClusterEnd:
    return;
  case LifeOp::TmemAlloc:
  case LifeOp::TmemDealloc:
  case LifeOp::TmemRelinquish:
    return touch(ObjectKind::TensorColumns, ObjectUse::Write, index, rank);
  }
}

} // namespace fp4::sim
