//===- Memory.cpp - ld, st, prefetch, createpolicy ------------------------===//
//
// PTX ISA 9.7.9: ld, st, prefetch, prefetchu, applypriority, discard, createpolicy. Caches are not
// simulated: cache operators, eviction priorities and policies are checked and then have no effect.
// A vector access is one access of its whole size, as on the device: it must be aligned to it.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/Memory/MemoryAccess.h"
#include "Sim/Insn/Poison/Uses.h"
#include "Sim/State/ConcurrentBytes.h"
#include "fp4/Sim/Events/FenceEvent.h"
#include "fp4/Sim/Observer.h"
#include <algorithm>

using namespace fp4;
using namespace fp4::sim;

namespace {

/// The host addresses of the active lanes' accesses.
struct Places {
  std::byte *v[32];
  bool contiguous = false; ///< v[0] begins 32 accesses in a row
  bool uniform = false;    ///< 32 reads of v[0]
};

const Operand *elementsOf(ExecContext &cx, const Operand &o, unsigned &count) {
  count = o.kind == OperandKind::Vector ? static_cast<unsigned>(o.imm) : 1;
  return o.kind == OperandKind::Vector ? cx.elements(o) : &o;
}

uint32_t unchangedElements(ExecContext &cx, const Insn &insn, const LaneAddresses &lanes,
                           uint32_t bytes) {
  unsigned count;
  const Operand *values = elementsOf(cx, insn.op[1], count);
  const auto &store = insn.as<MemoryModifiers>();
  const unsigned size = store.bytes;
  const bool inRow = count == 1 && values->width == size;
  const auto same = [&](unsigned lane, const std::byte *there) {
    bool equal = true;
    for (unsigned e = 0; e < count && equal; ++e) {
      const auto *value = cx.src<std::byte>(values[e]) + lane * values[e].width;
      std::byte now[16];
      loadBytes(now, there + e * size, size);
      equal = std::memcmp(now, value, size) == 0;
    }
    return equal;
  };
  return unchangedLanes(cx, store.space, lanes, bytes, same,
                        inRow ? cx.src<std::byte>(*values) : nullptr);
}

template <bool Write>
bool locate(ExecContext &cx, const Insn &insn, const Operand &address, uint32_t bytes,
            Places &places) {
  const auto &how = insn.as<MemoryModifiers>();
  const Space space = how.space;
  LaneAddresses lanes(cx, address, bytes);
  if (cx.observer) // first: a checker may know why the access then fails
    reportAccess(cx, lanes, Write ? AccessKind::Write : AccessKind::Read,
                 {space, how.order, how.scope, bytes,
                  Write ? unchangedElements(cx, insn, lanes, bytes) : 0});
  if (uint64_t base = fastBase<Write>(cx, space, lanes, bytes)) {
    places.contiguous = lanes.contiguous;
    places.uniform = lanes.uniform && !Write && how.width;
    if ((lanes.contiguous && how.width) || places.uniform) {
      places.v[0] = reinterpret_cast<std::byte *>(base + lanes.v[0]);
      return true;
    }
    for (uint64_t lane = 0; lane < 32; ++lane)
      places.v[lane] = reinterpret_cast<std::byte *>(base + lanes.of(lane, bytes));
    return true;
  }
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    places.v[lane] = Write ? cx.writable(space, lanes.of(uint64_t(lane), bytes), bytes, bytes, lane)
                           : const_cast<std::byte *>(cx.loadable(
                                 space, lanes.of(uint64_t(lane), bytes), bytes, bytes, lane));
    if (!places.v[lane])
      return false;
  }
  return true;
}

using Four = uint32_t __attribute__((vector_size(16)));

