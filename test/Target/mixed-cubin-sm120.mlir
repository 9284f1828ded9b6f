// ptxas accepts GEMMs of elements of 4, 6 and 8 bits for sm_120a without spills, with the largest tiles.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_120a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s

// CHECK: six_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: weights4_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: activations4_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0

!lhs = !fp4.scaled<mxfp6_e3m2, tensor<1024x1024xf6E3M2FN>,
                   tensor<1024x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp6_e2m3, tensor<1024x1024xf6E2M3FN>,
                   tensor<1024x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @six(%a: tensor<1024x1024xf6E3M2FN>, %sa: tensor<1024x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<1024x1024xf6E2M3FN>, %sb: tensor<1024x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<1024x1024xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (!lhs, !rhs) -> tensor<1024x1024xbf16>
  return %y : tensor<1024x1024xbf16>
}
!lhs2 = !fp4.scaled<mxfp8_e4m3, tensor<1024x1024xf8E4M3FN>,
                    tensor<1024x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp4, tensor<1024x1024xf4E2M1FN>,
                    tensor<1024x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @weights4(%a: tensor<1024x1024xf8E4M3FN>, %sa: tensor<1024x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<1024x1024xf4E2M1FN>, %sb: tensor<1024x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<1024x1024xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (!lhs2, !rhs2) -> tensor<1024x1024xbf16>
  return %y : tensor<1024x1024xbf16>
}
func.func @activations4(%a: tensor<1024x1024xf4E2M1FN>, %sa: tensor<1024x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<1024x1024xf8E4M3FN>, %sb: tensor<1024x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<1024x1024xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !rhs2
  %b_scaled = fp4.scaled %b, %sb : !lhs2
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 256, 128]>}
      : (!rhs2, !lhs2) -> tensor<1024x1024xbf16>
  return %y : tensor<1024x1024xbf16>
}
