// ptxas accepts GEMMs of MXFP8, and of MXFP8 and MXFP4, for sm_90a without spills, with every tile that
// has many registers.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s

// CHECK: wide_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: tall_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: few_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0

!lhs = !fp4.scaled<mxfp8_e5m2, tensor<?x1024xf8E5M2>,
                   tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp8_e4m3, tensor<512x1024xf8E4M3FN>,
                   tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @wide(%a: tensor<?x1024xf8E5M2>, %sa: tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<512x1024xf8E4M3FN>, %sb: tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x512xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128]>}
      : (!lhs, !rhs) -> tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}
!lhs2 = !fp4.scaled<mxfp8_e4m3, tensor<?x1024xf8E4M3FN>,
                    tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp4, tensor<512x1024xf4E2M1FN>,
                    tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @tall(%a: tensor<?x1024xf8E4M3FN>, %sa: tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<512x1024xf4E2M1FN>, %sb: tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x512xf32> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128]>}
      : (!lhs2, !rhs2) -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}
!lhs3 = !fp4.scaled<mxfp8_e4m3, tensor<40x1024xf8E4M3FN>,
                    tensor<40x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @few(%a: tensor<40x1024xf8E4M3FN>, %sa: tensor<40x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<512x1024xf8E4M3FN>, %sb: tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<40x512xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 64, 128]>}
      : (!lhs3, !rhs) -> tensor<40x512xbf16>
  return %y : tensor<40x512xbf16>
}
