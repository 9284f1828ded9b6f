//===- HalveScales.h - Scale tiles of 64 rows -----------------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/IR/PatternMatch.h"

namespace fp4 {

/// Launches a kernel that gives each 64 rows of `scales`, scale tiles in layout tiled_128x4, a
/// scale tile of their own. Returns the buffer of these. The rest of a scale tile behind its rows
/// is zero.
mlir::Value halveScales(mlir::RewriterBase &rewriter, BlockScaledMatmulOp op, mlir::Value scales);

/// Places of the rows of matrices, one matrix of each group, in scale tiles.
struct ScaleHalves {
  int64_t groups;
  int64_t blocks; ///< scale tiles of a group
  int64_t rows;   ///< rows of a scale tile: 32, 64 or 96
};

/// Launches a kernel that gives each `rows` rows of a matrix a scale tile; the buffer of these. The
/// scale tiles of `scales` have 128 rows, and those of each group begin with one.
mlir::Value splitScales(mlir::RewriterBase &rewriter, BlockScaledMatmulOp op, mlir::Value scales,
                        const ScaleHalves &halves);

} // namespace fp4
