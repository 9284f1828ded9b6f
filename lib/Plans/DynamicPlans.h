//===- DynamicPlans.h - GEMMs of any N and K ------------------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/DynamicSizes.h"
#include "fp4/Dialect/Fp4/IR/KernelPlan.h"
#include "fp4/ISA/TargetModel.h"

namespace fp4 {

/// Returns true when N or K, or both, are sizes that the program gets when it runs.
bool hasDynamicSizes(BlockScaledMatmulOp product);

/// Checks that the kernel of `plan` supports dynamic sizes. Some kernels with them may have tiles
/// of the transposed result.
llvm::LogicalResult checkDynamicSizes(BlockScaledMatmulOp product, const KernelPlan &plan,
                                      const hw::TargetModel &target, bool mayTranspose = false);

} // namespace fp4
