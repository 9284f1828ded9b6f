// MXFP4 weights to tiles for activations of e4m3, and back.
#include "fp4/Numerics/ByteWeights.h"
#include "fp4/ISA/WeightLayout.h"

#include "WholeTiles.h"

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
/// The exponent of the largest scale, to which exponents of scale blocks are relative.
constexpr int topExponent = hw::byteMostExponent - hw::byteExponentBias;
constexpr uint32_t signMask = 0x88888888, exponentMask = 0x7F800000;
constexpr int exponentShift = 23;

/// Rows and columns of weights.
struct Sizes {
  uint64_t rows, columns;

  Sizes whole() const {
    return {uint64_t(hw::quotientUp(int64_t(rows), int64_t(tileRows))) * tileRows,
            uint64_t(hw::quotientUp(int64_t(columns), int64_t(tileColumns))) * tileColumns};
  }
  uint64_t bytesOfTiles() const {
    return whole().rows / tileRows * (whole().columns / tileColumns) * uint64_t(hw::byteTileBytes);
  }
  ByteShape codes() const { return {rows, columns / 2}; }
  ByteShape scales() const { return {rows, columns / blockK}; }
  ByteShape elements() const { return {rows, columns}; }
};

Status check(const Sizes &sizes, size_t codes, size_t scales, size_t tiles) {
  if (sizes.columns % blockK == 0 && codes == sizes.codes().size() &&
      scales == sizes.scales().size() && tiles == sizes.bytesOfTiles())
    return {};
  return makeError(ErrorKind::Usage,
                   fmt::format("prepacked weights for e4m3 must have whole scale blocks of mxfp4, "
                               "with their tiles, but got {} x {}",
                               sizes.rows, sizes.columns),
                   "pad the columns with zeros before the weights are quantized");
}

/// Codes and scales of whole tiles.
struct WholeWeights {
  Sizes sizes;
  std::vector<uint8_t> codes, scales;

  WholeWeights(const Sizes &given, std::span<const uint8_t> codes, std::span<const uint8_t> scales)
      : sizes(given.whole()), codes(resizeMatrix(codes, given.codes(), sizes.codes(), 0)),
        scales(
            resizeMatrix(scales, given.scales(), sizes.scales(), hw::weightPaddingScale(blockK))) {}
};

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

/// The scales of all scale blocks that share a power of two: their range without zero ones.
struct SharedPower {
  uint8_t largest = 0, least = nanScale;
  bool hasNaN = false;

  void add(uint8_t scale, bool isZero) {
    hasNaN |= scale == nanScale;
    largest = std::max(largest, isZero ? uint8_t(0) : scale);
    least = std::min(least, isZero ? nanScale : scale);
  }
  uint8_t smallest() const { return std::min(least, largest); }
  /// The power of two, with a bias of 127.
  int power() const { return std::max(int(largest) - topExponent, 1); }
  bool isFar() const { return smallest() < power() - hw::byteExponentBias; }
};

/// Scale blocks that follow one another in a row.
struct RowBlocks {
  const uint8_t *codes, *scales;

  bool isZero(uint64_t j) const {
    return std::all_of(codes + j * blockK / 2, codes + (j + 1) * blockK / 2,
                       [](uint8_t pair) { return (pair & 0x77) == 0; });
  }
  SharedPower powerOf(uint64_t count) const {
    SharedPower power;
    for (uint64_t j = 0; j < count; ++j)
      power.add(scales[j], isZero(j));
    return power;
  }
  /// The word of a row of a tile.
  uint32_t word(const SharedPower &power) const {
    if (power.hasNaN || power.isFar())
      return hw::byteNaN;
    uint32_t result = uint32_t(power.power()) << exponentShift;
    for (unsigned j = 0; j < blocks; ++j)
      if (!isZero(j))
        result |= uint32_t(scales[j] + hw::byteExponentBias - power.power()) << 4 * j;
    return result;
  }
};

/// Columns that share a power of two.
uint64_t columnsOfPower(PowersOf powers, uint64_t columns) {
  return powers == PowersOf::Rows ? columns : tileColumns;
}

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

/// Loads one 16-bit half of a word; the second one lies 8 bytes behind the first.
uint32_t loadHalf(const uint8_t *at) { return uint32_t(at[0] | at[1] << 8); }
void storeHalf(uint32_t half, uint8_t *at) {
  at[0] = uint8_t(half);
  at[1] = uint8_t(half >> 8);
}

/// The four e4m3 elements that selectors of four nibbles choose, with their signs.
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

/// The words of the rows of all tiles.
static void packWords(std::span<const uint8_t> codes, std::span<const uint8_t> scales,
                      uint64_t rows, uint64_t columns, PowersOf powers, std::span<uint8_t> packed) {
  const uint64_t perRow = columns / tileColumns, shared = columnsOfPower(powers, columns);
  for (uint64_t row = 0; row < rows; ++row)
    for (uint64_t first = row * columns; first < (row + 1) * columns; first += shared) {
      const SharedPower power =
          RowBlocks{&codes[first / 2], &scales[first / blockK]}.powerOf(shared / blockK);
      for (uint64_t at = first; at < first + shared; at += tileColumns) {
        const uint64_t tile = row / tileRows * perRow + at % columns / tileColumns;
        storeWord(RowBlocks{&codes[at / 2], &scales[at / blockK]}.word(power),
                  &packed[tile * uint64_t(hw::byteTileBytes) +
                          hw::byteRowWord(unsigned(row % tileRows))]);
      }
    }
}

