//===- Tcgen05Sync.cpp - tcgen05 fences, waits and commit -----------------===//
//
// PTX ISA, "tcgen05.fence", "tcgen05.wait" and "tcgen05.commit".
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/TensorCore/Tcgen05.h"
#include "fp4/Sim/Events/FenceEvent.h"
#include "fp4/Sim/Observer.h"

namespace fp4::sim {
namespace {

void emitFence(ExecContext &cx, FenceKind kind) {
  if (cx.observer)
    cx.observer->onFence(
        {cx.actor(), cx.here(), kind, MemOrder::AcqRel, Scope::Cta, Space::Tmem, cx.mask});
}

/// Orders asynchronous tcgen05 operations and thread synchronization: see TicketQueue::publish.
Outcome fence(ExecContext &cx, const Insn &insn) {
  TicketQueue &queue = TicketQueue::of(cx);
  const bool after = insn.as<Tcgen05FenceModifiers>().after;
  for (uint32_t rest = queue.tickets().empty() ? 0 : cx.mask; rest; rest &= rest - 1) {
    const Thread thread{cx.cta().rank, cx.warp().index, std::countr_zero(rest)};
    after ? queue.acquire(thread) : queue.publish(thread);
  }
  emitFence(cx, after ? FenceKind::Tcgen05After : FenceKind::Tcgen05Before);
  return Outcome::Next;
}

/// Blocks until every earlier tcgen05.ld (or st) of the warp is done.
Outcome wait(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  TicketQueue &queue = TicketQueue::of(cx);
  const bool stores = insn.as<Tcgen05WaitModifiers>().stores;
  const TicketKind kind = stores ? TicketKind::TmemStore : TicketKind::TmemLoad;
  std::vector<uint64_t> waits;
  for (const auto &[id, ticket] : queue.tickets())
    if (ticket.kind == kind && ticket.issuer.rank == cx.cta().rank &&
        ticket.issuer.warp == cx.warp().index)
      waits.push_back(id);
  if (!waits.empty())
    return cx.block(std::make_unique<TicketWait>(queue, std::move(waits),
                                                 stores ? "its tcgen05.st (tcgen05.wait::st)"
                                                        : "its tcgen05.ld (tcgen05.wait::ld)"));
  if (!stores)
    queue.loadsWaited(cx.warp());
  emitFence(cx, stores ? FenceKind::Tcgen05WaitSt : FenceKind::Tcgen05WaitLd);
  return Outcome::Next;
}

/// Publishes like fence::before_thread_sync. One arrival on the mbarrier, or on the one at its
/// offset in every CTA of the mask, when all earlier mma, cp and shift of the thread with this
/// cta_group are done. Commits of a thread happen in order.
Outcome commit(ExecContext &cx, const Insn &insn) {
  TicketQueue &queue = TicketQueue::of(cx);
  const auto &how = insn.as<Tcgen05CommitModifiers>();
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    uint32_t address;
    if (!sharedAddress(cx, how.space, insn.op[0], lane, address))
      return Outcome::Error;
    Ticket ticket = queue.makeTicket(cx, insn, TicketKind::Commit, lane);
    queue.publish(ticket.issuer);
    ticket.tcgen05.ctaGroup = how.ctaGroup;
    for (const auto &[id, other] : queue.tickets())
      if (other.issuer == ticket.issuer && other.tcgen05.ctaGroup == ticket.tcgen05.ctaGroup &&
          (other.tcgen05.pipelined || other.kind == TicketKind::Commit))
        ticket.after.push_back(id);
    uint32_t ranks =
        how.multicast ? uint32_t(cx.scalar(insn.op[1], lane)) : 1u << (address >> kSharedRankShift);
    for (; ranks; ranks &= ranks - 1) {
      const uint32_t target =
          uint32_t(std::countr_zero(ranks)) << kSharedRankShift | (address & kSharedOffsetMask);
      if (auto barrier = queue.mbarrier(target); !barrier)
        return failHere(cx, std::move(barrier.error()), lane);
      ticket.signals.push_back(target);
    }
    ticket.signal = [&queue](const Ticket &self) -> Status {
      for (uint32_t target : self.signals)
        FP4_TRY(queue.arrive(target, self));
      return {};
    };
    if (Status status = queue.issue(std::move(ticket)); !status)
      return cx.fail(std::move(status.error()));
  }
  return Outcome::Next;
}

} // namespace

Status bindTcgen05Fence(BindContext &bind) {
  bind.insn.make<Tcgen05FenceModifiers>({bind.match.text("which") == "fence::after_thread_sync"});
  return bind.use(fence);
}
Status bindTcgen05Wait(BindContext &bind) {
  bind.insn.make<Tcgen05WaitModifiers>({bind.match.text("which") == "wait::st"});
  return bind.use(wait);
}
Status bindTcgen05Commit(BindContext &bind) {
  bind.insn.make<Tcgen05CommitModifiers>(
      {spaceFromText(bind.match.text("space")), ctaGroupOf(bind), bind.match.has("multicast")});
  return bind.use(commit);
}

} // namespace fp4::sim
