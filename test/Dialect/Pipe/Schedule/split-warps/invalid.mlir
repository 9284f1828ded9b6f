// RUN: fp4-opt %s -split-input-file -verify-diagnostics -pipe-verify-sync

!channel = !pipe.channel<!pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
gpu.module @kernels {
  gpu.func @kernel() kernel {
    // (C620)
    // expected-error @+2 {{with a consumer scale_copy must go from tma to tensor and scale_copy, and have empty barriers}}
    // expected-note @+1 {{scale_copy completes with tensor where one warp multiplies and copies}}
    %tiles = pipe.channel from threads(128) to [tensor, scale_copy] depth 3 payload [0] barriers 6144 : !channel
    gpu.return
  }
}

// -----
// A warp that copies, and none that takes what is copied.
!channel = !pipe.channel<!pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
gpu.module @kernels {
  gpu.func @kernel() kernel attributes {pipe.scheduled} {
    %c0 = arith.constant 0 : i32
    // expected-error @+2 {{channel must have a consumer role}}
    // expected-note @+1 {{the other end waits for it forever}}
    %tiles = pipe.channel from tma to [tensor, scale_copy] depth 3 payload [0] barriers 6144 : !channel
    pipe.role load warps 6 to 7 drives [tma] {
      %s = pipe.producer_acquire %tiles[%c0] : !channel
      pipe.producer_commit %tiles[%c0] : !channel
    }
    pipe.role mma_scales warps 5 to 6 drives [scale_copy] {
      %s = pipe.consumer_wait %tiles[%c0] : !channel
      pipe.consumer_release %tiles[%c0] : !channel
    }
    gpu.return
  }
}
