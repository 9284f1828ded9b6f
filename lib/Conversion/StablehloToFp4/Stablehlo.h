//===- Stablehlo.h - Operations of stablehlo by their names ---------------===//
#pragma once

#include "fp4/Conversion/Ingress.h"

#include <optional>

namespace fp4::stablehlo {

/// Whether `op`, which may be null, is called `name`.
bool is(mlir::Operation *op, llvm::StringRef name);

/// An attribute of an operation that is not registered, or one of its properties.
mlir::Attribute attributeOf(mlir::Operation *op, llvm::StringRef name);

/// `value` with its last two dimensions exchanged: what a stablehlo.transpose made it of; or null.
mlir::Value transposed(mlir::Value value);

/// Whether `op` is a dot_general one of whose sides is computed from numbers of 4 bits, or from
/// scales of OCP MX.
bool isExplicitDot(mlir::Operation *op);

/// Such a product, whose sides are numbers times their scales, or a report at `op`.
mlir::FailureOr<ingress::ScaledProduct> matchExplicitDot(mlir::OpBuilder &b, mlir::Operation *op);

/// The operations of stablehlo that only compute elements or move them, of which products are made:
/// what feeds `op`, with itself.
llvm::SetVector<mlir::Operation *> feedersOf(mlir::Operation *op);

} // namespace fp4::stablehlo
