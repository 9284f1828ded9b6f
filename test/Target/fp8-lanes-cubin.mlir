// ptxas accepts GEMMs of FP8 with f32 scales for sm_100a without spills: with 128 columns, whose threads have 128
// sums and the 64 that are added at a time; with 256, where two warpgroups take registers from the others; by pairs;
// where M is known at run time and scales come from global memory; and of groups of which the device has the rows.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_100a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | tee %t | FileCheck %s

// CHECK: one_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: two_matmul_0 kernel: registers 168, spill 0, stack 0
// CHECK: ragged_matmul_0 kernel: registers 168, spill 0, stack 0
// CHECK: groups_matmul_0 kernel: registers 168, spill 0, stack 0

!a = tensor<4096x2048xf8E4M3FN>
!sa = tensor<4096x16xf32>
!b = tensor<4096x2048xf8E4M3FN>
!sb = tensor<32x16xf32>

!lhs = !fp4.scaled<fp8_block128, !a, !sa>
!rhs = !fp4.scaled<fp8_block128, !b, !sb>
func.func @one(%a: !a, %sa: !sa, %b: !b, %sb: !sb) -> tensor<4096x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (!lhs, !rhs) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}
func.func @two(%a: !a, %sa: !sa, %b: !b, %sb: !sb) -> tensor<4096x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 256, 128], pair>}
      : (!lhs, !rhs) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}
!lhs2 = !fp4.scaled<fp8_block128, tensor<?x2000xf8E4M3FN>, tensor<?x16xf32>>
!rhs2 = !fp4.scaled<fp8_block128, tensor<4104x2000xf8E4M3FN>, tensor<33x16xf32>>
func.func @ragged(%a: tensor<?x2000xf8E4M3FN>, %sa: tensor<?x16xf32>, %b: tensor<4104x2000xf8E4M3FN>, %sb: tensor<33x16xf32>)
    -> tensor<?x4104xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128]>}
      : (!lhs2, !rhs2) -> tensor<?x4104xbf16>
  return %y : tensor<?x4104xbf16>
}
!rhs3 = !fp4.scaled<fp8_block128, tensor<8192x2048xf8E4M3FN>, tensor<64x16xf32>>
func.func @groups(%a: !a, %sa: !sa, %b: tensor<8192x2048xf8E4M3FN>, %sb: tensor<64x16xf32>, %o: tensor<2x2xi64>)
    -> tensor<4096x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o
      {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 256, 128], pair>}
      : (!lhs, !rhs3, tensor<2x2xi64>) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}
