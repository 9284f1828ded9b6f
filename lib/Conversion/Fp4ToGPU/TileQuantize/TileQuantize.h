//===- TileQuantize.h - Quantizing tiles of a matrix -------------------------===//
//
// The kernel of `outputs` columnwise and both, of blocks of 16 x 16, and of groups. A CTA takes one
// tile of 128 rows of 256 bytes (128 columns of bf16, 64 of f32):
//
//   1. Each thread loads pieces of the tile, the elements of one row-wise block each, from global
//      memory to registers, and leaves a copy in shared memory (Tile, ElementTile).
//   2. Row-wise output: the piece is a block; quantize it from the registers.
//   3. Barrier. Column-wise output: a thread reads one word of shared memory from each of 16
//      consecutive rows (MXFP4: 32), which is a block of one f32 column or of two 16-bit columns.
//   4. Codes leave from registers (OutputWriter). The lanes of a warp hold consecutive blocks of
//      few columns, so that transposed codes go to global memory in runs of 64 bytes. Tiled scales
//      are gathered in shared memory: one by one, each store would write a byte of a sector.
//
// A transform on the tensor core is between steps 2 and 3 (WarpTransform.h): the columns are in
// shared memory as the rows are, and a thread reads whole blocks.
//
// A thread has 2 or 4 of the 16 rows of a square block, and other lanes of its warp have the other
// rows: the amax is reduced in registers and by shuffles in step 2. The column-wise codes are the
// row-wise ones, transposed: shared memory has the codes, a quarter of the size, and step 3
// transposes nibbles (CodeTile). With stochastic rounding the codes differ; then step 3 reads
// elements as above and the amax from shared memory.
//
// Matrices that are stacked along the rows (groups) have tiles of their own, so each tile has one
// amax. A CTA finds its matrix among constants (RowGroups), or, where the device has the rows of
// groups, in a table of bands (GroupBands.h).
//
// Shared memory is swizzled so that steps 1 and 3 have no bank conflicts
// (ElementTile::chunkAddress, CodeTile::wordAddress).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "ElementSource.h"
#include "Int32.h"
#include "KernelBuilder.h"
#include "ScaleTable.h"
#include "SideQuantizer.h"

#include "fp4/Plans/KernelPlans.h"

#include <array>

namespace fp4 {

/// A number of rows, columns or blocks: static, or a value of the kernel.
struct Extent {
  int64_t size = mlir::ShapedType::kDynamic;
  mlir::Value value = {}; ///< i32, where dynamic
  int64_t divisor = 1;    ///< known divisor of the value

  bool isDynamic() const { return mlir::ShapedType::isDynamic(size); }
  bool isMultipleOf(int64_t n) const { return (isDynamic() ? divisor : size) % n == 0; }
  Int32 in(mlir::ImplicitLocOpBuilder &b) const {
    return isDynamic() ? Int32(b, value) : Int32(b, size);
  }
};

/// Sizes of the tile of one kernel.
struct TilePlan {
  static constexpr int64_t rows = 128, rowBytes = 256, rowWords = rowBytes / 4;
  static constexpr int64_t warp = 32, square = 16;

  int64_t elementBytes; ///< 2 or 4
  int64_t blockSize;    ///< 16 or 32
  int64_t codeBits;     ///< bits of a code in memory: 4 or 8
  bool squareBlocks;

  int64_t columns() const { return rowBytes / elementBytes; }
  /// Pieces in a row of the tile, and how many each thread loads.
  int64_t piecesPerRow() const { return columns() / blockSize; }
  int64_t loadPasses() const { return rows * piecesPerRow() / kTileQuantizeThreads; }
  /// Rows of the tile that a warp loads in a pass; with square blocks the passes have 16 together.
  int64_t rowsPerPass() const { return warp / piecesPerRow(); }
  /// Blocks in a column of the tile, and how many words of them each thread reads.
  int64_t blocksPerColumn() const { return rows / blockSize; }
  int64_t columnPasses() const { return rowWords * blocksPerColumn() / kTileQuantizeThreads; }
  /// Words of codes of a block.
  int64_t codeWords() const { return blockSize * codeBits / 32; }
  int64_t columnsPerWord() const { return 4 / elementBytes; }
};

/// The matrices that are stacked in the input, where `groups` says so. Tiles do not cross the edges
/// of these matrices.
class RowGroups {
public:
  RowGroups(llvm::ArrayRef<int64_t> rows, int64_t columns, int64_t blockSize);

