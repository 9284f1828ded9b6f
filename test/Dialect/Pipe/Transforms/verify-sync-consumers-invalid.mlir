// RUN: fp4-opt %s -pipe-verify-sync -verify-diagnostics -split-input-file

// Channels with two consumers, and rings with two producers.

// Two roles use each stage. The first kernel is correct; those that follow differ in the place marked.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %ab = pipe.channel from tma to [tensor, threads(128)] : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %s = pipe.producer_acquire %ab : !tiles
      pipe.load %sf[%c0, %k] into %s signals %ab : !sf, !scales, !tiles
      pipe.producer_commit %ab : !tiles
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %s = pipe.consumer_wait %ab : !tiles
      %t = pipe.copy_scales %s : !scales -> !tscales
      pipe.consumer_release %ab : !tiles
    }
  }
  pipe.role watch warps 0 to 4 drives [threads] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %s = pipe.consumer_wait %ab : !tiles
      pipe.consumer_release %ab : !tiles
    }
  }
  gpu.return
}
}

// -----

// (C132) The second consumer that the channel lists does not exist.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error @+2 {{channel must have a consumer role}}
  // expected-note @+1 {{the other end waits for it forever}}
  %ab = pipe.channel from tma to [tensor, threads(128)] : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %s = pipe.producer_acquire %ab : !tiles
      pipe.load %sf[%c0, %k] into %s signals %ab : !sf, !scales, !tiles
      pipe.producer_commit %ab : !tiles
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %s = pipe.consumer_wait %ab : !tiles
      %t = pipe.copy_scales %s : !scales -> !tscales
      pipe.consumer_release %ab : !tiles
    }
  }
  pipe.role watch warps 0 to 4 drives [threads] {
  }
  gpu.return
}
}

// -----

// (C132) The second consumer has other arrivals.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error @+1 {{consumer must be threads with 128 arrivals, but got tensor with 1}}
  %ab = pipe.channel from tma to [tensor, threads(64)] : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %s = pipe.producer_acquire %ab : !tiles
      pipe.load %sf[%c0, %k] into %s signals %ab : !sf, !scales, !tiles
      pipe.producer_commit %ab : !tiles
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %s = pipe.consumer_wait %ab : !tiles
      %t = pipe.copy_scales %s : !scales -> !tscales
      pipe.consumer_release %ab : !tiles
    }
  }
  // expected-note @+1 {{the consumer is role watch}}
  pipe.role watch warps 0 to 4 drives [threads] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %s = pipe.consumer_wait %ab : !tiles
      pipe.consumer_release %ab : !tiles
    }
  }
  gpu.return
}
}

// -----

// (C133) The second consumer takes another number of stages.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %ab = pipe.channel from tma to [tensor, threads(128)] : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      // expected-note @+1 {{the stage is filled here}}
      %s = pipe.producer_acquire %ab : !tiles
      pipe.load %sf[%c0, %k] into %s signals %ab : !sf, !scales, !tiles
      pipe.producer_commit %ab : !tiles
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %s = pipe.consumer_wait %ab : !tiles
      %t = pipe.copy_scales %s : !scales -> !tscales
      pipe.consumer_release %ab : !tiles
    }
  }
  pipe.role watch warps 0 to 4 drives [threads] {
    scf.for %k = %c0 to %m step %c1 : i32 {
      // expected-error @+1 {{must be in the same loops as the producer_acquire of its channel, so that as many stages are consumed as are produced}}
      %s = pipe.consumer_wait %ab : !tiles
      pipe.consumer_release %ab : !tiles
    }
  }
  gpu.return
}
}

// -----

// (C132) Two roles fill one ring.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf) kernel {
  %c0 = arith.constant 0 : i32
  %ab = pipe.channel from tma to threads(128) : !tiles
  // expected-note @+1 {{the first is here; give each its own channel}}
  pipe.role load warps 5 to 6 drives [tma] {
    %s = pipe.producer_acquire %ab : !tiles
    pipe.load %sf[%c0, %c0] into %s signals %ab : !sf, !scales, !tiles
    pipe.producer_commit %ab : !tiles
  }
  pipe.role other warps 6 to 7 drives [tma] {
    // expected-error @+1 {{channel has a second role at this end, other}}
    %s = pipe.producer_acquire %ab : !tiles
    pipe.load %sf[%c0, %c0] into %s signals %ab : !sf, !scales, !tiles
    pipe.producer_commit %ab : !tiles
  }
  pipe.role watch warps 0 to 4 drives [threads] {
    %s = pipe.consumer_wait %ab : !tiles
    pipe.consumer_release %ab : !tiles
  }
  gpu.return
}
}
