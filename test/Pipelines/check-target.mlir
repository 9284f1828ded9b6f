// A GEMM that the target does not have is an error where something needs its result. One that nothing needs, or of a
// function that nobody calls, becomes no kernel, and is none.
// RUN: sed 's/RETURNED/%%c/' %s | %fp4-opt-once --compile-to=fused --target=sm_90a | FileCheck %s
// RUN: sed 's/RETURNED/%%y/' %s | not %fp4-opt-once --compile-to=fused --target=sm_90a 2>&1 | FileCheck %s --check-prefix=NEEDED
// RUN: sed 's/RETURNED/%%y/' %s | %fp4-opt-once --compile-to=fused --target=sm_120a | FileCheck %s --check-prefix=WARPS
// CHECK: func.func @f
// CHECK-NOT: fp4.matmul
// NEEDED: <stdin>:[[#]]:[[#]]: error: 'fp4.matmul' op target 'sm_90a' has no GEMMs of elements of 6 bits
// NEEDED: note: targets that have them: sm_100a
// WARPS: fp4.matmul
!data = tensor<128x128xf6E2M3FN>
!scales = tensor<128x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<mxfp6_e2m3, !data, !scales>
func.func @f(%a: !data, %s: !scales, %c: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %x = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %x, %x : (!operand, !operand) -> tensor<128x128xf32>
  return RETURNED : tensor<128x128xf32>
}
func.func private @unused(%a: !data, %s: !scales) -> tensor<128x128xf32> {
  %x = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %x, %x : (!operand, !operand) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}
