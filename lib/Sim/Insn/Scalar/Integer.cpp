//===- Integer.cpp - Integer arithmetic -----------------------------------===//
// PTX ISA 9.7.1 "Integer Arithmetic Instructions". Arithmetic wraps; it is done on unsigned types.
#include "Sim/Insn/Lanes.h"
#include "Sim/Insn/Scalar/Arithmetic.h"
#include <bit>
#include <limits>

using namespace fp4;
using namespace fp4::sim;

namespace {

template <typename T> using U = std::make_unsigned_t<T>;
template <typename T> struct DoubleOf;
template <> struct DoubleOf<uint16_t> {
  using type = uint32_t;
};
template <> struct DoubleOf<int16_t> {
  using type = int32_t;
};
template <> struct DoubleOf<uint32_t> {
  using type = uint64_t;
};
template <> struct DoubleOf<int32_t> {
  using type = int64_t;
};
template <> struct DoubleOf<uint64_t> {
  using type = unsigned __int128;
};
template <> struct DoubleOf<int64_t> {
  using type = __int128;
};
template <typename T> using D = typename DoubleOf<T>::type;

/// cvt.pack.sat: a and b clamped to their bits, a above b, above them what was in the low bits of
/// c.
Outcome packIntegers(ExecContext &cx, const Insn &insn) {
  const auto &pack = insn.as<PackModifiers>();
  const unsigned bits = pack.bits;
  const int64_t low = pack.isSigned ? -(int64_t(1) << (bits - 1)) : 0;
  const int64_t high = (int64_t(1) << (bits - (pack.isSigned ? 1 : 0))) - 1;
  const uint32_t field = (1u << bits) - 1;
  auto clamped = [&](int32_t value) {
    return static_cast<uint32_t>(value < low ? low : value > high ? high : value) & field;
  };
  const int32_t *a = cx.src<int32_t>(insn.op[1]), *b = cx.src<int32_t>(insn.op[2]);
  const uint32_t *c = insn.op[3] ? cx.src<uint32_t>(insn.op[3]) : nullptr;
  cx.store<uint32_t>(insn.op[0], [&](int lane) {
    uint32_t above = c && bits < 16 ? c[lane] << (2 * bits) : 0;
    return above | clamped(a[lane]) << bits | clamped(b[lane]);
  });
  return Outcome::Next;
}

/// int promotion of 16-bit operands must not overflow: widen to at least unsigned first.
template <typename T> using W = std::conditional_t<(sizeof(T) < 4), uint32_t, U<T>>;

#define FP4_INT_OP(Name, expression)                                                               \
  template <typename T> struct Name {                                                              \
    struct F {                                                                                     \
      T operator()(T a, T b) const { return static_cast<T>(expression); }                          \
    };                                                                                             \
    static constexpr Handler run = lanewise<F, T, T, T>;                                           \
  };
FP4_INT_OP(Add, W<T>(a) + W<T>(b))
FP4_INT_OP(Sub, W<T>(a) - W<T>(b))
FP4_INT_OP(MulLo, W<T>(a) * W<T>(b))
FP4_INT_OP(MulHi, (D<T>(a) * D<T>(b)) >> (8 * sizeof(T)))
FP4_INT_OP(Min, a < b ? a : b)
FP4_INT_OP(Max, a > b ? a : b)
// Division by zero gives all ones and the dividend, as GPUs do; MIN / -1 wraps.
FP4_INT_OP(Div, b == 0                              ? ~U<T>(0)
                : std::is_signed_v<T> && b == T(-1) ? U<T>(0) - U<T>(a)
                                                    : U<T>(a / b))
FP4_INT_OP(Rem, b == 0 ? U<T>(a) : std::is_signed_v<T> && b == T(-1) ? U<T>(0) : U<T>(a % b))
#undef FP4_INT_OP

template <typename T> struct MadLo {
  struct F {
    T operator()(T a, T b, T c) const { return static_cast<T>(W<T>(a) * W<T>(b) + W<T>(c)); }
  };
  static constexpr Handler run = lanewise<F, T, T, T, T>;
};
template <typename T> struct MadHi {
  struct F {
    T operator()(T a, T b, T c) const {
      return static_cast<T>(W<T>((D<T>(a) * D<T>(b)) >> (8 * sizeof(T))) + W<T>(c));
    }
  };
  static constexpr Handler run = lanewise<F, T, T, T, T>;
};
template <typename T> struct Sad {
  struct F {
    T operator()(T a, T b, T c) const {
      return static_cast<T>(W<T>(c) + (a > b ? W<T>(a) - W<T>(b) : W<T>(b) - W<T>(a)));
    }
  };
  static constexpr Handler run = lanewise<F, T, T, T, T>;
};
template <typename T> struct Neg {
  struct F {
    T operator()(T a) const { return static_cast<T>(W<T>(0) - W<T>(a)); }
  };
  static constexpr Handler run = lanewise<F, T, T>;
};
template <typename T> struct Abs {
  struct F {
    T operator()(T a) const { return static_cast<T>(a < 0 ? W<T>(0) - W<T>(a) : W<T>(a)); }
  };
  static constexpr Handler run = lanewise<F, T, T>;
};

template <typename T> struct MulWideF {
  D<T> operator()(T a, T b) const { return D<T>(a) * D<T>(b); }
};
template <typename T> struct MadWideF {
  D<T> operator()(T a, T b, D<T> c) const {
    return static_cast<D<T>>(std::make_unsigned_t<D<T>>(D<T>(a) * D<T>(b)) +
                             std::make_unsigned_t<D<T>>(c));
  }
};

template <int Sign, typename T = int32_t> struct SaturatingF {
  T operator()(T a, T b) const {
    int64_t sum = int64_t(a) + Sign * int64_t(b);
    constexpr int64_t low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    return static_cast<T>(sum < low ? low : sum > high ? high : sum);
  }
};
template <typename T> struct SaturatingAdd {
  using F = SaturatingF<1, T>;
};
struct MadHiSatF {
  int32_t operator()(int32_t a, int32_t b, int32_t c) const {
    return SaturatingF<1>()(static_cast<int32_t>((int64_t(a) * b) >> 32), c);
  }
};

/// The parts of a word of the width of T, each by F.
template <typename T, template <typename> class Op> struct Packed {
  struct F {
    uint32_t operator()(uint32_t a, uint32_t b) const {
      uint32_t result = 0;
      for (unsigned at = 0; at < 32; at += 8 * sizeof(T))
        result |=
            uint32_t(U<T>(typename Op<T>::F()(static_cast<T>(a >> at), static_cast<T>(b >> at))))
            << at;
      return result;
    }
  };
  static constexpr Handler run = lanewise<F, uint32_t, uint32_t, uint32_t>;
};

template <template <typename> class Op> Handler pickPacked(Type type) {
  switch (type) {
  case Type::U16x2:
    return Packed<uint16_t, Op>::run;
  case Type::S16x2:
    return Packed<int16_t, Op>::run;
  case Type::U8x4:
    return Packed<uint8_t, Op>::run;
  case Type::S8x4:
    return Packed<int8_t, Op>::run;
  default:
    return nullptr;
  }
}

template <template <typename> class Op> Handler pickWithPacked(Type type) {
  Handler packed = pickPacked<Op>(type);
  return packed ? packed : pickInteger<Op>(type);
}

/// neg of packed bytes: 0 - a.
template <typename T> struct NegateParts {
  struct F {
    uint32_t operator()(uint32_t a) const { return typename Packed<T, Sub>::F()(0, a); }
  };
  static constexpr Handler run = lanewise<F, uint32_t, uint32_t>;
};

/// add.sat: of 32 bits, and of halves.
Handler saturatingAdd(Type type) {
  if (type == Type::S32)
    return lanewise<SaturatingF<1>, int32_t, int32_t, int32_t>;
  if (type == Type::U32)
    return lanewise<SaturatingF<1, uint32_t>, uint32_t, uint32_t, uint32_t>;
  return pickPacked<SaturatingAdd>(type);
}

/// The product of a and b as polynomials over GF(2), its lower or upper half, xor c.
template <bool High> struct CarrylessF {
  uint64_t operator()(uint64_t a, uint64_t b, uint64_t c) const {
    unsigned __int128 product = 0;
    for (unsigned i = 0; i < 64; ++i)
      if (a >> i & 1)
        product ^= static_cast<unsigned __int128>(b) << i;
    return static_cast<uint64_t>(High ? product >> 64 : product) ^ c;
  }
};

/// min.relu and max.relu: at least 0.
template <template <typename> class Op, typename T> struct ReluF {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    uint32_t result = 0;
    for (unsigned at = 0; at < 32; at += 8 * sizeof(T)) {
      T x = typename Op<T>::F()(static_cast<T>(a >> at), static_cast<T>(b >> at));
      result |= static_cast<uint32_t>(static_cast<std::make_unsigned_t<T>>(x < 0 ? T(0) : x)) << at;
    }
    return result;
  }
};

