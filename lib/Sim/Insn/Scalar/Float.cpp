//===- Float.cpp - Floating-point arithmetic ------------------------------===//
//
// PTX ISA 9.7.3 to 9.7.5: floating point, half precision, mixed precision. Round to nearest in f32
// and f64 is the host's own arithmetic, vectorised; everything else evaluates each lane exactly (to
// odd, see Floats.h) and rounds once. Results that are NaN are the canonical NaN. Subnormals are
// kept unless .ftz is given. Most .approx and .full forms give the correctly rounded result, which
// the device only approximates.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/Lanes.h"
#include "Sim/Insn/Scalar/Arithmetic.h"
#include "Sim/Insn/Scalar/FloatNearest.h"
#include "Sim/Insn/Scalar/Floats.h"
#include "fp4/Numerics/PowerOfTwo.h"
#include "fp4/Numerics/Reciprocal.h"
#include "fp4/Numerics/SquareRoot.h"
#include <cfenv>

using namespace fp4;
using namespace fp4::sim;

namespace {

using Op = FloatOp;

//===----------------------------------------------------------------------===//
// The general path
//===----------------------------------------------------------------------===//

double zeroSum(double sum, double a, double b, Round mode) {
  // x + -x is -0 when rounding down, +0 otherwise.
  bool cancelled = sum == 0 && (a != 0 || b != 0 || std::signbit(a) != std::signbit(b));
  return cancelled ? (mode == Round::Down ? -0.0 : 0.0) : sum;
}

double divideOdd(double a, double b) {
  double q = a / b;
  if (!std::isfinite(q) || !std::isfinite(b) || q == 0)
    return q;
  return roundToOdd(q, std::fma(-q, b, a) / b);
}

/// div.approx multiplies by a reciprocal that is flushed to zero when |b| > 2^126.
double divideApprox(double a, double b) {
  return std::isfinite(b) && std::fabs(b) > 0x1p126 ? a * std::copysign(0.0, b) : divideOdd(a, b);
}

double sqrtOdd(double a) {
  double s = std::sqrt(a);
  return std::isfinite(s) && s > 0 ? roundToOdd(s, std::fma(-s, s, a)) : s;
}

double minMax(double a, double b, bool max, bool propagateNaN) {
  if (std::isnan(a) || std::isnan(b)) {
    if (propagateNaN || (std::isnan(a) && std::isnan(b)))
      return std::nan("");
    return std::isnan(a) ? b : a;
  }
  if (a == b) // -0 is below +0
    return (std::signbit(a) != 0) == max ? b : a;
  return (a > b) == max ? a : b;
}

/// The sine of `a` turns and of so many quarters more: exact where it is 0 or 1.
double sineOfTurns(double a, int quarters) {
  if (!std::isfinite(a))
    return std::nan("");
  constexpr double radians = 6.283185307179586476925;
  const double nearest = std::nearbyint(4 * std::remainder(a, 1.0)); // -2 to 2
  const double rest = radians * (std::remainder(a, 1.0) - nearest / 4);
  switch ((static_cast<int>(nearest) + quarters) & 3) {
  case 0:
    return quarters || rest != 0 ? std::sin(rest) : std::copysign(0.0, a);
  case 1:
    return std::cos(rest);
  case 2:
    return 0 - std::sin(rest);
  default:
    return -std::cos(rest);
  }
}

double transcendental(Op op, double a) {
  switch (op) {
  case Op::Ex2:
    return std::exp2(a);
  case Op::Lg2:
    return std::log2(a);
  case Op::Sin:
    return std::sin(a);
  case Op::Cos:
    return std::cos(a);
  case Op::SinTurns:
    return sineOfTurns(a, 0);
  case Op::CosTurns:
    return sineOfTurns(a, 1);
  case Op::Tanh:
    return std::tanh(a);
  default:
    return std::nan("");
  }
}

} // namespace

double fp4::sim::evaluate(const FloatModifiers &how, double a, double b, double c) {
  const Round mode = how.round;
  switch (how.op) {
  case Op::Add:
    return zeroSum(addOdd(a, b), a, b, mode);
  case Op::Sub:
    return zeroSum(addOdd(a, -b), a, -b, mode);
  case Op::Mul:
    return a * b;
  case Op::Fma:
    return zeroSum(addOdd(a * b, c), a * b, c, mode);
  case Op::Div:
    return divideOdd(a, b);
  case Op::DivApprox:
    return divideApprox(a, b);
  case Op::Rcp:
    return divideOdd(1, a);
  case Op::Sqrt:
    return sqrtOdd(a);
  case Op::Rsqrt:
    return a == 0 ? std::copysign(INFINITY, a) : 1 / std::sqrt(a);
  case Op::Min:
  case Op::Max:
    break;
  default:
    return transcendental(how.op, a);
  }
  bool max = how.op == Op::Max;
  if (!how.xorsign)
    return minMax(a, b, max, how.nan);
  double magnitude = minMax(std::fabs(a), std::fabs(b), max, how.nan);
  return std::signbit(a) != std::signbit(b) ? -magnitude : magnitude;
}

