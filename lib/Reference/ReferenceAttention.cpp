//===- ReferenceAttention.cpp - Attention, on the host --------------------===//

#include "Interpreter.h"

#include "fp4/Numerics/Attention.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/Quantize.h"
#include "fp4/Numerics/UE8M0.h"
#include "fp4/Routes/Routes.h"

#include <bit>
#include <charconv>
#include <cmath>

namespace fp4::harness {
namespace {

/// Keys or values: codes, the scales of their blocks, and the factor of all or of each head.
struct CacheOperand {
  const Tensor &codes;
  const Tensor *scales, *factors; ///< null where there are none

  bool isPacked() const { return codes.type.element == ElementType::F4E2M1FN; }
  Expected<numerics::BlockFormat> format(const Step &step) const;
  Expected<std::vector<float>> numbers(const Step &step, numerics::FloatType type) const;
};

Expected<numerics::BlockFormat> CacheOperand::format(const Step &step) const {
  using enum numerics::BlockFormat;
  if (scales->type.element == ElementType::F8E4M3FN && isPacked())
    return NVFP4;
  if (scales->type.element == ElementType::F8E8M0FNU)
    return isPacked() ? MXFP4 : MXFP8E4M3;
  return step.wrong("must have scales of f8E4M3FN beside f4E2M1FN, or of f8E8M0FNU");
}

/// A code without a scale; kernels read NaN as the number that its bits would be.
float byteOf(uint8_t code) {
  const float largest = (code & 0x7F) == 0x7F ? 480.f : numerics::decodeE4M3(code & 0x7F);
  return code & 0x80 ? -largest : largest;
}

Expected<std::vector<float>> CacheOperand::numbers(const Step &step,
                                                   numerics::FloatType type) const {
  if (codes.type.element == step.operands[0]->type.element)
    return floats(codes);
  const std::span<const uint8_t> bytes = bytesOf(codes);
  const std::vector<int64_t> &shape = codes.type.shape;
  std::vector<float> result(size_t(shape[0] * shape[1] * shape[2] * shape[3]));
  const bool headsFirst = step.op.attributes.contains("heads_first");
  const int64_t heads = shape[headsFirst ? 1 : 2], rowsOfHead = headsFirst ? shape[2] : 1;
  auto codeOf = [&](size_t i) -> uint8_t {
    return isPacked() ? bytes[i / 2] >> 4 * (i % 2) & 15 : bytes[i];
  };
  for (size_t i = 0; !scales && i < result.size(); ++i)
    result[i] = byteOf(codeOf(i));
  if (scales) {
    FP4_ASSIGN(auto format, this->format(step));
    const uint64_t block = numerics::blockSizeOf(format);
    const float unit = std::ldexp(1.f, -numerics::convertedExponent(format, type));
    for (size_t i = 0; i < result.size(); ++i) {
      const uint16_t bits =
          numerics::convertElement(format, type, codeOf(i), bytesOf(*scales)[i / block]);
      result[i] = (type == numerics::FloatType::F16 ? numerics::decodeF16(bits)
                                                    : numerics::decodeBF16(bits)) *
                  unit;
    }
  }
  if (factors) // of codes: those of e4m3 queries are the shape's
    for (size_t i = 0; i < result.size(); ++i) {
      const size_t head = i / size_t(shape[3] * rowsOfHead) % size_t(heads);
      const std::span<const float> all = factors->as<float>();
      result[i] *= all[all.size() == 1 ? 0 : head];
    }
  return result;
}

/// Operands behind queries, keys and values; null where there are none.
struct Others {
  const Tensor *keyScales, *valueScales, *keyFactors, *valueFactors, *lengths, *pages, *sinks,
      *queryOffsets, *keyOffsets, *slopes, *queryScales;
};

Expected<Others> othersOf(Step &step) {
  std::array<const Tensor *, 11> all;
  for (size_t i = 0; i < all.size(); ++i) {
    FP4_ASSIGN(all[i], step.optional(3 + i));
  }
  const size_t results = std::clamp<size_t>(step.op.results.size(), 1, 2);
  FP4_TRY(step.expect(3 + size_t(int64_t(all.size()) - std::ranges::count(all, nullptr)), results));
  auto [ks, vs, kf, vf, lengths, pages, sinks, queryOffsets, keyOffsets, slopes, qs] = all;
  return Others{ks, vs, kf, vf, lengths, pages, sinks, queryOffsets, keyOffsets, slopes, qs};
}

/// The scales of `matrices` matrices of `rows` rows, each of which has a multiple of 128 of them.
Expected<std::vector<uint8_t>> rowsOfScales(const Step &step, const Tensor &scales,
                                            int64_t matrices, int64_t rows) {
  FP4_ASSIGN(auto all, linearScales(scales));
  const uint64_t padded = (uint64_t(rows) + 127) / 128 * 128, count = uint64_t(matrices);
  if (scales.type.shape.size() != 2 || uint64_t(scales.type.shape[0]) != padded * count)
    return step.wrong("must have scales of 128 rows, or a multiple, for each head of a sequence");
  const uint64_t perRow = all.size() / (padded * count);
  std::vector<uint8_t> result;
  for (uint64_t i = 0; i < count; ++i) {
    const auto first = all.begin() + ptrdiff_t(i * padded * perRow);
    result.insert(result.end(), first, first + ptrdiff_t(uint64_t(rows) * perRow));
  }
  return result;
}

/// Operands whose blocks tensor cores scale: numbers without scales, as kernels multiply them, and
/// scales in rows.
class ScaledOperands {
public:
  static Expected<ScaledOperands> of(const Step &step, const Others &others) {
    ScaledOperands all;
    all.arePacked_ = step.operands[0]->type.element == ElementType::F4E2M1FN;
    const std::vector<int64_t> &query = step.operands[0]->type.shape,
                               &key = step.operands[1]->type.shape,
                               &value = step.operands[2]->type.shape;
    FP4_ASSIGN(all.queryScales,
               rowsOfScales(step, *others.queryScales, query[0] * query[2], query[1]));
    FP4_ASSIGN(all.keyScales, rowsOfScales(step, *others.keyScales, key[0] * key[2], key[1]));
    if (others.valueScales) {
      FP4_ASSIGN(all.valueScales,
                 rowsOfScales(step, *others.valueScales, value[0] * value[1], value[2]));
    }
    all.query = numbersOf(*step.operands[0]);
    all.key = numbersOf(*step.operands[1]);
    all.value = numbersOf(*step.operands[2]);
    if (others.valueScales)
      all.value = transposed(all.value, step.operands[2]->type.shape);
    return all;
  }

