//===- GemmArguments.h - Arguments of a GEMM's kernel ------------------===//
#pragma once

#include "GemmKernel.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

namespace fp4 {

/// M, N and K, each an index, or null where it is static; M is there always.
struct GivenSizes {
  mlir::Value rows, columns, depth;
};

/// The buffers of the tensors of a matmul; null where it has none.
struct GemmBuffers {
  mlir::Value lhs, lhsScales, rhs, rhsScales, rhs2, rhs2Scales, alpha, alpha2, offsets,
      quantizeAmax;
  llvm::SmallVector<mlir::Value> inputs;
};

/// The arguments of a kernel of `gemm` but for those of groups (WorkTables.h). `adaptor` has the
/// buffers of the operands, and `powers` the scales of pre-dequantized weights, or null.
KernelArguments gemmArguments(mlir::OpBuilder &b, mlir::Location loc, const Gemm &gemm,
                              const GemmBuffers &adaptor, mlir::Value powers,
                              const GivenSizes &sizes, mlir::ValueRange results);

} // namespace fp4
