//===- AsyncCopy.cpp - cp.async without bulk ------------------------------===//
//
// PTX ISA, "Data Movement: cp.async". Each lane copies 4, 8 or 16 bytes from global to
// shared memory of its CTA; bytes beyond the source size are zero. One ticket holds the
// copies of a warp; each thread has groups of its own. Checkers see the accesses at the
// place of the instruction, in the generic proxy; data that is used before the wait shows as
// poison.
//===----------------------------------------------------------------------===//
#include "Sim/Insn/Copy/AsyncOperands.h"
#include "Sim/Insn/Memory/MemoryAccess.h"
#include "fp4/Sim/Events/FenceEvent.h"
#include "fp4/Sim/Observer.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {
namespace {

/// The copy of one lane.
struct LaneCopy {
  uint32_t shared = 0;
  uint64_t global = 0;
  uint32_t bytes = 0, sourceBytes = 0;
};

/// Calls f(groups) for those of the executing lanes.
template <typename F> void forGroups(ExecContext &cx, F &&f) {
  TicketQueue::of(cx).state(cx.cta().rank).copyGroups[cx.warp().index].forLanes(cx.mask, f);
}

bool laneCopy(ExecContext &cx, const Insn &insn, int lane, LaneCopy &out) {
  const auto &copy = insn.as<LaneCopyModifiers>();
  out.bytes = out.sourceBytes = copy.bytes;
  if (!sharedAddress(cx, Space::SharedCta, insn.op[0], lane, out.shared))
    return false;
  out.global = cx.address(insn.op[1], lane);
  if (copy.sourceSize)
    out.sourceBytes = uint32_t(cx.scalar(insn.op[copy.sourceSize], lane));
  if (copy.ignoreSource && (cx.predicate(insn.op[copy.ignoreSource]) >> lane & 1))
    out.sourceBytes = 0;
  if (out.sourceBytes > out.bytes)
    return cx.fail(fmt::format("copies {} bytes, but the source size is {}", out.bytes,
                               out.sourceBytes),
                   "", lane),
           false;
  if (out.shared % out.bytes || out.global % out.bytes)
    return cx.fail(fmt::format("copies {} bytes from {:#x} to shared {:#x}: both addresses must be "
                               "multiples of {}",
                               out.bytes, out.global, out.shared, out.bytes),
                   "", lane),
           false;
  if (out.sourceBytes && !cx.readable(Space::Global, out.global, out.sourceBytes, 1, lane))
    return false;
  return true;
}

/// Neighbours become one range.
void addRange(std::vector<SharedRange> &ranges, const LaneCopy &copy) {
  if (!ranges.empty() && ranges.back().address + ranges.back().bytes == copy.shared)
    ranges.back().bytes += copy.bytes;
  else
    ranges.push_back({copy.shared, copy.bytes});
}

/// The reads of the active lanes, which may copy less than they fill; what the ticket writes its
/// event says.
void report(ExecContext &cx, const Insn &insn, const std::vector<LaneCopy> &copies) {
  if (!cx.observer)
    return;
  uint32_t lanesOf[17] = {}; // by the bytes that they read
  auto copy = copies.begin();
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1)
    lanesOf[(copy++)->sourceBytes] |= rest & (0 - rest);
  const uint32_t all = cx.mask;
  for (uint32_t bytes = 1; bytes < std::size(lanesOf); ++bytes) {
    cx.mask = lanesOf[bytes];
    if (cx.mask)
      reportAccess(cx, LaneAddresses(cx, insn.op[1], bytes), AccessKind::Read,
                   {Space::Global, MemOrder::Weak, Scope::None, bytes});
  }
  cx.mask = all;
}

Outcome copyAsync(ExecContext &cx, const Insn &insn) {
  TicketQueue &queue = TicketQueue::of(cx);
  Ticket ticket = queue.makeTicket(cx, insn, TicketKind::ThreadCopy, cx.firstLane());
  ticket.proxy = Proxy::Generic;
  std::vector<LaneCopy> copies;
  copies.reserve(32);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    LaneCopy copy;
    if (!laneCopy(cx, insn, std::countr_zero(rest), copy))
      return Outcome::Error;
    addRange(ticket.writes.shared, copy);
    copies.push_back(copy);
  }
  report(cx, insn, copies);
  ticket.stages.push_back([&queue, copies = std::move(copies)](const Ticket &) -> Status {
    for (const LaneCopy &copy : copies) {
      FP4_ASSIGN(auto to, queue.sharedDestination(copy.shared, copy.bytes));
      std::memset(to, 0, copy.bytes);
      if (!copy.sourceBytes)
        continue;
      FP4_ASSIGN(auto from, globalBytes(queue, copy.global, copy.sourceBytes, false));
      std::memcpy(to, from, copy.sourceBytes);
    }
    return {};
  });
  forGroups(cx, [&](BulkGroups &groups) { groups.open.push_back(ticket.id); });
  return finish(cx, queue.issue(std::move(ticket)));
}

Outcome commitGroup(ExecContext &cx, const Insn &) {
  forGroups(cx, [](BulkGroups &groups) {
    groups.committed.push_back(std::move(groups.open));
    groups.open.clear();
  });
  return Outcome::Next;
}