  numerics::AttentionBlocks blocks() const {
    return {queryScales, keyScales, valueScales, arePacked_ ? 16u : 32u};
  }
  /// Queries or keys, batches x tokens x heads x elements, times their scales.
  std::vector<float> product(const std::vector<float> &codes, const std::vector<uint8_t> &scales,
                             const std::vector<int64_t> &shape) const {
    std::vector<float> result(codes);
    const uint64_t tokens = uint64_t(shape[1]), heads = uint64_t(shape[2]);
    const auto elements = uint64_t(shape[3]);
    const uint64_t size = blocks().size, perRow = (elements + size - 1) / size;
    for (uint64_t i = 0; i < result.size(); ++i) {
      const uint64_t row = i / elements, batch = row / heads / tokens;
      const uint64_t place = (batch * heads + row % heads) * tokens + row / heads % tokens;
      result[i] *= scaleOf(scales[place * perRow + i % elements / size]);
    }
    return result;
  }
  /// Values, batches x tokens x heads x elements, times the scales of their blocks of keys.
  std::vector<float> scaledValues(uint64_t tokens, uint64_t heads, uint64_t elements) const {
    const uint64_t size = blocks().size;
    std::vector<float> result(value);
    const uint64_t perRow = (tokens + size - 1) / size;
    for (uint64_t i = 0; !valueScales.empty() && i < result.size(); ++i) {
      const uint64_t row = i / elements, token = row / heads % tokens;
      const uint64_t place = (row / heads / tokens * heads + row % heads) * elements + i % elements;
      result[i] *= scaleOf(valueScales[place * perRow + token / size]);
    }
    return result;
  }