template <bool Signed> struct Mul24F {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    auto extend = [](uint32_t x) {
      return Signed ? int64_t(int32_t(x << 8) >> 8) : int64_t(x & 0xFFFFFF);
    };
    return static_cast<uint32_t>(extend(a) * extend(b));
  }
};
template <bool Signed> struct Mul24HighF {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    auto extend = [](uint32_t x) {
      return Signed ? int64_t(int32_t(x << 8) >> 8) : int64_t(x & 0xFFFFFF);
    };
    return static_cast<uint32_t>((extend(a) * extend(b)) >> 16);
  }
};
template <typename Mul> struct Mad24F {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const { return Mul()(a, b) + c; }
};

/// mad24.hi.sat.s32
struct Mad24SaturatingF {
  int32_t operator()(int32_t a, int32_t b, int32_t c) const {
    auto extend = [](int32_t x) { return int64_t(int32_t(uint32_t(x) << 8) >> 8); };
    const int64_t sum = int64_t(int32_t(extend(a) * extend(b) >> 16)) + c;
    return static_cast<int32_t>(std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX));
  }
};

bool integral(Type type) { return !isFloat(type) && type != Type::Pred; }

Handler withoutB(Type type, Handler handler) {
  // Arithmetic on .bNN does not exist.
  return type == Type::B16 || type == Type::B32 || type == Type::B64 ? nullptr : handler;
}

} // namespace

