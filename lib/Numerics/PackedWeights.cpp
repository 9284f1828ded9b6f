// Packing of weights into tiles, and back.
#include "fp4/Numerics/PackedWeights.h"
#include "fp4/ISA/WeightLayout.h"
#include "fp4/Support/Error.h"

#include "WholeTiles.h"

#include <array>
#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace fp4::numerics {
namespace {

constexpr uint8_t nanE4M3 = 0x7F, nanE5M3 = 0xFF;

/// Sizes of weights in whole tiles, and the places of their parts.
struct Shape {
  BlockFormat format;
  uint64_t rows, columns;

  unsigned block() const { return blockSizeOf(format); }
  uint64_t tileBytes() const { return uint64_t(hw::weightTileBytes(block())); }
  uint64_t tiles() const {
    return rows / uint64_t(hw::weightTileRows) * (columns / uint64_t(hw::weightTileColumns));
  }
  /// First row and column of a tile.
  uint64_t rowOf(uint64_t tile) const {
    return tile / (columns / uint64_t(hw::weightTileColumns)) * uint64_t(hw::weightTileRows);
  }
  uint64_t columnOf(uint64_t tile) const {
    return tile % (columns / uint64_t(hw::weightTileColumns)) * uint64_t(hw::weightTileColumns);
  }
  uint64_t codeByte(uint64_t row, uint64_t column) const { return (row * columns + column) / 2; }
  uint64_t scaleByte(uint64_t row, uint64_t column) const {
    return (row * columns + column) / block();
  }
};

/// Weights of any size, and the shape of their whole tiles.
struct Sizes {
  BlockFormat format;
  uint64_t rows, columns;

  Shape whole() const {
    return {
        format, uint64_t(hw::weightTilesOfRows(int64_t(rows)) * hw::weightTileRows),
        uint64_t(hw::quotientUp(int64_t(columns), hw::weightTileColumns) * hw::weightTileColumns)};
  }
  ByteShape codes() const { return {rows, columns / 2}; }
  ByteShape scales() const { return {rows, columns / blockSizeOf(format)}; }
};
Sizes sizesOf(const Shape &shape) { return {shape.format, shape.rows, shape.columns}; }

Status check(const Sizes &sizes, size_t codes, size_t scales, size_t tiles) {
  const Shape whole = sizes.whole();
  if (isPacked(sizes.format) && sizes.columns % whole.block() == 0 &&
      codes == sizes.codes().size() && scales == sizes.scales().size() &&
      tiles == whole.tiles() * whole.tileBytes())
    return {};
  return makeError(ErrorKind::Usage,
                   fmt::format("prepacked weights must have 4 bits and whole scale blocks, with "
                               "their tiles, but got {} x {} of {}",
                               sizes.rows, sizes.columns, stringify(sizes.format)),
                   "pad the columns with zeros before the weights are quantized");
}

/// Bits of the codes in a byte, at the places that they have in a pair of bf16.
uint32_t spreadPair(uint8_t byte) {
  const uint32_t low = byte & 15, high = byte >> 4;
  const auto place = [](uint32_t code) { return (code & 7) << 6 | (code & 8) << 12; };
  return place(low) | place(high) << 16;
}
uint8_t gatherPair(uint32_t pair) {
  const auto code = [](uint32_t half) { return (half >> 6 & 7) | (half >> 12 & 8); };
  return uint8_t(code(pair) | code(pair >> 16) << 4);
}

/// The words of two instructions, which share bits.
using TwoWords = std::array<uint32_t, 2>;

void placePair(TwoWords &words, unsigned word, unsigned j, uint32_t pair) {
  for (const hw::WeightPart &part : hw::weightParts[word][j])
    words[part.word] |= std::rotr(pair & part.mask, int(part.rotation));
}
uint32_t takePair(const TwoWords &words, unsigned word, unsigned j) {
  uint32_t pair = 0;
  for (const hw::WeightPart &part : hw::weightParts[word][j])
    pair |= std::rotl(words[part.word], int(part.rotation)) & part.mask;
  return pair;
}

/// Mixes the bits of two words; a second call undoes the first.
void mix(TwoWords &words) {
  for (const hw::WeightMix &step : hw::weightMixes)
    step(words);
}

/// Rotates all words of scales of a tile to the left.
void rotateScales(uint8_t *tile, const Shape &shape, int by) {
  for (auto at = uint64_t(hw::weightCodeBytes); at < shape.tileBytes(); at += sizeof(uint32_t)) {
    uint32_t word;
    std::memcpy(&word, tile + at, sizeof(word));
    word = std::rotl(word, by);
    std::memcpy(tile + at, &word, sizeof(word));
  }
}

/// Row and column of pair j of a word, in its tile.
std::pair<unsigned, unsigned> placeOf(const hw::WeightWord &word, unsigned j) {
  return {word.row + j % 2 * 8, word.column + j / 2 * 8};
}

} // namespace

uint8_t widenScale(uint8_t e4m3) {
  const uint8_t magnitude = e4m3 & 0x7F;
  if (magnitude == nanE4M3)
    return nanE5M3;
  if (magnitude >= 8 || magnitude == 0)
    return uint8_t(magnitude ? magnitude + (15 << 3) : 0);
  const int shift = 4 - std::bit_width(magnitude); // to a leading bit of 8
  return uint8_t(((16 - shift) << 3) + ((magnitude << shift) & 7));
}

