//===- AttentionBackwardModel.cpp - The bits of gradients of attention -----===//
//
// One head of queries after the other, with matrices of all its queries and keys. The order of sums
// is that of AttentionBackward.cpp of lib/Conversion/Fp4ToPipe, whose products have 16 elements at
// a time.
//
//===----------------------------------------------------------------------===//
#include "fp4/Numerics/AttentionBackward.h"

#include "AttentionKeys.h"
#include "AttentionPowers.h"
#include "PackedSequences.h"

#include "fp4/Numerics/DenseRow.h"
#include "fp4/Support/Parallel.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

namespace fp4::numerics {
namespace {

/// Elements of K of an instruction.
constexpr uint64_t instructionK = 16;
constexpr float infinity = std::numeric_limits<float>::infinity();

/// Rows of numbers, of which a product takes rows or columns.
struct Matrix {
  Matrix(uint64_t rows, uint64_t columns) : rows(rows), columns(columns), numbers(rows * columns) {}
  float &at(uint64_t row, uint64_t column) { return numbers[row * columns + column]; }
  float at(uint64_t row, uint64_t column) const { return numbers[row * columns + column]; }
  Matrix transposed() const {
    Matrix result(columns, rows);
    for (uint64_t i = 0; i < rows; ++i)
      for (uint64_t j = 0; j < columns; ++j)
        result.at(j, i) = at(i, j);
    return result;
  }

  uint64_t rows, columns;
  std::vector<float> numbers;
};

/// Elements `first` to `first + 15` of a row, rounded to `type`; zeros behind its end.
FactorRow factorsOf(FloatType type, const Matrix &matrix, uint64_t row, uint64_t first) {
  std::array<uint16_t, instructionK> bits = {};
  for (uint64_t i = 0; i < std::min(instructionK, matrix.columns - first); ++i) {
    const float number = matrix.at(row, first + i);
    bits[i] = type == FloatType::BF16 ? encodeBF16(number) : encodeF16(number);
  }
  std::array<uint8_t, 2 * instructionK> bytes;
  std::memcpy(bytes.data(), bits.data(), bytes.size());
  FactorRow factors;
  decodeFactors(type == FloatType::BF16 ? hw::MmaType::BF16 : hw::MmaType::F16, bytes.data(),
                /*unpacked=*/false, /*negate=*/false, factors);
  return factors;
}

/// Adds the products of rows of `a` and rows of `b` to `sums`, 16 elements at a time.
void multiply(FloatType type, const Matrix &a, const Matrix &b, Matrix &sums) {
  const hw::MmaType element = type == FloatType::BF16 ? hw::MmaType::BF16 : hw::MmaType::F16;
  const DenseRowOptions options{2 * fractionBits(element), hw::AccumulatorType::F32, {}};
  const std::vector<int32_t> unscaled(b.rows);
  for (uint64_t first = 0; first < a.columns; first += instructionK) {
    std::vector<FactorRow> columns;
    for (uint64_t j = 0; j < b.rows; ++j)
      columns.push_back(factorsOf(type, b, j, first));
    const DenseColumns ofB(columns, instructionK);
    for (uint64_t i = 0; i < a.rows; ++i) {
      std::vector<uint32_t> row(b.rows);
      std::memcpy(row.data(), &sums.at(i, 0), row.size() * sizeof(float));
      denseRow(factorsOf(type, a, i, first), ofB, unscaled, row, options);
      std::memcpy(&sums.at(i, 0), row.data(), row.size() * sizeof(float));
    }
  }
}

/// The sum of products that threads of 8 elements each have, by halves of the neighbours first.
float totalOf(const float *x, const float *y, uint64_t count) {
  std::vector<float> parts;
  for (uint64_t first = 0; first < count; first += kBackwardElements) {
    float sum = 0;
    for (uint64_t i = first; i < std::min(count, first + kBackwardElements); ++i)
      sum = std::fma(x[i], y[i], sum);
    parts.push_back(sum);
  }
  parts.resize(std::bit_ceil(parts.size()));
  for (size_t step = 1; step < parts.size(); step *= 2)
    for (size_t i = 0; i < parts.size(); i += 2 * step)
      parts[i] += parts[i + step];
  return parts.front();
}

/// The queries and keys of one head of keys of one sequence.
class BackwardModel {
public:
  BackwardModel(const AttentionShape &shape, FloatType type, const BackwardOperands &operands,
                uint64_t batch, uint64_t group)
      : shape_(shape), type_(type), operands_(operands), batch_(batch), group_(group),
        key_(rowsOf(operands.key, shape.keyTokens, shape.keyHeads, group, shape.queryElements)),
        value_(rowsOf(operands.value, shape.keyTokens, shape.keyHeads, group, shape.valueElements)),
        ofKeys_(shape.keyTokens, shape.queryElements),
        ofValues_(shape.keyTokens, shape.valueElements) {}

