// RUN: mlir-opt-22 %S/../Pipelines/gemm.mlir --load-dialect-plugin=%plugin --load-pass-plugin=%plugin \
// RUN:   --pass-pipeline='builtin.module(fp4-compile{to=tiles})' | FileCheck %s

// Stock mlir-opt-22 compiles an fp4 matrix product with nothing but the plugin.

// CHECK-LABEL: func.func @gemm
// CHECK: gpu.launch_func @gemm_matmul_0::@kernel
