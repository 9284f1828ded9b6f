//===- RowBlocks.h - The blocks of a row-major matrix in memory -----------===//
//
// Computes where a block of a matrix (16 or 32 elements of a row) lies: its elements, its codes and
// its scale, linear or tiled. Blocks are numbered along the rows. In tiled layouts the padding of
// the layout is numbered too; its scales are zero.
//
// Columns need not be whole blocks: the last block of a row is then filled with zeros. Rows that
// are not aligned are read in the widest accesses that their length allows. Dynamic columns are
// whole blocks, and rows of codes whole units of TMA, as the host has checked.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "HostDivisor.h"
#include "KernelBuilder.h"

#include "fp4/ISA/ScaleLayout.h"

namespace fp4 {

class RowBlocks {
public:
  struct Shape {
    int64_t columns = 0, blockSize = 0, elementBytes = 0, codeBits = 4;
    bool tiledScales = false;
    bool paddedRows = false; ///< tiled, and the rows may not be a multiple of 128
    bool usedOnce = false;   ///< caches are told so of elements and codes
    bool namesRows = false;  ///< positions have a row and a column even where no place needs them
    bool strided = false;    ///< the elements have InputRows::pitch
    /// Tiled, a row has a multiple of so many numbered blocks: those of a scale tile.
    int64_t tileBlocks = hw::scaleBlockColumns;

    bool isDynamic() const { return mlir::ShapedType::isDynamic(columns); }
    bool isWhole() const { return isDynamic() || columns % blockSize == 0; }
  };
  /// Dynamic columns in the kernel.
  struct Columns {
    Int32 blocks, count; ///< blocks of a row, and of the whole matrix with all padding
    Int32 tiles;         ///< scale tiles in a row; 0 where scales are linear
    HostDivisor perRow;  ///< blocks that a row is numbered with
  };
  /// `rows` (i32) in the kernel, and `columns` where they are dynamic.
  RowBlocks(mlir::ImplicitLocOpBuilder &builder, Shape shape, mlir::Value rows,
            std::optional<Columns> columns = {});

  /// Blocks of a row and of `rows` rows (an index, on the host), padding of tiled scales included.
  /// `columns` is an index too, where they are dynamic.
  static int64_t countPerRow(const Shape &shape);
  static mlir::Value countPerRow(mlir::ImplicitLocOpBuilder &host, const Shape &shape,
                                 mlir::Value columns);
  static mlir::Value count(mlir::ImplicitLocOpBuilder &host, const Shape &shape, mlir::Value rows,
                           mlir::Value columns);
  /// The number of blocks in the kernel, i32.
  mlir::Value count();

  struct Position {
    mlir::Value index;       ///< i32, of the block; the last block for threads behind it
    mlir::Value row, column; ///< i32, within the matrix; null where the index says all
    mlir::Value paddedRow, paddedColumn; ///< place before it is brought into the matrix
    mlir::Value isMine;                  ///< i1: the thread has this block; null: always
    mlir::Value isMatrix; ///< i1: it is part of the matrix, not of the padding; null: always
  };
  /// `isGuarded`: there may be fewer scale blocks than threads ask for.
  Position position(mlir::Value index, bool isGuarded);

  /// The address of the elements of a block, and the bytes that these are.
  mlir::Value elementsAt(const InputRows &input, const Position &position);
  int64_t blockBytes() const { return shape.blockSize * shape.elementBytes; }
  /// The elements of a block as i32 words.
  llvm::SmallVector<mlir::Value> load(const InputRows &input, const Position &position);
  /// The position in the first row, where an input has one.
  Position inFirstRow(const Position &position);
  /// Makes elements behind the end of a row zero, as those are that are loaded.
  void clearBehindRow(llvm::MutableArrayRef<mlir::Value> words, const Position &position);
  /// Stores the codes, eight or four per i32; nibbles after the end of a row are zero.
  void storeCodes(mlir::Value base, const Position &position, llvm::ArrayRef<mlir::Value> codes);
  /// Stores the scale (i8).
  void storeScale(mlir::Value base, const Position &position, mlir::Value scale);

  /// The other way: codes as i32 of eight or four, the scale as i8, and where `elements` go.
  llvm::SmallVector<mlir::Value> loadCodes(mlir::Value base, const Position &position);
  mlir::Value loadScale(mlir::Value base, const Position &position);
  void storeElements(mlir::Value base, const Position &position,
                     llvm::ArrayRef<mlir::Value> elements);

private:
  bool needsRows() const;
  bool numbersPadding() const {
    return shape.isDynamic() ? shape.tiledScales : countPerRow(shape) != blocksPerRow();
  }
  int64_t blocksPerRow() const { return llvm::divideCeil(shape.columns, shape.blockSize); }
  /// Bytes of the codes of a block, and of those of a row.
  int64_t codeBytes() const { return shape.blockSize * shape.codeBits / 8; }
  int64_t codePitch() const;
  /// Elements of the last block of a row.
  int64_t residueElements() const {
    return shape.isDynamic() ? shape.blockSize
                             : shape.columns - (blocksPerRow() - 1) * shape.blockSize;
  }
  mlir::Value isResidue(const Position &position);
  mlir::Value place(mlir::Value base, const Position &position, int64_t rowBytes,
                    int64_t blockBytes, bool isDense);
  mlir::Value elementPlace(mlir::Value base, const Position &position);
  mlir::Value codePlace(mlir::Value base, const Position &position);
  mlir::Value scalePlace(mlir::Value base, const Position &position);
  mlir::Value tiledPlace(mlir::Value base, const Position &position);
  /// The block among those that exist, for dynamic columns.
  mlir::Value denseIndex(const Position &position);
  /// The widest access of elements, and the widest where rows are no whole blocks.
  int64_t accessBytes() const;
  int64_t chunkBytes() const;
  void appendWords(llvm::SmallVector<mlir::Value> &words, mlir::Value chunk);
  void clearResidue(llvm::MutableArrayRef<mlir::Value> words, int64_t perWord,
                    const Position &position);
  void when(mlir::Value first, mlir::Value second, llvm::function_ref<void()> then);

  mlir::ImplicitLocOpBuilder &b;
  Shape shape;
  mlir::Value rows;
  std::optional<Columns> dynamic;
  mlir::Value half; ///< the lower half of a word of which two loads bring one half each
};

/// Stores `values` (of one type) in the widest stores.
void storeValues(mlir::ImplicitLocOpBuilder &b, llvm::ArrayRef<mlir::Value> values,
                 mlir::Value pointer);
/// `count` i32 words from `pointer`, in loads of at most `accessBytes`, under a cache policy if
/// there is one (KernelBuilder::policyOfLoads).
llvm::SmallVector<mlir::Value> loadWords(mlir::ImplicitLocOpBuilder &b, mlir::Value pointer,
                                         int64_t count, int64_t accessBytes,
                                         mlir::Value policy = {});

} // namespace fp4