  /// Bands of 128 rows of all matrices.
  int64_t bands() const { return numBands; }
  /// A divisor of the rows of each.
  int64_t divisor() const { return rowDivisor; }

  struct Group {
    Int32 index, firstRow, endRow;
    Int32 firstBand;
    Int32 firstTile; ///< first of the column-wise scale tiles, in the list of all
  };
  /// The group that has band number `band`.
  Group find(Int32 band) const;

private:
  struct Range {
    int64_t index, firstRow, endRow, firstBand, firstTile;
  };
  llvm::SmallVector<Range> ranges; ///< ranges that have rows
  int64_t numBands = 0, rowDivisor = 0;
};

/// The place of a CTA's tile in the matrix, and its elements on their way to registers.
class Tile {
public:
  /// The elements of one row-wise block in registers, and their place in the tile.
  struct Piece {
    Int32 row, block;
    llvm::SmallVector<mlir::Value> words; ///< i32, in element order
  };

  /// The tile that begins at `firstRow` and `firstColumn` of an input that ends at `rows` and
  /// `columns`.
  Tile(KernelBuilder &kernel, const TilePlan &plan, ElementSource &source, Extent rows,
       Extent columns, Int32 firstRow, Int32 firstColumn);

  Int32 firstRow() const { return tileRow; }
  Int32 firstColumn() const { return tileColumn; }
  Int32 threadIndex() const { return thread; }

  /// Loads pass number `pass` of the pieces. Elements beyond the last column are zero; rows beyond
  /// the last are copies of it.
  Piece load(int64_t pass);
  /// Returns true when the matrix has the piece's row; null if it has all rows of all tiles.
  mlir::Value hasRow(const Piece &piece);

private:
  void place(int64_t pass, Int32 &row, Int32 &block);
  using Words = llvm::SmallVector<mlir::Value>;
  Words loadWhole(const ElementSource::Input &input, Int32 row, Int32 column);
  Words loadRagged(const ElementSource::Input &input, Int32 row, Int32 column);
  void clearBehindRow(llvm::MutableArrayRef<mlir::Value> words, Int32 column);
  mlir::Value elementAddress(const ElementSource::Input &input, Int32 row, Int32 column);

  mlir::ImplicitLocOpBuilder &b;
  const TilePlan &plan;
  ElementSource &source;
  Extent rows, columns;
  Int32 thread, tileRow, tileColumn;
};

/// The elements of a tile in shared memory, read as columns.
class ElementTile {
public:
  /// `transforms`: warps transform it (WarpTransform.h).
  ElementTile(KernelBuilder &kernel, Tile &tile, bool transforms);

  /// Leaves the piece there, rows beyond the last as zeros.
  void share(const Tile::Piece &piece);
  /// Word `word` of the rows first .. first + count - 1, each an i32; `first` is a multiple of 16.
  llvm::SmallVector<mlir::Value> column(Int32 word, Int32 first, int64_t count);
  /// Chunk `chunk` of 16 bytes of a row.
  mlir::Value chunkAddress(Int32 row, Int32 chunk);
  /// The packed elements of block `block` of column `column`, after the transform.
  llvm::SmallVector<mlir::Value> transformedBlock(Int32 column, Int32 block);

private:
  void storeChunks(const Tile::Piece &piece, llvm::ArrayRef<mlir::Value> words);

