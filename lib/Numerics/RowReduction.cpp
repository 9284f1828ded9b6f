// Combinations of the elements of a row, in the order that kernels have too.
#include "fp4/Numerics/RowReduction.h"
#include <algorithm>
#include <array>
#include <limits>

namespace fp4::numerics {
namespace {

constexpr std::array combinations = {ElementOp::Add,           ElementOp::Multiply,
                                     ElementOp::Maximum,       ElementOp::Minimum,
                                     ElementOp::MaximumNumber, ElementOp::MinimumNumber};

/// Combines each number of the first half with that of the second half until one is left; there is
/// a power of two of them.
float combineHalves(std::span<float> numbers, ElementOp combination) {
  for (size_t half = numbers.size() / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i)
      numbers[i] = stepOf(combination, numbers[i], numbers[i + half]);
  return numbers.front();
}

/// Combines the elements of one segment, of which the last of a row may be shorter.
float combineSegment(std::span<const float> elements, ElementOp combination) {
  std::array<float, kReductionSegment> segment;
  segment.fill(identityOf(combination));
  std::ranges::copy(elements, segment.begin());
  std::array<float, kReductionSegment / kReductionChunk> chunks;
  for (size_t i = 0; i < chunks.size(); ++i)
    chunks[i] = combineHalves(
        std::span<float>(segment).subspan(i * kReductionChunk, kReductionChunk), combination);
  return combineHalves(chunks, combination);
}

} // namespace

bool isCombination(ElementOp op) {
  return std::ranges::find(combinations, op) != combinations.end();
}

float identityOf(ElementOp combination) {
  constexpr uint32_t canonicalNaN = 0x7FFFFFFF;
  switch (combination) {
  case ElementOp::Add:
    return -0.f;
  case ElementOp::Multiply:
    return 1;
  case ElementOp::Maximum:
    return -std::numeric_limits<float>::infinity();
  case ElementOp::Minimum:
    return std::numeric_limits<float>::infinity();
  default:
    return floatOf(canonicalNaN);
  }
}

float reduceRow(std::span<const float> elements, ElementOp combination, float initial) {
  const bool isLong = elements.size() > kReductionSequence * kReductionSegment;
  std::array<float, kReductionSequence> lanes;
  float result = initial;
  for (size_t begin = 0, i = 0; begin < elements.size(); begin += kReductionSegment, ++i) {
    const size_t size = std::min(kReductionSegment, elements.size() - begin);
    const float segment = combineSegment(elements.subspan(begin, size), combination);
    float &sum = isLong ? lanes[i % kReductionSequence] : result;
    sum = isLong && i < kReductionSequence ? segment : stepOf(combination, sum, segment);
  }
  return isLong ? stepOf(combination, initial, combineHalves(lanes, combination)) : result;
}

} // namespace fp4::numerics
