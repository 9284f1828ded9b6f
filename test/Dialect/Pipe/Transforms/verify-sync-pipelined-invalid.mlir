// RUN: fp4-opt %s -pipe-verify-sync -verify-diagnostics -split-input-file

// Pipelined kernels: iteration counters and announced bytes. The first is correct; each of the others
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
  %bytes = arith.constant 2048 : i32
  %ab = pipe.channel from tma to tensor depth 4 payload [0] barriers 8192 : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    %r = scf.for %tile = %c0 to %m step %c1 iter_args(%it0 = %c0) -> (i32) : i32 {
      %q = scf.for %k = %c0 to %n step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %kb = arith.muli %k, %c4 : i32
        %s = pipe.producer_acquire %ab[%it] : !tiles
        pipe.expect_tx %ab[%it], %bytes : !tiles
        pipe.load %sf[%c0, %kb] into %s signals %ab[%it] : !sf, !scales, !tiles
        pipe.producer_commit %ab[%it] : !tiles
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      scf.yield %q : i32
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %r = scf.for %tile = %c0 to %m step %c1 iter_args(%it0 = %c0) -> (i32) : i32 {
      %q = scf.for %k = %c0 to %n step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %s = pipe.consumer_wait %ab[%it] : !tiles
        %t = pipe.copy_scales %s at 0 sets 4 : !scales -> !tscales
        pipe.consumer_release %ab[%it] : !tiles
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      scf.yield %q : i32
    }
  }
  gpu.return
}
}

// -----

// (C134) A constant iteration: every stage would be the first, and its phase never flips.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %bytes = arith.constant 2048 : i32
  %ab = pipe.channel from tma to tensor depth 4 payload [0] barriers 8192 : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    %r = scf.for %tile = %c0 to %m step %c1 iter_args(%it0 = %c0) -> (i32) : i32 {
      %q = scf.for %k = %c0 to %n step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %kb = arith.muli %k, %c4 : i32
        %s = pipe.producer_acquire %ab[%it] : !tiles
        pipe.expect_tx %ab[%it], %bytes : !tiles
        pipe.load %sf[%c0, %kb] into %s signals %ab[%it] : !sf, !scales, !tiles
        pipe.producer_commit %ab[%it] : !tiles
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      scf.yield %q : i32
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %r = scf.for %tile = %c0 to %m step %c1 iter_args(%it0 = %c0) -> (i32) : i32 {
      %q = scf.for %k = %c0 to %n step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        // expected-error @+2 {{iteration must not be the constant 0 in a loop}}
        // expected-note @+1 {{carry a counter through the loops that starts at 0 and advances by 1 with every stage}}
        %s = pipe.consumer_wait %ab[%c0] : !tiles
        %t = pipe.copy_scales %s at 0 sets 4 : !scales -> !tscales
        pipe.consumer_release %ab[%it] : !tiles
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      scf.yield %q : i32
    }
  }
  gpu.return
}
}

// -----

// (C134) The counter of the outer loop does not advance with the k tiles.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %bytes = arith.constant 2048 : i32
  %ab = pipe.channel from tma to tensor depth 4 payload [0] barriers 8192 : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    %r = scf.for %tile = %c0 to %m step %c1 iter_args(%it0 = %c0) -> (i32) : i32 {
      %q = scf.for %k = %c0 to %n step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %kb = arith.muli %k, %c4 : i32
        %s = pipe.producer_acquire %ab[%it] : !tiles
        pipe.expect_tx %ab[%it], %bytes : !tiles
        pipe.load %sf[%c0, %kb] into %s signals %ab[%it] : !sf, !scales, !tiles
        pipe.producer_commit %ab[%it] : !tiles
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      scf.yield %q : i32
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %r = scf.for %tile = %c0 to %m step %c1 iter_args(%it0 = %c0) -> (i32) : i32 {
      %q = scf.for %k = %c0 to %n step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        // expected-error @+2 {{iteration must vary with the loop around it}}
        // expected-note @+1 {{carry a counter}}
        %s = pipe.consumer_wait %ab[%it0] : !tiles
        %t = pipe.copy_scales %s at 0 sets 4 : !scales -> !tscales
        pipe.consumer_release %ab[%it] : !tiles
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      scf.yield %q : i32
    }
  }
  gpu.return
}
}