namespace {

/// One element of a format of at most 32 bits, from bits to bits.
uint32_t element(const FloatModifiers &how, const Format &format, const uint32_t *bits,
                 unsigned count) {
  double v[3] = {0, 0, 0};
  for (unsigned i = 0; i < count; ++i) {
    v[i] = decode(bits[i], format);
    if (how.ftz)
      v[i] = flushWide(v[i], format);
  }
  double x = evaluate(how, v[0], v[1], v[2]);
  if (count == 3 && how.op != Op::Fma)
    x = evaluate(how, x, v[2], 0); // three-input min and max
  if (how.sat)
    x = saturate(x);
  if (how.relu && x < 0)
    x = 0;
  uint32_t result = encode(x, format, how.round);
  if (!how.ftz)
    return result;
  uint32_t exponent = ((1u << format.exponentBits) - 1) << format.mantissaBits;
  uint32_t sign = 1u << (format.exponentBits + format.mantissaBits);
  return (result & exponent) ? result : result & sign;
}

/// Parts elements of T per register lane.
template <typename T, unsigned Parts, unsigned Sources>
Outcome general(ExecContext &cx, const Insn &insn) {
  struct Element {
    T part[Parts];
  };
  const Format &format = sizeof(T) == 4                                       ? kF32
                         : insn.type == Type::F16 || insn.type == Type::F16x2 ? kF16
                                                                              : kBF16;
  const auto &how = insn.as<FloatModifiers>();
  Lanes<Element> result;
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    for (unsigned p = 0; p < Parts; ++p) {
      uint32_t bits[3];
      for (unsigned s = 0; s < Sources; ++s)
        bits[s] = cx.src<Element>(insn.op[s + 1])[lane].part[p];
      result.v[lane].part[p] = static_cast<T>(element(how, format, bits, Sources));
    }
  }
  commit(cx, insn.op[0], result);
  return Outcome::Next;
}

/// Three-input min and max of absolute values.
Outcome magnitudes(ExecContext &cx, const Insn &insn) {
  const auto &how = insn.as<FloatModifiers>();
  const bool max = how.op == Op::Max;
  Lanes<uint32_t> result;
  for (unsigned lane = 0; lane < 32; ++lane) {
    double v[3];
    for (unsigned s = 0; s < 3; ++s) {
      const double x = cx.src<float>(insn.op[s + 1])[lane];
      v[s] = std::fabs(how.ftz ? flushWide(x, kF32) : x);
    }
    const double least = minMax(minMax(v[0], v[1], max, how.nan), v[2], max, how.nan);
    result.v[lane] = encode(least, kF32, Round::Nearest);
  }
  commit(cx, insn.op[0], result);
  return Outcome::Next;
}

template <unsigned Sources> Handler pickGeneral(Type type) {
  switch (type) {
  case Type::F32:
    return general<uint32_t, 1, Sources>;
  case Type::F32x2:
    return general<uint32_t, 2, Sources>;
  case Type::F16:
  case Type::BF16:
    return general<uint16_t, 1, Sources>;
  case Type::F16x2:
  case Type::BF16x2:
    return general<uint16_t, 2, Sources>;
  default:
    return nullptr;
  }
}

//===----------------------------------------------------------------------===//
// f64
//===----------------------------------------------------------------------===//

double evaluate64(const FloatModifiers &how, double a, double b, double c) {
  switch (how.op) {
  case Op::Add:
    return add64(a, b);
  case Op::Sub:
    return withNaN64(a - b, a, b);
  case Op::Mul:
    return withNaN64(a * b, a, b);
  case Op::Fma:
    return fma64(a, b, c);
  case Op::Div:
  case Op::DivApprox:
    return withNaN64(a / b, a, b);
  case Op::Rcp:
    return withNaN64(1 / a, a);
  case Op::Sqrt:
    return withNaN64(std::sqrt(a), a);
  case Op::Rsqrt:
    return a == 0 ? std::copysign(INFINITY, a) : withNaN64(1 / std::sqrt(a), a);
  default:
    return evaluate(how, a, b, c);
  }
}

