// ptxas accepts the GEMM kernel of every tile width and output type for sm_100a: no spills, no stack,
// and registers that leave room; where results are staged, a thread has 64 columns at a time, and with
// 256 columns all of a row of the result waits in registers. The report of each is printed into the
// test's output.
// REQUIRES: ptxas
// RUN: fp4-opt %s --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | tee %t | FileCheck %s

// CHECK: n64_bf16_matmul_0 kernel: registers {{[1-9][0-9]}}, spill 0, stack 0
// CHECK: n128_f32_matmul_0 kernel: registers {{[1-9][0-9]}}, spill 0, stack 0
// CHECK: n192_f16_matmul_0 kernel: registers {{[1-9][0-9]+}}, spill 0, stack 0
// CHECK: n256_bf16_matmul_0 kernel: registers {{[12][0-9][0-9]}}, spill 0, stack 0
// CHECK: ragged_matmul_0 kernel: registers {{[1-9][0-9]}}, spill 0, stack 0

!sf1024 = tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!sw1024 = tensor<384x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>

!lhs = !fp4.scaled<nvfp4, tensor<?x1024xf4E2M1FN>, !sf1024>
!rhs = !fp4.scaled<nvfp4, tensor<384x1024xf4E2M1FN>, !sw1024>
func.func @n64_bf16(%a: tensor<?x1024xf4E2M1FN>, %sa: !sf1024, %b: tensor<384x1024xf4E2M1FN>,
                    %sb: !sw1024) -> tensor<?x384xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256]>}
      : (!lhs, !rhs) -> tensor<?x384xbf16>
  return %y : tensor<?x384xbf16>
}
func.func @n128_f32(%a: tensor<?x1024xf4E2M1FN>, %sa: !sf1024, %b: tensor<384x1024xf4E2M1FN>,
                    %sb: !sw1024) -> tensor<?x384xf32> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>}
      : (!lhs, !rhs) -> tensor<?x384xf32>
  return %y : tensor<?x384xf32>
}
func.func @n192_f16(%a: tensor<?x1024xf4E2M1FN>, %sa: !sf1024, %b: tensor<384x1024xf4E2M1FN>,
                    %sb: !sw1024, %alpha: tensor<f32>) -> tensor<?x384xf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 192, 256]>}
      : (!lhs, !rhs, tensor<f32>) -> tensor<?x384xf16>
  return %y : tensor<?x384xf16>
}
func.func @n256_bf16(%a: tensor<?x1024xf4E2M1FN>, %sa: !sf1024, %b: tensor<384x1024xf4E2M1FN>,
                     %sb: !sw1024, %alpha: tensor<f32>) -> tensor<?x384xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 256]>}
      : (!lhs, !rhs, tensor<f32>) -> tensor<?x384xbf16>
  return %y : tensor<?x384xbf16>
}
!lhs2 = !fp4.scaled<nvfp4, tensor<?x272xf4E2M1FN>,
                    tensor<?x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<nvfp4, tensor<201x272xf4E2M1FN>,
                    tensor<201x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// N and K that divide nothing: single-element stores, and residues of MMAs and scale copies.
func.func @ragged(%a: tensor<?x272xf4E2M1FN>,
                  %sa: tensor<?x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
                  %b: tensor<201x272xf4E2M1FN>,
                  %sb: tensor<201x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    -> tensor<?x201xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs2, !rhs2) -> tensor<?x201xbf16>
  return %y : tensor<?x201xbf16>
}

// These kernels assemble for sm_103a.
// RUN: fp4-opt %s --compile-to=cubin --target=sm_103a | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s
