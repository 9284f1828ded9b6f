//===- MemoryAccess.cpp - Events of generic-proxy accesses ----------------===//
#include "Sim/Insn/MemoryAccess.h"

using namespace fp4::sim;

void fp4::sim::reportAccess(ExecContext &cx, const Operand &address, AccessKind kind,
                            const MemoryAccess &access) {
  uint64_t addresses[32] = {};
  Space spaces[32];
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    ExecContext::Place place = cx.place(access.space, cx.address(address, lane));
    addresses[lane] = place.address;
    spaces[lane] = place.space;
  }
  for (uint32_t left = cx.mask; left;) {
    Space space = spaces[std::countr_zero(left)];
    MemoryEvent event;
    event.agent = cx.agent();
    event.at = cx.here();
    event.kind = kind;
    event.space = space;
    event.order = access.order;
    event.scope = access.scope;
    event.bytes = access.bytes;
    event.addresses = addresses;
    for (uint32_t rest = left; rest; rest &= rest - 1)
      if (spaces[std::countr_zero(rest)] == space)
        event.laneMask |= rest & (0 - rest);
    left &= ~event.laneMask;
    cx.observer->onMemory(event);
  }
}