  void compute(AttentionGradients<std::vector<float>> &gradients) {
    const uint64_t sharing = shape_.heads / shape_.keyHeads;
    for (uint64_t head = group_ * sharing; head < (group_ + 1) * sharing; ++head)
      addHead(head, gradients);
    store(gradients.key, ofKeys_, shape_.keyHeads, group_, float(shape_.scale));
    store(gradients.value, ofValues_, shape_.keyHeads, group_, 1);
  }

private:
  /// Rows of one head of the sequence, of `heads`.
  Matrix rowsOf(std::span<const float> numbers, uint64_t tokens, uint64_t heads, uint64_t head,
                uint64_t elements) const {
    Matrix rows(tokens, elements);
    for (uint64_t i = 0; i < tokens; ++i)
      std::memcpy(&rows.at(i, 0), &numbers[((batch_ * tokens + i) * heads + head) * elements],
                  elements * sizeof(float));
    return rows;
  }

  void store(std::vector<float> &numbers, const Matrix &sums, uint64_t heads, uint64_t head,
             float scale) const {
    for (uint64_t i = 0; i < sums.rows; ++i)
      for (uint64_t e = 0; e < sums.columns; ++e)
        numbers[((batch_ * sums.rows + i) * heads + head) * sums.columns + e] =
            sums.at(i, e) * scale;
  }

  void addHead(uint64_t head, AttentionGradients<std::vector<float>> &gradients) {
    const uint64_t queries = shape_.queryTokens;
    const Matrix query = rowsOf(operands_.query, queries, shape_.heads, head, shape_.queryElements);
    const Matrix gradient =
        rowsOf(operands_.outputGradient, queries, shape_.heads, head, shape_.valueElements);
    Matrix powers(queries, shape_.keyTokens), slopes(queries, shape_.keyTokens);
    multiply(type_, query, key_, powers);
    multiply(type_, gradient, value_, slopes);
    for (uint64_t i = 0; i < queries; ++i)
      weigh(i, head, powers, slopes);
    multiply(type_, powers.transposed(), gradient.transposed(), ofValues_);
    multiply(type_, slopes.transposed(), query.transposed(), ofKeys_);
    Matrix ofQueries(queries, shape_.queryElements);
    multiply(type_, slopes, key_.transposed(), ofQueries);
    store(gradients.query, ofQueries, shape_.heads, head, float(shape_.scale));
  }

  /// Makes the products of query `i` powers, and the gradients of scores.
  void weigh(uint64_t i, uint64_t head, Matrix &powers, Matrix &slopes) const {
    const uint64_t token = batch_ * shape_.queryTokens + i, row = token * shape_.heads + head;
    const SeenKeys seen(shape_, token, head);
    const float logSum = operands_.logSums[row], log2e = std::numbers::log2e_v<float>;
    const float offset = logSum == -infinity ? -infinity : -(logSum * log2e);
    const double cap = shape_.softcap;
    const auto factor = float((cap > 0 ? cap : shape_.scale) * std::numbers::log2e);
    const auto tangent = float(cap > 0 ? 2 * std::numbers::log2e * shape_.scale / cap : 0);
    const float total =
        totalOf(&operands_.outputGradient[row * shape_.valueElements],
                &operands_.output[row * shape_.valueElements], shape_.valueElements);
    for (uint64_t j = 0; j < shape_.keyTokens; ++j) {
      const bool isSeen = seen.first <= j && j < seen.first + seen.count;
      const float score = cap > 0 ? tangentOf(powers.at(i, j) * tangent) : powers.at(i, j);
      const float power = isSeen ? exp2Of(std::fma(score, factor, offset)) : 0;
      powers.at(i, j) = power;
      slopes.at(i, j) = power * (slopes.at(i, j) - total);
      if (cap > 0)
        slopes.at(i, j) *= std::fma(-score, score, 1.f);
    }
  }

  const AttentionShape &shape_;
  FloatType type_;
  const BackwardOperands &operands_;
  uint64_t batch_, group_;
  Matrix key_, value_, ofKeys_, ofValues_;
};

} // namespace

Expected<AttentionGradients<std::vector<float>>>
modelAttentionBackward(const AttentionShape &shape, FloatType type,
                       const BackwardOperands &operands, unsigned threads) {
  FP4_TRY(checkAttentionBackward(shape, operands));
  AttentionGradients<std::vector<float>> gradients{std::vector<float>(operands.query.size()),
                                                   std::vector<float>(operands.key.size()),
                                                   std::vector<float>(operands.value.size())};
  if (shape.isPacked()) {
    FP4_TRY(computeSequences(shape, operands, gradients, [&](const PackedSequence &sequence) {
      return modelAttentionBackward(sequence.shape, type, sequence.operands, threads);
    }));
    return gradients;
  }
  parallelFor(shape.batches * shape.keyHeads, threads, [&](uint64_t i) {
    BackwardModel(shape, type, operands, i / shape.keyHeads, i % shape.keyHeads).compute(gradients);
  });
  return gradients;
}

} // namespace fp4::numerics