// -----

// (C134) The counter starts again with every output tile: the classic hang of persistent kernels.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %bytes = arith.constant 2048 : i32
  %ab = pipe.channel from tma to tensor depth 4 payload [0] barriers 8192 : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    %r = scf.for %tile = %c0 to %m step %c1 iter_args(%it0 = %c0) -> (i32) : i32 {
      %q = scf.for %k = %c0 to %n step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %kb = arith.muli %k, %c4 : i32
        %s = pipe.producer_acquire %ab[%it] : !tiles
        pipe.expect_tx %ab[%it], %bytes : !tiles
        pipe.load %sf[%c0, %kb] into %s signals %ab[%it] : !sf, !scales, !tiles
        pipe.producer_commit %ab[%it] : !tiles
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      scf.yield %q : i32
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %r = scf.for %tile = %c0 to %m step %c1 iter_args(%it0 = %c0) -> (i32) : i32 {
      %q = scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        // expected-error @+2 {{iteration must be the number of stages that this role has handed over}}
        // expected-note @+1 {{carry a counter}}
        %s = pipe.consumer_wait %ab[%it] : !tiles
        %t = pipe.copy_scales %s at 0 sets 4 : !scales -> !tscales
        pipe.consumer_release %ab[%it] : !tiles
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      scf.yield %q : i32
    }
  }
  gpu.return
}
}

// -----

// (C134) The release names the next stage.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %bytes = arith.constant 2048 : i32
  %ab = pipe.channel from tma to tensor depth 4 payload [0] barriers 8192 : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    %r = scf.for %tile = %c0 to %m step %c1 iter_args(%it0 = %c0) -> (i32) : i32 {
      %q = scf.for %k = %c0 to %n step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %kb = arith.muli %k, %c4 : i32
        %s = pipe.producer_acquire %ab[%it] : !tiles
        pipe.expect_tx %ab[%it], %bytes : !tiles
        pipe.load %sf[%c0, %kb] into %s signals %ab[%it] : !sf, !scales, !tiles
        pipe.producer_commit %ab[%it] : !tiles
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      scf.yield %q : i32
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %r = scf.for %tile = %c0 to %m step %c1 iter_args(%it0 = %c0) -> (i32) : i32 {
      %q = scf.for %k = %c0 to %n step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %s = pipe.consumer_wait %ab[%it] : !tiles
        %t = pipe.copy_scales %s at 0 sets 4 : !scales -> !tscales
        %next = arith.addi %it, %c1 : i32
        // expected-error @+2 {{iteration must be the number of stages that this role has handed over}}
        // expected-note @+1 {{carry a counter}}
        pipe.consumer_release %ab[%next] : !tiles
        scf.yield %next : i32
      }
      scf.yield %q : i32
    }
  }
  gpu.return
}
}

// -----

// (C134) The counter skips stages.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %bytes = arith.constant 2048 : i32
  // expected-note @+1 {{iterations of this channel would repeat}}
  %ab = pipe.channel from tma to tensor depth 4 payload [0] barriers 8192 : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    %r = scf.for %tile = %c0 to %m step %c1 iter_args(%it0 = %c0) -> (i32) : i32 {
      // expected-error @+1 {{must yield the advanced counter of a channel}}
      %q = scf.for %k = %c0 to %n step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %kb = arith.muli %k, %c4 : i32
        %s = pipe.producer_acquire %ab[%it] : !tiles
        pipe.expect_tx %ab[%it], %bytes : !tiles
        pipe.load %sf[%c0, %kb] into %s signals %ab[%it] : !sf, !scales, !tiles
        pipe.producer_commit %ab[%it] : !tiles
        %next = arith.addi %it, %c4 : i32
        scf.yield %next : i32
      }
      scf.yield %q : i32
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %r = scf.for %tile = %c0 to %m step %c1 iter_args(%it0 = %c0) -> (i32) : i32 {
      %q = scf.for %k = %c0 to %n step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %s = pipe.consumer_wait %ab[%it] : !tiles
        %t = pipe.copy_scales %s at 0 sets 4 : !scales -> !tscales
        pipe.consumer_release %ab[%it] : !tiles
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      scf.yield %q : i32
    }
  }
  gpu.return
}
}

