//===- E4M3.h - The 8-bit scale format of NVFP4 ---------------------------===//
//
// E4M3 (fn): sign, four exponent bits (bias 7), three mantissa bits; 0x7F and 0xFF are NaN, no
// infinity; largest value 448 (0x7E), smallest normal 2^-6 (0x08), smallest subnormal 2^-9 (0x01).
// UE4M3, the scale format, is E4M3 whose sign bit the hardware ignores.
//
// Sources: OCP 8-bit floating point; PTX ISA cvt to .e4m3x2; cuda_fp8.hpp.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace fp4::numerics {

inline constexpr float e4m3Max = 448.f;

/// Value of a code; NaN for 0x7F and 0xFF.
float decodeE4M3(uint8_t code);

/// Value of a scale code as the MMA reads it: the sign bit is ignored.
inline float decodeUE4M3(uint8_t code) { return decodeE4M3(code & 0x7F); }

/// cvt.rn.satfinite.e4m3: nearest even, subnormals kept, overflow and infinity to +-448, NaN to
/// 0x7F whatever its sign.
uint8_t encodeE4M3(float x);

/// The non-saturating cast (PyTorch up to 2.12, ml_dtypes, cuda_fp8 __NV_NOSAT): above 464 and
/// infinity give NaN with the sign of x; NaN keeps its sign.
uint8_t encodeE4M3NonSaturating(float x);

} // namespace fp4::numerics
