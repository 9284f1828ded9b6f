//===- MoveRows.h - Readers of gathers, and sources of scatters -----------===//
#pragma once

#include "mlir/IR/PatternMatch.h"

namespace fp4 {

/// Gives gathers and scatters of rows (fp4/Dialect/Fp4/IR/RowNumbers.h) in `root` an elementwise
/// operation whose kernel moves the rows, if they have none.
void computeMovedRows(mlir::Operation *root, mlir::RewriterBase &rewriter);

} // namespace fp4
