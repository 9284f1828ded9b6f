//===- MemoryAccess.cpp - Events of generic-proxy accesses ----------------===//
#include "Sim/Insn/Memory/MemoryAccess.h"
#include "fp4/Sim/Events/MemoryEvent.h"
#include "fp4/Sim/Observer.h"

using namespace fp4::sim;

static MemoryEvent eventOf(ExecContext &cx, AccessKind kind, const MemoryAccess &access) {
  MemoryEvent event;
  event.actor = cx.actor();
  event.at = cx.here();
  event.kind = kind;
  event.order = access.order;
  event.scope = access.scope;
  event.bytes = access.bytes;
  event.unchanged = access.unchanged;
  return event;
}

static bool observable(Space space) { return space != Space::Local && space != Space::Param; }

/// One event for each space that the generic addresses turn out to name.
static void reportGeneric(ExecContext &cx, const LaneAddresses &lanes, MemoryEvent event) {
  uint64_t addresses[32] = {};
  Space spaces[32];
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    ExecContext::Place place = cx.place(Space::Generic, lanes.of(uint64_t(lane), event.bytes));
    addresses[lane] = place.address;
    spaces[lane] = place.space;
  }
  event.addresses = addresses;
  for (uint32_t left = cx.mask; left; left &= ~event.laneMask) {
    event.space = spaces[std::countr_zero(left)];
    event.laneMask = 0;
    for (uint32_t rest = left; rest; rest &= rest - 1)
      if (spaces[std::countr_zero(rest)] == event.space)
        event.laneMask |= rest & (0 - rest);
    if (observable(event.space))
      cx.observer->onMemory(event);
  }
}

void fp4::sim::reportAccess(ExecContext &cx, const LaneAddresses &lanes, AccessKind kind,
                            const MemoryAccess &access) {
  if (!observable(access.space))
    return;
  MemoryEvent event = eventOf(cx, kind, access);
  const bool global = access.space == Space::Generic && lanes.high < kSharedWindow;
  if (access.space == Space::Generic && !global)
    return reportGeneric(cx, lanes, event);
  event.space = global || access.space == Space::Const ? Space::Global
                : access.space == Space::SharedCta     ? Space::SharedCluster
                                                       : access.space;
  event.laneMask = cx.mask;
  event.contiguous = lanes.contiguous;
  event.uniform = lanes.uniform;
  event.addresses = lanes.v;
  cx.observer->onMemory(event);
}
