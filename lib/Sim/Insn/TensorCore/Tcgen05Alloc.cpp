//===- Tcgen05Alloc.cpp - Tensor memory management ------------------------===//
//
// PTX ISA, "tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit". Whole warps, lanes
// converged. With cta_group::2 a warp of each CTA of the pair allocates (or frees) together: the
// first waits for the other.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/TensorCore/Tcgen05.h"
#include "fp4/Sim/Events/LifeEvent.h"
#include "fp4/Sim/Events/MemoryEvent.h"
#include "fp4/Sim/Observer.h"

#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {
namespace {

/// Ready when enough contiguous columns are free.
class AllocationWait final : public Wait {
public:
  AllocationWait(const TensorMemory &tmem, const TensorMemory::Allocation &request)
      : tmem(tmem), request(request) {}
  bool ready() const override { return tmem.available(request); }
  bool awaitsClusters() const override { return tmem.shared(); }
  std::string describe() const override {
    const std::string others = tmem.describeOthers(request.ctaGroup);
    return fmt::format("{} free columns of tensor memory{} ({}{})", request.columns,
                       request.exclusive ? " that nobody else has a part of" : "",
                       tmem.describeAllocations(),
                       others.empty() ? "; nobody else has any: a tcgen05.dealloc is missing"
                                      : "; of the same SM " + others);
  }

private:
  const TensorMemory &tmem;
  TensorMemory::Allocation request;
};

/// Ready when a warp of the peer CTA has made its part of the call.
class PeerWait final : public Wait {
public:
  PeerWait(const std::vector<PairCall> &theirs, size_t index, std::string what)
      : theirs(theirs), index(index), what(std::move(what)) {}
  bool ready() const override { return theirs.size() > index; }
  std::string describe() const override { return what; }

private:
  const std::vector<PairCall> &theirs;
  size_t index;
  std::string what;
};

/// With cta_group::2: whether the peer made the same call as its next. If not, `outcome` says what
/// to return. The token is the number of the call until `paired` is set back.
bool paired(ExecContext &cx, const Insn &insn, const PairCall &call, Outcome &outcome) {
  if (insn.as<TmemAllocModifiers>().ctaGroup == 1)
    return true;
  outcome = Outcome::Error;
  if (groupRanks(cx, 2).empty())
    return false;
  const uint32_t rank = cx.cta().rank;
  auto &calls = TicketQueue::of(cx).pairCalls(rank / 2);
  auto &mine = calls[rank % 2], &theirs = calls[1 - rank % 2];
  if (!cx.token) {
    mine.push_back(call);
    cx.token = mine.size();
    cx.cluster().policy->touches(Policy::Shared::PairCalls, Policy::Touch::Arrive, rank,
                                 mine.size());
  }
  const size_t index = cx.token - 1;
  const std::string name = fmt::format("tcgen05.{}.cta_group::2", call.what);
  if (theirs.size() <= index) {
    outcome = cx.block(std::make_unique<PeerWait>(
        theirs, index,
        fmt::format("a warp of the peer CTA, rank {}, to execute {} too", rank ^ 1, name)));
    return false;
  }
  cx.cluster().policy->touches(Policy::Shared::PairCalls, Policy::Touch::Await, rank ^ 1,
                               cx.token);
  if (theirs[index] == call)
    return true;
  cx.fail(fmt::format("{} of {} columns, but the peer CTA executes tcgen05.{} of {} columns", name,
                      call.columns, theirs[index].what, theirs[index].columns),
          "a warp of each CTA of the pair must make the same calls in the same order");
  return false;
}

void emitLife(ExecContext &cx, LifeOp op, uint64_t object, uint64_t count) {
  if (cx.observer)
    cx.observer->onLife({cx.actor(), cx.here(), op, cx.mask, object, count});
}

/// A value that must be the same in all lanes.
bool uniform(ExecContext &cx, const Operand &o, std::string_view what, uint32_t &value) {
  value = static_cast<uint32_t>(cx.scalar(o));
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1)
    if (uint32_t(cx.scalar(o, std::countr_zero(rest))) != value) {
      cx.fail(fmt::format("expects the same {} in all lanes, but got {:#x} and {:#x}", what, value,
                          uint32_t(cx.scalar(o, std::countr_zero(rest)))));
      return false;
    }
  return true;
}

