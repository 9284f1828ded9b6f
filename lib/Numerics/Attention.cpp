//===- Attention.cpp - Attention in fp64, and the bound of a kernel --------===//
#include "AttentionBlocks.h"
#include "AttentionKeys.h"
#include "AttentionPowers.h"

#include "fp4/Support/Parallel.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numbers>

namespace fp4::numerics {
namespace {

/// Half an ulp of fp32 relative to 1, and the error of ex2.approx (PTX ISA: 2 ulp).
constexpr double unit = 0x1p-24, powerError = 4 * unit;

/// The power of two below which ex2.approx.ftz is 0.
constexpr double leastPower = 0x1p-126;

/// The error of lg2.approx between 1/2 and 2 (PTX ISA).
constexpr double logError = 4 * unit;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Half an ulp of `type` relative to 1, and its smallest subnormal number.
struct Rounding {
  double relative, smallest;
};
Rounding roundingOf(FloatType type) {
  return type == FloatType::F16 ? Rounding{0x1p-11, 0x1p-24} : Rounding{0x1p-8, 0x1p-133};
}

/// Relative error of a cut to the 13 fraction bits of a sum of e4m3, the elements of one
/// instruction and its cuts, and the most keys of a block.
constexpr double byteCut = 0x1p-13, byteCuts = 33;
constexpr uint64_t byteK = 32, mostBlockKeys = 128;

/// The rounding of powers of e4m3, which are multiplied by 2^(8 - growth), or by a scale of their
/// block: its largest one becomes more than 224 then.
Rounding bytePowers(double growth, bool areScaled) {
  return {0x1p-4, areScaled ? 0x1p-17 : 0x1p-18 * std::exp2(growth)};
}

/// The cut of four sums of an instruction of kind::mxf4nvf4, whose scales are 448 at most.
constexpr double packedCut = 5 * 0x1p-35 * 448 * 448;

/// Half a step of e2m1, of a number or of its scale; half an ulp of a scale of e4m3 and its least
/// one, of powers that are multiplied by 2688.
constexpr double packedStep = 0.25, scaleStep = 0x1p-4, leastScale = 0x1p-10 / 2688;
constexpr uint64_t packedKeys = 16;

/// The rounding of powers of f16, which are multiplied by 2^11, and the least one of queries, whose
/// largest has the exponent 15.
constexpr Rounding halfPowers = {0x1p-11, 0x1p-36};
constexpr double leastQuery = 0x1p-40;

/// One row of queries: what it sees, and its results.
class AttentionRow {
public:
  AttentionRow(const AttentionShape &shape, FloatType type, std::span<const float> query,
               std::span<const float> key, std::span<const float> value)
      : shape_(shape), areBytes_(type == FloatType::E4M3), rounding_(roundingOf(type)),
        ofPowers_(shape.areHalves ? halfPowers
                  : areBytes_     ? bytePowers(shape.growth, shape.factors.blocks.haveValues())
                                  : rounding_),
        query_(query), key_(key), value_(value) {}

  void compute(uint64_t row, AttentionReference &reference) {
    const uint64_t head = row % shape_.heads;
    slope_ = shape_.slopes.empty() ? 0 : shape_.slopes[head];
    findKeys(row / shape_.heads, head);
    score(row);
    weigh(shape_.sinks.empty() ? -infinity : shape_.sinks[head]);
    storeLogSum(row, reference);
    for (uint64_t e = 0; e < shape_.valueElements; ++e)
      store(row * shape_.valueElements + e, e, reference);
  }

private:
  /// Finds the keys that the token sees, a weight for each.
  void findKeys(uint64_t token, uint64_t head) {
    keys_ = SeenKeys(shape_, token, head);
    weights_.assign(keys_.count, 0);
    errors_.assign(keys_.count, 0);
  }

