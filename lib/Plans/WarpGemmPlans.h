//===- WarpGemmPlans.h - Block-scaled GEMMs of mma.sync ----------------===//
#pragma once

#include "CostModel.h"
#include "Families.h"

namespace fp4 {

/// Proposes plans of kGemmRules on targets with block-scaled mma.sync and without tcgen05.
KernelPlan proposeWarpGemm(mlir::Operation *op, const KernelPlan &partial, const MatmulSize &size,
                           const hw::TargetModel &target);
llvm::LogicalResult checkWarpGemm(mlir::Operation *op, const KernelPlan &plan,
                                  const hw::TargetModel &target);

} // namespace fp4
