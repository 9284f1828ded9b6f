// RUN: fp4-opt %s -pipe-verify-sync -verify-diagnostics -split-input-file
// Loads that pairs along m share. The first kernel is correct.

// (C152) Two pairs along m load together what each CTA of a pair has of B: this is correct.
!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
!scale_map = !pipe.tensor_map<128x16xf8E4M3FN, tiled_128x4>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!pscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4, pair>
!acc = !pipe.tmem<256x128xf32, pair>
!half_map = !pipe.tensor_map<32x256xf4E2M1FN, swizzle_128B>
!half = !pipe.shared<64x256xf4E2M1FN, swizzle_128B>
!ab = !pipe.channel<!data, !half, !scales, !scales>
!accs = !pipe.channel<!acc>
gpu.module @kernels {
gpu.func @kernel(%a: !map, %b: !half_map, %sfa: !scale_map, %n: i32)
    kernel attributes {known_cluster_size = array<i32: 4, 1, 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %true = arith.constant true
  %place_m = gpu.cluster_block_id x
  %x = arith.index_cast %place_m : index to i32
  %m0 = arith.muli %x, %c128 : i32
  %half = arith.remui %x, %c2 : i32
  %n0 = arith.muli %half, %c64 : i32
  %ab = pipe.channel from tma to tensor scope cluster : !ab
  %accs = pipe.channel from tensor to threads(128) scope cluster : !accs
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %as, %bs, %sas, %sbs = pipe.producer_acquire %ab : !ab
      pipe.load %a[%m0, %k] into %as signals %ab : !map, !data, !ab
      pipe.load %b[%n0, %k] multicast pairs into %bs signals %ab : !half_map, !half, !ab
      pipe.load %sfa[%m0, %k] into %sas signals %ab : !scale_map, !scales, !ab
      pipe.load %sfa[%c0, %k] into %sbs signals %ab : !scale_map, !scales, !ab
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

// (C152) Columns differ between the pairs.
!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
!scale_map = !pipe.tensor_map<128x16xf8E4M3FN, tiled_128x4>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!pscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4, pair>
!acc = !pipe.tmem<256x128xf32, pair>
!half_map = !pipe.tensor_map<32x256xf4E2M1FN, swizzle_128B>
!half = !pipe.shared<64x256xf4E2M1FN, swizzle_128B>
!ab = !pipe.channel<!data, !half, !scales, !scales>
!accs = !pipe.channel<!acc>
gpu.module @kernels {
gpu.func @kernel(%a: !map, %b: !half_map, %sfa: !scale_map, %n: i32)
    kernel attributes {known_cluster_size = array<i32: 4, 1, 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %true = arith.constant true
  %place_m = gpu.cluster_block_id x
  %x = arith.index_cast %place_m : index to i32
  %m0 = arith.muli %x, %c128 : i32
  // expected-note @+1 {{this operand does}}
  %n0 = arith.muli %x, %c64 : i32
  %ab = pipe.channel from tma to tensor scope cluster : !ab
  %accs = pipe.channel from tensor to threads(128) scope cluster : !accs
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %as, %bs, %sas, %sbs = pipe.producer_acquire %ab : !ab
      pipe.load %a[%m0, %k] into %as signals %ab : !map, !data, !ab
      // expected-error @+1 {{coordinates of a tile that pairs along m load together must not depend on the place of a pair}}
      pipe.load %b[%n0, %k] multicast pairs into %bs signals %ab : !half_map, !half, !ab
      pipe.load %sfa[%m0, %k] into %sas signals %ab : !scale_map, !scales, !ab
      pipe.load %sfa[%c0, %k] into %sbs signals %ab : !scale_map, !scales, !ab
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

// (C591) Threads wait for a barrier of each CTA.
!map = !pipe.tensor_map<32x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<64x256xf4E2M1FN, swizzle_128B>
!ab = !pipe.channel<!data>
gpu.module @kernels {
gpu.func @kernel(%a: !map, %n: i32) kernel attributes {known_cluster_size = array<i32: 4, 1, 1>} {
  // expected-error @+2 {{channel that loads with 'multicast pairs' fill must feed the tensor core of a pair}}
  // expected-note @+1 {{write 'multicast m', which reaches the CTAs of all pairs}}
  %ab = pipe.channel from tma to threads(128) scope cluster : !ab
  pipe.role load warps 4 to 5 drives [tma] {
    %s = pipe.producer_acquire %ab : !ab
    pipe.load %a[%n, %n] multicast pairs into %s signals %ab : !map, !data, !ab
    pipe.producer_commit %ab : !ab
  }
  pipe.role use warps 0 to 4 drives [threads] {
    %s = pipe.consumer_wait %ab : !ab
    pipe.consumer_release %ab : !ab
  }
  gpu.return
}
}
