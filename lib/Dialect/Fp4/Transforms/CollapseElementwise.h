//===- CollapseElementwise.h - Elementwise operations of matrices ---------===//
#pragma once

#include "mlir/IR/Operation.h"

namespace fp4 {

/// Makes elementwise operations on batches of rows, beside a reshape of a matrix, operations on
/// matrices. The kernels and bits of the operations are the same.
mlir::LogicalResult collapseElementwise(mlir::Operation *root);

} // namespace fp4
