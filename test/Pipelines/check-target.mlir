// A GEMM that the target does not have is an error where something needs its result. One that nothing needs, or of a
// function that nobody calls, becomes no kernel, and is none.
// RUN: sed 's/RETURNED/%%c/' %s | %fp4-opt-once --compile-to=fused --target=sm_120a | FileCheck %s
// RUN: sed 's/RETURNED/%%y/' %s | not %fp4-opt-once --compile-to=fused --target=sm_120a 2>&1 | FileCheck %s --check-prefix=NEEDED
// RUN: sed 's/RETURNED/%%y/' %s | %fp4-opt-once --compile-to=fused --target=sm_90a | FileCheck %s --check-prefix=HOPPER
// CHECK: func.func @f
// CHECK-NOT: fp4.matmul
// NEEDED: <stdin>:[[#]]:[[#]]: error: 'fp4.matmul' op target 'sm_120a' has no GEMMs of FP8 with f32 scales
// NEEDED: note: targets that have them: sm_100a
// HOPPER: fp4.matmul
!data = tensor<128x256xf8E4M3FN>
!rows = tensor<128x2xf32>
!blocks = tensor<1x2xf32>
!lhs = !fp4.scaled<fp8_block128, !data, !rows>
!rhs = !fp4.scaled<fp8_block128, !data, !blocks>
func.func @f(%a: !data, %s: !rows, %t: !blocks, %c: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %lhs = fp4.scaled %a, %s : !lhs
  %rhs = fp4.scaled %a, %t : !rhs
  %y = fp4.matmul %lhs, %rhs : (!lhs, !rhs) -> tensor<128x128xf32>
  return RETURNED : tensor<128x128xf32>
}
func.func private @unused(%a: !data, %s: !rows, %t: !blocks) -> tensor<128x128xf32> {
  %lhs = fp4.scaled %a, %s : !lhs
  %rhs = fp4.scaled %a, %t : !rhs
  %y = fp4.matmul %lhs, %rhs : (!lhs, !rhs) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}
