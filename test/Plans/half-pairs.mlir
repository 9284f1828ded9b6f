// RUN: fp4-opt %s -split-input-file -fp4-set-target -fp4-plan-kernels -verify-diagnostics | FileCheck %s
// A plan may ask for a pair with 128 rows; what does not fit is an error.

!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !s>
// CHECK-LABEL: @accepted
func.func @accepted(%a: tensor<256x256xf4E2M1FN>, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  // CHECK: #fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [128, 256, 256], cluster = [2, 1], pair,
  %0 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [128, 256, 256]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // CHECK: #fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [128, 256, 256], cluster = [4, 2], pair,
  %1 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, cluster = [4, 2], tile = [128, 256, 256]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // CHECK: #fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [128, 192, 256], cluster = [2, 1], pair,
  %2 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [128, 192, 256]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  return
}

// -----

!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !s>
func.func @refused(%a: tensor<256x256xf4E2M1FN>, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  // expected-error @+2 {{must have a plan whose 'tile' is [128, n, k] with n = 64, 128, 192 or 256 and k a multiple of 256, but got [128, 96, 256]}}
  // expected-note @+1 {{leave 'tile' out}}
  %0 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [128, 96, 256]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'tile' is [128, n, k], or [256, n, k] of a pair, with n = 64, 96, 128, 192 or 256 and k a multiple of 256, but got [64, 128, 256]}}
  // expected-note @+1 {{leave 'tile' out}}
  %1 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [64, 128, 256]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'cluster' has an even number of CTAs along m, two for each pair, but got [1, 2]}}
  // expected-note @+1 {{leave 'cluster' out}}
  %3 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, cluster = [1, 2], tile = [128, 256, 256]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  return
}
