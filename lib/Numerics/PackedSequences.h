//===- PackedSequences.h - Gradients of packed sequences, one by one -------===//
#pragma once

#include "fp4/Numerics/AttentionBackward.h"

#include <algorithm>

namespace fp4::numerics {

/// One of packed sequences as one that is not, and the places of its gradients among those of all.
struct PackedSequence {
  AttentionShape shape;
  BackwardOperands operands;
  AttentionGradients<uint64_t> places;
};

/// Sequence `number` of `shape`.
inline PackedSequence sequenceOf(const AttentionShape &shape, const BackwardOperands &operands,
                                 uint64_t number) {
  PackedSequence sequence{shape, {}, {}};
  AttentionShape &own = sequence.shape;
  const auto query = uint64_t(shape.queryOffsets[number]), key = uint64_t(shape.keyOffsets[number]);
  own.batches = 1;
  own.queryTokens = uint64_t(shape.queryOffsets[number + 1]) - query;
  own.keyTokens = uint64_t(shape.keyOffsets[number + 1]) - key;
  own.queryOffsets = own.keyOffsets = {};
  const auto part = [](std::span<const float> numbers, uint64_t first, uint64_t count,
                       uint64_t ofToken) {
    return numbers.subspan(first * ofToken, count * ofToken);
  };
  const uint64_t ofQuery = shape.heads * shape.queryElements,
                 ofOutput = shape.heads * shape.valueElements,
                 ofKey = shape.keyHeads * shape.queryElements,
                 ofValue = shape.keyHeads * shape.valueElements;
  sequence.operands = {part(operands.query, query, own.queryTokens, ofQuery),
                       part(operands.key, key, own.keyTokens, ofKey),
                       part(operands.value, key, own.keyTokens, ofValue),
                       part(operands.output, query, own.queryTokens, ofOutput),
                       part(operands.outputGradient, query, own.queryTokens, ofOutput),
                       part(operands.logSums, query, own.queryTokens, shape.heads)};
  sequence.places = {query * ofQuery, key * ofKey, key * ofValue};
  return sequence;
}

inline void placeNumbers(const std::vector<float> &part, uint64_t place,
                         std::vector<float> &numbers) {
  std::ranges::copy(part, numbers.begin() + ptrdiff_t(place));
}
inline void placeNumbers(const BoundedNumbers &part, uint64_t place, BoundedNumbers &numbers) {
  std::ranges::copy(part.values, numbers.values.begin() + ptrdiff_t(place));
  std::ranges::copy(part.bounds, numbers.bounds.begin() + ptrdiff_t(place));
}

/// Fills in the gradients that `compute` finds for each packed sequence. Tokens behind the last
/// one, of queries without keys, and of keys without queries keep their zeros.
template <typename T, typename Compute>
Status computeSequences(const AttentionShape &shape, const BackwardOperands &operands,
                        AttentionGradients<T> &gradients, Compute compute) {
  for (uint64_t number = 0; number < shape.batches; ++number) {
    const PackedSequence sequence = sequenceOf(shape, operands, number);
    if (sequence.shape.queryTokens == 0 || sequence.shape.keyTokens == 0)
      continue;
    FP4_ASSIGN(const AttentionGradients<T> found, compute(sequence));
    placeNumbers(found.query, sequence.places.query, gradients.query);
    placeNumbers(found.key, sequence.places.key, gradients.key);
    placeNumbers(found.value, sequence.places.value, gradients.value);
  }
  return {};
}

} // namespace fp4::numerics
