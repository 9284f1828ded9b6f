//===- Fusions.h - What fp4-fuse does, in other files ---------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace fp4 {

/// Makes `op` the body of the epilogue of a product, or of two products of one lhs, that it alone
/// reads, and erases it. Otherwise it stays, and where it reads a product a missed remark says why.
bool fuseEpilogue(mlir::linalg::GenericOp op, mlir::RewriterBase &rewriter);

/// Makes a product whose elements `op` reads give what `op` computes of them, and erases it.
/// Otherwise it stays, and where it reads a product a missed remark says why.
bool fuseResult(QuantizeOp op, mlir::RewriterBase &rewriter);
bool fuseResult(AmaxOp op, mlir::RewriterBase &rewriter);

/// Makes `op` the prologue of the quantizers and amaxes that alone read it (Prologue.h). Otherwise a
/// missed remark says why where one of these reads it.
bool fusePrologue(mlir::linalg::GenericOp op, mlir::RewriterBase &rewriter);

} // namespace fp4
