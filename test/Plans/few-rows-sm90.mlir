// Small-M GEMMs on sm_90a: if CTAs have 14 k tiles or more, and 28 for up to 16 rows, the lhs is pre-dequantized, and
// no role converts it. A pre-dequantized GEMM lets no conversion begin beside it. With fewer k tiles, and in a dual
// GEMM, roles convert, and the next launch begins early.
// RUN: sed 's/ROWS/64/g;s/DEPTH/3584/g;s/BLOCKS/224/g;s/PLAN//' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefixes=AHEAD,ALL
// RUN: sed 's/ROWS/64/g;s/DEPTH/3520/g;s/BLOCKS/220/g;s/PLAN//' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefixes=BESIDE,ALL
// RUN: sed 's/ROWS/17/g;s/DEPTH/3584/g;s/BLOCKS/224/g;s/PLAN//' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefixes=AHEAD,ALL
// RUN: sed 's/ROWS/16/g;s/DEPTH/7168/g;s/BLOCKS/448/g;s/PLAN//' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefixes=AHEAD,ALL
// RUN: sed 's/ROWS/16/g;s/DEPTH/7040/g;s/BLOCKS/440/g;s/PLAN//' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefixes=BESIDE,ALL

// A plan says it by its roles, and then K consists of whole k tiles.
// RUN: sed 's/ROWS/64/g;s/DEPTH/512/g;s/BLOCKS/32/g;s/PLAN/, fp4.plan = #fp4.plan<tile_gemm, roles = #pipe.role_plan<load warps 8 to 9 drives [tma], math warps 0 to 8 drives [tensor, threads]>>/' %s \
// RUN:   | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefixes=AHEAD,ALL
// RUN: sed 's/ROWS/64/g;s/DEPTH/528/g;s/BLOCKS/33/g;s/PLAN/, fp4.plan = #fp4.plan<tile_gemm, roles = #pipe.role_plan<load warps 8 to 9 drives [tma], math warps 0 to 8 drives [tensor, threads]>>/' %s \
// RUN:   | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=WHOLE
// WHOLE: error: {{.*}}'roles' have an auxiliary role, which converts, where K is no multiple of 128, but got none that does for K = 528

!a = tensor<ROWSxDEPTHxf4E2M1FN>
!s = tensor<ROWSxBLOCKSxf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!b = tensor<8192xDEPTHxf4E2M1FN>
!t = tensor<8192xBLOCKSxf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, !a, !s>
!rhs = !fp4.scaled<nvfp4, !b, !t>
// ALL-LABEL: func.func @one
// AHEAD: roles = #pipe.role_plan<load warps 8 to 9 drives [tma], math warps 0 to 8 drives [tensor, threads]>, ctas_per_sm = 1, pdl = at_end
// BESIDE: auxiliary{{.*}} ctas_per_sm = 1, pdl = before_wait
func.func @one(%a: !a, %s: !s, %b: !b, %t: !t) -> tensor<ROWSx8192xbf16> {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<split_k = 2>PLAN}
      : (!lhs, !rhs) -> tensor<ROWSx8192xbf16>
  return %y : tensor<ROWSx8192xbf16>
}
// ALL-LABEL: func.func @gate
// ALL: auxiliary
// ALL: pdl = before_wait
func.func @gate(%a: !a, %s: !s, %b: !b, %t: !t) -> tensor<ROWSx8192xf32> {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled with %b_scaled epilogue() {
  ^bb0(%x: f32, %z: f32):
    %e = arith.mulf %x, %z : f32
    fp4.yield %e : f32
  } : (!lhs, !rhs, !rhs) -> tensor<ROWSx8192xf32>
  return %y : tensor<ROWSx8192xf32>
}
