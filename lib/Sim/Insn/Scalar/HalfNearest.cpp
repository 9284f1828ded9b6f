//===- HalfNearest.cpp - Vectorised sums and products of 16-bit floats ----===//
//
// fp32 has more than twice the significand of f16 and bf16, and two bits: a sum or a product that
// is rounded to fp32 and then to them is what one rounding gives (Figueroa, "When is double
// rounding innocuous?", 1995), provided that fp32 rounds at its full precision. A sum in the range
// of fp32's subnormals is exact, and products of f16 do not get there; products of bf16 do, so
// lanes with such a product are computed again, in fp64. Loops have no branch, so that the compiler
// vectorises them.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/Lanes.h"
#include "Sim/Insn/Scalar/FloatNearest.h"
#include "Sim/Insn/Scalar/Floats.h"

using namespace fp4::sim;

namespace {

constexpr uint32_t kSign = 0x80000000, kInfinity = 0x7F800000;

struct Brain {
  static float decode(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
  static uint16_t encode(float x) {
    const uint32_t u = std::bit_cast<uint32_t>(x);
    const uint32_t rounded = (u + 0x7FFF + (u >> 16 & 1)) >> 16;
    return (u & ~kSign) > kInfinity ? kNaN16 : uint16_t(rounded);
  }
};

struct Half {
  static float decode(uint16_t bits) {
    const uint32_t magnitude = uint32_t(bits & 0x7FFF) << 13, sign = uint32_t(bits & 0x8000) << 16;
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f; // exact, subnormals too
    const uint32_t finite = std::bit_cast<uint32_t>(scaled), special = kInfinity | magnitude;
    return std::bit_cast<float>(sign | ((bits & 0x7C00) == 0x7C00 ? special : finite));
  }
  static uint16_t encode(float x) {
    constexpr uint32_t smallest = 0x38800000; // 2^-14, the smallest normal number
    constexpr uint32_t overflow = 0x477FF000; // 65520: it and what is above round to infinity
    const uint32_t u = std::bit_cast<uint32_t>(x), magnitude = u & ~kSign, sign = u >> 16 & 0x8000;
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f; // whose unit is 2^-24
    const uint32_t subnormal = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f);
    const uint32_t normal = ((magnitude + 0xFFF + (magnitude >> 13 & 1)) >> 13) - (112u << 10);
    const uint32_t finite = magnitude < smallest ? subnormal : normal;
    const uint32_t number = sign | (magnitude >= overflow ? 0x7C00 : finite);
    return magnitude > kInfinity ? kNaN16 : uint16_t(number);
  }
};

struct Add {
  template <typename T> T operator()(T a, T b) const { return a + b; }
};
struct Subtract {
  template <typename T> T operator()(T a, T b) const { return a - b; }
};
struct Multiply {
  template <typename T> T operator()(T a, T b) const { return a * b; }
};

template <unsigned Parts> struct Element {
  uint16_t part[Parts];
};

/// Returns true when a product of bf16 is so small that fp32 rounded it at less than its precision.
bool lost(float product, uint16_t a, uint16_t b) {
  return std::fabs(product) < 0x1p-126f && (a & 0x7FFF) && (b & 0x7FFF);
}

/// Parts elements of a register lane.
template <typename Format, typename F, unsigned Parts>
Outcome halves(ExecContext &cx, const Insn &insn) {
  constexpr bool mayLose = std::is_same_v<Format, Brain> && std::is_same_v<F, Multiply>;
  constexpr unsigned count = 32 * Parts;
  const uint16_t *a = cx.src<uint16_t>(insn.op[1]), *b = cx.src<uint16_t>(insn.op[2]);
  Lanes<Element<Parts>> result;
  uint16_t *r = result.v[0].part;
  float exact[count];
  for (unsigned i = 0; i < count; ++i)
    exact[i] = F()(Format::decode(a[i]), Format::decode(b[i]));
  for (unsigned i = 0; i < count; ++i)
    r[i] = Format::encode(exact[i]);
  if constexpr (mayLose)
    for (unsigned i = 0; i < count; ++i)
      if (lost(exact[i], a[i], b[i]))
        r[i] = uint16_t(encode(double(Format::decode(a[i])) * double(Format::decode(b[i])), kBF16,
                               Round::Nearest));
  commit(cx, insn.op[0], result);
  return Outcome::Next;
}

template <typename Format, unsigned Parts> Handler pick(FloatOp op) {
  switch (op) {
  case FloatOp::Add:
    return halves<Format, Add, Parts>;
  case FloatOp::Sub:
    return halves<Format, Subtract, Parts>;
  case FloatOp::Mul:
    return halves<Format, Multiply, Parts>;
  default:
    return nullptr;
  }
}

} // namespace

Handler fp4::sim::halfHandler(const Insn &insn, FloatOp op) {
  const auto &how = insn.as<FloatModifiers>();
  if (how.round != Round::Nearest || how.ftz || how.sat || how.relu)
    return nullptr;
  switch (insn.type) {
  case Type::F16:
    return pick<Half, 1>(op);
  case Type::BF16:
    return pick<Brain, 1>(op);
  case Type::F16x2:
    return pick<Half, 2>(op);
  case Type::BF16x2:
    return pick<Brain, 2>(op);
  default:
    return nullptr;
  }
}
