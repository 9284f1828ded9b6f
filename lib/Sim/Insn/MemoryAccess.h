//===- MemoryAccess.h - The fast way to the bytes of 32 lanes -------------===//
//
// ExecContext::readable and writable check one lane at a time and explain every error. The helpers
// here accept the common case for all lanes at once (one allocation, or the CTA's own shared
// memory, aligned and valid) and leave everything else to them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Insn/Lanes.h"

namespace fp4::sim {

/// The active lanes' addresses, their bounds, and the union of their bits.
struct LaneAddresses {
  alignas(64) uint64_t v[32];
  uint64_t low = ~0ull, high = 0, any = 0;

  LaneAddresses(ExecContext &cx, const Operand &address) {
    if (address.width == 4) {
      const uint32_t *base = cx.src<uint32_t>(address);
      for (int lane = 0; lane < 32; ++lane)
        v[lane] = uint64_t(base[lane]) + static_cast<uint64_t>(address.imm);
    } else {
      const uint64_t *base = cx.src<uint64_t>(address);
      for (int lane = 0; lane < 32; ++lane)
        v[lane] = base[lane] + static_cast<uint64_t>(address.imm);
    }
    if (cx.mask == kAllLanes) {
      for (int lane = 0; lane < 32; ++lane)
        include(v[lane]);
      return;
    }
    for (uint32_t rest = cx.mask; rest; rest &= rest - 1)
      include(v[std::countr_zero(rest)]);
  }

private:
  void include(uint64_t address) {
    low = address < low ? address : low;
    high = address > high ? address : high;
    any |= address;
  }
};

/// Fills `pointers` of the active lanes when every access of `bytes` (a power of two) is aligned
/// and plainly legal. False: take the careful way, nothing was changed.
template <bool Write>
inline bool fastPointers(ExecContext &cx, Space space, const LaneAddresses &lanes, uint32_t bytes,
                         std::byte *(&pointers)[32]) {
  if (lanes.any & (bytes - 1))
    return false;
  if (space == Space::Global || space == Space::Generic) {
    const Allocation *a = cx.recentAllocation();
    if (!a || (Write && a->readOnly) || lanes.low < a->address ||
        lanes.high - a->address + bytes > a->size)
      return false;
    std::byte *base = a->bytes.get();
    for (int lane = 0; lane < 32; ++lane)
      pointers[lane] = base + (lanes.v[lane] - a->address);
    return true;
  }
  if (space != Space::SharedCta)
    return false;
  SharedMemory &shared = cx.cta().shared;
  uint64_t rank = uint64_t(cx.cta().rank) << kSharedRankShift;
  if (lanes.low < rank + kSharedBase || lanes.high + bytes > rank + shared.end())
    return false;
  if (!Write)
    for (uint32_t rest = cx.mask; rest; rest &= rest - 1)
      if (!shared.validAligned(static_cast<uint32_t>(lanes.v[std::countr_zero(rest)] - rank), bytes))
        return false;
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    auto offset = static_cast<uint32_t>(lanes.v[lane] - rank);
    if (Write)
      shared.markValidAligned(offset, bytes);
    pointers[lane] = shared.at(offset);
  }
  return true;
}

struct MemoryAccess {
  Space space;
  MemOrder order;
  Scope scope;
  uint32_t bytes;
};

/// Emits the event of a generic-proxy access by the active lanes. Generic addresses are resolved
/// first: lanes of another space get their own event.
void reportAccess(ExecContext &cx, const Operand &address, AccessKind kind,
                  const MemoryAccess &access);

} // namespace fp4::sim
