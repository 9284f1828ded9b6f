// RUN: fp4-opt %s -split-input-file -verify-diagnostics -pipe-verify-sync

// A release with its fence, and a wait for it: no error.
!powers = !pipe.shared<4x128xf32>
!rows = !pipe.global<512x128xf32>
!channel = !pipe.channel<!powers>
gpu.module @kernels {
  gpu.func @powers(%p: !rows) kernel attributes {pipe.scheduled} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %bytes = arith.constant 2048 : i32
    %tiles = pipe.channel from tma to threads(128) depth 2 payload [0] barriers 4096 : !channel
    pipe.role load warps 4 to 5 drives [tma] {
      %last = scf.for %k = %c0 to %c8 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        %t = pipe.producer_acquire %tiles[%it] : !channel
        pipe.expect_tx %tiles[%it], %bytes : !channel
        pipe.load %p[%c0] into %t signals %tiles[%it] : !rows, !powers, !channel
        pipe.producer_commit %tiles[%it] : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    pipe.role math warps 0 to 4 drives [threads] {
      %last = scf.for %k = %c0 to %c8 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        %t = pipe.consumer_wait %tiles[%it] : !channel
        %s = pipe.scales %t[0] block %c0 : !powers -> vector<3xf32>
        pipe.consumer_release %tiles[%it] : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}

// -----
// The load of the third stage does not wait until the first one is read.
!powers = !pipe.shared<4x128xf32>
!rows = !pipe.global<512x128xf32>
!channel = !pipe.channel<!powers>
gpu.module @kernels {
  gpu.func @powers(%p: !rows) kernel attributes {pipe.scheduled} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %bytes = arith.constant 2048 : i32
    %tiles = pipe.channel from tma to threads(128) depth 2 payload [0] barriers 4096 without_empty : !channel
    pipe.role load warps 4 to 5 drives [tma] {
      %last = scf.for %k = %c0 to %c8 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        %t = pipe.producer_acquire %tiles[%it] : !channel
        pipe.expect_tx %tiles[%it], %bytes : !channel
        // (C628)
        // expected-error @+2 {{accesses a tile in iteration 2 while an earlier access may not be over}}
        // expected-note @+1 {{of role load accesses it here, in iteration 0; wait for its arrival in between}}
        pipe.load %p[%c0] into %t signals %tiles[%it] : !rows, !powers, !channel
        pipe.producer_commit %tiles[%it] : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    pipe.role math warps 0 to 4 drives [threads] {
      %last = scf.for %k = %c0 to %c8 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        %t = pipe.consumer_wait %tiles[%it] : !channel
        %s = pipe.scales %t[0] block %c0 : !powers -> vector<3xf32>
        pipe.consumer_release %tiles[%it] : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}

// -----
// Threads have read the stage, and nothing orders their reads before the copy.
!powers = !pipe.shared<4x128xf32>
!rows = !pipe.global<512x128xf32>
!channel = !pipe.channel<!powers>
gpu.module @kernels {
  gpu.func @powers(%p: !rows) kernel attributes {pipe.scheduled} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %bytes = arith.constant 2048 : i32
    %tiles = pipe.channel from tma to threads(128) depth 2 payload [0] barriers 4096 : !channel
    pipe.role load warps 4 to 5 drives [tma] {
      %last = scf.for %k = %c0 to %c8 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        %t = pipe.producer_acquire %tiles[%it] : !channel
        pipe.expect_tx %tiles[%it], %bytes : !channel
        // (C628)
        // expected-error @+1 {{accesses a tile in iteration 2 while an earlier access may not be over}}
        pipe.load %p[%c0] into %t signals %tiles[%it] : !rows, !powers, !channel
        pipe.producer_commit %tiles[%it] : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    pipe.role math warps 0 to 4 drives [threads] {
      %last = scf.for %k = %c0 to %c8 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        %t = pipe.consumer_wait %tiles[%it] : !channel
        // expected-note @+1 {{accesses it here, in iteration 0; wait for its arrival in between}}
        %s = pipe.scales %t[0] block %c0 : !powers -> vector<3xf32>
        pipe.consumer_release %tiles[%it] unfenced : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}

// -----
!powers = !pipe.shared<4x128xf32>
!rows = !pipe.global<512x128xf32>
!channel = !pipe.channel<!powers>
gpu.module @kernels {
  gpu.func @powers(%p: !rows) kernel attributes {pipe.scheduled} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %bytes = arith.constant 2048 : i32
    %tiles = pipe.channel from tma to threads(128) depth 2 payload [0] barriers 4096 : !channel
    pipe.role load warps 4 to 5 drives [tma] {
      %last = scf.for %k = %c0 to %c8 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        %t = pipe.producer_acquire %tiles[%it] : !channel
        pipe.expect_tx %tiles[%it], %bytes : !channel
        pipe.load %p[%c0] into %t signals %tiles[%it] : !rows, !powers, !channel
        pipe.producer_commit %tiles[%it] : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    pipe.role math warps 0 to 4 drives [threads] {
      %last = scf.for %k = %c0 to %c8 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        %t = pipe.consumer_wait %tiles[%it] : !channel
        %s = pipe.scales %t[0] block %c0 : !powers -> vector<3xf32>
        // (C621)
        // expected-error @+2 {{by nobody must follow a partial release of its stage}}
        // expected-note @+1 {{write 'by threads', so that the producer learns that the stage is empty}}
        pipe.consumer_release %tiles[%it] by nobody : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}

// -----
// The last wait before a copy of tcgen05 has no fence.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!columns = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!channel = !pipe.channel<!scales>
!sf = !pipe.global<512x16xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
  gpu.func @scales(%sf: !sf) kernel attributes {pipe.scheduled} {
    %c0 = arith.constant 0 : i32
    %bytes = arith.constant 2048 : i32
    %tiles = pipe.channel from tma to tensor depth 1 payload [0] barriers 2048 : !channel
    pipe.role load warps 6 to 7 drives [tma] {
      %s = pipe.producer_acquire %tiles[%c0] : !channel
      pipe.expect_tx %tiles[%c0], %bytes : !channel
      pipe.load %sf[%c0, %c0] into %s signals %tiles[%c0] : !sf, !scales, !channel
      pipe.producer_commit %tiles[%c0] : !channel
    }
    pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
      // expected-note @+1 {{leave 'unfenced' out here, where no later wait has the fence}}
      %s = pipe.consumer_wait %tiles[%c0] unfenced : !channel
      // (C629)
      // expected-error @+1 {{must be behind a fence of the wait that it follows, which is unfenced}}
      %t = pipe.copy_scales %s at 0 : !scales -> !columns
      pipe.consumer_release %tiles[%c0] : !channel
    }
    gpu.return
  }
}

// -----
// The stages are handed over, but nothing fills them.
!powers = !pipe.shared<4x128xf32>
!rows = !pipe.global<512x128xf32>
!channel = !pipe.channel<!powers>
gpu.module @kernels {
  gpu.func @powers(%p: !rows) kernel attributes {pipe.scheduled} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %zero = arith.constant 0 : i32
    %tiles = pipe.channel from tma to threads(128) depth 2 payload [0] barriers 4096 : !channel
    pipe.role load warps 4 to 5 drives [tma] {
      %last = scf.for %k = %c0 to %c8 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        %t = pipe.producer_acquire %tiles[%it] : !channel
        pipe.expect_tx %tiles[%it], %zero : !channel
        pipe.producer_commit %tiles[%it] : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    pipe.role math warps 0 to 4 drives [threads] {
      %last = scf.for %k = %c0 to %c8 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        %t = pipe.consumer_wait %tiles[%it] : !channel
        // (C628)
        // expected-error @+2 {{reads a tile of iteration 0 that no operation has written}}
        // expected-note @+1 {{fill the tile in each iteration before its stage is handed over}}
        %s = pipe.scales %t[0] block %c0 : !powers -> vector<3xf32>
        pipe.consumer_release %tiles[%it] : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}

// -----
// Lanes load the numbers of their rows by themselves.
!powers = !pipe.shared<4x128xf32>
!channel = !pipe.channel<!powers>
gpu.module @kernels {
  gpu.func @powers(%it: i32) kernel {
    %c0 = arith.constant 0 : i32
    %tiles = pipe.channel from tma to threads(128) depth 2 payload [0] barriers 4096 : !channel
    pipe.role math warps 0 to 4 drives [threads] {
      %t = pipe.consumer_wait %tiles[%it] : !channel
      %s = pipe.scales %t[0] block %c0 : !powers -> vector<3xf32>
      // (C632)
      // expected-error @+2 {{by aligned_warps must be of a stage that MMAs of warpgroups alone read from shared memory}}
      // expected-note @+1 {{write 'by warps', so that a warp arrives when all of its threads have read}}
      pipe.consumer_release %tiles[%it] by aligned_warps : !channel
    }
    gpu.return
  }
}
