// MXFP4 weights to tiles for activations of e4m3, and back.
#include "fp4/Numerics/ByteWeights.h"
#include "fp4/ISA/WeightLayout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace fp4::numerics {
namespace {

constexpr uint64_t tileRows = hw::weightTileRows, tileColumns = hw::byteTileColumns;
constexpr unsigned blockK = 32, blocks = tileColumns / blockK;
constexpr uint8_t nanScale = 0xFF;
/// Exponents of blocks are relative to this one of the largest scale.
constexpr int topExponent = hw::byteMostExponent - hw::byteExponentBias;
constexpr uint32_t signMask = 0x88888888, exponentMask = 0x7F800000;
constexpr int exponentShift = 23;

Status check(uint64_t rows, uint64_t columns, size_t codes, size_t scales, size_t tiles) {
  const uint64_t elements = rows * columns;
  if (rows % tileRows == 0 && columns % tileColumns == 0 && codes == elements / 2 &&
      scales == elements / blockK &&
      tiles == elements / (tileRows * tileColumns) * uint64_t(hw::byteTileBytes))
    return {};
  return makeError(
      ErrorKind::Usage,
      fmt::format("prepacked weights for e4m3 must have a multiple of 128 rows and of 128 "
                  "columns of mxfp4, but got {} x {}",
                  rows, columns),
      "pad the weights with zeros before they are quantized");
}

uint32_t loadWord(const uint8_t *at) {
  uint32_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}
void storeWord(uint32_t word, uint8_t *at) { std::memcpy(at, &word, sizeof(word)); }

//===--- Words of codes --------------------------------------------------===//

/// Bits 3, 7, 11 and 15 at 7, 15, 23 and 31, and back.
uint32_t spreadSigns(uint32_t half) {
  return (half & 0x8) << 4 | (half & 0x80) << 8 | (half & 0x800) << 12 | (half & 0x8000) << 16;
}
uint32_t gatherSigns(uint32_t word) {
  return (word >> 4 & 0x8) | (word >> 8 & 0x80) | (word >> 12 & 0x800) | (word >> 16 & 0x8000);
}

/// Codes 0 to 3 are nibbles of `low`, and codes 4 to 7 of `high`.
uint32_t placeCodes(uint32_t low, uint32_t high) {
  return ((low | high << 16) & ~signMask) | spreadSigns(low) | spreadSigns(high) >> 4;
}
uint32_t takeCodes(uint32_t word) {
  return (word & ~signMask) | gatherSigns(word) | gatherSigns(word << 4) << 16;
}

//===--- Words of rows ---------------------------------------------------===//

/// The blocks of a row of a tile.
struct RowBlocks {
  std::array<bool, blocks> isZero;
  std::array<uint8_t, blocks> scales;

  RowBlocks(const uint8_t *codes, const uint8_t *scaleBytes) {
    std::copy_n(scaleBytes, blocks, scales.begin());
    for (unsigned j = 0; j < blocks; ++j)
      isZero[j] = std::all_of(codes + j * blockK / 2, codes + (j + 1) * blockK / 2,
                              [](uint8_t pair) { return (pair & 0x77) == 0; });
  }

  bool isNaN() const { return std::ranges::find(scales, nanScale) != scales.end(); }
  uint8_t largest() const {
    uint8_t result = 0;
    for (unsigned j = 0; j < blocks; ++j)
      result = std::max(result, isZero[j] ? uint8_t(0) : scales[j]);
    return result;
  }
  uint8_t smallest() const {
    uint8_t result = nanScale;
    for (unsigned j = 0; j < blocks; ++j)
      result = std::min(result, isZero[j] ? nanScale : scales[j]);
    return std::min(result, largest());
  }
  /// The power of two, with a bias of 127.
  int power() const { return std::max(int(largest()) - topExponent, 1); }
  bool isFar() const { return smallest() < power() - hw::byteExponentBias; }

  uint32_t word() const {
    if (isNaN() || isFar())
      return hw::byteNaN;
    uint32_t result = uint32_t(power()) << exponentShift;
    for (unsigned j = 0; j < blocks; ++j)
      if (!isZero[j])
        result |= uint32_t(scales[j] + hw::byteExponentBias - power()) << 4 * j;
    return result;
  }
};

uint8_t scaleOf(uint32_t word, unsigned block) {
  if ((word & hw::bytePowerMask) == hw::byteNaN)
    return nanScale;
  const int power = int((word & exponentMask) >> exponentShift);
  return uint8_t(std::max(int(word >> 4 * block & 15) - hw::byteExponentBias + power, 0));
}

//===--- Tiles -----------------------------------------------------------===//

/// Row and column of the first element of a tile, by its number.
std::pair<uint64_t, uint64_t> placeOf(uint64_t tile, uint64_t columns) {
  const uint64_t perRow = columns / tileColumns;
  return {tile / perRow * tileRows, tile % perRow * tileColumns};
}

/// The 16-bit halves of a word are at `at` and 8 bytes behind.
uint32_t loadHalf(const uint8_t *at) { return uint32_t(at[0] | at[1] << 8); }
void storeHalf(uint32_t half, uint8_t *at) {
  at[0] = uint8_t(half);
  at[1] = uint8_t(half >> 8);
}

/// The four e4m3 that selectors of four nibbles choose, and their signs.
uint32_t elementsOf(uint32_t selectors, uint32_t signs, unsigned exponent) {
  std::array<uint8_t, 8> table;
  for (unsigned i = 0; i < 2; ++i)
    storeWord(hw::byteMagnitudes[i] + exponent * hw::byteExponentSteps[i], &table[4 * i]);
  uint32_t elements = 0;
  for (unsigned n = 0; n < 4; ++n)
    elements |= uint32_t(table[selectors >> 4 * n & 7]) << 8 * n;
  return elements | (signs & 0x80808080);
}

} // namespace

