//===- Narrow.cpp - Floating-point formats of at most 8 bits --------------===//
#include "Sim/Insn/Scalar/Narrow.h"

using namespace fp4;
using namespace fp4::sim;

namespace {

constexpr Narrow kNarrow[] = {
    {Type::E4M3x2, Type::E4M3x4, {4, 3, 7}, 0x7E, 0x7F, true},
    {Type::E5M2x2, Type::E5M2x4, {5, 2, 15}, 0x7B, 0x7F, true},
    {Type::E2M3x2, Type::E2M3x4, {2, 3, 1}, 0x1F, 0x1F, false},
    {Type::E3M2x2, Type::E3M2x4, {3, 2, 3}, 0x1F, 0x1F, false},
    {Type::E2M1x2, Type::E2M1x4, {2, 1, 1}, 0x7, 0x7, false},
    {Type::UE5M3x2, Type::None, {5, 3, 15}, 0xFE, 0xFF, true, true},
    {Type::None, Type::E2M1p4x4, {2, 1, 1}, 0x7, 0x7, false},
};

/// E5M2 is the one whose top exponent holds infinity.
bool isIeee(const Narrow &narrow) { return narrow.pair == Type::E5M2x2; }

/// One more exponent bit than the format has keeps overflow visible.
Format widened(const Narrow &narrow) {
  Format wide = narrow.format;
  ++wide.exponentBits;
  return wide;
}

} // namespace

const Narrow *fp4::sim::narrowOf(Type type) {
  for (const Narrow &narrow : kNarrow)
    if (type != Type::None && (narrow.pair == type || narrow.quad == type))
      return &narrow;
  return nullptr;
}

unsigned fp4::sim::widthOf(const Narrow &narrow) {
  return narrow.format.exponentBits + narrow.format.mantissaBits + (narrow.isUnsigned ? 0u : 1u);
}

unsigned fp4::sim::paddedBits(const Narrow &narrow) { return narrow.pair == Type::E2M1x2 ? 4 : 8; }

uint32_t fp4::sim::encodeNarrow(double x, const Narrow &narrow, Round mode, bool relu,
                                bool saturates) {
  if (std::isnan(x))
    return narrow.nan;
  if (relu && x < 0)
    x = 0;
  uint32_t magnitude = encode(std::fabs(x), widened(narrow), mode);
  const bool negative = std::signbit(x) && !(relu && x == 0) && !narrow.isUnsigned;
  const uint32_t sign = negative ? 1u << (widthOf(narrow) - 1) : 0;
  if (magnitude > narrow.maximum)
    magnitude = saturates ? narrow.maximum : isIeee(narrow) ? narrow.maximum + 1u : narrow.nan;
  return sign | magnitude;
}

double fp4::sim::decodeNarrow(uint32_t code, const Narrow &narrow) {
  const uint32_t sign = narrow.isUnsigned ? 0 : 1u << (widthOf(narrow) - 1);
  const uint32_t magnitude = code & ((1u << (widthOf(narrow) - (sign ? 1 : 0))) - 1);
  if (isIeee(narrow))
    return decode(code & 0xFF, narrow.format);
  if (narrow.hasNaN && magnitude == narrow.nan)
    return std::nan("");
  const double value = decode(magnitude, widened(narrow));
  return code & sign ? -value : value;
}
