// RUN: fp4-opt %s -fp4-set-target -pipe-verify-capacity -verify-diagnostics -split-input-file

// Clusters, grids and pairs. The first kernel is correct; each of the others differs from it in the
// place marked.

!accs = !pipe.channel<!pipe.tmem<256x128xf32, pair>>
module attributes {gpu.container_module} {
gpu.module @kernels {
gpu.func @kernel() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, known_grid_size = array<i32: 148, 1, 1>,
    pipe.shared_bytes = 40 : i64, pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 32 : i64} {
  %accs = pipe.channel from tensor to threads(128) scope cluster depth 2 payload [0] barriers 0 : !accs
  gpu.return
}
}
func.func @host() {
  %c1 = arith.constant 1 : index
  %c192 = arith.constant 192 : index
  %c148 = arith.constant 148 : index
  gpu.launch_func @kernels::@kernel blocks in (%c148, %c1, %c1) threads in (%c192, %c1, %c1)
  return
}
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
// (C147)
// expected-error @+2 {{cluster must have at least one CTA along m and n, and one along z, but got 2x1x2}}
// expected-note @+1 {{write known_cluster_size = array<i32: M, N, 1>}}
gpu.func @kernel() kernel attributes {known_cluster_size = array<i32: 2, 1, 2>,
    pipe.shared_bytes = 40 : i64, pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 32 : i64} {
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 0 : !accs
  gpu.return
}
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
// (C147)
// expected-error @+2 {{cluster must have at most 16 CTAs on sm_100a, but got 32}}
// expected-note @+1 {{take a smaller cluster}}
gpu.func @kernel() kernel attributes {known_cluster_size = array<i32: 8, 4, 1>,
    pipe.shared_bytes = 40 : i64, pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 32 : i64} {
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 0 : !accs
  gpu.return
}
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
// (C147)
// expected-error @+2 {{grid must be a multiple of the cluster, 2x2x1, but one dimension has 147 CTAs}}
// expected-note @+1 {{round the grid up to whole clusters, and let CTAs without work do nothing}}
gpu.func @kernel() kernel attributes {known_cluster_size = array<i32: 2, 2, 1>, known_grid_size = array<i32: 148, 147, 1>,
    pipe.shared_bytes = 40 : i64, pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 32 : i64} {
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 0 : !accs
  gpu.return
}
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
module attributes {gpu.container_module} {
gpu.module @kernels {
gpu.func @kernel() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>,
    pipe.shared_bytes = 40 : i64, pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 32 : i64} {
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 0 : !accs
  gpu.return
}
}
func.func @host() {
  %c1 = arith.constant 1 : index
  %c192 = arith.constant 192 : index
  %c147 = arith.constant 147 : index
  // (C147)
  // expected-error @+2 {{grid must be a multiple of the cluster, 2x1x1, but one dimension has 147 CTAs}}
  // expected-note @+1 {{round the grid up to whole clusters, and let CTAs without work do nothing}}
  gpu.launch_func @kernels::@kernel blocks in (%c147, %c1, %c1) threads in (%c192, %c1, %c1)
  return
}
}

// -----

!accs = !pipe.channel<!pipe.tmem<256x128xf32, pair>>
gpu.module @kernels {
// (C148)
// expected-error @+2 {{cluster of a kernel with pairs must have an even number of CTAs along m, but got 1}}
// expected-note @+1 {{write known_cluster_size = array<i32: 2, 1, 1>, or a multiple along m}}
gpu.func @kernel() kernel attributes {known_cluster_size = array<i32: 1, 2, 1>,
    pipe.shared_bytes = 40 : i64, pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 32 : i64} {
  %accs = pipe.channel from tensor to threads(128) scope cluster depth 2 payload [0] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %acc = pipe.accumulator : !pipe.tmem<256x128xf32, pair>
  }
  gpu.return
}
}

// -----

!accs = !pipe.channel<!pipe.tmem<256x128xf32, pair>>
gpu.module @kernels {
gpu.func @kernel(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>,
    pipe.shared_bytes = 40 : i64, pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 32 : i64} {
  %accs = pipe.channel from tensor to threads(128) scope cluster depth 2 payload [0] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %acc = pipe.accumulator : !pipe.tmem<256x128xf32, pair>
    // (C148)
    // expected-error @+2 {{tiles in tensor memory of a kernel with pairs must belong to a pair}}
    // expected-note @+1 {{add ', pair' to the type of each tile}}
    %t = pipe.copy_scales %s at 256 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}

// -----

module attributes {fp4.target = #fp4.target<sm_90a>} {
gpu.module @kernels {
// (C148)
// expected-error @+2 {{a tile of a pair must be on a target with pairs: target 'sm_90a' has no pairs of CTAs}}
// expected-note @+1 {{pairs are of sm_100a, sm_103a, sm_107a and sm_110a: leave ', pair' out for others}}
gpu.func @kernel() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>,
    pipe.shared_bytes = 40 : i64, pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 32 : i64} {
  %tiles = pipe.channel from tma to threads(128) depth 1 payload [1024] barriers 0 : !pipe.channel<!pipe.shared<128x64xbf16, swizzle_128B>>
  pipe.role mma warps 4 to 5 drives [tensor] {
    %acc = pipe.accumulator : !pipe.tmem<256x128xf32, pair>
  }
  gpu.return
}
}
}

// -----

