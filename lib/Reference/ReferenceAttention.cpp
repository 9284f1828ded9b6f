//===- ReferenceAttention.cpp - Attention, on the host --------------------===//

#include "Interpreter.h"

#include "fp4/Numerics/Attention.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/E4M3.h"
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
      *queryOffsets, *keyOffsets, *slopes;
};

Expected<Others> othersOf(Step &step) {
  std::array<const Tensor *, 10> all;
  for (size_t i = 0; i < all.size(); ++i) {
    FP4_ASSIGN(all[i], step.optional(3 + i));
  }
  const size_t results = std::clamp<size_t>(step.op.results.size(), 1, 2);
  FP4_TRY(step.expect(3 + size_t(int64_t(all.size()) - std::ranges::count(all, nullptr)), results));
  auto [ks, vs, kf, vf, lengths, pages, sinks, queryOffsets, keyOffsets, slopes] = all;
  return Others{ks, vs, kf, vf, lengths, pages, sinks, queryOffsets, keyOffsets, slopes};
}

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
  const int64_t ofValues = step.operands[2]->type.shape.back();
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

/// The attributes, which say what becomes of products, and which keys queries see.
Status setScores(numerics::AttentionShape &shape, const Step &step) {
  FP4_ASSIGN(auto scale, step.integer("scale", std::bit_cast<uint32_t>(1.0f)));
  FP4_ASSIGN(auto softcap, step.integer("softcap", 0));
  FP4_ASSIGN(shape.window, step.integer("window", 0));
  shape.scale = std::bit_cast<float>(uint32_t(scale));
  shape.softcap = std::bit_cast<float>(uint32_t(softcap));
  shape.causal = step.op.attributes.contains("causal");
  const float lazy = route::hasCore(step.target, route::Core::Tcgen05) ? numerics::kLazyGrowth : 0;
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

} // namespace

/// Attention in fp64, with the bound of its kernels. Unless the operation gives an order of its
/// keys, that of sums is not its own, so that results have no bits of their own.
Status runAttention(Step &step) {
  if (step.operands.size() < 3)
    return step.wrong("must have queries, keys and values");
  FP4_ASSIGN(auto others, othersOf(step));
  FP4_ASSIGN(auto shape, shapeOf(step, others));
  FP4_TRY(setScores(shape, step));
  const numerics::FloatType type = floatType(step.operands[0]->type.element);
  const bool areBytes = type == numerics::FloatType::E4M3;
  const std::vector<float> ofKeys = factorsOf(shape, areBytes ? others.keyFactors : nullptr),
                           ofValues = factorsOf(shape, areBytes ? others.valueFactors : nullptr);
  shape.factors = {ofKeys, ofValues};
  shape.areHalves = others.keyScales && others.keyScales->type.element == ElementType::F8E4M3FN;
  FP4_ASSIGN(
      auto keys,
      CacheOperand(*step.operands[1], others.keyScales, others.keyFactors).numbers(step, type));
  FP4_ASSIGN(
      auto values,
      CacheOperand(*step.operands[2], others.valueScales, others.valueFactors).numbers(step, type));
  keepFirst(values, size_t(step.operands[2]->type.shape.back()), shape.valueElements);
  FP4_ASSIGN(auto reference, numerics::referenceAttention(shape, type, floats(*step.operands[0]),
                                                          keys, values, step.threads));
  FP4_TRY(defineWithin(step, 0, std::move(reference.values), std::move(reference.bounds)));
  const bool hasLogs = step.op.results.size() > 1;
  if (hasLogs)
    FP4_TRY(defineWithin(step, 1, std::move(reference.logSums), std::move(reference.logBounds)));
  FP4_ASSIGN(auto order, orderOf(step));
  if (!order)
    return {};
  FP4_ASSIGN(auto model, numerics::modelAttention(shape, *order, type, floats(*step.operands[0]),
                                                  keys, values, step.threads));
  FP4_TRY(defineModel(step, 0, model.values));
  return hasLogs ? defineModel(step, 1, model.logSums) : Status();
}

} // namespace fp4::harness
