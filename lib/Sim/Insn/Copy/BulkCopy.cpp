//===- BulkCopy.cpp - cp.async.bulk and bulk groups -----------------------===//
//
// PTX ISA, "Data Movement and Conversion Instructions: Bulk copy". One contiguous run of bytes per
// active lane.
//
//===----------------------------------------------------------------------===//
#include "Sim/Async/Reduction.h"
#include "Sim/Insn/Copy/AsyncOperands.h"
#include "fp4/Sim/Events/BarrierEvent.h"
#include "fp4/Sim/Events/FenceEvent.h"
#include "fp4/Sim/Observer.h"

#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {

void registerInGroup(TicketQueue &queue, Ticket &ticket) {
  ticket.bulkGroup = true;
  queue.state(ticket.issuer.rank).bulkGroups[ticket.issuer].open.push_back(ticket.id);
}

Expected<std::byte *> globalBytes(TicketQueue &queue, uint64_t address, uint64_t bytes,
                                  bool toWrite) {
  GlobalMemory &memory = *queue.cluster().launch->memory;
  if (toWrite)
    memory.aboutToWrite(address, bytes);
  if (std::byte *data = memory.translate(address, bytes))
    return data;
  return makeError(ErrorKind::Simulation, memory.explain(address, bytes));
}

Status checkDestinationBarrier(TicketQueue &queue, uint32_t barrier, uint32_t destination,
                               bool pair) {
  const uint32_t rank = barrier >> kSharedRankShift, dest = destination >> kSharedRankShift;
  if (rank != dest && !(pair && (rank ^ 1) == dest))
    return makeError(ErrorKind::Simulation,
                     fmt::format("expects an mbarrier of the destination's CTA (rank {}), but got "
                                 "one of rank {}",
                                 dest, rank),
                     "only .cta_group::2 may signal the other CTA of the pair");
  if (auto object = queue.mbarrier(barrier); !object)
    return tl::unexpected(std::move(object.error()));
  return {};
}

