//===- ConvertNarrow.cpp - cvt of packed and narrow formats ---------------===//
//
// bf16x2 and f16x2, fp8, fp6 and fp4, power-of-two scales, tf32 with .satfinite, and stochastic
// rounding. Every element goes through an exact double and is rounded once; the conversions that
// quantization kernels are made of have a vectorised loop.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/Lanes.h"
#include "Sim/Insn/Scalar/Convert.h"
#include "Sim/Insn/Scalar/Floats.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/UE8M0.h"
#include <algorithm>

using namespace fp4;
using namespace fp4::sim;

namespace {

/// A format of at most 8 bits: IEEE fields, but the top exponent may hold finite values.
struct Narrow {
  Type pair, quad;
  Format format;
  uint8_t maximum; ///< code of the largest finite value
  uint8_t nan;     ///< the result for NaN
  bool hasNaN;
};
constexpr Narrow kNarrow[] = {
    {Type::E4M3x2, Type::E4M3x4, {4, 3, 7}, 0x7E, 0x7F, true},
    {Type::E5M2x2, Type::E5M2x4, {5, 2, 15}, 0x7B, 0x7F, true},
    {Type::E2M3x2, Type::E2M3x4, {2, 3, 1}, 0x1F, 0x1F, false},
    {Type::E3M2x2, Type::E3M2x4, {3, 2, 3}, 0x1F, 0x1F, false},
    {Type::E2M1x2, Type::E2M1x4, {2, 1, 1}, 0x7, 0x7, false},
};

const Narrow *narrowOf(Type type) {
  for (const Narrow &narrow : kNarrow)
    if (narrow.pair == type || narrow.quad == type)
      return &narrow;
  return nullptr;
}

unsigned widthOf(const Narrow &narrow) {
  return narrow.format.exponentBits + narrow.format.mantissaBits + 1u;
}

/// Saturating. One more exponent bit than the format has keeps overflow visible.
uint32_t encodeNarrow(double x, const Narrow &narrow, Round mode, bool relu) {
  if (std::isnan(x))
    return narrow.nan;
  if (relu && x < 0)
    x = 0;
  Format wide = narrow.format;
  ++wide.exponentBits;
  uint32_t magnitude = encode(std::fabs(x), wide, mode);
  uint32_t sign = std::signbit(x) && !(relu && x == 0) ? 1u << (widthOf(narrow) - 1) : 0;
  return sign | std::min<uint32_t>(magnitude, narrow.maximum);
}

double decodeNarrow(uint32_t code, const Narrow &narrow) {
  uint32_t sign = 1u << (widthOf(narrow) - 1);
  uint32_t magnitude = code & (sign - 1);
  if (narrow.pair == Type::E5M2x2)
    return decode(code & 0xFF, narrow.format);
  if (narrow.hasNaN && magnitude == 0x7F)
    return std::nan("");
  Format wide = narrow.format;
  ++wide.exponentBits;
  double value = decode(magnitude, wide);
  return code & sign ? -value : value;
}

/// One element of a packed destination.
uint32_t encodeElement(double x, const ConvertModifiers &cvt) {
  const Type type = cvt.destination;
  const Round mode = cvt.round;
  if (const Narrow *narrow = narrowOf(type))
    return encodeNarrow(x, *narrow, mode, cvt.relu);
  if (type == Type::UE8M0x2) {
    auto value = static_cast<float>(x);
    const float largest = mode == Round::Up ? 0x1p127f : 0x1.fffffep127f; // that rounds to 2^127
    if (!cvt.sat && std::fabs(value) > largest)
      return numerics::ue8m0NaN;
    return mode == Round::Up ? numerics::encodeUE8M0Up(value)
                             : numerics::encodeUE8M0TowardZero(value);
  }
  const Format &format = type == Type::F16x2 || type == Type::F16 ? kF16
                         : type == Type::TF32                     ? kTF32
                                                                  : kBF16;
  if (cvt.relu && !(x > 0) && !std::isnan(x))
    x = 0;
  uint32_t bits = encode(x, format, mode);
  uint32_t infinity = ((1u << format.exponentBits) - 1) << format.mantissaBits;
  uint32_t magnitude = (1u << (format.exponentBits + format.mantissaBits)) - 1;
  if (cvt.sat && (bits & magnitude) == infinity)
    bits -= 1;
  return bits;
}

double decodeElement(uint32_t bits, Type type) {
  if (const Narrow *narrow = narrowOf(type))
    return decodeNarrow(bits, *narrow);
  switch (type) {
  case Type::UE8M0x2:
    return numerics::decodeUE8M0(static_cast<uint8_t>(bits));
  case Type::F16x2:
    return decode(bits, kF16);
  case Type::BF16x2:
    return decode(bits, kBF16);
  default:
    return std::bit_cast<float>(bits);
  }
}

unsigned elementBits(Type type) {
  if (const Narrow *narrow = narrowOf(type))
    return type == Type::E2M1x2 || type == Type::E2M1x4 ? 4 : std::max(8u, widthOf(*narrow));
  return type == Type::UE8M0x2 ? 8 : 16;
}

/// d = {a, b}: a in the upper half. f32 sources.
Outcome cvtPack(ExecContext &cx, const Insn &insn) {
  const float *a = cx.src<float>(insn.op[1]), *b = cx.src<float>(insn.op[2]);
  const auto &cvt = insn.as<ConvertModifiers>();
  unsigned bits = elementBits(cvt.destination);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    uint32_t high = encodeElement(a[lane], cvt);
    uint32_t low = encodeElement(b[lane], cvt);
    cx.setScalar(insn.op[0], lane, high << bits | low);
  }
  return Outcome::Next;
}

