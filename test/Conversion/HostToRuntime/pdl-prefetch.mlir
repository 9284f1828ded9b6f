// A kernel that waits for the one before it may ask the L2 cache for memory meanwhile. A kernel that does not wait asks for none.
// RUN: fp4-opt %s -fp4-pdl-launches=all=false | FileCheck %s --check-prefixes=CHECK,CHOSEN
// RUN: fp4-opt %s -fp4-pdl-launches | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: fp4-opt %s -fp4-pdl-launches="all=false chosen=false" | FileCheck %s --check-prefix=NONE

// NONE-NOT: {{griddepcontrol|prefetch|fp4.dependent}}
module attributes {gpu.container_module} {
// CHECK-LABEL: gpu.module @waiting
// CHECK: nvvm.cp.async.bulk.prefetch
// CHECK: nvvm.barrier
// CHECK: nvvm.griddepcontrol wait
gpu.module @waiting {
  llvm.func @kernel(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %bytes = llvm.mlir.constant(64 : i32) : i32
    nvvm.cp.async.bulk.prefetch %x, %bytes : !llvm.ptr<1>
    nvvm.barrier
    llvm.return
  }
}
// CHECK-LABEL: gpu.module @alone
// CHOSEN-NOT: {{prefetch|griddepcontrol}}
// ALL: nvvm.cp.async.bulk.prefetch
// ALL: nvvm.griddepcontrol wait
// CHECK-LABEL: gpu.module @leading
gpu.module @alone {
  llvm.func @kernel(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %bytes = llvm.mlir.constant(64 : i32) : i32
    nvvm.cp.async.bulk.prefetch %x, %bytes : !llvm.ptr<1>
    nvvm.barrier
    llvm.return
  }
}
// A kernel that only lets the next one begin early does not wait.
// CHOSEN: nvvm.griddepcontrol launch_dependents
// CHOSEN-NOT: prefetch
// ALL: nvvm.cp.async.bulk.prefetch
// CHECK-LABEL: gpu.module @following
gpu.module @leading {
  llvm.func @kernel(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %bytes = llvm.mlir.constant(64 : i32) : i32
    nvvm.barrier
    nvvm.cp.async.bulk.prefetch %x, %bytes : !llvm.ptr<1>
    llvm.return
  }
}
// CHECK: nvvm.griddepcontrol wait
// CHECK: nvvm.cp.async.bulk.prefetch
gpu.module @following {
  llvm.func @kernel(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %bytes = llvm.mlir.constant(64 : i32) : i32
    nvvm.barrier
    nvvm.cp.async.bulk.prefetch %x, %bytes : !llvm.ptr<1>
    llvm.return
  }
}
func.func @launches(%x: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  %p = pipe.view %x : memref<64xf32> -> !pipe.global<64xf32>
  gpu.launch_func @waiting::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>) {fp4.pdl = #fp4.launch_dependents<at_end>}
  gpu.launch_func @alone::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>)
  gpu.launch_func @leading::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>) {fp4.leads}
  gpu.launch_func @following::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>) {fp4.follows}
  return
}
}
