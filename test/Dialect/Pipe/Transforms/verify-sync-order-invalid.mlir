// RUN: fp4-opt %s -pipe-verify-sync -verify-diagnostics -split-input-file

// Pipelined kernels: the order of several channels. The first is correct.

// Two channels, filled and emptied in the same order.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %bytes = arith.constant 2048 : i32
  %a = pipe.channel from tma to tensor depth 4 payload [0] barriers 16384 : !tiles
  %b = pipe.channel from tma to tensor depth 4 payload [8192] barriers 16448 : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    %ra = scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %s = pipe.producer_acquire %a[%it] : !tiles
      pipe.expect_tx %a[%it], %bytes : !tiles
      pipe.load %sf[%c0, %k] into %s signals %a[%it] : !sf, !scales, !tiles
      pipe.producer_commit %a[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
    %rb = scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %s = pipe.producer_acquire %b[%it] : !tiles
      pipe.expect_tx %b[%it], %bytes : !tiles
      pipe.load %sf[%c0, %k] into %s signals %b[%it] : !sf, !scales, !tiles
      pipe.producer_commit %b[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %r1 = scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %s = pipe.consumer_wait %a[%it] : !tiles
      %t = pipe.copy_scales %s at 0 sets 4 : !scales -> !tscales
      pipe.consumer_release %a[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
    %r2 = scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %s = pipe.consumer_wait %b[%it] : !tiles
      %t = pipe.copy_scales %s at 0 sets 4 : !scales -> !tscales
      pipe.consumer_release %b[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  gpu.return
}
}

// -----

// (C136) Emptied in the other order: the first ring fills up while the consumer waits for the second.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %bytes = arith.constant 2048 : i32
  %a = pipe.channel from tma to tensor depth 4 payload [0] barriers 16384 : !tiles
  %b = pipe.channel from tma to tensor depth 4 payload [8192] barriers 16448 : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    %ra = scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      // expected-error @+1 {{role load waits forever for an empty stage}}
      %s = pipe.producer_acquire %a[%it] : !tiles
      pipe.expect_tx %a[%it], %bytes : !tiles
      pipe.load %sf[%c0, %k] into %s signals %a[%it] : !sf, !scales, !tiles
      pipe.producer_commit %a[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
    %rb = scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %s = pipe.producer_acquire %b[%it] : !tiles
      pipe.expect_tx %b[%it], %bytes : !tiles
      pipe.load %sf[%c0, %k] into %s signals %b[%it] : !sf, !scales, !tiles
      pipe.producer_commit %b[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %r1 = scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      // expected-note @+1 {{role mma waits here for a full stage}}
      %s = pipe.consumer_wait %b[%it] : !tiles
      %t = pipe.copy_scales %s at 0 sets 4 : !scales -> !tscales
      pipe.consumer_release %b[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
    %r2 = scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %s = pipe.consumer_wait %a[%it] : !tiles
      %t = pipe.copy_scales %s at 0 sets 4 : !scales -> !tscales
      pipe.consumer_release %a[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  gpu.return
}
}