/// Nearest even; NaN becomes 0x7FFF. floatToBF16 without a call, for vectorised loops.
inline uint32_t roundToBF16(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  return x == x ? rounded & 0xFFFF : kNaN16;
}

Outcome cvtPackBF16(ExecContext &cx, const Insn &insn) {
  const float *a = cx.src<float>(insn.op[1]), *b = cx.src<float>(insn.op[2]);
  Lanes<uint32_t> result;
  for (int lane = 0; lane < 32; ++lane)
    result.v[lane] = uint32_t(roundToBF16(a[lane])) << 16 | roundToBF16(b[lane]);
  commit(cx, insn.op[0], result);
  return Outcome::Next;
}

/// numerics::encodeE2M1 without a branch: how many thresholds |x| has passed.
inline uint32_t encodeE2M1Lane(float x) {
  float a = std::fabs(x);
  uint32_t code = uint32_t(a > 0.25f) + uint32_t(a >= 0.75f) + uint32_t(a > 1.25f) +
                  uint32_t(a >= 1.75f) + uint32_t(a > 2.5f) + uint32_t(a >= 3.5f) +
                  uint32_t(a > 5.0f);
  return x == x ? code | std::bit_cast<uint32_t>(x) >> 31 << 3 : 7;
}

/// numerics::encodeE4M3 without a branch: below 2^-6 the sum with 2^14 leaves the code in the low
/// bits; above, the f32 bits are rounded to three mantissa bits.
inline uint32_t encodeE4M3Lane(float x) {
  float a = std::fabs(x);
  uint32_t bits = std::bit_cast<uint32_t>(a);
  uint32_t small = std::bit_cast<uint32_t>(a + 16384.0f) - std::bit_cast<uint32_t>(16384.0f);
  uint32_t normal = ((bits + 0x7FFFF + (bits >> 20 & 1)) >> 20) - (120u << 3);
  uint32_t code = a < 0x1p-6f ? small : normal;
  code = a >= 448.0f ? 0x7E : code;
  return x == x ? code | std::bit_cast<uint32_t>(x) >> 31 << 7 : 0x7F;
}

/// Toward zero; NaN becomes 0x7FFF. Below 2^-14 the significand is shifted to the last place of
/// f16.
inline uint32_t truncateToF16Lane(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x) & 0x7FFFFFFF, exponent = bits >> 23;
  uint32_t shift = std::min(126 - std::min(exponent, 113u), 31u);
  uint32_t small = ((bits & 0x7FFFFF) | 0x800000) >> shift;
  uint32_t normal = std::min((bits - (112u << 23)) >> 13, 0x7BFFu);
  uint32_t code = exponent < 113 ? small : bits == 0x7F800000 ? 0x7C00 : normal;
  return x == x ? code | std::bit_cast<uint32_t>(x) >> 31 << 15 : kNaN16;
}

