//===- Atomics.cpp - atom and red -----------------------------------------===//
//
// PTX ISA 9.7.13 "Parallel Synchronization: atom, red". Lanes go one after the other, lowest first;
// each is one atomic operation of the host, since clusters run on several host threads.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/Memory/MemoryAccess.h"
#include "Sim/Insn/Scalar/Floats.h"
#include <cstring>
#include <mutex>

using namespace fp4;
using namespace fp4::sim;

namespace {

using Op = AtomicOp;

template <typename T> T combine(Op op, T old, T b) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
  case Op::Add:
    return static_cast<T>(U(old) + U(b));
  case Op::And:
    return old & b;
  case Op::Or:
    return old | b;
  case Op::Xor:
    return old ^ b;
  case Op::Exch:
    return b;
  case Op::Min:
    return old < b ? old : b;
  case Op::Max:
    return old > b ? old : b;
  case Op::Inc:
    return U(old) >= U(b) ? T(0) : static_cast<T>(old + 1);
  case Op::Dec:
    return old == 0 || U(old) > U(b) ? b : static_cast<T>(old - 1);
  }
  return b;
}

float addFlushed(float a, float b) { return flush(canonical(flush(a) + flush(b))); }

/// Combines two halves; a NaN loses against a number.
template <bool Brain> uint16_t combineHalf(Op op, uint16_t old, uint16_t b) {
  auto number = [](uint16_t x) { return Brain ? bf16ToFloat(x) : f16ToFloat(x); };
  float x = number(old), y = number(b);
  if (op == Op::Add)
    return Brain ? floatToBF16(x + y) : floatToF16(x + y);
  if (x != x || y != y)
    return x == x ? old : y == y ? b : kNaN16;
  bool below = x < y || (x == y && std::signbit(x) > std::signbit(y));
  return (op == Op::Min) == below ? old : b;
}

uint64_t combineBits(const Insn &insn, uint64_t old, uint64_t b) {
  const Op op = insn.as<AtomicModifiers>().op;
  auto both = [&](auto combine) {
    return uint32_t(combine(op, uint16_t(old), uint16_t(b))) |
           uint32_t(combine(op, uint16_t(old >> 16), uint16_t(b >> 16))) << 16;
  };
  switch (insn.type) {
  case Type::S32:
    return static_cast<uint32_t>(combine<int32_t>(op, int32_t(old), int32_t(b)));
  case Type::S64:
    return static_cast<uint64_t>(combine<int64_t>(op, int64_t(old), int64_t(b)));
  case Type::U64:
  case Type::B64:
    return combine<uint64_t>(op, old, b);
  case Type::F32: // atomic f32 additions flush subnormals, unless told not to
    if (insn.as<AtomicModifiers>().keepsSubnormals)
      return std::bit_cast<uint32_t>(
          canonical(std::bit_cast<float>(uint32_t(old)) + std::bit_cast<float>(uint32_t(b))));
    return std::bit_cast<uint32_t>(
        addFlushed(std::bit_cast<float>(uint32_t(old)), std::bit_cast<float>(uint32_t(b))));
  case Type::F64:
    return std::bit_cast<uint64_t>(add64(std::bit_cast<double>(old), std::bit_cast<double>(b)));
  case Type::F16:
    return combineHalf<false>(op, uint16_t(old), uint16_t(b));
  case Type::BF16:
    return combineHalf<true>(op, uint16_t(old), uint16_t(b));
  case Type::F16x2:
    return both(combineHalf<false>);
  case Type::BF16x2:
    return both(combineHalf<true>);
  default:
    return combine<uint32_t>(op, uint32_t(old), uint32_t(b));
  }
}

