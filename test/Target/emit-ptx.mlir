// A streaming kernel becomes a gpu.binary whose object is PTX and whose kernel table says what a
// launch must know. The kernel keeps its name, its parameter count and its launch bounds.
// RUN: fp4-opt %s -fp4-set-target --fp4-emit-kernels | FileCheck %s
// RUN: fp4-opt %s -fp4-set-target=target=sm_90a --fp4-emit-kernels | FileCheck %s --check-prefix=SM90

// CHECK: gpu.binary @scale_kernels [#gpu.object<#nvvm.target<O = 3, chip = "sm_100a", features = "+ptx88">,
// CHECK-SAME: properties = {ptx_version = "8.8", target = "sm_100a"},
// CHECK-SAME: kernels = <[#gpu.kernel_metadata<"scale", !llvm.func<void (ptr<1>, f32)>,
// CHECK-SAME: metadata = {block_size = array<i32: 256, 1, 1>, dynamic_shared_bytes = 1024 : i64}>]>,
// CHECK-SAME: assembly = "
// CHECK-SAME: .version 8.8
// CHECK-SAME: .target sm_100a
// CHECK-SAME: .visible .entry scale(
// CHECK-SAME: .reqntid 256
// CHECK-SAME: ld.global
// CHECK-SAME: mul.rn.f32
// CHECK-NOT: gpu.module

// SM90: gpu.binary @scale_kernels [#gpu.object<#nvvm.target<O = 3, chip = "sm_90a", features = "+ptx86">,
// SM90-SAME: .version 8.6
// SM90-SAME: .target sm_90a
gpu.module @scale_kernels {
  llvm.func @scale(%data: !llvm.ptr<1>, %factor: f32)
      attributes {nvvm.kernel, nvvm.reqntid = array<i32: 256, 1, 1>, fp4.dynamic_shared_bytes = 1024 : i64} {
    %i = nvvm.read.ptx.sreg.tid.x : i32
    %p = llvm.getelementptr %data[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v = llvm.load %p : !llvm.ptr<1> -> f32
    %w = llvm.fmul %v, %factor : f32
    llvm.store %w, %p : f32, !llvm.ptr<1>
    llvm.return
  }
}
