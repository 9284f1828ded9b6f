// Plans in which one warp multiplies and copies scales, or two, and what of them does not fit.
// RUN: sed 's/PLAN/mma_warps = 1/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=ONE
// RUN: sed 's/PLAN/mma_warps = 2/' %s | fp4-opt -fp4-set-target=target=sm_103a -fp4-plan-kernels | FileCheck %s --check-prefix=TWO
// RUN: sed 's/PLAN/mma_warps = 1, epilogue_warps = 8, store = tma/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=EIGHT
// RUN: sed 's/PLAN/mma_warps = 1, schedule = #pipe.cluster_launch<along_m>/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=TAKEN
// RUN: sed 's/PLAN/roles = #pipe.role_plan<load warps 5 to 6 drives [tma], mma warps 4 to 5 drives [tensor, scale_copy], epilogue warps 0 to 4 drives [threads]>/' %s \
// RUN:   | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=SAID
// RUN: sed 's/PLAN/mma_warps = 3/' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=THREE
// RUN: sed 's/PLAN/mma_warps = 1/' %s | not fp4-opt -fp4-set-target=target=sm_120a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: sed 's/PLAN/mma_warps = 1/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: sed 's/PLAN/mma_warps = 2, roles = #pipe.role_plan<load warps 5 to 6 drives [tma], mma warps 4 to 5 drives [tensor, scale_copy], epilogue warps 0 to 4 drives [threads]>/' %s \
// RUN:   | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=FEWER
// RUN: sed 's/PLAN/mma_warps = 1, roles = #pipe.role_plan<load warps 6 to 7 drives [tma], mma warps 4 to 6 drives [tensor, scale_copy], epilogue warps 0 to 4 drives [threads]>/' %s \
// RUN:   | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=MORE

// ONE: mma_warps = 1, {{.*}}load warps 5 to 6 drives [tma], mma warps 4 to 5 drives [tensor, scale_copy], epilogue warps 0 to 4 drives [threads]
// TWO: mma_warps = 2, {{.*}}load warps 6 to 7 drives [tma], mma warps 4 to 6 drives [tensor, scale_copy], epilogue warps 0 to 4 drives [threads]
// EIGHT: mma_warps = 1, {{.*}}load warps 9 to 10 drives [tma], mma warps 8 to 9 {{.*}}store warps 10 to 11 drives [bulk_store]
// TAKEN: mma_warps = 1, {{.*}}load warps 5 to 6 drives [tma], mma warps 4 to 5 {{.*}}scheduler warps 6 to 7 drives [work_queue]
// SAID: mma warps 4 to 5 drives [tensor, scale_copy]
// THREE: error: {{.*}}'mma_warps' is 1 or 2, but got 3
// THREE: note: leave 'mma_warps' out, and fp4-plan-kernels decides it
// TARGET: error: {{.*}}must have a plan without 'mma_warps', which route {{<.*>}} does not read
// FEWER: error: {{.*}}'roles' drive the engine tensor with 2 warps, as 'mma_warps' says, but got 1
// MORE: error: {{.*}}'roles' drive the engine tensor with 1 warp, as 'mma_warps' says, but got 2

!s = tensor<32x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<1024x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<32x1024xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<1024x1024xf4E2M1FN>, !t>
func.func @f(%a: tensor<32x1024xf4E2M1FN>, %sa: !s, %b: tensor<1024x1024xf4E2M1FN>, %sb: !t) -> tensor<32x1024xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, PLAN>}
      : (!lhs, !rhs) -> tensor<32x1024xbf16>
  return %y : tensor<32x1024xbf16>
}
