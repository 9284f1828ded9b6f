//===- VerifyRows.h - Columns that a kernel is given come with a view -----===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

namespace fp4::pipe {

/// (C492) Dynamic columns of `global` need a pipe.view that says how many there are.
mlir::LogicalResult verifyColumns(mlir::Operation *op, mlir::Value global);

} // namespace fp4::pipe
