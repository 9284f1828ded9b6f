//===- Carry.cpp - Extended-precision integer arithmetic ------------------===//
//
// PTX ISA 9.7.2: add, sub and mad with .cc set each lane's carry (or borrow), addc, subc and madc
// use it. The carry is one bit per lane, kept with the warp.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/Lanes.h"

using namespace fp4;
using namespace fp4::sim;

namespace {

/// op[0] = f(lane, carry in), which also gives the carry out.
template <typename T, typename F> Outcome withCarry(ExecContext &cx, const Insn &insn, F &&f) {
  const auto [sets, uses] = insn.as<CarryModifiers>();
  uint32_t &carry = cx.warp().carry;
  T *d = cx.dst<T>(insn.op[0]);
  uint32_t out = carry;
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    uint32_t bit = 1u << lane;
    bool overflow = false;
    d[lane] = f(lane, uses && (carry & bit), overflow);
    out = overflow ? out | bit : out & ~bit;
  }
  if (sets)
    carry = out;
  return Outcome::Next;
}

template <typename T> T addWith(T a, T b, bool carry, bool &overflow) {
  T sum;
  bool first = __builtin_add_overflow(a, b, &sum);
  bool second = __builtin_add_overflow(sum, T(carry), &sum);
  overflow = first || second;
  return sum;
}

template <typename T> Outcome addCarry(ExecContext &cx, const Insn &insn) {
  const T *a = cx.src<T>(insn.op[1]), *b = cx.src<T>(insn.op[2]);
  return withCarry<T>(cx, insn, [&](int lane, bool carry, bool &overflow) {
    return addWith<T>(a[lane], b[lane], carry, overflow);
  });
}

template <typename T> Outcome subBorrow(ExecContext &cx, const Insn &insn) {
  const T *a = cx.src<T>(insn.op[1]), *b = cx.src<T>(insn.op[2]);
  return withCarry<T>(cx, insn, [&](int lane, bool borrow, bool &overflow) {
    T difference;
    bool first = __builtin_sub_overflow(a[lane], b[lane], &difference);
    bool second = __builtin_sub_overflow(difference, T(borrow), &difference);
    overflow = first || second;
    return difference;
  });
}

/// The chosen half of a * b, signed or not, plus c. Wide is twice as wide as T.
template <typename T, typename Factor, typename Wide, bool High>
Outcome madCarry(ExecContext &cx, const Insn &insn) {
  const Factor *a = cx.src<Factor>(insn.op[1]), *b = cx.src<Factor>(insn.op[2]);
  const T *c = cx.src<T>(insn.op[3]);
  return withCarry<T>(cx, insn, [&](int lane, bool carry, bool &overflow) {
    auto product = static_cast<Wide>(static_cast<Wide>(a[lane]) * static_cast<Wide>(b[lane]));
    return addWith<T>(static_cast<T>(High ? product >> (8 * sizeof(T)) : product), c[lane], carry,
                      overflow);
  });
}

template <template <typename> class Pick> Handler byWidth(Type type) {
  if (type == Type::U32 || type == Type::S32)
    return Pick<uint32_t>::run;
  if (type == Type::U64 || type == Type::S64)
    return Pick<uint64_t>::run;
  return nullptr;
}
template <typename T> struct AddCarry {
  static constexpr Handler run = addCarry<T>;
};
template <typename T> struct SubBorrow {
  static constexpr Handler run = subBorrow<T>;
};

template <bool High> Handler madOf(Type type) {
  switch (type) {
  case Type::U32:
    return madCarry<uint32_t, uint32_t, uint64_t, High>;
  case Type::S32:
    return madCarry<uint32_t, int32_t, int64_t, High>;
  case Type::U64:
    return madCarry<uint64_t, uint64_t, unsigned __int128, High>;
  case Type::S64:
    return madCarry<uint64_t, int64_t, __int128, High>;
  default:
    return nullptr;
  }
}

Status useChain(BindContext &cx, bool uses, Handler handler) {
  cx.insn.make<CarryModifiers>({cx.match.has("cc"), uses});
  return useFor(cx, handler);
}

} // namespace

namespace fp4::sim {

Status bindAddCc(BindContext &cx) { return useChain(cx, false, byWidth<AddCarry>(cx.insn.type)); }
Status bindAddc(BindContext &cx) { return useChain(cx, true, byWidth<AddCarry>(cx.insn.type)); }
Status bindSubCc(BindContext &cx) { return useChain(cx, false, byWidth<SubBorrow>(cx.insn.type)); }
Status bindSubc(BindContext &cx) { return useChain(cx, true, byWidth<SubBorrow>(cx.insn.type)); }
Status bindMadCc(BindContext &cx) {
  bool high = cx.match.text("part") == "hi";
  return useChain(cx, false, high ? madOf<true>(cx.insn.type) : madOf<false>(cx.insn.type));
}
Status bindMadc(BindContext &cx) {
  bool high = cx.match.text("part") == "hi";
  return useChain(cx, true, high ? madOf<true>(cx.insn.type) : madOf<false>(cx.insn.type));
}

} // namespace fp4::sim
