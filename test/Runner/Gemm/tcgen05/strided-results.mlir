// Strided results of plans of one target.

// RUN: fp4-runner %s --device=sim --function=tiles --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=few --check=strict | FileCheck %s
// CHECK: equals the {{.*}}, bit for bit
// CHECK-NOT: differs
// CHECK: hazards {{.*}}none (strict check)

!q = tensor<64x64xf4E2M1FN>
!qs = tensor<64x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>

// Results that leave through shared memory.
!m = tensor<200x256xf4E2M1FN>
!ms = tensor<200x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!w = tensor<128x256xf4E2M1FN>
!ws = tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, !m, !ms>
!rhs = !fp4.scaled<nvfp4, !w, !ws>
func.func @tiles(%a: !m, %s: !ms, %b: !w, %t: !ws) -> (tensor<200x128xbf16> {fp4.strided}) {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256], store = tma>}
      : (!lhs, !rhs) -> tensor<200x128xbf16>
  return %y : tensor<200x128xbf16>
}

!lhs2 = !fp4.scaled<nvfp4, tensor<9x64xf4E2M1FN>,
                    tensor<9x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<nvfp4, !q, !qs>
// Operands are swapped: a thread has a column of the result.
func.func @few(%a: tensor<9x64xf4E2M1FN>, %s: tensor<9x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %b: !q, %t: !qs)
    -> (tensor<9x64xbf16> {fp4.strided}) {
  %a_scaled = fp4.scaled %a, %s : !lhs2
  %b_scaled = fp4.scaled %b, %t : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>>}
      : (!lhs2, !rhs2) -> tensor<9x64xbf16>
  return %y : tensor<9x64xbf16>
}
