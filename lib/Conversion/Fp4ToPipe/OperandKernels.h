//===- OperandKernels.h - Kernels that make operands of a GEMM ------------===//
#pragma once

#include "Gemm.h"

#include "fp4/ISA/TargetModel.h"

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

/// Launches a kernel that packs a matrix of 6-bit elements, four of them in three bytes, and
/// returns its buffer. `buffer` has a byte for each element of `type`, K a multiple of 128, and
/// `rows` and `columns` are indices, for those that are dynamic.
mlir::Value packSix(mlir::RewriterBase &rewriter, BlockScaledMatmulOp op, mlir::Value buffer,
                    mlir::RankedTensorType type, mlir::Value rows, mlir::Value columns);

/// A of a GEMM as it is: the buffers of its operands and of the table of groups, null without
/// groups, and its rows and K, indices, of which depth may be null where it is static.
struct UnconvertedLhs {
  mlir::Value codes, scales, table, rows, depth;
};

/// Launches a kernel that converts all of A, and returns its buffer, rows x K of floats. Rows of no
/// group are zero. With `dependents` the launch has PDL.
mlir::Value preDequantize(mlir::RewriterBase &rewriter, BlockScaledMatmulOp op,
                          const UnconvertedLhs &lhs, const Gemm &gemm,
                          const hw::TargetModel &target,
                          std::optional<LaunchDependents> dependents);

/// Weights as e4m3, N x K, and the powers of two of their rows, one of a row in each k tile:
/// Gemm::scalesB.
struct ConvertedWeights {
  mlir::Value elements, powers;
};

/// Launches a kernel that makes both of `tiles`, the buffer of prepacked weights.
ConvertedWeights preDequantizeWeights(mlir::RewriterBase &rewriter, BlockScaledMatmulOp op,
                                      mlir::Value tiles, const Gemm &gemm);

} // namespace fp4
