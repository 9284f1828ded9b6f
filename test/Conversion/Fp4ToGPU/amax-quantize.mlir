// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-gpu | FileCheck %s
// An amax that its quantizer computes itself if the host finds that all CTAs run at once. Every thread keeps
// its elements until the first CTA has the maxima of all CTAs and answers each of them.

// CHECK-LABEL: gpu.module @small_amax_quantize_0
// CHECK:         nvvm.minctasm = 4 : i32
// CHECK:         llvm.load %{{.*}} invariant {alignment = 32 : i64} : !llvm.ptr<1> -> vector<8xi32>
// CHECK:         %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK:         scf.if %[[FIRST]]
// CHECK:           scf.while
// CHECK:         nvvm.redux.sync umax
// CHECK:         scf.if %[[FIRST]]
// CHECK:         } else {
// CHECK:           llvm.store %{{.*}} atomic syncscope("device") monotonic
// CHECK:           scf.while
// CHECK:             llvm.load %[[ANSWER:.*]] atomic syncscope("device") monotonic
// CHECK:           llvm.store %c0{{.*}}, %[[ANSWER]] atomic syncscope("device") monotonic
// CHECK:         nvvm.barrier0
// CHECK:         %[[MAX:.*]] = llvm.load
// CHECK:         scf.if %[[FIRST]]
// CHECK:           arith.ori %c-2147483648{{.*}}, %[[MAX]]
// CHECK:           scf.for
// CHECK:             llvm.store %{{.*}} atomic syncscope("device") monotonic
// CHECK-NOT:     vector<8xi32>

// CHECK-LABEL: func.func @small
// CHECK:         %[[COUNT:.*]] = llvm.call @fp4rt_multiprocessor_count() : () -> i32
// CHECK:         %[[FITS:.*]] = arith.andi
// CHECK:         %[[NONE:.*]] = arith.select %[[FITS]], %c0{{.*}}, %
// CHECK:         gpu.launch_func @small_amax_0::@kernel blocks in (%[[NONE]],
// CHECK:         %[[FIT:.*]] = arith.andi
// CHECK:         gpu.alloc () {fp4.counters} : memref<9216xi32>
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
