//===- AttentionModel.cpp - The bits of attention of a given order ---------===//
//
// One row after the other, in the order of the kernels: AttentionLanes.cpp of
// lib/Conversion/Fp4ToPipe with tcgen05, AttentionBytes.cpp of e4m3 and AttentionLatent.cpp of one
// slice with wgmma. Blocks of keys from
// the last one that the row sees to the first. Blocks none of whose keys a row sees change nothing
// of it, so the tile of the row does not matter.
//
// The transcendental instructions are those of the simulator: lg2 correctly rounded and without
// subnormal numbers, where a GPU has an approximation of its own, and ex2 and rcp as an H200 has
// them.
//
//===----------------------------------------------------------------------===//
#include "AttentionBlocks.h"
#include "AttentionKeys.h"
#include "AttentionPowers.h"

#include "fp4/Numerics/DenseRow.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Support/Parallel.h"

#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <numbers>

namespace fp4::numerics {
namespace {

/// Chains of a sum of powers in the threads of a row.
constexpr uint64_t chains = 8;
constexpr float infinity = std::numeric_limits<float>::infinity();

float log2Of(float x) { return flushed(std::log2(double(x))); }

hw::MmaType mmaTypeOf(FloatType type) {
  return type == FloatType::BF16   ? hw::MmaType::BF16
         : type == FloatType::E4M3 ? hw::MmaType::E4M3
                                   : hw::MmaType::F16;
}

/// A row of operand A or a column of operand B, of numbers of `type`; none behind `count`.
FactorRow factorsOf(FloatType type, const float *numbers, uint64_t count) {
  std::array<uint8_t, 32> bytes = {};
  const uint64_t width = sizeOf(type);
  for (uint64_t i = 0; numbers && i < std::min(count, bytes.size() / width); ++i) {
    const uint16_t bits = type == FloatType::BF16   ? encodeBF16(numbers[i])
                          : type == FloatType::E4M3 ? encodeE4M3(numbers[i])
                                                    : encodeF16(numbers[i]);
    std::memcpy(&bytes[i * width], &bits, width);
  }
  FactorRow row;
  decodeFactors(mmaTypeOf(type), bytes.data(), /*unpacked=*/false, /*negate=*/false, row);
  return row;
}

/// A block of keys and values of one sequence and head: the columns of each instruction.
struct Block {
  std::vector<DenseColumns> keys, values;
  ScaledOperand scaledKeys, scaledValues; ///< empty where the operand has no scales
};

/// Numbers that a row carries from block to block.
struct Row {
  uint64_t number = 0;
  SeenKeys seen;
  std::vector<FactorRow> query;
  ScaledOperand scaledQuery;
  float maximum = -infinity;
  std::array<float, chains> powers = {}; ///< sums of powers: one, or with wgmma one of each chain
  std::vector<uint32_t> sums;
};

/// The rows that share a sequence and a head of keys.
class Group {
public:
  Group(const AttentionShape &shape, const AttentionOrder &order, FloatType type,
        std::span<const float> query, std::span<const float> key, std::span<const float> value)
      : shape_(shape), order_(order), type_(type), query_(query), key_(key), value_(value),
        options_{2 * fractionBits(mmaTypeOf(type)), hw::AccumulatorType::F32,
                 type == FloatType::E4M3 && order.isOfWgmma ? hopperFP8 : DensePrecision{}},
        shift_(type == FloatType::E4M3 ? float(shiftOf(shape.factors.blocks) - order.growth) : 0),
        arePromoted_(type == FloatType::E4M3 && order.isOfWgmma), areShared_(order.isOfWgmma),
        instructionK(32 / sizeOf(type)) {
    const double log2e = std::numbers::log2e, scale = shape.scale;
    const double factor = shape.softcap > 0 ? shape.softcap : scale;
    factor_ = float(factor * log2e);
    tangent_ = shape.softcap > 0 ? float(2 * log2e * scale / shape.softcap) : 0;
    slope_ = float(-1 / factor);
  }

