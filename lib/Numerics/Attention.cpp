//===- Attention.cpp - Attention in fp64, and the bound of a kernel --------===//
#include "fp4/Numerics/Attention.h"

#include "fp4/Support/Parallel.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace fp4::numerics {
namespace {

/// Half an ulp of fp32 relative to 1, and the error of ex2.approx (PTX ISA: 2 ulp).
constexpr double unit = 0x1p-24, powerError = 4 * unit;

/// Half an ulp of `type` relative to 1, and its smallest subnormal number.
struct Rounding {
  double relative, smallest;
};
Rounding roundingOf(FloatType type) {
  return type == FloatType::F16 ? Rounding{0x1p-11, 0x1p-24} : Rounding{0x1p-8, 0x1p-133};
}

/// One row of queries: what it sees, and its results.
class AttentionRow {
public:
  AttentionRow(const AttentionShape &shape, FloatType type, std::span<const float> query,
               std::span<const float> key, std::span<const float> value)
      : shape_(shape), rounding_(roundingOf(type)), query_(query), key_(key), value_(value) {}

  void compute(uint64_t row, AttentionReference &reference) {
    const uint64_t head = row % shape_.heads, token = row / shape_.heads % shape_.queryTokens;
    const uint64_t batch = row / shape_.heads / shape_.queryTokens;
    const uint64_t group = head / (shape_.heads / shape_.keyHeads);
    firstKey_ = batch * shape_.keyTokens * shape_.keyHeads + group;
    weigh(row, keysSeen(token));
    for (uint64_t e = 0; e < shape_.valueElements; ++e)
      store(row * shape_.valueElements + e, e, reference);
  }

private:
  uint64_t keysSeen(uint64_t token) const {
    if (!shape_.causal)
      return shape_.keyTokens;
    const int64_t seen =
        int64_t(token) + 1 + int64_t(shape_.keyTokens) - int64_t(shape_.queryTokens);
    return uint64_t(std::clamp<int64_t>(seen, 0, int64_t(shape_.keyTokens)));
  }

  /// Computes the weight of each key, and its relative error.
  void weigh(uint64_t row, uint64_t keys) {
    const float *query = query_.data() + row * shape_.queryElements;
    weights_.assign(keys, 0);
    errors_.assign(keys, 0);
    double largest = -std::numeric_limits<double>::infinity();
    for (uint64_t j = 0; j < keys; ++j) {
      const float *key = key_.data() + (firstKey_ + j * shape_.keyHeads) * shape_.queryElements;
      double sum = 0, magnitude = 0;
      for (uint64_t d = 0; d < shape_.queryElements; ++d) {
        const double product = double(query[d]) * key[d];
        sum += product;
        magnitude += std::fabs(product);
      }
      weights_[j] = sum * shape_.scale;
      errors_[j] = 2 * unit * double(shape_.queryElements) * magnitude * shape_.scale;
      largest = std::max(largest, weights_[j]);
    }
    double ofLargest = 0; // the errors of the maximum do not cancel
    for (uint64_t j = 0; j < keys; ++j)
      ofLargest = std::max(ofLargest, errors_[j]);
    total_ = 0;
    for (uint64_t j = 0; j < keys; ++j) {
      const double distance = weights_[j] - largest;
      const double argument =
          errors_[j] + ofLargest + 4 * unit * (std::fabs(largest) + std::fabs(distance));
      errors_[j] = std::expm1(argument) + powerError + 2 * unit * double(keys);
      weights_[j] = std::exp(distance);
      total_ += weights_[j];
    }
  }

  void store(uint64_t place, uint64_t element, AttentionReference &reference) const {
    double sum = 0, numerator = 0, denominator = 0;
    for (uint64_t j = 0; j < weights_.size(); ++j) {
      const double value =
          value_[(firstKey_ + j * shape_.keyHeads) * shape_.valueElements + element];
      sum += weights_[j] * value;
      numerator +=
          std::fabs(value) * (weights_[j] * (errors_[j] + rounding_.relative) + rounding_.smallest);
      denominator += weights_[j] * errors_[j];
    }
    const bool isEmpty = weights_.empty();
    const double result = isEmpty ? 0 : sum / total_;
    const double before = isEmpty ? 0
                                  : (numerator + std::fabs(result) * denominator) / total_ +
                                        4 * unit * std::fabs(result);
    reference.values[place] = result;
    reference.bounds[place] =
        isEmpty ? 0
                : before + rounding_.relative * (std::fabs(result) + before) + rounding_.smallest;
  }

  const AttentionShape &shape_;
  Rounding rounding_;
  std::span<const float> query_, key_, value_;
  uint64_t firstKey_ = 0; ///< row of heads of keys
  double total_ = 0;
  std::vector<double> weights_, errors_;
};

Status checkSizes(const AttentionShape &shape, size_t query, size_t key, size_t value) {
  const uint64_t queries = shape.batches * shape.queryTokens * shape.heads * shape.queryElements;
  const uint64_t keyRows = shape.batches * shape.keyTokens * shape.keyHeads;
  if (shape.keyHeads && shape.heads % shape.keyHeads == 0 && query == queries &&
      key == keyRows * shape.queryElements && value == keyRows * shape.valueElements)
    return {};
  return makeError(ErrorKind::Usage,
                   fmt::format("attention must have {} elements of queries, {} of keys and {} of "
                               "values, but got {}, {} and {}",
                               queries, keyRows * shape.queryElements,
                               keyRows * shape.valueElements, query, key, value));
}

} // namespace

Expected<AttentionReference> referenceAttention(const AttentionShape &shape, FloatType type,
                                                std::span<const float> query,
                                                std::span<const float> key,
                                                std::span<const float> value, unsigned threads) {
  FP4_TRY(checkSizes(shape, query.size(), key.size(), value.size()));
  AttentionReference reference;
  reference.values.resize(shape.results());
  reference.bounds.resize(shape.results());
  const uint64_t rows = shape.batches * shape.queryTokens * shape.heads;
  parallelFor(rows, threads, [&](uint64_t row) {
    AttentionRow(shape, type, query, key, value).compute(row, reference);
  });
  return reference;
}

} // namespace fp4::numerics