namespace {

constexpr uint32_t bulkUnit = 16; ///< bytes: alignment and granularity of bulk copies

bool multiple(ExecContext &cx, std::string_view what, uint64_t value, int lane) {
  if (value % bulkUnit == 0)
    return true;
  cx.fail(fmt::format("cp.async.bulk expects {} that is a multiple of {} bytes, but got {:#x}",
                      what, bulkUnit, value),
          "", lane);
  return false;
}

/// Addresses and size of one lane's copy, checked. A global address is resolved from generic.
struct Run {
  uint64_t global = 0;
  uint32_t shared = 0, shared2 = 0, barrier = 0;
  uint32_t bytes = 0;
  uint32_t ignoredFirst = 0, ignoredLast = 0; ///< bytes at the ends that are not read
};

bool globalOperand(ExecContext &cx, const Operand &o, int lane, uint64_t &address) {
  const auto place = cx.place(Space::Global, cx.address(o, lane));
  address = place.address;
  return multiple(cx, "a global address", address, lane);
}

bool sizeOperand(ExecContext &cx, const Operand &o, int lane, uint32_t &bytes) {
  bytes = static_cast<uint32_t>(cx.scalar(o, lane));
  return multiple(cx, "a size", bytes, lane);
}

bool sharedOperand(ExecContext &cx, Space space, const Operand &o, int lane, uint32_t &address) {
  return sharedAddress(cx, space, o, lane, address) &&
         multiple(cx, "a shared memory address", address, lane);
}

/// Bytes that were not read have no value where they would have been written.
void markIgnored(TicketQueue &queue, const Run &run) {
  SharedMemory &shared = queue.cluster().ctaOfSharedAddress(run.shared)->shared;
  const uint32_t offset = run.shared & kSharedOffsetMask;
  if (run.bytes && run.ignoredFirst)
    shared.markUninitialized(offset, run.ignoredFirst);
  if (run.bytes && run.ignoredLast)
    shared.markUninitialized(offset + run.bytes - run.ignoredLast, run.ignoredLast);
}

/// One ticket of a load: `bytes` from global memory to one CTA.
Ticket loadTicket(ExecContext &cx, const Insn &insn, int lane, const Run &run) {
  TicketQueue &queue = TicketQueue::of(cx);
  Ticket ticket = queue.makeTicket(cx, insn, TicketKind::Bulk, lane);
  if (run.bytes)
    ticket.writes.shared.push_back({run.shared, run.bytes});
  ticket.signals.push_back(run.barrier);
  ticket.work.global.push_back({run.global, run.bytes});
  ticket.stages.push_back([&queue, run](const Ticket &self) -> Status {
    if (!run.bytes)
      return {};
    const uint32_t read = run.bytes - std::min(run.bytes, run.ignoredFirst + run.ignoredLast);
    FP4_ASSIGN(auto to, queue.sharedDestination(run.shared, run.bytes));
    if (read) {
      const uint64_t first = run.global + run.ignoredFirst;
      FP4_ASSIGN(auto from, globalBytes(queue, first, read, false));
      std::memcpy(to + run.ignoredFirst, from, read);
      queue.emitAccess(self, AccessKind::Read, Space::Global, first, read, Proxy::Async);
    }
    queue.emitAccess(self, AccessKind::Write, Space::SharedCluster, run.shared, run.bytes,
                     Proxy::Async);
    return {};
  });
  ticket.signal = [&queue, run](const Ticket &self) {
    markIgnored(queue, run);
    return queue.completeTx(run.barrier, run.bytes, self);
  };
  return ticket;
}

/// Reads the operands of .ignore_oob, 0 to 15 bytes each.
bool ignoredOperands(ExecContext &cx, const Insn &insn, int lane, Run &run) {
  if (!insn.as<BulkModifiers>().ignoresEnds)
    return true;
  run.ignoredFirst = uint32_t(cx.scalar(insn.op[3], lane));
  run.ignoredLast = uint32_t(cx.scalar(insn.op[4], lane));
  if (std::max(run.ignoredFirst, run.ignoredLast) < bulkUnit)
    return true;
  cx.fail(fmt::format(".ignore_oob expects 0 to {} bytes at either end, but got {} and {}",
                      bulkUnit - 1, run.ignoredFirst, run.ignoredLast),
          "", lane);
  return false;
}

/// PTX ISA, "cp.async.bulk": global to shared::cta or shared::cluster, with multicast.
Outcome bulkLoad(ExecContext &cx, const Insn &insn) {
  TicketQueue &queue = TicketQueue::of(cx);
  const auto &how = insn.as<BulkModifiers>();
  const Space space = how.toOwnCta ? Space::SharedCta : Space::SharedCluster;
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Run run;
    if (!sharedOperand(cx, space, insn.op[0], lane, run.shared) ||
        !globalOperand(cx, insn.op[1], lane, run.global) ||
        !sizeOperand(cx, insn.op[2], lane, run.bytes) || !ignoredOperands(cx, insn, lane, run) ||
        !sharedAddress(cx, space, insn.op[how.ignoresEnds ? 5 : 3], lane, run.barrier))
      return Outcome::Error;
    const uint32_t own = 1u << (run.shared >> kSharedRankShift);
    uint32_t ranks = how.multicast ? uint32_t(cx.scalar(insn.op[4], lane)) : own;
    for (; ranks; ranks &= ranks - 1) {
      Run one = run;
      const uint32_t rank = uint32_t(std::countr_zero(ranks)) << kSharedRankShift;
      if (how.multicast) {
        one.shared = rank | (run.shared & kSharedOffsetMask);
        one.barrier = rank | (run.barrier & kSharedOffsetMask);
      }
      if (Status status = checkDestinationBarrier(queue, one.barrier, one.shared, false); !status)
        return failHere(cx, std::move(status.error()), lane);
      if (Status status = queue.issue(loadTicket(cx, insn, lane, one)); !status)
        return cx.fail(std::move(status.error()));
    }
  }
  return Outcome::Next;
}

