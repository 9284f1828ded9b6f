// RUN: fp4-opt %s --convert-host-to-runtime --split-input-file --verify-diagnostics

module attributes {gpu.container_module} {
  // expected-error@+2 {{must be compiled before the host is lowered}}
  // expected-note@+1 {{run fp4-emit-kernels before convert-host-to-runtime}}
  gpu.module @m {
  }
}

// -----

// expected-error@+2 {{must hold the kernels' PTX, but got no object of format 'assembly'}}
// expected-note@+1 {{run fp4-emit-kernels before convert-host-to-runtime}}
gpu.binary @m [#gpu.object<#nvvm.target<chip = "sm_100a">, bin = "cubin">]

// -----

module attributes {gpu.container_module} {
  gpu.binary @m [#gpu.object<#nvvm.target<chip = "sm_100a">, assembly = ".version 8.8">]
  func.func @f() {
    %c1 = arith.constant 1 : index
    // expected-error@+1 {{failed to legalize operation 'gpu.launch_func'}}
    gpu.launch_func @m::@unknown blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
}

// -----

// Clusters lie in planes.
module attributes {gpu.container_module} {
  gpu.binary @m [#gpu.object<#nvvm.target<chip = "sm_100a">, properties = {target = "sm_100a"},
    kernels = <[#gpu.kernel_metadata<"k", !llvm.func<void ()>>]>, assembly = ".version 8.8">]
  func.func @f() {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    // expected-error@+1 {{failed to legalize operation 'gpu.launch_func'}}
    gpu.launch_func @m::@k clusters in (%c1, %c1, %c2) blocks in (%c1, %c1, %c2) threads in (%c1, %c1, %c1)
    return
  }
}