uint8_t narrowScale(uint8_t e5m3) {
  if (e5m3 == nanE5M3)
    return nanE4M3;
  const int exponent = e5m3 >> 3, fraction = e5m3 & 7;
  if (exponent >= 16 || exponent == 0)
    return uint8_t(exponent ? e5m3 - (15 << 3) : 0);
  return uint8_t((8 + fraction) >> (16 - exponent));
}

static std::vector<uint8_t> packTiles(const Shape &shape, std::span<const uint8_t> codes,
                                      std::span<const uint8_t> scales) {
  const BlockFormat format = shape.format;
  std::vector<uint8_t> packed(shape.tiles() * shape.tileBytes());
  for (uint64_t tile = 0; tile < shape.tiles(); ++tile) {
    uint8_t *out = &packed[tile * shape.tileBytes()];
    const uint64_t row = shape.rowOf(tile), column = shape.columnOf(tile);
    for (unsigned i = 0; i < hw::weightWords; i += 2) {
      TwoWords bits{};
      for (unsigned j = 0; j < 8; ++j) {
        const auto [r, c] = placeOf(hw::weightWord(i + j / 4), j % 4);
        const bool isZero =
            !isMX(format) && (scales[shape.scaleByte(row + r, column + c)] & 0x7F) == 0;
        const uint8_t byte = isZero ? 0 : codes[shape.codeByte(row + r, column + c)];
        placePair(bits, j / 4, j % 4, spreadPair(byte));
      }
      mix(bits);
      std::memcpy(out + hw::weightWord(i).byte, bits.data(), sizeof(bits));
    }
    const unsigned perRow = unsigned(hw::weightTileColumns) / shape.block();
    for (unsigned r = 0; r < unsigned(hw::weightTileRows); ++r) {
      uint8_t *target = out + hw::weightScaleByte(r, shape.block());
      std::memcpy(target, &scales[shape.scaleByte(row + r, column)], perRow);
      for (unsigned s = 0; s < perRow && !isMX(format); ++s)
        target[s] = widenScale(target[s]);
    }
    rotateScales(out, shape, int(hw::weightScaleRotation(shape.block())));
  }
  return packed;
}

Expected<std::vector<uint8_t>> packWeights(BlockFormat format, std::span<const uint8_t> codes,
                                           std::span<const uint8_t> scales, uint64_t rows,
                                           uint64_t columns) {
  const Sizes sizes{format, rows, columns};
  const Shape whole = sizes.whole();
  FP4_TRY(check(sizes, codes.size(), scales.size(), whole.tiles() * whole.tileBytes()));
  return packTiles(whole, resizeMatrix(codes, sizes.codes(), sizesOf(whole).codes(), 0),
                   resizeMatrix(scales, sizes.scales(), sizesOf(whole).scales(),
                                hw::weightPaddingScale(whole.block())));
}

static UnpackedWeights unpackTiles(const Shape &shape, std::span<const uint8_t> tiles) {
  const BlockFormat format = shape.format;
  UnpackedWeights result{std::vector<uint8_t>(sizesOf(shape).codes().size()),
                         std::vector<uint8_t>(sizesOf(shape).scales().size())};
  for (uint64_t tile = 0; tile < shape.tiles(); ++tile) {
    std::vector<uint8_t> copy(tiles.begin() + int64_t(tile * shape.tileBytes()),
                              tiles.begin() + int64_t((tile + 1) * shape.tileBytes()));
    uint8_t *in = copy.data();
    rotateScales(in, shape, -int(hw::weightScaleRotation(shape.block())));
    const uint64_t row = shape.rowOf(tile), column = shape.columnOf(tile);
    for (unsigned i = 0; i < hw::weightWords; i += 2) {
      TwoWords bits;
      std::memcpy(bits.data(), in + hw::weightWord(i).byte, sizeof(bits));
      mix(bits);
      for (unsigned j = 0; j < 8; ++j) {
        const auto [r, c] = placeOf(hw::weightWord(i + j / 4), j % 4);
        result.codes[shape.codeByte(row + r, column + c)] =
            gatherPair(takePair(bits, j / 4, j % 4));
      }
    }
    const unsigned perRow = unsigned(hw::weightTileColumns) / shape.block();
    for (unsigned r = 0; r < unsigned(hw::weightTileRows); ++r) {
      uint8_t *target = &result.scales[shape.scaleByte(row + r, column)];
      std::memcpy(target, in + hw::weightScaleByte(r, shape.block()), perRow);
      for (unsigned s = 0; s < perRow && !isMX(format); ++s)
        target[s] = narrowScale(target[s]);
    }
  }
  return result;
}

Expected<UnpackedWeights> unpackWeights(BlockFormat format, std::span<const uint8_t> tiles,
                                        uint64_t rows, uint64_t columns) {
  const Sizes sizes{format, rows, columns};
  FP4_TRY(check(sizes, sizes.codes().size(), sizes.scales().size(), tiles.size()));
  const Sizes whole = sizesOf(sizes.whole());
  const UnpackedWeights all = unpackTiles(sizes.whole(), tiles);
  return UnpackedWeights{resizeMatrix(all.codes, whole.codes(), sizes.codes(), 0),
                         resizeMatrix(all.scales, whole.scales(), sizes.scales(), 0)};
}

} // namespace fp4::numerics
