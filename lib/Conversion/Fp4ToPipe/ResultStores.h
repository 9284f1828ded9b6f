//===- ResultStores.h - Stores of the results of a GEMM -------------------===//
//
// The epilogue of a GEMM, or of an attention (BlockStores), whose elements leave the kernel in
// other forms than as a matrix: codes and scales of rows, of columns, and an amax. A thread has a
// row of the tile. The thread takes as many columns at a time as the scales of one word of the
// tiled layout cover, so that codes and scales of rows need no exchange; those of columns take one
// within each warp (pipe.transpose).
//
// Codes are few: a tile that has no second accumulator is read as a whole, and its codes are kept
// in registers, before any of them is stored.
//
// With swapped operands a thread has a column of the tile, and a chunk of its rows: rows take the
// exchange, and columns need none (emitSwappedTile).
//
// For sums in registers of warps, pipe.gather_rows makes rows of them first (emitSegment).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Gemm.h"
#include "TileBuilder.h"

namespace fp4 {

/// Values that the kernel writes, arguments or null.
struct ResultArguments {
  mlir::Value elements, quantizeAmax, codes, scales, columnCodes, columnScales, amax;
  mlir::Value columns; ///< columns of the result, i32, where the kernel gets them

  /// The amax of the quantizer, and what is derived from the elements, in the order of
  /// Gemm::derivedTypes.
  llvm::SmallVector<mlir::Value *> derived(const Results &results);
};

/// The part of a result that a CTA works on.
struct ResultPlace {
  mlir::Value row, column; ///< the first
  mlir::Value rows;        ///< the limit, where rows are dynamic or those of a group; else null
  /// Distance of the tiled scales of a row behind the row in the list of all groups; null without
  /// groups.
  mlir::Value scaleShift;
};

/// A power of two of vectors of one type, one after the other.
mlir::Value concatenate(mlir::ImplicitLocOpBuilder &b, llvm::ArrayRef<mlir::Value> pieces);
/// Tiles of one type, as many, that lie side by side.
mlir::Value concatenateTiles(TileBuilder &b, llvm::ArrayRef<mlir::Value> pieces);

/// Quantizes elements, and stores codes and scales, of every matmul and attention.
class BlockStores {
public:
  /// Emits at `builder` what every tile needs once. Rows are below `rows` where a place does not
  /// say so, or null beside places that do.
  BlockStores(TileBuilder &builder, const ResultQuantizer &quantizer, const ResultArguments &to,
              int64_t rows);

  /// Quantizes elements that a thread has of its row, from the first of `place` on.
  void emitSegment(const ResultPlace &place, mlir::Value elements);
  /// Quantize pieces that lie side by side from `column` on, and the columns of a chunk of rows
  /// that a warp has, or a thread.
  void quantizeRow(const ResultPlace &place, llvm::ArrayRef<mlir::Value> pieces,
                   mlir::Value column);
  void quantizeColumn(const ResultPlace &place, mlir::Value elements, mlir::Value column);
  void quantizeRows(const ResultPlace &place, mlir::Value elements);
  void quantizeRowsOfThread(const ResultPlace &place, mlir::Value elements);
  /// Stores what has been quantized since the last call.
  void storeKept();

private:
  /// A store of values that registers keep until then.
  struct Store {
    mlir::Value value, dest, row, column, rows;
    bool isColumn; ///< a thread has codes or scales of a column of the result
  };

  mlir::Value rowsOfFirstPart(const ResultPlace &place, mlir::Value column);
  void keepScales(const ResultPlace &place, mlir::Value scales, mlir::Value column, bool isColumn);
  std::pair<mlir::Value, mlir::Value> quantize(mlir::Value elements, bool columnwise);

  TileBuilder &b;
  const ResultQuantizer &quantizer;
  const ResultArguments &to;
  int64_t rows;
  mlir::Value tensorAmax; ///< amax of the quantizer, where its recipe has one
  llvm::SmallVector<Store> kept;
};

class ResultStores {
public:
  /// Emits at `builder` what every tile needs once.
  ResultStores(TileBuilder &builder, const Gemm &gemm, const ResultArguments &to);

  /// The elements of the result from `column` of the tile on, as many as a chunk has. Columns of
  /// sums in registers are numbers.
  using Elements = llvm::function_ref<mlir::Value(mlir::OpFoldResult column)>;
  void emitTile(const ResultPlace &place, Elements elements);
  /// Emits a tile whose threads have a column each, from that of `place` on. `elements` gives rows
  /// of these from a row of the tile on.
  void emitSwappedTile(const ResultPlace &place, Elements elements);
  /// Quantizes elements that a thread has of its row, from the first of `place` on.
  void emitSegment(const ResultPlace &place, mlir::Value elements) {
    blocks->emitSegment(place, elements);
  }

private:
  void emitRows(const ResultPlace &place, mlir::OpFoldResult row, Elements elements);
  void foldAmaxOfColumn(const ResultPlace &place, mlir::Value elements);
  void emitGroup(const ResultPlace &place, mlir::OpFoldResult column, Elements elements);
  void foldAmax(const ResultPlace &place, mlir::Value elements, mlir::Value column);
  void storeKept() {
    if (blocks)
      blocks->storeKept();
  }

  TileBuilder &b;
  const Gemm &gemm;
  ResultArguments to;
  std::optional<BlockStores> blocks; ///< codes and scales
  mlir::Value running;               ///< the amax of the tile so far
};

} // namespace fp4
