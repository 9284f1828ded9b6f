//===- WarpProductPlans.h - Block-scaled GEMMs of mma.sync ----------------===//
#pragma once

#include "CostModel.h"
#include "Families.h"

namespace fp4 {

/// Proposes plans of kProductRules on targets with block-scaled mma.sync and without tcgen05.
KernelPlan proposeWarpProduct(mlir::Operation *op, const KernelPlan &wish, const MatmulSize &size,
                              const hw::TargetModel &target);
llvm::LogicalResult checkWarpProduct(mlir::Operation *op, const KernelPlan &plan,
                                     const hw::TargetModel &target);

} // namespace fp4
