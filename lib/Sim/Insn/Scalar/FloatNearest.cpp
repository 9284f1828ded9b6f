//===- FloatNearest.cpp - The vectorised paths of f32 and f32x2 -----------===//
//
// Round to nearest is the host's own arithmetic; minimum and maximum round nothing. Loops run over
// all 32 lanes (64 floats for f32x2) without a branch, so that the compiler vectorises them.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/Scalar/FloatNearest.h"
#include "Sim/Insn/Lanes.h"
#include "Sim/Insn/Scalar/Floats.h"

using namespace fp4::sim;

namespace {

struct AddF {
  float operator()(float a, float b) const { return a + b; }
};
struct SubF {
  float operator()(float a, float b) const { return a - b; }
};
struct MulF {
  float operator()(float a, float b) const { return a * b; }
};
struct DivF {
  float operator()(float a, float b) const { return a / b; }
};
/// A reciprocal that is flushed to zero when |b| > 2^126, then a product.
struct DivApproxF {
  float operator()(float a, float b) const {
    float magnitude = std::fabs(b);
    bool tiny = magnitude > 0x1p126f && magnitude <= 0x1.fffffep127f;
    return tiny ? a * std::copysign(0.0f, b) : a / b;
  }
};
struct RcpF {
  float operator()(float a) const { return 1.0f / a; }
};
struct SqrtF {
  float operator()(float a) const { return std::sqrt(a); }
};

/// Equal operands differ at most in the sign of zero: -0 is below +0.
template <bool Max, bool PropagateNaN> struct MinMaxF {
  float operator()(float a, float b) const {
    uint32_t x = std::bit_cast<uint32_t>(a), y = std::bit_cast<uint32_t>(b);
    float equal = std::bit_cast<float>(Max ? x & y : x | y);
    float ordered = a == b ? equal : (Max ? a > b : a < b) ? a : b;
    if (PropagateNaN)
      return a != a ? a : ordered; // when only b is NaN, the comparison chose it
    return b != b ? a : ordered;
  }
};

/// The result of one element, as the modifiers want it.
template <bool Ftz, bool Sat> inline float finish(float x) {
  x = canonical(x);
  x = Ftz ? flush(x) : x;
  return Sat ? saturate(x) : x;
}
template <bool Ftz> inline float take(float x) { return Ftz ? flush(x) : x; }

template <unsigned Count> struct Element {
  float part[Count / 32];
};

/// Count floats per register: 32 for f32, 64 for f32x2.
template <typename F, unsigned Count, bool Ftz, bool Sat>
Outcome binary(ExecContext &cx, const Insn &insn) {
  const float *a = cx.src<float>(insn.op[1]), *b = cx.src<float>(insn.op[2]);
  Lanes<Element<Count>> result;
  float *r = result.v[0].part;
  for (unsigned i = 0; i < Count; ++i)
    r[i] = finish<Ftz, Sat>(F()(take<Ftz>(a[i]), take<Ftz>(b[i])));
  commit(cx, insn.op[0], result);
  return Outcome::Next;
}

template <typename F, bool Ftz> Outcome unary(ExecContext &cx, const Insn &insn) {
  const float *a = cx.src<float>(insn.op[1]);
  Lanes<float> result;
  for (unsigned i = 0; i < 32; ++i)
    result.v[i] = finish<Ftz, false>(F()(take<Ftz>(a[i])));
  commit(cx, insn.op[0], result);
  return Outcome::Next;
}

template <typename F, bool Ftz> Outcome three(ExecContext &cx, const Insn &insn) {
  const float *a = cx.src<float>(insn.op[1]), *b = cx.src<float>(insn.op[2]);
  const float *c = cx.src<float>(insn.op[3]);
  Lanes<float> result;
  for (unsigned i = 0; i < 32; ++i)
    result.v[i] = finish<Ftz, false>(F()(F()(take<Ftz>(a[i]), take<Ftz>(b[i])), take<Ftz>(c[i])));
  commit(cx, insn.op[0], result);
  return Outcome::Next;
}

//===----------------------------------------------------------------------===//
// Fused multiply-add
//===----------------------------------------------------------------------===//

#define FP4_FMA_LOOP                                                                               \
  for (unsigned i = 0; i < Count; ++i)                                                             \
    r[i] = finish<Ftz, Sat>(__builtin_fmaf(take<Ftz>(a[i]), take<Ftz>(b[i]), take<Ftz>(c[i])));

/// Without the host's instruction each lane is a library call.
template <unsigned Count, bool Ftz, bool Sat>
void fmaLoop(const float *a, const float *b, const float *c, float *r) {
  FP4_FMA_LOOP
}

#if defined(__x86_64__)
template <unsigned Count, bool Ftz, bool Sat>
__attribute__((target("avx2,fma"), noinline)) void fmaLoopHardware(const float *a, const float *b,
                                                                   const float *c, float *r) {
  FP4_FMA_LOOP
}
const bool kHardwareFma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
template <unsigned Count, bool Ftz, bool Sat>
void fmaLoopHardware(const float *a, const float *b, const float *c, float *r) {
  FP4_FMA_LOOP
}
constexpr bool kHardwareFma = true;
#endif
#undef FP4_FMA_LOOP

template <unsigned Count, bool Ftz, bool Sat> Outcome fma(ExecContext &cx, const Insn &insn) {
  const float *a = cx.src<float>(insn.op[1]), *b = cx.src<float>(insn.op[2]);
  const float *c = cx.src<float>(insn.op[3]);
  Lanes<Element<Count>> result;
  if (kHardwareFma)
    fmaLoopHardware<Count, Ftz, Sat>(a, b, c, result.v[0].part);
  else
    fmaLoop<Count, Ftz, Sat>(a, b, c, result.v[0].part);
  commit(cx, insn.op[0], result);
  return Outcome::Next;
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

template <typename F> Handler pickBinary(bool wide, bool ftz, bool sat) {
  if (wide)
    return ftz ? binary<F, 64, true, false> : binary<F, 64, false, false>;
  if (sat)
    return ftz ? binary<F, 32, true, true> : binary<F, 32, false, true>;
  return ftz ? binary<F, 32, true, false> : binary<F, 32, false, false>;
}

Handler pickFma(bool wide, bool ftz, bool sat) {
  if (wide)
    return ftz ? fma<64, true, false> : fma<64, false, false>;
  if (sat)
    return ftz ? fma<32, true, true> : fma<32, false, true>;
  return ftz ? fma<32, true, false> : fma<32, false, false>;
}

template <typename F> Handler pickUnary(bool ftz) { return ftz ? unary<F, true> : unary<F, false>; }

template <bool Max> Handler pickMinMax(const Insn &insn, unsigned sources) {
  bool ftz = insn.as<FloatModifiers>().ftz, nan = insn.as<FloatModifiers>().nan;
  if (sources == 3) {
    if (nan)
      return ftz ? three<MinMaxF<Max, true>, true> : three<MinMaxF<Max, true>, false>;
    return ftz ? three<MinMaxF<Max, false>, true> : three<MinMaxF<Max, false>, false>;
  }
  return nan ? pickBinary<MinMaxF<Max, true>>(false, ftz, false)
             : pickBinary<MinMaxF<Max, false>>(false, ftz, false);
}

} // namespace

Handler fp4::sim::nearestHandler(const Insn &insn, FloatOp op, unsigned sources) {
  const auto &how = insn.as<FloatModifiers>();
  bool wide = insn.type == Type::F32x2, ftz = how.ftz, sat = how.sat;
  if ((insn.type != Type::F32 && !wide) || how.round != Round::Nearest || how.xorsign || how.relu)
    return nullptr;
  switch (op) {
  case FloatOp::Add:
    return pickBinary<AddF>(wide, ftz, sat);
  case FloatOp::Sub:
    return pickBinary<SubF>(wide, ftz, sat);
  case FloatOp::Mul:
    return pickBinary<MulF>(wide, ftz, sat);
  case FloatOp::Fma:
    return pickFma(wide, ftz, sat);
  default:
    break;
  }
  if (wide || sat)
    return nullptr;
  switch (op) {
  case FloatOp::Div:
    return pickBinary<DivF>(false, ftz, false);
  case FloatOp::DivApprox:
    return pickBinary<DivApproxF>(false, ftz, false);
  case FloatOp::Rcp:
    return pickUnary<RcpF>(ftz);
  case FloatOp::Sqrt:
    return pickUnary<SqrtF>(ftz);
  case FloatOp::Min:
    return pickMinMax<false>(insn, sources);
  case FloatOp::Max:
    return pickMinMax<true>(insn, sources);
  default:
    return nullptr;
  }
}
