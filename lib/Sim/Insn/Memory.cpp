//===- Memory.cpp - ld, st, prefetch, createpolicy ------------------------===//
//
// PTX ISA 9.7.9: ld, st, prefetch, prefetchu, applypriority, discard, createpolicy. Caches are not
// simulated: cache operators, eviction priorities and policies are checked and then have no effect.
// A vector access is one access of its whole size, as on the device: it must be aligned to it.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/MemoryAccess.h"

using namespace fp4;
using namespace fp4::sim;

namespace {

/// Insn::m of ld and st.
enum Field : unsigned { kSpace, kOrder, kScope, kBytes, kSigned };

void emitAccess(ExecContext &cx, const Insn &insn, const Operand &address, AccessKind kind) {
  MemoryAccess access{static_cast<Space>(insn.m[kSpace]), static_cast<MemOrder>(insn.m[kOrder]),
                      static_cast<Scope>(insn.m[kScope]),
                      insn.m[kBytes] * (insn.op[kind == AccessKind::Read ? 0 : 1].kind ==
                                                OperandKind::Vector
                                            ? static_cast<uint32_t>(insn.op[kind == AccessKind::Read ? 0 : 1].imm)
                                            : 1u)};
  reportAccess(cx, address, kind, access);
}

/// Storage of each active lane's access, or null after an error.
template <bool Write>
bool resolveLanes(ExecContext &cx, const Insn &insn, const Operand &address, uint32_t bytes,
                  std::byte *(&pointers)[32]) {
  auto space = static_cast<Space>(insn.m[kSpace]);
  LaneAddresses lanes(cx, address);
  if (fastPointers<Write>(cx, space, lanes, bytes, pointers))
    return true;
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    pointers[lane] = Write ? cx.writable(space, lanes.v[lane], bytes, bytes, lane)
                           : const_cast<std::byte *>(cx.readable(space, lanes.v[lane], bytes, bytes, lane));
    if (!pointers[lane])
      return false;
  }
  return true;
}

/// M is the type in memory, R the register's: the value is extended or cut.
template <typename M, typename R>
void loadElement(ExecContext &cx, const Operand &destination, std::byte *const (&pointers)[32],
                 unsigned element) {
  R *d = cx.dst<R>(destination);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    M value;
    std::memcpy(&value, pointers[lane] + element * sizeof(M), sizeof(M));
    d[lane] = static_cast<R>(value);
  }
}

template <typename M, typename R>
void storeElement(ExecContext &cx, const Operand &source, std::byte *const (&pointers)[32],
                  unsigned element) {
  const R *s = cx.src<R>(source);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    M value = static_cast<M>(s[lane]);
    std::memcpy(pointers[lane] + element * sizeof(M), &value, sizeof(M));
  }
}

template <typename M> void loadWide(ExecContext &cx, const Operand &d, std::byte *const (&p)[32], unsigned e) {
  switch (d.width) {
  case 1:
    return loadElement<M, uint8_t>(cx, d, p, e);
  case 2:
    return loadElement<M, uint16_t>(cx, d, p, e);
  case 4:
    return loadElement<M, uint32_t>(cx, d, p, e);
  default:
    return loadElement<M, uint64_t>(cx, d, p, e);
  }
}

template <typename M> void storeWide(ExecContext &cx, const Operand &s, std::byte *const (&p)[32], unsigned e) {
  switch (s.width) {
  case 1:
    return storeElement<M, uint8_t>(cx, s, p, e);
  case 2:
    return storeElement<M, uint16_t>(cx, s, p, e);
  case 4:
    return storeElement<M, uint32_t>(cx, s, p, e);
  default:
    return storeElement<M, uint64_t>(cx, s, p, e);
  }
}

const Operand *elementsOf(ExecContext &cx, const Operand &o, unsigned &count) {
  count = o.kind == OperandKind::Vector ? static_cast<unsigned>(o.imm) : 1;
  return o.kind == OperandKind::Vector ? cx.elements(o) : &o;
}

/// M as wide as the register, or narrower.
template <typename M> Outcome load(ExecContext &cx, const Insn &insn) {
  unsigned count;
  const Operand *d = elementsOf(cx, insn.op[0], count);
  std::byte *pointers[32];
  if (!resolveLanes<false>(cx, insn, insn.op[1], count * sizeof(M), pointers))
    return Outcome::Error;
  if (cx.observer)
    emitAccess(cx, insn, insn.op[1], AccessKind::Read);
  for (unsigned e = 0; e < count; ++e) {
    if constexpr (sizeof(M) == 16)
      loadElement<M, M>(cx, d[e], pointers, e);
    else
      loadWide<M>(cx, d[e], pointers, e);
  }
  return Outcome::Next;
}

