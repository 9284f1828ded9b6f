// RUN: fp4-opt %s -pipe-verify-sync -verify-diagnostics -split-input-file

// Loads that the CTAs of a cluster have together. The first kernel is correct; each of the others
// differs from it, or from that of verify-sync-cluster-invalid.mlir, in the place marked.

// The loads of both CTAs signal the leader: 2048 bytes each. The kernel is correct.
!scale_map = !pipe.tensor_map<128x16xf8E4M3FN, tiled_128x4>
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!pscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4, pair>
!tiles = !pipe.channel<!scales>
gpu.module @kernels {
gpu.func @kernel(%sf: !scale_map, %n: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %bytes = arith.constant 4096 : i32
  %ab = pipe.channel from tma to tensor scope cluster depth 2 payload [0] barriers 4096 : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %s = pipe.producer_acquire %ab[%it] : !tiles
      pipe.expect_tx %ab[%it], %bytes : !tiles
      pipe.load %sf[%k, %c0] into %s signals %ab[%it] : !scale_map, !scales, !tiles
      pipe.producer_commit %ab[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %s = pipe.consumer_wait %ab[%it] : !tiles
      %t = pipe.copy_scales %s at 0 sets 2 : !scales -> !pscales
      pipe.consumer_release %ab[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  gpu.return
}
}

// -----

// (C135) The leader announces what its own load completes.
!scale_map = !pipe.tensor_map<128x16xf8E4M3FN, tiled_128x4>
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!pscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4, pair>
!tiles = !pipe.channel<!scales>
gpu.module @kernels {
gpu.func @kernel(%sf: !scale_map, %n: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %bytes = arith.constant 2048 : i32
  %ab = pipe.channel from tma to tensor scope cluster depth 2 payload [0] barriers 4096 : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %s = pipe.producer_acquire %ab[%it] : !tiles
      // expected-error @+2 {{must announce the 4096 bytes that the loads of the stage complete, but got 2048}}
      // expected-note @+1 {{the barrier's count would not return to zero}}
      pipe.expect_tx %ab[%it], %bytes : !tiles
      pipe.load %sf[%k, %c0] into %s signals %ab[%it] : !scale_map, !scales, !tiles
      pipe.producer_commit %ab[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %s = pipe.consumer_wait %ab[%it] : !tiles
      %t = pipe.copy_scales %s at 0 sets 2 : !scales -> !pscales
      pipe.consumer_release %ab[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  gpu.return
}
}

// -----

// A pair alone may run it too.
!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
!scale_map = !pipe.tensor_map<128x16xf8E4M3FN, tiled_128x4>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!pscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4, pair>
!acc = !pipe.tmem<256x128xf32, pair>
!half_map = !pipe.tensor_map<64x256xf4E2M1FN, swizzle_128B>
!half = !pipe.shared<64x256xf4E2M1FN, swizzle_128B>
!ab = !pipe.channel<!data, !half, !scales, !scales>
!accs = !pipe.channel<!acc>
!sf = !pipe.global<512x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%a: !half_map, %b: !half_map, %sfa: !scale_map, %sfb: !sf, %n: i32)
    kernel attributes {known_cluster_size = array<i32: 2, 2, 1>, pipe.fallback_cluster = array<i32: 2, 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %true = arith.constant true
  %place_m = gpu.cluster_block_id x
  %x = arith.index_cast %place_m : index to i32
  %place_n = gpu.cluster_block_id y
  %y = arith.index_cast %place_n : index to i32
  %m0 = arith.muli %x, %c128 : i32
  %n0 = arith.muli %y, %c256 : i32
  %ab = pipe.channel from tma to tensor scope cluster : !ab
  %accs = pipe.channel from tensor to threads(128) scope cluster : !accs
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %as, %bs, %sas, %sbs = pipe.producer_acquire %ab : !ab
      pipe.load %a[%m0, %k] multicast n into %as signals %ab : !half_map, !data, !ab
      pipe.load %b[%n0, %k] into %bs signals %ab : !half_map, !half, !ab
      pipe.load %sfa[%m0, %k] into %sas signals %ab : !scale_map, !scales, !ab
      pipe.load %sfa[%n0, %k] into %sbs signals %ab : !scale_map, !scales, !ab
      pipe.producer_commit %ab : !ab
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %acc = pipe.producer_acquire %accs : !accs
    scf.for %k = %c0 to %n step %c1 : i32 {
      %as, %bs, %sas, %sbs = pipe.consumer_wait %ab : !ab
      %sat = pipe.copy_scales %sas : !scales -> !pscales
      %sbt = pipe.copy_scales %sbs : !scales -> !pscales
      pipe.mma %acc, %as scaled %sat, %bs scaled %sbt accumulate %true : !acc, !data, !pscales, !half, !pscales
      pipe.consumer_release %ab : !ab
    }
    pipe.producer_commit %accs : !accs
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %acc = pipe.consumer_wait %accs : !accs
    %v = pipe.read %acc[%c0] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
    pipe.consumer_release %accs : !accs
  }
  gpu.return
}
}

// -----

// Threads, of a number that the code says, release what CTAs load together.
!half_map = !pipe.tensor_map<64x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!tiles = !pipe.channel<!data>
gpu.module @kernels {
gpu.func @kernel(%a: !half_map, %m0: i32)
    kernel attributes {known_cluster_size = array<i32: 2, 2, 1>, pipe.fallback_cluster = array<i32: 2, 1>} {
  // (C449)
  // expected-error @+2 {{channel that loads with multicast fill must feed the tensor core of a pair in a kernel whose clusters have two sizes}}
  // expected-note @+1 {{leave 'multicast' out, or the attribute of the second size}}
  %tiles = pipe.channel from tma to threads(128) scope cluster : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    %as = pipe.producer_acquire %tiles : !tiles
    pipe.load %a[%m0, %m0] multicast n into %as signals %tiles : !half_map, !data, !tiles
    pipe.producer_commit %tiles : !tiles
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %as = pipe.consumer_wait %tiles : !tiles
    pipe.consumer_release %tiles : !tiles
  }
  gpu.return
}
}
