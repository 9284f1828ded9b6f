//===- QuantizeMatrix.h - The quantization family on whole matrices -------===//
//
// Does in one call what a training or serving step needs from a quantizer: the row-wise output (M x
// K, blocks along K), the column-wise output (the transposed matrix, K x M, blocks along M), or
// both, each with its own amax, Hadamard transform and rounding, and with scales in any layout.
//
// Shapes. Values are row-major M x K. Codes of 4 bits are two per byte, even index in the low
// nibble, rows of ceil(columns / 2) bytes; the nibble behind an odd row is 0. Wider codes have a
// byte each. An NVFP4 row whose length is no multiple of 16 ends in a shorter block (as if filled
// with zeros); rows of the MX formats must be multiples of 32.
//
// Square blocks (16 x 16, NVFP4, for weights) have one amax per tile of the input, and its scale is
// in each of the 16 rows of both outputs. The column-wise codes are the transposed row-wise ones,
// and quantizing the transposed matrix gives the same.
//
// Groups (grouped GEMM) are matrices stacked along M that have only K in common. Each is quantized,
// laid out and padded by itself; the outputs follow each other.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/BufferShape.h"
#include "fp4/Numerics/Hadamard.h"
#include "fp4/Numerics/Recipe.h"
#include "fp4/Numerics/ScaleMatrix.h"
#include "fp4/Numerics/StochasticRounding.h"
#include "fp4/Support/Error.h"
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fp4::numerics {

/// A row-major matrix of rows x columns, transposed.
std::vector<float> transposed(std::span<const float> values, uint64_t rows, uint64_t columns);

/// Options of one output.
struct SideOptions {
  std::optional<HadamardOptions> hadamard = {};      ///< along the blocks, before amax; else none
  std::optional<float> amax = {}; ///< amax of nvfp4, in place of that of the values
  std::optional<StochasticRounding> stochastic = {}; ///< stochastic rounding; else to nearest even
  std::vector<float> groupAmax = {}; ///< amax of each group (quantizeGroups, nvfp4); or none
  std::vector<float> rowAmax = {};   ///< amax of each row (amaxPerRow); or none
};

struct QuantizeOptions {
  std::optional<SideOptions> rowwise = SideOptions{};
  std::optional<SideOptions> columnwise;
  bool squareBlocks = false; ///< 16 x 16; of fp8_block128 128 x 128
  bool wholeRows = false;    ///< fp8_block128: each row is a block
  bool amaxPerRow = false;   ///< nvfp4: each row of an output has its amax (row-scaled)
  ScaleLayout layout = ScaleLayout::Linear;
};

/// One output.
struct QuantizedSide {
  uint64_t rows = 0, columns = 0; ///< extents of this output
  uint64_t blocks = 0;            ///< scales per row
  bool packed = true;             ///< two codes per byte
  ScaleLayout layout = ScaleLayout::Linear;
  std::vector<uint8_t> data;   ///< rows x rowBytes()
  std::vector<uint8_t> scales; ///< scales in the order of `layout`; an f32 scale has 4 bytes
  std::vector<float> amax;     ///< nvfp4: one, or one per row; mx: none

  uint64_t rowBytes() const {
    return packed ? static_cast<uint64_t>(hw::denseRowBytes(int64_t(columns))) : columns;
  }
  uint8_t code(uint64_t row, uint64_t column) const {
    if (!packed)
      return data[row * columns + column];
    const uint8_t byte = data[row * rowBytes() + column / 2];
    return column % 2 ? byte >> 4 : byte & 15;
  }
};

struct QuantizedPair {
  std::optional<QuantizedSide> rowwise, columnwise;
};

/// Quantizes a matrix. Fails if sizes do not match, if the block of MXFP4 or of a Hadamard
/// transform does not divide a row, if square blocks or amaxes per row have no meaning, and for
/// stochastic rounding with a recipe that can only round to nearest.
Expected<QuantizedPair> quantizeMatrix(const Recipe &recipe, std::span<const float> values,
                                       uint64_t rows, uint64_t columns,
                                       const QuantizeOptions &options = {});

/// One matrix per group, `groupRows` rows each, stacked in `values`. Amaxes are per group, of its
/// values unless given in `groupAmax`. Stochastic rounding (PhiloxMapping::Element) counts groups
/// of 16 through all matrices.
Expected<std::vector<QuantizedPair>> quantizeGroups(const Recipe &recipe,
                                                    std::span<const float> values,
                                                    std::span<const uint64_t> groupRows,
                                                    uint64_t columns,
                                                    const QuantizeOptions &options = {});

/// The scales of one output of all groups, one after the other; where each begins.
struct GroupedScales {
  std::vector<uint8_t> bytes;
  std::vector<uint64_t> offsets; ///< one per group, and the end
};
GroupedScales concatenateScales(std::span<const QuantizedPair> groups, bool columnwise);

/// Builds the whole from the shards of a tensor- or sequence-parallel group, quantized with one
/// amax. Row-wise shards are stacked; column-wise shards (K x M_rank, all of one shape, M_rank a
/// multiple of the block) are placed side by side. Padding is removed first and added last.
Expected<QuantizedSide> gatherRowwise(std::span<const QuantizedSide> shards);
Expected<QuantizedSide> gatherColumnwise(std::span<const QuantizedSide> shards);

/// The values of an output, with the amax it was quantized with: row-major rows x columns.
Expected<std::vector<float>> dequantizeSide(const Recipe &recipe, const QuantizedSide &side);

} // namespace fp4::numerics
