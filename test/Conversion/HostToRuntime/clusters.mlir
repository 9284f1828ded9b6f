// RUN: fp4-opt %s --convert-host-to-runtime --canonicalize | FileCheck %s

// The kernel table says the sizes of the clusters of a kernel that has two; a launch passes them, and whether it has PDL
// with the one before it. A launch may have a cluster of a size that only the host knows, and prefers none then.

module attributes {gpu.container_module} {
gpu.binary @m [#gpu.object<#nvvm.target<chip = "sm_100a">,
  properties = {target = "sm_100a"},
  kernels = <[#gpu.kernel_metadata<"k", !llvm.func<void (i32)>,
    metadata = {clusters = array<i32: 2, 1, 4, 8>, dynamic_shared_bytes = 2048 : i64}>,
    #gpu.kernel_metadata<"any", !llvm.func<void (i32)>>]>, assembly = ".version 8.8">]

// CHECK-LABEL: llvm.func internal @f
func.func @f() {
  %m = arith.constant 300 : i32
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c192 = arith.constant 192 : index
  // CHECK-DAG: %[[ZERO:.*]] = llvm.mlir.constant(0 : i32)
  // CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
  // CHECK-DAG: %[[TWO:.*]] = llvm.mlir.constant(2 : i32)
  // CHECK-DAG: %[[FOUR:.*]] = llvm.mlir.constant(4 : i32)
  // CHECK-DAG: %[[EIGHT:.*]] = llvm.mlir.constant(8 : i32)
  // CHECK: llvm.call @fp4rt_launch_clusters({{.*}}, %[[ONE]], %[[ZERO]], %[[TWO]], %[[ONE]], %[[FOUR]], %[[EIGHT]])
  gpu.launch_func @m::@k blocks in (%c8, %c8, %c1) threads in (%c192, %c1, %c1) args(%m : i32)
  // CHECK: llvm.call @fp4rt_launch_clusters({{.*}}, %[[ONE]], %[[ONE]], %[[TWO]], %[[ONE]], %[[FOUR]], %[[EIGHT]])
  gpu.launch_func @m::@k blocks in (%c8, %c8, %c1) threads in (%c192, %c1, %c1) args(%m : i32) {fp4.dependent}
  return
}

// CHECK-LABEL: llvm.func internal @any
func.func @any(%x: memref<?xi8, 1>) {
  %m = arith.constant 300 : i32
  %c1 = arith.constant 1 : index
  %c192 = arith.constant 192 : index
  %c0 = arith.constant 0 : index
  %ctas = memref.dim %x, %c0 : memref<?xi8, 1>
  // CHECK: %[[ZERO:.*]] = llvm.mlir.constant(0 : i32)
  // CHECK: llvm.store %{{.*}} : !llvm.ptr, !llvm.ptr
  // CHECK-NEXT: %[[CTAS:.*]] = llvm.trunc %arg3 : i64 to i32
  // CHECK-NEXT: %[[Y:.*]] = llvm.trunc
  // CHECK-NEXT: llvm.call @fp4rt_launch_clusters({{.*}}, %[[ZERO]], %[[CTAS]], %[[Y]], %[[ZERO]], %[[ZERO]])
  gpu.launch_func @m::@any clusters in (%ctas, %c1, %c1) blocks in (%ctas, %c1, %c1) threads in (%c192, %c1, %c1) args(%m : i32)
  return
}
}
