//===- CollapseElementwise.h - Elementwise operations of matrices ---------===//
#pragma once

#include "mlir/IR/Operation.h"

namespace fp4 {

/// Returns true for a linalg.generic or linalg.reduce that reduces the rows of batches of matrices
/// (fp4/Dialect/Fp4/IR/RowReduction.h), and of which every operand has the dimensions of rows
/// together.
bool isReductionOfBatches(mlir::Operation *op);

/// Makes elementwise operations on batches of rows, beside a reshape of a matrix or a reduction,
/// operations on matrices, and reductions of batches those of rows. The kernels and bits of the
/// operations are the same.
mlir::LogicalResult collapseElementwise(mlir::Operation *root);

} // namespace fp4
