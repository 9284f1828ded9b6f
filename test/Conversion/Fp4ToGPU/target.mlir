// RUN: fp4-opt %s -convert-fp4-to-gpu=target=sm_90a | FileCheck %s
// RUN: not fp4-opt %s -convert-fp4-to-gpu=target=sm_1 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// A target without fp4 conversions compares with the midpoints instead.

// CHECK-LABEL: gpu.module @f_quantize_0
// CHECK-NOT:     f4x2
// CHECK:         arith.cmpf ugt, %[[X:.*]], %{{.*}} : f32
// CHECK:         arith.cmpf uge, %[[X]], %{{.*}} : f32
// CHECK-NOT:     f4x2
// UNKNOWN: error: {{.*}}sm_1
func.func @f(%x: tensor<8x32xbf16>) -> (tensor<8x32xf4E2M1FN>, tensor<8x1xf8E8M0FNU>) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_even>}
      : (tensor<8x32xbf16>) -> (tensor<8x32xf4E2M1FN>, tensor<8x1xf8E8M0FNU>)
  return %q, %s : tensor<8x32xf4E2M1FN>, tensor<8x1xf8E8M0FNU>
}
