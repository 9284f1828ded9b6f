//===- ReferenceQuantize.cpp - The quantization family, on the host -------===//

#include "Interpreter.h"

#include "fp4/Numerics/Hadamard.h"
#include "fp4/Numerics/Quantize.h"
#include "fp4/Numerics/QuantizeMatrix.h"
#include "fp4/Support/GroupRows.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace fp4::harness {
namespace {

using numerics::HadamardOptions;

Expected<numerics::NanPolicy> nanPolicy(const Step &step) {
  const std::string text = step.attributeOr("nan", "drop");
  if (text == "drop")
    return numerics::NanPolicy::Drop;
  if (text == "propagate")
    return numerics::NanPolicy::Propagate;
  return step.wrong(fmt::format("has the unknown NaN policy '{}'", text));
}

//===----------------------------------------------------------------------===//
// Hadamard
//===----------------------------------------------------------------------===//

Expected<numerics::HadamardArithmetic> hadamardArithmetic(const Step &step, std::string_view text) {
  if (text == "butterfly")
    return numerics::HadamardArithmetic::Butterfly;
  if (text == "tensor_core")
    return numerics::HadamardArithmetic::ExactSum;
  return step.wrong(fmt::format("has the unknown Hadamard arithmetic '{}'", text));
}

/// The options of fp4.hadamard and fp4.hadamard_amax, which have an attribute for each.
Expected<HadamardOptions> hadamardOptions(const Step &step) {
  HadamardOptions options;
  FP4_ASSIGN(auto size, step.integer("size", options.blockSize));
  FP4_ASSIGN(auto mask, step.integer("sign_mask", options.signMask));
  FP4_ASSIGN(auto arithmetic,
             hadamardArithmetic(step, step.attributeOr("arithmetic", "butterfly")));
  options.blockSize = unsigned(size);
  options.signMask = uint16_t(mask);
  options.arithmetic = arithmetic;
  return options;
}

/// The options of a side of fp4.quantize: one attribute, "16,55272,butterfly", with ",none" behind
/// it if values stay in fp32. Nothing if it is absent.
Expected<std::optional<HadamardOptions>> hadamardOfSide(const Step &step, const char *name) {
  const std::string text = step.attributeOr(name, "");
  if (text.empty())
    return std::optional<HadamardOptions>();
  const size_t first = text.find(','), second = text.find(',', first + 1);
  if (second == std::string::npos)
    return step.wrong(
        fmt::format("expects size, sign mask and arithmetic as '{}', but got '{}'", name, text));
  HadamardOptions options;
  std::from_chars(text.data(), text.data() + first, options.blockSize);
  std::from_chars(text.data() + first + 1, text.data() + second, options.signMask);
  std::string_view rest = std::string_view(text).substr(second + 1);
  if (constexpr std::string_view unrounded = ",none"; rest.ends_with(unrounded)) {
    options.roundToBF16 = false;
    rest.remove_suffix(unrounded.size());
  }
  FP4_ASSIGN(auto arithmetic, hadamardArithmetic(step, rest));
  options.arithmetic = arithmetic;
  return std::optional(options);
}

} // namespace

Expected<std::vector<RowRange>> groupsOf(const Step &step, uint64_t rows) {
  const std::string text = step.attributeOr("groups", "");
  if (text.empty())
    return std::vector<RowRange>{{0, rows}};
  std::vector<RowRange> groups;
  uint64_t begin = 0;
  for (const char *at = text.data(), *last = at + text.size(); at <= last;) {
    uint64_t count = 0;
    const auto [end, error] = std::from_chars(at, last, count);
    if (error != std::errc() || (end != last && *end != ',') || count > rows - begin)
      return step.wrong(fmt::format("expects groups of {} rows, but got '{}'", rows, text));
    groups.push_back({begin, count});
    begin += count;
    at = end + 1;
  }
  if (begin != rows)
    return step.wrong(fmt::format("expects groups of {} rows, but got '{}'", rows, text));
  return groups;
}

