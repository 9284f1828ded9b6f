// ptxas accepts GEMMs of elements of 6 bits, and of 6 beside 4 and 8, for sm_100a and sm_103a without spills, and the
// kernels that pack them.
// REQUIRES: ptxas
// RUN: fp4-opt %s --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py | FileCheck %s
// RUN: fp4-opt %s --fp4-set-target=target=sm_103a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s

// CHECK-DAG: six_pack_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK-DAG: six_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK-DAG: weights6_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK-DAG: activations6_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0

#tiled = #fp4.scale_layout<tiled_128x4>
!s = tensor<1024x32xf8E8M0FNU, #tiled>

!lhs = !fp4.scaled<mxfp6_e3m2, tensor<1024x1024xf6E3M2FN>, !s>
!rhs = !fp4.scaled<mxfp6_e2m3, tensor<1024x1024xf6E2M3FN>, !s>
func.func @six(%a: tensor<1024x1024xf6E3M2FN>, %sa: !s, %b: tensor<1024x1024xf6E2M3FN>, %sb: !s) -> tensor<1024x1024xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 256, 128], store = tma>}
      : (!lhs, !rhs) -> tensor<1024x1024xbf16>
  return %y : tensor<1024x1024xbf16>
}
!lhs2 = !fp4.scaled<mxfp8_e4m3, tensor<1024x1024xf8E4M3FN>, !s>
func.func @weights6(%a: tensor<1024x1024xf8E4M3FN>, %sa: !s, %b: tensor<1024x1024xf6E2M3FN>, %sb: !s) -> tensor<1024x1024xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (!lhs2, !rhs) -> tensor<1024x1024xbf16>
  return %y : tensor<1024x1024xbf16>
}
!rhs2 = !fp4.scaled<mxfp4, tensor<1024x1024xf4E2M1FN>, !s>
func.func @activations6(%a: tensor<1024x1024xf6E3M2FN>, %sa: !s, %b: tensor<1024x1024xf4E2M1FN>, %sb: !s) -> tensor<1024x1024xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128]>}
      : (!lhs, !rhs2) -> tensor<1024x1024xbf16>
  return %y : tensor<1024x1024xbf16>
}
