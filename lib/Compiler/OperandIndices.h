//===- OperandIndices.h - Indices of operands -----------------------------===//
//
// The text of a manifest that says where an elementwise operation or a reduction of rows reads its
// operands, which lib/Reference parses.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <string>

namespace fp4 {

/// "0,1 x,1 (d0/4),((d1+64)%128) i1": for each input of `op` the dimensions of the result that
/// index it, x for the index 0, or expressions; and each loop that the body reads.
std::string spellInputs(mlir::linalg::LinalgOp op);

/// Indices of `count` operands, each the element of a result of `rank` dimensions, in that text.
std::string spellSame(unsigned count, int64_t rank, mlir::MLIRContext *context);

} // namespace fp4
