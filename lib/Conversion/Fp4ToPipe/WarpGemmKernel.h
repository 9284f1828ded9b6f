//===- WarpGemmKernel.h - Block-scaled GEMMs of mma.sync ---------------===//
#pragma once

#include "MatmulKernel.h"

namespace fp4 {

/// buildMatmulKernel for targets with block-scaled mma.sync: accumulators are in the registers of
/// warps.
mlir::gpu::GPUFuncOp buildWarpGemmKernel(mlir::gpu::GPUModuleOp module, const MatmulShape &shape,
                                         const KernelPlan &plan, mlir::Location loc);

} // namespace fp4
