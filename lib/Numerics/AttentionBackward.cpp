//===- AttentionBackward.cpp - Gradients of attention in fp64 --------------===//
#include "fp4/Numerics/AttentionBackward.h"

#include "AttentionKeys.h"
#include "AttentionPowers.h"
#include "PackedSequences.h"

#include "fp4/Support/Parallel.h"

#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace fp4::numerics {
namespace {

/// Half an ulp of fp32 relative to 1, the error of ex2.approx (PTX ISA: 2 ulp), and the power of
/// two below which it is 0.
constexpr double unit = 0x1p-24, powerError = 4 * unit, leastPower = 0x1p-126;

/// Half an ulp of an element relative to 1, and its smallest subnormal number.
struct Rounding {
  double relative, smallest;

  explicit Rounding(FloatType type)
      : relative(type == FloatType::F16 ? 0x1p-11 : 0x1p-8),
        smallest(type == FloatType::F16 ? 0x1p-24 : 0x1p-133) {}
  double errorOf(double magnitude) const { return relative * magnitude + smallest; }
};

/// A number, and its error.
struct Bounded {
  double value = 0, error = 0;
};

/// The product of two rows, and the error of its sum in fp32.
Bounded dot(const float *x, const float *y, uint64_t count) {
  double sum = 0, magnitude = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const double product = double(x[i]) * y[i];
    sum += product;
    magnitude += std::fabs(product);
  }
  return {sum, 2 * unit * double(count) * magnitude};
}

/// Sums of terms times the elements of rows, and their errors.
struct Sums {
  explicit Sums(uint64_t count) : sums(count), errors(count), magnitudes(count) {}

  /// Adds `factor`, which is rounded to an element with `rounding`, times `elements`.
  void add(const Bounded &factor, const Rounding &rounding, const float *elements) {
    const double whole = std::fabs(factor.value) + factor.error;
    const double error = factor.error + std::max(rounding.errorOf(whole), leastPower);
    for (size_t i = 0; i < sums.size(); ++i) {
      sums[i] += factor.value * elements[i];
      errors[i] += error * std::fabs(elements[i]);
      magnitudes[i] += (whole + error) * std::fabs(elements[i]);
    }
    ++terms;
  }

  /// Stores the sums times `scale` from `place` on.
  void store(BoundedNumbers &numbers, size_t place, double scale, const Rounding &rounding) const {
    for (size_t i = 0; i < sums.size(); ++i) {
      const double result = sums[i] * scale;
      const double before = scale * (errors[i] + 2 * unit * double(terms) * magnitudes[i]) +
                            2 * unit * std::fabs(result);
      numbers.values[place + i] = result;
      numbers.bounds[place + i] = terms ? before + rounding.errorOf(std::fabs(result) + before) : 0;
    }
  }

  std::vector<double> sums, errors, magnitudes;
  uint64_t terms = 0;
};

/// The queries and keys of one head of keys of one sequence.
class BackwardGroup {
public:
  BackwardGroup(const AttentionShape &shape, FloatType type, const BackwardOperands &operands,
                AttentionGradients<BoundedNumbers> &gradients)
      : shape_(shape), rounding_(type), operands_(operands), gradients_(gradients),
        ofKeys_(shape.keyTokens, Sums(shape.queryElements)),
        ofValues_(shape.keyTokens, Sums(shape.valueElements)) {}

  void compute(uint64_t batch, uint64_t group) {
    const uint64_t sharing = shape_.heads / shape_.keyHeads;
    for (uint64_t i = 0; i < shape_.queryTokens; ++i)
      for (uint64_t head = group * sharing; head < (group + 1) * sharing; ++head)
        addRow(batch * shape_.queryTokens + i, head);
    for (uint64_t j = 0; j < shape_.keyTokens; ++j) {
      const uint64_t row = (batch * shape_.keyTokens + j) * shape_.keyHeads + group;
      ofKeys_[j].store(gradients_.key, row * shape_.queryElements, shape_.scale, rounding_);
      ofValues_[j].store(gradients_.value, row * shape_.valueElements, 1, rounding_);
    }
  }

private:
  /// Adds the terms of a head of a token.
  void addRow(uint64_t token, uint64_t head) {
    const SeenKeys seen(shape_, token, head);
    const uint64_t row = token * shape_.heads + head;
    const float *query = operands_.query.data() + row * shape_.queryElements;
    const float *gradient = operands_.outputGradient.data() + row * shape_.valueElements;
    const Bounded total =
        dot(gradient, operands_.output.data() + row * shape_.valueElements, shape_.valueElements);
    Sums ofQuery(shape_.queryElements);
    for (uint64_t j = seen.first; j < seen.first + seen.count; ++j) {
      const float *key = seen.elementsOf(operands_.key, j, shape_.queryElements);
      const float *value = seen.elementsOf(operands_.value, j, shape_.valueElements);
      const auto [score, rise] = scoreOf(dot(query, key, shape_.queryElements));
      const Bounded power = powerOf(score, operands_.logSums[row]);
      const Bounded slope = slopeOf(power, dot(gradient, value, shape_.valueElements), total, rise);
      ofValues_[j].add(power, rounding_, gradient);
      ofKeys_[j].add(slope, rounding_, query);
      ofQuery.add(slope, rounding_, key);
    }
    ofQuery.store(gradients_.query, row * shape_.queryElements, shape_.scale, rounding_);
  }

