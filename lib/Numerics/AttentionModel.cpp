//===- AttentionModel.cpp - The bits of attention on tcgen05 ---------------===//
//
// One row after the other, in the order of the kernel
// (lib/Conversion/Fp4ToPipe/AttentionLanes.cpp): blocks of keys from the last one that the row sees
// to the first. Blocks none of whose keys a row sees change nothing of it, so the tile of the row
// does not matter.
//
// The transcendental instructions are those of the simulator: ex2 and lg2 correctly rounded and
// without subnormal numbers, where a GPU has approximations of its own, and rcp as an H200 has it.
//
//===----------------------------------------------------------------------===//
#include "AttentionKeys.h"

#include "fp4/Numerics/DenseRow.h"
#include "fp4/Numerics/Reciprocal.h"
#include "fp4/Support/Parallel.h"

#include <cmath>
#include <map>
#include <numbers>

namespace fp4::numerics {
namespace {

/// Elements of K of an instruction of kind f16, and chains of a sum of powers in a thread.
constexpr uint64_t instructionK = 16, chains = 8;
constexpr float infinity = std::numeric_limits<float>::infinity();

/// Subnormal numbers as zero, as instructions with .ftz give them.
float flushed(double number) {
  const auto rounded = float(number);
  return std::fabs(rounded) < 0x1p-126f ? std::copysign(0.f, rounded) : rounded;
}
float exp2Of(float x) { return flushed(std::exp2(double(x))); }
float log2Of(float x) { return flushed(std::log2(double(x))); }

/// A row of operand A or a column of operand B, of `elements` numbers of `type` `stride` apart;
/// none behind `count`.
FactorRow factorsOf(FloatType type, const float *numbers, uint64_t count, uint64_t stride = 1) {
  std::array<uint16_t, instructionK> bits = {};
  for (uint64_t i = 0; numbers && i < std::min(count, instructionK); ++i) {
    const float number = numbers[i * stride];
    bits[i] = type == FloatType::BF16 ? encodeBF16(number) : encodeF16(number);
  }
  FactorRow row;
  decodeFactors(type == FloatType::BF16 ? hw::MmaType::BF16 : hw::MmaType::F16,
                reinterpret_cast<const uint8_t *>(bits.data()), /*unpacked=*/false,
                /*negate=*/false, row);
  return row;
}

/// A block of keys and values of one sequence and head: the columns of each instruction.
struct Block {
  std::vector<DenseColumns> keys, values;
};

/// Numbers that a row carries from block to block.
struct Row {
  uint64_t number = 0;
  SeenKeys seen;
  std::vector<FactorRow> query;
  float maximum = -infinity, sum = 0;
  std::vector<uint32_t> sums;
};

/// The rows that share a sequence and a head of keys.
class Group {
public:
  Group(const AttentionShape &shape, const AttentionOrder &order, FloatType type,
        std::span<const float> query, std::span<const float> key, std::span<const float> value)
      : shape_(shape), order_(order), type_(type), query_(query), key_(key), value_(value),
        options_{2 * fractionBits(type == FloatType::BF16 ? hw::MmaType::BF16 : hw::MmaType::F16),
                 hw::AccumulatorType::F32,
                 {}} {
    const double log2e = std::numbers::log2e, scale = shape.scale;
    const double factor = shape.softcap > 0 ? shape.softcap : scale;
    factor_ = float(factor * log2e);
    tangent_ = shape.softcap > 0 ? float(2 * log2e * scale / shape.softcap) : 0;
    slope_ = float(-1 / factor);
  }

  void compute(std::span<const uint64_t> numbers, AttentionModel &model) {
    uint64_t end = 0;
    for (uint64_t number : numbers) {
      const uint64_t head = number % shape_.heads;
      Row row;
      row.number = number;
      row.seen = SeenKeys(shape_, number / shape_.heads, head);
      const float *elements = query_.data() + number * shape_.queryElements;
      for (uint64_t d = 0; d < shape_.queryElements; d += instructionK)
        row.query.push_back(factorsOf(type_, elements + d, shape_.queryElements - d));
      row.sums.assign(shape_.valueElements, 0);
      end = std::max(end, row.seen.first + row.seen.count);
      rows_.push_back(std::move(row));
    }
    for (uint64_t block = (end + order_.keys - 1) / order_.keys; block-- > 0;)
      addBlock(block * order_.keys);
    for (const Row &row : rows_)
      finish(row, model);
  }

private:
  void addBlock(uint64_t first) {
    auto sees = [&](const Row &row) {
      return row.seen.first < first + order_.keys && first < row.seen.first + row.seen.count;
    };
    const auto some = std::ranges::find_if(rows_, sees);
    if (some == rows_.end())
      return;
    const Block block = load(some->seen, first);
    for (Row &row : rows_)
      if (sees(row))
        addBlock(row, block, first);
  }

  Block load(const SeenKeys &keys, uint64_t first) const {
    std::vector<const float *> rows, values;
    for (uint64_t j = first; j < first + order_.keys; ++j) {
      const bool exists = int64_t(j) < keys.keys;
      rows.push_back(exists ? keys.elementsOf(key_, j, shape_.queryElements) : nullptr);
      values.push_back(exists ? keys.elementsOf(value_, j, shape_.valueElements) : nullptr);
    }
    Block block;
    for (uint64_t d = 0; d < shape_.queryElements; d += instructionK) {
      std::vector<FactorRow> columns;
      for (const float *row : rows)
        columns.push_back(factorsOf(type_, row ? row + d : nullptr, shape_.queryElements - d));
      block.keys.emplace_back(columns, unsigned(instructionK));
    }
    for (uint64_t j = 0; j < order_.keys; j += instructionK)
      block.values.emplace_back(transposed(std::span(values).subspan(j, instructionK)),
                                unsigned(instructionK));
    return block;
  }

