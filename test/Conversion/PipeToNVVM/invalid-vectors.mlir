// Tiles in registers that no vector of a thread stands for.
// RUN: fp4-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))'

!tile = tensor<128x8xf32, #pipe.distribution<lanes>>
!part = tensor<128x4xf32, #pipe.distribution<lanes>>
gpu.module @m {
gpu.func @slice(%p: !pipe.global<1024x32xf32>, %y: !pipe.global<1024x32xf32>) kernel {
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %c0 = arith.constant 0 : i32
    %v = pipe.fetch %p[%c0, %c0] written : !pipe.global<1024x32xf32> -> !tile
    // expected-error @+2 {{must be elementwise to take or give a tile in registers}}
    // expected-note @+1 {{take the elements of a thread with pipe.elements}}
    %s = tensor.extract_slice %v[0, 0] [128, 4] [1, 1] : !tile to !part
    pipe.store %s, %y[%c0, %c0] : !part, !pipe.global<1024x32xf32>
  }
  gpu.return
}
}

// -----

!tile = tensor<16x8xf32, #pipe.distribution<mma_sync>>
gpu.module @m {
gpu.func @constant(%y: !pipe.global<1024x32xf32>) kernel {
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %c0 = arith.constant 0 : i32
    // expected-error @+2 {{of a tile in registers must have one number for all elements}}
    // expected-note @+1 {{write dense<NUMBER>, or load numbers with pipe.fetch}}
    %v = arith.constant dense<[[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]]> : !tile
    pipe.store %v, %y[%c0, %c0] : !tile, !pipe.global<1024x32xf32>
  }
  gpu.return
}
}