void maskedCopy(std::byte *to, const std::byte *from, uint32_t bytes, uint32_t byteMask) {
  for (uint32_t i = 0; i < bytes; ++i)
    if (byteMask >> (i % bulkUnit) & 1)
      to[i] = from[i];
}

/// The effect of a copy on its destination: it writes it, whole or in part, or combines with it.
struct Combine {
  explicit Combine(const BulkModifiers &how)
      : reduce(how.reduction ? reduction(*how.reduction, how.type, how.keepsSubnormals) : nullptr),
        width(how.reduction ? bytesOf(how.type) : 1) {}

  void operator()(std::byte *to, const std::byte *from, uint32_t bytes) const {
    if (reduce)
      return reduce(to, from, bytes / width);
    if (byteMask == 0xFFFF)
      std::memmove(to, from, bytes);
    else
      maskedCopy(to, from, bytes, byteMask);
  }
  AccessKind access() const { return reduce ? AccessKind::Atomic : AccessKind::Write; }

  ReduceFn reduce;
  uint32_t width;
  uint32_t byteMask = 0xFFFF; ///< mask of the bytes that are copied, of every 16
};

Ticket sharedTicket(ExecContext &cx, const Insn &insn, int lane, const Run &run) {
  TicketQueue &queue = TicketQueue::of(cx);
  Ticket ticket = queue.makeTicket(cx, insn, TicketKind::Bulk, lane);
  const Combine combine(insn.as<BulkModifiers>());
  ticket.work.bytes = run.bytes;
  ticket.sharedReads = 1u << (run.shared2 >> kSharedRankShift);
  if (run.bytes && !combine.reduce)
    ticket.writes.shared.push_back({run.shared, run.bytes});
  ticket.signals.push_back(run.barrier);
  ticket.stages.push_back([&queue, run, combine](const Ticket &self) -> Status {
    if (!run.bytes)
      return {};
    FP4_TRY(queue.checkShared(run.shared2, run.bytes)); // observers see what can be
    queue.emitAccess(self, AccessKind::Read, Space::SharedCluster, run.shared2, run.bytes,
                     Proxy::Async);
    FP4_ASSIGN(auto from, queue.sharedSource(run.shared2, run.bytes, self));
    FP4_ASSIGN(auto to, queue.sharedDestination(run.shared, run.bytes));
    combine(to, from, run.bytes);
    queue.emitAccess(self, combine.access(), Space::SharedCluster, run.shared, run.bytes,
                     Proxy::Async);
    return {};
  });
  ticket.signal = [&queue, run](const Ticket &self) {
    return queue.completeTx(run.barrier, run.bytes, self);
  };
  return ticket;
}

/// PTX ISA, "cp.async.bulk" and "cp.reduce.async.bulk": shared::cta to shared::cluster.
Outcome bulkShared(ExecContext &cx, const Insn &insn) {
  TicketQueue &queue = TicketQueue::of(cx);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Run run;
    if (!sharedOperand(cx, Space::SharedCluster, insn.op[0], lane, run.shared) ||
        !sharedOperand(cx, Space::SharedCta, insn.op[1], lane, run.shared2) ||
        !sizeOperand(cx, insn.op[2], lane, run.bytes) ||
        !sharedAddress(cx, Space::SharedCluster, insn.op[3], lane, run.barrier))
      return Outcome::Error;
    if (Status status = checkDestinationBarrier(queue, run.barrier, run.shared, false); !status)
      return failHere(cx, std::move(status.error()), lane);
    if (Status status = queue.issue(sharedTicket(cx, insn, lane, run)); !status)
      return cx.fail(std::move(status.error()));
  }
  return Outcome::Next;
}

