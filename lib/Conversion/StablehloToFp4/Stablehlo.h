//===- Stablehlo.h - Operations of stablehlo by their names ---------------===//
#pragma once

#include "fp4/Conversion/Ingress.h"

#include <optional>

namespace fp4::stablehlo {

/// Returns true when `op`, which may be null, is called `name`.
bool is(mlir::Operation *op, llvm::StringRef name);

/// An attribute of an operation that is not registered, or one of its properties.
mlir::Attribute attributeOf(mlir::Operation *op, llvm::StringRef name);

/// The operand of the stablehlo.transpose that made `value` by an exchange of the last two
/// dimensions; or null.
mlir::Value transposed(mlir::Value value);

/// Returns true when `op` is a dot_general with a side that is computed from numbers of 4 bits, or
/// from scales of OCP MX.
bool isExplicitDot(mlir::Operation *op);

/// The matmul of an explicit dot, whose sides are numbers times their scales, or a report at `op`.
mlir::FailureOr<ingress::ScaledMatmul> matchExplicitDot(mlir::OpBuilder &b, mlir::Operation *op);

/// The operations of stablehlo that only compute elements or move them, of which matmuls are made:
/// those that feed `op`, and `op`.
llvm::SetVector<mlir::Operation *> feedersOf(mlir::Operation *op);

} // namespace fp4::stablehlo