/// Rows and columns of 4 x 4 words change places.
void transpose(Four (&r)[4]) {
  const Four a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
  const Four b = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
  const Four c = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
  const Four d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  r[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  r[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  r[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
  r[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

/// 32 runs of Count words in a row become Count registers, or the reverse. Count is a multiple
/// of 4.
template <unsigned Count, bool Load>
void moveWords(ExecContext &cx, const Operand *o, std::byte *memory) {
  for (unsigned e = 0; e < Count; e += 4)
    for (unsigned lane = 0; lane < 32; lane += 4) {
      Four words[4];
      const auto row = [&](unsigned i) { return memory + 4 * ((lane + i) * Count + e); };
      const auto source = [&](unsigned i) { return cx.src<uint32_t>(o[e + i]) + lane; };
      for (unsigned i = 0; i < 4; ++i)
        std::memcpy(&words[i], Load ? row(i) : static_cast<const void *>(source(i)), sizeof(Four));
      transpose(words);
      for (unsigned i = 0; i < 4; ++i)
        std::memcpy(Load ? static_cast<void *>(cx.dst<uint32_t>(o[e + i]) + lane) : row(i),
                    &words[i], sizeof(Four));
    }
}

/// M is the type in memory, R the register's: the value is extended or cut. Count elements per
/// access, a template parameter so that strided loops vectorise.
template <typename M, typename R, unsigned Count>
void loadElements(ExecContext &cx, const Operand *d, const Places &places) {
  if constexpr (sizeof(M) == 4 && sizeof(R) == 4 && Count % 4 == 0)
    if (places.contiguous)
      return moveWords<Count, true>(cx, d, places.v[0]);
  if (places.contiguous) { // through local arrays, which alias nothing: the loops vectorise
    M row[32 * Count];
    R columns[Count][32];
    std::memcpy(row, places.v[0], sizeof(row));
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned e = 0; e < Count; ++e)
        columns[e][lane] = static_cast<R>(row[lane * Count + e]);
    for (unsigned e = 0; e < Count; ++e)
      std::memcpy(cx.dst<R>(d[e]), columns[e], sizeof(columns[e]));
    return;
  }
  if (places.uniform) {
    for (unsigned e = 0; e < Count; ++e) {
      const M value = loadElement<M>(places.v[0] + e * sizeof(M));
      std::fill_n(cx.dst<R>(d[e]), 32, static_cast<R>(value));
    }
    return;
  }
  for (unsigned e = 0; e < Count; ++e) {
    R *out = cx.dst<R>(d[e]);
    for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
      int lane = std::countr_zero(rest);
      out[lane] = static_cast<R>(loadElement<M>(places.v[lane] + e * sizeof(M)));
    }
  }
}

template <typename M, typename R, unsigned Count>
void storeElements(ExecContext &cx, const Operand *s, const Places &places) {
  if constexpr (sizeof(M) == 4 && sizeof(R) == 4 && Count % 4 == 0)
    if (places.contiguous)
      return moveWords<Count, false>(cx, s, places.v[0]);
  if (places.contiguous) {
    R columns[Count][32];
    M row[32 * Count];
    for (unsigned e = 0; e < Count; ++e)
      std::memcpy(columns[e], cx.src<R>(s[e]), sizeof(columns[e]));
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned e = 0; e < Count; ++e)
        row[lane * Count + e] = static_cast<M>(columns[e][lane]);
    std::memcpy(places.v[0], row, sizeof(row));
    return;
  }
  for (unsigned e = 0; e < Count; ++e) {
    const R *in = cx.src<R>(s[e]);
    for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
      int lane = std::countr_zero(rest);
      storeElement(places.v[lane] + e * sizeof(M), static_cast<M>(in[lane]));
    }
  }
}

/// Registers of one vector may differ in width: then element by element.
template <typename M, typename R, bool Load>
void moveElements(ExecContext &cx, const Operand *o, unsigned count, const Places &places) {
  auto one = [&]<unsigned Count>() {
    if constexpr (Load)
      loadElements<M, R, Count>(cx, o, places);
    else
      storeElements<M, R, Count>(cx, o, places);
  };
  switch (count) {
  case 1:
    return one.template operator()<1>();
  case 2:
    return one.template operator()<2>();
  case 4:
    return one.template operator()<4>();
  default:
    return one.template operator()<8>();
  }
}

template <typename M, bool Load>
void moveByWidth(ExecContext &cx, const Insn &insn, const Operand *o, unsigned count,
                 Places &places) {
  auto with = [&](uint8_t width, const Operand *first, unsigned n, const Places &at) {
    switch (width) {
    case 1:
      return moveElements<M, uint8_t, Load>(cx, first, n, at);
    case 2:
      return moveElements<M, uint16_t, Load>(cx, first, n, at);
    case 4:
      return moveElements<M, uint32_t, Load>(cx, first, n, at);
    default:
      return moveElements<M, uint64_t, Load>(cx, first, n, at);
    }
  };
  if (const uint8_t width = insn.as<MemoryModifiers>().width)
    return with(width, o, count, places);
  places.contiguous = false;
  for (unsigned e = 0; e < count; ++e) {
    Places shifted = places;
    for (uint32_t rest = cx.mask; rest; rest &= rest - 1)
      shifted.v[std::countr_zero(rest)] += e * sizeof(M);
    with(o[e].width, o + e, 1, shifted);
  }
}

template <typename M, bool Load>
void move(ExecContext &cx, const Insn &insn, const Operand *o, unsigned count, Places &places) {
  if constexpr (sizeof(M) == 16)
    moveElements<M, M, Load>(cx, o, count, places);
  else
    moveByWidth<M, Load>(cx, insn, o, count, places);
}

/// The shadows of the bytes that lanes load or store.
struct Shadows {
  alignas(16) std::byte bits[32][32] = {};
  Places places;
  Shadows() {
    for (size_t lane = 0; lane < 32; ++lane)
      places.v[lane] = bits[lane];
  }
};

/// A load met bytes that nobody wrote: their poison goes the way of the bytes.
template <typename M>
void loadShadows(ExecContext &cx, const Insn &insn, const Operand *o, unsigned count) {
  Shadows shadows;
  Poison::Origins origins{};
  for (const ExecContext::Loaded &found : cx.loaded) {
    std::memcpy(shadows.bits[found.lane], found.bits.data(), found.bits.size());
    origins[size_t(found.lane)] = found.origin;
  }
  cx.loaded.clear();
  {
    ShadowRegisters registers(cx);
    move<M, true>(cx, insn, o, count, shadows.places);
  }
  for (unsigned e = 0; e < count; ++e)
    cx.poison().update(o[e], cx.mask, origins);
}

/// Memory gets the poison of the registers, or loses what it had. False after an error.
template <typename M>
bool storeShadows(ExecContext &cx, const Insn &insn, const Operand *o, unsigned count) {
  const Poison &poison = cx.poison();
  const auto has = [&](const Operand &e) { return poison.has(e); };
  if (!std::any_of(o, o + count, has) && !poison.anyLocal())
    return true;
  Shadows shadows;
  {
    ShadowRegisters registers(cx);
    move<M, false>(cx, insn, o, count, shadows.places);
  }
  const uint32_t bytes = count * sizeof(M);
  const LaneAddresses lanes(cx, insn.op[0], bytes);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const Operand *source = std::find_if(o, o + count, [&](const Operand &e) {
      return has(e) && poison.lanesOf(e) >> lane & 1;
    });
    const PoisonOrigin origin =
        source == o + count ? PoisonOrigin() : poison.origin(source->offset, lane);
    if (!storePoison(cx, insn.as<MemoryModifiers>().space, lanes.of(uint64_t(lane), bytes),
                     std::span(shadows.bits[lane], bytes), origin, lane))
      return false;
  }
  return true;
}

