//===- PlainProducts.h - Fused products as several operations -------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace fp4 {

/// Makes of every product with a body what fp4-fuse would make it of: one or two products in f32,
/// an elementwise operation, a quantizer and an amax. These have references, and the same bits. A
/// body whose f32 the product rounds to f8E4M3FN stays, because no operation saturates as that
/// rounding does, and so does one of a product that leaves rows unspecified, which nothing may use.
void makeProductsPlain(mlir::ModuleOp module);

} // namespace fp4
