//===- Compare.cpp - setp, set, selp, slct --------------------------------===//
// PTX ISA 9.7.6 and 9.7.7 "Comparison and Selection Instructions".
#include "Sim/Insn/Lanes.h"
#include "Sim/Insn/Scalar/Floats.h"
#include <functional>

using namespace fp4;
using namespace fp4::sim;

namespace {

using Cmp = Comparison;

template <Cmp C, typename T> bool compare(T a, T b) {
  switch (C) {
  case Cmp::Eq:
    return a == b;
  case Cmp::Ne:
    // An ordered comparison is false for NaN; x86's != is not.
    return std::is_floating_point_v<T> ? a < b || a > b : a != b;
  case Cmp::Lt:
    return a < b;
  case Cmp::Le:
    return a <= b;
  case Cmp::Gt:
    return a > b;
  case Cmp::Ge:
    return a >= b;
  case Cmp::Equ:
    return !(a < b || a > b);
  case Cmp::Neu:
    return a != b;
  case Cmp::Ltu:
    return !(a >= b);
  case Cmp::Leu:
    return !(a > b);
  case Cmp::Gtu:
    return !(a <= b);
  case Cmp::Geu:
    return !(a < b);
  case Cmp::Num:
    return a == a && b == b;
  case Cmp::Nan:
    return a != a || b != b;
  default:
    return false;
  }
}

/// 0 or 1 per lane to a mask.
inline uint32_t gather(const Lanes<uint8_t> &flags) {
  uint32_t mask = 0;
  for (int i = 0; i < 4; ++i) {
    uint64_t eight;
    std::memcpy(&eight, flags.v + 8 * i, 8);
    mask |= static_cast<uint32_t>((eight * 0x0102040810204080ull) >> 56) << (8 * i);
  }
  return mask;
}

template <Cmp C, typename T> uint32_t compareLanes(const T *a, const T *b) {
  Lanes<uint8_t> flags;
  for (int lane = 0; lane < 32; ++lane)
    flags.v[lane] = compare<C, T>(a[lane], b[lane]);
  return gather(flags);
}

uint32_t combine(Combine how, uint32_t mask, uint32_t c) {
  switch (how) {
  case Combine::And:
    return mask & c;
  case Combine::Or:
    return mask | c;
  case Combine::Xor:
    return mask ^ c;
  default:
    return mask;
  }
}

/// p = (a cmp b) op c, q = !(a cmp b) op c
Outcome setBoth(ExecContext &cx, const Insn &insn, uint32_t mask) {
  const Combine how = insn.as<CompareModifiers>().combine;
  uint32_t c = cx.predicate(insn.op[4]);
  cx.setPredicate(insn.op[0], combine(how, mask, c));
  cx.setPredicate(insn.op[1], combine(how, ~mask, c));
  return Outcome::Next;
}

template <Cmp C, typename T> Outcome setp(ExecContext &cx, const Insn &insn) {
  return setBoth(cx, insn, compareLanes<C, T>(cx.src<T>(insn.op[2]), cx.src<T>(insn.op[3])));
}

template <typename T> using CompareFn = uint32_t (*)(const T *, const T *);

template <typename T> CompareFn<T> compareFunction(Cmp c) {
  static constexpr CompareFn<T> table[] = {
      compareLanes<Cmp::Eq, T>,  compareLanes<Cmp::Ne, T>,  compareLanes<Cmp::Lt, T>,
      compareLanes<Cmp::Le, T>,  compareLanes<Cmp::Gt, T>,  compareLanes<Cmp::Ge, T>,
      compareLanes<Cmp::Lt, T>,  compareLanes<Cmp::Le, T>,  compareLanes<Cmp::Gt, T>,
      compareLanes<Cmp::Ge, T>,  compareLanes<Cmp::Equ, T>, compareLanes<Cmp::Neu, T>,
      compareLanes<Cmp::Ltu, T>, compareLanes<Cmp::Leu, T>, compareLanes<Cmp::Gtu, T>,
      compareLanes<Cmp::Geu, T>, compareLanes<Cmp::Num, T>, compareLanes<Cmp::Nan, T>};
  return table[size_t(c)];
}

template <typename T> Handler setpHandler(Cmp c) {
  static constexpr Handler table[] = {
      setp<Cmp::Eq, T>,  setp<Cmp::Ne, T>,  setp<Cmp::Lt, T>,  setp<Cmp::Le, T>,  setp<Cmp::Gt, T>,
      setp<Cmp::Ge, T>,  setp<Cmp::Lt, T>,  setp<Cmp::Le, T>,  setp<Cmp::Gt, T>,  setp<Cmp::Ge, T>,
      setp<Cmp::Equ, T>, setp<Cmp::Neu, T>, setp<Cmp::Ltu, T>, setp<Cmp::Leu, T>, setp<Cmp::Gtu, T>,
      setp<Cmp::Geu, T>, setp<Cmp::Num, T>, setp<Cmp::Nan, T>};
  return table[size_t(c)];
}

/// Sources of 16-bit and flushed floats, as float.
void widen(ExecContext &cx, const Insn &insn, const Operand &o, unsigned half, Lanes<float> &out) {
  const bool ftz = insn.as<CompareModifiers>().ftz;
  for (int lane = 0; lane < 32; ++lane) {
    switch (insn.type) {
    case Type::F32:
      out.v[lane] = cx.src<float>(o)[lane];
      break;
    case Type::F16:
      out.v[lane] = f16ToFloat(cx.src<uint16_t>(o)[lane]);
      break;
    case Type::BF16:
      out.v[lane] = bf16ToFloat(cx.src<uint16_t>(o)[lane]);
      break;
    case Type::F16x2:
      out.v[lane] = f16ToFloat(static_cast<uint16_t>(cx.src<uint32_t>(o)[lane] >> (16 * half)));
      break;
    default:
      out.v[lane] = bf16ToFloat(static_cast<uint16_t>(cx.src<uint32_t>(o)[lane] >> (16 * half)));
      break;
    }
    if (ftz)
      out.v[lane] = flush(out.v[lane]);
  }
}

uint32_t compareWidened(ExecContext &cx, const Insn &insn, const Operand &left,
                        const Operand &right, unsigned half) {
  Lanes<float> a, b;
  widen(cx, insn, left, half, a);
  widen(cx, insn, right, half, b);
  return compareFunction<float>(insn.as<CompareModifiers>().comparison)(a.v, b.v);
}

Outcome setpWidened(ExecContext &cx, const Insn &insn) {
  return setBoth(cx, insn, compareWidened(cx, insn, insn.op[2], insn.op[3], 0));
}

/// p for the low halves, q for the high halves.
Outcome setpHalves(ExecContext &cx, const Insn &insn) {
  uint32_t c = cx.predicate(insn.op[4]);
  for (unsigned half = 0; half < 2; ++half) {
    uint32_t mask = compareWidened(cx, insn, insn.op[2], insn.op[3], half);
    cx.setPredicate(insn.op[half], combine(insn.as<CompareModifiers>().combine, mask, c));
  }
  return Outcome::Next;
}

template <typename T>
uint32_t compareAs(ExecContext &cx, const Insn &insn, const Operand &a, const Operand &b) {
  return compareFunction<T>(insn.as<CompareModifiers>().comparison)(cx.src<T>(a), cx.src<T>(b));
}

/// The parts `part` of packed integers, widened.
uint32_t compareParts(ExecContext &cx, const Insn &insn, const Operand &left, const Operand &right,
                      unsigned part) {
  const unsigned width = 32 / partsOf(insn.type), drop = 32 - width;
  Lanes<uint32_t> a, b;
  for (unsigned lane = 0; lane < 32; ++lane) {
    a.v[lane] = cx.src<uint32_t>(left)[lane] >> (width * part) << drop;
    b.v[lane] = cx.src<uint32_t>(right)[lane] >> (width * part) << drop;
  }
  // At the top of a word, parts compare as they do by themselves.
  const Comparison comparison = insn.as<CompareModifiers>().comparison;
  if (!isSigned(insn.type))
    return compareFunction<uint32_t>(comparison)(a.v, b.v);
  return compareFunction<int32_t>(comparison)(reinterpret_cast<const int32_t *>(a.v),
                                              reinterpret_cast<const int32_t *>(b.v));
}

uint32_t compareAny(ExecContext &cx, const Insn &insn, const Operand &a, const Operand &b,
                    unsigned half) {
  if (!isFloat(insn.type) && partsOf(insn.type) > 1)
    return compareParts(cx, insn, a, b, half);
  switch (insn.type) {
  case Type::U16:
  case Type::B16:
    return compareAs<uint16_t>(cx, insn, a, b);
  case Type::S16:
    return compareAs<int16_t>(cx, insn, a, b);
  case Type::U32:
  case Type::B32:
    return compareAs<uint32_t>(cx, insn, a, b);
  case Type::S32:
    return compareAs<int32_t>(cx, insn, a, b);
  case Type::U64:
  case Type::B64:
    return compareAs<uint64_t>(cx, insn, a, b);
  case Type::S64:
    return compareAs<int64_t>(cx, insn, a, b);
  case Type::F64:
    return compareAs<double>(cx, insn, a, b);
  default:
    return compareWidened(cx, insn, a, b, half);
  }
}

Outcome set(ExecContext &cx, const Insn &insn) {
  const auto &compare = insn.as<CompareModifiers>();
  uint32_t c = cx.predicate(insn.op[3]);
  uint32_t masks[4] = {};
  for (unsigned e = 0; e < compare.elements; ++e)
    masks[e] = combine(compare.combine, compareAny(cx, insn, insn.op[1], insn.op[2], e), c);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    uint64_t value = 0;
    for (unsigned e = 0; e < compare.elements; ++e)
      if (masks[e] >> lane & 1)
        value |= uint64_t(compare.trueValue) << (compare.elementBits * e);
    cx.setScalar(insn.op[0], lane, value);
  }
  return Outcome::Next;
}

