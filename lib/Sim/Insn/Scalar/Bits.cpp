//===- Bits.cpp - Logic, shifts and bit fields ----------------------------===//
// PTX ISA 9.7.8 "Logic and Shift Instructions", 9.7.1 (bfe, bfi, bfind, brev, clz, popc, prmt...).
#include "Sim/Insn/Lanes.h"
#include <algorithm>
#include <bit>
#include <functional>

using namespace fp4;
using namespace fp4::sim;

namespace {

template <typename T> using U = std::make_unsigned_t<T>;

#define FP4_BIT_OP(Name, expression)                                                               \
  template <typename T> struct Name {                                                              \
    struct F {                                                                                     \
      T operator()(T a, T b) const { return static_cast<T>(expression); }                          \
    };                                                                                             \
    static constexpr Handler run = lanewise<F, T, T, T>;                                           \
  };
FP4_BIT_OP(And, a &b)
FP4_BIT_OP(Or, a | b)
FP4_BIT_OP(Xor, a ^ b)
#undef FP4_BIT_OP

template <typename T> struct Not {
  struct F {
    T operator()(T a) const { return static_cast<T>(~a); }
  };
  static constexpr Handler run = lanewise<F, T, T>;
};
template <typename T> struct Cnot {
  struct F {
    T operator()(T a) const { return a == 0; }
  };
  static constexpr Handler run = lanewise<F, T, T>;
};

template <typename F> Outcome predicates2(ExecContext &cx, const Insn &insn) {
  cx.setPredicate(insn.op[0], F()(cx.predicate(insn.op[1]), cx.predicate(insn.op[2])));
  return Outcome::Next;
}
Outcome predicateNot(ExecContext &cx, const Insn &insn) {
  cx.setPredicate(insn.op[0], ~cx.predicate(insn.op[1]));
  return Outcome::Next;
}

/// Shift counts clamp at the width.
template <typename T> struct Shl {
  struct F {
    T operator()(T a, uint32_t n) const {
      return n < 8 * sizeof(T) ? static_cast<T>(uint64_t(U<T>(a)) << n) : T(0);
    }
  };
  static constexpr Handler run = lanewise<F, T, T, uint32_t>;
};
template <typename T> struct Shr {
  struct F {
    T operator()(T a, uint32_t n) const {
      constexpr uint32_t width = 8 * sizeof(T);
      if constexpr (std::is_signed_v<T>)
        return static_cast<T>(a >> (n < width ? n : width - 1));
      else
        return n < width ? static_cast<T>(a >> n) : T(0);
    }
  };
  static constexpr Handler run = lanewise<F, T, T, uint32_t>;
};

/// {b,a} shifted by c, the upper (left) or lower (right) word.
template <bool Left, bool Wrap> struct ShfF {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    uint32_t n = Wrap ? c & 31 : (c < 32 ? c : 32);
    uint64_t both = uint64_t(b) << 32 | a;
    return static_cast<uint32_t>(Left ? (both << n) >> 32 : both >> n);
  }
};

template <typename T> struct Bfe {
  struct F {
    T operator()(T a, uint32_t position, uint32_t length) const {
      constexpr uint32_t width = 8 * sizeof(T);
      uint32_t pos = position & 0xFF, len = length & 0xFF;
      // Bits above the word are copies of the sign (signed) or zero.
      bool sign = false;
      if (std::is_signed_v<T> && len > 0)
        sign = (U<T>(a) >> std::min(pos + len - 1, width - 1)) & 1;
      U<T> field = pos < width ? static_cast<U<T>>(U<T>(a) >> pos) : U<T>(0);
      uint32_t valid = std::min(len, pos < width ? width - pos : 0);
      U<T> keep = valid >= width ? ~U<T>(0) : static_cast<U<T>>((U<T>(1) << valid) - 1);
      return static_cast<T>((field & keep) | (sign ? U<T>(~keep) : U<T>(0)));
    }
  };
  static constexpr Handler run = lanewise<F, T, T, uint32_t, uint32_t>;
};

