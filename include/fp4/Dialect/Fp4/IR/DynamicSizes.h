//===- DynamicSizes.h - Matmuls of any N and K ----------------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

namespace fp4 {

/// N, or K, is a size that the program gets when it runs.
bool hasDynamicColumns(BlockScaledMatmulOp product);
bool hasDynamicDepth(BlockScaledMatmulOp product);

} // namespace fp4
