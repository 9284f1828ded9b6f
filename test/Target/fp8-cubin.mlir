// ptxas accepts GEMMs of FP8 with f32 scales for sm_90a without spills: with tiles of 256 x 128, whose
// threads have 128 accumulators and the 64 sums of one part at a time, where M is whole tiles, is ragged, or is
// known at run time, and of groups; where split-K reduces in a cluster; and where two MMAs run at a time.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | tee %t | FileCheck %s

// CHECK: whole_matmul_0 kernel: registers 168, spill 0, stack 0
// CHECK: ragged_matmul_0 kernel: registers 168, spill 0, stack 0
// CHECK: groups_matmul_0 kernel: registers 168, spill 0, stack 0
// CHECK: ranges_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: two_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0

!w = tensor<4096x2048xf8E4M3FN>
!sw = tensor<32x16xf32>

!lhs = !fp4.scaled<fp8_block128, tensor<4096x2048xf8E4M3FN>, tensor<4096x16xf32>>
!rhs = !fp4.scaled<fp8_block128, !w, !sw>
func.func @whole(%a: tensor<4096x2048xf8E4M3FN>, %sa: tensor<4096x16xf32>, %b: !w, %sb: !sw) -> tensor<4096x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128]>}
      : (!lhs, !rhs) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}
!lhs2 = !fp4.scaled<fp8_block128, tensor<?x2000xf8E4M3FN>, tensor<?x16xf32>>
!rhs2 = !fp4.scaled<fp8_block128, tensor<4104x2000xf8E4M3FN>, tensor<33x16xf32>>
func.func @ragged(%a: tensor<?x2000xf8E4M3FN>, %sa: tensor<?x16xf32>, %b: tensor<4104x2000xf8E4M3FN>, %sb: tensor<33x16xf32>)
    -> tensor<?x4104xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128]>}
      : (!lhs2, !rhs2) -> tensor<?x4104xbf16>
  return %y : tensor<?x4104xbf16>
}
!lhs3 = !fp4.scaled<fp8_block128, tensor<1200x2048xf8E4M3FN>, tensor<1200x16xf32>>
!rhs3 = !fp4.scaled<fp8_block128, tensor<8192x2048xf8E4M3FN>, tensor<64x16xf32>>
func.func @groups(%a: tensor<1200x2048xf8E4M3FN>, %sa: tensor<1200x16xf32>, %b: tensor<8192x2048xf8E4M3FN>,
                  %sb: tensor<64x16xf32>) -> tensor<1200x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<groups = [500, 700]>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128]>}
      : (!lhs3, !rhs3) -> tensor<1200x4096xbf16>
  return %y : tensor<1200x4096xbf16>
}
!lhs4 = !fp4.scaled<fp8_block128, tensor<128x2048xf8E4M3FN>, tensor<128x16xf32>>
func.func @ranges(%a: tensor<128x2048xf8E4M3FN>, %sa: tensor<128x16xf32>, %b: !w, %sb: !sw) -> tensor<128x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 2>, fp4.plan = #fp4.plan<tile_gemm, tile = [128, 112, 128]>}
      : (!lhs4, !rhs) -> tensor<128x4096xbf16>
  return %y : tensor<128x4096xbf16>
}
func.func @two(%a: tensor<128x2048xf8E4M3FN>, %sa: tensor<128x16xf32>, %b: !w, %sb: !sw) -> tensor<128x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>}
      : (!lhs4, !rhs) -> tensor<128x4096xbf16>
  return %y : tensor<128x4096xbf16>
}
