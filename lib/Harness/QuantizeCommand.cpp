//===- QuantizeCommand.cpp - Quantizers on a command line -----------------===//

#include "fp4/Harness/QuantizeCommand.h"

#include "QuantizeReport.h"
#include "fp4/Harness/TensorNpy.h"
#include "fp4/Support/OutputFile.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace fp4::harness {
namespace {

using numerics::QuantizedSide;
using numerics::Recipe;

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// Rows and columns of an array: all but its last dimension are rows.
Expected<std::pair<uint64_t, uint64_t>> matrixOf(const NpyArray &array, const std::string &name) {
  if (array.shape.empty())
    return makeError(ErrorKind::Usage,
                     fmt::format("'{}' must be a matrix, but got {}", name, array.str()));
  uint64_t rows = 1;
  for (size_t i = 0; i + 1 < array.shape.size(); ++i)
    rows *= static_cast<uint64_t>(array.shape[i]);
  return std::pair(rows, static_cast<uint64_t>(array.shape.back()));
}

NpyArray bytesToNpy(std::span<const uint8_t> bytes, std::vector<int64_t> shape) {
  const auto data = std::as_bytes(bytes);
  return {"|u1", std::move(shape), {data.begin(), data.end()}};
}

NpyArray floatsToNpy(std::span<const float> values, std::vector<int64_t> shape) {
  const auto data = std::as_bytes(values);
  return {"<f4", std::move(shape), {data.begin(), data.end()}};
}

/// Linear scales have the shape of their matrix, others that of their bytes.
Status writeSide(const QuantizedSide &side, const std::string &prefix) {
  const auto rows = int64_t(side.rows), blocks = int64_t(side.blocks);
  const bool linear = side.layout == numerics::ScaleLayout::Linear;
  std::vector<int64_t> scaleShape = {int64_t(side.scales.size())};
  if (linear)
    scaleShape = {rows, blocks};
  FP4_TRY(writeNpy(prefix + ".codes.npy", bytesToNpy(side.data, {rows, int64_t(side.rowBytes())})));
  FP4_TRY(writeNpy(prefix + ".scales.npy", bytesToNpy(side.scales, scaleShape)));
  if (side.amax.empty())
    return {};
  return writeNpy(prefix + ".amax.npy", floatsToNpy(side.amax, {int64_t(side.amax.size())}));
}

Expected<numerics::ScaleLayout> layoutOf(const QuantizeCommand &command) {
  if (auto layout = numerics::parseScaleLayout(command.layout))
    return *layout;
  return makeError(ErrorKind::Usage, fmt::format("unknown layout '{}' of scales", command.layout),
                   "choose linear, padded_128x4, tiled_128x4 or tiled_8x4");
}

//===----------------------------------------------------------------------===//
// quantize
//===----------------------------------------------------------------------===//

Expected<Quantized> quantizeWith(const std::string &text, const QuantizeCommand &command,
                                 const Matrix &matrix) {
  FP4_ASSIGN(auto recipe, numerics::parseRecipe(text));
  FP4_ASSIGN(auto layout, layoutOf(command));
  numerics::QuantizeOptions options;
  numerics::SideOptions side;
  side.amax = command.amax;
  options.rowwise.reset();
  (command.columnwise ? options.columnwise : options.rowwise) = side;
  options.layout = layout;
  FP4_ASSIGN(auto pair,
             quantizeMatrix(recipe, matrix.values, matrix.rows, matrix.columns, options));
  auto &made = command.columnwise ? pair.columnwise : pair.rowwise;
  return measure(text, recipe, std::move(*made), matrix, command.columnwise);
}

Expected<std::string> quantize(const QuantizeCommand &command) {
  FP4_ASSIGN(auto array, readNpy(command.input));
  FP4_ASSIGN(auto shape, matrixOf(array, command.input));
  FP4_ASSIGN(auto values, valuesOf(array, command.type, command.input));
  const uint64_t columns = values.size() / std::max<uint64_t>(shape.first, 1);
  const Matrix matrix{std::move(values), shape.first, columns};
  FP4_ASSIGN(auto first, quantizeWith(command.recipe, command, matrix));
  if (!command.output.empty())
    FP4_TRY(writeSide(first.side, command.output));
  QuantizeReport report{command.input, array.str(), {std::move(first)}};
  if (!command.compare.empty()) {
    FP4_ASSIGN(auto second, quantizeWith(command.compare, command, matrix));
    report.made.push_back(std::move(second));
  }
  return command.json ? report.json() : report.text();
}

//===----------------------------------------------------------------------===//
// dequantize
//===----------------------------------------------------------------------===//

bool namesFile(const std::string &text) { return text.ends_with(".npy"); }

/// The bytes of a file of codes or scales, one per element or packed as they come.
Expected<std::vector<uint8_t>> bytesOf(const NpyArray &array, const std::string &path) {
  if (array.descr != "|u1" && array.descr != "<V1" && array.descr != "|V1")
    return makeError(
        ErrorKind::Usage,
        fmt::format("'{}' expects element type '|u1' or '<V1', but got {}", path, array.str()));
  const auto *bytes = reinterpret_cast<const uint8_t *>(array.data.data());
  return std::vector<uint8_t>(bytes, bytes + array.data.size());
}

Expected<float> amaxOf(const QuantizeCommand &command) {
  if (command.amax)
    return *command.amax;
  if (namesFile(command.input))
    return makeError(ErrorKind::Usage, "the recipe has an amax of the tensor, but none was given",
                     "add --amax A");
  FP4_ASSIGN(auto array, readNpy(command.input + ".amax.npy"));
  FP4_ASSIGN(auto values, valuesOf(array, "", command.input + ".amax.npy"));
  return values.front();
}

/// The codes, packed as a device has them.
Status readCodes(const std::string &path, QuantizedSide &side) {
  FP4_ASSIGN(auto array, readNpy(path));
  FP4_ASSIGN(auto shape, matrixOf(array, path));
  const uint64_t perItem = array.descr == "|u1" ? 2 : 1;
  side.rows = shape.first;
  side.columns = shape.second * perItem;
  FP4_ASSIGN(
      auto packed,
      fromNpy({array.descr, {int64_t(side.rows), int64_t(shape.second)}, std::move(array.data)},
              {{int64_t(side.rows), int64_t(side.columns)}, ElementType::F4E2M1FN, Layout::Linear},
              path));
  auto data = packed.as<uint8_t>();
  side.data.assign(data.begin(), data.end());
  return {};
}

/// The scales, linear, of a side that has its codes.
Status readScaleFile(const std::string &path, const QuantizeCommand &command, QuantizedSide &side) {
  FP4_ASSIGN(auto array, readNpy(path));
  FP4_ASSIGN(auto bytes, bytesOf(array, path));
  FP4_ASSIGN(auto layout, layoutOf(command));
  auto linear = numerics::readScales(bytes, side.rows, side.blocks, layout);
  if (!linear)
    return makeError(ErrorKind::Usage, fmt::format("'{}': {}", path, linear.error().message),
                     linear.error().note);
  side.scales = std::move(*linear);
  return {};
}

/// Codes, scales and amax from their files.
Expected<QuantizedSide> readSide(const QuantizeCommand &command, const Recipe &recipe) {
  if (!numerics::isPacked(recipe.format))
    return makeError(ErrorKind::Usage,
                     "dequantize expects a recipe of elements of 4 bits, but got format " +
                         std::string(numerics::stringify(recipe.format)),
                     "fp4.dequantize has all formats");
  const bool file = namesFile(command.input);
  if (file && command.scales.empty())
    return makeError(ErrorKind::Usage, "codes were given as a file, but no scales",
                     "add --scales FILE.npy, or give the prefix that quantize -o was given");
  QuantizedSide side;
  FP4_TRY(readCodes(file ? command.input : command.input + ".codes.npy", side));
  const uint64_t block = numerics::blockSizeOf(recipe.format);
  side.blocks = (side.columns + block - 1) / block;
  FP4_TRY(readScaleFile(command.scales.empty() ? command.input + ".scales.npy" : command.scales,
                        command, side));
  if (!numerics::hasTensorScale(recipe))
    return side;
  FP4_ASSIGN(auto amax, amaxOf(command));
  side.amax = {amax};
  return side;
}

Expected<std::string> dequantize(const QuantizeCommand &command) {
  FP4_ASSIGN(auto recipe, numerics::parseRecipe(command.recipe));
  FP4_ASSIGN(auto side, readSide(command, recipe));
  FP4_ASSIGN(auto values, numerics::dequantizeSide(recipe, side));
  FP4_TRY(
      writeNpy(command.output, floatsToNpy(values, {int64_t(side.rows), int64_t(side.columns)})));
  return fmt::format("{}: {}x{} of '<f4', by {}\n", command.output, side.rows, side.columns,
                     command.recipe);
}

void addShared(CLI::App &app, QuantizeCommand &command) {
  app.add_option("--recipe", command.recipe,
                 "a recipe, or one with other decisions: \"modelopt, guard = none\"")
      ->required();
  app.add_option("--layout", command.layout,
                 "of the scales: linear, padded_128x4, tiled_128x4, tiled_8x4")
      ->capture_default_str();
  app.add_option("--amax", command.amax, "amax of the tensor, instead of its own");
}

} // namespace