  /// Computes the score of each key, and its error.
  void score(uint64_t row) {
    const float *query = query_.data() + row * shape_.queryElements;
    for (uint64_t j = 0; j < weights_.size(); ++j) {
      const float *key = keys_.elementsOf(key_, keys_.first + j, shape_.queryElements);
      const double scale = shape_.scale * factorOf(shape_.factors.keys);
      const auto [sum, error] = product(query, key);
      weights_[j] = sum * scale;
      errors_[j] = error * scale;
      if (shape_.softcap > 0) {
        weights_[j] = shape_.softcap * std::tanh(weights_[j] / shape_.softcap);
        errors_[j] += tangentError * shape_.softcap;
      }
      const double bias = slope_ * std::fabs(double(keys_.place - int64_t(keys_.first + j)));
      if (bias != 0) {
        weights_[j] -= bias;
        errors_[j] += 4 * unit * (std::fabs(bias) + std::fabs(weights_[j]));
      }
    }
  }

  /// The product of a query and a key, which may not exist, and the error of its sum.
  std::pair<double, double> product(const float *query, const float *key) const {
    double sum = 0, magnitude = 0, error = 0, ofQueries = 0, ofKeys = 0;
    for (uint64_t first = 0; key && first < shape_.queryElements; first += byteK) {
      const double before = std::fabs(sum) + error;
      double largest = before;
      for (uint64_t d = first; d < std::min(first + byteK, shape_.queryElements); ++d) {
        const double product = double(query[d]) * key[d];
        sum += product;
        magnitude += std::fabs(product);
        largest = std::max(largest, std::fabs(product));
        ofQueries = std::max(ofQueries, std::fabs(double(query[d])));
        ofKeys += std::fabs(double(key[d]));
      }
      error += byteCut * (byteCuts * largest + std::fabs(sum) + error);
    }
    if (!areBytes_ || shape_.factors.blocks.arePacked())
      error = 2 * unit * double(shape_.queryElements) * magnitude;
    if (shape_.factors.blocks.arePacked())
      error += packedCut * std::ceil(double(shape_.queryElements) / 64);
    return {sum, error + (shape_.areHalves && !areBytes_ ? leastQuery * ofQueries * ofKeys : 0)};
  }

  /// The factor of the keys, or values, that the row sees.
  double factorOf(std::span<const float> factors) const {
    return factors.empty() ? 1 : factors[keys_.batch * shape_.keyHeads + keys_.group];
  }

  /// Makes the scores weights, whose errors are relative, and adds them up with that of `sink`.
  void weigh(double sink) {
    const auto keys = double(weights_.size());
    double ofKeys = -infinity, ofLargest = 0; // the errors of the maximum do not cancel
    for (size_t j = 0; j < weights_.size(); ++j) {
      ofKeys = std::max(ofKeys, weights_[j]);
      ofLargest = std::max(ofLargest, errors_[j]);
    }
    largest_ = std::max(ofKeys, sink);
    // Distances may be from a number that lies so far below the largest score.
    const double lazy = shape_.growth * std::numbers::ln2;
    auto errorOf = [&](double distance) {
      return 4 * unit * (std::fabs(largest_) + std::fabs(distance) + 2 * lazy);
    };
    const bool hasSink = sink > -infinity;
    const double toAll = hasSink ? errorOf(ofKeys - largest_) + powerError : 0;
    total_ = hasSink ? std::exp(sink - largest_) : 0;
    totalError_ =
        hasSink ? total_ * (std::expm1(ofLargest + errorOf(sink - largest_)) + powerError) : 0;
    for (size_t j = 0; j < weights_.size(); ++j) {
      const double distance = weights_[j] - largest_;
      const double argument = errors_[j] + ofLargest + errorOf(distance) + toAll;
      errors_[j] = std::expm1(argument) + powerError + 2 * unit * keys;
      weights_[j] = std::exp(distance);
      total_ += weights_[j];
      totalError_ += weights_[j] * errors_[j];
    }
  }

  void storeLogSum(uint64_t row, AttentionReference &reference) const {
    const bool isNone = !(total_ > 0);
    const double ofTotal = isNone ? 0 : std::log(total_), sum = largest_ + ofTotal;
    reference.logSums[row] = isNone ? -infinity : sum;
    reference.logBounds[row] = isNone ? 0
                                      : -std::log1p(-std::min(totalError_ / total_, 0.5)) +
                                            logError * (1 + std::fabs(ofTotal)) +
                                            unit * (4 * std::fabs(largest_) + 2 * std::fabs(sum) +
                                                    4 * shiftOf(shape_.factors.blocks));
  }