Expected<std::vector<uint8_t>> packByteWeights(std::span<const uint8_t> codes,
                                               std::span<const uint8_t> scales, uint64_t rows,
                                               uint64_t columns) {
  const uint64_t tiles = rows / tileRows * (columns / tileColumns);
  std::vector<uint8_t> packed(tiles * uint64_t(hw::byteTileBytes));
  FP4_TRY(check(rows, columns, codes.size(), scales.size(), packed.size()));
  for (uint64_t tile = 0; tile < tiles; ++tile) {
    uint8_t *out = &packed[tile * uint64_t(hw::byteTileBytes)];
    const auto [row, column] = placeOf(tile, columns);
    for (unsigned i = 0; i < hw::byteWords; ++i) {
      const hw::ByteWord word = hw::byteWord(i);
      const uint8_t *in = &codes[((row + word.row) * columns + column + word.column) / 2];
      storeWord(placeCodes(loadHalf(in), loadHalf(in + 8)), out + word.byte);
    }
    for (uint64_t r = 0; r < tileRows; ++r) {
      const uint64_t first = (row + r) * columns + column;
      storeWord(RowBlocks(&codes[first / 2], &scales[first / blockK]).word(),
                out + hw::byteRowWord(unsigned(r)));
    }
  }
  return packed;
}

Expected<UnpackedWeights> unpackByteWeights(std::span<const uint8_t> tiles, uint64_t rows,
                                            uint64_t columns) {
  UnpackedWeights result{std::vector<uint8_t>(rows * columns / 2),
                         std::vector<uint8_t>(rows * columns / blockK)};
  FP4_TRY(check(rows, columns, result.codes.size(), result.scales.size(), tiles.size()));
  for (uint64_t tile = 0; tile * uint64_t(hw::byteTileBytes) < tiles.size(); ++tile) {
    const uint8_t *in = &tiles[tile * uint64_t(hw::byteTileBytes)];
    const auto [row, column] = placeOf(tile, columns);
    for (unsigned i = 0; i < hw::byteWords; ++i) {
      const hw::ByteWord word = hw::byteWord(i);
      uint8_t *out = &result.codes[((row + word.row) * columns + column + word.column) / 2];
      const uint32_t both = takeCodes(loadWord(in + word.byte));
      storeHalf(both & 0xFFFF, out);
      storeHalf(both >> 16, out + 8);
    }
    for (uint64_t r = 0; r < tileRows; ++r)
      for (unsigned j = 0; j < blocks; ++j)
        result.scales[((row + r) * columns + column) / blockK + j] =
            scaleOf(loadWord(in + hw::byteRowWord(unsigned(r))), j);
  }
  return result;
}

Expected<ByteWeights> decodeByteWeights(std::span<const uint8_t> tiles, uint64_t rows,
                                        uint64_t columns) {
  ByteWeights result{std::vector<uint8_t>(rows * columns),
                     std::vector<float>(rows * columns / tileColumns)};
  FP4_TRY(check(rows, columns, rows * columns / 2, rows * columns / blockK, tiles.size()));
  for (uint64_t tile = 0; tile * uint64_t(hw::byteTileBytes) < tiles.size(); ++tile) {
    const uint8_t *in = &tiles[tile * uint64_t(hw::byteTileBytes)];
    const auto [row, column] = placeOf(tile, columns);
    for (unsigned i = 0; i < hw::byteWords; ++i) {
      const hw::ByteWord word = hw::byteWord(i);
      const uint32_t codes = loadWord(in + word.byte);
      const uint32_t ofRow = loadWord(in + hw::byteRowWord(word.row));
      const unsigned exponent = ofRow >> word.column / blockK * 4 & 15;
      uint8_t *out = &result.elements[(row + word.row) * columns + column + word.column];
      storeWord(elementsOf(codes, codes, exponent), out);
      storeWord(elementsOf(codes >> 16, codes << 4, exponent), out + 16);
    }
    for (uint64_t r = 0; r < tileRows; ++r)
      result.powers[((row + r) * columns + column) / tileColumns] =
          std::bit_cast<float>(loadWord(in + hw::byteRowWord(unsigned(r))) & hw::bytePowerMask);
  }
  return result;
}

std::optional<FarScales> findFarScales(std::span<const uint8_t> codes,
                                       std::span<const uint8_t> scales, uint64_t rows,
                                       uint64_t columns) {
  for (uint64_t first = 0; first < rows * columns; first += tileColumns) {
    const RowBlocks row(&codes[first / 2], &scales[first / blockK]);
    if (!row.isNaN() && row.isFar())
      return FarScales{first / columns, first % columns, row.smallest(), row.largest()};
  }
  return std::nullopt;
}

} // namespace fp4::numerics