template <typename T> struct BfiF {
  T operator()(T a, T b, uint32_t position, uint32_t length) const {
    constexpr uint32_t width = 8 * sizeof(T);
    uint32_t pos = position & 0xFF, len = length & 0xFF;
    if (pos >= width || len == 0)
      return b;
    T ones = len >= width ? ~T(0) : (T(1) << len) - 1;
    T mask = static_cast<T>(ones << pos);
    return (b & ~mask) | (static_cast<T>(a << pos) & mask);
  }
};

template <typename T> struct BfindF {
  uint32_t operator()(T a) const {
    U<T> x = static_cast<U<T>>(std::is_signed_v<T> && a < 0 ? ~a : a);
    return x == 0 ? 0xFFFFFFFFu
                  : static_cast<uint32_t>(8 * sizeof(T) - 1 - size_t(std::countl_zero(x)));
  }
};
template <typename T> struct BfindShiftF {
  uint32_t operator()(T a) const {
    uint32_t bit = BfindF<T>()(a);
    return bit == 0xFFFFFFFFu ? bit : static_cast<uint32_t>(8 * sizeof(T) - 1) - bit;
  }
};
template <typename T> struct BrevF {
  T operator()(T a) const {
    T result = 0;
    for (unsigned i = 0; i < 8 * sizeof(T); ++i)
      result |= static_cast<T>((a >> i & 1) << (8 * sizeof(T) - 1 - i));
    return result;
  }
};
template <typename T> struct ClzF {
  uint32_t operator()(T a) const { return static_cast<uint32_t>(std::countl_zero(a)); }
};
template <typename T> struct PopcF {
  uint32_t operator()(T a) const { return static_cast<uint32_t>(std::popcount(a)); }
};

/// Computes lop3: a, b and c, which begin at `operands`, are bits 2, 1 and 0
/// of its index.
Lanes<uint32_t> combine3(ExecContext &cx, const Insn &insn, const Operand *operands) {
  const uint32_t *a = cx.src<uint32_t>(operands[0]), *b = cx.src<uint32_t>(operands[1]);
  const uint32_t *c = cx.src<uint32_t>(operands[2]);
  const unsigned table = insn.as<LogicModifiers>().table;
  uint32_t term[8];
  for (int i = 0; i < 8; ++i)
    term[i] = table >> i & 1 ? ~0u : 0u;
  Lanes<uint32_t> result;
  for (int l = 0; l < 32; ++l) {
    uint32_t low = ~a[l] & ((~b[l] & ((~c[l] & term[0]) | (c[l] & term[1]))) |
                            (b[l] & ((~c[l] & term[2]) | (c[l] & term[3]))));
    uint32_t high = a[l] & ((~b[l] & ((~c[l] & term[4]) | (c[l] & term[5]))) |
                            (b[l] & ((~c[l] & term[6]) | (c[l] & term[7]))));
    result.v[l] = low | high;
  }
  return result;
}

Outcome lop3(ExecContext &cx, const Insn &insn) {
  commit(cx, insn.op[0], combine3(cx, insn, &insn.op[1]));
  return Outcome::Next;
}

/// p = (d != 0) op q
template <bool And> Outcome lop3Predicate(ExecContext &cx, const Insn &insn) {
  const Lanes<uint32_t> result = combine3(cx, insn, &insn.op[2]);
  uint32_t any = 0;
  for (unsigned l = 0; l < 32; ++l)
    any |= uint32_t(result.v[l] != 0) << l;
  const uint32_t q = cx.predicate(insn.op[6]);
  if (insn.op[0])
    commit(cx, insn.op[0], result);
  cx.setPredicate(insn.op[1], And ? any & q : any | q);
  return Outcome::Next;
}