  /// The columns of an instruction whose elements of K are the rows `values`.
  std::vector<FactorRow> transposed(std::span<const float *const> values) const {
    std::vector<FactorRow> columns;
    for (uint64_t e = 0; e < shape_.valueElements; ++e) {
      std::array<float, instructionK> column = {};
      for (size_t i = 0; i < values.size(); ++i)
        column[i] = values[i] ? values[i][e] : 0;
      columns.push_back(factorsOf(type_, column.data(), instructionK));
    }
    return columns;
  }

  void addBlock(Row &row, const Block &block, uint64_t first) const {
    std::vector<float> numbers = scores(row, block, first);
    const float before = row.maximum;
    const float largest = std::max(before, *std::ranges::max_element(numbers));
    const float exponent = (before - originOf(largest)) * factor_;
    const bool stays = exponent >= float(-order_.growth) && order_.growth > 0;
    row.maximum = stays ? before : largest;
    const float shrink = stays ? 1 : exp2Of(exponent);
    for (uint32_t &sum : row.sums)
      sum = bitsOf(floatOf(sum) * shrink);
    const float offset = -(originOf(row.maximum) * factor_);
    std::array<float, chains> parts = {};
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = exp2Of(std::fma(numbers[i], factor_, offset));
      parts[i % chains] = i < chains ? numbers[i] : parts[i % chains] + numbers[i];
    }
    for (size_t half = chains / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i)
        parts[i] += parts[i + half];
    row.sum = row.sum * shrink + parts[0];
    const std::vector<int32_t> unscaled(row.sums.size());
    for (size_t i = 0; i < block.values.size(); ++i)
      denseRow(factorsOf(type_, numbers.data() + i * instructionK, instructionK), block.values[i],
               unscaled, row.sums, options_);
  }

  /// The scores of a block, of which the row may not see all.
  std::vector<float> scores(const Row &row, const Block &block, uint64_t first) const {
    std::vector<uint32_t> products(order_.keys);
    const std::vector<int32_t> unscaled(order_.keys);
    for (size_t i = 0; i < block.keys.size(); ++i)
      denseRow(row.query[i], block.keys[i], unscaled, products, options_);
    std::vector<float> found(order_.keys);
    for (uint64_t j = 0; j < order_.keys; ++j) {
      const uint64_t key = first + j;
      const bool isSeen = row.seen.first <= key && key < row.seen.first + row.seen.count;
      found[j] = isSeen ? biased(row, key, softcapped(floatOf(products[j]))) : -infinity;
    }
    return found;
  }

  float softcapped(float product) const {
    if (!tangent_)
      return product;
    return std::fma(approximateReciprocal(exp2Of(product * tangent_) + 1), -2.f, 1.f);
  }

  float biased(const Row &row, uint64_t key, float score) const {
    if (shape_.slopes.empty())
      return score;
    const float slope = shape_.slopes[row.number % shape_.heads] * slope_;
    return std::fma(std::fabs(float(row.seen.place - int64_t(key))), slope, score);
  }

  static float originOf(float maximum) { return maximum == -infinity ? 0 : maximum; }

  void finish(const Row &row, AttentionModel &model) const {
    float exponent = row.maximum * factor_, whole = row.sum, shrink = 1;
    if (!shape_.sinks.empty()) {
      const float sink = shape_.sinks[row.number % shape_.heads] * std::numbers::log2e_v<float>;
      const float top = std::max(exponent, sink), origin = originOf(top);
      shrink = exp2Of(exponent - origin);
      whole = whole * shrink + exp2Of(sink - origin);
      exponent = top;
    }
    model.logSums[row.number] = (exponent + log2Of(whole)) * std::numbers::ln2_v<float>;
    float inverse = whole == 0 ? 0 : 1 / whole;
    if (!shape_.sinks.empty())
      inverse *= shrink;
    for (uint64_t e = 0; e < shape_.valueElements; ++e)
      model.values[row.number * shape_.valueElements + e] = floatOf(row.sums[e]) * inverse;
  }

  const AttentionShape &shape_;
  const AttentionOrder &order_;
  FloatType type_;
  std::span<const float> query_, key_, value_;
  DenseRowOptions options_;
  float factor_, tangent_, slope_;
  std::vector<Row> rows_;
};

} // namespace

Expected<AttentionModel> modelAttention(const AttentionShape &shape, const AttentionOrder &order,
                                        FloatType type, std::span<const float> query,
                                        std::span<const float> key, std::span<const float> value,
                                        unsigned threads) {
  FP4_TRY(checkAttention(shape, query.size(), key.size(), value.size()));
  if (order.keys == 0 || order.keys % instructionK)
    return makeError(ErrorKind::Usage, "an order of attention must have blocks of a multiple of 16 "
                                       "keys");
  AttentionModel model;
  model.values.resize(shape.rows() * shape.valueElements);
  model.logSums.resize(shape.rows());
  std::map<std::pair<uint64_t, uint64_t>, std::vector<uint64_t>> groups;
  for (uint64_t row = 0; row < shape.rows(); ++row) {
    const SeenKeys seen(shape, row / shape.heads, row % shape.heads);
    groups[{seen.keys ? seen.batch : shape.batches, seen.group}].push_back(row);
  }
  std::vector<std::vector<uint64_t>> all;
  for (auto &[place, rows] : groups)
    all.push_back(std::move(rows));
  parallelFor(all.size(), threads, [&](uint64_t i) {
    Group(shape, order, type, query, key, value).compute(all[i], model);
  });
  return model;
}

} // namespace fp4::numerics
