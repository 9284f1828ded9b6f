// RUN: fp4-opt %s | FileCheck %s
// RUN: not %fp4-opt-once %t.does-not-exist.mlir 2>&1 | FileCheck %s --check-prefix=MISSING

// MISSING: cannot open input file

// CHECK-LABEL: func.func @identity
// CHECK: return %{{.*}} : tensor<16x16xf4E2M1FN>
func.func @identity(%x: tensor<16x16xf4E2M1FN>) -> tensor<16x16xf4E2M1FN> {
  return %x : tensor<16x16xf4E2M1FN>
}
