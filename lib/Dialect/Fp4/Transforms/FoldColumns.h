//===- FoldColumns.h - Slices and concatenations of columns ---------------===//
#pragma once

#include "mlir/IR/Operation.h"
#include "mlir/Support/LLVM.h"

namespace fp4 {

/// Makes elementwise operations that read other columns than their own
/// (fp4/Dialect/Fp4/IR/IndexExpressions.h) of slices and concatenations of columns, and of
/// operations on the heads of tokens that read what all heads of a token share.
mlir::LogicalResult foldColumns(mlir::Operation *root);

} // namespace fp4
