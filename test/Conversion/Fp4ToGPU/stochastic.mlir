// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-gpu -split-input-file | FileCheck %s --check-prefixes=CHECK,RS
// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-plan-kernels -convert-fp4-to-gpu -split-input-file | FileCheck %s --check-prefixes=CHECK,INT

// Seed and offset are read once, and before anything is divided by what comes of the amax: that
// waits for memory, and they would wait behind it. A block of 16 is one Philox block: 10 rounds of two
// multiplications, whose subsequence is the number of the block.
// CHECK-LABEL: gpu.module @nvfp4_quantize_0
// CHECK:       gpu.func @kernel(%{{.*}}: !pipe.global<?x64xbf16>, %{{.*}}: !pipe.global<f32>, %[[RNG:.*]]: !pipe.global<2xi64>,
// CHECK-NOT:     arith.divf
// CHECK:         %[[P:.*]] = pipe.view %[[RNG]]
// CHECK-NOT:     arith.divf
// CHECK:         %[[SEED:.*]] = llvm.load %[[P]] invariant {alignment = 8 : i64} : !llvm.ptr<1> -> i64
// CHECK-NOT:     arith.divf
// CHECK:         llvm.load %{{.*}} invariant {alignment = 8 : i64} : !llvm.ptr<1> -> i64
// CHECK:           arith.extui %{{.*}} : i32 to i64
// CHECK:           %[[M0:.*]] = arith.constant 3528531795 : i64
// CHECK:           arith.muli %{{.*}}, %[[M0]]
// CHECK:           %[[M1:.*]] = arith.constant 3449720151 : i64
// CHECK:           arith.muli %{{.*}}, %[[M1]]
// CHECK-COUNT-18:  arith.muli %{{.*}} : i64

// The first element is the last operand.
// RS-COUNT-4:      nvvm.convert.f32x4.to.f4x4 %{{.*}}, %{{.*}} : vector<4xf32> -> i16(f4E2M1FN)
// RS-NOT:          nvvm.convert.f32x4
// INT-COUNT-2:     nvvm.prmt
// INT:             %[[RZ:.*]] = nvvm.convert.f32x2.to.f16x2 %{{.*}} {rnd = #nvvm.fp_rnd_mode<rz>}
// INT:             llvm.call_intrinsic "llvm.nvvm.fmin.xorsign.abs.f16x2"(%[[RZ]]
// INT-NOT:         nvvm.convert.f32x4
// CHECK:           llvm.store
func.func @nvfp4(%x: tensor<?x64xbf16>, %ax: tensor<f32>, %rng: tensor<2xi64>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %ax rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>}
      : (tensor<?x64xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>)
  return %q, %s : tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>
}

// -----

// A block of 32 is two Philox blocks.
// CHECK-LABEL: gpu.module @mxfp4_quantize_0
// CHECK-COUNT-40: arith.muli %{{.*}} : i64
func.func @mxfp4(%x: tensor<?x64xbf16>, %rng: tensor<2xi64>) -> (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU>) {
  %q, %s = fp4.quantize %x rng %rng
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, rounding = #fp4.rounding<stochastic>}
      : (tensor<?x64xbf16>, tensor<2xi64>) -> (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU>)
  return %q, %s : tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU>
}