  std::vector<float> query, key, value;
  std::vector<uint8_t> queryScales, keyScales, valueScales;

private:
  static std::vector<float> numbersOf(const Tensor &codes) {
    if (codes.type.element != ElementType::F4E2M1FN)
      return floats(codes);
    std::vector<float> result(codes.type.elements());
    for (size_t i = 0; i < result.size(); ++i)
      result[i] = numerics::decodeE2M1(bytesOf(codes)[i / 2] >> 4 * (i % 2) & 15);
    return result;
  }
  /// Batches x heads x elements x tokens as batches x tokens x heads x elements.
  static std::vector<float> transposed(const std::vector<float> &rows,
                                       const std::vector<int64_t> &shape) {
    std::vector<float> result(rows.size());
    const auto heads = uint64_t(shape[1]), elements = uint64_t(shape[2]),
               tokens = uint64_t(shape[3]);
    for (uint64_t i = 0; i < rows.size(); ++i) {
      const uint64_t row = i / tokens, batch = row / elements / heads;
      const uint64_t place = (batch * tokens + i % tokens) * heads + row / elements % heads;
      result[place * elements + row % elements] = rows[i];
    }
    return result;
  }
  float scaleOf(uint8_t byte) const {
    return arePacked_ ? numerics::decodeUE4M3(byte) : numerics::decodeUE8M0(byte);
  }

