//===- AttentionPowers.h - Powers and tangents of the models of attention --===//
#pragma once

#include "fp4/Numerics/PowerOfTwo.h"
#include "fp4/Numerics/Reciprocal.h"

#include <cmath>

namespace fp4::numerics {

/// The error of a hyperbolic tangent (include/fp4/Numerics/Attention.h).
inline constexpr double tangentError = 12 * 0x1p-24;

/// `number` in fp32, with subnormal numbers as zero.
inline float flushed(double number) {
  const auto rounded = float(number);
  return std::fabs(rounded) < 0x1p-126f ? std::copysign(0.f, rounded) : rounded;
}

/// ex2, as an H200 and the simulator approximate it.
inline float exp2Of(float x) { return approximatePowerOfTwo(x); }

/// 1 - 2 / (1 + 2^x), as kernels compute a hyperbolic tangent.
inline float tangentOf(float x) {
  return std::fma(approximateReciprocal(exp2Of(x) + 1), -2.f, 1.f);
}

} // namespace fp4::numerics
