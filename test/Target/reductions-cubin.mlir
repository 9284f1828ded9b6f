// ptxas accepts GEMMs of tcgen05 of split-K that reduce in a cluster without spills: with small M as columns, with
// tiles of 64 and of 128 columns, of which a thread adds 16 and 32, and of pairs, also in several turns.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_100a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s
// RUN: fp4-opt %s --fp4-set-target=target=sm_103a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s

// CHECK: rows_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: narrow_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: wide_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: pairs_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: turns_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0

!lhs = !fp4.scaled<nvfp4, tensor<16x8192xf4E2M1FN>,
                   tensor<16x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<8192x8192xf4E2M1FN>,
                   tensor<8192x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @rows(%a: tensor<16x8192xf4E2M1FN>, %la: tensor<16x512xf8E4M3FN>, %b: tensor<8192x8192xf4E2M1FN>, %lb: tensor<8192x512xf8E4M3FN>) -> tensor<16x8192xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<16x512xf8E4M3FN> -> tensor<16x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<8192x512xf8E4M3FN> -> tensor<8192x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 4>,
       fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 16, 256], reduction = cluster>}
      : (!lhs, !rhs) -> tensor<16x8192xbf16>
  return %y : tensor<16x8192xbf16>
}
!lhs2 = !fp4.scaled<nvfp4, tensor<64x16384xf4E2M1FN>,
                    tensor<64x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<nvfp4, tensor<7168x16384xf4E2M1FN>,
                    tensor<7168x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @narrow(%a: tensor<64x16384xf4E2M1FN>, %la: tensor<64x1024xf8E4M3FN>, %b: tensor<7168x16384xf4E2M1FN>, %lb: tensor<7168x1024xf8E4M3FN>, %alpha: tensor<64x1xf32>) -> tensor<64x7168xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<64x1024xf8E4M3FN> -> tensor<64x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<7168x1024xf8E4M3FN> -> tensor<7168x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {work = #fp4.work<split_k = 4>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256], reduction = cluster>}
      : (!lhs2, !rhs2, tensor<64x1xf32>) -> tensor<64x7168xbf16>
  return %y : tensor<64x7168xbf16>
}
!lhs3 = !fp4.scaled<nvfp4, tensor<128x7168xf4E2M1FN>,
                    tensor<128x448xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs3 = !fp4.scaled<nvfp4, tensor<4096x7168xf4E2M1FN>,
                    tensor<4096x448xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @wide(%a: tensor<128x7168xf4E2M1FN>, %la: tensor<128x448xf8E4M3FN>, %b: tensor<4096x7168xf4E2M1FN>, %lb: tensor<4096x448xf8E4M3FN>) -> tensor<128x4096xf32> {
  %sa = fp4.swizzle_scales %la : tensor<128x448xf8E4M3FN> -> tensor<128x448xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<4096x448xf8E4M3FN> -> tensor<4096x448xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 4>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256], reduction = cluster>}
      : (!lhs3, !rhs3) -> tensor<128x4096xf32>
  return %y : tensor<128x4096xf32>
}
!lhs4 = !fp4.scaled<mxfp4, tensor<512x7168xf4E2M1FN>,
                    tensor<512x224xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs4 = !fp4.scaled<mxfp4, tensor<2048x7168xf4E2M1FN>,
                    tensor<2048x224xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @pairs(%a: tensor<512x7168xf4E2M1FN>, %la: tensor<512x224xf8E8M0FNU>, %b: tensor<2048x7168xf4E2M1FN>, %lb: tensor<2048x224xf8E8M0FNU>, %alpha: tensor<1x2048xf32>) -> tensor<512x2048xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<512x224xf8E8M0FNU> -> tensor<512x224xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<2048x224xf8E8M0FNU> -> tensor<2048x224xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {work = #fp4.work<split_k = 2>,
       fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 128, 256], reduction = cluster>}
      : (!lhs4, !rhs4, tensor<1x2048xf32>) -> tensor<512x2048xbf16>
  return %y : tensor<512x2048xbf16>
}
!lhs5 = !fp4.scaled<mxfp4, tensor<1024x7168xf4E2M1FN>,
                    tensor<1024x224xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @turns(%a: tensor<1024x7168xf4E2M1FN>, %la: tensor<1024x224xf8E8M0FNU>, %b: tensor<2048x7168xf4E2M1FN>, %lb: tensor<2048x224xf8E8M0FNU>) -> tensor<1024x2048xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<1024x224xf8E8M0FNU> -> tensor<1024x224xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<2048x224xf8E8M0FNU> -> tensor<2048x224xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs5
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 2>,
       fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 64, 256], reduction = cluster>}
      : (!lhs5, !rhs4) -> tensor<1024x2048xbf16>
  return %y : tensor<1024x2048xbf16>
}
