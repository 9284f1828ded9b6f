// The order of sums is that of the operation: every plan gives the same bits on every target.
// RUN: fp4-runner %s --check=strict --output y=%t.1.npy | FileCheck %s
// RUN: fp4-runner %s --policy=random --seed=1 --plan 'gemv, threads = 128' --check=strict --output y=%t.2.npy | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --check=strict --output y=%t.3.npy | FileCheck %s
// As many CTAs run at once as threads allow.
// RUN: fp4-runner %s --target=sm_90a --plan 'gemv, threads = 512' --check=strict --output y=%t.4.npy | FileCheck %s
// RUN: cmp %t.1.npy %t.2.npy
// RUN: cmp %t.1.npy %t.4.npy
// RUN: cmp %t.1.npy %t.3.npy
// CHECK: passed
// CHECK: equals the fma model, bit for bit
// CHECK: hazards {{.*}}none

#fma = #fp4.matmul_arithmetic<fma>
!s = tensor<1x144xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<136x144xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<1x2304xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<136x2304xf4E2M1FN>, !t>
func.func @gemv(%a: tensor<1x2304xf4E2M1FN>, %la: tensor<1x144xf8E4M3FN>, %b: tensor<136x2304xf4E2M1FN>, %lb: tensor<136x144xf8E4M3FN>, %alpha: tensor<f32>) -> (tensor<1x136xf32> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<1x144xf8E4M3FN> -> !s
  %sb = fp4.swizzle_scales %lb : tensor<136x144xf8E4M3FN> -> !t
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha {arithmetic = #fma}
      : (!lhs, !rhs, tensor<f32>) -> tensor<1x136xf32>
  return %y : tensor<1x136xf32>
}
