// RUN: fp4-opt %s -verify-diagnostics -fp4-set-target -convert-pipe-to-nvvm

// A kernel whose schedule nobody has expanded.
gpu.module @kernels {
  gpu.func @tiles(%m: i32, %n: i32) kernel {
    pipe.role all warps 0 to 4 drives [threads] {
      // expected-error @+2 {{expects the scheduled form}}
      // expected-note @+1 {{run pipe-schedule first}}
      pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.static_persistent<along_m> {
        %row = arith.muli %i, %m : i32
      }
    }
    gpu.return
  }
}
