// RUN: fp4-opt %s -pipe-verify-sync -split-input-file -verify-diagnostics

// A set of scale columns is filled again only when the MMAs that read it are complete. The twins:
// a set for each stage, and two sets behind a wait for the release of two stages ago.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %bytes = arith.constant 2048 : i32
  %a = pipe.channel from tma to tensor depth 4 payload [0] barriers 8192 : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %s = pipe.producer_acquire %a[%it] : !tiles
      pipe.expect_tx %a[%it], %bytes : !tiles
      pipe.load %sf[%c0, %k] into %s signals %a[%it] : !sf, !scales, !tiles
      pipe.producer_commit %a[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      // expected-note @+1 {{give it 4 sets, or put a pipe.await_release of distance 2 between this and the copy}}
      %s = pipe.consumer_wait %a[%it] : !tiles
      %twin = pipe.copy_scales %s at 0 sets 4 : !scales -> !tscales
      // (C137)
      // expected-error @+1 {{fills one of 2 sets for the 4 stages of a channel while an earlier MMA may still read it}}
      %bad = pipe.copy_scales %s at 64 sets 2 : !scales -> !tscales
      pipe.await_release %a[%it] distance 2 : !tiles
      %second = pipe.copy_scales %s at 64 sets 2 : !scales -> !tscales
      pipe.consumer_release %a[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  gpu.return
}
}

// -----

// An MMA that reads a set is issued before the release that says when it is complete.
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!acc = !pipe.tmem<128x128xf32>
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!operands = !pipe.channel<!data>
!accs = !pipe.channel<!acc>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %map: !map) kernel {
  %c0 = arith.constant 0 : i32
  %more = arith.constant false
  %bytes = arith.constant 2048 : i32
  %all = arith.constant 16384 : i32
  %a = pipe.channel from tma to tensor depth 4 payload [0] barriers 32768 : !tiles
  %x = pipe.channel from tma to tensor depth 1 payload [16384] barriers 32832 : !operands
  %y = pipe.channel from tensor to threads(128) depth 1 payload [64] barriers 32848 : !accs
  pipe.role load warps 5 to 6 drives [tma] {
    %s = pipe.producer_acquire %a[%c0] : !tiles
    pipe.expect_tx %a[%c0], %bytes : !tiles
    pipe.load %sf[%c0, %c0] into %s signals %a[%c0] : !sf, !scales, !tiles
    pipe.producer_commit %a[%c0] : !tiles
    %t = pipe.producer_acquire %x[%c0] : !operands
    pipe.expect_tx %x[%c0], %all : !operands
    pipe.load %map[%c0, %c0] into %t signals %x[%c0] : !map, !data, !operands
    pipe.producer_commit %x[%c0] : !operands
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %acc = pipe.producer_acquire %y[%c0] : !accs
    %s = pipe.consumer_wait %a[%c0] : !tiles
    %t = pipe.consumer_wait %x[%c0] : !operands
    %ts = pipe.copy_scales %s at 0 sets 4 : !scales -> !tscales
    pipe.mma %acc, %t scaled %ts, %t scaled %ts accumulate %more : !acc, !data, !tscales, !data, !tscales
    // expected-note @+1 {{released here; move this behind the last use}}
    pipe.consumer_release %a[%c0] : !tiles
    // (C137)
    // expected-error @+1 {{uses a scale tile after the stage it was copied from was released}}
    pipe.mma %acc, %t scaled %ts, %t scaled %ts accumulate %more : !acc, !data, !tscales, !data, !tscales
    pipe.consumer_release %x[%c0] : !operands
    pipe.producer_commit %y[%c0] : !accs
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %acc = pipe.consumer_wait %y[%c0] : !accs
    pipe.consumer_release %y[%c0] : !accs
  }
  gpu.return
}
}
