//===- VerifyRows.h - Rows that a kernel is given come with the operand rows ===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

namespace fp4::pipe {

/// (C144, C183, C184) `op` has the operand `rows` exactly when the rows of `buffer` are dynamic.
mlir::LogicalResult verifyRows(mlir::Operation *op, GlobalType buffer, mlir::Value rows);

/// (C492) Dynamic columns of `global` need a pipe.matrix that says how many there are.
mlir::LogicalResult verifyColumns(mlir::Operation *op, mlir::Value global);

} // namespace fp4::pipe
