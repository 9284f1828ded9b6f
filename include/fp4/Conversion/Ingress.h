//===- Ingress.h - Block-scaled GEMMs of other dialects -------------------===//
//
// The common part of the conversions from tosa, linalg and stablehlo. Each conversion recognizes a
// GEMM of its dialect and describes it as a ScaledMatmul; convertMatmul builds the fp4
// operations:
//
//   2 x fp4.swizzle_scales and fp4.scaled, fp4.matmul, and reshapes that move no data
//
// The conversions are strict. An operation that looks block-scaled but that fp4 lacks is reported
// at its place with the reason and a remedy, and the pass fails.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace fp4::ingress {

/// An operand of a GEMM. Data is [R, K] or [B, R, K] and scales are [R, K / block] or [B, R, K /
/// block], both row-major. A left side of bf16 or f16 has null scales.
struct ScaledOperand {
  mlir::Value data, scales;
};

/// result[b, m, n] = alpha * sum over k of lhs[b, m, k] * rhs[b, n, k], with their scales.
struct ScaledMatmul {
  ScaledOperand lhs, rhs; ///< a right side of batch 1 holds for every batch of the left side
  mlir::Value alpha;      ///< tensor<f32>, or null
  mlir::RankedTensorType result; ///< [M, N] or [B, M, N] of f32, bf16 or f16
};

/// Reports that `op` has no counterpart and returns failure.
mlir::LogicalResult refuse(mlir::Operation *op, const mlir::Twine &reason,
                           const mlir::Twine &remedy);

/// The format with these elements, scales and number of elements that share a scale.
std::optional<Format> findFormat(mlir::Type data, mlir::Type scales, int64_t block);

/// All dimensions but the last as the rows of a matrix; a vector is one row.
mlir::Value asMatrix(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor);

/// The inverse: `matrix` with the shape of `type`, which is static unless `type` is a matrix.
mlir::Value reshapeTo(mlir::OpBuilder &b, mlir::Location loc, mlir::Value matrix,
                      mlir::RankedTensorType type);

/// Builds the GEMM at the place of `op`, or reports at `op` why fp4 has none like it.
mlir::FailureOr<mlir::Value> convertMatmul(mlir::OpBuilder &b, mlir::Operation *op,
                                           const ScaledMatmul &product);

/// Builds the values, of type `element`, of a matrix and its scales, or reports at `op` why fp4 has
/// none.
mlir::FailureOr<mlir::Value> convertDequantization(mlir::OpBuilder &b, mlir::Operation *op,
                                                   const ScaledOperand &operand,
                                                   mlir::Type element);

} // namespace fp4::ingress