/// Applies f to the object until no other host thread interferes; returns the old value.
template <typename T, typename F> T update(std::byte *object, F &&f) {
  T *p = reinterpret_cast<T *>(object);
  T old = __atomic_load_n(p, __ATOMIC_SEQ_CST);
  while (true) {
    T wanted = f(old);
    if (__atomic_compare_exchange_n(p, &old, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      return old;
  }
}

using Wide = unsigned __int128;

/// 16 bytes have no atomic operation on every host: those of one lock exclude each other.
template <typename F> Wide updateWide(std::byte *object, F &&f) {
  static std::mutex lock;
  std::lock_guard<std::mutex> guard(lock);
  Wide old, wanted;
  std::memcpy(&old, object, sizeof(old));
  wanted = f(old);
  std::memcpy(object, &wanted, sizeof(wanted));
  return old;
}

std::byte *object(ExecContext &cx, const Insn &insn, const Operand &address, int lane,
                  uint32_t bytes) {
  const Space space = insn.as<AtomicModifiers>().space;
  uint64_t at = cx.address(address, lane);
  if (!cx.readable(space, at, bytes, bytes, lane))
    return nullptr;
  return cx.writable(space, at, bytes, bytes, lane);
}

/// `unchanged`: MemoryEvent::unchanged.
void report(ExecContext &cx, const Insn &insn, const Operand &address, uint32_t bytes,
            uint32_t unchanged = 0) {
  const auto &how = insn.as<AtomicModifiers>();
  if (cx.observer)
    reportAccess(cx, LaneAddresses(cx, address, bytes), AccessKind::Atomic,
                 {how.space, how.order, how.scope, bytes, unchanged});
}

/// All lanes, if none can change what it finds: programs load so.
template <typename Idle> uint32_t unchangedIf(const ExecContext &cx, const Idle &idle) {
  for (uint32_t rest = cx.observer ? cx.mask : 0; rest; rest &= rest - 1)
    if (!idle(std::countr_zero(rest)))
      return 0;
  return kAllLanes;
}

/// Returns true when an integer operation with `b` gives what was there.
template <typename T> bool isIdle(const Insn &insn, T b) {
  const Op op = insn.as<AtomicModifiers>().op;
  if (isFloat(insn.type))
    return false;
  return op == Op::And ? b == T(~T(0)) : (op == Op::Add || op == Op::Or || op == Op::Xor) && b == 0;
}

template <typename T, bool Returns> Outcome atom(ExecContext &cx, const Insn &insn) {
  const Operand &address = insn.op[Returns ? 1 : 0], &value = insn.op[Returns ? 2 : 1];
  report(cx, insn, address, sizeof(T),
         unchangedIf(cx, [&](int lane) { return isIdle(insn, cx.src<T>(value)[lane]); }));
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    std::byte *p = object(cx, insn, address, lane, sizeof(T));
    if (!p)
      return Outcome::Error;
    T b = cx.src<T>(value)[lane];
    T old = update<T>(p, [&](T before) { return static_cast<T>(combineBits(insn, before, b)); });
    if (Returns)
      cx.dst<T>(insn.op[0])[lane] = old;
  }
  return Outcome::Next;
}

/// One operation for each element; the address is that of the first and aligned to all.
template <typename T, bool Returns> Outcome atomVector(ExecContext &cx, const Insn &insn) {
  const Operand &address = insn.op[Returns ? 1 : 0], &values = insn.op[Returns ? 2 : 1];
  const unsigned count = cx.elementCount(values);
  const auto bytes = static_cast<uint32_t>(count * sizeof(T));
  report(cx, insn, address, bytes);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    std::byte *p = object(cx, insn, address, lane, bytes);
    if (!p)
      return Outcome::Error;
    T old[8];
    for (unsigned e = 0; e < count; ++e) {
      T b = cx.src<T>(cx.elements(values)[e])[lane];
      old[e] = update<T>(p + e * sizeof(T),
                         [&](T before) { return static_cast<T>(combineBits(insn, before, b)); });
    }
    if (Returns)
      for (unsigned e = 0; e < count; ++e)
        cx.dst<T>(cx.elements(insn.op[0])[e])[lane] = old[e];
  }
  return Outcome::Next;
}

Outcome exchangeWide(ExecContext &cx, const Insn &insn) {
  report(cx, insn, insn.op[1], sizeof(Wide));
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    std::byte *p = object(cx, insn, insn.op[1], lane, sizeof(Wide));
    if (!p)
      return Outcome::Error;
    Wide value = cx.src<Wide>(insn.op[2])[lane];
    cx.dst<Wide>(insn.op[0])[lane] = updateWide(p, [&](Wide) { return value; });
  }
  return Outcome::Next;
}

template <typename T> Outcome cas(ExecContext &cx, const Insn &insn) {
  report(cx, insn, insn.op[1], sizeof(T), unchangedIf(cx, [&](int lane) {
           return cx.src<T>(insn.op[2])[lane] == cx.src<T>(insn.op[3])[lane];
         }));
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    std::byte *p = object(cx, insn, insn.op[1], lane, sizeof(T));
    if (!p)
      return Outcome::Error;
    T expected = cx.src<T>(insn.op[2])[lane], wanted = cx.src<T>(insn.op[3])[lane];
    auto choose = [&](T before) { return before == expected ? wanted : before; };
    if constexpr (sizeof(T) == sizeof(Wide))
      cx.dst<T>(insn.op[0])[lane] = updateWide(p, choose);
    else
      cx.dst<T>(insn.op[0])[lane] = update<T>(p, choose);
  }
  return Outcome::Next;
}

