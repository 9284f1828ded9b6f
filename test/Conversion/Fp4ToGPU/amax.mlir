// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-gpu -split-input-file | FileCheck %s
// amax: 32-byte chunks, a word for each CTA, and elements behind the last chunk one by one.

// Rows of whole chunks have no residue. The kernel is told how many chunks there are.
// CHECK-LABEL: gpu.module @whole_amax_0
// CHECK:       gpu.func @kernel(%{{.*}}: !pipe.global<?x1024xbf16>, %[[OUT:.*]]: !pipe.global<f32>, %[[CHUNKS:.*]]: i32, %[[WORDS:.*]]: !pipe.global<592xi32>)
// CHECK-SAME:    kernel attributes {known_block_size = array<i32: 512, 1, 1>}
// CHECK:         %[[P:.*]] = pipe.view %[[OUT]]
// CHECK:         scf.for unsigned %{{.*}} = %{{.*}} to %[[CHUNKS]] step
// CHECK:           llvm.load %{{.*}} invariant {alignment = 32 : i64} : !llvm.ptr<1> -> vector<8xi32>
// Two magnitudes at once. NaN elements are skipped: maxnum, not maximum.
// CHECK-COUNT-7:   llvm.call_intrinsic "llvm.nvvm.fmax.xorsign.abs.bf16x2"
// CHECK:           llvm.intr.maxnum
// CHECK-NOT:       llvm.intr.maximum
// CHECK:         %[[W:.*]] = pipe.view %[[WORDS]]
// CHECK:         %[[CTA:.*]] = nvvm.read.ptx.sreg.ctaid.x
// CHECK:         %[[CTAS:.*]] = nvvm.read.ptx.sreg.nctaid.x
// The first CTA waits for what the others leave, clears their words, and stores the largest.
// CHECK:         %[[FIRST:.*]] = arith.cmpi eq, %[[CTA]], %c0
// CHECK:         scf.if %[[FIRST]]
// CHECK:           scf.for unsigned %{{.*}} = %{{.*}} to %[[CTAS]]
// CHECK:             scf.while
// CHECK:               llvm.load %[[WORD:.*]] atomic syncscope("device") monotonic
// CHECK:             llvm.store %c0{{.*}}, %[[WORD]] atomic syncscope("device") monotonic
// CHECK:             arith.maxui
// CHECK:         nvvm.redux.sync umax
// CHECK:         nvvm.barrier0
// CHECK:         nvvm.redux.sync umax
// CHECK:         scf.if %[[FIRST]]
// CHECK-NEXT:      llvm.store %{{.*}}, %[[P]]
// CHECK:         } else {
// CHECK:           arith.ori %c-2147483648
// CHECK:           llvm.store %{{.*}} atomic syncscope("device") monotonic
// CHECK-NOT:     atomicrmw
// CHECK-LABEL: func.func @whole
// CHECK-SAME:  (%[[X:.*]]: tensor<?x1024xbf16>)
// CHECK-DAG:     %[[XB:.*]] = builtin.unrealized_conversion_cast %[[X]] : tensor<?x1024xbf16> to memref<?x1024xbf16>
// CHECK:         %[[ROWS:.*]] = memref.dim %[[XB]]
// CHECK:         %[[R:.*]] = gpu.alloc () : memref<f32>
// CHECK-NOT:     gpu.memset
// CHECK:         %[[G0:.*]] = pipe.view %{{.*}} : memref<?x1024xbf16> -> !pipe.global<?x1024xbf16>
// CHECK:         %[[G1:.*]] = pipe.view %[[R]] : memref<f32> -> !pipe.global<f32>
// CHECK:         %[[C:.*]] = gpu.alloc () {fp4.counters} : memref<592xi32>
// CHECK:         %[[G2:.*]] = pipe.view %[[C]] : memref<592xi32> -> !pipe.global<592xi32>
// CHECK:         gpu.launch_func @whole_amax_0::@kernel blocks in (%{{.*}}, %{{.*}}, %{{.*}}) threads in (%c512{{[^)]*}})
// CHECK-SAME:      args(%[[G0]] : !pipe.global<?x1024xbf16>, %[[G1]] : !pipe.global<f32>, %{{.*}} : i32, %[[G2]] : !pipe.global<592xi32>)
func.func @whole(%x: tensor<?x1024xbf16>) -> tensor<f32> {
  %0 = fp4.amax %x : tensor<?x1024xbf16> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// CHECK-LABEL: gpu.module @ragged_amax_0
// CHECK:       gpu.func @kernel({{.*}}, %[[CHUNKS:[a-z0-9]*]]: i32, %[[TAIL:[a-z0-9]*]]: i32,
// CHECK:         arith.cmpi ult, %{{.*}}, %[[TAIL]]
// CHECK:         llvm.load %{{.*}} invariant {alignment = 2 : i64} : !llvm.ptr<1> -> i16
func.func @ragged(%x: tensor<?x10xf16>) -> tensor<f32> {
  %0 = fp4.amax %x : tensor<?x10xf16> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Every CTA of every group has a word. A group without rows has no CTA that would store 0.
// CHECK-LABEL: gpu.module @groups_amax_0
// CHECK:         scf.while
// CHECK-LABEL: func.func @groups
// CHECK-NOT:     gpu.memset
// CHECK:         gpu.alloc () {fp4.counters} : memref<2xi32>
// CHECK-LABEL: func.func @empty_group
// CHECK:         gpu.memset
// CHECK:         gpu.alloc () {fp4.counters} : memref<1xi32>
func.func @groups(%x: tensor<64x32xbf16>) -> tensor<2xf32> {
  %0 = fp4.amax %x {groups = array<i64: 48, 16>} : tensor<64x32xbf16> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @empty_group(%x: tensor<64x32xbf16>) -> tensor<2xf32> {
  %0 = fp4.amax %x {groups = array<i64: 64, 0>} : tensor<64x32xbf16> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// The CTA of a row has nobody to meet.
// CHECK-LABEL: gpu.module @rows_amax_0
// CHECK-NOT:     atomicrmw
// CHECK-NOT:     inline_asm
// CHECK-LABEL: func.func @rows
// CHECK-NOT:     gpu.memset
// CHECK-NOT:     fp4.counters
func.func @rows(%x: tensor<64x32xbf16>) -> tensor<64xf32> {
  %0 = fp4.amax %x {per_row} : tensor<64x32xbf16> -> tensor<64xf32>
  return %0 : tensor<64xf32>
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