void addQuantizeCommands(CLI::App &app, QuantizeCommand &command) {
  CLI::App *quantize =
      app.add_subcommand("quantize", "Quantize a matrix of a .npy file with a named recipe");
  addShared(*quantize, command);
  quantize->add_option("input", command.input, "x.npy")->required();
  quantize->add_option("-o", command.output, "PREFIX of .codes.npy, .scales.npy and .amax.npy");
  quantize->add_option("--compare", command.compare, "a second recipe: say where it differs");
  quantize->add_option("--type", command.type,
                       "what the bytes of the input are: bf16, f8E4M3FN, f8E8M0FNU, f4E2M1FN");
  quantize->add_flag("--columnwise", command.columnwise, "blocks along the rows' dimension");
  quantize->add_flag("--json", command.json, "print one JSON object");
  quantize->callback([&command] { command.verb = QuantizeCommand::Verb::Quantize; });
  CLI::App *dequantize =
      app.add_subcommand("dequantize", "Convert the files of quantize back to fp32");
  addShared(*dequantize, command);
  dequantize->add_option("input", command.input, "PREFIX of quantize, or the codes")->required();
  dequantize->add_option("-o", command.output, "y.npy")->required();
  dequantize->add_option("--scales", command.scales, "the scales, where the input is no prefix");
  dequantize->callback([&command] { command.verb = QuantizeCommand::Verb::Dequantize; });
}

Expected<std::string> runQuantizeCommand(const QuantizeCommand &command) {
  return command.verb == QuantizeCommand::Verb::Quantize ? quantize(command) : dequantize(command);
}

} // namespace fp4::harness