template <typename D, uint32_t (*Encode)(float), unsigned Bits>
Outcome cvtPackFast(ExecContext &cx, const Insn &insn) {
  const float *a = cx.src<float>(insn.op[1]), *b = cx.src<float>(insn.op[2]);
  Lanes<D> result;
  for (int lane = 0; lane < 32; ++lane)
    result.v[lane] = static_cast<D>(Encode(a[lane]) << Bits | Encode(b[lane]));
  commit(cx, insn.op[0], result);
  return Outcome::Next;
}

/// Packed to packed, element by element; also one element (f32 to tf32 with satfinite).
Outcome cvtPacked(ExecContext &cx, const Insn &insn) {
  const auto &cvt = insn.as<ConvertModifiers>();
  Type from = cvt.source, to = cvt.destination;
  bool single = from == Type::F32;
  unsigned fromBits = single ? 32 : elementBits(from), toBits = elementBits(to);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    uint64_t source = cx.scalar(insn.op[1], lane), result = 0;
    for (unsigned e = 0; e < (single ? 1u : 2u); ++e) {
      auto bits = static_cast<uint32_t>(lowBits(source >> (fromBits * e), fromBits));
      double x = decodeElement(bits, from);
      if (cvt.ftz && single)
        x = flush(static_cast<float>(x));
      uint32_t code = encodeElement(x, cvt);
      if (to == Type::TF32)
        code = std::isnan(x) ? kNaN32 : code << 13;
      result |= uint64_t(code) << (toBits * e);
    }
    cx.setScalar(insn.op[0], lane, result);
  }
  return Outcome::Next;
}

//===----------------------------------------------------------------------===//
// Stochastic rounding
//===----------------------------------------------------------------------===//

/// Rounds |x| up iff floor(2^k * fraction) + random >= 2^k. [the mapping of bits to elements is not
/// documented for every format: see docs/reference/simulator.md]
uint32_t encodeStochastic(double x, const Format &format, unsigned k, uint32_t random,
                          uint32_t maximum) {
  Format wide = format;
  ++wide.exponentBits;
  uint32_t low = encode(std::fabs(x), wide, Round::Zero);
  double below = decode(low, wide), above = decode(low + 1, wide);
  double fraction = (std::fabs(x) - below) / (above - below);
  if (std::floor(std::ldexp(fraction, static_cast<int>(k))) + random >=
      std::ldexp(1.0, static_cast<int>(k)))
    ++low;
  uint32_t sign = std::signbit(x) ? 1u << (format.exponentBits + format.mantissaBits) : 0;
  return sign | std::min(low, maximum);
}

uint32_t reverseBits(uint32_t value, unsigned count) {
  uint32_t result = 0;
  for (unsigned i = 0; i < count; ++i)
    result |= (value >> i & 1) << (count - 1 - i);
  return result;
}

/// f16x2: 13 bits of each half; bf16x2: 16 bits; the upper half of rbits serves a.
Outcome cvtRs(ExecContext &cx, const Insn &insn) {
  const float *a = cx.src<float>(insn.op[1]), *b = cx.src<float>(insn.op[2]);
  const uint32_t *random = cx.src<uint32_t>(insn.op[3]);
  const auto &cvt = insn.as<ConvertModifiers>();
  bool half = cvt.destination == Type::F16x2;
  const Format &format = half ? kF16 : kBF16;
  unsigned k = half ? 13 : 16;
  uint32_t infinity = ((1u << format.exponentBits) - 1) << format.mantissaBits;
  auto one = [&](float x, uint32_t bits) -> uint32_t {
    if (std::isnan(x))
      return kNaN16;
    if (cvt.relu && !(x > 0))
      return 0;
    return encodeStochastic(x, format, k, bits & ((1u << k) - 1), infinity - cvt.sat);
  };
  cx.store<uint32_t>(insn.op[0], [&](int lane) {
    return one(a[lane], random[lane] >> 16) << 16 | one(b[lane], random[lane] & 0xFFFF);
  });
  return Outcome::Next;
}

