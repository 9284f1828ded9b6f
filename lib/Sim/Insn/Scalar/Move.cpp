//===- Move.cpp - mov, packing, address spaces ----------------------------===//
// PTX ISA 9.7.9 "Data Movement and Conversion": mov, cvta, isspacep, mapa, getctarank.
#include "Sim/Insn/Lanes.h"
#include <chrono>

using namespace fp4;
using namespace fp4::sim;

namespace {

struct Wide {
  uint64_t low, high;
};

template <typename T> Outcome copy(ExecContext &cx, const Insn &insn) {
  commit(cx, insn.op[0], *reinterpret_cast<const Lanes<T> *>(cx.src<T>(insn.op[1])));
  return Outcome::Next;
}

Outcome copyPredicate(ExecContext &cx, const Insn &insn) {
  cx.setPredicate(insn.op[0], cx.predicate(insn.op[1]));
  return Outcome::Next;
}

/// Little endian: element 0 is the least significant part.
template <typename Part, unsigned N> Outcome pack(ExecContext &cx, const Insn &insn) {
  struct Whole {
    Part part[N];
  };
  const Operand *elements = cx.elements(insn.op[1]);
  Lanes<Whole> result;
  for (unsigned e = 0; e < N; ++e) {
    const Part *source = cx.src<Part>(elements[e]);
    for (int lane = 0; lane < 32; ++lane)
      result.v[lane].part[e] = source[lane];
  }
  commit(cx, insn.op[0], result);
  return Outcome::Next;
}

template <typename Part, unsigned N> Outcome unpack(ExecContext &cx, const Insn &insn) {
  struct Whole {
    Part part[N];
  };
  const Operand *elements = cx.elements(insn.op[0]);
  // The source may be one of the destinations: read it whole first.
  Lanes<Whole> whole = *reinterpret_cast<const Lanes<Whole> *>(cx.src<Whole>(insn.op[1]));
  for (unsigned e = 0; e < N; ++e) {
    Lanes<Part> result;
    for (int lane = 0; lane < 32; ++lane)
      result.v[lane] = whole.v[lane].part[e];
    commit(cx, elements[e], result);
  }
  return Outcome::Next;
}

/// Handlers by (bytes of the whole, number of parts).
struct PackRow {
  unsigned bytes, parts;
  Handler pack, unpack;
};
constexpr PackRow kPacks[] = {
    {2, 2, pack<uint8_t, 2>, unpack<uint8_t, 2>},
    {4, 2, pack<uint16_t, 2>, unpack<uint16_t, 2>},
    {4, 4, pack<uint8_t, 4>, unpack<uint8_t, 4>},
    {8, 2, pack<uint32_t, 2>, unpack<uint32_t, 2>},
    {8, 4, pack<uint16_t, 4>, unpack<uint16_t, 4>},
    {8, 8, pack<uint8_t, 8>, unpack<uint8_t, 8>},
    {16, 2, pack<uint64_t, 2>, unpack<uint64_t, 2>},
    {16, 4, pack<uint32_t, 4>, unpack<uint32_t, 4>},
};

uint64_t nanoseconds() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

/// Unless the policy predicts time there is no clock: %clock counts the warp instructions of the
/// launch so far in this cluster's rounds, which is deterministic; %globaltimer is the host's.
Outcome readClock(ExecContext &cx, const Insn &insn) {
  const Policy &policy = *cx.cluster().policy;
  const auto cycles = policy.cycles();
  const uint64_t ticks =
      cycles ? uint64_t(*cycles) : policy.clock() * 1024 + cx.warp().executed;
  const uint64_t time = cycles ? cx.launch().nanoseconds(*cycles) : nanoseconds();
  const Clock clock = insn.as<ClockModifiers>().which;
  uint64_t value = clock == Clock::Nanoseconds ? time : clock == Clock::High ? ticks >> 32 : ticks;
  if (clock == Clock::NanosecondsHigh)
    value = time >> 32;
  for (int lane = 0; lane < 32; ++lane)
    if (cx.mask >> lane & 1)
      cx.setScalar(insn.op[0], lane, value);
  return Outcome::Next;
}

uint64_t windowOf(Space space) {
  switch (space) {
  case Space::SharedCta:
  case Space::SharedCluster:
    return kSharedWindow;
  case Space::Local:
    return kLocalWindow;
  case Space::Param:
    return kParamWindow;
  default:
    return 0;
  }
}

template <typename T> Outcome cvta(ExecContext &cx, const Insn &insn) {
  const T *a = cx.src<T>(insn.op[1]);
  const auto &window = insn.as<WindowModifiers>();
  uint64_t delta = window.toSpace ? 0 - window.base : window.base;
  cx.store<T>(insn.op[0], [&](int lane) { return static_cast<T>(a[lane] + delta); });
  return Outcome::Next;
}

Outcome isspacep(ExecContext &cx, const Insn &insn) {
  const uint64_t *a = cx.src<uint64_t>(insn.op[1]);
  const Space wanted = insn.as<SpaceModifiers>().space;
  uint32_t result = 0;
  for (int lane = 0; lane < 32; ++lane) {
    ExecContext::Place place = cx.place(Space::Generic, a[lane]);
    bool is = place.space == wanted;
    if (wanted == Space::SharedCta)
      is = place.space == Space::SharedCluster &&
           (place.address >> kSharedRankShift) == cx.cta().rank;
    result |= uint32_t(is) << lane;
  }
  cx.setPredicate(insn.op[0], result);
  return Outcome::Next;
}

/// Returns the address of operand a's offset in the CTA of rank b; a generic address stays generic.
/// A rank that the cluster does not have is an error of who uses the address: CUTLASS maps first
/// and asks later.
template <typename T> Outcome mapa(ExecContext &cx, const Insn &insn) {
  const T *a = cx.src<T>(insn.op[1]);
  const uint32_t *rank = cx.src<uint32_t>(insn.op[2]);
  cx.store<T>(insn.op[0], [&](int lane) {
    const T rankBits = static_cast<T>(rank[lane] & 0xFF) << kSharedRankShift;
    return static_cast<T>((a[lane] & ~static_cast<T>(0xFF000000)) | rankBits);
  });
  return Outcome::Next;
}

template <typename T> Outcome getctarank(ExecContext &cx, const Insn &insn) {
  const T *a = cx.src<T>(insn.op[1]);
  cx.store<uint32_t>(insn.op[0],
                     [&](int lane) { return static_cast<uint32_t>(a[lane]) >> kSharedRankShift; });
  return Outcome::Next;
}

} // namespace