  /// The error of the numerator of an element of values of NVFP4: powers are quantized in blocks of
  /// keys, each by its largest one.
  double packedError(uint64_t element) const {
    double error = 0, largest = 0, magnitude = 0;
    for (uint64_t j = 0; j < weights_.size(); ++j) {
      const float *elements = keys_.elementsOf(value_, keys_.first + j, shape_.valueElements);
      const double value = elements ? std::fabs(double(elements[element])) : 0;
      error += value * weights_[j] * (errors_[j] + packedStep + 2 * unit * double(weights_.size()));
      magnitude += value;
      largest = std::max(largest, weights_[j] * (1 + errors_[j]));
      if ((keys_.first + j) % packedKeys != packedKeys - 1 && j + 1 != weights_.size())
        continue;
      const double grown = std::exp2(shape_.growth), scale = largest / 6 * (1 + scaleStep);
      error += magnitude * (packedStep * scale + 6 * leastScale * grown) + packedCut / 2688 * grown;
      largest = magnitude = 0;
    }
    return error;
  }

  void store(uint64_t place, uint64_t element, AttentionReference &reference) const {
    double sum = 0, numerator = 0, ofBlock = 0; // magnitudes of a block, as rounded
    for (uint64_t j = 0; j < weights_.size(); ++j) {
      const float *elements = keys_.elementsOf(value_, keys_.first + j, shape_.valueElements);
      const double value = elements ? elements[element] : 0;
      sum += weights_[j] * value;
      numerator += std::fabs(value) * (weights_[j] * (errors_[j] + ofPowers_.relative) +
                                       std::max(ofPowers_.smallest, leastPower));
      const uint64_t key = keys_.first + j;
      ofBlock = (key % mostBlockKeys ? ofBlock : 0) +
                std::fabs(value) * (weights_[j] * (1 + errors_[j]) * (1 + ofPowers_.relative) +
                                    ofPowers_.smallest);
      if (areBytes_ && !shape_.areHalves && (key % byteK == byteK - 1 || j + 1 == weights_.size()))
        numerator += (byteCuts + 1) * byteCut * ofBlock;
    }
    if (shape_.factors.blocks.havePackedValues())
      numerator = packedError(element);
    const bool isEmpty = weights_.empty();
    const double factor = isEmpty ? 1 : factorOf(shape_.factors.values);
    const double result = isEmpty ? 0 : sum / total_ * factor;
    const double before =
        isEmpty ? 0
                : (numerator * std::fabs(factor) + std::fabs(result) * totalError_) / total_ +
                      5 * unit * std::fabs(result);
    reference.values[place] = result;
    reference.bounds[place] =
        isEmpty ? 0
                : before + rounding_.relative * (std::fabs(result) + before) + rounding_.smallest;
  }

