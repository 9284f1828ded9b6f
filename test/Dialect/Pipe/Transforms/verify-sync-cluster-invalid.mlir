// RUN: fp4-opt %s -pipe-verify-sync -verify-diagnostics -split-input-file

// A GEMM of two pairs that share rows of A. The first kernel is correct; each of the others differs
// from it in the place marked.

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
    kernel attributes {known_cluster_size = array<i32: 2, 2, 1>} {
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

// (C153) The tensor core of a pair is at an end.
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
    kernel attributes {known_cluster_size = array<i32: 2, 2, 1>} {
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
  // expected-error @+2 {{scope must be cluster, but got cta}}
  // expected-note @+1 {{the tensor core of a pair is at one of its ends}}
  %ab = pipe.channel from tma to tensor : !ab
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

// (C153) The tensor core of a pair is also at an end of the channel that it fills.
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
    kernel attributes {known_cluster_size = array<i32: 2, 2, 1>} {
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
  // expected-error @+2 {{scope must be cluster, but got cta}}
  // expected-note @+1 {{the tensor core of a pair is at one of its ends}}
  %accs = pipe.channel from tensor to threads(128) : !accs
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

// (C154) A bulk copy cannot signal the leader.
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
    kernel attributes {known_cluster_size = array<i32: 2, 2, 1>} {
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
      // expected-error @+2 {{must signal the leader of the pair that uses the stage, but a bulk copy signals its own CTA}}
      // expected-note @+1 {{load the scales with pipe.load through a tensor map}}
      pipe.load %sfb[%y, %k] into %sbs signals %ab : !sf, !scales, !ab
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

// (C152) CTAs along n load parts of different tiles.
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
    kernel attributes {known_cluster_size = array<i32: 2, 2, 1>} {
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
  // expected-note @+1 {{this operand does}}
  %n0 = arith.muli %y, %c256 : i32
  %ab = pipe.channel from tma to tensor scope cluster : !ab
  %accs = pipe.channel from tensor to threads(128) scope cluster : !accs
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %as, %bs, %sas, %sbs = pipe.producer_acquire %ab : !ab
      // expected-error @+1 {{coordinates of a tile that CTAs along n load together must not depend on the place of a CTA}}
      pipe.load %a[%n0, %k] multicast n into %as signals %ab : !half_map, !data, !ab
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

// (C155) The left pair stops before the right one.
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
    kernel attributes {known_cluster_size = array<i32: 2, 2, 1>} {
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
  // expected-note @+1 {{the channel is here}}
  %ab = pipe.channel from tma to tensor scope cluster : !ab
  %accs = pipe.channel from tensor to threads(128) scope cluster : !accs
  pipe.role load warps 5 to 6 drives [tma] {
    // expected-error @+1 {{must run alike in all CTAs of the cluster, which share a channel, but depends on the place of its CTA}}
    scf.for %k = %c0 to %y step %c1 : i32 {
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
    scf.for %k = %c0 to %y step %c1 : i32 {
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

// (C153) No CTA shares the barriers.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  // expected-error @+2 {{scope must be cta, but got cluster: no load multicasts into the channel, and no pair is at its ends}}
  // expected-note @+1 {{leave 'scope' out}}
  %ab = pipe.channel from tma to tensor scope cluster : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    %s = pipe.producer_acquire %ab : !tiles
    pipe.load %sf[%n, %n] into %s signals %ab : !sf, !scales, !tiles
    pipe.producer_commit %ab : !tiles
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %s = pipe.consumer_wait %ab : !tiles
    %t = pipe.copy_scales %s : !scales -> !tscales
    pipe.consumer_release %ab : !tiles
  }
  gpu.return
}
}

// -----

// (C132) Threads wait for each CTA's barrier, and the pair for the leader's.
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
    kernel attributes {known_cluster_size = array<i32: 2, 2, 1>} {
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
  // expected-error @+2 {{channel that the tensor core of a pair uses must have one consumer, but got 2}}
  // expected-note @+1 {{let one role consume it, and make another channel for the second}}
  %ab = pipe.channel from tma to [tensor, threads(128)] scope cluster : !ab
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
    scf.for %k = %c0 to %n step %c1 : i32 {
      %as, %bs, %sas, %sbs = pipe.consumer_wait %ab : !ab
      pipe.consumer_release %ab : !ab
    }
    %acc = pipe.consumer_wait %accs : !accs
    %v = pipe.read %acc[%c0] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
    pipe.consumer_release %accs : !accs
  }
  gpu.return
}
}
