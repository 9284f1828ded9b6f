//===- QuantizeReport.cpp - Errors of a quantized matrix ------------------===//

#include "QuantizeReport.h"

#include "fp4/Support/JsonText.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <optional>

namespace fp4::harness {
namespace {

using numerics::QuantizedSide;

std::vector<uint8_t> unpack(const QuantizedSide &side) {
  std::vector<uint8_t> codes(side.rows * side.columns);
  for (uint64_t row = 0; row < side.rows; ++row)
    for (uint64_t column = 0; column < side.columns; ++column)
      codes[row * side.columns + column] = side.code(row, column);
  return codes;
}

/// The error of values that stand transposed if the output is the column-wise one.
QuantizeError errorOf(const std::vector<float> &got, const QuantizedSide &side,
                      const Matrix &matrix, bool columnwise) {
  QuantizeError error;
  double squares = 0, signal = 0;
  for (uint64_t i = 0; i < got.size(); ++i) {
    const uint64_t row = i / side.columns, column = i % side.columns;
    const double wanted =
        columnwise ? matrix.values[column * matrix.columns + row] : matrix.values[i];
    const double difference = std::fabs(double(got[i]) - wanted);
    if (!std::isfinite(difference)) {
      ++error.notFinite;
      continue;
    }
    ++error.elements;
    error.largest = std::max(error.largest, difference);
    squares += difference * difference;
    signal += wanted * wanted;
  }
  error.rootMeanSquare = std::sqrt(squares / double(std::max<uint64_t>(error.elements, 1)));
  error.signalToNoise = 10 * std::log10(signal / squares);
  return error;
}

/// The differences of two quantizations of one matrix.
struct Difference {
  uint64_t codes = 0, scales = 0, blocks = 0;
  std::optional<uint64_t> first; ///< scale block
};

/// Compares two quantizations; nothing if scale blocks have different sizes.
std::optional<Difference> compare(const Quantized &a, const Quantized &b) {
  if (a.decisions.format != b.decisions.format)
    return std::nullopt;
  const uint64_t size = numerics::blockSizeOf(a.decisions.format);
  Difference found;
  for (uint64_t i = 0; i < a.scales.size(); ++i) {
    const uint64_t row = i / a.side.blocks, begin = i % a.side.blocks * size;
    uint64_t codes = 0;
    for (uint64_t c = begin; c < std::min(begin + size, a.side.columns); ++c)
      codes += a.codes[row * a.side.columns + c] != b.codes[row * a.side.columns + c];
    const bool scale = a.scales[i] != b.scales[i];
    found.codes += codes;
    found.scales += scale;
    found.blocks += codes || scale;
    if ((codes || scale) && !found.first)
      found.first = i;
  }
  return found;
}

std::span<const uint8_t> blockCodes(const Quantized &made, uint64_t block) {
  const uint64_t size = numerics::blockSizeOf(made.decisions.format);
  const uint64_t row = block / made.side.blocks, begin = block % made.side.blocks * size;
  return std::span(made.codes)
      .subspan(row * made.side.columns + begin, std::min(size, made.side.columns - begin));
}

std::string percent(uint64_t part, uint64_t whole) {
  return fmt::format("{} of {} ({:.3g} %)", part, whole, 100.0 * double(part) / double(whole));
}

std::string describe(const Quantized &made) {
  const QuantizeError &error = made.error;
  std::string text = fmt::format("{}: {}x{} codes, {} scales in {} bytes ({})", made.recipe,
                                 made.side.rows, made.side.columns, made.scales.size(),
                                 made.side.scales.size(), stringify(made.side.layout));
  if (made.side.amax.size() == 1)
    text += fmt::format(", amax {}", made.side.amax.front());
  else if (!made.side.amax.empty())
    text += fmt::format(", {} amaxes of rows, the largest {}", made.side.amax.size(),
                        std::ranges::max(made.side.amax));
  text += fmt::format("\n  error: largest {:.6g}, root of the mean square {:.6g}, signal to noise "
                      "{:.2f} dB",
                      error.largest, error.rootMeanSquare, error.signalToNoise);
  if (error.notFinite)
    text += fmt::format("; {} elements are not finite and do not count", error.notFinite);
  return text + "\n";
}

std::string describeFirst(const Quantized &a, const Quantized &b, uint64_t block) {
  const uint64_t size = numerics::blockSizeOf(a.decisions.format);
  const uint64_t begin = block % a.side.blocks * size;
  std::string text =
      fmt::format("  first in row {}, block {}, columns {} to {}\n", block / a.side.blocks,
                  block % a.side.blocks, begin, std::min(begin + size, a.side.columns) - 1);
  const size_t width = std::max(a.recipe.size(), b.recipe.size());
  for (const Quantized *made : {&a, &b})
    text += fmt::format("    {:<{}}  scale {:02X}, codes {:X}\n", made->recipe, width,
                        made->scales[block], fmt::join(blockCodes(*made, block), " "));
  return text;
}

nlohmann::ordered_json toJson(const Quantized &made) {
  nlohmann::ordered_json object = {{"recipe", made.recipe},
                                   {"rows", made.side.rows},
                                   {"columns", made.side.columns},
                                   {"scales", made.scales.size()},
                                   {"layout", stringify(made.side.layout)},
                                   {"max_error", made.error.largest},
                                   {"rms_error", made.error.rootMeanSquare},
                                   {"signal_to_noise_db", made.error.signalToNoise},
                                   {"not_finite", made.error.notFinite}};
  if (made.side.amax.size() == 1)
    object["amax"] = made.side.amax.front();
  else if (!made.side.amax.empty())
    object["amax"] = made.side.amax;
  return object;
}

} // namespace

Expected<Quantized> measure(std::string text, const numerics::Recipe &recipe, QuantizedSide side,
                            const Matrix &matrix, bool columnwise) {
  FP4_ASSIGN(auto scales, numerics::readScales(side.scales, side.rows, side.blocks, side.layout));
  QuantizedSide linear = side;
  linear.layout = numerics::ScaleLayout::Linear;
  linear.scales = scales;
  FP4_ASSIGN(auto values, numerics::dequantizeSide(recipe, linear));
  Quantized made{std::move(text), recipe, std::move(side), {}, std::move(scales), {}};
  made.codes = unpack(made.side);
  made.error = errorOf(values, made.side, matrix, columnwise);
  return made;
}

std::string QuantizeReport::text() const {
  std::string text = fmt::format("{}: {}\n", file, array);
  for (const Quantized &one : made)
    text += describe(one);
  if (made.size() < 2)
    return text;
  const auto found = compare(made[0], made[1]);
  if (!found)
    return text + "blocks are of different sizes: codes and scales are not compared\n";
  text += fmt::format("codes that differ: {}; scales that differ: {}; in {} blocks\n",
                      percent(found->codes, made[0].codes.size()),
                      percent(found->scales, made[0].scales.size()), found->blocks);
  return found->first ? text + describeFirst(made[0], made[1], *found->first) : text;
}

std::string QuantizeReport::json() const {
  nlohmann::ordered_json object = {{"file", file}, {"quantized", nlohmann::ordered_json::array()}};
  for (const Quantized &one : made)
    object["quantized"].push_back(toJson(one));
  const auto found = made.size() < 2 ? std::nullopt : compare(made[0], made[1]);
  if (found) {
    object["codes_differ"] = found->codes;
    object["scales_differ"] = found->scales;
    object["blocks_differ"] = found->blocks;
  }
  if (found && found->first)
    object["first"] = {{"row", *found->first / made[0].side.blocks},
                       {"block", *found->first % made[0].side.blocks}};
  return jsonText(object, 2) + "\n";
}

} // namespace fp4::harness
