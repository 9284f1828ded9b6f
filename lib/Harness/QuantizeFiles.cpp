//===- QuantizeFiles.cpp - Quantized matrices in .npy files ---------------===//

#include "QuantizeFiles.h"

#include "fp4/Numerics/GgmlBlocks.h"
#include "fp4/Harness/TensorNpy.h"

#include <fmt/format.h>

namespace fp4::harness {
namespace {

using numerics::BlockFormat;
using numerics::QuantizedSide;
using numerics::Recipe;

constexpr std::string_view ggmlLayout = "ggml";

NpyArray bytesToNpy(std::span<const uint8_t> bytes, std::vector<int64_t> shape) {
  const auto data = std::as_bytes(bytes);
  return {"|u1", std::move(shape), {data.begin(), data.end()}};
}

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

/// Checks that the ggml layout can have the recipe: it has no place for an amax, and formats of its
/// own.
Status checkGgml(const Recipe &recipe) {
  if (!numerics::hasTensorScale(recipe))
    return {};
  return makeError(ErrorKind::Usage,
                   fmt::format("layout ggml expects a recipe without a tensor scale, but got '{}'",
                               recipe.name),
                   "ggml's blocks have no amax; take ggml_nvfp4 or ggml_mxfp4");
}

Status writeGgml(const QuantizedSide &side, const Recipe &recipe, const std::string &prefix) {
  FP4_TRY(checkGgml(recipe));
  FP4_ASSIGN(auto bytes, numerics::toGgmlBlocks(recipe.format, side));
  const auto rows = int64_t(side.rows);
  const int64_t pitch = rows ? int64_t(bytes.size()) / rows : 0;
  return writeNpy(prefix + ".ggml.npy", bytesToNpy(bytes, {rows, pitch}));
}

Expected<QuantizedSide> readGgml(const QuantizeCommand &command, const Recipe &recipe) {
  FP4_TRY(checkGgml(recipe));
  const std::string path =
      namesFile(command.input) ? command.input : command.input + ".ggml.npy";
  FP4_ASSIGN(auto array, readNpy(path));
  FP4_ASSIGN(auto shape, matrixOf(array, path));
  FP4_ASSIGN(auto bytes, bytesOf(array, path));
  const uint64_t block = numerics::ggmlBytes(recipe.format);
  if (shape.second % block)
    return makeError(ErrorKind::Usage,
                     fmt::format("rows of '{}' must be multiples of {} bytes for ggml's {}, but "
                                 "got {}",
                                 path, block, numerics::stringify(recipe.format), array.str()));
  return numerics::fromGgmlBlocks(recipe.format, bytes, shape.first,
                                  shape.second / block * numerics::ggmlElements(recipe.format));
}

/// Reads the amaxes: one, or one per row.
Status readAmax(const QuantizeCommand &command, QuantizedSide &side) {
  if (command.amax) {
    side.amax = {*command.amax};
    return {};
  }
  if (namesFile(command.input))
    return makeError(ErrorKind::Usage, "the recipe has an amax of the tensor, but none was given",
                     "add --amax A");
  const std::string path = command.input + ".amax.npy";
  FP4_ASSIGN(auto array, readNpy(path));
  FP4_ASSIGN(auto values, valuesOf(array, "", path));
  if (values.size() != 1 && values.size() != side.rows)
    return makeError(ErrorKind::Usage,
                     fmt::format("'{}' must have 1 amax or {}, one for each row, but got {}", path,
                                 side.rows, array.str()));
  side.amax = std::move(values);
  return {};
}

/// Reads codes of 4 bits, packed as a device has them.
Status readPackedCodes(const std::string &path, NpyArray array, QuantizedSide &side) {
  const auto width = int64_t(side.columns);
  side.columns *= array.descr == "|u1" ? 2 : 1;
  const std::vector<int64_t> shape = {int64_t(side.rows), int64_t(side.columns)};
  FP4_ASSIGN(auto packed,
             fromNpy({array.descr, {shape[0], width}, std::move(array.data)},
                     {shape, ElementType::F4E2M1FN, Layout::Linear}, path));
  auto data = packed.as<uint8_t>();
  side.data.assign(data.begin(), data.end());
  return {};
}

/// Reads codes of a byte each.
Status readWideCodes(const std::string &path, const NpyArray &array, const Recipe &recipe,
                     QuantizedSide &side) {
  FP4_ASSIGN(auto bytes, bytesOf(array, path));
  const unsigned bits = numerics::elementOf(recipe.format).bits;
  for (size_t i = 0; i < bytes.size(); ++i)
    if ((bytes)[i] >> bits)
      return makeError(ErrorKind::Usage,
                       fmt::format("'{}' must have codes from 0 to {} for {}, but got {} in row "
                                   "{}, column {}",
                                   path, (1u << bits) - 1, numerics::stringify(recipe.format),
                                   (bytes)[i], i / side.columns, i % side.columns));
  side.data = std::move(bytes);
  return {};
}

Status readCodes(const std::string &path, const Recipe &recipe, QuantizedSide &side) {
  FP4_ASSIGN(auto array, readNpy(path));
  FP4_ASSIGN(auto shape, matrixOf(array, path));
  std::tie(side.rows, side.columns) = shape;
  side.packed = numerics::isPacked(recipe.format);
  FP4_TRY(side.packed ? readPackedCodes(path, std::move(array), side)
                      : readWideCodes(path, array, recipe, side));
  const uint64_t block = numerics::blockSizeOf(recipe.format);
  side.blocks = (side.columns + block - 1) / block;
  return {};
}

/// Reads the scales, linear, of a side that has its codes.
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

} // namespace

Expected<std::pair<uint64_t, uint64_t>> matrixOf(const NpyArray &array, const std::string &name) {
  if (array.shape.empty())
    return makeError(ErrorKind::Usage,
                     fmt::format("'{}' must be a matrix, but got {}", name, array.str()));
  uint64_t rows = 1;
  for (size_t i = 0; i + 1 < array.shape.size(); ++i)
    rows *= static_cast<uint64_t>(array.shape[i]);
  return std::pair(rows, static_cast<uint64_t>(array.shape.back()));
}

NpyArray floatsToNpy(std::span<const float> values, std::vector<int64_t> shape) {
  const auto data = std::as_bytes(values);
  return {"<f4", std::move(shape), {data.begin(), data.end()}};
}

Expected<numerics::ScaleLayout> layoutOf(const QuantizeCommand &command) {
  if (command.layout == ggmlLayout)
    return numerics::ScaleLayout::Linear;
  if (auto layout = numerics::parseScaleLayout(command.layout))
    return *layout;
  return makeError(ErrorKind::Usage, fmt::format("unknown layout '{}' of scales", command.layout),
                   "choose linear, padded_128x4, tiled_128x4, tiled_8x4 or ggml");
}

/// Writes a side. Linear scales have the shape of their matrix, tiled ones that of their bytes.
Status writeSide(const QuantizedSide &side, const Recipe &recipe, const QuantizeCommand &command) {
  const std::string &prefix = command.output;
  if (command.layout == ggmlLayout)
    return writeGgml(side, recipe, prefix);
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

Expected<QuantizedSide> readSide(const QuantizeCommand &command, const Recipe &recipe) {
  if (command.layout == ggmlLayout)
    return readGgml(command, recipe);
  const bool file = namesFile(command.input);
  if (file && command.scales.empty())
    return makeError(ErrorKind::Usage, "codes were given as a file, but no scales",
                     "add --scales FILE.npy, or give the prefix that quantize -o was given");
  QuantizedSide side;
  FP4_TRY(readCodes(file ? command.input : command.input + ".codes.npy", recipe, side));
  FP4_TRY(readScaleFile(command.scales.empty() ? command.input + ".scales.npy" : command.scales,
                        command, side));
  if (numerics::hasTensorScale(recipe))
    FP4_TRY(readAmax(command, side));
  return side;
}

} // namespace fp4::harness
