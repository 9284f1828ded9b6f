//===- GemmRoutes.h - The rules of GEMMs, by their routes -----------------===//
#pragma once

#include "Families.h"

namespace fp4 {

/// Proposes and checks plans of block-scaled instructions of tcgen05 (GemmPlans.cpp).
KernelPlan proposeBlockScaled(mlir::Operation *op, const KernelPlan &partial,
                              const MatmulSize &size, const hw::TargetModel &target);
llvm::LogicalResult checkBlockScaled(mlir::Operation *op, const KernelPlan &plan,
                                     const hw::TargetModel &target);

/// Reports why `op` has no kernel on `target` with the axes of `plan.route`.
llvm::LogicalResult requireGemmRoute(mlir::Operation *op, const KernelPlan &plan,
                                     const hw::TargetModel &target);

/// Returns true when `partial` leaves room for a route with `axes`.
bool mayTake(BlockScaledMatmulOp product, const KernelPlan &partial, const route::Route &axes,
             const hw::TargetModel &target);

/// Returns true when the tile of `plan` is one of the transposed result: by its route, or of a
/// partial plan by all routes that it leaves.
bool isTransposed(BlockScaledMatmulOp product, const KernelPlan &plan,
                  const hw::TargetModel &target);

/// Returns true when the planner of `op`, a matmul, on `target` is that of `kernel`.
bool isPlannedAs(mlir::Operation *op, const hw::TargetModel &target, route::Kernel kernel);

/// Returns true when only GEMMs of few rows can be split: operands are converted, and no tensor
/// memory has the sums of parts of more rows.
bool splitsOnlySmallM(BlockScaledMatmulOp product, const hw::TargetModel &target);

/// The tiles that the planner of `product` has for dynamic sizes; none if one plan is for all.
std::vector<SizedTile> tilesOfGemm(BlockScaledMatmulOp product, const MatmulSize &size,
                                   const hw::TargetModel &target);

} // namespace fp4