template <typename M> Outcome store(ExecContext &cx, const Insn &insn) {
  unsigned count;
  const Operand *s = elementsOf(cx, insn.op[1], count);
  std::byte *pointers[32];
  if (!resolveLanes<true>(cx, insn, insn.op[0], count * sizeof(M), pointers))
    return Outcome::Error;
  if (cx.observer)
    emitAccess(cx, insn, insn.op[0], AccessKind::Write);
  for (unsigned e = 0; e < count; ++e) {
    if constexpr (sizeof(M) == 16)
      storeElement<M, M>(cx, s[e], pointers, e);
    else
      storeWide<M>(cx, s[e], pointers, e);
  }
  return Outcome::Next;
}

Outcome nop(ExecContext &, const Insn &) { return Outcome::Next; }

Outcome policy(ExecContext &cx, const Insn &insn) {
  cx.store<uint64_t>(insn.op[0], [&](int) { return insn.u; });
  return Outcome::Next;
}

Status describe(BindContext &cx) {
  Insn &insn = cx.insn;
  insn.m[kSpace] = static_cast<uint8_t>(cx.match.space());
  insn.m[kOrder] = static_cast<uint8_t>(cx.match.order("sem", MemOrder::Weak));
  insn.m[kScope] = static_cast<uint8_t>(cx.match.scope());
  insn.m[kBytes] = static_cast<uint8_t>(bytesOf(insn.type));
  insn.m[kSigned] = isSigned(insn.type);
  if (insn.type == Type::Pred)
    return cx.fail("predicates have no memory form");
  if (cx.match.vectorSize() * insn.m[kBytes] > 32)
    return cx.fail("accesses at most 32 bytes per lane");
  auto order = static_cast<MemOrder>(insn.m[kOrder]);
  bool scoped = order == MemOrder::Relaxed || order == MemOrder::Acquire || order == MemOrder::Release ||
                order == MemOrder::Mmio;
  if (scoped != cx.match.has("scope"))
    return cx.fail("a scope belongs to .relaxed, .acquire, .release and .mmio");
  return {};
}

using Wide = unsigned __int128;

} // namespace

namespace fp4::sim {

Status bindLd(BindContext &cx) {
  FP4_TRY(describe(cx));
  bool isSigned = cx.insn.m[kSigned];
  if (cx.match.order("sem", MemOrder::Weak) == MemOrder::Release)
    return cx.fail("a load cannot release");
  if (cx.match.has("nc") && cx.match.space() != Space::Global)
    return cx.fail("'.nc' works on .global only");
  switch (cx.insn.m[kBytes]) {
  case 1:
    return cx.use(isSigned ? load<int8_t> : load<uint8_t>);
  case 2:
    return cx.use(isSigned ? load<int16_t> : load<uint16_t>);
  case 4:
    return cx.use(isSigned ? load<int32_t> : load<uint32_t>);
  case 8:
    return cx.use(load<uint64_t>);
  default:
    return cx.use(load<Wide>);
  }
}

Status bindSt(BindContext &cx) {
  FP4_TRY(describe(cx));
  if (cx.match.order("sem", MemOrder::Weak) == MemOrder::Acquire)
    return cx.fail("a store cannot acquire");
  if (cx.match.space() == Space::Const || cx.match.space() == Space::Param)
    return cx.fail("the state space is read-only");
  switch (cx.insn.m[kBytes]) {
  case 1:
    return cx.use(store<uint8_t>);
  case 2:
    return cx.use(store<uint16_t>);
  case 4:
    return cx.use(store<uint32_t>);
  case 8:
    return cx.use(store<uint64_t>);
  default:
    return cx.use(store<Wide>);
  }
}

Status bindHint(BindContext &cx) { return cx.use(nop); }
Status bindNop(BindContext &cx) { return cx.use(nop); }

Status bindPolicy(BindContext &cx) {
  if (cx.insn.type != Type::B64)
    return useFor(cx, nullptr);
  cx.insn.u = 0x12F0'0000'0000'0000; // opaque; only ever a cache hint
  return cx.use(policy);
}

} // namespace fp4::sim
