//===- ConvertAhead.h - An operand that is converted once -----------------===//
#pragma once

#include "MatmulKernel.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/ISA/TargetModel.h"

namespace fp4 {

/// What elements of A become before the kernel of `shape`: f16 or bf16.
mlir::Type convertedTypeOf(const MatmulShape &shape);

/// Launches a kernel that converts all of A; the buffer, rows x K of convertedTypeOf(). `lhs` and
/// `scales` are buffers of the operands; `rows` and `depth` are their rows and K, indices, of which
/// depth may be null where it is static.
mlir::Value convertAhead(mlir::RewriterBase &rewriter, BlockScaledMatmulOp op, mlir::Value lhs,
                         mlir::Value scales, const MatmulShape &shape, mlir::Value rows,
                         mlir::Value depth, const hw::TargetModel &target);

} // namespace fp4