/// Returns the operation of a name; Add where there is none, as for atom.cas.
Op operationOf(std::string_view name) {
  static constexpr std::string_view names[] = {"add", "and", "or",  "xor", "exch",
                                               "min", "max", "inc", "dec"};
  for (uint8_t i = 0; i < std::size(names); ++i)
    if (names[i] == name)
      return Op(i);
  return Op::Add;
}

Status describe(BindContext &cx) {
  Space space = cx.match.space();
  cx.insn.make<AtomicModifiers>({space, cx.match.order("sem", MemOrder::Relaxed),
                                 cx.match.has("scope") ? cx.match.scope() : Scope::Gpu,
                                 operationOf(cx.match.text("op")),
                                 cx.insn.type == Type::F32 && cx.match.has("noftz")});
  if (space != Space::Global && space != Space::SharedCta && space != Space::SharedCluster &&
      space != Space::Generic)
    return cx.fail("atomics work on .global and .shared only");
  return {};
}

/// Checks that the operation goes with the type.
Status checkOperation(BindContext &cx) {
  Type type = cx.insn.type;
  bool bits = type == Type::B32 || type == Type::B64;
  bool legal = false;
  switch (cx.insn.as<AtomicModifiers>().op) {
  case Op::Add:
    legal = !bits;
    break;
  case Op::And:
  case Op::Or:
  case Op::Xor:
  case Op::Exch:
    legal = bits;
    break;
  case Op::Min:
  case Op::Max:
    legal = !bits && (!isFloat(type) || cx.match.has("vec"));
    break;
  case Op::Inc:
  case Op::Dec:
    legal = type == Type::U32;
    break;
  }
  bool half =
      type == Type::F16 || type == Type::BF16 || type == Type::F16x2 || type == Type::BF16x2;
  if (type == Type::F32 ? cx.match.has("noftz") && cx.match.text("op") != "add"
                        : half != cx.match.has("noftz"))
    return cx.fail("'.noftz' belongs to the half-precision types and to sums of .f32");
  return legal ? Status() : useFor(cx, nullptr);
}

/// v2 and v4 of 32-bit elements, v8 of halves too; sums of f32, sums and extrema of halves.
template <bool Returns> Status bindVector(BindContext &cx, const Operand &values) {
  FP4_TRY(describe(cx));
  const Space space = cx.match.space();
  if (space != Space::Global && space != Space::Generic)
    return cx.fail("vectors of atomics work on .global only");
  FP4_TRY(checkOperation(cx));
  const bool half = bitsOf(cx.insn.type) == 16;
  const bool legal = cx.insn.type == Type::F32 || cx.match.has("noftz");
  const unsigned count = cx.match.vectorSize();
  if (!legal || (count == 8 && !half))
    return cx.fail("no vector of this type and size");
  if (values.imm != count || (Returns && cx.insn.op[0].imm != count))
    return cx.fail("expects vectors of " + std::to_string(count) + " elements");
  return cx.use(half ? atomVector<uint16_t, Returns> : atomVector<uint32_t, Returns>);
}

template <bool Returns> Handler pickAtom(Type type) {
  switch (type) {
  case Type::F16:
  case Type::BF16:
    return atom<uint16_t, Returns>;
  case Type::B32:
  case Type::U32:
  case Type::S32:
  case Type::F32:
  case Type::F16x2:
  case Type::BF16x2:
    return atom<uint32_t, Returns>;
  case Type::B64:
  case Type::U64:
  case Type::S64:
  case Type::F64:
    return atom<uint64_t, Returns>;
  default:
    return nullptr;
  }
}

} // namespace

namespace fp4::sim {

Status bindAtom(BindContext &cx) {
  FP4_TRY(describe(cx));
  if (cx.insn.type == Type::B128)
    return useFor(cx, cx.match.text("op") == "exch" ? exchangeWide : nullptr);
  FP4_TRY(checkOperation(cx));
  return useFor(cx, pickAtom<true>(cx.insn.type));
}

Status bindRed(BindContext &cx) {
  FP4_TRY(describe(cx));
  FP4_TRY(checkOperation(cx));
  return useFor(cx, pickAtom<false>(cx.insn.type));
}

Status bindAtomVector(BindContext &cx) { return bindVector<true>(cx, cx.insn.op[2]); }
Status bindRedVector(BindContext &cx) { return bindVector<false>(cx, cx.insn.op[1]); }

Status bindAtomCas(BindContext &cx) {
  FP4_TRY(describe(cx));
  switch (cx.insn.type) {
  case Type::B16:
    return cx.use(cas<uint16_t>);
  case Type::B32:
    return cx.use(cas<uint32_t>);
  case Type::B64:
    return cx.use(cas<uint64_t>);
  case Type::B128:
    return cx.use(cas<Wide>);
  default:
    return useFor(cx, nullptr);
  }
}

} // namespace fp4::sim
