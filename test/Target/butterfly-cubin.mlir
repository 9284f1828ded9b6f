// ptxas accepts the kernels of butterfly-ptx.mlir for both targets: no spills, no stack, and registers that leave
// room for 1280 (rows) and 512 (columns) threads per SM.
// REQUIRES: ptxas
// RUN: fp4-opt %S/butterfly-ptx.mlir --compile-to=cubin | %python %S/Inputs/resources.py | FileCheck %s
// RUN: fp4-opt %S/butterfly-ptx.mlir --target=sm_90a --compile-to=cubin | %python %S/Inputs/resources.py | FileCheck %s

// CHECK-DAG: fused_quantize_0 kernel: registers {{[1-4][0-9]}}, spill 0, stack 0
// CHECK-DAG: stochastic_quantize_0 kernel: registers {{[1-4][0-9]}}, spill 0, stack 0
// CHECK-DAG: lanes_hadamard_0 kernel: registers {{[1-4][0-9]}}, spill 0, stack 0
// CHECK-DAG: columns_hadamard_0 kernel: registers {{[1-9][0-9]|1[0-2][0-9]}}, spill 0, stack 0
// CHECK-DAG: amaxes_hadamard_amax_0 kernel: registers {{[1-5][0-9]}}, spill 0, stack 0
