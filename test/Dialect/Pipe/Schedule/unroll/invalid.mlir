// RUN: fp4-opt %s -split-input-file -verify-diagnostics -pipe-verify-sync

!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!columns = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!channel = !pipe.channel<!scales>
!map = !pipe.global<512x16xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
  gpu.func @scales(%sf: !map) kernel attributes {pipe.scheduled} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %bytes = arith.constant 2048 : i32
    %tiles = pipe.channel from tma to tensor depth 3 payload [0] barriers 6144 : !channel
    pipe.role load warps 6 to 7 drives [tma] {
      %last = scf.for %k = %c0 to %c8 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        %s = pipe.producer_acquire %tiles[%it] : !channel
        pipe.expect_tx %tiles[%it], %bytes : !channel
        pipe.load %sf[%c0, %c0] into %s signals %tiles[%it] : !map, !scales, !channel
        pipe.producer_commit %tiles[%it] : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
      %last = scf.for %k = %c0 to %c8 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        %s = pipe.consumer_wait %tiles[%it] : !channel
        // (C113)
        // expected-error @+2 {{set must be one of 3, counted from 0, but got 3}}
        // expected-note @+1 {{leave 'set' out: it follows from the iteration}}
        %t = pipe.copy_scales %s at 0 sets 3 set 3 : !scales -> !columns
        pipe.consumer_release %tiles[%it] : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}

// -----
// An iteration of any residue has no set of its own.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!columns = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!channel = !pipe.channel<!scales>
!map = !pipe.global<512x16xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
  gpu.func @scales(%sf: !map) kernel attributes {pipe.scheduled} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %bytes = arith.constant 2048 : i32
    %tiles = pipe.channel from tma to tensor depth 3 payload [0] barriers 6144 : !channel
    pipe.role load warps 6 to 7 drives [tma] {
      %last = scf.for %k = %c0 to %c8 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        %s = pipe.producer_acquire %tiles[%it] : !channel
        pipe.expect_tx %tiles[%it], %bytes : !channel
        pipe.load %sf[%c0, %c0] into %s signals %tiles[%it] : !map, !scales, !channel
        pipe.producer_commit %tiles[%it] : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
      %last = scf.for %k = %c0 to %c8 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        %s = pipe.consumer_wait %tiles[%it] : !channel
        // (C627)
        // expected-error @+2 {{set must be 1 in iteration 1 of its channel, but is 0}}
        // expected-note @+1 {{leave 'set' out where iterations of one loop have different sets}}
        %t = pipe.copy_scales %s at 0 sets 3 set 0 : !scales -> !columns
        pipe.consumer_release %tiles[%it] : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}
