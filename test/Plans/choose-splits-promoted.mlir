// The factor of `fixed` does not depend on whether the number of rows is static.
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
!rhs2 = !fp4.scaled<fp8_block128, tensor<2112x4096xf8E4M3FN>, tensor<17x32xf32>>
// CHECK-LABEL: func.func @wide
// CHECK-NOT: split_k
func.func @wide(%a: tensor<16x4096xf8E4M3FN>, %sa: tensor<16x32xf32>, %b: tensor<2112x4096xf8E4M3FN>, %sb: tensor<17x32xf32>) -> tensor<16x2112xf32> {
  %lhs = fp4.scaled %a, %sa : !lhs2
  %rhs = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %lhs, %rhs {work = #fp4.work<split_k = fixed>} : (!lhs2, !rhs2) -> tensor<16x2112xf32>
  return %y : tensor<16x2112xf32>
}
