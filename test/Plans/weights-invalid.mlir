// Plans that a GEMM of floats and weights cannot have, each named with what it is.
// RUN: sed s/PLAN/tile=[128,128,96]/ %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: sed s/PLAN/tile=[256,256,64]/ %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: sed s/PLAN/tile=[64,256,512]/ %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: sed 's/PLAN/tile=[64,256,128]/; s/2x16x4608/3x16x4608/; s/64x256xf32/64x384xf32/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: sed s/PLAN/tile=[52,128,256]/ %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: sed s/PLAN/tile=[152,256,128]/ %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: sed s/PLAN/tile=[264,128,128]/ %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: sed s/PLAN/tile=[148,128,128]/ %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: sed s/PLAN/tile=[152,128,128]/ %s | not fp4-opt -fp4-set-target=target=sm_120a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=POWERS
// RUN: sed s/PLAN/tile=[152,128,128]/ %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=UNEVEN
// RUN: sed 's/PLAN/cluster=[2,1]/; s/{fp4.plan/{work = #fp4.work<split_k = 4>, fp4.plan/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=CLUSTER
// RUN: sed 's/PLAN/tile=[256,128,64], cluster=[4,1]/; s/{fp4.plan/{work = #fp4.work<split_k = 4>, fp4.plan/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=CLUSTER
// RUN: sed 's/PLAN/tile=[128,128,64], cluster=[4,1]/; s/{fp4.plan/{work = #fp4.work<split_k = 4>, fp4.plan/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=FOUR
// RUN: sed 's/PLAN/ctas_per_sm=1/; s/{fp4.plan/{work = #fp4.work<stream_k = [5, 64, 128]>, fp4.plan/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=SHARED
// RUN: sed 's/PLAN/tile=[128,128,128]/; s/{fp4.plan/{work = #fp4.work<stream_k = [5, 64, 128]>, fp4.plan/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=STREAM
// RUN: sed 's/PLAN/cluster=[2,1]/; s/{fp4.plan/{work = #fp4.work<stream_k = [5, 64, 128]>, fp4.plan/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=PAIR
// RUN: sed 's/PLAN/ctas_per_sm=1/; s/{fp4.plan/{work = #fp4.work<split_k = 2>, fp4.plan/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=JOINED
// RUN: sed 's/PLAN/cluster=[1,1]/; s/{fp4.plan/{work = #fp4.work<split_k = 4>, fp4.plan/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=ALONE
// RUN: sed s/PLAN/cluster=[2,1]/ %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=CLUSTER
// RUN: sed 's/PLAN/tile=[64,128,256], ctas_per_sm = 2/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=RESIDENT
// RUN: sed 's/PLAN/tile=[32,128,256], ctas_per_sm = 2/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=TWO
// RUN: sed 's/PLAN/store = tma/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=STORE
// RUN: sed 's/PLAN/roles = #pipe.role_plan<load warps 8 to 9 drives [tma], math warps 0 to 4 drives [tensor, threads]>/' %s \
// RUN:   | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=MATH
// RUN: sed s/PLAN/tile=[64,128,256]/ %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: sed s/PLAN/tile=[64,128,256]/ %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=NARROW
// RUN: sed s/PLAN/tile=[256,128,256]/ %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=WIDE