Expected<std::vector<RowRange>> groupsBetween(const Tensor &offsets, uint64_t rows) {
  const std::span<const int64_t> values = offsets.as<int64_t>();
  const size_t step = offsets.type.shape.size(); // 2 if each group has its own begin and end
  if (auto wrong = findWrongGroup(values, step, int64_t(rows)))
    return tl::unexpected<Error>(groupError("operand 'offsets'", *wrong));
  std::vector<RowRange> groups;
  uint64_t end = 0;
  for (size_t i = 0; i + 1 < values.size(); i += step) {
    // A group without rows may be anywhere.
    const uint64_t begin = std::max(end, uint64_t(values[i]));
    end = std::max(end, uint64_t(values[i + 1]));
    groups.push_back({begin, end - begin});
  }
  return groups;
}

namespace {

std::vector<float> rowAmaxes(std::span<const float> values, size_t columns,
                             numerics::NanPolicy policy) {
  std::vector<float> amaxes;
  for (size_t at = 0; at + columns <= values.size(); at += columns)
    amaxes.push_back(numerics::amax(values.subspan(at, columns), policy));
  return amaxes;
}

} // namespace

Status runAmax(Step &step) {
  FP4_TRY(step.expect(1, 1));
  FP4_ASSIGN(auto policy, nanPolicy(step));
  const std::vector<float> values = floats(*step.operands[0]);
  FP4_ASSIGN(auto shape, step.matrix(0));
  if (step.op.attributes.contains("per_row"))
    return step.defineFloats(0, rowAmaxes(values, shape.second, policy));
  if (step.op.attributes.contains("per_column"))
    return step.defineFloats(0, rowAmaxes(numerics::transposed(values, shape.first, shape.second),
                                          shape.first, policy));
  const bool hasOffsets = step.operands.size() > 1;
  if (!hasOffsets && !step.op.attributes.contains("groups")) {
    const float amax = numerics::amax(values, policy);
    return step.defineFloats(0, {&amax, 1});
  }
  FP4_ASSIGN(auto groups, hasOffsets ? groupsBetween(*step.operands[1], shape.first)
                                     : groupsOf(step, shape.first));
  std::vector<float> amaxes;
  for (auto [begin, rows] : groups)
    amaxes.push_back(numerics::amax(
        std::span(values).subspan(begin * shape.second, rows * shape.second), policy));
  return step.defineFloats(0, amaxes);
}

Status runHadamard(Step &step) {
  FP4_TRY(step.expect(1, 1));
  FP4_ASSIGN(auto shape, step.matrix(0));
  FP4_ASSIGN(auto options, hadamardOptions(step));
  FP4_ASSIGN(auto dimension, step.integer("dimension", 1));
  const auto [rows, columns] = shape;
  std::vector<float> values = floats(*step.operands[0]);
  if (dimension == 1) {
    FP4_TRY(numerics::hadamardRows(values, rows, columns, options));
    return step.defineFloats(0, values);
  }
  values = numerics::transposed(values, rows, columns);
  FP4_TRY(numerics::hadamardRows(values, columns, rows, options));
  return step.defineFloats(0, numerics::transposed(values, columns, rows));
}

Status runHadamardAmax(Step &step) {
  FP4_TRY(step.expect(1, 2));
  FP4_ASSIGN(auto shape, step.matrix(0));
  FP4_ASSIGN(auto options, hadamardOptions(step));
  FP4_ASSIGN(auto policy, nanPolicy(step));
  FP4_ASSIGN(auto dimension, step.integer("dimension", 1));
  FP4_ASSIGN(auto groups, groupsOf(step, shape.first));
  const std::vector<float> values = floats(*step.operands[0]);
  std::vector<float> before, after;
  for (auto [begin, rows] : groups) {
    FP4_ASSIGN(auto amax, numerics::hadamardAmax(
                              std::span(values).subspan(begin * shape.second, rows * shape.second),
                              rows, shape.second, dimension == 0, options, policy));
    before.push_back(amax.before);
    after.push_back(amax.after);
  }
  FP4_TRY(step.defineFloats(0, before));
  return step.defineFloats(1, after);
}

//===----------------------------------------------------------------------===//
// Quantize
//===----------------------------------------------------------------------===//