/// Directed modes switch the host's rounding mode: f64 has no wider type to round from.
Outcome general64(ExecContext &cx, const Insn &insn) {
  static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  const auto &how = insn.as<FloatModifiers>();
  Lanes<double> result;
  int mode = modes[size_t(how.round)];
  if (mode != FE_TONEAREST)
    std::fesetround(mode);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    volatile double v[3] = {0, 0, 0};
    for (unsigned s = 0; s < 3; ++s)
      if (insn.op[s + 1])
        v[s] = cx.src<double>(insn.op[s + 1])[lane];
    volatile double x = evaluate64(how, v[0], v[1], v[2]);
    result.v[lane] = x;
  }
  if (mode != FE_TONEAREST)
    std::fesetround(FE_TONEAREST);
  commit(cx, insn.op[0], result);
  return Outcome::Next;
}

/// .approx.ftz.f64 knows the upper words alone: what divides, square roots and their reciprocals in
/// f64 begin with.
template <bool Root> struct CoarseF {
  static constexpr uint64_t upper = 0xFFFFFFFF00000000;
  uint64_t operator()(uint64_t bits) const {
    double a = std::bit_cast<double>(bits & upper);
    if (std::fabs(a) < 0x1p-1022)
      a = std::copysign(0.0, a);
    double x = Root ? 1 / std::copysign(std::sqrt(a), a) : 1 / a;
    if (std::isnan(x))
      return uint64_t(kNaN32) << 32;
    return std::bit_cast<uint64_t>(std::fabs(x) < 0x1p-1022 ? std::copysign(0.0, x) : x) & upper;
  }
};

/// .approx.ftz.f32 of a reciprocal, a square root, its reciprocal, or a power of two, as measured
/// on an H200, and .approx.f32 of the last. [uncertain] of other GPUs.
template <float (*Function)(float)> struct MeasuredF {
  uint32_t operator()(uint32_t bits) const {
    return std::bit_cast<uint32_t>(Function(std::bit_cast<float>(bits)));
  }
};
using ApproximateReciprocalF = MeasuredF<numerics::approximateReciprocal>;
using ApproximateSquareRootF = MeasuredF<numerics::approximateSquareRoot>;
using ApproximateReciprocalSquareRootF = MeasuredF<numerics::approximateReciprocalSquareRoot>;
using ApproximatePowerOfTwoF = MeasuredF<numerics::approximatePowerOfTwo>;
using ApproximateSmallPowerOfTwoF = MeasuredF<numerics::approximateSmallPowerOfTwo>;

struct Add64F {
  double operator()(double a, double b) const { return add64(a, b); }
};
struct Mul64F {
  double operator()(double a, double b) const { return withNaN64(a * b, a, b); }
};

//===----------------------------------------------------------------------===//
// Sign bits, tests
//===----------------------------------------------------------------------===//

template <typename T, T Sign, bool Negate> struct SignF {
  T operator()(T a) const { return Negate ? a ^ Sign : a & static_cast<T>(~Sign); }
};
/// Parts elements of 32 / Parts bits whose NaN becomes the canonical one (H200: f32, bf16).
template <unsigned Parts, uint32_t Infinity, bool Negate> struct SignCanonicalF {
  static constexpr uint32_t width = 32 / Parts, sign = 1u << (width - 1);
  uint32_t operator()(uint32_t a) const {
    uint32_t result = 0;
    for (uint32_t part = 0; part < Parts; ++part) {
      uint32_t x = a >> (part * width) & (sign | (sign - 1));
      x = (x & (sign - 1)) > Infinity ? sign - 1 : SignF<uint32_t, sign, Negate>()(x);
      result |= x << (part * width);
    }
    return result;
  }
};
/// Bits only, NaN included (H200).
template <typename T, T Sign> struct CopysignF {
  T operator()(T a, T b) const { return (b & static_cast<T>(~Sign)) | (a & Sign); }
};
template <bool Negate> struct SignFlushF {
  float operator()(float a) const { return flush(Negate ? -a : std::fabs(a)); }
};