// RUN: sed s/PLAN/tile=[128,256,128]/ %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=TWICE
// RUN: sed s/PLAN/tile=[64,256,64]/ %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=NARROWER
// RUN: sed 's/PLAN/tile=[64,256,128], cluster=[2,1]/; s/{fp4.plan/{work = #fp4.work<split_k = 2>, fp4.plan/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=JOIN
// RUN: sed 's/PLAN/tile=[64,128,128], k_slices = 3/; s/{fp4.plan/{work = #fp4.work<split_k = 4>, fp4.plan/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: sed 's/PLAN/tile=[64,256,128], k_slices = 2/; s/{fp4.plan/{work = #fp4.work<split_k = 4>, fp4.plan/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=COLUMNS
// RUN: sed 's/PLAN/k_slices=2/; s/{fp4.plan/{work = #fp4.work<split_k = 2>, fp4.plan/; s/1024xbf16/960xbf16/; s/2x16x/2x15x/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=RANGES
// RUN: sed 's/PLAN/k_slices=8/; s/{fp4.plan/{work = #fp4.work<split_k = 8>, fp4.plan/; s/1024xbf16/2048xbf16/; s/2x16x/2x32x/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: sed 's/PLAN/tile = [64,128,64], k_slices=4/; s/{fp4.plan/{work = #fp4.work<split_k = 8>, fp4.plan/; s/1024xbf16/2048xbf16/; s/2x16x/2x32x/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=WHOLE
// RUN: sed 's/PLAN/k_slices=2/; s/{fp4.plan/{work = #fp4.work<split_k = 4>, fp4.plan/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=JOINED
// RUN: sed 's/PLAN/k_slices=2, cluster = [4,1]/; s/{fp4.plan/{work = #fp4.work<split_k = 4>, fp4.plan/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=CLUSTER
// RUN: sed 's/PLAN/tile = [64,128,64], k_slices=4/; s/{fp4.plan/{work = #fp4.work<split_k = 4>, fp4.plan/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=WHOLE
// RUN: sed 's/PLAN/k_slices=2/; s/{fp4.plan/{work = #fp4.work<split_k = 4>, fp4.plan/' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=LANES
// RUN: sed 's/PLAN/tile = [16,128,256], sliced_k/; s/{fp4.plan/{work = #fp4.work<split_k = 4>, fp4.plan/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=SLICED
// RUN: sed 's/PLAN/tile = [16,128,256], cluster = [1,1], k_slices = 2, sliced_k/; s/{fp4.plan/{work = #fp4.work<split_k = 2>, fp4.plan/; s/1024xbf16/960xbf16/; s/2x16x/2x15x/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=ENDS
// RUN: sed 's/PLAN/tile = [16,128,128], k_slices = 2, sliced_k/; s/{fp4.plan/{work = #fp4.work<split_k = 2>, fp4.plan/; s/1024xbf16/896xbf16/; s/2x16x/2x14x/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=DEPTH
// RUN: sed 's/PLAN/k_slices = 4, sliced_k/; s/{fp4.plan/{work = #fp4.work<split_k = 4>, fp4.plan/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=FOURSLICES
// RUN: sed 's/PLAN/tile = [64,128,256], k_slices = 2, sliced_k/; s/{fp4.plan/{work = #fp4.work<split_k = 2>, fp4.plan/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TALL
// RUN: sed 's/PLAN/tile = [16,128,256], k_slices = 2, sliced_k, ctas_per_sm = 2/; s/{fp4.plan/{work = #fp4.work<split_k = 2>, fp4.plan/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=RESIDENT
// RUN: sed 's/PLAN/tile = [16,128,256], k_slices = 2, sliced_k, roles = #pipe.role_plan<load warps 8 to 9 drives [tma], math warps 0 to 8 drives [tensor, threads]>/; s/{fp4.plan/{work = #fp4.work<split_k = 2>, fp4.plan/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=ROLES
// RUN: sed 's/PLAN/tile = [16,128,256], k_slices = 2, sliced_k/; s/{fp4.plan/{work = #fp4.work<split_k = 2>, fp4.plan/' %s | not fp4-opt -fp4-set-target=target=sm_120a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=WARPS
// RUN: sed 's/PLAN/tile = [16,256,256], sliced_k/; s/{fp4.plan/{work = #fp4.work<split_k = 2>, fp4.plan/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=WIDESLICES
// RUN: sed 's/PLAN/tile = [8,128,256], k_slices = 3, sliced_k/; s/{fp4.plan/{work = #fp4.work<split_k = 4>, fp4.plan/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=DIVIDES
// RUN: sed s/PLAN/sliced_k/ %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=UNSPLIT
// RUN: sed 's/PLAN/roles = #pipe.role_plan<load warps 16 to 17 drives [tma], math warps 0 to 8 drives [tensor, threads], slice1 warps 8 to 16 drives [tensor, threads] auxiliary>/; s/{fp4.plan/{work = #fp4.work<split_k = 2>, fp4.plan/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=OTHERROLES
// RUN: sed 's/PLAN/sliced_k/; s/{fp4.plan/{work = #fp4.work<split_k = 6>, fp4.plan/; s/1024xbf16/1536xbf16/; s/2x16x/132x24x/; s/64x256xf32/64x16896xf32/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=OTHERS

