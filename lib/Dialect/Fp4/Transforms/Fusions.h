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

/// Why the target has no kernel for `op` of products as `product` whose epilogue takes two products
/// or gives other results than its elements; empty where it has one, or is not known.
std::string whyNotOnTarget(mlir::Operation *op, BlockScaledMatmulOp product);

/// Why `op` and `product` take longer in one kernel of the target, where that quantizes its
/// elements or has two right-hand sides; empty where they do not. With wgmma such a kernel has
/// tiles of 128 x 128, each of which converts its operands, and a product alone has them converted
/// once where it is large. One wave of tiles that are not deep is faster in one kernel
/// (docs/Rationale/AddingAnEpilogueOp.md).
std::string whySlowerOnTarget(mlir::Operation *op, BlockScaledMatmulOp product);

} // namespace fp4
