//===- Convert.cpp - cvt --------------------------------------------------===//
//
// PTX ISA 9.7.9 "Data Movement and Conversion Instructions: cvt". Scalar conversions go through
// one exact intermediate (a 128-bit integer or a double) and round once; packed and narrow formats
// are lists of elements that do the same. Frequent conversions have their own vectorised loop.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/Scalar/Convert.h"
#include "Sim/Insn/Lanes.h"
#include "Sim/Insn/Scalar/Floats.h"
#include <algorithm>
#include <limits>

using namespace fp4;
using namespace fp4::sim;

namespace {

using Int = __int128;

Int readInteger(uint64_t bits, Type type) {
  unsigned width = bitsOf(type);
  uint64_t low = lowBits(bits, width);
  if (isSigned(type) && (low >> (width - 1) & 1))
    return Int(low) - (Int(1) << width);
  return Int(low);
}

/// The register gets the sign or zero extension of the destination type.
uint64_t writeInteger(Int value, Type type) {
  uint64_t low = lowBits(static_cast<uint64_t>(value), bitsOf(type));
  return static_cast<uint64_t>(readInteger(low, type));
}

Int clampTo(Int value, Type type) {
  unsigned width = bitsOf(type);
  Int low = isSigned(type) ? -(Int(1) << (width - 1)) : 0;
  Int high = (Int(1) << (isSigned(type) ? width - 1 : width)) - 1;
  return value < low ? low : value > high ? high : value;
}

const Format &formatOf(Type type) {
  switch (type) {
  case Type::F16:
    return kF16;
  case Type::BF16:
    return kBF16;
  case Type::TF32:
    return kTF32;
  default:
    return kF32;
  }
}

double readFloat(uint64_t bits, Type type) {
  if (type == Type::F64)
    return std::bit_cast<double>(bits);
  if (type == Type::F32)
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  return decode(static_cast<uint32_t>(lowBits(bits, 16)), formatOf(type));
}

double roundIntegral(double x, Round mode) {
  switch (mode) {
  case Round::Zero:
    return std::trunc(x);
  case Round::Down:
    return std::floor(x);
  case Round::Up:
    return std::ceil(x);
  default:
    return std::nearbyint(x);
  }
}

/// Out of range clamps; NaN is 0, or the top bit when f64 or a 64-bit integer takes part.
uint64_t floatToInteger(double x, const ConvertModifiers &cvt) {
  Type type = cvt.destination;
  if (std::isnan(x)) {
    bool wide = bitsOf(type) == 64 || (cvt.source == Type::F64 && bitsOf(type) == 32);
    return wide ? writeInteger(Int(1) << (bitsOf(type) - 1), type) : 0;
  }
  x = roundIntegral(x, cvt.round);
  x = x < -0x1p100 ? -0x1p100 : x > 0x1p100 ? 0x1p100 : x;
  return writeInteger(clampTo(static_cast<Int>(x), type), type);
}

/// Round to nearest by the compiler, then one step when the mode wants the other neighbour.
double integerToDouble(Int value, Round mode) {
  double nearest = static_cast<double>(value);
  Int back = static_cast<Int>(nearest);
  if (back == value || mode == Round::Nearest)
    return nearest;
  bool tooHigh = back > value;
  bool wantLower = mode == Round::Down || (mode == Round::Zero && value > 0);
  if (tooHigh == wantLower)
    return std::nextafter(nearest, wantLower ? -INFINITY : INFINITY);
  return nearest;
}

double integerToOdd(Int value) {
  double nearest = static_cast<double>(value);
  return roundToOdd(nearest, static_cast<double>(value - static_cast<Int>(nearest)));
}

uint64_t writeFloat(double odd, const ConvertModifiers &cvt) {
  Type type = cvt.destination;
  if (cvt.sat)
    odd = saturate(odd);
  if (type == Type::F64)
    return std::bit_cast<uint64_t>(odd);
  uint32_t bits = encode(odd, formatOf(type), cvt.round);
  if (type == Type::TF32)
    return std::isnan(odd) ? kNaN32 : bits << 13;
  if (cvt.ftz && type == Type::F32)
    bits = std::bit_cast<uint32_t>(flush(std::bit_cast<float>(bits)));
  return bits;
}

uint64_t convert(uint64_t bits, const ConvertModifiers &cvt) {
  Type from = cvt.source, to = cvt.destination;
  if (!isFloat(from)) {
    Int value = readInteger(bits, from);
    if (!isFloat(to))
      return writeInteger(cvt.sat ? clampTo(value, to) : value, to);
    return writeFloat(to == Type::F64 ? integerToDouble(value, cvt.round) : integerToOdd(value),
                      cvt);
  }
  double x = readFloat(bits, from);
  if (cvt.ftz && from == Type::F32)
    x = flush(static_cast<float>(x));
  if (!isFloat(to))
    return floatToInteger(x, cvt);
  if (cvt.integral)
    x = roundIntegral(x, cvt.round);
  return writeFloat(x, cvt);
}

Outcome cvtAny(ExecContext &cx, const Insn &insn) {
  const auto &cvt = insn.as<ConvertModifiers>();
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    cx.setScalar(insn.op[0], lane, convert(cx.scalar(insn.op[1], lane), cvt));
  }
  return Outcome::Next;
}

