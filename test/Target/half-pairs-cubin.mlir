// ptxas accepts pairs with 128 rows without spills, of different depths, and either way of storing; their tensor core
// instructions are as many as a k tile has steps, beside a copy of the scales of A and one of both halves of B for each
// block of these, by a warp of its own. MMAs of the first k tile come before the loop over the others.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_100a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s
// RUN: fp4-runner %s --target=sm_100a --emit=ptx | FileCheck %s --check-prefix=PTX

// CHECK: wide_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: deep_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: powers_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// PTX-COUNT-8: tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16
// PTX-COUNT-4: tcgen05.cp.cta_group::2.32x128b.warpx4
// PTX-COUNT-4: tcgen05.cp.cta_group::2.64x128b.warpx2::01_23
// PTX-NOT: tcgen05.cp
// PTX-COUNT-16: tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16
// PTX-COUNT-8: tcgen05.cp.cta_group::2.32x128b.warpx4
// PTX-COUNT-8: tcgen05.cp.cta_group::2.64x128b.warpx2::01_23
// PTX-NOT: tcgen05.cp
// PTX-COUNT-8: tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.block32
// PTX-COUNT-1: tcgen05.cp.cta_group::2.32x128b.warpx4
// PTX-COUNT-1: tcgen05.cp.cta_group::2.64x128b.warpx2::01_23
// PTX-NOT: tcgen05.mma

!lhs = !fp4.scaled<nvfp4, tensor<512x2048xf4E2M1FN>,
                   tensor<512x128xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<1536x2048xf4E2M1FN>,
                   tensor<1536x128xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @wide(%a: tensor<512x2048xf4E2M1FN>, %sa: tensor<512x128xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %b: tensor<1536x2048xf4E2M1FN>, %sb: tensor<1536x128xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<512x1536xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 256], pair, store = tma>}
      : (!lhs, !rhs) -> tensor<512x1536xbf16>
  return %y : tensor<512x1536xbf16>
}
func.func @deep(%a: tensor<512x2048xf4E2M1FN>, %sa: tensor<512x128xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %b: tensor<1536x2048xf4E2M1FN>, %sb: tensor<1536x128xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<512x1536xf32> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 512], pair, store = direct>}
      : (!lhs, !rhs) -> tensor<512x1536xf32>
  return %y : tensor<512x1536xf32>
}
!lhs2 = !fp4.scaled<mxfp8_e4m3, tensor<512x2048xf8E4M3FN>,
                    tensor<512x64xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp8_e4m3, tensor<1536x2048xf8E4M3FN>,
                    tensor<1536x64xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @powers(%a: tensor<512x2048xf8E4M3FN>, %sa: tensor<512x64xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<1536x2048xf8E4M3FN>, %sb: tensor<1536x64xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<512x1536xf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128], pair, cluster = [2, 2]>}
      : (!lhs2, !rhs2) -> tensor<512x1536xf16>
  return %y : tensor<512x1536xf16>
}