  /// The score of a product, and its gradient, 1 without a softcap.
  std::pair<Bounded, Bounded> scoreOf(const Bounded &product) const {
    const Bounded score = {product.value * shape_.scale, product.error * shape_.scale};
    if (shape_.softcap == 0)
      return {score, {1, 0}};
    const double cap = shape_.softcap, tangent = std::tanh(score.value / cap);
    const double error = score.error / cap + tangentError;
    return {{cap * tangent, cap * error},
            {1 - tangent * tangent, error * (2 * std::fabs(tangent) + error) + 2 * unit}};
  }

  /// exp(score - logSum), or 0 of a query that has no sum.
  Bounded powerOf(const Bounded &score, double logSum) const {
    if (logSum == -std::numeric_limits<double>::infinity())
      return {};
    const double distance = score.value - logSum;
    const double argument =
        score.error + 4 * unit * (std::fabs(score.value) + std::fabs(logSum) + std::fabs(distance));
    const double power = std::exp(distance);
    return {power, power * (std::expm1(argument) + powerError) + leastPower};
  }

  /// power * (product - total) * rise, the gradient of a product in the scale of scores.
  static Bounded slopeOf(const Bounded &power, const Bounded &product, const Bounded &total,
                         const Bounded &rise) {
    const double difference = product.value - total.value;
    const double error = product.error + total.error + unit * std::fabs(difference);
    const double slope = power.value * difference;
    const double ofSlope = power.error * std::fabs(difference) +
                           (power.value + power.error) * error + 2 * unit * std::fabs(slope);
    return {slope * rise.value,
            ofSlope * (rise.value + rise.error) + std::fabs(slope) * (rise.error + unit)};
  }

  const AttentionShape &shape_;
  Rounding rounding_;
  const BackwardOperands &operands_;
  AttentionGradients<BoundedNumbers> &gradients_;
  std::vector<Sums> ofKeys_, ofValues_; ///< by key
};

} // namespace

Status checkAttentionBackward(const AttentionShape &shape, const BackwardOperands &operands) {
  FP4_TRY(checkAttention(shape, operands.query.size(), operands.key.size(), operands.value.size()));
  if (shape.isPacked() && shape.keyOffsets.empty())
    return makeError(ErrorKind::Usage, "the backward pass of attention must have offsets of keys "
                                       "beside those of queries, but got none");
  const uint64_t rows = shape.rows(), values = rows * shape.valueElements;
  if (operands.output.size() == values && operands.outputGradient.size() == values &&
      operands.logSums.size() == rows)
    return {};
  return makeError(ErrorKind::Usage,
                   fmt::format("the backward pass of attention must have {} elements of the output "
                               "and its gradient, and {} logarithms, but got {}, {} and {}",
                               values, rows, operands.output.size(), operands.outputGradient.size(),
                               operands.logSums.size()));
}

Expected<AttentionGradients<BoundedNumbers>>
referenceAttentionBackward(const AttentionShape &shape, FloatType type,
                           const BackwardOperands &operands, unsigned threads) {
  FP4_TRY(checkAttentionBackward(shape, operands));
  AttentionGradients<BoundedNumbers> gradients;
  for (auto [numbers, count] : {std::pair(&gradients.query, operands.query.size()),
                                std::pair(&gradients.key, operands.key.size()),
                                std::pair(&gradients.value, operands.value.size())}) {
    numbers->values.resize(count);
    numbers->bounds.resize(count);
  }
  if (shape.isPacked()) {
    FP4_TRY(computeSequences(shape, operands, gradients, [&](const PackedSequence &sequence) {
      return referenceAttentionBackward(sequence.shape, type, sequence.operands, threads);
    }));
    return gradients;
  }
  parallelFor(shape.batches * shape.keyHeads, threads, [&](uint64_t i) {
    BackwardGroup(shape, type, operands, gradients).compute(i / shape.keyHeads, i % shape.keyHeads);
  });
  return gradients;
}

} // namespace fp4::numerics
