//===- MemoryAccess.h - The fast way to the bytes of 32 lanes -------------===//
//
// ExecContext::readable and writable check one lane at a time and explain every error. The helpers
// here accept the common case for all lanes at once (one allocation, or the CTA's own shared
// memory, aligned and valid) and leave everything else to them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Insn/Lanes.h"
#include "fp4/Sim/Events/MemoryEvent.h"

namespace fp4::sim {

/// The active lanes' addresses, their bounds, and the union of their bits.
struct LaneAddresses {
  alignas(64) uint64_t v[32]; ///< addresses of active lanes; the first if contiguous or uniform
  uint64_t low = ~0ull, high = 0, any = 0;
  bool contiguous = false; ///< all 32 lanes, each `bytes` above the one before
  bool uniform = false;    ///< all 32 lanes, the same bytes

  LaneAddresses(ExecContext &cx, const Operand &address, uint32_t bytes) {
    const auto displacement = static_cast<uint64_t>(address.imm);
    if (address.width == 4)
      read(cx, cx.src<uint32_t>(address), displacement, bytes);
    else
      read(cx, cx.src<uint64_t>(address), displacement, bytes);
  }

  /// Addresses of all 32 lanes.
  LaneAddresses(ExecContext &cx, const uint64_t *addresses, uint32_t bytes) {
    read(cx, addresses, 0, bytes);
  }

  uint64_t of(uint64_t lane, uint32_t bytes) const {
    return contiguous ? v[0] + lane * bytes : v[uniform ? 0 : lane];
  }

private:
  template <typename T>
  void read(ExecContext &cx, const T *base, uint64_t displacement, uint32_t bytes) {
    if (cx.mask == kAllLanes) {
      T difference = 0;
      const T step = base[1] == base[0] ? 0 : T(bytes);
      for (unsigned lane = 0; lane < 32; ++lane)
        difference |= base[lane] ^ T(base[0] + T(lane * step));
      uniform = difference == 0 && step == 0;
      contiguous = difference == 0 && base[31] > base[0];
    }
    if (contiguous || uniform) {
      low = any = v[0] = uint64_t(base[0]) + displacement; // the others are multiples of `bytes` up
      high = contiguous ? low + 31ull * bytes : low;
      return;
    }
    for (unsigned lane = 0; lane < 32; ++lane)
      v[lane] = uint64_t(base[lane]) + displacement;
    for (uint32_t rest = cx.mask; rest; rest &= rest - 1)
      include(v[std::countr_zero(rest)]);
  }
  void include(uint64_t address) {
    low = address < low ? address : low;
    high = address > high ? address : high;
    any |= address;
  }
};

/// Returns true when the lanes may read bytes of shared memory. Bytes that they write become
/// readable. `window` is the address of the CTA's shared memory.
template <bool Write>
[[gnu::always_inline]] inline bool sharedBytesValid(ExecContext &cx, const LaneAddresses &lanes,
                                                    uint64_t window, uint32_t bytes) {
  SharedMemory &shared = cx.cta().shared;
  auto offset = [&](int lane) { return static_cast<uint32_t>(lanes.v[lane] - window); };
  if (lanes.contiguous || lanes.uniform) {
    const uint32_t all = lanes.contiguous ? 32 * bytes : bytes;
    if (!Write)
      return shared.valid(offset(0), all);
    shared.markValid(offset(0), all);
    return true;
  }
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    if (Write)
      shared.markValidAligned(offset(lane), bytes);
    else if (!shared.validAligned(offset(lane), bytes))
      return false;
  }
  return true;
}

/// Lets who keeps what was there have it, a run at once.
inline void aboutToWrite(ExecContext &cx, const LaneAddresses &lanes, uint32_t bytes) {
  constexpr uint64_t near = 4096;
  const GlobalMemory &memory = *cx.launch().memory;
  if (lanes.high - lanes.low < near)
    return memory.aboutToWrite(lanes.low, lanes.high - lanes.low + bytes);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1)
    memory.aboutToWrite(lanes.of(uint64_t(std::countr_zero(rest)), bytes), bytes);
}

/// Returns the difference between lanes.v[l] and the host address of lane l's bytes, when every
/// access of `bytes` (a power of two) is aligned and plainly legal. 0: take the careful way,
/// nothing was changed.
template <bool Write>
inline uint64_t fastBase(ExecContext &cx, Space space, const LaneAddresses &lanes, uint32_t bytes) {
  if (lanes.any & (bytes - 1) || lanes.low > lanes.high) // past 2^64 the high end is the low one
    return 0;
  if (space == Space::Global || space == Space::Generic) {
    const Allocation *a = cx.recentAllocation();
    if (!a || (Write && a->readOnly) || lanes.low < a->address ||
        lanes.high - a->address + bytes > a->size)
      return 0;
    if (Write)
      aboutToWrite(cx, lanes, bytes);
    return reinterpret_cast<uint64_t>(a->bytes.get()) - a->address;
  }
  if (space == Space::Param && !Write) {
    auto &params = cx.launch().params;
    return bytes <= params.size() && lanes.high <= params.size() - bytes
               ? reinterpret_cast<uint64_t>(params.data())
               : 0;
  }
  if (space != Space::SharedCta)
    return 0;
  SharedMemory &shared = cx.cta().shared;
  uint64_t rank = uint64_t(cx.cta().rank) << kSharedRankShift;
  if (lanes.low < rank + kSharedBase || lanes.high > rank + shared.end() - bytes)
    return 0;
  if (!sharedBytesValid<Write>(cx, lanes, rank, bytes))
    return 0;
  return reinterpret_cast<uint64_t>(shared.at(kSharedBase)) - kSharedBase - rank;
}

/// MemoryEvent::unchanged of a store that has not happened yet: the lanes that find in memory what
/// they write, as far as it may plainly be read. same(lane, bytes there) compares one lane's; `row`
/// is what all write, where it lies in one row, or null.
template <typename Same>
uint32_t unchangedLanes(ExecContext &cx, Space space, const LaneAddresses &lanes, uint32_t bytes,
                        Same &&same, const std::byte *row = nullptr) {
  const bool small = std::has_single_bit(bytes) && bytes <= 32;
  const uint64_t base = small ? fastBase<false>(cx, space, lanes, bytes) : 0;
  if (base && row && lanes.contiguous &&
      !std::memcmp(reinterpret_cast<const void *>(base + lanes.v[0]), row, size_t(32) * bytes))
    return kAllLanes;
  uint32_t unchanged = 0;
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const uint64_t address = lanes.of(lane, bytes);
    const auto *there =
        base ? reinterpret_cast<const std::byte *>(base + address) : cx.peek(space, address, bytes);
    if (there && same(lane, there))
      unchanged |= 1u << lane;
    else if (lanes.uniform)
      return 0; // reported as one: all lanes or none
  }
  return unchanged;
}

struct MemoryAccess {
  Space space;
  MemOrder order;
  Scope scope;
  uint32_t bytes;
  uint32_t unchanged = 0; ///< MemoryEvent::unchanged
};

/// Emits the event of a generic-proxy access by the active lanes; local memory and parameters have
/// none. Generic addresses are resolved first: lanes of another space get their own event.
void reportAccess(ExecContext &cx, const LaneAddresses &lanes, AccessKind kind,
                  const MemoryAccess &access);

} // namespace fp4::sim
