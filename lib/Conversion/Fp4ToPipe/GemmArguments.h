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
  mlir::Value getLhs() const { return lhs; }
  mlir::Value getLhsScales() const { return lhsScales; }
  mlir::Value getRhs() const { return rhs; }
  mlir::Value getRhsScales() const { return rhsScales; }
  mlir::Value getRhs2() const { return rhs2; }
  mlir::Value getRhs2Scales() const { return rhs2Scales; }
  mlir::Value getAlpha() const { return alpha; }
  mlir::Value getAlpha2() const { return alpha2; }
  mlir::Value getOffsets() const { return offsets; }
  mlir::Value getQuantizeAmax() const { return quantizeAmax; }
  mlir::ValueRange getEpilogueInputs() const { return inputs; }

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
