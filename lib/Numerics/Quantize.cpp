// Quantization of scale blocks and of row-major matrices, and the tiled scale layout. The
// arithmetic is the recipe's program.
#include "fp4/Numerics/Quantize.h"
#include "BlockQuantizer.h"
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/Float16.h"
#include <array>
#include <string>

namespace fp4::numerics {
namespace {

Status checkSize(std::string_view what, size_t got, uint64_t expected) {
  if (got == expected)
    return {};
  return makeError(ErrorKind::Usage, std::string(what) + " must have " + std::to_string(expected) +
                                         " elements, but got " + std::to_string(got));
}

Status checkColumns(BlockFormat format, uint64_t columns) {
  if (!isPacked(format))
    return makeError(ErrorKind::Usage, "codes must have 4 bits, but got format " +
                                           std::string(stringify(format)),
                     "quantizeMatrix has all formats");
  const unsigned block = blockSizeOf(format);
  if (columns % block == 0)
    return {};
  return makeError(ErrorKind::Usage,
                   "columns must be a multiple of " + std::to_string(block) + " for " +
                       std::string(stringify(format)) + ", but got " + std::to_string(columns),
                   "pad the rows with zeros");
}

} // namespace

float amax(std::span<const float> values, NanPolicy policy) {
  uint32_t most = 0; // magnitudes order as integers, NaN above infinity
  for (float x : values) {
    const uint32_t a = bitsOf(x) & 0x7FFFFFFF;
    if (a > 0x7F800000 && policy == NanPolicy::Drop)
      continue;
    most = a > most ? a : most;
  }
  return most > 0x7F800000 ? floatOf(0x7FC00000) : floatOf(most);
}

GlobalScale globalScale(const Recipe &recipe, float tensorAmax) {
  const RecipeProgram program = makeProgram(recipe);
  RecipeEvaluator evaluator(program);
  evaluator.setTensor(tensorAmax);
  return {evaluator.valueOr(program.encodeScale, 1.f), evaluator.valueOr(program.decodeScale, 1.f),
          tensorAmax};
}

uint8_t quantizeBlock(const Recipe &recipe, const GlobalScale &global, std::span<const float> block,
                      std::span<uint8_t> codes) {
  const RecipeProgram program = makeProgram(recipe);
  BlockQuantizer quantizer(program);
  quantizer.setTensor(global.amax);
  return quantizer.quantize(block, codes);
}

Expected<QuantizedMatrix> quantizeRows(const Recipe &recipe, std::span<const float> values,
                                       uint64_t rows, uint64_t columns,
                                       std::optional<float> tensorAmax) {
  FP4_TRY(checkColumns(recipe.format, columns));
  FP4_TRY(checkSize("values", values.size(), rows * columns));
  const unsigned block = blockSizeOf(recipe.format);
  QuantizedMatrix out{rows, columns, std::vector<uint8_t>(rows * columns / 2),
                      std::vector<uint8_t>(rows * columns / block), 0.f};
  if (hasE4M3Scales(recipe.format))
    out.tensorAmax = tensorAmax ? *tensorAmax : amax(values, recipe.amaxNaN);
  const RecipeProgram program = makeProgram(recipe);
  BlockQuantizer quantizer(program);
  quantizer.setTensor(out.tensorAmax);
  std::array<uint8_t, maxBlock> codes;
  for (size_t i = 0; i < out.scales.size(); ++i) {
    out.scales[i] = quantizer.quantize(values.subspan(i * block, block), codes);
    packE2M1({codes.data(), block}, std::span(out.data).subspan(i * block / 2, block / 2));
  }
  return out;
}

Expected<std::vector<float>> dequantizeRows(const Recipe &recipe, std::span<const uint8_t> data,
                                            std::span<const uint8_t> scales, uint64_t rows,
                                            uint64_t columns, float tensorAmax) {
  FP4_TRY(checkColumns(recipe.format, columns));
  const unsigned block = blockSizeOf(recipe.format);
  FP4_TRY(checkSize("data", data.size(), rows * columns / 2));
  FP4_TRY(checkSize("scales", scales.size(), rows * columns / block));
  const RecipeProgram program = makeDequantizer(recipe);
  RecipeEvaluator evaluator(program);
  evaluator.setTensor(tensorAmax);
  std::vector<float> out(rows * columns);
  for (size_t b = 0; b < scales.size(); ++b) {
    evaluator.setScaleByte(scales[b]);
    for (size_t i = b * block; i < (b + 1) * block; ++i)
      out[i] = evaluator.element(decodeE2M1(static_cast<uint8_t>(data[i / 2] >> (i % 2 * 4))));
  }
  return out;
}

Expected<std::vector<uint8_t>> swizzleScales(std::span<const uint8_t> scales, uint64_t rows,
                                             uint64_t blocks) {
  FP4_TRY(checkSize("scales", scales.size(), rows * blocks));
  std::vector<uint8_t> tiled(hw::tiled128x4Bytes(rows, blocks));
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t b = 0; b < blocks; ++b)
      tiled[hw::tiled128x4Offset(r, b, blocks)] = scales[r * blocks + b];
  return tiled;
}

Expected<std::vector<uint8_t>> unswizzleScales(std::span<const uint8_t> tiled, uint64_t rows,
                                               uint64_t blocks) {
  FP4_TRY(checkSize("tiled scales", tiled.size(), hw::tiled128x4Bytes(rows, blocks)));
  std::vector<uint8_t> scales(rows * blocks);
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t b = 0; b < blocks; ++b)
      scales[r * blocks + b] = tiled[hw::tiled128x4Offset(r, b, blocks)];
  return scales;
}

} // namespace fp4::numerics
