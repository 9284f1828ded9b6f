//===- WeightLayout.h - Weights in the order of a tensor core's registers -===//
//
// wgmma takes 64 rows of operand A from the registers of a warpgroup. For every 16 columns, thread
// 32 w + 4 i + c has eight elements of rows 16 w + i and 16 w + i + 8 of these 64:
//
//   pair     0            1            2                3
//   row      i            i + 8        i                i + 8
//   columns  2 c, + 1     2 c, + 1     2 c + 8, + 9     2 c + 8, + 9
//
// A tile of `#fp4.weight_layout<wgmma>` has 128 rows and 64 columns. It begins with the codes: of the
// first 64 rows and of the second, of each of 128 threads, a word for each 16 columns, four in
// all. Then come the scales: of each row i the 64 / block of row i and those of row i + 8.
//
// A pair of codes becomes a pair of bf16 in its register by rotations of the word to the right and
// masks: sign, exponent and fraction of a code stand in bits 15 and 8 to 6 of a bf16, and the bits of
// four such pairs do not fit beside each other, so that the highest exponent bit of the last pair is
// elsewhere. `weightRotation` and `weightRotationOfTop` are these amounts.
//
// Four scales are in a word: of nvfp4 those of a row, of mxfp4 the two of row i and the two of row
// i + 8. A word of nvfp4 is rotated to the left by 4: then two of its scales are in the bits 11 to 4 of
// both halves, where a bf16 has its lower exponent and its upper fraction bits, and the other two are
// after a rotation by 8. A word of mxfp4 is rotated by 7, which brings bytes into the exponent.
//
// Source: PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma.mma_async.
//
//===----------------------------------------------------------------------===//
#pragma once

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

/// Rotations to the right that bring pair j of a word into its place, and the highest exponent bit.
inline constexpr std::array<unsigned, 4> weightRotation = {10, 14, 4, 8};
inline constexpr std::array<unsigned, 4> weightRotationOfTop = {10, 14, 4, 0};
/// Bits of a pair in its place: of both codes, and the highest exponent bits alone.
inline constexpr uint32_t weightPairMask = 0x81C081C0, weightTopMask = 0x01000100;
/// By how much a word of four scales is rotated to the left.
constexpr unsigned weightScaleRotation(int64_t block) { return block == 16 ? 4 : 7; }
/// The bits of two scales of nvfp4 and of mxfp4.
inline constexpr uint32_t weightScaleMask = 0x0FF00FF0, weightPowerMask = 0x7F807F80;

/// Where the eight codes of one thread and 16 columns are, within a tile.
struct WeightWord {
  unsigned byte;   ///< of the word
  unsigned row;    ///< of pairs 0 and 2; that of 1 and 3 is 8 below
  unsigned column; ///< of pairs 0 and 1; that of 2 and 3 is 8 behind
};
/// Words of a tile in the order of memory.
inline constexpr unsigned weightWords = weightCodeBytes / 4;
constexpr WeightWord weightWord(unsigned index) {
  const unsigned step = index % 4, thread = index / 4 % 128, group = index / 512;
  return {4 * index, group * 64 + thread / 32 * 16 + thread % 32 / 4,
          step * 16 + thread % 4 * 2};
}

/// Where the scales of `row` begin within a tile.
constexpr unsigned weightScaleByte(unsigned row, unsigned block) {
  const unsigned perRow = unsigned(weightTileColumns) / block;
  const unsigned pair = row / 16 * 8 + row % 8, lower = row / 8 % 2;
  return unsigned(weightCodeBytes) + (pair * 2 + lower) * perRow;
}

} // namespace fp4::hw