  void compute(std::span<const uint64_t> numbers, AttentionModel &model) {
    uint64_t end = 0;
    takeFactors(SeenKeys(shape_, numbers.front() / shape_.heads, numbers.front() % shape_.heads));
    for (uint64_t number : numbers) {
      const uint64_t head = number % shape_.heads;
      Row row;
      row.number = number;
      row.seen = SeenKeys(shape_, number / shape_.heads, head);
      const float *elements = query_.data() + number * shape_.queryElements;
      for (uint64_t d = 0; d < shape_.queryElements; d += instructionK)
        row.query.push_back(factorsOf(type_, elements + d, shape_.queryElements - d));
      if (blocks().size)
        row.scaledQuery.addRow(blocks(), {elements, shape_.queryElements}, blocks().queries,
                               placeOfQuery(row));
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
  const AttentionBlocks &blocks() const { return shape_.factors.blocks; }

  /// The row of the scales of a query, and of those of key `j`: heads are in front of tokens.
  uint64_t placeOfQuery(const Row &row) const {
    const uint64_t token = row.number / shape_.heads, head = row.number % shape_.heads;
    const uint64_t batch = token / shape_.queryTokens;
    return (batch * shape_.heads + head) * shape_.queryTokens + token % shape_.queryTokens;
  }
  uint64_t placeOfKey(const SeenKeys &keys, uint64_t j) const {
    return (keys.batch * shape_.keyHeads + keys.group) * shape_.keyTokens + j;
  }

  /// Takes the factors of the head of keys of the rows.
  void takeFactors(const SeenKeys &seen) {
    if (shape_.factors.keys.empty())
      return;
    const uint64_t place = std::min(seen.batch, shape_.batches - 1) * shape_.keyHeads + seen.group;
    const float ofKeys = shape_.factors.keys[place];
    valueFactor_ = shape_.factors.values[place];
    if (shape_.softcap > 0) {
      tangent_ *= ofKeys;
      return;
    }
    factor_ *= ofKeys;
    keyFactor_ = ofKeys;
  }

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
    loadScaled(block, keys, rows, values, first);
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

  /// Loads what has scales: keys, and a row of values for each element of a head.
  void loadScaled(Block &block, const SeenKeys &keys, std::span<const float *const> rows,
                  std::span<const float *const> values, uint64_t first) const {
    for (size_t i = 0; blocks().size && i < rows.size(); ++i) {
      const bool exists = rows[i] != nullptr;
      block.scaledKeys.addRow(blocks(), {rows[i], exists ? shape_.queryElements : 0}, blocks().keys,
                              exists ? placeOfKey(keys, first + i) : 0, shape_.queryElements);
    }
    const uint64_t head = keys.batch * shape_.keyHeads + keys.group;
    for (uint64_t e = 0; blocks().haveValues() && e < shape_.valueElements; ++e) {
      std::vector<float> row(values.size());
      for (size_t i = 0; i < row.size(); ++i)
        row[i] = values[i] ? values[i][e] : 0;
      block.scaledValues.addValues(blocks(), row, head * shape_.valueElements + e, first,
                                   shape_.keyTokens);
    }
  }

  /// The columns of an instruction whose elements of K are the rows `values`.
  std::vector<FactorRow> transposed(std::span<const float *const> values) const {
    std::vector<FactorRow> columns;
    for (uint64_t e = 0; e < shape_.valueElements; ++e) {
      std::array<float, 32> column = {};
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
    const float scaled = originOf(row.maximum) * factor_;
    const float offset = shift_ - scaled;
    std::array<float, chains> parts = {};
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = exp2Of(std::fma(numbers[i], factor_, offset));
      parts[i % chains] = i < chains ? numbers[i] : parts[i % chains] + numbers[i];
    }
    if (!areShared_)
      parts = {sumOfChains(parts)};
    for (size_t i = 0; i < chains; ++i)
      row.powers[i] = row.powers[i] * shrink + parts[i];
    addValues(row, block, numbers, shrink);
  }

  /// Adds powers times values: to sums in tensor memory, which are scaled before, or to zero, which
  /// threads add to the scaled sums.
  void addValues(Row &row, const Block &block, const std::vector<float> &powers,
                 float shrink) const {
    std::vector<uint32_t> products(row.sums.size());
    for (size_t e = 0; !arePromoted_ && e < products.size(); ++e)
      products[e] = bitsOf(floatOf(row.sums[e]) * shrink);
    const std::vector<int32_t> unscaled(row.sums.size());
    if (blocks().haveValues())
      ScaledOperand::ofPowers(blocks(), powers).multiply(block.scaledValues, products, options_);
    for (size_t i = 0; !blocks().haveValues() && i < block.values.size(); ++i)
      denseRow(factorsOf(type_, powers.data() + i * instructionK, instructionK), block.values[i],
               unscaled, products, options_);
    for (size_t e = 0; arePromoted_ && e < products.size(); ++e)
      products[e] = bitsOf(std::fma(floatOf(row.sums[e]), shrink, floatOf(products[e])));
    row.sums = std::move(products);
  }

  /// The sum of all chains: halves of one thread, or first the neighbours that a thread has.
  float sumOfChains(std::array<float, chains> parts) const {
    if (areShared_) {
      for (size_t i = 0; i < chains / 2; ++i)
        parts[i] = parts[2 * i] + parts[2 * i + 1];
      return (parts[0] + parts[2]) + (parts[1] + parts[3]);
    }
    for (size_t half = chains / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i)
        parts[i] += parts[i + half];
    return parts[0];
  }

  /// The scores of a block, of which the row may not see all.
  std::vector<float> scores(const Row &row, const Block &block, uint64_t first) const {
    std::vector<uint32_t> products(order_.keys);
    const std::vector<int32_t> unscaled(order_.keys);
    if (blocks().size)
      row.scaledQuery.multiply(block.scaledKeys, products, options_);
    for (size_t i = 0; !blocks().size && i < block.keys.size(); ++i)
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
    return tangentOf(product * tangent_);
  }

  float biased(const Row &row, uint64_t key, float score) const {
    if (shape_.slopes.empty())
      return score;
    const float slope = shape_.slopes[row.number % shape_.heads] * slope_ / keyFactor_;
    return std::fma(std::fabs(float(row.seen.place - int64_t(key))), slope, score);
  }

  static float originOf(float maximum) { return maximum == -infinity ? 0 : maximum; }

  void finish(const Row &row, AttentionModel &model) const {
    float exponent = row.maximum * factor_, shrink = 1;
    float whole = areShared_ ? sumOfChains(row.powers) : row.powers[0];
    exponent -= shift_;
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
    if (!shape_.factors.values.empty())
      inverse *= valueFactor_;
    for (uint64_t e = 0; e < shape_.valueElements; ++e)
      model.values[row.number * shape_.valueElements + e] = floatOf(row.sums[e]) * inverse;
  }

  const AttentionShape &shape_;
  const AttentionOrder &order_;
  FloatType type_;
  std::span<const float> query_, key_, value_;
  DenseRowOptions options_;
  float shift_;          ///< exponent of the power of two that multiplies powers of e4m3
  bool arePromoted_;     ///< e4m3 with wgmma: threads add the products of a block
  bool areShared_;       ///< four threads have the sums of a row
  uint64_t instructionK; ///< elements of K of an instruction
  float factor_, tangent_, slope_;
  float keyFactor_ = 1, valueFactor_ = 1; ///< of products without a softcap, and of values
  std::vector<Row> rows_;
};

} // namespace

Expected<AttentionModel> modelAttention(const AttentionShape &shape, const AttentionOrder &order,
                                        FloatType type, std::span<const float> query,
                                        std::span<const float> key, std::span<const float> value,
                                        unsigned threads) {
  FP4_TRY(checkAttention(shape, query.size(), key.size(), value.size()));
  if (const uint64_t unit = 32 / sizeOf(type); order.keys == 0 || order.keys % unit)
    return makeError(
        ErrorKind::Usage,
        fmt::format("an order of attention must have blocks of a multiple of {} keys", unit));
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
