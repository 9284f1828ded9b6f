//===- Tcgen05Alloc.cpp - Tensor memory management ------------------------===//
//
// PTX ISA, "tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit". Whole warps, lanes
// converged. With cta_group::2 each CTA of the pair allocates in its own tensor memory; the
// collective wait for the peer is not modelled. Insn::m: 0 space, 1 cta_group.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/AsyncOperands.h"

#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {
namespace {

/// Ready when enough contiguous columns are free.
class AllocationWait final : public Wait {
public:
  AllocationWait(const TensorMemory &tmem, uint32_t columns) : tmem(tmem), columns(columns) {}
  bool ready() const override { return tmem.available(columns); }
  std::string describe() const override {
    return fmt::format("{} free columns of tensor memory ({})", columns,
                       tmem.describeAllocations());
  }

private:
  const TensorMemory &tmem;
  uint32_t columns;
};

void emitLife(ExecContext &cx, LifeOp op, uint64_t object, uint64_t count) {
  if (cx.observer)
    cx.observer->onLife({cx.agent(), cx.here(), op, cx.mask, object, count});
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

Outcome alloc(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  TensorMemory &tmem = Engine::of(cx).state(cx.cta().rank).tmem;
  uint32_t columns, address;
  if (!uniform(cx, insn.op[1], "number of columns", columns))
    return Outcome::Error;
  const int lane = cx.firstLane();
  if (!sharedAddress(cx, Space(insn.m[0]), insn.op[0], lane, address))
    return Outcome::Error;
  auto column = tmem.allocate({0, columns, cx.agent(), cx.here(), insn.m[1]});
  if (!column)
    return failHere(cx, std::move(column.error()));
  if (!*column)
    return cx.block(std::make_unique<AllocationWait>(tmem, columns));
  const uint32_t result = hw::TmemAddress{0, **column}.pack();
  std::byte *to = cx.writable(Space::SharedCluster, address, 4, 4, lane);
  if (!to)
    return Outcome::Error;
  std::memcpy(to, &result, 4);
  if (cx.observer) {
    uint64_t addresses[32] = {};
    addresses[lane] = address;
    MemoryEvent event{cx.agent(), cx.here(), AccessKind::Write, Space::SharedCluster};
    event.laneMask = 1u << lane;
    event.bytes = 4;
    event.addresses = addresses;
    cx.observer->onMemory(event);
  }
  emitLife(cx, LifeOp::TmemAlloc, result, columns);
  return Outcome::Next;
}

Outcome dealloc(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  uint32_t address, columns;
  if (!uniform(cx, insn.op[0], "tensor memory address", address) ||
      !uniform(cx, insn.op[1], "number of columns", columns))
    return Outcome::Error;
  Engine &engine = Engine::of(cx);
  const Status status = engine.state(cx.cta().rank).tmem.deallocate(address, columns, insn.m[1]);
  if (!status)
    return failHere(cx, status.error());
  emitLife(cx, LifeOp::TmemDealloc, address, columns);
  return Outcome::Next;
}

Outcome relinquish(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  if (Status status = Engine::of(cx).state(cx.cta().rank).tmem.relinquish(); !status)
    return failHere(cx, std::move(status.error()));
  emitLife(cx, LifeOp::TmemRelinquish, 0, 0);
  return Outcome::Next;
}

void decode(BindContext &bind) {
  bind.insn.m[0] = uint8_t(spaceFromText(bind.match.text("space")));
  bind.insn.m[1] = bind.match.text("group") == "cta_group::2" ? 2 : 1;
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
