//===- DispatchPlans.h - Plans of one GEMM by its sizes -------------------===//
#pragma once

#include "GemmPlanner.h"

namespace fp4 {

/// Returns true when plans by the number of rows make sense: the number is dynamic, and that of one
/// matrix.
bool mayHaveRowPlans(BlockScaledMatmulOp op);

/// The plans of the cases of `dispatch`, or that of `fp4.plan`; none where nothing is said.
std::vector<KernelPlan> plansOn(BlockScaledMatmulOp op);

/// Makes two plans of the one that holds for `rows` and more rows.
void cutAfter(std::vector<KernelPlan> &plans, int64_t rows);

/// Makes `plans` the plans of `op`: `dispatch`, with the split-K factor of each plan or none, or
/// `fp4.plan` where one plan is for all sizes.
void setPlans(BlockScaledMatmulOp op, llvm::ArrayRef<KernelPlan> plans,
              llvm::ArrayRef<int64_t> factors);

/// Decides the plans of `op`. The program's come first, then `given`, those of options. If neither
/// says anything, the family proposes plans by rows or by sizes.
llvm::LogicalResult planCases(BlockScaledMatmulOp op, llvm::ArrayRef<KernelPlan> given,
                              const hw::TargetModel &target);

/// Partial plans with `wave_cost` of `op`, whose N or K is dynamic, the last of them for all sizes;
/// none where one tile is the best of all (SizePlans.cpp).
std::vector<KernelPlan> proposeSizes(BlockScaledMatmulOp op, const hw::TargetModel &target);

} // namespace fp4
