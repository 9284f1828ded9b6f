//===- VerifyCluster.h - Clusters and pairs of a kernel -------------------===//
#pragma once

#include "mlir/Support/LLVM.h"

namespace mlir::gpu {
class GPUFuncOp;
} // namespace mlir::gpu

namespace fp4::hw {
struct TargetModel;
} // namespace fp4::hw

namespace fp4::pipe {

/// (C147), (C148): the cluster of `kernel` and its pairs exist on `target`, and grids fit.
mlir::LogicalResult verifyCluster(mlir::gpu::GPUFuncOp kernel, const hw::TargetModel &target);

} // namespace fp4::pipe