namespace fp4::sim {

Status bindMov(BindContext &cx) {
  if (cx.insn.type == Type::Pred)
    return cx.use(copyPredicate);
  switch (bytesOf(cx.insn.type)) {
  case 1:
    return cx.use(copy<uint8_t>);
  case 2:
    return cx.use(copy<uint16_t>);
  case 4:
    return cx.use(copy<uint32_t>);
  case 8:
    return cx.use(copy<uint64_t>);
  default:
    return cx.use(copy<Wide>);
  }
}

static Status bindParts(BindContext &cx, const Operand &vector, bool packs) {
  for (const PackRow &row : kPacks)
    if (row.bytes == bytesOf(cx.insn.type) && row.parts == vector.imm)
      return cx.use(packs ? row.pack : row.unpack);
  return cx.fail("does not work with a vector of " + std::to_string(vector.imm));
}

Status bindMovPack(BindContext &cx) { return bindParts(cx, cx.insn.op[1], true); }
Status bindMovUnpack(BindContext &cx) { return bindParts(cx, cx.insn.op[0], false); }

Status bindMovClock(BindContext &cx) {
  cx.insn.make<ClockModifiers>({Clock(cx.insn.op[1].imm)});
  return cx.use(readClock);
}

Status bindCvta(BindContext &cx) {
  cx.insn.make<WindowModifiers>({windowOf(cx.match.space()), cx.match.has("to")});
  return cx.use(bytesOf(cx.insn.type) == 8 ? cvta<uint64_t> : cvta<uint32_t>);
}

Status bindIsspacep(BindContext &cx) {
  cx.insn.make<SpaceModifiers>({cx.match.space()});
  return cx.use(isspacep);
}

Status bindMapa(BindContext &cx) {
  return cx.use(bytesOf(cx.insn.type) == 8 ? mapa<uint64_t> : mapa<uint32_t>);
}

Status bindGetctarank(BindContext &cx) {
  return cx.use(bytesOf(cx.insn.type) == 8 ? getctarank<uint64_t> : getctarank<uint32_t>);
}

} // namespace fp4::sim
