//===- RowReduction.h - Operations that reduce rows to numbers ------------===//
//
// A row reduction is a linalg operation that combines the elements of each row of a matrix to one
// f32 number: their sum, product, maximum or minimum. The elements may be computed by elementwise
// steps from several operands, such as the squares that a norm adds. The order of the combination
// is that of numerics::reduceRow, whatever the kernel.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/Elementwise.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <string>

namespace fp4 {

/// Why an operation of linalg is no row reduction; empty where it is one:
///   - the loops are a parallel one of rows and a reduction of columns, in this order;
///   - each input is indexed by loops in their order;
///   - the only result has an f32 for each row, as M numbers or as M x 1, and begins as a tensor
///     all of one constant: a linalg.fill or a dense constant;
///   - the body combines the result so far with an element by arith.addf, mulf, maximumf, minimumf,
///     maxnumf or minnumf, and everything before it is an elementwise step.
std::string whyNotRowReduction(mlir::linalg::LinalgOp op);

/// Why an operation of linalg does not reduce the rows of matrices, or of batches of matrices: the
/// conditions above with any number of parallel loops. Empty where it does.
std::string whyNotReductionOfRows(mlir::linalg::LinalgOp op);

/// Returns true for a linalg.generic that is a row reduction.
bool isRowReduction(mlir::Operation *op);

// The parts of a row reduction.

/// The operation of the body that combines the result so far with an element.
mlir::Operation *combiningOpOf(mlir::linalg::LinalgOp op);
/// The element that it combines: an argument of the body, a constant, or what the body computes.
mlir::Value combinedElementOf(mlir::linalg::LinalgOp op);
/// The step that combines.
numerics::ElementOp combinationOf(mlir::linalg::LinalgOp op);
/// The number that each row begins with.
float initialOf(mlir::linalg::LinalgOp op);
/// The input that has, for each row, the number of the only column whose element may be other than
/// zero: a sum, from zero on, of what arith.select takes where linalg.index of the columns equals
/// that number, and of zeros elsewhere. Null where every column may count.
mlir::OpOperand *selectedColumnOf(mlir::linalg::LinalgOp op);
/// The program that computes an element from those of the inputs.
numerics::ElementProgram reductionProgramOf(mlir::linalg::LinalgOp op);

} // namespace fp4
