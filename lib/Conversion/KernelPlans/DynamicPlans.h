//===- DynamicPlans.h - Products of any N and K ----------------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/DynamicSizes.h"
#include "fp4/Dialect/Fp4/IR/KernelPlan.h"

namespace fp4 {

/// N or K, or both, are sizes that the program gets when it runs.
bool hasDynamicSizes(BlockScaledMatmulOp product);

/// The kernel of `plan` gets them. Of some, operands may be swapped.
llvm::LogicalResult checkDynamicSizes(BlockScaledMatmulOp product, const KernelPlan &plan,
                                      bool mayHaveSwap = false);

} // namespace fp4
