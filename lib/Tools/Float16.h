//===- Float16.h - bf16 and f16 bits to float and back --------------------===//
//
// Conversions of the file and input layer, to nearest even. (The formats of the quantizers are in
// lib/Numerics.)
//
//===----------------------------------------------------------------------===//
#pragma once

#include <bit>
#include <cstdint>

namespace fp4::tools {

inline float bf16ToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

inline uint16_t floatToBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<uint16_t>(bits >> 16 | 0x40); // NaN stays NaN
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float halfToFloat(uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
inline uint16_t floatToHalf(float value) {
  return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
}

} // namespace fp4::tools