/// {a, b, e, f}: a in the top element.
Outcome cvtRs4(ExecContext &cx, const Insn &insn) {
  const Operand *v = cx.elements(insn.op[1]);
  const auto &cvt = insn.as<ConvertModifiers>();
  const Narrow &narrow = *narrowOf(cvt.destination);
  unsigned bits = elementBits(cvt.destination);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    uint32_t random = cx.src<uint32_t>(insn.op[2])[lane];
    uint32_t result = 0;
    float x[4];
    for (int i = 0; i < 4; ++i) {
      x[i] = cx.src<float>(v[i])[lane];
      if (cvt.relu && x[i] < 0)
        x[i] = 0;
    }
    if (cvt.destination == Type::E2M1x4) {
      result = numerics::encodeE2M1x4Stochastic(x[0], x[1], x[2], x[3], random);
    } else {
      // [uncertain] The bits for each element are taken from measurements of others.
      uint32_t upper = random >> 16, lower = random & 0xFFFF;
      uint32_t r[4] = {reverseBits(upper, 16), upper, reverseBits(lower, 16), lower};
      for (int i = 0; i < 4; ++i) {
        uint32_t code = std::isnan(x[i])
                            ? narrow.nan
                            : encodeStochastic(x[i], narrow.format, 16, r[i], narrow.maximum);
        result = result << bits | code;
      }
    }
    cx.setScalar(insn.op[0], lane, result);
  }
  return Outcome::Next;
}

} // namespace

namespace fp4::sim {

Status bindCvtNarrow(BindContext &cx) {
  const auto &cvt = describeConversion(cx);
  Type to = cvt.destination, from = cvt.source;
  bool fromHalves = from == Type::F16x2 || from == Type::BF16x2;
  bool toHalves = to == Type::F16x2 || to == Type::BF16x2;
  bool pair = (narrowOf(from) && narrowOf(from)->pair == from && to == Type::F16x2) ||
              (narrowOf(to) && narrowOf(to)->pair == to && fromHalves) ||
              (from == Type::UE8M0x2 && to == Type::BF16x2) ||
              (to == Type::UE8M0x2 && from == Type::BF16x2);
  bool scalar = from == Type::F32 && (to == Type::F16 || to == Type::BF16 || to == Type::TF32);
  if (!pair && !scalar)
    return refuseConversion(cx);
  if (pair && !toHalves && to != Type::UE8M0x2 && !cx.match.has("satfinite"))
    return cx.fail("a conversion to a narrow format expects .satfinite");
  return cx.use(cvtPacked);
}

Status bindCvtPack(BindContext &cx) {
  const auto &cvt = describeConversion(cx);
  Insn &insn = cx.insn;
  Type to = cvt.destination;
  bool narrow = (narrowOf(to) && narrowOf(to)->pair == to) || to == Type::UE8M0x2;
  if (insn.type != Type::F32 || (!narrow && to != Type::F16x2 && to != Type::BF16x2))
    return refuseConversion(cx);
  bool scale = to == Type::UE8M0x2;
  if (narrow && !scale && !cx.match.has("satfinite"))
    return cx.fail("a conversion to a narrow format expects .satfinite");
  bool known = cvt.round == (scale ? Round::Up : Round::Nearest) ||
               (cvt.round == Round::Zero && (scale || !narrow));
  if (!known)
    return cx.fail(scale ? "a conversion to .ue8m0x2 expects .rz or .rp"
                         : "this conversion does not work with ." +
                               std::string(cx.match.text("round")));
  bool plain = cvt.round == Round::Nearest && !cvt.relu;
  if (to == Type::BF16x2 && plain && !cvt.sat)
    return cx.use(cvtPackBF16);
  if (to == Type::F16x2 && !cvt.relu && !cvt.sat && cvt.round != Round::Nearest)
    return cx.use(cvtPackFast<uint32_t, truncateToF16Lane, 16>);
  if (to == Type::E2M1x2 && plain && insn.op[0].width == 1)
    return cx.use(cvtPackFast<uint8_t, encodeE2M1Lane, 4>);
  if (to == Type::E4M3x2 && plain && insn.op[0].width == 2)
    return cx.use(cvtPackFast<uint16_t, encodeE4M3Lane, 8>);
  return cx.use(cvtPack);
}

Status bindCvtRs(BindContext &cx) {
  Type to = describeConversion(cx).destination;
  if (cx.insn.type != Type::F32 || (to != Type::F16x2 && to != Type::BF16x2))
    return refuseConversion(cx);
  return cx.use(cvtRs);
}

Status bindCvtRs4(BindContext &cx) {
  Type to = describeConversion(cx).destination;
  const Narrow *narrow = narrowOf(to);
  if (cx.insn.type != Type::F32 || !narrow || narrow->quad != to)
    return refuseConversion(cx);
  if (cx.insn.op[1].imm != 4)
    return cx.fail("expects a vector of 4");
  return cx.use(cvtRs4);
}

} // namespace fp4::sim
