//===- AttentionFactors.h - Factors of the scores of attention ------------===//
//
// Attention and its gradients compute powers of two of the same scores.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <numbers>

namespace fp4 {

/// Factor of a product in the exponent of 2, or of its hyperbolic tangent with a softcap.
template <typename Op> double exponentFactorOf(Op op) {
  return op.getSoftcap().value_or(op.getScale()).convertToDouble() * std::numbers::log2e;
}

/// Factor of a product in y of tanh = 1 - 2 / (1 + 2^y), with a softcap.
template <typename Op> double tangentFactorOf(Op op) {
  return 2 * std::numbers::log2e * op.getScale().convertToDouble() /
         op.getSoftcap()->convertToDouble();
}

} // namespace fp4
