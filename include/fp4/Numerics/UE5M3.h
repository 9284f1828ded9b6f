//===- UE5M3.h - The scale format of 5 exponent and 3 mantissa bits -------===//
//
// UE5M3 (sm_107a): no sign, bias 15, subnormals down to 2^-17, no infinity; 0xFE = 114688 is the
// greatest number, 0xFF NaN.
//
// Source: PTX ISA 9.4, "Alternate floating-point data formats".
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace fp4::numerics {

inline constexpr uint8_t ue5m3NaN = 0xFF;
inline constexpr int ue5m3Bias = 15;

/// The number of `code`, which is exact.
inline float decodeUE5M3(uint8_t code) {
  if (code == ue5m3NaN)
    return std::numeric_limits<float>::quiet_NaN();
  const int field = code >> 3, mantissa = code & 7;
  return std::ldexp(static_cast<float>(field ? 8 + mantissa : mantissa),
                    (field ? field : 1) - ue5m3Bias - 3);
}

} // namespace fp4::numerics