// SLICED: tile = [16, 128, 256], cluster = [2, 1], k_slices = 2, sliced_k, {{.*}}roles = #pipe.role_plan<load warps 16 to 17 drives [tma], math warps 0 to 8 drives [tensor, threads], slice1 warps 8 to 16 drives [tensor, threads] auxiliary>, ctas_per_sm = 1
// ENDS: k_slices = 2, sliced_k
// FOURSLICES: error: {{.*}}'k_slices' is 2 or 3 with 'sliced_k', but got 4
// TALL: error: {{.*}}'tile' is [m, 128, k] with m up to 48 for 2 k slices with 'sliced_k', but got [64, 128, 256]
// ROLES: error: {{.*}}'roles' have 1 auxiliary roles of 8 warps that drive tensor and threads, one for each k slice behind the first with 'sliced_k'
// WARPS: error: {{.*}}must have a plan without 'sliced_k', which route {{<.*>}} does not read
// LANES: error: {{.*}}must have a plan without 'k_slices', which route <core = tcgen05, a = tmem, {{.*}}> does not read
// COUNT: error: {{.*}}'k_slices' is 1, 2 or 4 without 'sliced_k', but got {{[38]}}
// RANGES: error: {{.*}}'k_slices' divides 'split_k', 2, whose parts have as many whole units of 256 elements, but got 2
// COLUMNS: error: {{.*}}'tile' is [m, 128, k] for several k slices, but got [64, 256, 128]
// DEPTH: error: {{.*}}'tile' is [m, 128, 256] with 'sliced_k', where K ends in the first half of a unit of 256 elements, but got [16, 128, 128]
// DIVIDES: error: {{.*}}'k_slices' divides 'split_k', 4, but got 3
// WIDESLICES: error: {{.*}}'tile' is [m, 128, k] with m up to 48 for 2 k slices with 'sliced_k', but got [16, 256, 256]
// UNSPLIT: error: {{.*}}'sliced_k' goes with a 'split_k' that 2 or 3 divides and that divides the units of 256 elements of K, but got 'split_k' = 1
// UNSPLIT: note: leave 'sliced_k' out
// OTHERROLES: error: {{.*}}must have a plan with 'sliced_k' beside auxiliary roles of k slices, but got #pipe.role_plan
// OTHERROLES: note: add 'sliced_k', or leave 'roles' out
// OTHERS: tile = [32, 128, {{.*}}k_slices = 2, sliced_k
// WHOLE: tile = [64, 128, 64], {{.*}}k_slices = 4,
// TILE: error: {{.*}}'tile' is [m, n, k] with m a multiple of 8 up to 256, n = 128, or, without a cluster, 256 for m up to 128 and a multiple of 256 columns, or 192 for m up to 192, and k = 64, 128 or 256 for a prepacked rhs
// POWERS: error: {{.*}}'tile' is [m, n, k] with m = 8, {{.*}} for a prepacked rhs, but got [152, 128, 128]
// UNEVEN: tile = [152, 128, 128]
// CLUSTER: error: {{.*}}'cluster' is [1, 1], or [split_k / ranges, 1] for up to 8 split-K ranges of tiles of up to 128 rows, but
// JOINED: cluster = [2, 1]
// FOUR: tile = [128, 128, 64], cluster = [4, 1]
// SHARED: tile = [64, 128, 256], schedule = {{.*}}, ctas_per_sm = 1, pdl = before_wait>
// STREAM: error: {{.*}}'tile' is [64, 128, k], as 'stream_k' says, but got [128, 128, 128]
// PAIR: error: {{.*}}'cluster' is a pair or one CTA with 'stream_k', but got [2, 1]
// ALONE: cluster = [1, 1]
// RESIDENT: error: {{.*}}ctas_per_sm{{.*}}is 1
// TWO: ctas_per_sm = 2
// STORE: error: {{.*}}must have a plan without 'store', which route {{<.*>}} does not read
// MATH: error: {{.*}}roles{{.*}}tensor and threads with 8 warps from a multiple of 8
// TARGET: error: {{.*}}'tile' is [m, 128, 64 or 128] with m = 16, 32, 64, 128 or 256 for a lhs without scales on sm_100a, but got [64, 128, 256]
// NARROW: load warps 8 to 9 drives [tma], math warps 0 to 8 drives [tensor, threads]
// TWICE: math warps 0 to 8 drives [tensor, threads] registers 240
// NARROWER: load warps 8 to 9 drives [tma], math warps 0 to 8 drives [tensor, threads]>
// JOIN: error: {{.*}}'tile' is {{.*}} without a cluster, 256 for m up to 128 {{.*}}, but got [64, 256, 128]
// WIDE: math warps 0 to 8 drives [tensor, threads] registers 240
func.func @f(%x: tensor<64x1024xbf16>, %p: tensor<2x16x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<64x256xf32> {
  %y = fp4.matmul %x, %p {fp4.plan = #fp4.plan<tile_gemm, PLAN>}
      : (tensor<64x1024xbf16>, tensor<2x16x4608xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<64x256xf32>
  return %y : tensor<64x256xf32>
}
