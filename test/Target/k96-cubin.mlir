// ptxas accepts GEMMs by instructions of K = 96 for sm_103a without spills, with every tile; their tensor
// core instructions are eight for a k tile, with 12 columns of scales for 128 rows copied for each.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_103a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s
// RUN: fp4-runner %s --target=sm_103a --emit=ptx | FileCheck %s --check-prefix=PTX

// CHECK: n64_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: n128_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: n192_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// PTX: .target sm_103a
// PTX: tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16

!lhs = !fp4.scaled<nvfp4, tensor<2048x3072xf4E2M1FN>,
                   tensor<2048x192xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<1536x3072xf4E2M1FN>,
                   tensor<1536x192xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @n64(%a: tensor<2048x3072xf4E2M1FN>, %sa: tensor<2048x192xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %b: tensor<1536x3072xf4E2M1FN>, %sb: tensor<1536x192xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<2048x1536xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 64, 768], cluster = [2, 1], pair>}
      : (!lhs, !rhs) -> tensor<2048x1536xbf16>
  return %y : tensor<2048x1536xbf16>
}
func.func @n128(%a: tensor<2048x3072xf4E2M1FN>, %sa: tensor<2048x192xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %b: tensor<1536x3072xf4E2M1FN>, %sb: tensor<1536x192xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<2048x1536xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 768], cluster = [2, 1], pair>}
      : (!lhs, !rhs) -> tensor<2048x1536xbf16>
  return %y : tensor<2048x1536xbf16>
}
func.func @n192(%a: tensor<2048x3072xf4E2M1FN>, %sa: tensor<2048x192xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %b: tensor<1536x3072xf4E2M1FN>, %sb: tensor<1536x192xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<2048x1536xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 192, 768], cluster = [2, 1], pair>}
      : (!lhs, !rhs) -> tensor<2048x1536xbf16>
  return %y : tensor<2048x1536xbf16>
}
