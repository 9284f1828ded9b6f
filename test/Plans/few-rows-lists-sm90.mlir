// The list of plans for dynamic rows of fp4 operands on sm_90a follows what is chosen for static ones: with 64 k tiles the lhs
// is pre-dequantized for 8, 16 and 64 rows, and no conversion begins beside such a GEMM. With 27 k tiles roles
// convert for 8 and 16 rows, and the next launch begins early.
// RUN: sed 's/DEPTH/8192/g;s/BLOCKS/512/g' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=LONG
// RUN: sed 's/DEPTH/3456/g;s/BLOCKS/216/g' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=SHORT
// LONG: dispatch = [
// LONG-NOT: convert
// LONG-SAME: m = [1, 8] :
// LONG-SAME: tile = [128, 8, 128],
// LONG-SAME: math warps 0 to 8 drives [tensor, threads]>, ctas_per_sm = 1, pdl = at_end>
// LONG-SAME: m = [9, 16] :
// LONG-SAME: tile = [128, 16, 128],
// LONG-SAME: ctas_per_sm = 1, pdl = at_end>
// LONG-SAME: m = [17, 64] :
// LONG-SAME: tile = [128, 64, 128],
// LONG-SAME: ctas_per_sm = 1, pdl = at_end>
// SHORT: dispatch = [
// SHORT-SAME: m = [1, 8] :
// SHORT-SAME: tile = [128, 8, 128],{{[^<]*<along_m>[^<]*<}}load {{[^>]*}} drives [threads]{{[^>]*}}>, ctas_per_sm = 1, pdl = before_wait>
// SHORT-SAME: , 64] :
// SHORT-SAME: tile = [128, 64, 128],
// SHORT-SAME: ctas_per_sm = 1, pdl = at_end>
!a = tensor<?xDEPTHxf4E2M1FN>
!s = tensor<?xBLOCKSxf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!b = tensor<8192xDEPTHxf4E2M1FN>
!t = tensor<8192xBLOCKSxf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, !a, !s>
!rhs = !fp4.scaled<nvfp4, !b, !t>
func.func @one(%a: !a, %s: !s, %b: !b, %t: !t) -> tensor<?x8192xbf16> {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x8192xbf16>
  return %y : tensor<?x8192xbf16>
}
