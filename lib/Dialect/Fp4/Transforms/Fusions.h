//===- Fusions.h - What fp4-fuse does, in other files ---------------------===//
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace fp4 {

/// Makes `op` the body of the epilogue of a product that it alone reads, and erases it. Otherwise
/// it stays, and where it reads a product a missed remark says why.
bool fuseEpilogue(mlir::linalg::GenericOp op, mlir::RewriterBase &rewriter);

} // namespace fp4
