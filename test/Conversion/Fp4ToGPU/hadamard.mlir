// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-gpu -split-input-file | FileCheck %s

// 16 elements per thread in one load of 32 bytes; four stages of strides 1, 2, 4, 8; signs with
// the division of inputs by 16 (bit 3 of the mask is the first); the scale last, rounded to bf16 in pairs.
// CHECK-LABEL: gpu.module @rows_hadamard_0
// CHECK:         llvm.load %{{.*}} invariant {alignment = 32 : i64} : !llvm.ptr<1> -> vector<8xi32>
// CHECK-COUNT-10: arith.constant -6.250000e-02 : f32
// CHECK-NOT:     arith.constant -6.250000e-02 : f32
// CHECK-NOT:     arith.negf
// CHECK-COUNT-32: arith.addf
// CHECK-NOT:     arith.addf
// CHECK-NOT:     nvvm.shfl
// CHECK-COUNT-16: arith.mulf
// CHECK-COUNT-8: nvvm.convert.f32x2.to.bf16x2 %{{.*}}, %{{.*}} {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xbf16>
// CHECK:         llvm.store %{{.*}}, %{{.*}} {alignment = 32 : i64} : vector<8xi32>, !llvm.ptr<1>
func.func @rows(%x: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
  %0 = fp4.hadamard %x : tensor<?x64xbf16> -> tensor<?x64xbf16>
  return %0 : tensor<?x64xbf16>
}

// -----

// A block of 64 lies in four lanes. Whole warps run, the threads behind the last piece repeat the last
// four and store nothing; strides 16 and 32 are exchanged with the neighbours at 1 and 2.
// CHECK-LABEL: gpu.module @lanes_hadamard_0
// CHECK:       gpu.func @kernel(%{{.*}}, %{{.*}}, %[[COUNT:.*]]: i32)
// CHECK:         %[[GROUP:.*]] = arith.subi %[[COUNT]], %c4_i32
// CHECK:         %[[LANE:.*]] = arith.andi %[[ITEM:.*]], %c3_i32
// CHECK:         %[[LAST:.*]] = arith.addi %[[GROUP]], %[[LANE]]
// CHECK:         arith.select %{{.*}}, %[[ITEM]], %[[LAST]]
// CHECK-NOT:       arith.negf
// CHECK:           %[[ONE:.*]] = arith.constant 1 : i32
// CHECK:           %[[BIT:.*]] = arith.andi %{{.*}}, %[[ONE]]
// CHECK:           %[[SIGN:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK:           %[[THEIRS:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[MINE:.*]], %{{.*}}, %{{.*}} : f32 -> f32
// CHECK:           llvm.intr.fma(%[[MINE]], %[[SIGN]], %[[THEIRS]])
// CHECK-COUNT-31:  nvvm.shfl.sync bfly
// CHECK-NOT:       nvvm.shfl
// CHECK:           arith.constant 8.000000e+00 : f32
// CHECK:           %[[IN:.*]] = arith.cmpi ult, %[[ITEM]], %[[COUNT]]
// CHECK:           scf.if %[[IN]]
// CHECK:             llvm.store
func.func @lanes(%x: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
  %0 = fp4.hadamard %x {size = 64 : i64, sign_mask = 0 : i64} : tensor<?x64xbf16> -> tensor<?x64xbf16>
  return %0 : tensor<?x64xbf16>
}

// -----

// Down the columns: 16 rows of 8 columns, a load of 16 bytes each.
// CHECK-LABEL: gpu.module @columns_hadamard_0
// CHECK-COUNT-16: llvm.load %{{.*}} invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-NOT:     llvm.load
// CHECK-COUNT-16: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
func.func @columns(%x: tensor<128x64xbf16>) -> tensor<128x64xbf16> {
  %0 = fp4.hadamard %x {dimension = 0 : i64} : tensor<128x64xbf16> -> tensor<128x64xbf16>
  return %0 : tensor<128x64xbf16>
}

// -----

// An odd number of columns: one column per thread.
// CHECK-LABEL: gpu.module @odd_hadamard_0
// CHECK-COUNT-16: llvm.load %{{.*}} invariant {alignment = 2 : i64} : !llvm.ptr<1> -> i16
func.func @odd(%x: tensor<32x5xbf16>) -> tensor<32x5xbf16> {
  %0 = fp4.hadamard %x {dimension = 0 : i64} : tensor<32x5xbf16> -> tensor<32x5xbf16>
  return %0 : tensor<32x5xbf16>
}

// -----

// Two maxima in one pass, no store; scale and rounding once, after the loop.
// CHECK-LABEL: gpu.module @amaxes_hadamard_amax_0
// CHECK:         %[[MAX:.*]]:2 = scf.for
// CHECK-COUNT-1:   llvm.load
// CHECK-NOT:       llvm.store
// Undivided sums have an amax that is finite, or are computed once more.
// CHECK-COUNT-10:  arith.negf
// CHECK:           %[[FINITE:.*]] = arith.cmpf olt
// CHECK:           scf.if %[[FINITE]]
// CHECK:           } else {
// CHECK-COUNT-16:  arith.mulf
// CHECK:           scf.yield
// CHECK:         %[[SCALED:.*]] = arith.mulf %[[MAX]]#1
// CHECK:         arith.truncf %[[SCALED]] : f32 to bf16
// The first CTA waits for both maxima of another one in one word.
// CHECK:         scf.while
// CHECK:           llvm.load %{{.*}} atomic syncscope("device") monotonic {alignment = 8 : i64} : !llvm.ptr<1> -> i64
// CHECK-COUNT-2: nvvm.redux.sync umax
// CHECK:         nvvm.barrier0
// CHECK-LABEL: func.func @amaxes
// CHECK-NOT:     gpu.memset
// CHECK:         gpu.alloc () {fp4.counters} : memref<592xi32>
func.func @amaxes(%x: tensor<?x64xbf16>) -> (tensor<f32>, tensor<f32>) {
  %0:2 = fp4.hadamard_amax %x : tensor<?x64xbf16> -> tensor<f32>, tensor<f32>
  return %0#0, %0#1 : tensor<f32>, tensor<f32>
}
