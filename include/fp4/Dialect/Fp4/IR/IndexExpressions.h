//===- IndexExpressions.h - Elements of other rows and columns ------------===//
//
// An elementwise operation on the rows and columns of a matrix may read an input at other places
// than those of its result: the partner of a rotation, a cosine that all heads of a token share.
// The indexing map of the input then has expressions of the loops, and the body may read the loops
// themselves by linalg.index and arith.index_cast to i32. Kernels by rows compute such operations.
//
//   row:     d0, d0 * n + c, d0 floordiv n, or d0 mod n
//   column:  a quasi-affine expression of d1 whose value is a column of the input for each column
//            of the result
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>
#include <string>

namespace fp4 {

/// Returns true for an operation that reads an input by such expressions, reads its loops, or
/// reads rows that are gathered.
bool hasIndexExpressions(mlir::linalg::LinalgOp op);
/// Returns true where the indexing map of the input has more than loops.
bool isIndexedByExpressions(mlir::linalg::LinalgOp op, mlir::OpOperand *input);

/// Why the expressions that index `input` have no meaning in kernels; empty where they have one,
/// also where the map of the input has loops alone. The last loop is that of the columns, and any
/// other is one of rows.
std::string whyNotIndexExpressions(mlir::linalg::LinalgOp op, mlir::OpOperand *input);
/// Why an operation with such expressions has no kernel by rows: it is on no matrix.
std::string whyNotOnMatrix(mlir::linalg::LinalgOp op);

/// The loops that the body reads by linalg.index, in ascending order.
llvm::SmallVector<unsigned> loopsReadBy(mlir::Block &body);
/// The loop that `value` is, as an i32; none where it is none.
std::optional<unsigned> loopOf(mlir::Value value);

/// The expression of an input for its rows, and that for its columns: null where the input has no
/// rows, or no columns.
struct IndexPair {
  mlir::AffineExpr row, column;
};
IndexPair indexPairOf(mlir::linalg::LinalgOp op, mlir::OpOperand *input);

/// Elements of chunks of consecutive columns that an expression of columns finds together: lane i
/// of chunk n reads element `lanes[i]` behind the first element of the chunk's window.
struct ChunkWindow {
  llvm::SmallVector<int64_t> lanes;
  int64_t span = 0;      ///< elements of the window
  int64_t lane = 0;      ///< the lane that reads the first element
  int64_t alignment = 0; ///< alignment of the first elements of all windows, in elements
  bool isOwn = false;    ///< true when each chunk reads itself, in another order
};

/// The windows of the chunks of `chunk` of `columns` columns; none where lanes differ from one
/// chunk to the next, or a window has more than `chunk` elements.
std::optional<ChunkWindow> chunkWindowOf(mlir::AffineExpr column, int64_t columns, int64_t chunk);
/// Returns true where chunk n of the first half of a row reads chunk n of the second half, and the
/// other way around: the partners of a rotation.
bool readsOtherHalf(mlir::AffineExpr column, int64_t columns, int64_t chunk);
/// Returns true where the expression `row` is one number for as many rows as `rows`, of which the
/// first is a multiple of that: the token of several heads.
bool sharesRows(mlir::AffineExpr row, int64_t rows);
/// Returns true where both halves of a row read the same elements, and not one alone.
bool repeatsInHalves(mlir::AffineExpr column, int64_t columns);

} // namespace fp4
