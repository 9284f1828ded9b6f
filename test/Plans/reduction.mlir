// Split-K of tcgen05 with a reduction in a cluster: the choice, the plans that may be asked for, and those that may not.
// RUN: sed s/PLAN/tile=[128,64,256]/ %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=FOUR
// RUN: sed 's/PLAN/reduction=cluster/' %s | fp4-opt -fp4-set-target=target=sm_103a -fp4-plan-kernels | FileCheck %s --check-prefix=SWAP
// RUN: sed 's/PLAN/reduction=workspace/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=WORKSPACE
// RUN: sed 's/PLAN/cluster = [2, 1]/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=LOADS
// RUN: sed 's/PLAN/pair, reduction = cluster/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=PAIRS
// RUN: sed 's/PLAN/route = <orientation = swapped>, reduction = cluster/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=SWAP
// RUN: sed 's/PLAN/reduction=cluster/; s/split_k = 4/split_k = 9/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=NINE
// RUN: sed 's/PLAN/tile=[128,64,256]/; s/split_k = 4/split_k = 9/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=WORKSPACE
// RUN: sed 's/PLAN/reduction=cluster/; s/split_k = 4/split_k = 17/' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: sed 's/PLAN/reduction=cluster, pair/; s/split_k = 4/split_k = 9/' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=MANYPAIRS
// RUN: sed 's/PLAN/reduction=cluster/; s/split_k = 4/split_k = 1/' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: sed 's/PLAN/reduction=cluster, cluster = [2, 1]/' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=CLUSTER
// RUN: sed 's/PLAN/reduction=cluster, pair, cluster = [4, 1]/' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=EIGHT
// RUN: sed 's/PLAN/reduction=cluster, schedule = #pipe.cluster_launch<along_m>/' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: sed 's/PLAN/reduction=cluster, pair, tile = [128, 64, 256], cluster = [8, 1]/' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=NARROW
// RUN: sed 's/PLAN/reduction=cluster, store = tma/' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=STORE
// RUN: sed 's/PLAN/reduction=cluster, tile = [128, 192, 256]/; s/split_k = 4/split_k = 2/' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=COLUMNS
// RUN: sed 's/PLAN/route = <orientation = swapped>/; s/32x/16x/g; s/1024x/8192x/g' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=WORKSPACE
// RUN: sed 's/PLAN/reduction=here/' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: sed 's/PLAN/reduction=cluster/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TARGET

// FOUR: tile = [128, 64, 256], cluster = [4, 1], reduction = cluster, schedule
// WORKSPACE: matmul
// WORKSPACE-NOT: reduction = cluster
// LOADS: cluster = [2, 1], schedule
// PAIRS: tile = [256, {{[0-9]+}}, 256], cluster = [8, 1], reduction = cluster, pair
// SWAP: orientation = swapped>{{.*}}cluster = [4, 1], reduction = cluster
// NINE: cluster = [9, 1], reduction = cluster
// MANY: error: {{.*}}'reduction' is cluster for 2 to 16 split-K ranges, but got it for 17
// MANY: note: leave 'reduction' out
// MANYPAIRS: error: {{.*}}'reduction' is cluster for 2 to 8 split-K ranges with 'pair', but got it for 9
// ONE: error: {{.*}}'reduction' is cluster for 2 to 16 split-K ranges, but got it for 1
// CLUSTER: error: {{.*}}'cluster' is [4, 1] with reduction = cluster, a CTA for each split-K range, but got [2, 1]
// EIGHT: error: {{.*}}'cluster' is [8, 1] with reduction = cluster, a pair for each split-K range, but got [4, 1]
// SCHEDULE: error: {{.*}}'schedule' is static_persistent with reduction = cluster, but got #pipe.cluster_launch
// NARROW: error: {{.*}}'reduction' is left out with pairs of 128 rows, but got cluster
// STORE: error: {{.*}}'store' is direct for grouped GEMMs and for split-K
// COLUMNS: error: {{.*}}'reduction' is left out for accumulators of more than 128 columns, but got it for 192
// WORD: error: 'reduction' of a plan must be workspace or cluster, but got here
// TARGET: error: {{.*}}must have a plan without 'reduction', which route {{<.*>}} does not read

!s = tensor<32x448xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<1024x448xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<32x7168xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<1024x7168xf4E2M1FN>, !t>
func.func @f(%a: tensor<32x7168xf4E2M1FN>, %sa: !s, %b: tensor<1024x7168xf4E2M1FN>, %sb: !t) -> tensor<32x1024xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 4>, fp4.plan = #fp4.plan<tile_gemm, PLAN>}
      : (!lhs, !rhs) -> tensor<32x1024xbf16>
  return %y : tensor<32x1024xbf16>
}