namespace fp4::sim {

static Status plainOnly(BindContext &cx) {
  if (cx.match.has("round") || cx.match.has("ftz"))
    return cx.fail("integers have no rounding mode and no .ftz");
  return {};
}

Status bindAdd(BindContext &cx) {
  if (!integral(cx.insn.type))
    return bindFloatAdd(cx);
  FP4_TRY(plainOnly(cx));
  if (cx.match.has("sat")) {
    if (Handler handler = saturatingAdd(cx.insn.type))
      return cx.use(handler);
    return cx.fail("'.sat' works on 32 bits, packed integers and floating-point types");
  }
  return useFor(cx, withoutB(cx.insn.type, pickWithPacked<Add>(cx.insn.type)));
}

Status bindSub(BindContext &cx) {
  if (!integral(cx.insn.type))
    return bindFloatSub(cx);
  FP4_TRY(plainOnly(cx));
  if (cx.match.has("sat") && cx.insn.type != Type::S32)
    return cx.fail("'.sat' works on .s32 and floating-point types");
  if (cx.match.has("sat"))
    return cx.use(lanewise<SaturatingF<-1>, int32_t, int32_t, int32_t>);
  return useFor(cx, withoutB(cx.insn.type, pickWithPacked<Sub>(cx.insn.type)));
}

Status bindMul(BindContext &cx) {
  if (integral(cx.insn.type))
    return cx.fail("an integer product expects .lo, .hi or .wide");
  return bindFloatMul(cx);
}

Status bindMulPart(BindContext &cx) {
  Type type = cx.insn.type;
  return useFor(cx, withoutB(type, cx.match.text("part") == "lo" ? pickInteger<MulLo>(type)
                                                                 : pickInteger<MulHi>(type)));
}

Status bindMulWide(BindContext &cx) {
  switch (cx.insn.type) {
  case Type::U16:
    return cx.use(lanewise<MulWideF<uint16_t>, uint32_t, uint16_t, uint16_t>);
  case Type::S16:
    return cx.use(lanewise<MulWideF<int16_t>, int32_t, int16_t, int16_t>);
  case Type::U32:
    return cx.use(lanewise<MulWideF<uint32_t>, uint64_t, uint32_t, uint32_t>);
  case Type::S32:
    return cx.use(lanewise<MulWideF<int32_t>, int64_t, int32_t, int32_t>);
  default:
    return useFor(cx, nullptr);
  }
}

Status bindMadWide(BindContext &cx) {
  switch (cx.insn.type) {
  case Type::U16:
    return cx.use(lanewise<MadWideF<uint16_t>, uint32_t, uint16_t, uint16_t, uint32_t>);
  case Type::S16:
    return cx.use(lanewise<MadWideF<int16_t>, int32_t, int16_t, int16_t, int32_t>);
  case Type::U32:
    return cx.use(lanewise<MadWideF<uint32_t>, uint64_t, uint32_t, uint32_t, uint64_t>);
  case Type::S32:
    return cx.use(lanewise<MadWideF<int32_t>, int64_t, int32_t, int32_t, int64_t>);
  default:
    return useFor(cx, nullptr);
  }
}

Status bindMadPart(BindContext &cx) {
  Type type = cx.insn.type;
  bool low = cx.match.text("part") == "lo";
  if (cx.match.has("sat")) {
    if (low || type != Type::S32)
      return cx.fail("'.sat' works with .hi.s32 only");
    return cx.use(lanewise<MadHiSatF, int32_t, int32_t, int32_t, int32_t>);
  }
  return useFor(cx, withoutB(type, low ? pickInteger<MadLo>(type) : pickInteger<MadHi>(type)));
}

Status bindCvtIntegers(BindContext &cx) {
  const std::string_view type = cx.match.text("dtype");
  const bool wide = type == "u16" || type == "s16";
  const auto bits = static_cast<uint8_t>(wide ? 16 : type[1] - '0');
  cx.insn.make<PackModifiers>({bits, type[0] == 's'});
  if (cx.match.has("ctype") == wide || bool(cx.insn.op[3]) == wide)
    return cx.fail(wide ? "packs two halves and takes no third operand"
                        : "expects .b32 and a third operand");
  return useFor(cx, cx.insn.type == Type::S32 ? packIntegers : nullptr);
}

Status bindMul24(BindContext &cx) {
  bool low = cx.match.text("part") == "lo", isSigned = cx.insn.type == Type::S32;
  if (!isSigned && cx.insn.type != Type::U32)
    return useFor(cx, nullptr);
  using T = uint32_t;
  if (low)
    return cx.use(isSigned ? lanewise<Mul24F<true>, T, T, T> : lanewise<Mul24F<false>, T, T, T>);
  return cx.use(isSigned ? lanewise<Mul24HighF<true>, T, T, T>
                         : lanewise<Mul24HighF<false>, T, T, T>);
}

Status bindMad24(BindContext &cx) {
  bool low = cx.match.text("part") == "lo", isSigned = cx.insn.type == Type::S32;
  if (!isSigned && cx.insn.type != Type::U32)
    return useFor(cx, nullptr);
  using T = uint32_t;
  if (cx.match.has("sat") && (low || !isSigned))
    return cx.fail("'.sat' belongs to mad24.hi.s32");
  if (cx.match.has("sat"))
    return cx.use(lanewise<Mad24SaturatingF, int32_t, int32_t, int32_t, int32_t>);
  if (low)
    return cx.use(isSigned ? lanewise<Mad24F<Mul24F<true>>, T, T, T, T>
                           : lanewise<Mad24F<Mul24F<false>>, T, T, T, T>);
  return cx.use(isSigned ? lanewise<Mad24F<Mul24HighF<true>>, T, T, T, T>
                         : lanewise<Mad24F<Mul24HighF<false>>, T, T, T, T>);
}

Status bindDiv(BindContext &cx) {
  if (!integral(cx.insn.type))
    return bindFloatDiv(cx);
  if (cx.match.has("mode") || cx.match.has("ftz"))
    return cx.fail("integers have no rounding mode and no .ftz");
  return useFor(cx, withoutB(cx.insn.type, pickInteger<Div>(cx.insn.type)));
}

Status bindClmad(BindContext &cx) {
  if (cx.insn.type != Type::U64)
    return useFor(cx, nullptr);
  using T = uint64_t;
  return cx.use(cx.match.text("part") == "hi" ? lanewise<CarrylessF<true>, T, T, T, T>
                                              : lanewise<CarrylessF<false>, T, T, T, T>);
}

Status bindRem(BindContext &cx) {
  return useFor(cx, withoutB(cx.insn.type, pickInteger<Rem>(cx.insn.type)));
}

Status bindSad(BindContext &cx) {
  return useFor(cx, withoutB(cx.insn.type, pickInteger<Sad>(cx.insn.type)));
}

Status bindAbs(BindContext &cx) {
  if (!integral(cx.insn.type))
    return bindFloatAbs(cx);
  if (!isSigned(cx.insn.type))
    return useFor(cx, nullptr);
  return useFor(cx, pickInteger<Abs>(cx.insn.type));
}

Status bindNeg(BindContext &cx) {
  if (!integral(cx.insn.type))
    return bindFloatNeg(cx);
  if (cx.insn.type == Type::S8x4)
    return cx.use(NegateParts<uint8_t>::run);
  if (!isSigned(cx.insn.type))
    return useFor(cx, nullptr);
  return useFor(cx, pickInteger<Neg>(cx.insn.type));
}

template <template <typename> class Op> static Status integerMinMax(BindContext &cx) {
  for (const char *modifier : {"ftz", "NaN", "xorsign", "abs"})
    if (cx.match.has(modifier))
      return cx.fail(std::string("integers do not take '.") + modifier + "'");
  if (cx.insn.op[3])
    return cx.fail("three inputs need .f32");
  if (!cx.match.has("relu"))
    return useFor(cx, withoutB(cx.insn.type, pickWithPacked<Op>(cx.insn.type)));
  using Word = uint32_t;
  if (cx.insn.type == Type::S32)
    return cx.use(lanewise<ReluF<Op, int32_t>, Word, Word, Word>);
  if (cx.insn.type == Type::S16x2)
    return cx.use(lanewise<ReluF<Op, int16_t>, Word, Word, Word>);
  if (cx.insn.type == Type::S8x4)
    return cx.use(lanewise<ReluF<Op, int8_t>, Word, Word, Word>);
  return cx.fail("'.relu' works on .s32, .s16x2 and .s8x4 among the integers");
}

Status bindMin(BindContext &cx) {
  if (!integral(cx.insn.type))
    return bindFloatMin(cx);
  return integerMinMax<Min>(cx);
}

Status bindMax(BindContext &cx) {
  if (!integral(cx.insn.type))
    return bindFloatMax(cx);
  return integerMinMax<Max>(cx);
}

} // namespace fp4::sim
