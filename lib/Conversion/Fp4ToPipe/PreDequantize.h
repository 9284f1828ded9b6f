//===- PreDequantize.h - A pre-dequantized operand -------------------------===//
#pragma once

#include "Gemm.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/ISA/TargetModel.h"

namespace fp4 {

/// Launches a kernel that converts all of A; the buffer, rows x K of floats. `lhs` and
/// `scales` are buffers of the operands; `rows` and `depth` are their rows and K, indices, of which
/// depth may be null where it is static. The launch has the attribute
/// `overlap` (LaunchAttributes.h), if that is not empty.
mlir::Value preDequantize(mlir::RewriterBase &rewriter, BlockScaledMatmulOp op, mlir::Value lhs,
                          mlir::Value scales, const Gemm &gemm, mlir::Value rows, mlir::Value depth,
                          const hw::TargetModel &target, llvm::StringRef overlap);

} // namespace fp4
