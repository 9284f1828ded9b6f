// Plans whose epilogue has eight warps, and what of them does not fit.
// RUN: sed 's/PLAN/epilogue_warps=8/; s/SPLIT/1/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=EIGHT
// RUN: sed 's/PLAN/epilogue_warps=8, store = tma/; s/SPLIT/1/' %s | fp4-opt -fp4-set-target=target=sm_103a -fp4-plan-kernels | FileCheck %s --check-prefix=STAGED
// RUN: sed 's/PLAN/epilogue_warps=8, reduction = cluster/; s/SPLIT/4/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=JOINED
// RUN: sed 's/PLAN/epilogue_warps=4/; s/SPLIT/1/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=FOUR
// RUN: sed 's/PLAN/epilogue_warps=6/; s/SPLIT/1/' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=SIX
// RUN: sed 's/PLAN/epilogue_warps=8, reduction = workspace/; s/SPLIT/4/' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=WORKSPACE
// RUN: sed 's/PLAN/epilogue_warps=8, pair, tile = [128, 64, 256]/; s/SPLIT/1/' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=PAIR
// RUN: sed 's/PLAN/epilogue_warps=8, route = <orientation = swapped>, tile = [128, 16, 256]/; s/SPLIT/1/' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=COLUMNS
// RUN: sed 's/PLAN/epilogue_warps=8/; s/SPLIT/1/' %s | not fp4-opt -fp4-set-target=target=sm_120a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: sed 's/PLAN/epilogue_warps=8, roles = #pipe.role_plan<load warps 6 to 7 drives [tma], mma warps 4 to 6 drives [tensor, scale_copy], epilogue warps 0 to 4 drives [threads]>/; s/SPLIT/1/' %s \
// RUN:   | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=ROLES
// RUN: sed 's/PLAN/epilogue_warps=8, store = tma, tile = [128, 96, 256]/; s/SPLIT/1/; s/1024xbf16/1024xf8E4M3FN/g' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: sed 's/PLAN/epilogue_warps=8, store = tma, tile = [128, 96, 256]/; s/SPLIT/1/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=STAGED

// BYTES: error: {{.*}}'epilogue_warps' is 4 for tiles whose columns are no multiple of 64, but got 8
// EIGHT: epilogue_warps = 8, {{.*}}load warps 10 to 11 drives [tma], mma warps 8 to 10 drives [tensor, scale_copy], epilogue warps 0 to 8 drives [threads]
// STAGED: store = tma, epilogue_warps = 8, {{.*}}epilogue warps 0 to 8 drives [threads], store warps 11 to 12 drives [bulk_store]
// JOINED: cluster = [4, 1], reduction = cluster, epilogue_warps = 8
// FOUR: epilogue_warps = 4, {{.*}}epilogue warps 0 to 4 drives [threads]
// SIX: error: {{.*}}'epilogue_warps' is 4 or 8, but got 6
// WORKSPACE: error: {{.*}}'epilogue_warps' is 4 where split-K is reduced in a workspace, but got 8
// PAIR: error: {{.*}}'epilogue_warps' is 4 with pairs of 128 rows, whose TMEM lanes have halves of the columns, but got 8
// COLUMNS: error: {{.*}}'epilogue_warps' is 4 for tiles whose columns are no multiple of 32, but got 8
// TARGET: error: {{.*}}must have a plan without 'epilogue_warps', which route <core = mma_sync, {{.*}}> does not read
// ROLES: error: {{.*}}'roles' drive the engine threads with 8 warps from a multiple of 4, as 'epilogue_warps' says, but got

!s = tensor<32x448xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<1024x448xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<32x7168xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<1024x7168xf4E2M1FN>, !t>
func.func @f(%a: tensor<32x7168xf4E2M1FN>, %sa: !s, %b: tensor<1024x7168xf4E2M1FN>, %sb: !t) -> tensor<32x1024xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = SPLIT>, fp4.plan = #fp4.plan<tile_gemm, PLAN>}
      : (!lhs, !rhs) -> tensor<32x1024xbf16>
  return %y : tensor<32x1024xbf16>
}
