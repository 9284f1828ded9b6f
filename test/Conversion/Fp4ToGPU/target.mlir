// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-plan-kernels -convert-fp4-to-gpu | FileCheck %s
// RUN: not fp4-opt %s -fp4-set-target=target=sm_1 -fp4-plan-kernels -convert-fp4-to-gpu 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: fp4-runner %s --target=sm_90a --emit=ptx -o %t.ptx && FileCheck %s --check-prefix=PTX < %t.ptx
// A target without fp4 conversions rounds in steps (lib/KernelArithmetic/E2M1Steps.h); amax and saturation take two
// elements at once.

// CHECK-LABEL: gpu.module @f_quantize_0
// CHECK-NOT:     f4x2
// CHECK-COUNT-15: llvm.call_intrinsic "llvm.nvvm.fmax.nan.xorsign.abs.bf16x2"
// CHECK:         %[[Y:.*]] = arith.mulf %{{.*}}, %[[F:.*]] : f32
// CHECK-COUNT-31: arith.mulf %{{.*}}, %[[F]] : f32
// CHECK:         %[[TIE:.*]] = arith.constant 4.33488339E-8 : f32
// CHECK:         %[[Z:.*]] = llvm.intr.fma(%[[Y]], %[[TIE]], %[[Y]])
// CHECK:         %[[DOWN:.*]] = arith.constant 6.10351526E-5 : f32
// CHECK:         llvm.call_intrinsic "llvm.nvvm.mul.rz.f"(%[[Z]], %[[DOWN]])
// CHECK:         nvvm.convert.f32x2.to.f16x2 {{.*}} {rnd = #nvvm.fp_rnd_mode<rz>} : vector<2xf16>
// CHECK:         llvm.call_intrinsic "llvm.nvvm.fmin.xorsign.abs.f16x2"
// CHECK-NOT:     f4x2

// 32 elements: every instruction of the steps as often as it must be, and nothing that tests or branches in between.
// PTX:          .target sm_90a
// PTX-COUNT-4:  ld.global.v4.b32
// PTX:          max.NaN.xorsign.abs.bf16x2
// PTX-COUNT-16: cvt.rz.f16x2.f32
// PTX-NOT:      cvt.rz.f16x2.f32
// PTX:          st.global.v4.b32
// UNKNOWN: error: {{.*}}sm_1
func.func @f(%x: tensor<8x32xbf16>) -> (tensor<8x32xf4E2M1FN>, tensor<8x1xf8E8M0FNU>) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_even>}
      : (tensor<8x32xbf16>) -> (tensor<8x32xf4E2M1FN>, tensor<8x1xf8E8M0FNU>)
  return %q, %s : tensor<8x32xf4E2M1FN>, tensor<8x1xf8E8M0FNU>
}
