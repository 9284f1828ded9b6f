//===- DynamicPlans.h - Products of any N and K ----------------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/DynamicSizes.h"
#include "fp4/Dialect/Fp4/IR/KernelPlan.h"
#include "fp4/ISA/TargetModel.h"
#include "fp4/Support/Error.h"

namespace fp4 {

/// N or K, or both, are sizes that the program gets when it runs.
bool hasDynamicSizes(BlockScaledMatmulOp product);

/// An error where no kernel of the target for such operands gets N and K as numbers.
Status requireDynamicSizes(BlockScaledMatmulOp product, const hw::TargetModel &target);

/// The kernel of `plan` gets them.
llvm::LogicalResult checkDynamicSizes(BlockScaledMatmulOp product, const KernelPlan &plan);

} // namespace fp4
