//===- ByteWeights.h - Prepacked MXFP4 weights for activations of e4m3 ----===//
//
// fp4.prepack and fp4.unprepack on the host, of tiles of 8704 bytes. fp4/ISA/WeightLayout.h says
// where a tile has what.
//
// A row of a tile has four blocks of 32 codes. With s the largest scale byte of its blocks that are
// not zero, its power of two is 2^(p - 127) with p = max(s - 6, 1), and block j has the exponent
// e_j = s_j - p, which is at most 6. A weight is code * 2^e_j * 2^(p - 127), where code * 2^e_j is
// a normal e4m3 or zero if e_j >= -5. The conversion is thus exact where scales are at most 2^11
// apart.
//
// The row is NaN in a tile where a block that is not zero has e_j < -5, and where a scale is NaN. A
// block of zeros has e_j = -5.
//
// With powers of rows, s is the largest scale byte of the whole row, which then has the same power
// in all of its tiles, and is NaN in all of them where it would be in one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/PackedWeights.h"
#include <optional>

namespace fp4::numerics {

/// The rows that have a power of two: the row of each tile, or each row of weights.
enum class PowersOf { Tiles, Rows };

/// Rows of `columns / 2` bytes of codes and of `columns / 32` scales to tiles. Fails unless
/// `columns` is a multiple of 32.
Expected<std::vector<uint8_t>> packByteWeights(std::span<const uint8_t> codes,
                                               std::span<const uint8_t> scales, uint64_t rows,
                                               uint64_t columns, PowersOf powers = PowersOf::Tiles);

/// The codes as they were, and scales: of a block of zeros 2^(p - 132), and of a row that is NaN,
/// NaN.
Expected<UnpackedWeights> unpackByteWeights(std::span<const uint8_t> tiles, uint64_t rows,
                                            uint64_t columns);

/// Operand of the tensor core: rows of `columns` e4m3, and rows of powers of two, one for 128
/// columns.
struct ByteWeights {
  std::vector<uint8_t> elements;
  std::vector<float> powers;
};
Expected<ByteWeights> decodeByteWeights(std::span<const uint8_t> tiles, uint64_t rows,
                                        uint64_t columns);

/// The first row of a tile, or of the weights, that is NaN because its scales are too far apart.
struct FarScales {
  uint64_t row, column;      ///< place of the first element of the tile, or of the row
  uint8_t smallest, largest; ///< scale bytes of its blocks that are not zero
};
std::optional<FarScales> findFarScales(std::span<const uint8_t> codes,
                                       std::span<const uint8_t> scales, uint64_t rows,
                                       uint64_t columns, PowersOf powers = PowersOf::Tiles);

} // namespace fp4::numerics