template <bool Negate> Handler pickSign(Type type, bool ftz) {
  switch (type) {
  case Type::F16:
  case Type::BF16:
    return lanewise<SignF<uint16_t, 0x8000, Negate>, uint16_t, uint16_t>;
  case Type::F16x2:
    return lanewise<SignF<uint32_t, 0x80008000, Negate>, uint32_t, uint32_t>;
  case Type::BF16x2:
    return lanewise<SignCanonicalF<2, 0x7F80, Negate>, uint32_t, uint32_t>;
  case Type::F32:
    if (ftz)
      return lanewise<SignFlushF<Negate>, float, float>;
    return lanewise<SignCanonicalF<1, 0x7F800000, Negate>, uint32_t, uint32_t>;
  case Type::F64:
    return lanewise<SignF<uint64_t, 1ull << 63, Negate>, uint64_t, uint64_t>;
  default:
    return nullptr;
  }
}

template <typename T> Outcome testp(ExecContext &cx, const Insn &insn) {
  const T *a = cx.src<T>(insn.op[1]);
  const auto test = size_t(insn.as<TestModifiers>().test);
  uint32_t result = 0;
  for (int lane = 0; lane < 32; ++lane) {
    int kind = std::fpclassify(a[lane]);
    bool is[] = {
        kind != FP_INFINITE && kind != FP_NAN, kind == FP_INFINITE, kind != FP_NAN, kind == FP_NAN,
        kind == FP_NORMAL || kind == FP_ZERO,  kind == FP_SUBNORMAL};
    result |= uint32_t(is[test]) << lane;
  }
  cx.setPredicate(insn.op[0], result);
  return Outcome::Next;
}

bool packedOrNarrow(Type type) {
  return type == Type::F16 || type == Type::BF16 || type == Type::F16x2 || type == Type::BF16x2;
}

/// Fills the FloatModifiers; checks what depends on the type alone.
Status describe(BindContext &cx, Op op, const char *roundSlot) {
  static constexpr std::string_view names[] = {"rn", "rz", "rm", "rp"};
  Insn &insn = cx.insn;
  auto &how = insn.make<FloatModifiers>({op});
  for (uint8_t i = 0; i < 4; ++i)
    if (cx.match.text(roundSlot) == names[i])
      how.round = Round(i);
  how.ftz = cx.match.has("ftz");
  how.sat = cx.match.has("sat");
  how.nan = cx.match.has("NaN");
  how.xorsign = cx.match.has("xorsign");
  how.relu = cx.match.has("relu");
  if (how.ftz && op != Op::Ex2 &&
      (insn.type == Type::F64 || insn.type == Type::BF16 || insn.type == Type::BF16x2))
    return cx.fail("'.ftz' does not work on ." + std::string(spelling(insn.type)));
  if (how.sat && (insn.type == Type::F64 || insn.type == Type::F32x2))
    return cx.fail("'.sat' does not work on ." + std::string(spelling(insn.type)));
  if (how.round != Round::Nearest && packedOrNarrow(insn.type))
    return cx.fail("half precision rounds to nearest only");
  return {};
}

bool roundsToNearest(const Insn &insn) { return insn.as<FloatModifiers>().round == Round::Nearest; }

/// The general handler for `op`, whatever the type.
template <unsigned Sources> Status bindGeneral(BindContext &cx, Op op, const char *roundSlot) {
  FP4_TRY(describe(cx, op, roundSlot));
  if (Handler fast = nearestHandler(cx.insn, op, Sources))
    return cx.use(fast);
  if (Handler fast = halfHandler(cx.insn, op))
    return cx.use(fast);
  if (cx.insn.type == Type::F64)
    return cx.use(general64);
  return useFor(cx, pickGeneral<Sources>(cx.insn.type));
}

Status unary(BindContext &cx, Op op) { return bindGeneral<1>(cx, op, "mode"); }

} // namespace