//===----------------------------------------------------------------------===//
// Frequent scalar conversions
//===----------------------------------------------------------------------===//

template <typename D, typename S> struct CastF {
  D operator()(S a) const { return static_cast<D>(a); }
};
struct BF16ToF32F {
  float operator()(uint16_t a) const { return bf16ToFloat(a); }
};
/// Nearest even; NaN becomes 0x7FFF.
struct F32ToBF16F {
  uint16_t operator()(float x) const {
    uint32_t bits = std::bit_cast<uint32_t>(x);
    uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    return x == x ? static_cast<uint16_t>(rounded) : kNaN16;
  }
};
struct F16ToF32F {
  float operator()(uint16_t a) const {
    return (a & 0x7FFF) > 0x7C00 ? std::bit_cast<float>(0x7FFFFFFFu) : f16ToFloat(a);
  }
};
struct F32ToF16F {
  uint16_t operator()(float a) const { return floatToF16(a); }
};
struct F32ToS32F {
  int32_t operator()(float a) const {
    if (!(a > -2147483648.0f))
      return a == a ? std::numeric_limits<int32_t>::min() : 0;
    return a >= 2147483648.0f ? std::numeric_limits<int32_t>::max() : static_cast<int32_t>(a);
  }
};

struct FastRow {
  Type to, from;
  Round round;
  Handler handler;
};

template <typename D, typename S> constexpr Handler kCast = lanewise<CastF<D, S>, D, S>;

const FastRow kFastRows[] = {
    {Type::U16, Type::U8, Round::Nearest, kCast<uint16_t, uint8_t>},
    {Type::S16, Type::S8, Round::Nearest, kCast<int16_t, int8_t>},
    {Type::U32, Type::U8, Round::Nearest, kCast<uint32_t, uint8_t>},
    {Type::S32, Type::S8, Round::Nearest, kCast<int32_t, int8_t>},
    {Type::U8, Type::U16, Round::Nearest, kCast<uint8_t, uint16_t>},
    {Type::U8, Type::U32, Round::Nearest, kCast<uint8_t, uint32_t>},
    {Type::U32, Type::U16, Round::Nearest, kCast<uint32_t, uint16_t>},
    {Type::S32, Type::S16, Round::Nearest, kCast<int32_t, int16_t>},
    {Type::U16, Type::U32, Round::Nearest, kCast<uint16_t, uint32_t>},
    {Type::U64, Type::U32, Round::Nearest, kCast<uint64_t, uint32_t>},
    {Type::S64, Type::S32, Round::Nearest, kCast<int64_t, int32_t>},
    {Type::U32, Type::U64, Round::Nearest, kCast<uint32_t, uint64_t>},
    {Type::F32, Type::S32, Round::Nearest, kCast<float, int32_t>},
    {Type::F32, Type::U32, Round::Nearest, kCast<float, uint32_t>},
    {Type::F64, Type::F32, Round::Nearest, kCast<double, float>},
    {Type::F32, Type::F64, Round::Nearest, kCast<float, double>},
    {Type::S32, Type::F32, Round::Zero, lanewise<F32ToS32F, int32_t, float>},
    {Type::F32, Type::BF16, Round::Nearest, lanewise<BF16ToF32F, float, uint16_t>},
    {Type::BF16, Type::F32, Round::Nearest, lanewise<F32ToBF16F, uint16_t, float>},
    {Type::F32, Type::F16, Round::Nearest, lanewise<F16ToF32F, float, uint16_t>},
    {Type::F16, Type::F32, Round::Nearest, lanewise<F32ToF16F, uint16_t, float>},
};

