//===- ScaleLayout.h - Layouts of scales: global, shared, TMEM ------------===//
//
// Block scales travel in one shape from global memory to tensor memory, "tiled 128x4": scale tiles
// of 128 rows x 4 scales (512 bytes, one byte per scale), rows of tiles first:
//
//   offset(row, b) = ((row/128) * ceil(B/4) + b/4) * 512 + (row%32)*16 + (row%128/32)*4 + b%4
//
// A 512-byte scale tile copied unchanged to shared memory and then by tcgen05.cp.32x128b.warpx4 to
// tensor memory puts scale (row, b) into TMEM lane row%32 (and +32, +64, +96), column row%128/32,
// byte b%4, which is where tcgen05.mma looks for it.
//
// The functions below are the only places where the layout is spelled. The functions that kernels
// need too are templates over the integer: uint64_t on the host; in a kernel Int32
// (KernelArithmetic), whose operators emit the arithmetic. A `Count` is a plain integer, or an
// Int32 where it is dynamic.
//
// Sources: PTX ISA, "Scale factor layout" (tcgen05.mma block scaling); CUTLASS
// detail/sm100_blockscaled_layout.hpp; torchao to_blocked; cuBLASLt's block scaling documentation.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/InstrDescriptor.h"
#include "fp4/ISA/TmemLayout.h"
#include "fp4/Support/Error.h"
#include <cstdint>
#include <string>

