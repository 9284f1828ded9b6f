// ptxas assembles the kernel and its report is in the kernel table: no spills, no stack.
// REQUIRES: ptxas
// RUN: rm -rf %t && fp4-opt %s -fp4-set-target "--fp4-emit-kernels=emit=cubin dump-dir=%t" | FileCheck %s
// RUN: FileCheck %s --check-prefix=PTX < %t/scale_kernels.ptx
// RUN: llvm-readelf -h %t/scale_kernels.cubin | FileCheck %s --check-prefix=ELF

// CHECK: gpu.binary @scale_kernels
// CHECK-SAME: assembly = "
// CHECK-SAME: #gpu.object<#nvvm.target<O = 3, chip = "sm_100a", features = "+ptx88">
// CHECK-SAME: barriers = 0 : i64
// CHECK-SAME: registers = {{[0-9]+}} : i64
// CHECK-SAME: shared_bytes = 0 : i64
// CHECK-SAME: spill_bytes = 0 : i64
// CHECK-SAME: stack_bytes = 0 : i64
// CHECK-SAME: bin = "\7FELF

// PTX: .visible .entry scale(
// ELF: NVIDIA CUDA
gpu.module @scale_kernels {
  llvm.func @scale(%data: !llvm.ptr<1>, %factor: f32)
      attributes {nvvm.kernel, nvvm.reqntid = array<i32: 256, 1, 1>} {
    %i = nvvm.read.ptx.sreg.tid.x : i32
    %p = llvm.getelementptr %data[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v = llvm.load %p : !llvm.ptr<1> -> f32
    %w = llvm.fmul %v, %factor : f32
    llvm.store %w, %p : f32, !llvm.ptr<1>
    llvm.return
  }
}
