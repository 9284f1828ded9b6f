//===- Quantize.h - NVFP4 and MXFP4 block quantizers, by recipe -----------===//
//
// Quantizes blocks and row-major matrices with the programs of RecipeProgram.h, to nearest even.
// QuantizeMatrix.h has both orientations, square blocks, stochastic rounding, layouts and groups.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/Recipe.h"
#include "fp4/Support/Error.h"
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fp4::numerics {

//===--- Amax ------------------------------------------------------------===//

/// max |x|, 0 for no values.
float amax(std::span<const float> values, NanPolicy policy = NanPolicy::Drop);

//===--- Quantizing ------------------------------------------------------===//

/// g and d of a tensor.
struct GlobalScale {
  float encode = 1.f, decode = 1.f;
  float amax = 0.f; ///< amax behind the scales
};
GlobalScale globalScale(const Recipe &recipe, float tensorAmax);

/// Quantizes one block (at most 32 values) to one code per byte and returns the scale byte. Only
/// the amax of `global` is used.
uint8_t quantizeBlock(const Recipe &recipe, const GlobalScale &global, std::span<const float> block,
                      std::span<uint8_t> codes);

/// A quantized matrix. Blocks run along the columns.
struct QuantizedMatrix {
  uint64_t rows = 0, columns = 0;
  std::vector<uint8_t> data;   ///< rows x columns / 2, even column in the low nibble
  std::vector<uint8_t> scales; ///< rows x columns / blockSize, linear
  float tensorAmax = 0.f;      ///< the amax used (0 for mxfp4)
};

/// Quantizes a row-major rows x columns matrix, nearest even. `tensorAmax` overrides the amax of
/// the values (nvfp4). Fails if sizes do not match or the block does not divide the columns.
Expected<QuantizedMatrix> quantizeRows(const Recipe &recipe, std::span<const float> values,
                                       uint64_t rows, uint64_t columns,
                                       std::optional<float> tensorAmax = std::nullopt);

/// The values of a matrix that `recipe` quantized.
Expected<std::vector<float>> dequantizeRows(const Recipe &recipe, std::span<const uint8_t> data,
                                            std::span<const uint8_t> scales, uint64_t rows,
                                            uint64_t columns, float tensorAmax = 2688.f);

//===--- Scale layout ----------------------------------------------------===//

/// rows x blocks linear scales to the tiled_128x4 layout of lib/ISA, padding zero, and back. The
/// two functions fail where the size of `scales` does not match.
Expected<std::vector<uint8_t>> swizzleScales(std::span<const uint8_t> scales, uint64_t rows,
                                             uint64_t blocks);
Expected<std::vector<uint8_t>> unswizzleScales(std::span<const uint8_t> tiled, uint64_t rows,
                                               uint64_t blocks);

} // namespace fp4::numerics
