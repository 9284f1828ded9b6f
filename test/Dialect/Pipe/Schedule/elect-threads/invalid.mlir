// RUN: fp4-opt %s -verify-diagnostics

gpu.module @kernels {
  gpu.func @kernel() kernel {
    // (C626)
    // expected-error @+2 {{role math that is whole must have one warp and issue for engines alone}}
    // expected-note @+1 {{leave 'whole' out where threads compute, or where the role stores}}
    pipe.role math warps 0 to 4 drives [threads] whole {
    }
    gpu.return
  }
}