template <typename T> Outcome selp(ExecContext &cx, const Insn &insn) {
  const T *a = cx.src<T>(insn.op[1]), *b = cx.src<T>(insn.op[2]);
  uint32_t p = cx.predicate(insn.op[3]);
  Lanes<T> result;
  select(result.v, a, b, p);
  commit(cx, insn.op[0], result);
  return Outcome::Next;
}

/// c >= 0 ? a : b; NaN selects b.
template <typename T, typename C> Outcome slct(ExecContext &cx, const Insn &insn) {
  const T *a = cx.src<T>(insn.op[1]), *b = cx.src<T>(insn.op[2]);
  const C *c = cx.src<C>(insn.op[3]);
  cx.store<T>(insn.op[0], [&](int lane) { return c[lane] >= C(0) ? a[lane] : b[lane]; });
  return Outcome::Next;
}

/// lo, ls, hi, hs compare unsigned; the u-forms, num and nan are for floats.
bool comparisonFits(Cmp c, Type type) {
  if (isFloat(type))
    return c < Cmp::Lo || c > Cmp::Hs;
  if (c >= Cmp::Equ)
    return false;
  return (c < Cmp::Lo || !isSigned(type)) &&
         !(c > Cmp::Ne && c < Cmp::Lo && typeFromSpelling("b32") == type);
}

