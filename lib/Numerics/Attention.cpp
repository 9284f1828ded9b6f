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
    batch_ = row / shape_.heads / shape_.queryTokens;
    group_ = head / (shape_.heads / shape_.keyHeads);
    weigh(row, keysSeen(token));
    for (uint64_t e = 0; e < shape_.valueElements; ++e)
      store(row * shape_.valueElements + e, e, reference);
  }

private:
  uint64_t keysSeen(uint64_t token) const {
    const auto all = int64_t(shape_.keyTokens);
    const int64_t keys =
        shape_.lengths.empty() ? all : std::clamp<int64_t>(shape_.lengths[batch_], 0, all);
    if (!shape_.causal)
      return uint64_t(keys);
    const int64_t seen = int64_t(token) + 1 + keys - int64_t(shape_.queryTokens);
    return uint64_t(std::clamp<int64_t>(seen, 0, keys));
  }

  /// The elements of key `j` in `rows`, which have `elements` each; null where its page does not
  /// exist.
  const float *elementsOf(std::span<const float> rows, uint64_t j, uint64_t elements) const {
    uint64_t token = batch_ * shape_.keyTokens + j;
    if (!shape_.pages.empty()) {
      const uint64_t pagesOfSequence = shape_.keyTokens / shape_.pageTokens;
      const int32_t page = shape_.pages[batch_ * pagesOfSequence + j / shape_.pageTokens];
      const uint64_t pages = rows.size() / (shape_.pageTokens * shape_.keyHeads * elements);
      if (page < 0 || uint64_t(page) >= pages)
        return nullptr;
      token = uint64_t(page) * shape_.pageTokens + j % shape_.pageTokens;
    }
    return rows.data() + (token * shape_.keyHeads + group_) * elements;
  }

  /// Computes the weight of each key, and its relative error.
  void weigh(uint64_t row, uint64_t keys) {
    const float *query = query_.data() + row * shape_.queryElements;
    weights_.assign(keys, 0);
    errors_.assign(keys, 0);
    double largest = -std::numeric_limits<double>::infinity();
    for (uint64_t j = 0; j < keys; ++j) {
      const float *key = elementsOf(key_, j, shape_.queryElements);
      double sum = 0, magnitude = 0;
      for (uint64_t d = 0; key && d < shape_.queryElements; ++d) {
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
      const float *elements = elementsOf(value_, j, shape_.valueElements);
      const double value = elements ? elements[element] : 0;
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
  uint64_t batch_ = 0, group_ = 0; ///< sequence, and head of keys
  double total_ = 0;
  std::vector<double> weights_, errors_;
};

Status checkSequences(const AttentionShape &shape) {
  const size_t lengths = shape.lengths.size(), pages = shape.pages.size();
  const bool hasPages = pages == 0 || (shape.pageTokens &&
                                       pages * shape.pageTokens == shape.batches * shape.keyTokens);
  if (hasPages && (lengths == 0 || lengths == shape.batches))
    return {};
  return makeError(
      ErrorKind::Usage,
      fmt::format("attention of {} sequences of {} keys must have as many lengths, and "
                  "pages for all keys, but got {} and {} of {} keys",
                  shape.batches, shape.keyTokens, lengths, pages, shape.pageTokens));
}

Status checkSizes(const AttentionShape &shape, size_t query, size_t key, size_t value) {
  FP4_TRY(checkSequences(shape));
  const uint64_t queries = shape.batches * shape.queryTokens * shape.heads * shape.queryElements;
  const uint64_t rowsOfPage = shape.pageTokens * shape.keyHeads;
  const bool hasCache = !shape.pages.empty() && shape.queryElements && rowsOfPage;
  const uint64_t keyRows = hasCache ? key / shape.queryElements / rowsOfPage * rowsOfPage
                                    : shape.batches * shape.keyTokens * shape.keyHeads;
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