namespace fp4::sim {

Status bindFloatAdd(BindContext &cx) {
  FP4_TRY(bindGeneral<2>(cx, Op::Add, "round"));
  if (cx.insn.type == Type::F64 && roundsToNearest(cx.insn))
    return cx.use(lanewise<Add64F, double, double, double>);
  return {};
}

Status bindFloatSub(BindContext &cx) { return bindGeneral<2>(cx, Op::Sub, "round"); }

Status bindFloatMul(BindContext &cx) {
  FP4_TRY(bindGeneral<2>(cx, Op::Mul, "round"));
  if (cx.insn.type == Type::F64 && roundsToNearest(cx.insn))
    return cx.use(lanewise<Mul64F, double, double, double>);
  return {};
}

Status bindFma(BindContext &cx) { return bindGeneral<3>(cx, Op::Fma, "round"); }

Status bindFloatDiv(BindContext &cx) {
  if (cx.insn.type != Type::F32 && cx.insn.type != Type::F64)
    return useFor(cx, nullptr);
  return bindGeneral<2>(cx, cx.match.text("mode") == "approx" ? Op::DivApprox : Op::Div, "mode");
}

Status bindRcp(BindContext &cx) {
  const bool approximate = cx.match.text("mode") == "approx";
  if (approximate && cx.insn.type == Type::F32 && cx.match.has("ftz"))
    return cx.use(lanewise<ApproximateReciprocalF, uint32_t, uint32_t>);
  if (!approximate || cx.insn.type != Type::F64)
    return unary(cx, Op::Rcp);
  if (!cx.match.has("ftz"))
    return cx.fail("'rcp.approx.f64' expects .ftz");
  return cx.use(lanewise<CoarseF<false>, uint64_t, uint64_t>);
}
Status bindSqrt(BindContext &cx) {
  if (cx.match.text("mode") == "approx" && cx.insn.type == Type::F32 && cx.match.has("ftz"))
    return cx.use(lanewise<ApproximateSquareRootF, uint32_t, uint32_t>);
  return unary(cx, Op::Sqrt);
}
Status bindRsqrt(BindContext &cx) {
  if (cx.insn.type == Type::F32 && cx.match.has("ftz"))
    return cx.use(lanewise<ApproximateReciprocalSquareRootF, uint32_t, uint32_t>);
  if (cx.insn.type == Type::F64 && cx.match.has("ftz"))
    return cx.use(lanewise<CoarseF<true>, uint64_t, uint64_t>);
  return unary(cx, Op::Rsqrt);
}
Status bindEx2(BindContext &cx) {
  if (cx.insn.type != Type::F32)
    return unary(cx, Op::Ex2);
  return cx.match.has("ftz") ? cx.use(lanewise<ApproximatePowerOfTwoF, uint32_t, uint32_t>)
                             : cx.use(lanewise<ApproximateSmallPowerOfTwoF, uint32_t, uint32_t>);
}
Status bindLg2(BindContext &cx) { return unary(cx, Op::Lg2); }
/// An angle in turns expects .ftz (ptxas 13.5).
static Status bindAngle(BindContext &cx, Op radians, Op turns) {
  if (!cx.match.has("turns"))
    return unary(cx, radians);
  if (cx.insn.type != Type::F32 || !cx.match.has("ftz"))
    return cx.fail("'.2pi' expects .ftz and .f32");
  return unary(cx, turns);
}
Status bindSin(BindContext &cx) { return bindAngle(cx, Op::Sin, Op::SinTurns); }
Status bindCos(BindContext &cx) { return bindAngle(cx, Op::Cos, Op::CosTurns); }
Status bindTanh(BindContext &cx) { return unary(cx, Op::Tanh); }

Status bindCopysign(BindContext &cx) {
  if (cx.insn.type == Type::F32)
    return cx.use(lanewise<CopysignF<uint32_t, 1u << 31>, uint32_t, uint32_t, uint32_t>);
  if (cx.insn.type == Type::F64)
    return cx.use(lanewise<CopysignF<uint64_t, 1ull << 63>, uint64_t, uint64_t, uint64_t>);
  return useFor(cx, nullptr);
}

static Status floatMinMax(BindContext &cx, Op op) {
  const bool three = bool(cx.insn.op[3]);
  if (three && (cx.insn.type != Type::F32 || cx.match.has("xorsign")))
    return cx.fail("three inputs need .f32 and have no .xorsign");
  if (!three && cx.match.has("xorsign") != cx.match.has("abs"))
    return cx.fail("'.xorsign' and '.abs' belong together");
  if (three && cx.match.has("abs")) {
    FP4_TRY(describe(cx, op, "mode"));
    return cx.use(magnitudes);
  }
  return three ? bindGeneral<3>(cx, op, "mode") : bindGeneral<2>(cx, op, "mode");
}

Status bindFloatMin(BindContext &cx) { return floatMinMax(cx, Op::Min); }
Status bindFloatMax(BindContext &cx) { return floatMinMax(cx, Op::Max); }

Status bindFloatAbs(BindContext &cx) {
  return useFor(cx, pickSign<false>(cx.insn.type, cx.match.has("ftz")));
}
Status bindFloatNeg(BindContext &cx) {
  return useFor(cx, pickSign<true>(cx.insn.type, cx.match.has("ftz")));
}

Status bindTestp(BindContext &cx) {
  cx.insn.make<TestModifiers>({cx.match.pick<FloatTest>("kind")});
  if (cx.insn.type == Type::F32)
    return cx.use(testp<float>);
  return useFor(cx, cx.insn.type == Type::F64 ? testp<double> : nullptr);
}

} // namespace fp4::sim
