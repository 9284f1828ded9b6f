//===- FactorDecoder.cpp - Codes of factors as integers, many at a time ---===//
#include "FactorDecoder.h"
#include "Multiversion.h"

#include <algorithm>
#include <cstring>

namespace fp4::numerics {

using hw::MmaType;

namespace {

constexpr BinaryFormat formatOf(MmaType type) {
  switch (type) {
  case MmaType::F16:
    return binary16;
  case MmaType::BF16:
    return {8, 7, true, false};
  case MmaType::TF32:
    return {8, 10, true, false};
  case MmaType::E4M3:
    return {4, 3, false, true};
  case MmaType::E5M2:
    return {5, 2, true, false};
  case MmaType::E2M3:
    return {2, 3, false, false};
  case MmaType::E3M2:
    return {3, 2, false, false};
  default:
    return {2, 1, false, false}; // E2M1
  }
}

/// Returns true for types whose elements may be packed, or take one byte each.
bool isNarrow(MmaType type) {
  return type == MmaType::E2M3 || type == MmaType::E3M2 || type == MmaType::E2M1;
}

template <typename Code>
void loadWhole(const uint8_t *row, uint32_t *codes, unsigned stride, unsigned dropped) {
  Code whole[32 / sizeof(Code)];
  std::memcpy(whole, row, sizeof(whole));
  for (size_t k = 0; k < std::size(whole); ++k)
    codes[k * stride] = uint32_t(whole[k]) >> dropped;
}

void loadNarrow(unsigned bits, const uint8_t *row, bool unpacked, uint32_t *codes,
                unsigned stride) {
  for (unsigned k = 0; k < 32; ++k) {
    uint32_t code = bits == 4 ? row[k] >> 2 : row[k];
    if (!unpacked) {
      const unsigned at = k % 16 * bits; // of the 16-byte half
      const uint8_t *from = row + k / 16 * 16 + at / 8;
      code = uint32_t(from[0] | from[1] << 8) >> (at % 8);
    }
    codes[k * stride] = code & ((1u << bits) - 1);
  }
}

/// Plain loops over arrays, so that compilers vectorize them.
struct CodeDecoder {
  [[gnu::always_inline]] static inline bool run(const BinaryFormat &f, const uint32_t *codes,
                                                size_t count, bool negate, int32_t *significands,
                                                int32_t *exponents) {
    const int fractionBits = int(f.fractionBits), signBit = int(f.fractionBits + f.exponentBits);
    const int32_t fractions = (1 << fractionBits) - 1, top = (1 << f.exponentBits) - 1;
    const int32_t bias = (1 << (f.exponentBits - 1)) - 1, inverse = negate;
    // Codes of this magnitude or more are infinite or NaN; a format without such codes has a bound
    // beyond all of its codes.
    const int32_t firstSpecial = f.ieee     ? top << fractionBits
                                 : f.oneNaN ? (top << fractionBits | fractions)
                                            : 1 << signBit;
    int32_t special = 0;
    for (size_t i = 0; i < count; ++i) {
      const int32_t code = int32_t(codes[i]);
      const int32_t fraction = code & fractions, field = code >> fractionBits & top;
      const int32_t sign = -((code >> signBit & 1) ^ inverse);
      const int32_t magnitude = fraction | (field ? 1 << fractionBits : 0);
      const int32_t exponent = std::max(field, 1) - bias;
      special |= (code & ((1 << signBit) - 1)) >= firstSpecial;
      significands[i] = (magnitude ^ sign) - sign;
      exponents[i] = magnitude ? exponent : absentExponent;
    }
    return special;
  }
};

} // namespace

Factor decodeFactor(const BinaryFormat &f, uint32_t code, bool negate) {
  const uint32_t fraction = code & ((1u << f.fractionBits) - 1);
  const uint32_t field = code >> f.fractionBits & ((1u << f.exponentBits) - 1);
  const uint32_t top = (1u << f.exponentBits) - 1;
  const int bias = (1 << (f.exponentBits - 1)) - 1;
  const bool negative = (code >> (f.fractionBits + f.exponentBits) & 1) != uint32_t(negate);
  Factor out;
  if (f.ieee && field == top)
    out.kind = fraction ? Factor::NaN : Factor::Infinite;
  if (f.oneNaN && field == top && fraction == (1u << f.fractionBits) - 1)
    out.kind = Factor::NaN;
  const int32_t magnitude = int32_t(fraction | (field ? 1u << f.fractionBits : 0));
  out.significand = negative ? -magnitude : magnitude;
  out.exponent = int16_t(std::max<int>(int(field), 1) - bias);
  return out;
}

Factor::Class kindOf(MmaType type, uint32_t code) {
  return decodeFactor(formatOf(type), code, false).kind;
}

unsigned fractionBits(MmaType type) { return formatOf(type).fractionBits; }

unsigned factorsPerRow(MmaType type) {
  switch (type) {
  case MmaType::TF32:
    return 8;
  case MmaType::F16:
  case MmaType::BF16:
    return 16;
  default:
    return 32;
  }
}

void loadCodes(MmaType type, const uint8_t *row, bool unpacked, uint32_t *codes, unsigned stride) {
  if (type == MmaType::TF32)
    return loadWhole<uint32_t>(row, codes, stride, 13);
  if (factorsPerRow(type) == 16)
    return loadWhole<uint16_t>(row, codes, stride, 0);
  if (!isNarrow(type))
    return loadWhole<uint8_t>(row, codes, stride, 0);
  const BinaryFormat f = formatOf(type);
  loadNarrow(1 + f.exponentBits + f.fractionBits, row, unpacked, codes, stride);
}

bool decodeCodes(MmaType type, const uint32_t *codes, size_t count, bool negate,
                 int32_t *significands, int32_t *exponents) {
  return multiversion<CodeDecoder>(formatOf(type), codes, count, negate, significands, exponents);
}

void decodeFactors(MmaType type, const uint8_t *row, bool unpacked, bool negate, FactorRow &out) {
  const BinaryFormat f = formatOf(type);
  uint32_t codes[maxDenseK];
  loadCodes(type, row, unpacked, codes, 1);
  for (unsigned k = 0; k < factorsPerRow(type); ++k)
    out[k] = decodeFactor(f, codes[k], negate);
}

} // namespace fp4::numerics
