// The factor of `fixed` does not depend on whether the number of rows is static, and that of `fastest` is the one with
// the fastest tile.
// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-choose-splits | FileCheck %s
// RUN: sed 's/tensor<16x/tensor<?x/g' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-choose-splits | FileCheck %s

!lhs = !fp4.scaled<fp8_block128, tensor<16x2048xf8E4M3FN>, tensor<16x16xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<64x2048xf8E4M3FN>, tensor<1x16xf32>>
// CHECK-LABEL: func.func @narrow
// CHECK: work = #fp4.work<split_k = 2>
func.func @narrow(%a: tensor<16x2048xf8E4M3FN>, %sa: tensor<16x16xf32>, %b: tensor<64x2048xf8E4M3FN>, %sb: tensor<1x16xf32>) -> tensor<16x64xf32> {
  %lhs = fp4.scaled %a, %sa : !lhs
  %rhs = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %lhs, %rhs {work = #fp4.work<split_k = fixed>} : (!lhs, !rhs) -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}

!lhs2 = !fp4.scaled<fp8_block128, tensor<16x4096xf8E4M3FN>, tensor<16x32xf32>>
!rhs2 = !fp4.scaled<fp8_block128, tensor<4224x4096xf8E4M3FN>, tensor<33x32xf32>>
// CHECK-LABEL: func.func @wide
// CHECK-NOT: split_k
func.func @wide(%a: tensor<16x4096xf8E4M3FN>, %sa: tensor<16x32xf32>, %b: tensor<4224x4096xf8E4M3FN>, %sb: tensor<33x32xf32>) -> tensor<16x4224xf32> {
  %lhs = fp4.scaled %a, %sa : !lhs2
  %rhs = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %lhs, %rhs {work = #fp4.work<split_k = fixed>} : (!lhs2, !rhs2) -> tensor<16x4224xf32>
  return %y : tensor<16x4224xf32>
}

!lhs3 = !fp4.scaled<fp8_block128, tensor<160x12288xf8E4M3FN>, tensor<160x96xf32>>
!rhs3 = !fp4.scaled<fp8_block128, tensor<4096x12288xf8E4M3FN>, tensor<32x96xf32>>
// Tiles with two scale blocks in a stage, which may have any static rows, make one range the faster choice.
// CHECK-LABEL: func.func @one
// CHECK-NOT: split_k
func.func @one(%a: tensor<160x12288xf8E4M3FN>, %sa: tensor<160x96xf32>, %b: tensor<4096x12288xf8E4M3FN>, %sb: tensor<32x96xf32>) -> tensor<160x4096xbf16> {
  %lhs = fp4.scaled %a, %sa : !lhs3
  %rhs = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %lhs, %rhs {work = #fp4.work<split_k = fastest>} : (!lhs3, !rhs3) -> tensor<160x4096xbf16>
  return %y : tensor<160x4096xbf16>
}

!lhs4 = !fp4.scaled<fp8_block128, tensor<256x14336xf8E4M3FN>, tensor<256x112xf32>>
!rhs4 = !fp4.scaled<fp8_block128, tensor<4096x14336xf8E4M3FN>, tensor<32x112xf32>>
// CHECK-LABEL: func.func @two
// CHECK: work = #fp4.work<split_k = 2>
func.func @two(%a: tensor<256x14336xf8E4M3FN>, %sa: tensor<256x112xf32>, %b: tensor<4096x14336xf8E4M3FN>, %sb: tensor<32x112xf32>) -> tensor<256x4096xbf16> {
  %lhs = fp4.scaled %a, %sa : !lhs4
  %rhs = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %lhs, %rhs {work = #fp4.work<split_k = fastest>} : (!lhs4, !rhs4) -> tensor<256x4096xbf16>
  return %y : tensor<256x4096xbf16>
}

// Activations of fp4 become bf16 before prepacked weights, and workers share the same tiles.
!scales5 = tensor<1024x2048xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs5 = !fp4.scaled<nvfp4, tensor<1024x32768xf4E2M1FN>, !scales5>
!packed5 = tensor<40x512x4608xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: func.func @shared
// CHECK: work = #fp4.work<stream_k = [132, 128, 256]>
func.func @shared(%a: tensor<1024x32768xf4E2M1FN>, %sa: !scales5, %p: !packed5) -> tensor<1024x5120xbf16> {
  %lhs = fp4.scaled %a, %sa : !lhs5
  %y = fp4.matmul %lhs, %p {work = #fp4.work<split_k = fastest>} : (!lhs5, !packed5) -> tensor<1024x5120xbf16>
  return %y : tensor<1024x5120xbf16>
}
