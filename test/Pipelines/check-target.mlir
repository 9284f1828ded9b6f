// A GEMM that the target does not have is an error where something needs its result. One that nothing needs, or of a
// function that nobody calls, becomes no kernel, and is none.
// RUN: sed 's/RETURNED/%%c/' %s | %fp4-opt-once --compile-to=fused --target=sm_90a | FileCheck %s
// RUN: sed 's/RETURNED/%%y/' %s | not %fp4-opt-once --compile-to=fused --target=sm_90a 2>&1 | FileCheck %s --check-prefix=NEEDED
// RUN: sed 's/RETURNED/%%y/' %s | %fp4-opt-once --compile-to=fused --target=sm_103a | FileCheck %s --check-prefix=LONG
// CHECK: func.func @f
// CHECK-NOT: fp4.matmul
// NEEDED: <stdin>:[[#]]:[[#]]: error: 'fp4.matmul' op target 'sm_90a' has no GEMMs of elements of 4 bits in instructions of K = 96
// NEEDED: note: targets that have them: sm_103a
// LONG: fp4.matmul
!data = tensor<128x192xf4E2M1FN>
!scales = tensor<128x6xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<mxfp4, !data, !scales>
#long = #fp4.matmul_arithmetic<tensor_core_k96>
func.func @f(%a: !data, %s: !scales, %c: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %x = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %x, %x {arithmetic = #long} : (!operand, !operand) -> tensor<128x128xf32>
  return RETURNED : tensor<128x128xf32>
}
func.func private @unused(%a: !data, %s: !scales) -> tensor<128x128xf32> {
  %x = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %x, %x {arithmetic = #long} : (!operand, !operand) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}
