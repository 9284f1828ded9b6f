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
        %stage = arith.constant 0 : i32
        // (C627)
        // expected-error @+2 {{stage and phase of iteration 1 must be 1 and 0, but are 0 and 0}}
        // expected-note @+1 {{the stage is the iteration modulo the depth}}
        %at = pipe.stage_of %it at %stage, %stage of 3
        %s = pipe.consumer_wait %tiles[%at] : !channel
        %t = pipe.copy_scales %s at 0 sets 3 : !scales -> !columns
        pipe.consumer_release %tiles[%it] : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}

// -----
gpu.module @kernels {
  gpu.func @kernel(%it: i32) kernel {
    // (C623)
    // expected-error @+2 {{depth must be positive and more than 'ahead', but got depth 3 and ahead 3}}
    // expected-note @+1 {{write the depth of the channel whose operation takes the iteration}}
    %at = pipe.stage_of %it ahead 3 at %it, %it of 3
    gpu.return
  }
}