Expected<std::vector<uint8_t>> packByteWeights(std::span<const uint8_t> codes,
                                               std::span<const uint8_t> scales, uint64_t rows,
                                               uint64_t columns, PowersOf powers) {
  const Sizes given{rows, columns};
  std::vector<uint8_t> packed(given.bytesOfTiles());
  FP4_TRY(check(given, codes.size(), scales.size(), packed.size()));
  const WholeWeights all(given, codes, scales);
  for (uint64_t tile = 0; tile * uint64_t(hw::byteTileBytes) < packed.size(); ++tile) {
    uint8_t *out = &packed[tile * uint64_t(hw::byteTileBytes)];
    const auto [row, column] = placeOf(tile, all.sizes.columns);
    for (unsigned i = 0; i < hw::byteWords; ++i) {
      const hw::ByteWord word = hw::byteWord(i);
      const uint8_t *in =
          &all.codes[((row + word.row) * all.sizes.columns + column + word.column) / 2];
      storeWord(placeCodes(loadHalf(in), loadHalf(in + 8)), out + word.byte);
    }
  }
  packWords(all.codes, all.scales, all.sizes.rows, all.sizes.columns, powers, packed);
  return packed;
}

/// Codes and scales of whole tiles, of `sizes`.
static UnpackedWeights unpackTiles(std::span<const uint8_t> tiles, const Sizes &sizes) {
  UnpackedWeights result{std::vector<uint8_t>(sizes.codes().size()),
                         std::vector<uint8_t>(sizes.scales().size())};
  for (uint64_t tile = 0; tile * uint64_t(hw::byteTileBytes) < tiles.size(); ++tile) {
    const uint8_t *in = &tiles[tile * uint64_t(hw::byteTileBytes)];
    const auto [row, column] = placeOf(tile, sizes.columns);
    for (unsigned i = 0; i < hw::byteWords; ++i) {
      const hw::ByteWord word = hw::byteWord(i);
      uint8_t *out = &result.codes[((row + word.row) * sizes.columns + column + word.column) / 2];
      const uint32_t both = takeCodes(loadWord(in + word.byte));
      storeHalf(both & 0xFFFF, out);
      storeHalf(both >> 16, out + 8);
    }
    for (uint64_t r = 0; r < tileRows; ++r)
      for (unsigned j = 0; j < blocks; ++j)
        result.scales[((row + r) * sizes.columns + column) / blockK + j] =
            scaleOf(loadWord(in + hw::byteRowWord(unsigned(r))), j);
  }
  return result;
}

Expected<UnpackedWeights> unpackByteWeights(std::span<const uint8_t> tiles, uint64_t rows,
                                            uint64_t columns) {
  const Sizes sizes{rows, columns}, whole = sizes.whole();
  FP4_TRY(check(sizes, sizes.codes().size(), sizes.scales().size(), tiles.size()));
  const UnpackedWeights all = unpackTiles(tiles, whole);
  return UnpackedWeights{resizeMatrix(all.codes, whole.codes(), sizes.codes(), 0),
                         resizeMatrix(all.scales, whole.scales(), sizes.scales(), 0)};
}

Expected<ByteWeights> decodeByteWeights(std::span<const uint8_t> tiles, uint64_t rows,
                                        uint64_t columns) {
  const Sizes sizes{rows, columns}, whole = sizes.whole();
  FP4_TRY(check(sizes, sizes.codes().size(), sizes.scales().size(), tiles.size()));
  const uint64_t perRow = whole.columns / tileColumns;
  ByteWeights result{std::vector<uint8_t>(whole.elements().size()),
                     std::vector<float>(whole.rows * perRow)};
  for (uint64_t tile = 0; tile * uint64_t(hw::byteTileBytes) < tiles.size(); ++tile) {
    const uint8_t *in = &tiles[tile * uint64_t(hw::byteTileBytes)];
    const auto [row, column] = placeOf(tile, whole.columns);
    for (unsigned i = 0; i < hw::byteWords; ++i) {
      const hw::ByteWord word = hw::byteWord(i);
      const uint32_t codes = loadWord(in + word.byte);
      const uint32_t ofRow = loadWord(in + hw::byteRowWord(word.row));
      const unsigned exponent = ofRow >> word.column / blockK * 4 & 15;
      uint8_t *out = &result.elements[(row + word.row) * whole.columns + column + word.column];
      storeWord(elementsOf(codes, codes, exponent), out);
      storeWord(elementsOf(codes >> 16, codes << 4, exponent), out + 16);
    }
    for (uint64_t r = 0; r < tileRows; ++r)
      result.powers[(row + r) * perRow + column / tileColumns] =
          std::bit_cast<float>(loadWord(in + hw::byteRowWord(unsigned(r))) & hw::bytePowerMask);
  }
  result.elements = resizeMatrix(result.elements, whole.elements(), sizes.elements(), 0);
  result.powers.resize(rows * perRow);
  return result;
}

std::optional<FarScales> findFarScales(std::span<const uint8_t> codes,
                                       std::span<const uint8_t> scales, uint64_t rows,
                                       uint64_t columns, PowersOf powers) {
  const WholeWeights all({rows, columns}, codes, scales);
  const uint64_t width = all.sizes.columns, shared = columnsOfPower(powers, width);
  for (uint64_t first = 0; shared && first < rows * width; first += shared) {
    const SharedPower power =
        RowBlocks{&all.codes[first / 2], &all.scales[first / blockK]}.powerOf(shared / blockK);
    if (!power.hasNaN && power.isFar())
      return FarScales{first / width, first % width, power.smallest(), power.largest};
  }
  return std::nullopt;
}

} // namespace fp4::numerics
