// Kernels of a phase that is too early or too late. Every error names the pass that is missing; every op of both
// dialects is tried by fp4-fuzz-mlir --phases (test/scripts/fuzz.sh).
// RUN: split-file %s %t
// RUN: fp4-opt %t/early.mlir -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))'
// RUN: fp4-opt %t/pipeline.mlir -split-input-file -verify-diagnostics -fp4-set-target -pipe-pipeline
// RUN: fp4-opt %t/right.mlir --pass-pipeline='builtin.module(fp4-set-target,pipe-specialize-warps,pipe-pipeline,pipe-verify-sync,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s
// CHECK: llvm.func @kernel

//--- early.mlir
gpu.module @m {
  gpu.func @fragment() kernel {
    // expected-error @+2 {{'pipe.accumulator' op must be in the region of a role}}
    // expected-note @+1 {{run pipe-specialize-warps on the sequential form}}
    %f = pipe.accumulator : !pipe.fragment<64x64xf32, wgmma>
    gpu.return
  }
}

// -----

// A plan is not enough.
gpu.module @m {
  gpu.func @planned() kernel attributes {pipe.role_plan = #pipe.role_plan<all warps 0 to 4 drives [threads, tensor]>} {
    // expected-error @+2 {{must be in the region of a role}}
    // expected-note @+1 {{run pipe-specialize-warps on the sequential form}}
    %f = pipe.accumulator : !pipe.fragment<64x64xf32, wgmma>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @channel() kernel {
    // expected-error @+2 {{must be in a kernel with roles}}
    // expected-note @+1 {{run pipe-specialize-warps on the sequential form}}
    %tiles = pipe.channel from tma to tensor depth 2 payload [0] barriers 32768 : !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @specialized() kernel {
    // expected-error @+2 {{expects the pipelined form}}
    // expected-note @+1 {{run pipe-pipeline first}}
    %tiles = pipe.channel from tma to tensor : !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>>
    pipe.role load warps 0 to 1 drives [tma] {
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  llvm.func @lowered() {
    // expected-error @+2 {{must be in a gpu.func}}
    // expected-note @+1 {{convert-pipe-to-nvvm has lowered this function already}}
    %f = pipe.accumulator : !pipe.fragment<64x64xf32, wgmma>
    llvm.return
  }
}

// -----

gpu.module @m {
  gpu.func @tensors(%x: tensor<16x64xbf16>) kernel {
    // expected-error @+2 {{must be lowered to a kernel of its own first}}
    // expected-note @+1 {{run fp4-plan-kernels, convert-fp4-to-gpu and convert-fp4-to-pipe}}
    %a = fp4.amax %x : tensor<16x64xbf16> -> tensor<f32>
    gpu.return
  }
}

// -----

// A pair of CTAs needs a cluster; test/Conversion/PipeToNVVM/clusters.mlir has kernels with one.
gpu.module @m {
  gpu.func @alone() kernel attributes {pipe.tmem_columns = 128 : i64, pipe.tmem_slot = 65536 : i64} {
    // expected-error @+2 {{'pipe.channel' op must be in a kernel of clusters}}
    // expected-note @+1 {{write known_cluster_size = array<i32: 2, 1, 1> at the gpu.func}}
    %ab = pipe.channel from tma to tensor scope cluster depth 2 payload [0] barriers 4096 : !pipe.channel<!pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
    pipe.role load warps 5 to 6 drives [tma] {
    }
    gpu.return
  }
}

//--- pipeline.mlir
gpu.module @m {
  gpu.func @sequential() kernel attributes {pipe.role_plan = #pipe.role_plan<all warps 0 to 4 drives [threads, tensor]>} {
    // expected-error @+2 {{must be in the region of a role}}
    // expected-note @+1 {{run pipe-specialize-warps on the sequential form}}
    %f = pipe.accumulator : !pipe.fragment<64x64xf32, wgmma>
    gpu.return
  }
}

//--- right.mlir
gpu.module @m {
  gpu.func @kernel(%y: !pipe.global<64x64xbf16>) kernel
      attributes {pipe.role_plan = #pipe.role_plan<all warps 0 to 4 drives [threads, tensor]>} {
    %f = pipe.accumulator : !pipe.fragment<64x64xf32, wgmma>
    gpu.return
  }
}