template <typename M, bool Load> Outcome access(ExecContext &cx, const Insn &insn) {
  const Operand &data = insn.op[Load ? 0 : 1], &address = insn.op[Load ? 1 : 0];
  unsigned count;
  const Operand *o = elementsOf(cx, data, count);
  Places places;
  if (!locate<!Load>(cx, insn, address, count * sizeof(M), places))
    return Outcome::Error;
  if (!Load && cx.warp().poison && !storeShadows<M>(cx, insn, o, count))
    return Outcome::Error;
  move<M, Load>(cx, insn, o, count, places);
  if (Load && !cx.loaded.empty()) [[unlikely]]
    loadShadows<M>(cx, insn, o, count);
  return Outcome::Next;
}

template <typename M> constexpr Handler load = access<M, true>;
template <typename M> constexpr Handler store = access<M, false>;

Outcome nop(ExecContext &, const Insn &) { return Outcome::Next; }

void tellGrid(ExecContext &cx, FenceKind kind) {
  if (cx.observer)
    cx.observer->onFence(
        {cx.actor(), cx.here(), kind, MemOrder::AcqRel, Scope::Gpu, Space::Global, cx.mask});
}

Outcome gridTrigger(ExecContext &cx, const Insn &) {
  tellGrid(cx, FenceKind::GridTrigger);
  return Outcome::Next;
}