  const AttentionShape &shape_;
  bool areBytes_;
  Rounding rounding_, ofPowers_; ///< of results, and of powers
  std::span<const float> query_, key_, value_;
  SeenKeys keys_;
  double slope_ = 0; ///< slope of the head of queries
  double largest_ = 0, total_ = 0, totalError_ = 0;
  std::vector<double> weights_, errors_;
};

bool areOffsets(std::span<const int32_t> offsets, uint64_t tokens) {
  return std::ranges::is_sorted(offsets) && offsets.front() == 0 &&
         uint64_t(offsets.back()) <= tokens;
}

/// Packed sequences: offsets that begin with 0, do not decrease, and do not exceed the tokens.
Status checkOffsets(const AttentionShape &shape) {
  const size_t queries = shape.queryOffsets.size(), keys = shape.keyOffsets.size();
  const bool hasLists = shape.batches + 1 == queries && (keys == queries || !shape.pages.empty());
  if (!queries && !keys)
    return {};
  if (!hasLists || (keys && !shape.lengths.empty()))
    return makeError(
        ErrorKind::Usage,
        fmt::format("attention of {} packed sequences must have {} offsets of queries, "
                    "and as many of keys or pages, but got {} and {}",
                    shape.batches, shape.batches + 1, queries, keys));
  if (areOffsets(shape.queryOffsets, shape.queryTokens) &&
      (!keys || areOffsets(shape.keyOffsets, shape.keyTokens)))
    return {};
  return makeError(ErrorKind::Usage,
                   fmt::format("offsets of packed sequences must begin with 0, not decrease, and "
                               "not exceed {} queries and {} keys",
                               shape.queryTokens, shape.keyTokens));
}

Status checkHeads(const AttentionShape &shape) {
  for (auto [name, numbers] :
       {std::pair("sink", shape.sinks.size()), std::pair("slope", shape.slopes.size())})
    if (numbers && numbers != shape.heads)
      return makeError(ErrorKind::Usage,
                       fmt::format("attention must have a {} for each of {} heads, but got {}",
                                   name, shape.heads, numbers));
  return {};
}

/// Factors of both keys and values, or of none, for each head of each sequence.
Status checkFactors(const AttentionShape &shape) {
  const size_t keys = shape.factors.keys.size(), values = shape.factors.values.size();
  if (keys == values && (keys == 0 || keys == shape.batches * shape.keyHeads))
    return {};
  return makeError(ErrorKind::Usage,
                   fmt::format("attention of {} sequences of {} heads of keys must have as many "
                               "factors of keys and of values, but got {} and {}",
                               shape.batches, shape.keyHeads, keys, values));
}

Status checkSequences(const AttentionShape &shape) {
  FP4_TRY(checkHeads(shape));
  FP4_TRY(checkFactors(shape));
  FP4_TRY(checkOffsets(shape));
  const size_t lengths = shape.lengths.size(), pages = shape.pages.numbers.size();
  const bool hasPages = pages == 0 || (shape.pages.tokens && pages * shape.pages.tokens ==
                                                                 shape.batches * shape.keyTokens);
  if (hasPages && (lengths == 0 || lengths == shape.batches))
    return {};
  return makeError(
      ErrorKind::Usage,
      fmt::format("attention of {} sequences of {} keys must have as many lengths, and "
                  "pages for all keys, but got {} and {} of {} keys",
                  shape.batches, shape.keyTokens, lengths, pages, shape.pages.tokens));
}

} // namespace

Status checkAttention(const AttentionShape &shape, size_t query, size_t key, size_t value) {
  FP4_TRY(checkSequences(shape));
  const uint64_t queries = shape.rows() * shape.queryElements;
  const uint64_t rowsOfPage = shape.pages.tokens * shape.keyHeads;
  const bool hasCache = !shape.pages.empty() && shape.queryElements && rowsOfPage;
  const uint64_t keyRows =
      hasCache ? key / shape.queryElements / rowsOfPage * rowsOfPage
               : (shape.keyOffsets.empty() ? shape.batches : 1) * shape.keyTokens * shape.keyHeads;
  if (shape.keyHeads && shape.heads % shape.keyHeads == 0 && query == queries &&
      key == keyRows * shape.queryElements && value == keyRows * shape.valueElements)
    return {};
  return makeError(ErrorKind::Usage,
                   fmt::format("attention must have {} elements of queries, {} of keys and {} of "
                               "values, but got {}, {} and {}",
                               queries, keyRows * shape.queryElements,
                               keyRows * shape.valueElements, query, key, value));
}

Expected<AttentionReference> referenceAttention(const AttentionShape &shape, FloatType type,
                                                std::span<const float> query,
                                                std::span<const float> key,
                                                std::span<const float> value, unsigned threads) {
  FP4_TRY(checkAttention(shape, query.size(), key.size(), value.size()));
  AttentionReference reference;
  const uint64_t rows = shape.rows(), results = rows * shape.valueElements;
  reference.values.resize(results);
  reference.bounds.resize(results);
  reference.logSums.resize(rows);
  reference.logBounds.resize(rows);
  parallelFor(rows, threads, [&](uint64_t row) {
    AttentionRow(shape, type, query, key, value).compute(row, reference);
  });
  return reference;
}

} // namespace fp4::numerics