Ticket storeTicket(ExecContext &cx, const Insn &insn, int lane, const Run &run) {
  TicketQueue &queue = TicketQueue::of(cx);
  Ticket ticket = queue.makeTicket(cx, insn, TicketKind::Bulk, lane);
  ticket.engine = Engine::BulkStore;
  ticket.work.bytes = run.bytes;
  ticket.work.global.push_back({run.global, run.bytes});
  const auto &how = insn.as<BulkModifiers>();
  Combine combine(how);
  if (how.byteMask)
    combine.byteMask = uint32_t(cx.scalar(insn.op[how.byteMask], lane));
  ticket.sharedReads = 1u << (run.shared >> kSharedRankShift);
  auto data = std::make_shared<std::vector<std::byte>>();
  ticket.stages.push_back([&queue, run, data](const Ticket &self) -> Status {
    if (!run.bytes)
      return {};
    FP4_TRY(queue.checkShared(run.shared, run.bytes)); // observers see what can be
    queue.emitAccess(self, AccessKind::Read, Space::SharedCluster, run.shared, run.bytes,
                     Proxy::Async);
    FP4_ASSIGN(auto from, queue.sharedSource(run.shared, run.bytes, self));
    data->assign(from, from + run.bytes);
    return {};
  });
  ticket.stages.push_back([&queue, run, data, combine](const Ticket &self) -> Status {
    if (!run.bytes)
      return {};
    FP4_ASSIGN(auto to, globalBytes(queue, run.global, run.bytes, true));
    const bool same = !combine.reduce && std::memcmp(to, data->data(), run.bytes) == 0;
    combine(to, data->data(), run.bytes);
    queue.emitAccess(self, combine.access(), Space::Global, run.global, run.bytes, Proxy::Async,
                     same);
    return {};
  });
  return ticket;
}

/// PTX ISA, "cp.async.bulk" and "cp.reduce.async.bulk": shared::cta to global, in a bulk group.
Outcome bulkStore(ExecContext &cx, const Insn &insn) {
  TicketQueue &queue = TicketQueue::of(cx);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Run run;
    if (!globalOperand(cx, insn.op[0], lane, run.global) ||
        !sharedOperand(cx, Space::SharedCta, insn.op[1], lane, run.shared) ||
        !sizeOperand(cx, insn.op[2], lane, run.bytes))
      return Outcome::Error;
    Ticket ticket = storeTicket(cx, insn, lane, run);
    registerInGroup(queue, ticket);
    if (Status status = queue.issue(std::move(ticket)); !status)
      return cx.fail(std::move(status.error()));
  }
  return Outcome::Next;
}

/// PTX ISA, "cp.async.bulk.prefetch": checks its operands. Only a policy that predicts time has a
/// cache to fill.
Outcome bulkPrefetch(ExecContext &cx, const Insn &insn) {
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Run run;
    if (!globalOperand(cx, insn.op[0], lane, run.global) ||
        !sizeOperand(cx, insn.op[1], lane, run.bytes))
      return Outcome::Error;
    if (auto data = globalBytes(TicketQueue::of(cx), run.global, run.bytes, false);
        run.bytes && !data)
      return failHere(cx, std::move(data.error()), lane);
    const GlobalRun bytes{run.global, run.bytes};
    cx.cluster().policy->prefetched(cx.cta().rank, {&bytes, 1});
  }
  return Outcome::Next;
}

void emitGroupFence(ExecContext &cx, FenceKind kind, uint64_t pendingGroups, bool readOnly) {
  if (cx.observer)
    cx.observer->onFence({cx.actor(), cx.here(), kind, MemOrder::Acquire, Scope::Cta,
                          Space::Generic, cx.mask, pendingGroups, readOnly});
}

/// PTX ISA, "cp.async.bulk.commit_group".
Outcome bulkCommitGroup(ExecContext &cx, const Insn &insn) {
  CtaAsync &state = TicketQueue::of(cx).state(cx.cta().rank);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    BulkGroups &groups = state.bulkGroups[{cx.cta().rank, cx.warp().index, std::countr_zero(rest)}];
    groups.committed.push_back(std::move(groups.open));
    groups.open.clear();
  }
  emitGroupFence(cx, FenceKind::BulkCommit, 0, false);
  return Outcome::Next;
}

