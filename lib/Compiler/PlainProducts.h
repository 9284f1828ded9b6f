//===- PlainProducts.h - Fused products as several operations -------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace fp4 {

/// Makes of every product with a body what fp4-fuse would make it of: one or two products in f32,
/// an elementwise operation, a quantizer and an amax. These have references, and the same bits.
/// Products of groups stay: no operation on whole tensors knows the group of a row.
void makeProductsPlain(mlir::ModuleOp module);

} // namespace fp4