/// Other CTAs of the SM shall allocate too before this one allocates again.
Outcome endTurn(ExecContext &cx) {
  const SmColumns *columns = cx.launch().sm.columns.get();
  cx.cluster().turnIsOver = columns && columns->takesTurns;
  return cx.cluster().turnIsOver ? Outcome::Yield : Outcome::Next;
}

Outcome alloc(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  const auto &how = insn.as<TmemAllocModifiers>();
  TensorMemory &tmem = TicketQueue::of(cx).state(cx.cta().rank).tmem;
  uint32_t columns, address;
  if (!uniform(cx, insn.op[1], "number of columns", columns))
    return Outcome::Error;
  Outcome outcome;
  if (!paired(cx, insn, {"alloc", columns}, outcome))
    return outcome;
  const int lane = cx.firstLane();
  if (!sharedAddress(cx, how.space, insn.op[0], lane, address))
    return Outcome::Error;
  const TensorMemory::Allocation request{0,         columns,      cx.actor(),
                                         cx.here(), how.ctaGroup, how.exclusive};
  auto column = tmem.allocate(request);
  if (!column)
    return failHere(cx, std::move(column.error()));
  if (!*column)
    return cx.block(std::make_unique<AllocationWait>(tmem, request));
  cx.token = 0;
  const uint32_t result = hw::TmemAddress{0, **column}.pack();
  std::byte *to = cx.writable(Space::SharedCluster, address, 4, 4, lane);
  if (!to)
    return Outcome::Error;
  std::memcpy(to, &result, 4);
  if (cx.observer) {
    uint64_t addresses[32] = {};
    addresses[lane] = address;
    MemoryEvent event{cx.actor(), cx.here(), AccessKind::Write, Space::SharedCluster};
    event.laneMask = 1u << lane;
    event.bytes = 4;
    event.addresses = addresses;
    cx.observer->onMemory(event);
  }
  emitLife(cx, LifeOp::TmemAlloc, result, columns);
  return endTurn(cx);
}

Outcome dealloc(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  uint32_t address, columns;
  if (!uniform(cx, insn.op[0], "tensor memory address", address) ||
      !uniform(cx, insn.op[1], "number of columns", columns))
    return Outcome::Error;
  Outcome outcome;
  if (!paired(cx, insn, {"dealloc", columns}, outcome))
    return outcome;
  cx.token = 0;
  TicketQueue &queue = TicketQueue::of(cx);
  const auto &how = insn.as<TmemAllocModifiers>();
  const Status status =
      queue.state(cx.cta().rank).tmem.deallocate(address, columns, how.ctaGroup, how.exclusive);
  if (!status)
    return failHere(cx, status.error());
  emitLife(cx, LifeOp::TmemDealloc, address, columns);
  return Outcome::Next;
}

Outcome relinquish(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  if (Status status = TicketQueue::of(cx).state(cx.cta().rank).tmem.relinquish(); !status)
    return failHere(cx, std::move(status.error()));
  emitLife(cx, LifeOp::TmemRelinquish, 0, 0);
  return Outcome::Next;
}

void decode(BindContext &bind) {
  bind.insn.make<TmemAllocModifiers>(
      {spaceFromText(bind.match.text("space")), ctaGroupOf(bind), bind.match.has("exclusive")});
}

} // namespace

Status bindTcgen05Alloc(BindContext &bind) {
  decode(bind);
  return bind.use(alloc);
}
Status bindTcgen05Dealloc(BindContext &bind) {
  decode(bind);
  return bind.use(dealloc);
}
Status bindTcgen05Relinquish(BindContext &bind) {
  decode(bind);
  return bind.use(relinquish);
}

} // namespace fp4::sim