namespace fp4::hw {

inline constexpr uint64_t scaleBlockRows = 128;
inline constexpr uint64_t scaleBlockColumns = 4;
inline constexpr uint64_t scaleBlockBytes = 512;

/// Scales of one row of `k` elements with blocks of `blockSize` (16 or 32).
constexpr uint64_t scalesPerRow(uint64_t k, uint64_t blockSize) {
  return (k + blockSize - 1) / blockSize;
}

//===--- Global and shared memory ----------------------------------------===//

/// The number of the 512-byte scale tile in row `rowBlock` and column `blockColumn` of the scale
/// tiles, of which a row has `columns`.
template <typename Int, typename Count>
constexpr Int scaleBlockIndex(Int rowBlock, Int blockColumn, Count columns) {
  return rowBlock * columns + blockColumn;
}

/// Offset in its 512-byte scale tile of the four scales of `row` that are there.
template <typename Int> constexpr Int scaleWordInBlock(Int row) {
  return row % 32 * 16 + row % 128 / 32 * 4;
}

/// Offset of scale (row, block) in its 512-byte scale tile.
template <typename Int> constexpr Int scaleOffsetInBlock(Int row, Int block) {
  return scaleWordInBlock(row) + block % 4;
}

/// The number of the scale tile of a half of the rows and of four columns, where halves are side by
/// side: the scales of B of a pair with 128 rows, as one tcgen05.cp.64x128b.warpx2 takes them.
template <typename Int> constexpr Int scaleHalfIndex(Int half, Int blockColumn) {
  return blockColumn * 2 + half;
}

/// Sixteen bytes of a scale tile hold the four scales of `row`, row + 32, row + 64 and row + 96.
inline constexpr uint64_t scaleUnitBytes = 16, scaleUnitRowStep = 32;

template <typename Int> struct ScaleUnit {
  Int row, blockColumn;
};
/// Place of the scales of the 16 bytes with number `unit` of a buffer; `columns` as above.
template <typename Int, typename Count> constexpr ScaleUnit<Int> scaleUnit(Int unit, Count columns) {
  Int tile = unit / scaleUnitRowStep;
  return {tile / columns * scaleBlockRows + unit % scaleUnitRowStep, tile % columns};
}

/// Byte offset of scale (row, block) of a matrix with `numBlocks` scales per row.
constexpr uint64_t tiled128x4Offset(uint64_t row, uint64_t block, uint64_t numBlocks) {
  return scaleBlockIndex(row / scaleBlockRows, block / scaleBlockColumns, (numBlocks + 3) / 4) *
             scaleBlockBytes +
         scaleOffsetInBlock(row, block);
}

/// Bytes of a tiled scale matrix, padding (zeros) included.
constexpr uint64_t tiled128x4Bytes(uint64_t rows, uint64_t numBlocks) {
  return (rows + 127) / 128 * ((numBlocks + 3) / 4) * scaleBlockBytes;
}

/// FlashInfer's layout for small M: blocks of 8 rows x 4 scales (32 bytes), row-block major.
constexpr uint64_t tiled8x4Offset(uint64_t row, uint64_t block, uint64_t numBlocks) {
  const uint64_t tilesPerRow = (numBlocks + 3) / 4;
  return ((row / 8) * tilesPerRow + block / 4) * 32 + row % 8 * 4 + block % 4;
}
constexpr uint64_t tiled8x4Bytes(uint64_t rows, uint64_t numBlocks) {
  return (rows + 7) / 8 * ((numBlocks + 3) / 4) * 32;
}

/// TransformerEngine's layout before the swizzle: row-major, rows of a multiple of 4 scales, a
/// multiple of 128 rows. The layout takes as many bytes as tiled 128x4.
constexpr uint64_t padded128x4Offset(uint64_t row, uint64_t block, uint64_t numBlocks) {
  return row * ((numBlocks + 3) / 4 * 4) + block;
}

/// The scale at a byte offset; the inverse of tiled128x4Offset. Padding gives row >= rows or
/// block >= numBlocks.
struct ScalePosition {
  uint64_t row = 0, block = 0;
  bool operator==(const ScalePosition &) const = default;
};
ScalePosition tiled128x4Position(uint64_t offset, uint64_t numBlocks);

//===--- Tensor memory ---------------------------------------------------===//

/// A scale byte in tensor memory, TMEM lane and column relative to the scale operand's address.
struct ScaleCell {
  uint32_t lane = 0, column = 0, byte = 0;
  bool operator==(const ScaleCell &) const = default;
};

/// The matrix to which the scales belong, and the spread of the MMA over CTAs.
enum class ScaleOperand : uint8_t {
  Rows, ///< SFA of 128 rows per CTA (cta_group 1, or cta_group 2 with M 256); SFB of the same
  RowsPairM128,   ///< SFA of cta_group 2 with M 128: 64 rows per CTA, two columns
  ColumnsPairM128 ///< SFB of cta_group 2 with M 128: N halves in TMEM lanes 0-63 and 64-127
};

/// Returns the place where the MMA reads scale `block` (0 .. scale_vec-1) of `row` (local row of A,
/// or column index n of B). `id` is the instruction descriptor's scale id. The four quadrants of
/// TMEM lanes hold copies; `quadrant` selects one. `n` is the N of the MMA (used only by
/// ColumnsPairM128, where quadrants 0 and 1 are the copies 0 and 1 of the half that holds the row).
ScaleCell scaleCell(unsigned row, unsigned block, unsigned id, unsigned quadrant,
                    ScaleOperand operand = ScaleOperand::Rows, unsigned n = 0);

/// The quadrant whose copy the MMA reads for a TMEM lane. [uncertain] Not documented; all
/// quadrants must hold the same data.
constexpr unsigned scaleReadQuadrant(unsigned accumulatorLane) { return accumulatorLane / 32; }

/// Columns that the scales of `rows` rows take for one 512-byte scale tile deep K step: 4 per 128
/// rows, because tcgen05.cp.32x128b writes whole scale tiles.
constexpr unsigned scaleColumns(unsigned rows) { return (rows + 127) / 128 * 4; }

/// Column, relative to the tile's scale buffer, of 512-byte scale tile (rowBlock, kBlock) of a tile
/// of `rowBlocks` rows of scale tiles: scale tiles that one MMA reads together are adjacent.
constexpr unsigned scaleTileColumn(unsigned rowBlock, unsigned kBlock, unsigned rowBlocks) {
  return (kBlock * rowBlocks + rowBlock) * 4;
}

/// Scales of a row that one MMA reads: as many as the name of `vector` says; 6 or 3 of K = 96;
/// twice as many of the double K.
constexpr unsigned scalesOfMma(ScaleVector vector, MmaDepth depth) {
  const auto single = static_cast<unsigned>(vector);
  return depth == MmaDepth::Single ? single : depth == MmaDepth::K96 ? single * 3 / 2 : 2 * single;
}

/// Position of the scales of K step `step`, of which each has `scales` of a row: the 512-byte scale
/// tile along K and the id for the instruction descriptor. The scales may end in the next scale
/// tile.
struct ScaleStep {
  unsigned kBlock = 0, id = 0;
};
constexpr ScaleStep scaleStep(unsigned scales, unsigned step) {
  return {step * scales / 4, step * scales % 4};
}
/// Columns from the scales of one scale tile along K to those of the next, for a GEMM of `rows`
/// rows (or columns). [derived] CUTLASS' layout of K = 96 rounds them up to whole multiples of 128;
/// [uncertain] so does that of K = 128.
constexpr unsigned nextScaleColumns(unsigned rows) { return (rows + 127) / 128 * 4; }

//===--- For people ------------------------------------------------------===//

/// The block-scaled formats this project knows, as their layouts need them.
struct ScaleFormat {
  std::string_view name; ///< "nvfp4" or "mxfp4"
  unsigned blockSize;    ///< elements per scale
  ScaleVector vector;    ///< scales per row per MMA
};
const ScaleFormat *lookupScaleFormat(std::string_view name);

/// The question for `explainScale`: the scale of element (row, k) of a `rows` x `depth` matrix.
struct ScaleQuestion {
  std::string_view format = "nvfp4";
  uint64_t row = 0, k = 0;
  uint64_t rows = 0;  ///< 0: unknown, taken as row + 1
  uint64_t depth = 0; ///< K; 0: unknown, taken as k + 1
  unsigned ctaGroup = 1;
};

/// A few lines that say where that scale lies in global memory, in its scale tile of shared memory
/// and in tensor memory, with the instruction descriptor's id. Fails on an unknown format or an
/// index out of range.
Expected<std::string> explainScale(const ScaleQuestion &question);

} // namespace fp4::hw
