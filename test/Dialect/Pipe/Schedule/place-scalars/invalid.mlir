// RUN: fp4-opt %s -split-input-file -verify-diagnostics -fp4-set-target -pipe-place-scalars

!channel = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>>
gpu.module @kernels {
  gpu.func @outside(%it: i32) kernel {
    %tiles = pipe.channel from tma to tensor depth 2 payload [0] barriers 32768 : !channel
    pipe.role load warps 5 to 6 drives [tma] {
    }
    // expected-error @+2 {{must be in the region of a role}}
    // expected-note @+1 {{run pipe-specialize-warps on the sequential form}}
    pipe.producer_commit %tiles[%it] : !channel
    gpu.return
  }
}

// -----
gpu.module @kernels {
  gpu.func @work(%m: i32, %n: i32) kernel {
    pipe.role math warps 0 to 4 drives [threads] registers 232 {
      // expected-error @+2 {{must be expanded before scalars are placed}}
      // expected-note @+1 {{run pipe-expand-work before pipe-place-scalars}}
      pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.static_persistent<along_m> {
      }
    }
    gpu.return
  }
}
