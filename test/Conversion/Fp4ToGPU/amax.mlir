// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-gpu -split-input-file | FileCheck %s
// amax: 32-byte chunks, one atomic per block, and elements behind the last chunk one by one.

// Rows of whole chunks have no tail. The kernel is told how many chunks there are.
// CHECK-LABEL: gpu.module @whole_amax_0
// CHECK:       gpu.func @kernel(%{{.*}}: !pipe.global<?x1024xbf16>, %[[OUT:.*]]: !pipe.global<f32>, %[[CHUNKS:.*]]: i32)
// CHECK-SAME:    kernel attributes {known_block_size = array<i32: 256, 1, 1>}
// CHECK:         %[[P:.*]] = pipe.global_ptr %[[OUT]]
// CHECK:         scf.for unsigned %{{.*}} = %{{.*}} to %[[CHUNKS]] step
// CHECK:           llvm.load %{{.*}} invariant {alignment = 32 : i64} : !llvm.ptr<1> -> vector<8xi32>
// Two magnitudes at once. NaN elements are skipped: maxnum, not maximum.
// CHECK-COUNT-7:   llvm.call_intrinsic "llvm.nvvm.fmax.xorsign.abs.bf16x2"
// CHECK:           llvm.intr.maxnum
// CHECK-NOT:       llvm.intr.maximum
// CHECK:         nvvm.redux.sync umax
// CHECK:         nvvm.barrier0
// CHECK:         nvvm.redux.sync umax
// CHECK:         llvm.atomicrmw umax %[[P]], %{{.*}} syncscope("device") monotonic
// CHECK-LABEL: func.func @whole
// CHECK-SAME:  (%[[X:.*]]: tensor<?x1024xbf16>)
// CHECK-DAG:     %[[XB:.*]] = builtin.unrealized_conversion_cast %[[X]] : tensor<?x1024xbf16> to memref<?x1024xbf16>
// CHECK:         %[[ROWS:.*]] = memref.dim %[[XB]]
// CHECK:         %[[R:.*]] = gpu.alloc () : memref<f32>
// CHECK:         gpu.memset %[[R]], %{{.*}} : memref<f32>, f32
// CHECK:         %[[G0:.*]] = pipe.global_view %{{.*}} : memref<?x1024xbf16> -> !pipe.global<?x1024xbf16>
// CHECK:         %[[G1:.*]] = pipe.global_view %[[R]] : memref<f32> -> !pipe.global<f32>
// CHECK:         gpu.launch_func @whole_amax_0::@kernel blocks in (%{{.*}}, %{{.*}}, %{{.*}}) threads in (%c256{{[^)]*}})
// CHECK-SAME:      args(%[[G0]] : !pipe.global<?x1024xbf16>, %[[G1]] : !pipe.global<f32>, %{{.*}} : i32)
func.func @whole(%x: tensor<?x1024xbf16>) -> tensor<f32> {
  %0 = fp4.amax %x : tensor<?x1024xbf16> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// CHECK-LABEL: gpu.module @ragged_amax_0
// CHECK:       gpu.func @kernel({{.*}}, %[[CHUNKS:[a-z0-9]*]]: i32, %[[TAIL:[a-z0-9]*]]: i32)
// CHECK:         arith.cmpi ult, %{{.*}}, %[[TAIL]]
// CHECK:         llvm.load %{{.*}} invariant {alignment = 2 : i64} : !llvm.ptr<1> -> f16
func.func @ragged(%x: tensor<?x10xf16>) -> tensor<f32> {
  %0 = fp4.amax %x : tensor<?x10xf16> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// CHECK-LABEL: gpu.module @propagate_amax_0
// CHECK:         llvm.intr.maximum
// CHECK-NOT:     llvm.intr.maxnum
// The quiet NaN that lib/Numerics returns, whatever the maximum made of it.
// CHECK:         %[[NAN:.*]] = arith.constant 2143289344 : i32
// CHECK:         arith.minui %{{.*}}, %[[NAN]]
func.func @propagate(%x: tensor<?x1024xbf16>) -> tensor<f32> {
  %0 = fp4.amax %x {nan = #fp4.nan_policy<propagate>} : tensor<?x1024xbf16> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// matmul_alpha stays on the device: a one-thread kernel.
// CHECK-LABEL: gpu.module @alpha_matmul_alpha_0
// CHECK:         %[[P:.*]] = arith.mulf
// CHECK:         %[[C:.*]] = arith.constant 1.38401717E-7 : f32
// CHECK:         arith.mulf %[[P]], %[[C]]
// CHECK-LABEL: func.func @alpha
// CHECK:         arith.constant dense<2.688000e+03> : tensor<f32>
// CHECK:         gpu.launch_func @alpha_matmul_alpha_0::@kernel
func.func @alpha(%a: tensor<f32>) -> tensor<f32> {
  %b = arith.constant dense<2688.0> : tensor<f32>
  %0 = fp4.matmul_alpha %a, %b : tensor<f32>, tensor<f32> -> tensor<f32>
  return %0 : tensor<f32>
}
