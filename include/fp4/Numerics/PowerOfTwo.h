//===- PowerOfTwo.h - Powers of two that hardware approximates ------------===//
//
// Computes ex2.approx.ftz.f32 and ex2.approx.f32 as an H200 does, bit by bit. Results are within
// one last place of the correctly rounded ones, and a few within two.
//
// Source: all 2^32 results of both on an H200 (driver 580.159.04). Other GPUs were not measured.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace fp4::numerics {

/// Computes 2^x. Results below 2^-126 are zero; NaN gives 0x7FFFFFFF.
float approximatePowerOfTwo(float x);

/// Computes 2^x with subnormal results, as the square of 2^(x/2) where x is below -126.
float approximateSmallPowerOfTwo(float x);

} // namespace fp4::numerics