/// The selectors of the special modes, PTX ISA table of prmt.
uint32_t permuteSelector(PermuteMode mode, uint32_t c) {
  static constexpr uint32_t table[6][4] = {
      {0x3210, 0x4321, 0x5432, 0x6543}, // f4e
      {0x5670, 0x6701, 0x7012, 0x0123}, // b4e
      {0x0000, 0x1111, 0x2222, 0x3333}, // rc8
      {0x3210, 0x3211, 0x3222, 0x3333}, // ecl
      {0x0000, 0x1110, 0x2210, 0x3210}, // ecr
      {0x1010, 0x3232, 0x1010, 0x3232}, // rc16
  };
  return mode == PermuteMode::Generic ? c : table[size_t(mode) - 1][c & 3];
}

/// Each nibble of a generic selector selects a byte, and its top bit replicates the sign.
Outcome prmt(ExecContext &cx, const Insn &insn) {
  const uint32_t *a = cx.src<uint32_t>(insn.op[1]), *b = cx.src<uint32_t>(insn.op[2]);
  const uint32_t *c = cx.src<uint32_t>(insn.op[3]);
  const PermuteMode mode = insn.as<PermuteModifiers>().mode;
  Lanes<uint32_t> result;
  for (int lane = 0; lane < 32; ++lane) {
    uint64_t bytes = uint64_t(b[lane]) << 32 | a[lane];
    uint32_t selector = permuteSelector(mode, c[lane]);
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
      uint32_t pick = selector >> (4 * i);
      uint32_t byte = bytes >> (8 * (pick & 7)) & 0xFF;
      if (pick & 8)
        byte = byte & 0x80 ? 0xFF : 0;
      value |= byte << (8 * i);
    }
    result.v[lane] = value;
  }
  commit(cx, insn.op[0], result);
  return Outcome::Next;
}

template <bool ASigned, bool BSigned> struct Dp4aF {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    for (int i = 0; i < 4; ++i) {
      uint32_t x = a >> (8 * i) & 0xFF, y = b >> (8 * i) & 0xFF;
      int32_t xs = ASigned ? int8_t(x) : int32_t(x), ys = BSigned ? int8_t(y) : int32_t(y);
      c += static_cast<uint32_t>(xs * ys);
    }
    return c;
  }
};

/// The halves of a times two bytes of b, the lower two or the upper.
template <bool ASigned, bool BSigned, unsigned FirstByte> struct Dp2aF {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    for (unsigned i = 0; i < 2; ++i) {
      uint32_t x = a >> (16 * i) & 0xFFFF, y = b >> (8 * (FirstByte + i)) & 0xFF;
      int32_t xs = ASigned ? int16_t(x) : int32_t(x), ys = BSigned ? int8_t(y) : int32_t(y);
      c += static_cast<uint32_t>(xs * ys);
    }
    return c;
  }
};

/// The place of the |offset|th bit that is set, from bit `base` on, up or down.
struct FnsF {
  uint32_t operator()(uint32_t mask, uint32_t base, uint32_t offset) const {
    auto steps = static_cast<int32_t>(offset);
    if (steps == 0)
      return base < 32 && mask >> base & 1 ? base : ~0u;
    uint32_t left = steps > 0 ? offset : 0 - offset;
    for (uint32_t place = base; place < 32; place += steps > 0 ? 1 : ~0u)
      if (mask >> place & 1 && --left == 0)
        return place;
    return ~0u;
  }
};

template <bool Wrap> struct BmskF {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    uint32_t from = Wrap ? a & 31 : a, width = Wrap ? b & 31 : b;
    if (from >= 32 || width == 0)
      return 0;
    return (width >= 32 ? ~0u : (1u << width) - 1) << from;
  }
};

template <typename T, bool Wrap> struct SzextF {
  T operator()(T a, uint32_t n) const {
    uint32_t width = Wrap ? n & 31 : n;
    if (width == 0)
      return 0;
    if (width >= 32)
      return a;
    return static_cast<T>(static_cast<T>(static_cast<uint32_t>(a) << (32 - width)) >> (32 - width));
  }
};

} // namespace

