//===- FloatMixed.cpp - Arithmetic on operands of different formats -------===//
//
// PTX ISA 9.7.5 "Mixed Precision Floating-Point Instructions", and what PTX 9.4 adds: pairs of f16,
// bf16 and f32, and quads whose sums and products are fp8. Operands are widened exactly and the
// result is rounded once. [uncertain] PTX says so of f32 results alone.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/Lanes.h"
#include "Sim/Insn/Scalar/Narrow.h"
#include "fp4/Numerics/UE8M0.h"

using namespace fp4;
using namespace fp4::sim;

namespace {

using Op = FloatOp;

const Format &wideFormat(Type type) {
  switch (type) {
  case Type::F16:
  case Type::F16x2:
    return kF16;
  case Type::BF16:
  case Type::BF16x2:
    return kBF16;
  default:
    return kF32;
  }
}

/// Element `at` of a packed register as a double, subnormals flushed with .ftz.
double elementOf(uint64_t bits, Type type, unsigned at, bool ftz) {
  const unsigned width = 8 * bytesOf(type) / partsOf(type);
  const auto code = static_cast<uint32_t>(bits >> (width * at) & ((uint64_t(1) << width) - 1));
  if (type == Type::UE8M0x4)
    return numerics::decodeUE8M0(static_cast<uint8_t>(code));
  if (const Narrow *narrow = narrowOf(type))
    return decodeNarrow(code, *narrow);
  const Format &format = wideFormat(type);
  return ftz ? flushWide(decode(code, format), format) : decode(code, format);
}

uint32_t encodeResult(double x, const MixedModifiers &mixed) {
  const FloatModifiers &how = mixed.how;
  if (const Narrow *narrow = narrowOf(mixed.result))
    return encodeNarrow(x, *narrow, how.round, false, mixed.saturatesFinite);
  const Format &format = wideFormat(mixed.result);
  if (how.sat)
    x = saturate(x);
  const uint32_t bits = encode(x, format, how.round);
  const uint32_t exponent = ((1u << format.exponentBits) - 1) << format.mantissaBits;
  const uint32_t sign = 1u << (format.exponentBits + format.mantissaBits);
  return how.ftz && !(bits & exponent) ? bits & sign : bits;
}

/// Each operand has a type of its own; absent ones are zero.
Outcome mixed(ExecContext &cx, const Insn &insn) {
  const auto &mixed = insn.as<MixedModifiers>();
  const unsigned parts = partsOf(mixed.result), width = 8 * bytesOf(mixed.result) / parts;
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    uint64_t result = 0;
    for (unsigned part = 0; part < parts; ++part) {
      double v[3] = {0, 0, 0};
      for (unsigned s = 0; s < 3 && insn.op[s + 1]; ++s)
        v[s] = elementOf(cx.scalar(insn.op[s + 1], lane), mixed.operands[s], part, mixed.how.ftz);
      const double x = evaluate(mixed.how, v[0], v[1], v[2]);
      result |= uint64_t(encodeResult(x, mixed)) << (width * part);
    }
    cx.setScalar(insn.op[0], lane, result);
  }
  return Outcome::Next;
}

/// Fills the modifiers. The operands have the types of the slots atype and btype, where the row
/// has them, then that of type, then that of the result.
MixedModifiers &describe(BindContext &cx, Op op) {
  static constexpr std::string_view names[] = {"rn", "rz", "rm", "rp"};
  auto &mixed = cx.insn.make<MixedModifiers>();
  mixed.how.op = op;
  for (uint8_t i = 0; i < 4; ++i)
    if (cx.match.text("round") == names[i])
      mixed.how.round = Round(i);
  mixed.how.ftz = cx.match.has("ftz");
  mixed.how.sat = cx.match.has("sat");
  mixed.saturatesFinite = cx.match.has("satfinite");
  mixed.result = cx.match.type("dtype");
  unsigned count = 0;
  for (const char *slot : {"atype", "btype", "type"})
    if (cx.match.has(slot))
      mixed.operands[count++] = cx.match.type(slot);
  for (; count < 3; ++count)
    mixed.operands[count] = mixed.result;
  return mixed;
}

Status bindScalar(BindContext &cx, Op op) {
  if (cx.insn.type != Type::F16 && cx.insn.type != Type::BF16)
    return useFor(cx, nullptr);
  MixedModifiers &types = describe(cx, op);
  if (op == Op::Fma)
    types.operands[1] = cx.insn.type;
  return cx.use(mixed);
}

/// Results of f16 that narrow f32 flush, and others do not (ptxas 13.5).
Status bindPairs(BindContext &cx, Op op) {
  const MixedModifiers &types = describe(cx, op);
  const bool narrows = types.operands[0] == Type::F32x2 && types.result == Type::F16x2;
  if (types.how.ftz != narrows)
    return cx.fail(narrows ? "a sum or product of f32x2 in f16x2 expects .ftz"
                           : "'.ftz' belongs to results of f16x2 from f32x2");
  return cx.use(mixed);
}

Status bindQuads(BindContext &cx, Op op) {
  describe(cx, op);
  return cx.use(mixed);
}

} // namespace

namespace fp4::sim {

Status bindMixedAdd(BindContext &cx) { return bindScalar(cx, Op::Add); }
Status bindMixedSub(BindContext &cx) { return bindScalar(cx, Op::Sub); }
Status bindMixedFma(BindContext &cx) { return bindScalar(cx, Op::Fma); }

Status bindPairsAdd(BindContext &cx) { return bindPairs(cx, Op::Add); }
Status bindPairsSub(BindContext &cx) { return bindPairs(cx, Op::Sub); }
Status bindPairsMul(BindContext &cx) { return bindPairs(cx, Op::Mul); }
Status bindPairsFma(BindContext &cx) { return bindPairs(cx, Op::Fma); }

Status bindQuadsAdd(BindContext &cx) { return bindQuads(cx, Op::Add); }
Status bindQuadsSub(BindContext &cx) { return bindQuads(cx, Op::Sub); }
Status bindQuadsMul(BindContext &cx) { return bindQuads(cx, Op::Mul); }
Status bindQuadsFma(BindContext &cx) { return bindQuads(cx, Op::Fma); }

} // namespace fp4::sim
