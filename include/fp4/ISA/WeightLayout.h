//===- WeightLayout.h - Weights in the order of a tensor core's registers -===//
//
// wgmma takes 64 rows of operand A from the registers of a warpgroup. For every 16 columns, thread
// 32 w + 4 i + c has eight elements of rows 16 w + i and 16 w + i + 8 of these 64:
//
//   pair     0            1            2                3
//   row      i            i + 8        i                i + 8
//   columns  2 c, + 1     2 c, + 1     2 c + 8, + 9     2 c + 8, + 9
//
// A tile of `#fp4.weight_layout<wgmma>` has 128 rows and 64 columns. The tile begins with the
// codes: for the first 64 rows and then for the second, each of 128 threads has a word for each 16
// columns, four in all. The scales follow: for each row i the 64 / block scales of row i and then
// those of row i + 8.
//
// A pair of codes becomes a pair of bf16 in its register by a rotation of its word to the left and
// a mask: sign, exponent and fraction of a code stand in bits 15 and 8 to 6 of a bf16. The bits of
// four such pairs do not fit beside each other in a word: with three pairs in their places, bits
// are left of which one more rotation brings three quarters. The words of two instructions
// therefore share what is left, x of the first and y of the second:
//
//   pair     0     1              2               3
//   x        x     rotl(x, 6)     rotl(x, 12)     rotl(x, 2) ^ rotl(y, 4)
//   y        y     rotl(y, 6)     rotl(y, 10)     bytes 1 and 3 of rotl(y, 4) as bytes 0 and 2, and
//                                                 bytes 0 and 2 of rotl(x, 2) as bytes 1 and 3
//
// each under the same mask. The eight pairs take seven shifts, rotations and permutations.
// `weightParts` gives the place of the bits of each pair, and `weightMixes` cancels the bits that
// stand in the way of others in the exclusive or.
//
// Four scales are in a word: of nvfp4 those of a row, of mxfp4 the two of row i and the two of row
// i + 8. A word of nvfp4 is rotated to the left by 4: then two of its scales are in the bits 11 to
// 4 of both halves, where a bf16 has its lower exponent and its upper fraction bits, and the other
// two are after a rotation by 8. A word of mxfp4 is rotated by 7, which brings bytes into the
// exponent.
//
// Tiles for activations of e4m3 are those of mxfp4 alone. Each has 128 rows and 128 columns, the
// scale blocks of one row share a power of two, and their weights become e4m3. For every 32
// columns, thread 32 w + 4 i + c has eight elements of each of its two rows, the columns 4 c to 4 c
// + 3 and those 16 behind. The eight elements are a word, nibble n with the magnitude of element n
// in its lower three bits. The signs of elements 0 to 3 are the upper bits of nibbles 1, 3, 5 and
// 7, and those of elements 4 to 7 the upper bits of nibbles 0, 2, 4 and 6. The tile begins with the
// words: of 64 rows each, of the first 64 columns and then of the others, of each thread, four: by
// 32 columns, and of these by row. Then comes a word for each row, of row i and of row i + 8 in
// turn: nibble j of it is the exponent of block j, from 0 to 11, plus 5, bits 30 to 23 are the
// exponent of the power of two with a bias of 127, and bit 22 says that the row is NaN there. A
// weight is code * 2^(nibble - 5) * 2^(exponent - 127), and code * 2^(nibble - 5) is a normal e4m3,
// or zero.
//
// Weights whose rows or columns end within a tile have whole tiles all the same. The codes behind
// them are zero, and so are the scales there, which are 1 of mxfp4 (`weightPaddingScale`).
//
// Source: PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma.mma_async.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/BufferShape.h"

#include <array>
#include <cstdint>

