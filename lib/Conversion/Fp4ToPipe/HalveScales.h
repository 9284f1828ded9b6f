//===- HalveScales.h - Scales of 64 rows to a block -----------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/IR/PatternMatch.h"

namespace fp4 {

/// Launches a kernel that gives each 64 rows of `scales`, blocks of 512 bytes in layout
/// tiled_128x4, a block of their own; the buffer of these. What a block has behind its rows is
/// zero.
mlir::Value halveScales(mlir::RewriterBase &rewriter, BlockScaledMatmulOp op, mlir::Value scales);

} // namespace fp4