!accs = !pipe.channel<!pipe.tmem<256x128xf32, pair>>
gpu.module @kernels {
// (C445)
// expected-error @+2 {{'pipe.fallback_cluster' must have the CTAs along m and n of a cluster, but got array<i32: 2>}}
// expected-note @+1 {{write array<i32: M, N>}}
gpu.func @kernel() kernel attributes {known_cluster_size = array<i32: 2, 2, 1>, pipe.fallback_cluster = array<i32: 2>,
    pipe.shared_bytes = 40 : i64, pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 32 : i64} {
  %accs = pipe.channel from tensor to threads(128) scope cluster depth 2 payload [0] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %acc = pipe.accumulator : !pipe.tmem<256x128xf32, pair>
  }
  gpu.return
}
}

// -----

!accs = !pipe.channel<!pipe.tmem<256x128xf32, pair>>
gpu.module @kernels {
// (C445)
// expected-error @+2 {{'pipe.fallback_cluster' must divide the cluster, 4x1, but got 2x2}}
// expected-note @+1 {{write divisors of the sizes of known_cluster_size}}
gpu.func @kernel() kernel attributes {known_cluster_size = array<i32: 4, 1, 1>, pipe.fallback_cluster = array<i32: 2, 2>,
    pipe.shared_bytes = 40 : i64, pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 32 : i64} {
  %accs = pipe.channel from tensor to threads(128) scope cluster depth 2 payload [0] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %acc = pipe.accumulator : !pipe.tmem<256x128xf32, pair>
  }
  gpu.return
}
}

// -----

!accs = !pipe.channel<!pipe.tmem<256x128xf32, pair>>
gpu.module @kernels {
// (C446)
// expected-error @+2 {{'pipe.fallback_cluster' must have an even number of CTAs along m, and the kernel pairs, but got 1}}
// expected-note @+1 {{leave the attribute out where there are no pairs, or write array<i32: 2, N>}}
gpu.func @kernel() kernel attributes {known_cluster_size = array<i32: 2, 2, 1>, pipe.fallback_cluster = array<i32: 1, 1>,
    pipe.shared_bytes = 40 : i64, pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 32 : i64} {
  %accs = pipe.channel from tensor to threads(128) scope cluster depth 2 payload [0] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %acc = pipe.accumulator : !pipe.tmem<256x128xf32, pair>
  }
  gpu.return
}
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
// (C446)
// expected-error @+2 {{'pipe.fallback_cluster' must have an even number of CTAs along m, and the kernel pairs, but got 2 and none}}
// expected-note @+1 {{leave the attribute out where there are no pairs, or write array<i32: 2, N>}}
gpu.func @kernel() kernel attributes {known_cluster_size = array<i32: 2, 2, 1>, pipe.fallback_cluster = array<i32: 2, 1>,
    pipe.shared_bytes = 40 : i64, pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 32 : i64} {
  %accs = pipe.channel from tensor to threads(128) scope cta depth 2 payload [0] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %acc = pipe.accumulator : !pipe.tmem<128x128xf32>
  }
  gpu.return
}
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
module attributes {fp4.target = #fp4.target<sm_90a>} {
gpu.module @kernels {
// (C448)
// expected-error @+2 {{'pipe.fallback_cluster' must be on a target with preferred clusters: target 'sm_90a' has no clusters of a preferred size}}
// expected-note @+1 {{leave the attribute out: the launch has clusters of one size there}}
gpu.func @kernel() kernel attributes {known_cluster_size = array<i32: 2, 2, 1>, pipe.fallback_cluster = array<i32: 2, 1>,
    pipe.shared_bytes = 40 : i64, pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 32 : i64} {
  %accs = pipe.channel from tensor to threads(128) scope cta depth 2 payload [0] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %acc = pipe.accumulator : !pipe.tmem<128x128xf32>
  }
  gpu.return
}
}
}

// -----

!accs = !pipe.channel<!pipe.tmem<256x128xf32, pair>>
gpu.module @kernels {
gpu.func @kernel() kernel attributes {known_cluster_size = array<i32: 4, 2, 1>, pipe.fallback_cluster = array<i32: 2, 1>,
    pipe.shared_bytes = 40 : i64, pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 32 : i64} {
  %accs = pipe.channel from tensor to threads(128) scope cluster depth 2 payload [0] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %acc = pipe.accumulator : !pipe.tmem<256x128xf32, pair>
  }
  gpu.return
}
}

// -----

!accs = !pipe.channel<!pipe.tmem<256x128xf32, pair>>
gpu.module @kernels {
gpu.func @kernel(%m: i32) kernel attributes {known_cluster_size = array<i32: 2, 2, 1>, pipe.fallback_cluster = array<i32: 2, 1>,
    pipe.work_ring = array<i64: 48, 3>, pipe.shared_bytes = 144 : i64, pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 32 : i64} {
  %accs = pipe.channel from tensor to threads(128) scope cluster depth 2 payload [0] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %acc = pipe.accumulator : !pipe.tmem<256x128xf32, pair>
  }
  pipe.role scheduler warps 6 to 7 drives [work_queue] {
    pipe.for_each_work %i, %j in (%m, %m) schedule #pipe.cluster_launch<along_m> {
      // (C447)
      // expected-note @+2 {{the kernel has 'pipe.fallback_cluster'}}
      // expected-error @+1 {{must be in a kernel whose clusters have one size}}
      pipe.request_work
    }
  }
  gpu.return
}
}
