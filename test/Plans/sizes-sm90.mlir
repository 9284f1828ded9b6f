// On sm_90a GEMMs of any N and K have additional plans for some sizes: FP8 has plans whose scales are a tile, where K
// is a multiple of 512, and other formats have swapped small-M plans and plans with a pre-dequantized lhs. If K is
// static, plans for any K are those for this one.

// RUN: %fp4-opt-once %s -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s

!a = tensor<?x?xf8E4M3FN>
!s = tensor<?x?xf32>
!operand = !fp4.scaled<fp8_block128, !a, !s>
// CHECK-LABEL: func.func @fp8
// CHECK: dispatch = [
// CHECK-NOT: k_unit
// CHECK-SAME: tile = [64, 64, 128], schedule
// CHECK-SAME: #fp4.case<k_unit = 512 : {{[^>]*>}}, tile = [128, 192, 128], store = tma
// CHECK-SAME: #fp4.case<m = [1, 128], k_unit = 512 : {{[^>]*>}}, tile = [64, 32, 256]
// CHECK-SAME: #fp4.case<k_unit = 512 : {{[^>]*>}}, tile = [128, 128, 128]
// CHECK-SAME: #fp4.case<k_unit = 512 : {{[^>]*>}}, tile = [128, 160, 128], store = tma
// CHECK-SAME: #fp4.case<k_unit = 512 : {{[^>]*>}}, tile = [256, 128, 128]
// CHECK-SAME: #fp4.case<any : tile_gemm, route = {{<[^>]*>}}, tile = [128, 128, 128]
func.func @fp8(%a: !a, %sa: !s, %b: !a, %sb: !s) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand, !operand) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

// CHECK-LABEL: func.func @columns
// CHECK-NOT: k_unit
// CHECK: #fp4.case<m = [1, 128] : {{[^>]*>}}, tile = [64, 32, 256]
// CHECK-NOT: k_unit
!k = tensor<?x1024xf8E4M3FN>
!l = tensor<?x8xf32>
!operand2 = !fp4.scaled<fp8_block128, !k, !l>
func.func @columns(%a: !k, %sa: !l, %b: !k, %sb: !l) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !operand2
  %b_scaled = fp4.scaled %b, %sb : !operand2
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand2, !operand2) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

// The stages of one tile of scales are written out, and ptxas has too few registers for 128 columns of them.
// CHECK-LABEL: func.func @scales
// CHECK: tile = [64, 32, 256]
// CHECK-NOT: tile = [64, 128, 256]
// CHECK: return
!o = tensor<?x512xf8E4M3FN>
!p = tensor<?x4xf32>
!operand3 = !fp4.scaled<fp8_block128, !o, !p>
func.func @scales(%a: !o, %sa: !p, %b: !o, %sb: !p) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !operand3
  %b_scaled = fp4.scaled %b, %sb : !operand3
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand3, !operand3) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

// CHECK-LABEL: func.func @nvfp4
// CHECK: #fp4.case<k_unit = 128 : {{[^>]*>}}, tile = [256, 128, 128]
// CHECK-SAME: #fp4.case<m = [1, 64] : {{[^>]*>}}, tile = [128, 64, 128]
// CHECK-SAME: #fp4.case<any : tile_gemm, route = {{<[^>]*>}}, tile = [128, 128, 128], schedule
!c = tensor<?x?xf4E2M1FN>
!e = tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand4 = !fp4.scaled<nvfp4, !c, !e>
func.func @nvfp4(%a: !c, %sa: !e, %b: !c, %sb: !e) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !operand4
  %b_scaled = fp4.scaled %b, %sb : !operand4
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand4, !operand4) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}
