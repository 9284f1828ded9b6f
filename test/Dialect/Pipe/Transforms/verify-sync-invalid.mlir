// RUN: fp4-opt %s -pipe-verify-sync -verify-diagnostics -split-input-file

// Specialized kernels: who fills, hands over and empties a stage. The first is correct; each of the others
// differs from it in the place marked.

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
      %s = pipe.producer_acquire %ab : !tiles
      pipe.load %sf[%c0, %kb] into %s signals %ab : !sf, !scales, !tiles
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
  gpu.return
}
}

// -----

// (C131) The consumer never releases: the producer would hang when the ring is full.
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
      %s = pipe.producer_acquire %ab : !tiles
      pipe.load %sf[%c0, %kb] into %s signals %ab : !sf, !scales, !tiles
      pipe.producer_commit %ab : !tiles
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      // expected-error @+2 {{stage must be handed over in this block}}
      // expected-note @+1 {{add pipe.consumer_release behind the last use of its tiles}}
      %s = pipe.consumer_wait %ab : !tiles
      %t = pipe.copy_scales %s : !scales -> !tscales
    }
  }
  gpu.return
}
}

// -----

// (C131) The release is in a branch: not every path has it.
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
      %s = pipe.producer_acquire %ab : !tiles
      pipe.load %sf[%c0, %kb] into %s signals %ab : !sf, !scales, !tiles
      pipe.producer_commit %ab : !tiles
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %odd = arith.cmpi eq, %k, %c1 : i32
      // expected-note @+1 {{the stage is taken here}}
      %s = pipe.consumer_wait %ab : !tiles
      %t = pipe.copy_scales %s : !scales -> !tscales
      scf.if %odd {
        // expected-error @+1 {{must be in the block that took the stage, so that every path hands it over once}}
        pipe.consumer_release %ab : !tiles
      }
    }
  }
  gpu.return
}
}

// -----

// (C131) Released before the copy reads it: tma may overwrite the tile.
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
      %s = pipe.producer_acquire %ab : !tiles
      pipe.load %sf[%c0, %kb] into %s signals %ab : !sf, !scales, !tiles
      pipe.producer_commit %ab : !tiles
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %s = pipe.consumer_wait %ab : !tiles
      // expected-note @+1 {{handed over here; move this behind the last use}}
      pipe.consumer_release %ab : !tiles
      // expected-error @+1 {{uses a tile after it was handed over}}
      %t = pipe.copy_scales %s : !scales -> !tscales
    }
  }
  gpu.return
}
}

// -----

// (C131) Released twice: the producer gets a stage that is still to be read.
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
      %s = pipe.producer_acquire %ab : !tiles
      pipe.load %sf[%c0, %kb] into %s signals %ab : !sf, !scales, !tiles
      pipe.producer_commit %ab : !tiles
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %s = pipe.consumer_wait %ab : !tiles
      %t = pipe.copy_scales %s : !scales -> !tscales
      pipe.consumer_release %ab : !tiles
      // expected-error @+2 {{hands over a stage that is not held}}
      // expected-note @+1 {{take it in the same block before, with pipe.consumer_wait}}
      pipe.consumer_release %ab : !tiles
    }
  }
  gpu.return
}
}

// -----

// (C131) Acquired twice: a ring of one stage would never empty.
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
      // expected-note @+1 {{taken here; hand it over with pipe.producer_commit first}}
      %s = pipe.producer_acquire %ab : !tiles
      pipe.load %sf[%c0, %kb] into %s signals %ab : !sf, !scales, !tiles
      // expected-error @+1 {{takes a stage while one of the channel is held}}
      %again = pipe.producer_acquire %ab : !tiles
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
  gpu.return
}
}

// -----

// (C131) A load that fills no stage.
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
      // expected-error @+2 {{must fill a tile of a stage that is held}}
      // expected-note @+1 {{acquire the stage before, and use its tile as destination}}
      %s = pipe.load %sf[%c0, %kb] : !sf -> !scales
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %s = pipe.consumer_wait %ab : !tiles
      %t = pipe.copy_scales %s : !scales -> !tscales
      pipe.consumer_release %ab : !tiles
    }
  }
  gpu.return
}
}

// -----

// (C130) The tile comes from outside of the role: no channel protects it.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
// expected-note @+1 {{the tile is defined here; hand it over in a channel}}
gpu.func @kernel(%outside: !scales, %sf: !sf, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %ab = pipe.channel from tma to tensor : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %kb = arith.muli %k, %c4 : i32
      %s = pipe.producer_acquire %ab : !tiles
      pipe.load %sf[%c0, %kb] into %s signals %ab : !sf, !scales, !tiles
      pipe.producer_commit %ab : !tiles
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %s = pipe.consumer_wait %ab : !tiles
      // expected-error @+1 {{tile '!pipe.shared<128x16xf8E4M3FN, tiled_128x4>' must come from an acquire or wait of this role}}
      %t = pipe.copy_scales %outside : !scales -> !tscales
      pipe.consumer_release %ab : !tiles
    }
  }
  gpu.return
}
}

// -----

// (C132) Nobody consumes.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  // expected-error @+2 {{channel must have a consumer role}}
  // expected-note @+1 {{the other end waits for it forever}}
  %ab = pipe.channel from tma to tensor : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %kb = arith.muli %k, %c4 : i32
      %s = pipe.producer_acquire %ab : !tiles
      pipe.load %sf[%c0, %kb] into %s signals %ab : !sf, !scales, !tiles
      pipe.producer_commit %ab : !tiles
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c0 to %n step %c1 : i32 {
    }
  }
  gpu.return
}
}

// -----

