//===- Fusions.h - Fusions of fp4-fuse in other files ---------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace fp4 {

/// Makes `op` the epilogue region of a matmul, or of two matmuls of one lhs, that it alone reads,
/// and erases it. Otherwise `op` stays, and a missed remark says why if it reads a matmul.
bool fuseEpilogue(mlir::linalg::GenericOp op, mlir::RewriterBase &rewriter);

/// Makes a matmul whose elements `op` reads compute the result of `op`, and erases `op`. Otherwise
/// `op` stays, and a missed remark says why if it reads a matmul.
bool fuseResult(QuantizeOp op, mlir::RewriterBase &rewriter);
bool fuseResult(AmaxOp op, mlir::RewriterBase &rewriter);

/// Makes operations before `root`, of which one reduces rows, its prologues (Prologue.h). Returns
/// false, with missed remarks that say why, where there are none.
bool fuseRows(mlir::Operation *root, mlir::RewriterBase &rewriter);

/// Makes `op` the prologue of the quantizers and amaxes that alone read it (Prologue.h). Otherwise
/// a missed remark says why where one of these reads it.
bool fusePrologue(mlir::linalg::GenericOp op, mlir::RewriterBase &rewriter);

} // namespace fp4
