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
#include "Sim/Insn/Scalar/Narrow.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/UE8M0.h"
#include <algorithm>

using namespace fp4;
using namespace fp4::sim;

namespace {

/// A signed byte that counts 64ths. NaN is the largest one.
uint32_t encodeFixed(double x, const ConvertModifiers &cvt) {
  if (cvt.relu && x < 0)
    x = 0;
  if (std::isnan(x))
    return 127;
  const double scaled = std::clamp(x * 64, -1e6, 1e6);
  const double whole = cvt.round == Round::Zero ? std::trunc(scaled) : std::nearbyint(scaled);
  return uint32_t(int32_t(std::clamp(whole, -128.0, 127.0))) & 0xFF;
}

uint32_t encodeScale(double x, const ConvertModifiers &cvt) {
  const auto value = static_cast<float>(x);
  const float largest = cvt.round == Round::Up ? 0x1p127f : 0x1.fffffep127f; // rounds to 2^127
  if (!cvt.sat && std::fabs(value) > largest)
    return numerics::ue8m0NaN;
  return cvt.round == Round::Up ? numerics::encodeUE8M0Up(value)
                                : numerics::encodeUE8M0TowardZero(value);
}

const Format &wideFormatOf(Type type) {
  return type == Type::F16x2 || type == Type::F16 ? kF16 : type == Type::TF32 ? kTF32 : kBF16;
}

/// An element of f16, bf16 or tf32 (whose 13 lowest bits are left out).
uint32_t encodeWide(double x, const ConvertModifiers &cvt) {
  const Format &format = wideFormatOf(cvt.destination);
  if (cvt.relu && !(x > 0) && !std::isnan(x))
    x = 0;
  uint32_t bits = encode(x, format, cvt.round);
  uint32_t infinity = ((1u << format.exponentBits) - 1) << format.mantissaBits;
  uint32_t magnitude = (1u << (format.exponentBits + format.mantissaBits)) - 1;
  if (cvt.sat && (bits & magnitude) == infinity)
    bits -= 1;
  return cvt.positiveZero && !(bits & magnitude) ? 0 : bits;
}

/// One element of a packed destination.
uint32_t encodeElement(double x, const ConvertModifiers &cvt) {
  if (cvt.destination == Type::UE8M0x2)
    return encodeScale(x, cvt);
  if (cvt.destination == Type::S2F6x2)
    return encodeFixed(x, cvt);
  const Narrow *narrow = narrowOf(cvt.destination);
  if (!narrow)
    return encodeWide(x, cvt);
  const uint32_t code = encodeNarrow(x, *narrow, cvt.round, cvt.relu, cvt.sat);
  const uint32_t sign = narrow->isUnsigned ? 0 : 1u << (widthOf(*narrow) - 1);
  return cvt.positiveZero && code == sign ? 0 : code;
}

double decodeElement(uint32_t bits, Type type) {
  if (const Narrow *narrow = narrowOf(type))
    return decodeNarrow(bits, *narrow);
  switch (type) {
  case Type::UE8M0x2:
    return numerics::decodeUE8M0(static_cast<uint8_t>(bits));
  case Type::S2F6x2:
    return static_cast<int8_t>(bits) / 64.0;
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
    return paddedBits(*narrow);
  return type == Type::UE8M0x2 || type == Type::S2F6x2 ? 8 : 16;
}

/// .scaled::n1 flushes subnormal numbers of the source before it divides.
double flushedSource(double x, Type type) {
  const int smallest = type == Type::F16x2 ? -14 : -126;
  return std::fabs(x) < std::ldexp(1.0, smallest) ? std::copysign(0.0, x) : x;
}

/// The power of two by which an element is divided, or multiplied where it becomes wider.
class ElementScale {
public:
  ElementScale(ExecContext &cx, const Insn &insn, int lane)
      : cvt(insn.as<ConvertModifiers>()),
        codes(cvt.scale ? uint32_t(cx.scalar(insn.op[cvt.scale], lane)) : 0) {}

  /// `element` 1 is the upper one.
  double apply(double x, unsigned element) const {
    if (!cvt.scale)
      return x;
    const uint32_t code = codes >> (cvt.scaledByPairs ? 8 * element : 0) & 0xFF;
    if (code == numerics::ue8m0NaN)
      return std::nan("");
    const int exponent = static_cast<int>(code) - 127;
    if (cvt.destination == Type::BF16x2)
      return std::ldexp(x, exponent);
    return std::ldexp(cvt.scaledByPairs ? x : flushedSource(x, cvt.source), -exponent);
  }

private:
  const ConvertModifiers &cvt;
  uint32_t codes;
};

/// d = {a, b}: a in the upper half. f32 sources.
Outcome cvtPack(ExecContext &cx, const Insn &insn) {
  const float *a = cx.src<float>(insn.op[1]), *b = cx.src<float>(insn.op[2]);
  const auto &cvt = insn.as<ConvertModifiers>();
  unsigned bits = elementBits(cvt.destination);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    const ElementScale scale(cx, insn, lane);
    uint32_t high = encodeElement(scale.apply(a[lane], 1), cvt);
    uint32_t low = encodeElement(scale.apply(b[lane], 0), cvt);
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
    const ElementScale scale(cx, insn, lane);
    uint64_t source = cx.scalar(insn.op[1], lane), result = 0;
    for (unsigned e = 0; e < (single ? 1u : 2u); ++e) {
      auto bits = static_cast<uint32_t>(lowBits(source >> (fromBits * e), fromBits));
      double x = decodeElement(bits, from);
      if (cvt.ftz && single)
        x = flush(static_cast<float>(x));
      uint32_t code = encodeElement(scale.apply(x, e), cvt);
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

/// Returns true for a pair of narrow or fixed-point elements, or of scales.
static bool isNarrowPair(Type type) {
  const Narrow *narrow = narrowOf(type);
  return type == Type::UE8M0x2 || type == Type::S2F6x2 || (narrow && narrow->pair == type);
}

/// Checks the modifiers of a conversion to a pair of narrow elements.
static Status checkNarrow(BindContext &cx, const ConvertModifiers &cvt) {
  const bool isScale = cvt.destination == Type::UE8M0x2, isE5M3 = cvt.destination == Type::UE5M3x2;
  if (!isScale && !isE5M3 && !cx.match.has("satfinite"))
    return cx.fail("a conversion to a narrow format expects .satfinite");
  if (isScale && cvt.round != Round::Up && cvt.round != Round::Zero)
    return cx.fail("a conversion to .ue8m0x2 expects .rz or .rp");
  if (cvt.round == Round::Up && !isScale && !isE5M3)
    return cx.fail("this conversion does not work with .rp");
  const bool byPairs = cvt.destination == Type::S2F6x2;
  if (cvt.scale && (isScale || cvt.scaledByPairs != byPairs))
    return cx.fail(byPairs ? "a conversion to .s2f6x2 takes .scaled::n2::ue8m0"
                           : "a conversion to this format takes .scaled::n1::ue8m0");
  return {};
}

Status bindCvtNarrow(BindContext &cx) {
  const auto &cvt = describeConversion(cx);
  Type to = cvt.destination, from = cvt.source;
  const bool widens =
      isNarrowPair(from) && (to == Type::BF16x2 || (to == Type::F16x2 && !cvt.scale &&
                                                    from != Type::UE8M0x2 && from != Type::S2F6x2));
  const bool narrows =
      isNarrowPair(to) &&
      (from == Type::BF16x2 || (from == Type::F16x2 && to != Type::UE8M0x2 && to != Type::S2F6x2));
  const bool scalar =
      from == Type::F32 && !cvt.scale && (to == Type::F16 || to == Type::BF16 || to == Type::TF32);
  if (!widens && !narrows && !scalar)
    return refuseConversion(cx);
  if (widens && (cvt.round != Round::Nearest || cvt.positiveZero ||
                 (cvt.scale && (!cvt.scaledByPairs || from == Type::UE8M0x2))))
    return refuseConversion(cx);
  if (narrows)
    FP4_TRY(checkNarrow(cx, cvt));
  return cx.use(cvtPacked);
}

/// The vectorised loop of a plain conversion of two f32, or null.
static Handler fastPack(const Insn &insn) {
  const auto &cvt = insn.as<ConvertModifiers>();
  const Type to = cvt.destination;
  if (cvt.positiveZero || cvt.scale || cvt.relu)
    return nullptr;
  if (to == Type::F16x2 && !cvt.sat && cvt.round != Round::Nearest)
    return cvtPackFast<uint32_t, truncateToF16Lane, 16>;
  if (cvt.round != Round::Nearest)
    return nullptr;
  if (to == Type::BF16x2 && !cvt.sat)
    return cvtPackBF16;
  if (to == Type::E2M1x2 && insn.op[0].width == 1)
    return cvtPackFast<uint8_t, encodeE2M1Lane, 4>;
  if (to == Type::E4M3x2 && insn.op[0].width == 2)
    return cvtPackFast<uint16_t, encodeE4M3Lane, 8>;
  return nullptr;
}

Status bindCvtPack(BindContext &cx) {
  const auto &cvt = describeConversion(cx);
  const Type to = cvt.destination;
  const bool narrow = isNarrowPair(to);
  if (cx.insn.type != Type::F32 || (!narrow && to != Type::F16x2 && to != Type::BF16x2))
    return refuseConversion(cx);
  if (narrow)
    FP4_TRY(checkNarrow(cx, cvt));
  else if (cvt.scale || cvt.round == Round::Up)
    return cx.fail(cvt.scale ? "a conversion to halves takes no scale"
                             : "this conversion does not work with .rp");
  Handler fast = fastPack(cx.insn);
  return cx.use(fast ? fast : cvtPack);
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