// -----

// (C135) 2 KB arrive, 4 KB are announced.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %bytes = arith.constant 4096 : i32
  %ab = pipe.channel from tma to tensor depth 4 payload [0] barriers 8192 : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    %r = scf.for %tile = %c0 to %m step %c1 iter_args(%it0 = %c0) -> (i32) : i32 {
      %q = scf.for %k = %c0 to %n step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %kb = arith.muli %k, %c4 : i32
        %s = pipe.producer_acquire %ab[%it] : !tiles
        // expected-error @+2 {{must announce the 2048 bytes that the loads of the stage complete, but got 4096}}
        // expected-note @+1 {{the consumer would wait forever}}
        pipe.expect_tx %ab[%it], %bytes : !tiles
        pipe.load %sf[%c0, %kb] into %s signals %ab[%it] : !sf, !scales, !tiles
        pipe.producer_commit %ab[%it] : !tiles
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      scf.yield %q : i32
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %r = scf.for %tile = %c0 to %m step %c1 iter_args(%it0 = %c0) -> (i32) : i32 {
      %q = scf.for %k = %c0 to %n step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %s = pipe.consumer_wait %ab[%it] : !tiles
        %t = pipe.copy_scales %s at 0 sets 4 : !scales -> !tscales
        pipe.consumer_release %ab[%it] : !tiles
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      scf.yield %q : i32
    }
  }
  gpu.return
}
}

// -----

// (C135) Nothing is announced.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %bytes = arith.constant 2048 : i32
  %ab = pipe.channel from tma to tensor depth 4 payload [0] barriers 8192 : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    %r = scf.for %tile = %c0 to %m step %c1 iter_args(%it0 = %c0) -> (i32) : i32 {
      %q = scf.for %k = %c0 to %n step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %kb = arith.muli %k, %c4 : i32
        // expected-error @+2 {{bytes of the stage must be announced}}
        // expected-note @+1 {{add pipe.expect_tx of 2048 bytes}}
        %s = pipe.producer_acquire %ab[%it] : !tiles
        pipe.load %sf[%c0, %kb] into %s signals %ab[%it] : !sf, !scales, !tiles
        pipe.producer_commit %ab[%it] : !tiles
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      scf.yield %q : i32
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %r = scf.for %tile = %c0 to %m step %c1 iter_args(%it0 = %c0) -> (i32) : i32 {
      %q = scf.for %k = %c0 to %n step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %s = pipe.consumer_wait %ab[%it] : !tiles
        %t = pipe.copy_scales %s at 0 sets 4 : !scales -> !tscales
        pipe.consumer_release %ab[%it] : !tiles
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      scf.yield %q : i32
    }
  }
  gpu.return
}
}

// -----

// (C135) Announced after a load: the barrier could complete in between.
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
!sf = !pipe.global<128x64xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
gpu.func @kernel(%sf: !sf, %n: i32, %m: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %bytes = arith.constant 2048 : i32
  %ab = pipe.channel from tma to tensor depth 4 payload [0] barriers 8192 : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    %r = scf.for %tile = %c0 to %m step %c1 iter_args(%it0 = %c0) -> (i32) : i32 {
      %q = scf.for %k = %c0 to %n step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %kb = arith.muli %k, %c4 : i32
        %s = pipe.producer_acquire %ab[%it] : !tiles
        // expected-error @+2 {{must come after the pipe.expect_tx of its stage}}
        // expected-note @+1 {{move the load behind it, so that the barrier counts its bytes}}
        pipe.load %sf[%c0, %kb] into %s signals %ab[%it] : !sf, !scales, !tiles
        pipe.expect_tx %ab[%it], %bytes : !tiles
        pipe.producer_commit %ab[%it] : !tiles
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      scf.yield %q : i32
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %r = scf.for %tile = %c0 to %m step %c1 iter_args(%it0 = %c0) -> (i32) : i32 {
      %q = scf.for %k = %c0 to %n step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %s = pipe.consumer_wait %ab[%it] : !tiles
        %t = pipe.copy_scales %s at 0 sets 4 : !scales -> !tscales
        pipe.consumer_release %ab[%it] : !tiles
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      scf.yield %q : i32
    }
  }
  gpu.return
}
}
