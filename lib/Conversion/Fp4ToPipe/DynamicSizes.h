//===- DynamicSizes.h - Dynamic sizes of a matmul -------------------------===//
#pragma once

#include "Gemm.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

namespace fp4 {

struct GemmBuffers;

/// "operand 'NAME' of the matmul at FILE:12:8"
std::string placeOfOperand(BlockScaledMatmulOp op, llvm::StringRef name);

/// N and K of a matmul, each an index, or null where it is static. `adaptor` has the buffers of
/// the operands.
struct GemmSizes {
  mlir::Value columns, depth;
};
GemmSizes sizesOfGemm(mlir::OpBuilder &b, BlockScaledMatmulOp op, const GemmBuffers &adaptor);

/// Checks dynamic N and K as the verifier and the plan check static ones.
void checkGemmSizes(mlir::OpBuilder &b, BlockScaledMatmulOp op, const GemmBuffers &adaptor,
                    const GemmSizes &sizes, const Gemm &gemm);

/// i1: `guard` holds for so many rows and these N and K; null where it holds for all.
mlir::Value holdsFor(mlir::OpBuilder &b, mlir::Location loc, const Guard &guard, mlir::Value rows,
                     const GemmSizes &sizes);

/// `buffer` as a kernel argument of `type`, which may have no sizes.
mlir::Value viewOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type, mlir::Value buffer);

} // namespace fp4
