// ptxas accepts the transforming quantizer for both targets: no spills, no stack, and registers that leave room.
// REQUIRES: ptxas
// RUN: fp4-opt %S/transform-ptx.mlir --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py | FileCheck %s
// RUN: fp4-opt %S/transform-ptx.mlir --compile-to=cubin --target=sm_103a | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s

// CHECK: nearest_transform_0 kernel: registers {{[1-9][0-9]}}, spill 0, stack 0
// CHECK: random_transform_0 kernel: registers {{[1-9][0-9]|1[0-2][0-9]}}, spill 0, stack 0