Status describe(BindContext &cx) {
  Insn &insn = cx.insn;
  const auto &compare = insn.make<CompareModifiers>(
      {cx.match.pick<Cmp>("cmp"), Combine(cx.match.choice("bool") + 1), cx.match.has("ftz")});
  if (compare.ftz && (!isFloat(insn.type) || insn.type == Type::F64))
    return cx.fail("'.ftz' does not work on ." + std::string(spelling(insn.type)));
  if (!comparisonFits(compare.comparison, insn.type))
    return cx.fail("'." + std::string(cx.match.text("cmp")) + "' does not work on ." +
                   std::string(spelling(insn.type)));
  return {};
}

} // namespace

namespace fp4::sim {

Status bindSetp(BindContext &cx) {
  FP4_TRY(describe(cx));
  Insn &insn = cx.insn;
  if (bool(insn.op[4]) != cx.match.has("bool"))
    return cx.fail("a combining operation and its predicate belong together");
  const auto &compare = insn.as<CompareModifiers>();
  const Cmp c = compare.comparison;
  switch (insn.type) {
  case Type::U16:
  case Type::B16:
    return cx.use(setpHandler<uint16_t>(c));
  case Type::S16:
    return cx.use(setpHandler<int16_t>(c));
  case Type::U32:
  case Type::B32:
    return cx.use(setpHandler<uint32_t>(c));
  case Type::S32:
    return cx.use(setpHandler<int32_t>(c));
  case Type::U64:
  case Type::B64:
    return cx.use(setpHandler<uint64_t>(c));
  case Type::S64:
    return cx.use(setpHandler<int64_t>(c));
  case Type::F64:
    return cx.use(setpHandler<double>(c));
  case Type::F32:
    return cx.use(compare.ftz ? setpWidened : setpHandler<float>(c));
  case Type::F16:
  case Type::BF16:
    return cx.use(setpWidened);
  case Type::F16x2:
  case Type::BF16x2:
    return cx.use(setpHalves);
  default:
    return useFor(cx, nullptr);
  }
}

Status bindSet(BindContext &cx) {
  FP4_TRY(describe(cx));
  Insn &insn = cx.insn;
  auto compare = insn.as<CompareModifiers>();
  Type type = cx.match.type("dtype");
  if (bool(insn.op[3]) != cx.match.has("bool"))
    return cx.fail("a combining operation and its predicate belong together");
  const bool packed = partsOf(insn.type) > 1;
  if (packed && !isFloat(insn.type))
    return useFor(cx, nullptr);
  compare.elements = static_cast<uint8_t>(partsOf(insn.type));
  compare.elementBits = static_cast<uint8_t>(8 * bytesOf(type) / compare.elements);
  if (type == Type::F32)
    compare.trueValue = 0x3F800000;
  else if (type == Type::F16 || type == Type::F16x2)
    compare.trueValue = 0x3C00;
  else if (type == Type::BF16 || type == Type::BF16x2)
    compare.trueValue = 0x3F80;
  else
    compare.trueValue = static_cast<uint32_t>((uint64_t(1) << compare.elementBits) - 1);
  insn.make(compare);
  return useFor(cx, bytesOf(type) == 2 || bytesOf(type) == 4 ? set : nullptr);
}

/// Each part of the result is all ones or zero.
Status bindSetPacked(BindContext &cx) {
  FP4_TRY(describe(cx));
  auto compare = cx.insn.as<CompareModifiers>();
  compare.elements = static_cast<uint8_t>(partsOf(cx.insn.type));
  compare.elementBits = static_cast<uint8_t>(32 / compare.elements);
  compare.trueValue = (1u << compare.elementBits) - 1;
  cx.insn.make(compare);
  return cx.use(set);
}

Status bindSelp(BindContext &cx) {
  switch (bitsOf(cx.insn.type)) {
  case 16:
    return cx.use(selp<uint16_t>);
  case 32:
    return cx.use(selp<uint32_t>);
  case 64:
    return cx.use(selp<uint64_t>);
  default:
    return useFor(cx, nullptr);
  }
}

Status bindSlct(BindContext &cx) {
  bool onFloat = cx.match.type("stype") == Type::F32;
  if (!onFloat && cx.match.type("stype") != Type::S32)
    return cx.fail("the selector must be .s32 or .f32");
  switch (bitsOf(cx.insn.type)) {
  case 16:
    return cx.use(onFloat ? slct<uint16_t, float> : slct<uint16_t, int32_t>);
  case 32:
    return cx.use(onFloat ? slct<uint32_t, float> : slct<uint32_t, int32_t>);
  case 64:
    return cx.use(onFloat ? slct<uint64_t, float> : slct<uint64_t, int32_t>);
  default:
    return useFor(cx, nullptr);
  }
}

} // namespace fp4::sim
