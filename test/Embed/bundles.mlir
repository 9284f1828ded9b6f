// RUN: fp4-opt %s --fp4-outline-islands | FileCheck %s
// Data and scales leave one island and enter the next, whose matmul needs an alpha that the host computes in between;
// each island makes the operand of its own.
// CHECK: func.func @later_fp4_0({{.*}} -> (tensor<128x256xf4E2M1FN>, tensor<128x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<f32>)
// CHECK-NOT: fp4.scaled
// CHECK: func.func @later_fp4_1(%[[D:.*]]: tensor<128x256xf4E2M1FN>, %[[S:.*]]: tensor<128x8xf8E8M0FNU, {{.*}}>, %[[ALPHA:.*]]: tensor<f32>)
// CHECK: fp4.scaled %[[D]], %[[S]] : !mxfp4
// CHECK: fp4.matmul {{.*}} alpha %[[ALPHA]]
// CHECK-LABEL: func.func @later(
// CHECK-NOT: fp4.
!d = tensor<128x256xf4E2M1FN>
!t = tensor<128x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<mxfp4, !d, !t>
func.func @later(%x: tensor<128x256xf32>, %one: tensor<f32>) -> tensor<128x128xf32> {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<128x256xf32>) -> (!d, tensor<128x8xf8E8M0FNU>)
  %st = fp4.swizzle_scales %s : tensor<128x8xf8E8M0FNU> -> !t
  %a = fp4.scaled %q, %st : !operand
  %amax = fp4.amax %x : tensor<128x256xf32> -> tensor<f32>
  %alpha = arith.addf %amax, %one : tensor<f32>
  %y = fp4.matmul %a, %a alpha %alpha : (!operand, !operand, tensor<f32>) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}
