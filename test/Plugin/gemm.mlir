// RUN: mlir-opt-22 %S/../Pipelines/gemm.mlir --load-dialect-plugin=%plugin --load-pass-plugin=%plugin \
// RUN:   --pass-pipeline='builtin.module(fp4-compile{to=nvvm})' | FileCheck %s

// Stock mlir-opt-22 lowers an fp4 GEMM to NVVM with nothing but the plugin.

// CHECK-LABEL: func.func @gemm
// CHECK: gpu.launch_func @gemm_matmul_0::@kernel
// CHECK-LABEL: gpu.module @gemm_matmul_0
// CHECK: llvm.func @kernel
// CHECK: nvvm.tcgen05.mma.block_scale
