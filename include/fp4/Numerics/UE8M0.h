//===- UE8M0.h - The power-of-two scale format of MXFP4 -------------------===//
//
// UE8M0: code b stands for 2^(b - 127), b = 0..254; 255 is NaN. No sign, no zero, no infinity.
//
// Sources: OCP MX specification; PTX ISA cvt to .ue8m0x2; cuda_fp8.hpp.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace fp4::numerics {

inline constexpr uint8_t ue8m0NaN = 0xFF, ue8m0One = 127;

/// 2^(code - 127); code 0 is the fp32 subnormal 2^-127, 255 NaN.
float decodeUE8M0(uint8_t code);

/// cvt.rp.satfinite.ue8m0: smallest power of two >= |x|; 0 and |x| <= 2^-127 give 0, infinity and
/// overflow 0xFE, NaN 0xFF.
uint8_t encodeUE8M0Up(float x);

/// cvt.rz.satfinite.ue8m0: largest power of two <= |x|; otherwise as encodeUE8M0Up.
uint8_t encodeUE8M0TowardZero(float x);

/// The nearest cast of PyTorch (half up on the mantissa, infinity and overflow to NaN). Not what
/// any hardware instruction does.
uint8_t encodeUE8M0Nearest(float x);

} // namespace fp4::numerics
