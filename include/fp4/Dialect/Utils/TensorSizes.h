//===- TensorSizes.h - Sizes that are those of other tensors --------------===//
#pragma once

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace fp4 {

/// Returns true when a slice without offset and stride takes all of dimension `dim` of its source:
/// a dynamic size is then, perhaps through views, the size of that dimension.
bool takesAll(mlir::tensor::ExtractSliceOp slice, int64_t dim);

} // namespace fp4