// (C132) The mma warp releases with one commit, not with the arrivals of 128 threads.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  // expected-error @+1 {{consumer must be tensor with 1 arrivals, but got threads with 128}}
  %ab = pipe.channel from tma to threads(128) : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %kb = arith.muli %k, %c4 : i32
      %s = pipe.producer_acquire %ab : !tiles
      pipe.load %sf[%c0, %kb] into %s signals %ab : !sf, !scales, !tiles
      pipe.producer_commit %ab : !tiles
    }
  }
  // expected-note @+1 {{the consumer is role mma}}
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %s = pipe.consumer_wait %ab : !tiles
      %t = pipe.copy_scales %s : !scales -> !tscales
      pipe.consumer_release %ab : !tiles
    }
  }
  gpu.return
}
}

// -----

// (C132) All 128 threads of an epilogue release a stage. The twin counts them, the next half of them.
!accs = !pipe.channel<!pipe.tmem<128x64xf32>>
gpu.module @kernels {
gpu.func @kernel() kernel {
  %accs = pipe.channel from tensor to threads(128) : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %a = pipe.producer_acquire %accs : !accs
    pipe.producer_commit %accs : !accs
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %a = pipe.consumer_wait %accs : !accs
    pipe.consumer_release %accs : !accs
  }
  gpu.return
}
}

// -----

// (C132)
!accs = !pipe.channel<!pipe.tmem<128x64xf32>>
gpu.module @kernels {
gpu.func @kernel() kernel {
  // expected-error @+1 {{consumer must be threads with 128 arrivals, but got threads with 64}}
  %accs = pipe.channel from tensor to threads(64) : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %a = pipe.producer_acquire %accs : !accs
    pipe.producer_commit %accs : !accs
  }
  // expected-note @+1 {{the consumer is role epilogue}}
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %a = pipe.consumer_wait %accs : !accs
    pipe.consumer_release %accs : !accs
  }
  gpu.return
}
}

// -----

// A matrix that threads make is handed over like a tile that tma loads.
!h = !pipe.shared<16x16xbf16, swizzle_32B>
!matrix = !pipe.channel<!h>
gpu.module @kernels {
gpu.func @kernel() kernel {
  %hs = pipe.channel from threads(128) to tensor : !matrix
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %h = pipe.consumer_wait %hs : !matrix
    pipe.consumer_release %hs : !matrix
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %slot = pipe.producer_acquire %hs : !matrix
    pipe.hadamard_matrix signs 0 into %slot : !h
    pipe.producer_commit %hs : !matrix
  }
  gpu.return
}
}

// -----

// (C132) Two roles empty one ring.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf) kernel {
  %c0 = arith.constant 0 : i32
  %ab = pipe.channel from tma to tensor : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    %s = pipe.producer_acquire %ab : !tiles
    pipe.load %sf[%c0, %c0] into %s signals %ab : !sf, !scales, !tiles
    pipe.producer_commit %ab : !tiles
  }
  // expected-note @+1 {{the first is here; give each its own channel}}
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %s = pipe.consumer_wait %ab : !tiles
    %t = pipe.copy_scales %s : !scales -> !tscales
    pipe.consumer_release %ab : !tiles
  }
  pipe.role other warps 6 to 7 drives [tensor, scale_copy] {
    // expected-error @+1 {{channel has a second role at this end, other}}
    %s = pipe.consumer_wait %ab : !tiles
    %t = pipe.copy_scales %s : !scales -> !tscales
    pipe.consumer_release %ab : !tiles
  }
  gpu.return
}
}

// -----

// (C132) One role fills and empties it: it would wait for itself.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf) kernel {
  %c0 = arith.constant 0 : i32
  // expected-error @+2 {{ends must be different roles, but both are all}}
  // expected-note @+1 {{a role keeps its tiles without a channel: move one end to another role, or remove the channel}}
  %ab = pipe.channel from tma to tensor : !tiles
  pipe.role all warps 5 to 6 drives [tma, tensor, scale_copy] {
    %s = pipe.producer_acquire %ab : !tiles
    pipe.load %sf[%c0, %c0] into %s signals %ab : !sf, !scales, !tiles
    pipe.producer_commit %ab : !tiles
    %r = pipe.consumer_wait %ab : !tiles
    %t = pipe.copy_scales %r : !scales -> !tscales
    pipe.consumer_release %ab : !tiles
  }
  gpu.return
}
}

// -----

// (C131) Filled after it was handed over.
!h = !pipe.shared<16x16xbf16, swizzle_32B>
!matrix = !pipe.channel<!h>
gpu.module @kernels {
gpu.func @kernel() kernel {
  %hs = pipe.channel from threads(128) to tensor : !matrix
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %h = pipe.consumer_wait %hs : !matrix
    pipe.consumer_release %hs : !matrix
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %slot = pipe.producer_acquire %hs : !matrix
    // expected-note @+1 {{handed over here; move this behind the last use}}
    pipe.producer_commit %hs : !matrix
    // expected-error @+1 {{uses a tile after it was handed over}}
    pipe.hadamard_matrix signs 0 into %slot : !h
  }
  gpu.return
}
}

// -----

// (C131) Filled by its consumer.
!h = !pipe.shared<16x16xbf16, swizzle_32B>
!matrix = !pipe.channel<!h>
gpu.module @kernels {
gpu.func @kernel() kernel {
  %hs = pipe.channel from threads(128) to threads(128) : !matrix
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %h = pipe.consumer_wait %hs : !matrix
    // expected-error @+2 {{must fill a tile of a stage that is held}}
    // expected-note @+1 {{acquire the stage before, and use its tile as destination}}
    pipe.hadamard_matrix signs 0 into %h : !h
    pipe.consumer_release %hs : !matrix
  }
  gpu.return
}
}
