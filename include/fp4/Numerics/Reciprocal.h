//===- Reciprocal.h - The reciprocal that hardware approximates -----------===//
//
// rcp.approx.ftz.f32 as an H200 computes it, bit by bit. It is within one last place of the
// correctly rounded reciprocal, which 86.8 % of the results are; those of all E4M3 numbers and of 6
// among them.
//
// Source: an H200 (driver 580.159.04), asked for all 2^23 mantissas, and for each under every
// exponent and sign. Other GPUs were not measured.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace fp4::numerics {

/// Subnormal x give infinity, results below 2^-126 zero, with the sign of x; NaN gives 0x7FFFFFFF.
float approximateReciprocal(float x);

} // namespace fp4::numerics
