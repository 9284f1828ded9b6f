//===- AttentionBackward.h - Gradients of attention, exact and as bits -----===//
#pragma once

#include "fp4/Numerics/Attention.h"

namespace fp4::numerics {

/// Operands of the backward pass, as numbers: those of an attention, its results, and the gradient
/// of its values.
struct BackwardOperands {
  std::span<const float> query, key, value, output, outputGradient, logSums;
};

/// Exact numbers, and the distance from each within which a kernel is right.
struct BoundedNumbers {
  std::vector<double> values, bounds;
};

/// The gradients of queries, keys and values, each in the order of the operand.
template <typename T> struct AttentionGradients {
  T query, key, value;
};

/// Gradients of elements of `type`, on `threads` threads (0: all), of a `shape` without
/// slopes, pages and factors. Packed queries come with packed keys; tokens behind the last sequence
/// have zeros. Usage error where operands have not the sizes of `shape`.
///
/// Bounds, with u = 2^-24, w half an ulp of `type`, g the gradient of the output, s the score,
/// p = exp(s - logSum) and t = sum(g output):
///   score     2 u D scale |q| . |k|, as in referenceAttention
///   argument  4 u (|s| + |logSum| + |s - logSum|), of a power whose own error is 2 ulp
///   g . v     2 u E |g| . |v|, and t the same of g and the output
///   softcap   that of a tangent, and of its gradient r = 1 - tanh^2, twice that and 2 u
///   ds        p (g . v - t) r: the errors of all, and 4 u of the result
///   p, ds     w when they are rounded, or all of them below the smallest numbers
///   sums      2 u for each term
///   result    2 u for the scale, and w
Expected<AttentionGradients<BoundedNumbers>>
referenceAttentionBackward(const AttentionShape &shape, FloatType type,
                           const BackwardOperands &operands, unsigned threads);

/// The numbers that kernels compute, bit for bit, before they are rounded to their type: sums of 16
/// products at a time, of one head of queries after the other, in ascending order of queries, or of
/// keys. Terms that a query does not see are zeros and change no sum, so that tiles do not matter.
/// ex2 has the bits of an H200 (PowerOfTwo.h).
Expected<AttentionGradients<std::vector<float>>>
modelAttentionBackward(const AttentionShape &shape, FloatType type,
                       const BackwardOperands &operands, unsigned threads);

/// Elements whose products one thread adds up, from the first one on, before threads add theirs by
/// halves: those beside first.
inline constexpr uint64_t kBackwardElements = 8;

/// Usage error where operands have not the sizes of `shape`.
Status checkAttentionBackward(const AttentionShape &shape, const BackwardOperands &operands);

} // namespace fp4::numerics