class GridEndWait : public Wait {
public:
  explicit GridEndWait(const Launch &launch) : launch(launch) {}
  bool ready() const override { return !launch.early; }
  std::string describe() const override { return "the launches that it depends on to end"; }

private:
  const Launch &launch;
};

Outcome gridWait(ExecContext &cx, const Insn &) {
  if (cx.launch().early)
    return cx.block(std::make_unique<GridEndWait>(cx.launch()));
  cx.launch().awaited = true;
  tellGrid(cx, FenceKind::GridWait);
  return Outcome::Next;
}

Outcome policy(ExecContext &cx, const Insn &insn) {
  constexpr uint64_t opaque = 0x12F0'0000'0000'0000; // only ever a cache hint
  cx.store<uint64_t>(insn.op[0], [&](int) { return opaque; });
  return Outcome::Next;
}

/// Width of the registers of a scalar or vector; 0 when they differ.
uint8_t commonWidth(BindContext &cx, const Operand &data) {
  if (data.kind != OperandKind::Vector)
    return data.width;
  const Operand *o = cx.elements(data);
  for (int64_t e = 1; e < data.imm; ++e)
    if (o[e].width != o[0].width)
      return 0;
  return o[0].width;
}

Status describe(BindContext &cx) {
  Insn &insn = cx.insn;
  const Operand &data = insn.op[insn.op[0].kind == OperandKind::Address ? 1 : 0];
  const auto &how = insn.make<MemoryModifiers>(
      {cx.match.space(), cx.match.order("sem", MemOrder::Weak), cx.match.scope(),
       static_cast<uint8_t>(bytesOf(insn.type)), commonWidth(cx, data), isSigned(insn.type)});
  if (insn.type == Type::Pred)
    return cx.fail("predicates have no memory form");
  if (cx.match.vectorSize() * how.bytes > 32)
    return cx.fail("accesses at most 32 bytes per lane");
  bool scoped = how.order == MemOrder::Relaxed || how.order == MemOrder::Acquire ||
                how.order == MemOrder::Release || how.order == MemOrder::Mmio;
  if (scoped != cx.match.has("scope"))
    return cx.fail("a scope belongs to .relaxed, .acquire, .release and .mmio");
  return {};
}

using Wide = unsigned __int128;

} // namespace

namespace fp4::sim {

Status bindLd(BindContext &cx) {
  FP4_TRY(describe(cx));
  const auto &how = cx.insn.as<MemoryModifiers>();
  if (cx.match.order("sem", MemOrder::Weak) == MemOrder::Release)
    return cx.fail("a load cannot release");
  if (cx.match.has("nc") && cx.match.space() != Space::Global)
    return cx.fail("'.nc' works on .global only");
  switch (how.bytes) {
  case 1:
    return cx.use(how.isSigned ? load<int8_t> : load<uint8_t>);
  case 2:
    return cx.use(how.isSigned ? load<int16_t> : load<uint16_t>);
  case 4:
    return cx.use(how.isSigned ? load<int32_t> : load<uint32_t>);
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
  if (cx.match.space() == Space::Const)
    return cx.fail("the state space is read-only");
  switch (cx.insn.as<MemoryModifiers>().bytes) {
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
Status bindGridControl(BindContext &cx) {
  return cx.use(cx.match.text("action") == "wait" ? gridWait : gridTrigger);
}

Status bindPolicy(BindContext &cx) {
  if (cx.insn.type != Type::B64)
    return useFor(cx, nullptr);
  return cx.use(policy);
}

} // namespace fp4::sim
