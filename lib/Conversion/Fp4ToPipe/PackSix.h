//===- PackSix.h - Elements of 6 bits, packed before a GEMM ---------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/IR/PatternMatch.h"

namespace fp4 {

/// Launches a kernel that packs a matrix of such elements, four of them in three bytes; the buffer.
/// `buffer` has a byte for each element of `type`, K a multiple of 128, and `rows` and `columns`
/// are indices, for those that are dynamic.
mlir::Value packSix(mlir::RewriterBase &rewriter, BlockScaledMatmulOp op, mlir::Value buffer,
                    mlir::RankedTensorType type, mlir::Value rows, mlir::Value columns);

} // namespace fp4