  mlir::ImplicitLocOpBuilder &b;
  Tile &tile;
  bool transforms;
  mlir::Value shared;
};

/// The row-wise codes of a tile in shared memory, read as columns.
class CodeTile {
public:
  CodeTile(KernelBuilder &kernel, Scalars &scalars, const TilePlan &plan);

  /// Leaves the codes of a row-wise block.
  void share(Int32 row, Int32 block, llvm::ArrayRef<mlir::Value> codes);
  /// Columns that `columns` returns at a time.
  static constexpr int64_t width = 8;
  /// The codes of rows first .. first + 15 of columns width * group and following, two i32 each;
  /// `first` is a multiple of 16.
  std::array<std::array<mlir::Value, 2>, width> columns(Int32 group, Int32 first);

private:
  mlir::Value wordAddress(Int32 row, Int32 word);
  void transpose(std::array<mlir::Value, width> &words);

  mlir::ImplicitLocOpBuilder &b;
  Scalars &s;
  const TilePlan &plan;
  mlir::Value shared;
};

/// Writes blocks of one output: packed codes, and scales in the output's layout.
class OutputWriter {
public:
  /// Place where tiles begin anew: the first tile, row and block, and the blocks of a row.
  struct TileOrigin {
    Int32 tile, row, block;
    Extent blocks;
  };
  struct Shape {
    Extent rows, columns; ///< ends of the output, or of its group
    Extent bufferColumns; ///< columns of a row in memory
    int64_t blockSize;
    int64_t codeBits; ///< 4, or 8 where each code has a byte
    bool tiledScales;
    std::optional<TileOrigin> tileOrigin; ///< origin of a group
    /// Scales in shared memory, stageWords(stagedTiles); null where they are written one by one.
    mlir::Value stage = {};
    int64_t stagedTiles = 0;

    int64_t blockBytes() const { return blockSize * codeBits / 8; } ///< bytes of codes
  };

  /// Words that gather the scales of a CTA, which are `tiles` neighbouring scale tiles.
  static constexpr int64_t stageWords(int64_t tiles) { return tiles * kStagePitch / 4; }

  OutputWriter(mlir::ImplicitLocOpBuilder &b, mlir::Value data, mlir::Value scales,
               const Shape &shape);

  /// Block number `block` of `row`. Blocks that do not exist are not written; where scales are
  /// tiled, their padding becomes zero.
  void write(Int32 row, Int32 block, const BlockQuantizer::Block &codes);
  /// Writes the scales that were gathered, those of the tiles that begin at `row` and `block`. As
  /// many threads as flushThreads() says call it, counted by `thread`, after a barrier.
  void flush(Int32 thread, Int32 row, Int32 block);
  int64_t flushThreads() const { return shape.stagedTiles * kStageChunks; }

private:
  /// A tile of scales is 512 bytes; so far apart, warps that write rows or columns of two tiles
  /// have at most two lanes at a bank.
  static constexpr int64_t kStagePitch = 592, kStageChunkBytes = 16, kStageChunks = 32;
  mlir::Value exists(Int32 row, Int32 block);
  void writeCodes(Int32 row, Int32 block, llvm::ArrayRef<mlir::Value> codes);
  mlir::Value codesAddress(Int32 row, Int32 block);
  void writeTiledScale(Int32 row, Int32 block, mlir::Value exists, mlir::Value scale);
  void relativeToOrigin(Int32 &row, Int32 &block);
  /// Emits `body`, given the address of the scale tile of `block`, where there is such a tile.
  void emitInTile(Int32 row, Int32 block, llvm::function_ref<void(mlir::Value)> body);

  mlir::ImplicitLocOpBuilder &b;
  mlir::Value data, scales;
  Shape shape;
  Extent endBlock;
};

/// Emits `body` where `condition` holds; everywhere if it is null.
void emitWhere(mlir::ImplicitLocOpBuilder &b, mlir::Value condition,
               llvm::function_ref<void()> body);

} // namespace fp4
