// RUN: fp4-opt %s -pipe-verify-sync -verify-diagnostics -split-input-file

// The two ends of a channel take the same stages: in loops that run alike, under the same condition.

// (C133) The consumer's loop runs another number of times than the producer's.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %ab = pipe.channel from tma to tensor : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %kb = arith.muli %k, %c4 : i32
      // expected-note @+1 {{the stage is filled here}}
      %s = pipe.producer_acquire %ab : !tiles
      pipe.load %sf[%c0, %kb] into %s signals %ab : !sf, !scales, !tiles
      pipe.producer_commit %ab : !tiles
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c0 to %m step %c1 : i32 {
      // expected-error @+1 {{must be in the same loops as the producer_acquire of its channel, so that as many stages are consumed as are produced}}
      %s = pipe.consumer_wait %ab : !tiles
      %t = pipe.copy_scales %s : !scales -> !tscales
      pipe.consumer_release %ab : !tiles
    }
  }
  gpu.return
}
}

// -----

// (C133) The consumer's loop begins one later.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %ab = pipe.channel from tma to tensor : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %kb = arith.muli %k, %c4 : i32
      // expected-note @+1 {{the stage is filled here}}
      %s = pipe.producer_acquire %ab : !tiles
      pipe.load %sf[%c0, %kb] into %s signals %ab : !sf, !scales, !tiles
      pipe.producer_commit %ab : !tiles
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c1 to %n step %c1 : i32 {
      // expected-error @+1 {{must be in the same loops as the producer_acquire of its channel, so that as many stages are consumed as are produced}}
      %s = pipe.consumer_wait %ab : !tiles
      %t = pipe.copy_scales %s : !scales -> !tscales
      pipe.consumer_release %ab : !tiles
    }
  }
  gpu.return
}
}

// -----

// (C133) The consumer's loop takes longer steps.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %ab = pipe.channel from tma to tensor : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %kb = arith.muli %k, %c4 : i32
      // expected-note @+1 {{the stage is filled here}}
      %s = pipe.producer_acquire %ab : !tiles
      pipe.load %sf[%c0, %kb] into %s signals %ab : !sf, !scales, !tiles
      pipe.producer_commit %ab : !tiles
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c0 to %n step %c4 : i32 {
      // expected-error @+1 {{must be in the same loops as the producer_acquire of its channel, so that as many stages are consumed as are produced}}
      %s = pipe.consumer_wait %ab : !tiles
      %t = pipe.copy_scales %s : !scales -> !tscales
      pipe.consumer_release %ab : !tiles
    }
  }
  gpu.return
}
}

// -----

// One condition on both sides is right.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %p: i1, %q: i1) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %ab = pipe.channel from tma to tensor : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %kb = arith.muli %k, %c4 : i32
      scf.if %p {
        %s = pipe.producer_acquire %ab : !tiles
        pipe.load %sf[%c0, %kb] into %s signals %ab : !sf, !scales, !tiles
        pipe.producer_commit %ab : !tiles
      }
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      scf.if %p {
        %s = pipe.consumer_wait %ab : !tiles
        %t = pipe.copy_scales %s : !scales -> !tscales
        pipe.consumer_release %ab : !tiles
      }
    }
  }
  gpu.return
}
}

// -----

// (C133) The consumer asks for another condition than the producer.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %p: i1, %q: i1) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %ab = pipe.channel from tma to tensor : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %kb = arith.muli %k, %c4 : i32
      scf.if %p {
        // expected-note @+1 {{the stage is filled here}}
        %s = pipe.producer_acquire %ab : !tiles
        pipe.load %sf[%c0, %kb] into %s signals %ab : !sf, !scales, !tiles
        pipe.producer_commit %ab : !tiles
      }
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      scf.if %q {
        // expected-error @+1 {{must be in the same loops as the producer_acquire of its channel, so that as many stages are consumed as are produced}}
        %s = pipe.consumer_wait %ab : !tiles
        %t = pipe.copy_scales %s : !scales -> !tscales
        pipe.consumer_release %ab : !tiles
      }
    }
  }
  gpu.return
}
}