/// Calls f(ticket) for the copies of all but the `keep` newest groups of the executing lanes, and
/// with `all` for those of the open one.
template <typename F> void forCopies(ExecContext &cx, uint64_t keep, bool all, F &&f) {
  forGroups(cx, [&](const BulkGroups &groups) {
    for (size_t i = 0; i + keep < groups.committed.size(); ++i)
      std::for_each(groups.committed[i].begin(), groups.committed[i].end(), f);
    if (all)
      std::for_each(groups.open.begin(), groups.open.end(), f);
  });
}

/// Returns the tickets of copies in flight.
std::vector<uint64_t> pendingCopies(ExecContext &cx, uint64_t keep, bool all) {
  std::vector<uint64_t> waits;
  forCopies(cx, keep, all, [&](uint64_t id) {
    if (!TicketQueue::of(cx).done(id))
      waits.push_back(id);
  });
  std::sort(waits.begin(), waits.end());
  waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
  return waits;
}

/// The groups that were waited for are gone; the observer hears of each of their copies once. The
/// groups that are kept stay, done or not: nobody has waited for them.
void forgetCopies(ExecContext &cx, uint64_t keep, bool all) {
  std::vector<uint64_t> done;
  forCopies(cx, keep, all, [&](uint64_t id) { done.push_back(id); });
  std::sort(done.begin(), done.end());
  done.erase(std::unique(done.begin(), done.end()), done.end());
  for (uint64_t id : done)
    emitWaited(cx, id);
  forGroups(cx, [&](BulkGroups &groups) {
    const size_t kept = std::min<size_t>(keep, groups.committed.size());
    groups.committed.erase(groups.committed.begin(), groups.committed.end() - ptrdiff_t(kept));
    if (all)
      groups.open.clear();
  });
}

/// cp.async.wait_group N and cp.async.wait_all.
Outcome waitGroup(ExecContext &cx, const Insn &insn) {
  const bool all = insn.as<CopyWaitModifiers>().all;
  const uint64_t keep = all ? 0 : uint64_t(insn.op[0].imm);
  std::vector<uint64_t> waits = pendingCopies(cx, keep, all);
  if (waits.empty()) {
    forgetCopies(cx, keep, all);
    return Outcome::Next;
  }
  return cx.block(std::make_unique<TicketWait>(TicketQueue::of(cx), std::move(waits),
                                               "the copies of cp.async.wait_group"));
}

/// cp.async.mbarrier.arrive: an arrival of each lane when its copies so far are done. Without
/// .noinc the phase expects that arrival in addition.
Outcome arriveWhenCopied(ExecContext &cx, const Insn &insn) {
  TicketQueue &queue = TicketQueue::of(cx);
  const auto &how = insn.as<CopyArriveModifiers>();
  const uint32_t all = cx.mask;
  Status status;
  for (uint32_t rest = all; rest && status; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    uint32_t address = 0;
    if (!sharedAddress(cx, how.space, insn.op[0], lane, address))
      return Outcome::Error;
    auto barrier = queue.mbarrier(address);
    if (!barrier)
      return failHere(cx, std::move(barrier.error()), lane);
    if (!how.noIncrement)
      ++(*barrier)->pending;
    Ticket ticket = queue.makeTicket(cx, insn, TicketKind::ThreadCopy, lane);
    ticket.proxy = Proxy::Generic;
    cx.mask = 1u << lane;
    ticket.after = pendingCopies(cx, 0, true);
    cx.mask = all;
    ticket.signals.push_back(address);
    ticket.stages.push_back([](const Ticket &) -> Status { return {}; });
    ticket.signal = [&queue, address](const Ticket &self) { return queue.arrive(address, self); };
    status = queue.issue(std::move(ticket));
  }
  return finish(cx, std::move(status));
}

} // namespace

void emitWaited(ExecContext &cx, uint64_t ticket) {
  if (cx.observer)
    cx.observer->onFence({cx.actor(), cx.here(), FenceKind::TicketWaited, MemOrder::AcqRel,
                          Scope::Cta, Space::Generic, cx.mask, ticket});
}

Status bindCopyAsync(BindContext &bind) {
  Insn &insn = bind.insn;
  const int64_t bytes = insn.op[2].imm;
  const bool wide = bind.match.text("cop") == "cg";
  if (bytes != 16 && (wide || (bytes != 4 && bytes != 8)))
    return bind.fail(
        fmt::format("copies {} bytes per lane, but got {}", wide ? "16" : "4, 8 or 16", bytes));
  auto &copy = insn.make<LaneCopyModifiers>({uint8_t(bytes)});
  const Operand &third = insn.op[3];
  if (third.kind == OperandKind::Pred)
    copy.ignoreSource = 3;
  else if (third && third.width == 4) // of 8 bytes it is the cache policy
    copy.sourceSize = 3;
  return bind.use(copyAsync);
}
Status bindCopyCommit(BindContext &bind) { return bind.use(commitGroup); }
Status bindCopyWait(BindContext &bind) {
  bind.insn.make<CopyWaitModifiers>({.all = false});
  return bind.use(waitGroup);
}
Status bindCopyWaitAll(BindContext &bind) {
  bind.insn.make<CopyWaitModifiers>({.all = true});
  return bind.use(waitGroup);
}
Status bindCopyArrive(BindContext &bind) {
  bind.insn.make<CopyArriveModifiers>(
      {spaceFromText(bind.match.text("space")), bind.match.has("noinc")});
  return bind.use(arriveWhenCopied);
}

} // namespace fp4::sim
