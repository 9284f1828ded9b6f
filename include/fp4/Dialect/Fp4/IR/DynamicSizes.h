//===- DynamicSizes.h - Matmuls of any N and K ----------------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

namespace fp4 {

/// N, or K, is a size that the program gets when it runs.
bool hasDynamicColumns(BlockScaledMatmulOp product);
bool hasDynamicDepth(BlockScaledMatmulOp product);

/// The alpha, or alpha2, of 1 x N, whose columns are the dynamic N of prepacked weights, which tell
/// only their tiles; null without one, where N is 128 for each row of tiles.
mlir::Value operandOfColumns(BlockScaledMatmulOp product);

} // namespace fp4