namespace {

Expected<numerics::Recipe> recipeOf(const Step &step, const char *otherwise = nullptr) {
  if (otherwise)
    return numerics::parseRecipe(step.attributeOr("recipe", otherwise));
  FP4_ASSIGN(auto text, step.attribute("recipe"));
  return numerics::parseRecipe(text);
}

/// The operands of fp4.quantize, in the order of its definition.
enum QuantizeOperand { kInput, kAmax, kColumnwiseAmax, kRng, kOffsets };

/// The numbers of an amax operand: one, one per group, or none.
Expected<std::vector<float>> amaxOperand(const Step &step, QuantizeOperand which) {
  FP4_ASSIGN(auto tensor, step.optional(which));
  return tensor ? floats(*tensor) : std::vector<float>();
}

Expected<std::optional<numerics::StochasticRounding>> rounding(const Step &step) {
  const std::string text = step.attributeOr("rounding", "nearest_even");
  if (text == "nearest_even")
    return std::optional<numerics::StochasticRounding>();
  FP4_ASSIGN(auto rng, step.optional(kRng));
  if (text != "stochastic" || !rng || rng->type.element != ElementType::I64 ||
      rng->type.elements() != 2)
    return step.wrong(fmt::format("rounds '{}', which the reference does not know", text));
  numerics::StochasticRounding stochastic;
  stochastic.seed = rng->as<uint64_t>()[0];
  stochastic.offset = rng->as<uint64_t>()[1];
  const std::string mapping = step.attributeOr("philox", "element");
  if (mapping == "transformer_engine")
    stochastic.mapping = numerics::PhiloxMapping::TransformerEngineBlockwise;
  else if (mapping != "element")
    return step.wrong(fmt::format("has the unknown Philox mapping '{}'", mapping));
  return std::optional(stochastic);
}

Expected<numerics::QuantizeOptions> quantizeOptions(const Step &step) {
  const std::string outputs = step.attributeOr("outputs", "rowwise");
  FP4_ASSIGN(auto amax, amaxOperand(step, kAmax));
  FP4_ASSIGN(auto columnwiseAmax, amaxOperand(step, kColumnwiseAmax));
  FP4_ASSIGN(auto stochastic, rounding(step));
  FP4_ASSIGN(auto hadamard, hadamardOfSide(step, "hadamard"));
  FP4_ASSIGN(auto columnwiseHadamard, hadamardOfSide(step, "columnwise_hadamard"));
  const bool isGrouped = step.op.attributes.contains("groups") || !offsetsOf(step.op).empty();
  const auto side = [&](const auto &transform, const std::vector<float> &amaxes) {
    numerics::SideOptions options{.hadamard = transform, .stochastic = stochastic};
    if (isGrouped)
      options.groupAmax = amaxes;
    else if (step.op.attributes.contains("per_row"))
      options.rowAmax = amaxes;
    else if (!amaxes.empty())
      options.amax = amaxes[0];
    return options;
  };
  numerics::QuantizeOptions options;
  options.rowwise.reset();
  const std::string block = step.attributeOr("block", "");
  options.squareBlocks = block == "16,16" || block == "128,128";
  options.amaxPerRow = step.op.attributes.contains("per_row");
  if (outputs == "rowwise" || outputs == "both")
    options.rowwise = side(hadamard, amax);
  if (outputs == "columnwise" || outputs == "both")
    options.columnwise = side(columnwiseHadamard, columnwiseAmax.empty() ? amax : columnwiseAmax);
  if (!options.rowwise && !options.columnwise)
    return step.wrong(fmt::format("has the unknown outputs '{}'", outputs));
  return options;
}

/// The columnwise matrices of all groups, row-major bytes, as one.
std::vector<uint8_t> sideBySide(const std::vector<numerics::QuantizedPair> &groups,
                                std::vector<uint8_t> numerics::QuantizedSide::*bytes) {
  std::vector<uint8_t> whole;
  const uint64_t rows = groups.front().columnwise->rows;
  for (uint64_t row = 0; row < rows; ++row)
    for (const numerics::QuantizedPair &pair : groups) {
      const std::vector<uint8_t> &part = (*pair.columnwise).*bytes;
      const uint64_t pitch = part.size() / rows;
      whole.insert(whole.end(), part.begin() + row * pitch, part.begin() + (row + 1) * pitch);
    }
  return whole;
}

/// Defines one output of all groups: row-major bytes stacked or, columnwise, side by side; tiled
/// scales one after the other.
Status defineGroups(Step &step, size_t first, const std::vector<numerics::QuantizedPair> &groups,
                    bool columnwise) {
  std::vector<uint8_t> data, scales;
  const bool tiled = step.types[first + 1].layout == Layout::Tiled128x4;
  for (const numerics::QuantizedPair &pair : groups) {
    const numerics::QuantizedSide &side = columnwise ? *pair.columnwise : *pair.rowwise;
    FP4_ASSIGN(auto laidOut, numerics::layOutScales(side.scales, side.rows, side.blocks,
                                                    tiled ? numerics::ScaleLayout::Tiled128x4
                                                          : numerics::ScaleLayout::Linear));
    data.insert(data.end(), side.data.begin(), side.data.end());
    scales.insert(scales.end(), laidOut.begin(), laidOut.end());
  }
  if (columnwise)
    data = sideBySide(groups, &numerics::QuantizedSide::data);
  if (columnwise && !tiled)
    scales = sideBySide(groups, &numerics::QuantizedSide::scales);
  FP4_TRY(step.define(first, data));
  return step.define(first + 1, scales);
}

Status runGroups(Step &step, const numerics::Recipe &recipe,
                 const numerics::QuantizeOptions &options) {
  FP4_ASSIGN(auto shape, step.matrix(0));
  FP4_ASSIGN(auto ranges, groupsOf(step, shape.first));
  std::vector<uint64_t> rows;
  for (const RowRange &range : ranges)
    rows.push_back(range.rows);
  FP4_ASSIGN(auto groups, numerics::quantizeGroups(recipe, floats(*step.operands[0]), rows,
                                                   shape.second, options));
  if (options.rowwise)
    FP4_TRY(defineGroups(step, 0, groups, false));
  if (options.columnwise)
    FP4_TRY(defineGroups(step, options.rowwise ? 2 : 0, groups, true));
  return {};
}

/// Counts of rows that follow each other: those of each group, and those of no group before each
/// and behind the last one.
std::vector<uint64_t> rowsWithGaps(const std::vector<RowRange> &groups, uint64_t rows) {
  std::vector<uint64_t> counts;
  uint64_t end = 0;
  for (const RowRange &group : groups) {
    counts.push_back(group.begin - end);
    counts.push_back(group.rows);
    end = group.begin + group.rows;
  }
  counts.push_back(rows - end);
  return counts;
}

/// Quantizes groups that only the device knows. Rows of no group are quantized with the others,
/// because random numbers belong to the place of an element in the whole, and then left out.
Status runOffsets(Step &step, const numerics::Recipe &recipe, numerics::QuantizeOptions options,
                  const Tensor &offsets) {
  FP4_ASSIGN(auto shape, step.matrix(0));
  FP4_ASSIGN(auto groups, groupsBetween(offsets, shape.first));
  std::vector<float> amaxes;
  for (float amax : options.rowwise->groupAmax)
    amaxes.insert(amaxes.end(), {1.f, amax});
  if (!amaxes.empty())
    amaxes.push_back(1.f);
  options.rowwise->groupAmax = std::move(amaxes);
  const std::vector<uint64_t> counts = rowsWithGaps(groups, shape.first);
  FP4_ASSIGN(auto parts, numerics::quantizeGroups(recipe, floats(*step.operands[0]), counts,
                                                  shape.second, options));
  const bool isTiled = step.types[1].layout == Layout::Tiled128x4;
  std::vector<uint8_t> data(step.types[0].bufferBytes()), scales(step.types[1].bufferBytes());
  uint64_t used = 0; // bytes of the list of tiles
  for (size_t group = 0; group < groups.size(); ++group) {
    const numerics::QuantizedSide &side = *parts[2 * group + 1].rowwise;
    FP4_ASSIGN(auto laidOut, numerics::layOutScales(side.scales, side.rows, side.blocks,
                                                    isTiled ? numerics::ScaleLayout::Tiled128x4
                                                            : numerics::ScaleLayout::Linear));
    const uint64_t begin = groups[group].begin;
    std::ranges::copy(side.data, data.begin() + int64_t(begin * side.rowBytes()));
    std::ranges::copy(laidOut, scales.begin() + int64_t(isTiled ? used : begin * side.blocks));
    used += laidOut.size();
  }
  FP4_TRY(step.define(0, data));
  FP4_TRY(step.define(1, scales));
  if (!step.op.attributes.contains("unspecified_rows"))
    return {};
  step.results[0].unspecified = bytesOfNoGroup(groups, shape.first, data.size());
  if (!isTiled)
    step.results[1].unspecified = bytesOfNoGroup(groups, shape.first, scales.size());
  return {};
}

/// Defines data and scales of one output as results `first` and `first` + 1.
Status defineSide(Step &step, size_t first, const numerics::QuantizedSide &side) {
  FP4_TRY(step.define(first, side.data));
  if (step.types[first + 1].layout == Layout::Linear)
    return step.define(first + 1, side.scales);
  FP4_ASSIGN(auto tiled, numerics::swizzleScales(side.scales, side.rows, side.blocks));
  return step.define(first + 1, tiled);
}

} // namespace