/// PTX ISA, "cp.async.bulk.wait_group": all but the N newest groups; .read: only their sources.
Outcome bulkWaitGroup(ExecContext &cx, const Insn &insn) {
  TicketQueue &queue = TicketQueue::of(cx);
  CtaAsync &state = queue.state(cx.cta().rank);
  const bool read = insn.as<BulkWaitModifiers>().read;
  std::vector<uint64_t> waits;
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    auto it = state.bulkGroups.find({cx.cta().rank, cx.warp().index, std::countr_zero(rest)});
    if (it == state.bulkGroups.end())
      continue;
    auto &groups = it->second.committed;
    for (size_t i = 0; i + uint64_t(insn.op[0].imm) < groups.size(); ++i)
      for (uint64_t id : groups[i])
        if (read ? !queue.sourceRead(id) : !queue.done(id))
          waits.push_back(id);
    while (!groups.empty() && std::all_of(groups.front().begin(), groups.front().end(),
                                          [&](uint64_t id) { return queue.done(id); }))
      groups.pop_front();
  }
  if (!waits.empty())
    return cx.block(std::make_unique<TicketWait>(
        queue, std::move(waits), "the bulk copies of cp.async.bulk.wait_group", read));
  emitGroupFence(cx, FenceKind::BulkWait, uint64_t(insn.op[0].imm), read);
  return Outcome::Next;
}

Status decodeReduction(BindContext &bind) {
  const Type type = bind.match.type();
  const ReductionOp op = reductionFromText(bind.match.text("op"));
  const bool noftz = bind.match.has("noftz");
  bind.insn.make<BulkModifiers>(
      {.reduction = op, .type = type, .keepsSubnormals = noftz && type == Type::F32});
  if (!reduction(op, type))
    return bind.fail(fmt::format("cp.reduce.async.bulk has no .{} on .{}", bind.match.text("op"),
                                 spelling(type)));
  const bool half = type == Type::F16 || type == Type::BF16;
  if (half && bind.match.text("op") == "add" && !bind.match.has("noftz"))
    return bind.fail(".add on .f16 and .bf16 expects .noftz");
  if (noftz && type == Type::F32 && op != ReductionOp::Add)
    return bind.fail(".noftz on .f32 expects .add");
  return {};
}

} // namespace

Status bindBulkLoad(BindContext &bind) {
  auto &how = bind.insn.make<BulkModifiers>();
  how.toOwnCta = bind.match.text("dst") == "shared::cta";
  how.multicast = bind.match.has("multicast::cluster") || bind.match.has("multicast::cluster::32b");
  how.ignoresEnds = bind.match.has("ignore_oob");
  return bind.use(bulkLoad);
}
Status bindBulkShared(BindContext &bind) {
  bind.insn.make<BulkModifiers>();
  return bind.use(bulkShared);
}
Status bindBulkStore(BindContext &bind) {
  auto &how = bind.insn.make<BulkModifiers>();
  if (bind.match.has("cp_mask"))
    how.byteMask = bind.match.has("L2::cache_hint") ? 4 : 3;
  return bind.use(bulkStore);
}
Status bindBulkReduceStore(BindContext &bind) {
  FP4_TRY(decodeReduction(bind));
  return bind.use(bulkStore);
}
Status bindBulkReduceShared(BindContext &bind) {
  FP4_TRY(decodeReduction(bind));
  return bind.use(bulkShared);
}
Status bindBulkPrefetch(BindContext &bind) { return bind.use(bulkPrefetch); }
Status bindBulkCommitGroup(BindContext &bind) { return bind.use(bulkCommitGroup); }
Status bindBulkWaitGroup(BindContext &bind) {
  bind.insn.make<BulkWaitModifiers>({bind.match.has("read")});
  return bind.use(bulkWaitGroup);
}

} // namespace fp4::sim
