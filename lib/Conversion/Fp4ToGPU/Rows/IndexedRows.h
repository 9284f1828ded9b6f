//===- IndexedRows.h - Chunks that are read at other rows and columns -----===//
//
// The words of an input of a row kernel that is indexed by expressions of rows and columns
// (fp4/Dialect/Fp4/IR/IndexExpressions.h). A window of consecutive columns, if every chunk reads
// one in the same order, is loaded in wide accesses and its elements are put in order; else each
// element is loaded alone.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Rows/RowTeam.h"

#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"

namespace fp4 {

/// The value of an expression of one dimension in a kernel, where that dimension is `at`.
Int32 emitIndex(mlir::AffineExpr expression, Int32 at);

/// The first column of the window of chunk `number`.
Int32 firstColumn(mlir::AffineExpr column, const ChunkWindow &window, Int32 number);

/// Puts the elements of a window, a vector that may have more, in the order of lanes of a chunk.
mlir::Value inLaneOrder(mlir::ImplicitLocOpBuilder &b, mlir::Value elements,
                        const ChunkWindow &window);

/// A row that is read by an expression of columns.
struct IndexedRow {
  mlir::AffineExpr column;
  int64_t bytes; ///< bytes of an element
  int64_t unit;  ///< bytes at multiples of which rows begin
};

/// Words (i32) from which elementsOf gives the elements of a chunk. `row` is the address of the row
/// that is read.
llvm::SmallVector<mlir::Value> loadIndexed(RowTeam &team, mlir::Value row, const IndexedRow &of,
                                           const RowTeam::Chunk &chunk);
/// The elements, of type `element`, of words that loadIndexed gave.
mlir::Value elementsOf(RowTeam &team, mlir::ValueRange words, mlir::Type element,
                       const IndexedRow &of);

} // namespace fp4