/// A handler for registers that are exactly as wide as the types, if nothing else is asked for.
Handler fastHandler(const Insn &insn) {
  const auto &cvt = insn.as<ConvertModifiers>();
  Type to = cvt.destination, from = cvt.source;
  if (cvt.sat || cvt.ftz || cvt.relu || insn.op[0].width != bytesOf(to) ||
      insn.op[1].width != bytesOf(from))
    return nullptr;
  bool nanPayload =
      (to == Type::F32 && from == Type::F64) || (to == Type::F64 && from == Type::F32);
  for (const FastRow &row : kFastRows)
    if (row.to == to && row.from == from && row.round == cvt.round && !nanPayload)
      return row.handler;
  return nullptr;
}

bool scalarFloat(Type type) {
  return type == Type::F16 || type == Type::BF16 || type == Type::F32 || type == Type::F64;
}
bool scalarInteger(Type type) {
  return !isFloat(type) && type != Type::Pred && bitsOf(type) <= 64 && partsOf(type) == 1;
}

} // namespace

namespace fp4::sim {

const ConvertModifiers &describeConversion(BindContext &cx) {
  static constexpr struct {
    std::string_view text;
    Round round;
    bool integral;
  } modes[] = {{"rn", Round::Nearest, false},
               {"rz", Round::Zero, false},
               {"rm", Round::Down, false},
               {"rp", Round::Up, false},
               {"rna", Round::NearestAway, false},
               {"rni", Round::Nearest, true},
               {"rzi", Round::Zero, true},
               {"rmi", Round::Down, true},
               {"rpi", Round::Up, true}};
  auto &cvt = cx.insn.make<ConvertModifiers>({cx.insn.type, cx.match.type("dtype")});
  for (const auto &mode : modes)
    if (cx.match.text("round") == mode.text) {
      cvt.round = mode.round;
      cvt.integral = mode.integral;
    }
  cvt.ftz = cx.match.has("ftz");
  cvt.sat = cx.match.has("sat") || cx.match.has("satfinite");
  cvt.relu = cx.match.has("relu") || cx.match.has("relu2");
  cvt.positiveZero = cx.match.has("pzo");
  cvt.scaledByPairs = cx.match.text("scale") == "scaled::n2::ue8m0";
  if (cx.match.has("scale"))
    cvt.scale = cx.insn.op[3] ? 3 : 2;
  return cvt;
}

Status refuseConversion(BindContext &cx) {
  return cx.fail("no conversion from ." + std::string(spelling(cx.insn.type)) + " to ." +
                 std::string(spelling(cx.match.type("dtype"))) + " with these modifiers");
}

Status bindCvt(BindContext &cx) {
  const auto &cvt = describeConversion(cx);
  Type to = cvt.destination, from = cvt.source;
  bool known = (scalarFloat(from) || scalarInteger(from)) &&
               (scalarFloat(to) || scalarInteger(to) || (to == Type::TF32 && from == Type::F32));
  if (!known)
    return refuseConversion(cx);
  if (isFloat(from) && !isFloat(to) && !cvt.integral)
    return cx.fail("a conversion to an integer expects .rni, .rzi, .rmi or .rpi");
  // Between f16 and bf16, where bits are lost too, ptxas takes an absent mode for .rn.
  bool loses = isFloat(to) && (!isFloat(from) || bitsOf(to) < bitsOf(from) || to == Type::TF32);
  if (loses && (!cx.match.has("round") || cvt.integral))
    return cx.fail("a conversion that may lose bits expects .rn, .rz, .rm or .rp");
  Handler fast = fastHandler(cx.insn);
  return cx.use(fast ? fast : cvtAny);
}

} // namespace fp4::sim
