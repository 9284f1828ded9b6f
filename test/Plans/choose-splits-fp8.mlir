// RUN: fp4-opt %s -fp4-set-target=target=sm_100a -fp4-choose-splits -fp4-plan-kernels | FileCheck %s

// FP8 with f32 scales: tiles of few rows are those of split-K, and tiles of many have twice as many columns.
// CHECK: dispatch = [{{.*}}, 128], split_k = 4 : {{.*}}, 256], split_k = 2 : {{.*}}#fp4.case<m = [257, ?] :
!lhs = !fp4.scaled<fp8_block128, tensor<?x7168xf8E4M3FN>, tensor<?x56xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<4096x7168xf8E4M3FN>, tensor<32x56xf32>>
func.func @f(%a: tensor<?x7168xf8E4M3FN>, %sa: tensor<?x56xf32>, %b: tensor<4096x7168xf8E4M3FN>, %sb: tensor<32x56xf32>) -> tensor<?x4096xbf16> {
  %lhs = fp4.scaled %a, %sa : !lhs
  %rhs = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %lhs, %rhs {work = #fp4.work<split_k = fastest>} : (!lhs, !rhs) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
