//===- PreDequantizedWeights.h - Pre-dequantized prepacked weights -----------------===//
#pragma once

#include "Gemm.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

namespace fp4 {

/// Weights as e4m3, N x K, and the powers of two of their rows, one of a row in each k tile:
/// Gemm::scalesB.
struct ConvertedWeights {
  mlir::Value elements, powers;
};

/// Launches a kernel that makes both of `tiles`, the buffer of prepacked weights.
ConvertedWeights preDequantizeWeights(mlir::RewriterBase &rewriter, BlockScaledMatmulOp op,
                                      mlir::Value tiles, const Gemm &gemm);

} // namespace fp4
