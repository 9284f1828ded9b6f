//===- MatmulKernel.h - The sequential kernels of a matrix multiplication -===//
#pragma once

#include "Gemm.h"

namespace fp4 {

/// Adds `gpu.func @kernel` of the sequential form to `module`. The plan says which roles execute it
/// and which schedule shares out its tiles.
mlir::gpu::GPUFuncOp buildMatmulKernel(mlir::gpu::GPUModuleOp module, const Gemm &gemm,
                                       const KernelPlan &plan, mlir::Location loc);

/// Builds the kernel for targets without fp4 tensor cores: operands are converted, and accumulators
/// are in registers (ConvertedGemmKernel.cpp).
mlir::gpu::GPUFuncOp buildConvertedGemmKernel(mlir::gpu::GPUModuleOp module, const Gemm &gemm,
                                              const KernelPlan &plan, mlir::Location loc);

/// Builds the kernel of floats and weights whose A is converted in tensor memory
/// (WeightLaneKernel.cpp).
mlir::gpu::GPUFuncOp buildWeightLaneKernel(mlir::gpu::GPUModuleOp module, const Gemm &gemm,
                                           const KernelPlan &plan, mlir::Location loc);

/// Builds the kernel of operands of FP8 with f32 scales (PromotedGemmKernel.cpp).
mlir::gpu::GPUFuncOp buildPromotedGemmKernel(mlir::gpu::GPUModuleOp module, const Gemm &gemm,
                                             const KernelPlan &plan, mlir::Location loc);

/// Builds the kernel of FP8 with f32 scales whose sums are in tensor memory
/// (LaneGemmKernel.cpp).
mlir::gpu::GPUFuncOp buildLaneGemmKernel(mlir::gpu::GPUModuleOp module, const Gemm &gemm,
                                         const KernelPlan &plan, mlir::Location loc);

/// Builds the kernel of transposed fragments: the tensor core takes converted B from registers
/// (WeightGemmKernel.cpp).
mlir::gpu::GPUFuncOp buildWeightGemmKernel(mlir::gpu::GPUModuleOp module, const Gemm &gemm,
                                           const KernelPlan &plan, mlir::Location loc);

/// Builds the kernel of block-scaled mma.sync: accumulators are in the registers of warps
/// (WarpGemmKernel.cpp).
mlir::gpu::GPUFuncOp buildWarpGemmKernel(mlir::gpu::GPUModuleOp module, const Gemm &gemm,
                                         const KernelPlan &plan, mlir::Location loc);

} // namespace fp4