  bool arePacked_ = false;
};

/// The sizes. Packed operands have no batches, and caches pages in their place.
Expected<numerics::AttentionShape> shapeOf(const Step &step, const Others &others) {
  const size_t packed = others.queryOffsets != nullptr, packedKeys = others.keyOffsets != nullptr;
  for (size_t i = 0; i < 3; ++i)
    if (step.operands[i]->type.shape.size() != 4 - (i ? packedKeys : packed))
      return step.wrong("must have operands of four dimensions, or packed ones of three");
  const std::vector<int64_t> &query = step.operands[0]->type.shape,
                             &key = step.operands[1]->type.shape;
  numerics::AttentionShape shape;
  shape.pages.headsFirst = step.op.attributes.contains("heads_first");
  shape.batches = uint64_t(packed ? others.queryOffsets->type.shape[0] - 1 : query[0]);
  shape.queryTokens = uint64_t(query[1 - packed]);
  shape.heads = uint64_t(query[2 - packed]);
  shape.queryElements = uint64_t(query.back());
  shape.keyTokens = uint64_t(key[shape.pages.headsFirst ? 2 : 1 - packedKeys]);
  shape.keyHeads = uint64_t(key[shape.pages.headsFirst ? 1 : 2 - packedKeys]);
  FP4_ASSIGN(const int64_t latent, step.integer("latent", 0));
  const std::vector<int64_t> &value = step.operands[2]->type.shape;
  const int64_t ofValues = value[value.size() - (others.queryScales && others.valueScales ? 2 : 1)];
  if (latent < 0 || latent > ofValues)
    return step.wrong("must have values that are elements of keys");
  shape.valueElements = uint64_t(latent ? latent : ofValues);
  if (others.pages) {
    shape.pages.numbers = others.pages->as<int32_t>();
    shape.pages.tokens = shape.keyTokens;
    shape.keyTokens = shape.pages.numbers.size() / shape.batches * shape.pages.tokens;
  }
  for (auto [list, operand] :
       {std::pair(&shape.sinks, others.sinks), std::pair(&shape.slopes, others.slopes)})
    if (operand)
      *list = operand->as<float>();
  for (auto [list, operand] : {std::pair(&shape.lengths, others.lengths),
                               std::pair(&shape.queryOffsets, others.queryOffsets),
                               std::pair(&shape.keyOffsets, others.keyOffsets)})
    if (operand)
      *list = operand->as<int32_t>();
  return shape;
}

/// The order of keys that the operation gives, if it does: "keys of a block,bits of the growth".
Expected<std::optional<numerics::AttentionOrder>> orderOf(const Step &step) {
  const std::string text = step.attributeOr("order", "");
  if (text.empty())
    return std::nullopt;
  uint64_t keys = 0;
  uint32_t growth = 0;
  const char *last = text.data() + text.size();
  const auto [comma, ofKeys] = std::from_chars(text.data(), last, keys);
  const bool hasTwo = ofKeys == std::errc() && comma != last && *comma == ',';
  const auto [end, ofGrowth] = std::from_chars(hasTwo ? comma + 1 : last, last, growth);
  if (!hasTwo || ofGrowth != std::errc() || end != last || keys == 0)
    return step.wrong(fmt::format("expects two numbers as 'order', but got '{}'", text));
  const bool isOfWgmma = route::hasCore(step.target, route::Core::Wgmma);
  return numerics::AttentionOrder{keys, std::bit_cast<float>(growth), isOfWgmma};
}

/// Returns true when tensor cores multiply elements of 8 bits, or 4, as they are.
bool isOfBytes(const Step &step) {
  const ElementType element = step.operands[0]->type.element;
  return element == ElementType::F8E4M3FN || element == ElementType::F4E2M1FN;
}

/// The attributes, which say what becomes of products, and which keys queries see.
Status setScores(numerics::AttentionShape &shape, const Step &step) {
  FP4_ASSIGN(auto scale, step.integer("scale", std::bit_cast<uint32_t>(1.0f)));
  FP4_ASSIGN(auto softcap, step.integer("softcap", 0));
  FP4_ASSIGN(shape.window, step.integer("window", 0));
  shape.scale = std::bit_cast<float>(uint32_t(scale));
  shape.softcap = std::bit_cast<float>(uint32_t(softcap));
  shape.causal = step.op.attributes.contains("causal");
  const bool areBytes = isOfBytes(step);
  const bool isLazy = route::hasCore(step.target, route::Core::Tcgen05) && !areBytes;
  const float lazy = isLazy ? numerics::kLazyGrowth : 0;
  FP4_ASSIGN(auto order, orderOf(step));
  shape.growth = order ? order->growth : lazy;
  return {};
}

/// The factors of e4m3 operands, for each head of keys of each sequence.
std::vector<float> factorsOf(const numerics::AttentionShape &shape, const Tensor *factors) {
  std::vector<float> result;
  if (!factors)
    return result;
  const std::span<const float> all = factors->as<float>();
  for (uint64_t i = 0; i < shape.batches * shape.keyHeads; ++i)
    result.push_back(all[all.size() == 1 ? 0 : i % all.size()]);
  return result;
}

/// Defines a result that has bounds and no bits of its own.
Status defineWithin(Step &step, size_t result, std::vector<double> values,
                    std::vector<double> bounds) {
  FP4_TRY(step.defineFloats(result, std::vector<float>(values.begin(), values.end())));
  step.results[result].sums = std::move(values);
  step.results[result].bounds = std::move(bounds);
  return {};
}

/// Gives a result the bits of a model beside its bounds.
Status defineModel(Step &step, size_t result, std::span<const float> numbers) {
  std::vector<double> sums = std::move(step.results[result].sums),
                      bounds = std::move(step.results[result].bounds);
  FP4_TRY(step.defineFloats(result, numbers));
  step.results[result].sums = std::move(sums);
  step.results[result].bounds = std::move(bounds);
  step.results[result].model = route::ptxName(
      route::hasCore(step.target, route::Core::Wgmma) ? route::Core::Wgmma : route::Core::Tcgen05);
  return {};
}

/// Keeps the first `kept` of the `all` elements of each row.
void keepFirst(std::vector<float> &rows, size_t all, size_t kept) {
  if (kept == all)
    return;
  for (size_t row = 0; row < rows.size() / all; ++row)
    std::copy_n(rows.begin() + ptrdiff_t(row * all), kept, rows.begin() + ptrdiff_t(row * kept));
  rows.resize(rows.size() / all * kept);
}

/// Repeats each sequence of keys for the sequences of queries that share it, so that there are so
/// many.
void repeatSequences(std::vector<float> &rows, size_t ofSequence, size_t sequences) {
  const size_t sharing = rows.empty() ? 1 : sequences * ofSequence / rows.size();
  if (sharing < 2)
    return;
  std::vector<float> all(sequences * ofSequence);
  for (size_t i = 0; i < sequences; ++i)
    std::copy_n(rows.begin() + ptrdiff_t(i / sharing * ofSequence), ofSequence,
                all.begin() + ptrdiff_t(i * ofSequence));
  rows = std::move(all);
}

/// The numbers of queries, keys and values, and those of them that a kernel multiplies.
struct Operands {
  std::vector<float> query, key, value;
  std::optional<ScaledOperands> scaled; ///< with scales of blocks

