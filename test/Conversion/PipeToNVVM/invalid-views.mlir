// Views of buffers of the host are no kernel code.
// RUN: fp4-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(fp4-set-target,gpu.module(convert-pipe-to-nvvm))'

gpu.module @m {
gpu.func @host(%p: memref<8x64xbf16>, %rows: index) kernel {
  pipe.role work warps 0 to 4 drives [threads] {
    // expected-error @below {{failed to legalize operation 'pipe.view'}}
    %v = "pipe.view"(%p, %rows) <{offset = 512 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>}> : (memref<8x64xbf16>, index) -> memref<?x64xbf16>
  }
  gpu.return
}
}
