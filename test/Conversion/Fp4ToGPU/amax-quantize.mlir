// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-gpu | FileCheck %s
// An amax that its quantizer computes itself if the host finds that all CTAs run at once. Every thread keeps
// what it has loaded until the last CTA has come.

// CHECK-LABEL: gpu.module @small_amax_quantize_0
// CHECK:         nvvm.minctasm = 4 : i32
// CHECK-COUNT-2: llvm.load %{{.*}} invariant {alignment = 32 : i64} : !llvm.ptr<1> -> vector<8xi32>
// CHECK:         llvm.atomicrmw umax %[[WORD:.*]], %{{.*}} syncscope("device") monotonic : !llvm.ptr<1>, i64
// CHECK:         atom.acq_rel.gpu.global.inc.u32
// CHECK:         scf.while
// CHECK:           "ld.acquire.gpu.global.u32 $0, [$1];"
// The maximum, and in the same word who has read it; the last one leaves zero and stores the amax.
// CHECK:         %[[BOTH:.*]] = llvm.atomicrmw add %[[WORD]], %c4294967296
// CHECK:         %[[MAX:.*]] = arith.trunci %[[BOTH]]
// CHECK:         scf.if
// CHECK:           llvm.atomicrmw xchg %[[WORD]], %c0
// CHECK:           llvm.store %[[MAX]], %
// CHECK:         nvvm.barrier0
// CHECK-NOT:     vector<8xi32>

// CHECK-LABEL: func.func @small
// CHECK:         %[[COUNT:.*]] = llvm.call @fp4rt_multiprocessor_count() : () -> i32
// CHECK:         %[[FITS:.*]] = arith.andi
// CHECK:         %[[NONE:.*]] = arith.select %[[FITS]], %c0{{.*}}, %
// CHECK:         gpu.launch_func @small_amax_0::@kernel blocks in (%[[NONE]],
// CHECK:         %[[FIT:.*]] = arith.andi
// CHECK:         gpu.alloc () {fp4.counters} : memref<3xi32>
// CHECK:         %[[BOTH:.*]] = arith.select %[[FIT]], %{{.*}}, %c0
// CHECK:         gpu.launch_func @small_amax_quantize_0::@kernel blocks in (%[[BOTH]],
// CHECK-SAME:      {fp4.cooperative}
// CHECK:         %[[APART:.*]] = arith.xori %[[FIT]]
// CHECK:         %[[REST:.*]] = arith.select %[[APART]]
// CHECK:         gpu.launch_func @small_quantize_0::@kernel blocks in (%[[REST]],
func.func @small(%x: tensor<?x64xbf16>) -> (tensor<f32>, tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>) {
  %a = fp4.amax %x : tensor<?x64xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      fp4.plan = #fp4.plan<stream_blocks, amax = same>}
      : (tensor<?x64xbf16>, tensor<f32>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>)
  return %a, %q, %s : tensor<f32>, tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>
}