  Expected<numerics::AttentionModel> model(const numerics::AttentionShape &shape,
                                           const numerics::AttentionOrder &order,
                                           numerics::FloatType type, unsigned threads) const {
    return scaled ? numerics::modelAttention(shape, order, type, scaled->query, scaled->key,
                                             scaled->value, threads)
                  : numerics::modelAttention(shape, order, type, query, key, value, threads);
  }
};

Expected<Operands> operandsOf(const Step &step, const Others &others,
                              const numerics::AttentionShape &shape, numerics::FloatType type) {
  Operands all;
  if (others.queryScales) {
    FP4_ASSIGN(all.scaled, ScaledOperands::of(step, others));
    const ScaledOperands &scaled = *all.scaled;
    all.query = scaled.product(scaled.query, scaled.queryScales, step.operands[0]->type.shape);
    all.key = scaled.product(scaled.key, scaled.keyScales, step.operands[1]->type.shape);
    all.value = scaled.scaledValues(shape.keyTokens, shape.keyHeads, shape.valueElements);
    return all;
  }
  all.query = floats(*step.operands[0]);
  FP4_ASSIGN(
      all.key,
      CacheOperand(*step.operands[1], others.keyScales, others.keyFactors).numbers(step, type));
  FP4_ASSIGN(
      all.value,
      CacheOperand(*step.operands[2], others.valueScales, others.valueFactors).numbers(step, type));
  keepFirst(all.value, size_t(step.operands[2]->type.shape.back()), shape.valueElements);
  if (!others.pages && !others.keyOffsets)
    for (auto [rows, elements] :
         {std::pair(&all.key, shape.queryElements), std::pair(&all.value, shape.valueElements)})
      repeatSequences(*rows, shape.keyTokens * shape.keyHeads * elements, shape.batches);
  return all;
}

} // namespace

/// Attention in fp64, with the bound of its kernels. Unless the operation gives an order of its
/// keys, that of sums is not its own, so that results have no bits of their own.
Status runAttention(Step &step) {
  if (step.operands.size() < 3)
    return step.wrong("must have queries, keys and values");
  FP4_ASSIGN(auto others, othersOf(step));
  FP4_ASSIGN(auto shape, shapeOf(step, others));
  FP4_TRY(setScores(shape, step));
  const bool areBytes = isOfBytes(step);
  const numerics::FloatType type =
      areBytes ? numerics::FloatType::E4M3 : floatType(step.operands[0]->type.element);
  const std::vector<float> ofKeys = factorsOf(shape, areBytes ? others.keyFactors : nullptr),
                           ofValues = factorsOf(shape, areBytes ? others.valueFactors : nullptr);
  FP4_ASSIGN(auto operands, operandsOf(step, others, shape, type));
  shape.factors = {ofKeys, ofValues,
                   operands.scaled ? operands.scaled->blocks() : numerics::AttentionBlocks()};
  shape.areHalves =
      others.queryScales
          ? !others.valueScales && route::hasCore(step.target, route::Core::MmaSync)
          : others.keyScales && others.keyScales->type.element == ElementType::F8E4M3FN;
  FP4_ASSIGN(auto reference, numerics::referenceAttention(shape, type, operands.query, operands.key,
                                                          operands.value, step.threads));
  FP4_TRY(defineWithin(step, 0, std::move(reference.values), std::move(reference.bounds)));
  const bool hasLogs = step.op.results.size() > 1;
  if (hasLogs)
    FP4_TRY(defineWithin(step, 1, std::move(reference.logSums), std::move(reference.logBounds)));
  FP4_ASSIGN(auto order, orderOf(step));
  if (!order)
    return {};
  FP4_ASSIGN(auto model, operands.model(shape, *order, type, step.threads));
  FP4_TRY(defineModel(step, 0, model.values));
  return hasLogs ? defineModel(step, 1, model.logSums) : Status();
}

} // namespace fp4::harness
