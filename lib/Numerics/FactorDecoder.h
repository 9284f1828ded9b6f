//===- FactorDecoder.h - Codes of factors as integers, many at a time -----===//
#pragma once

#include "fp4/Numerics/DenseMma.h"

namespace fp4::numerics {

/// Exponent and fraction bits; `ieee` has infinities, `oneNaN` a single NaN.
struct BinaryFormat {
  unsigned exponentBits, fractionBits;
  bool ieee, oneNaN;
};
constexpr BinaryFormat binary16 = {5, 10, true, false}, binary32 = {8, 23, true, false};

Factor decodeFactor(const BinaryFormat &format, uint32_t code, bool negate);

/// The exponent of a zero in DenseColumns: no shift brings its products back.
constexpr int32_t absentExponent = -0x4000;

/// The codes of one 32-byte operand row, as decodeFactors has it; code k at codes[k * stride].
void loadCodes(hw::MmaType type, const uint8_t *row, bool unpacked, uint32_t *codes,
               unsigned stride);

/// Decodes `count` codes to significands with a sign, which `negate` turns, and exponents, which
/// are absentExponent for zeros. Returns true when one of them is infinite or NaN; kindOf says
/// which.
bool decodeCodes(hw::MmaType type, const uint32_t *codes, size_t count, bool negate,
                 int32_t *significands, int32_t *exponents);
Factor::Class kindOf(hw::MmaType type, uint32_t code);

} // namespace fp4::numerics