namespace fp4::sim {

/// Bitwise operations accept .pred and .bNN.
template <template <typename> class H, typename P> static Status bindLogic(BindContext &cx) {
  if (cx.insn.type == Type::Pred)
    return cx.use(predicates2<P>);
  bool bits = cx.insn.type == Type::B16 || cx.insn.type == Type::B32 || cx.insn.type == Type::B64;
  return useFor(cx, bits ? pickInteger<H>(cx.insn.type) : nullptr);
}

Status bindAnd(BindContext &cx) { return bindLogic<And, std::bit_and<uint32_t>>(cx); }
Status bindOr(BindContext &cx) { return bindLogic<Or, std::bit_or<uint32_t>>(cx); }
Status bindXor(BindContext &cx) { return bindLogic<Xor, std::bit_xor<uint32_t>>(cx); }
Status bindNot(BindContext &cx) {
  if (cx.insn.type == Type::Pred)
    return cx.use(predicateNot);
  return useFor(cx, pickInteger<Not>(cx.insn.type));
}
Status bindCnot(BindContext &cx) { return useFor(cx, pickInteger<Cnot>(cx.insn.type)); }

static Status describeLogic(BindContext &cx, const Operand &table) {
  if (cx.insn.type != Type::B32)
    return useFor(cx, nullptr);
  if (static_cast<uint64_t>(table.imm) >= 256)
    return cx.fail("the table must be below 256");
  cx.insn.make<LogicModifiers>({static_cast<uint8_t>(table.imm)});
  return {};
}

Status bindLop3(BindContext &cx) {
  FP4_TRY(describeLogic(cx, cx.insn.op[4]));
  return cx.use(lop3);
}

Status bindLop3Predicate(BindContext &cx) {
  FP4_TRY(describeLogic(cx, cx.insn.op[5]));
  return cx.use(cx.match.text("bool") == "and" ? lop3Predicate<true> : lop3Predicate<false>);
}

Status bindShl(BindContext &cx) { return useFor(cx, pickInteger<Shl>(cx.insn.type)); }
Status bindShr(BindContext &cx) { return useFor(cx, pickInteger<Shr>(cx.insn.type)); }

Status bindShf(BindContext &cx) {
  if (cx.insn.type != Type::B32)
    return useFor(cx, nullptr);
  using T = uint32_t;
  bool left = cx.match.text("direction") == "l", wrap = cx.match.text("mode") == "wrap";
  if (left)
    return cx.use(wrap ? lanewise<ShfF<true, true>, T, T, T, T>
                       : lanewise<ShfF<true, false>, T, T, T, T>);
  return cx.use(wrap ? lanewise<ShfF<false, true>, T, T, T, T>
                     : lanewise<ShfF<false, false>, T, T, T, T>);
}

Status bindBfe(BindContext &cx) {
  bool narrow = bytesOf(cx.insn.type) < 4;
  return useFor(cx, narrow ? nullptr : pickInteger<Bfe>(cx.insn.type));
}

Status bindBfi(BindContext &cx) {
  using N = uint32_t;
  if (cx.insn.type == Type::B32)
    return cx.use(lanewise<BfiF<uint32_t>, uint32_t, uint32_t, uint32_t, N, N>);
  using T = uint64_t;
  return useFor(cx, cx.insn.type == Type::B64 ? lanewise<BfiF<T>, T, T, T, N, N> : nullptr);
}

template <template <typename> class F> static Handler pickBfind(Type type) {
  switch (type) {
  case Type::U32:
    return lanewise<F<uint32_t>, uint32_t, uint32_t>;
  case Type::S32:
    return lanewise<F<int32_t>, uint32_t, int32_t>;
  case Type::U64:
    return lanewise<F<uint64_t>, uint32_t, uint64_t>;
  case Type::S64:
    return lanewise<F<int64_t>, uint32_t, int64_t>;
  default:
    return nullptr;
  }
}

Status bindBfind(BindContext &cx) {
  return useFor(cx, cx.match.has("shiftamt") ? pickBfind<BfindShiftF>(cx.insn.type)
                                             : pickBfind<BfindF>(cx.insn.type));
}

Status bindBrev(BindContext &cx) {
  if (cx.insn.type == Type::B32)
    return cx.use(lanewise<BrevF<uint32_t>, uint32_t, uint32_t>);
  return useFor(cx, cx.insn.type == Type::B64 ? lanewise<BrevF<uint64_t>, uint64_t, uint64_t>
                                              : nullptr);
}

template <template <typename> class F> static Status bindCount(BindContext &cx) {
  if (cx.insn.type == Type::B32)
    return cx.use(lanewise<F<uint32_t>, uint32_t, uint32_t>);
  return useFor(cx,
                cx.insn.type == Type::B64 ? lanewise<F<uint64_t>, uint32_t, uint64_t> : nullptr);
}

Status bindClz(BindContext &cx) { return bindCount<ClzF>(cx); }
Status bindPopc(BindContext &cx) { return bindCount<PopcF>(cx); }

Status bindPrmt(BindContext &cx) {
  cx.insn.make<PermuteModifiers>({PermuteMode(cx.match.choice("mode") + 1)});
  return useFor(cx, cx.insn.type == Type::B32 ? prmt : nullptr);
}

Status bindDp4a(BindContext &cx) {
  bool a = isSigned(cx.insn.type), b = isSigned(cx.match.type("btype"));
  if (bitsOf(cx.insn.type) != 32 || bitsOf(cx.match.type("btype")) != 32)
    return useFor(cx, nullptr);
  using T = uint32_t;
  if (a)
    return cx.use(b ? lanewise<Dp4aF<true, true>, T, T, T, T>
                    : lanewise<Dp4aF<true, false>, T, T, T, T>);
  return cx.use(b ? lanewise<Dp4aF<false, true>, T, T, T, T>
                  : lanewise<Dp4aF<false, false>, T, T, T, T>);
}

template <bool A, bool B> static Handler pickDp2a(bool high) {
  using T = uint32_t;
  return high ? lanewise<Dp2aF<A, B, 2>, T, T, T, T> : lanewise<Dp2aF<A, B, 0>, T, T, T, T>;
}

Status bindDp2a(BindContext &cx) {
  const Type a = cx.insn.type, b = cx.match.type("btype");
  const bool high = cx.match.text("half") == "hi";
  if ((a != Type::U32 && a != Type::S32) || (b != Type::U32 && b != Type::S32))
    return useFor(cx, nullptr);
  if (isSigned(a))
    return cx.use(isSigned(b) ? pickDp2a<true, true>(high) : pickDp2a<true, false>(high));
  return cx.use(isSigned(b) ? pickDp2a<false, true>(high) : pickDp2a<false, false>(high));
}

Status bindFns(BindContext &cx) {
  using T = uint32_t;
  return useFor(cx, cx.insn.type == Type::B32 ? lanewise<FnsF, T, T, T, T> : nullptr);
}

Status bindBmsk(BindContext &cx) {
  if (cx.insn.type != Type::B32)
    return useFor(cx, nullptr);
  using T = uint32_t;
  return cx.use(cx.match.text("mode") == "wrap" ? lanewise<BmskF<true>, T, T, T>
                                                : lanewise<BmskF<false>, T, T, T>);
}

Status bindSzext(BindContext &cx) {
  bool wrap = cx.match.text("mode") == "wrap";
  using N = uint32_t;
  if (cx.insn.type == Type::S32)
    return cx.use(wrap ? lanewise<SzextF<int32_t, true>, int32_t, int32_t, N>
                       : lanewise<SzextF<int32_t, false>, int32_t, int32_t, N>);
  if (cx.insn.type != Type::U32)
    return useFor(cx, nullptr);
  return cx.use(wrap ? lanewise<SzextF<N, true>, N, N, N> : lanewise<SzextF<N, false>, N, N, N>);
}

} // namespace fp4::sim