namespace fp4::hw {

inline constexpr int64_t weightTileRows = 128, weightTileColumns = 64;
/// Rows that one warpgroup has, elements of K of one instruction, and instructions in a tile.
inline constexpr int64_t weightGroupRows = 64, weightStepColumns = 16, weightSteps = 4;
inline constexpr int64_t weightCodeBytes = weightTileRows * weightTileColumns / 2;
/// Codes of one warpgroup, and of one thread.
inline constexpr int64_t weightGroupBytes = weightCodeBytes / 2, weightThreadBytes = 16;

/// Bytes of scales in a tile, and of a whole tile, where `block` elements share a scale.
constexpr int64_t weightScaleBytes(int64_t block) {
  return weightTileRows * weightTileColumns / block;
}
constexpr int64_t weightTileBytes(int64_t block) {
  return weightCodeBytes + weightScaleBytes(block);
}

/// Tiles along the rows of weights.
constexpr int64_t weightTilesOfRows(int64_t rows) { return quotientUp(rows, weightTileRows); }
/// The scale of a scale block behind the weights: 0 of nvfp4, and 1 of mxfp4, which is small.
constexpr uint8_t weightPaddingScale(int64_t block) { return block == 16 ? 0 : 127; }

/// A rotation to the left of word 0 or 1 of two, for its pairs. A shift serves as well if no bit
/// that the mask takes goes around; the pipe that multiplies integers can execute the shift, while
/// the other pipe has the masks.
struct WeightMove {
  unsigned by;
  bool goesAround;
};
inline constexpr std::array<std::array<WeightMove, 4>, 2> weightMoves = {
    {{{{0, false}, {6, false}, {12, true}, {2, true}}},
     {{{0, false}, {6, false}, {10, true}, {4, false}}}}};
/// The bytes of the last moves of both words that pair 3 of word 1 has, as prmt takes them.
inline constexpr uint32_t weightLastBytes = 0x2705;

/// Bits of a pair that `word` has, and the rotation to the left that brings them into their place.
struct WeightPart {
  unsigned word, rotation;
  uint32_t mask;
};
/// Places of the bits of the pairs of word 0 and of word 1, once the words are no longer mixed.
inline constexpr std::array<std::array<std::array<WeightPart, 2>, 4>, 2> weightParts = {
    {{{{{{0, 0, 0x81C081C0}, {}}},
       {{{0, 6, 0x81C081C0}, {}}},
       {{{0, 12, 0x81C081C0}, {}}},
       {{{0, 2, 0x80408040}, {1, 4, 0x01800180}}}}},
     {{{{{1, 0, 0x81C081C0}, {}}},
       {{{1, 6, 0x81C081C0}, {}}},
       {{{1, 10, 0x81C081C0}, {}}},
       {{{0, 10, 0x81008100}, {1, 28, 0x00C000C0}}}}}}};
/// Last step for both words: `word` ^= shift(the other, by) & mask, where `by` is to the right, or
/// to the left where it is negative. A step does not change what the other step reads, so each is
/// its own inverse.
struct WeightMix {
  unsigned word;
  int by;
  uint32_t mask;
  template <typename Words> constexpr void operator()(Words &words) const {
    const auto other = words[1 - word];
    words[word] ^= (by > 0 ? other >> by : other << -by) & mask;
  }
};
inline constexpr std::array<WeightMix, 2> weightMixes = {{{0, -2, 0x20102010}, {1, 2, 0x00180018}}};
/// Bits of a pair in its place.
inline constexpr uint32_t weightPairMask = 0x81C081C0;
/// Bits by which a word of four scales is rotated to the left.
constexpr unsigned weightScaleRotation(int64_t block) { return block == 16 ? 4 : 7; }
/// The bits of two scales of nvfp4 and of mxfp4.
inline constexpr uint32_t weightScaleMask = 0x0FF00FF0, weightPowerMask = 0x7F807F80;
/// The byte 4 in the place of each of the four scales in a word of mxfp4, and the upper bits of
/// these places. Bit 0 of the last byte is bit 31 of the word and its other bits are bits 0 to 6,
/// which a difference does not notice, because 4 does not have bit 0.
inline constexpr uint32_t weightFours = 0x02020202, weightUpperBits = 0x40404040;
/// 0 if all four scales are 2^-123 to 16, the bytes 4 to 131: less 4 they do not have the upper
/// bit, and others do. A byte below 4 borrows from the next one, but then has that bit itself. A
/// template, so that kernels emit it (Int32 of KernelArithmetic).
template <typename Int> constexpr Int powersThatAreNotSmall(Int word) {
  return (word - weightFours) & weightUpperBits;
}

/// Place within a tile of the eight codes of one thread and 16 columns.
struct WeightWord {
  unsigned byte;   ///< offset of the word
  unsigned row;    ///< row of pairs 0 and 2; that of 1 and 3 is 8 below
  unsigned column; ///< column of pairs 0 and 1; that of 2 and 3 is 8 behind
};
/// Words of a tile in the order of memory.
inline constexpr unsigned weightWords = weightCodeBytes / 4;
constexpr WeightWord weightWord(unsigned index) {
  const unsigned step = index % 4, thread = index / 4 % 128, group = index / 512;
  return {4 * index, group * 64 + thread / 32 * 16 + thread % 32 / 4, step * 16 + thread % 4 * 2};
}

/// Byte at which the scales of `row` begin within a tile.
constexpr unsigned weightScaleByte(unsigned row, unsigned block) {
  const unsigned perRow = unsigned(weightTileColumns) / block;
  const unsigned pair = row / 16 * 8 + row % 8, lower = row / 8 % 2;
  return unsigned(weightCodeBytes) + (pair * 2 + lower) * perRow;
}

//===--- Tiles for activations of e4m3 -----------------------------------===//

inline constexpr int64_t byteTileColumns = 128, byteStepColumns = 32, byteSteps = 4;
inline constexpr int64_t byteCodeBytes = weightTileRows * byteTileColumns / 2;
/// Codes of one warpgroup, of 64 columns of it, and of one thread there.
inline constexpr int64_t byteGroupBytes = byteCodeBytes / 2, byteHalfBytes = byteGroupBytes / 2,
                         byteThreadBytes = 16;
inline constexpr int64_t byteTileBytes = byteCodeBytes + weightTileRows * 4;

/// Columns of a tile of so many bytes.
constexpr int64_t weightColumnsOf(int64_t tileBytes) {
  return tileBytes == byteTileBytes ? byteTileColumns : weightTileColumns;
}
/// Tiles of so many bytes along the columns of weights.
constexpr int64_t weightTilesOfColumns(int64_t columns, int64_t tileBytes) {
  return quotientUp(columns, weightColumnsOf(tileBytes));
}

/// Bias that is added to the exponent of a block, and the largest sum: the magnitudes 1/2 to 6 of
/// codes are normal numbers of e4m3 between 2^-6 and 384.
inline constexpr int byteExponentBias = 5, byteMostExponent = 11;
/// Bits of the word of a row: the power of two, and NaN.
inline constexpr uint32_t bytePowerMask = 0x7FC00000, byteNaN = 0x7FC00000;
/// The e4m3 of the eight magnitudes in a block whose exponent is 0, and what each exponent more
/// adds.
inline constexpr uint32_t byteMagnitudes[] = {0x14100800, 0x24201C18};
inline constexpr uint32_t byteExponentSteps[] = {0x08080800, 0x08080808};

/// Place within a tile of the eight codes of one thread, row and 32 columns.
struct ByteWord {
  unsigned byte; ///< offset of the word
  unsigned row;
  unsigned column; ///< column of elements 0 to 3; the others are 16 behind
};
inline constexpr unsigned byteWords = byteCodeBytes / 4;
constexpr ByteWord byteWord(unsigned index) {
  const unsigned lower = index % 2, thread = index / 4 % 128, half = index / 512 % 2;
  const unsigned step = half * 2 + index / 2 % 2, group = index / 1024;
  return {4 * index, group * 64 + thread / 32 * 16 + thread % 32 / 4 + lower * 8,
          step * 32 + thread % 4 * 4};
}
/// Byte of the word of `row` within a tile. A template, so that kernels emit it.
template <typename Int> constexpr Int byteRowWord(Int row) {
  return (row / 16 * 16 + row % 8 * 2 + row / 8 % 2) * 4 + uint32_t(byteCodeBytes);
}

} // namespace fp4::hw
