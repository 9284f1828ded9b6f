//===- SquareRoot.h - Square roots that hardware approximates -------------===//
//
// Computes sqrt.approx.ftz.f32 and rsqrt.approx.ftz.f32 as an H200 does, bit by bit. Results are
// within one last place of the correctly rounded ones, and 8 reciprocals within two.
//
// Source: measurements on an H200 (driver 580.159.04) of all 2^23 mantissas under an even and an
// odd exponent, and of each under every other exponent. Other GPUs were not measured.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace fp4::numerics {

/// Subnormal x count as zeros of their sign. Numbers below zero and NaN give 0x7FFFFFFF.
float approximateSquareRoot(float x);

/// Computes 1 / sqrt(x) in this way; infinity has the sign of a zero.
float approximateReciprocalSquareRoot(float x);

} // namespace fp4::numerics
