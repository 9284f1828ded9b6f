// RUN: fp4-opt %s -verify-diagnostics -fp4-set-target -pipe-place-scalars

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