Status runQuantize(Step &step) {
  const bool both = step.attributeOr("outputs", "rowwise") == "both";
  FP4_TRY(step.expect(1, both ? 4 : 2));
  FP4_ASSIGN(auto recipe, recipeOf(step));
  FP4_ASSIGN(auto shape, step.matrix(0));
  FP4_ASSIGN(auto options, quantizeOptions(step));
  options.wholeRows = numerics::hasF32Scales(recipe.format) &&
                      step.attributeOr("block", "") == fmt::format("1,{}", shape.second);
  if (step.op.attributes.contains("groups"))
    return runGroups(step, recipe, options);
  if (!offsetsOf(step.op).empty()) {
    FP4_ASSIGN(auto offsets, step.optional(kOffsets));
    return runOffsets(step, recipe, std::move(options), *offsets);
  }
  FP4_ASSIGN(auto pair, numerics::quantizeMatrix(recipe, floats(*step.operands[0]), shape.first,
                                                 shape.second, options));
  size_t next = 0;
  for (const auto *side : {&pair.rowwise, &pair.columnwise})
    if (*side) {
      FP4_TRY(defineSide(step, next, **side));
      next += 2;
    }
  return {};
}

Status runDequantize(Step &step) {
  FP4_TRY(step.expect(2, 1));
  FP4_ASSIGN(auto name, step.attribute("format"));
  const auto format = numerics::parseBlockFormat(name);
  if (!format)
    return step.wrong(fmt::format("has the unknown format '{}'", name));
  const std::string otherwise(numerics::defaultRecipe(*format).name);
  FP4_ASSIGN(auto recipe, recipeOf(step, otherwise.c_str()));
  FP4_ASSIGN(auto shape, step.matrix(0));
  FP4_ASSIGN(auto scales, linearScales(*step.operands[1]));
  FP4_ASSIGN(auto amax, step.optional(2));
  const uint64_t block = numerics::blockSizeOf(recipe.format);
  numerics::QuantizedSide side;
  side.packed = numerics::isPacked(recipe.format);
  side.rows = shape.first;
  side.columns = shape.second;
  side.blocks = (side.columns + block - 1) / block;
  side.data.assign(bytesOf(*step.operands[0]).begin(), bytesOf(*step.operands[0]).end());
  side.scales = std::move(scales);
  if (numerics::hasE4M3Scales(recipe.format))
    side.amax = amax ? floats(*amax) : std::vector<float>{0.f};
  FP4_ASSIGN(auto values, numerics::dequantizeSide(recipe, side));
  return step.defineFloats(0, values);
}

} // namespace fp4::harness
