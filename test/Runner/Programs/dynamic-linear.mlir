// One library for whole linear layers of any M, N and K: amaxes, quantizers along rows that write tiled scales or
// linear ones, and the GEMM of what they give.

// RUN: fp4-runner %s --emit=so --ptxas=none -o %t.so
// RUN: fp4-run %t.so --device=sim --function=nvfp4 --dim M=70 --dim N=72 --dim K=288 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=nvfp4 --dim M=1 --dim N=8 --dim K=32 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=nvfp4 --dim M=257 --dim N=136 --dim K=1088 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=mxfp8 --dim M=130 --dim N=64 --dim K=160 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=mxfp8 --dim M=5 --dim N=8 --dim K=256 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=fp8 --dim M=70 --dim N=136 --dim K=272 --check=strict --policy=random | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --emit=so --ptxas=none -o %t.90.so
// RUN: fp4-run %t.90.so --device=sim --function=nvfp4 --dim M=70 --dim N=136 --dim K=96 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.90.so --device=sim --function=mxfp4 --dim M=130 --dim N=64 --dim K=224 --check=strict | FileCheck %s
// RUN: fp4-run %t.90.so --device=sim --function=fp8 --dim M=5 --dim N=8 --dim K=16 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.90.so --device=sim --function=fp8 --dim M=130 --dim N=264 --dim K=640 --check=strict | FileCheck %s
// RUN: not fp4-run %t.90.so --device=sim --function=fp8 --dim M=70 --dim N=136 --dim K=264 2>&1 | FileCheck %s --check-prefix=BYTES
// BYTES: error: columns of operand 'input' of the quantize at dynamic-linear.mlir:{{[0-9]+}}:{{[0-9]+}} must be 272, but got 264
// RUN: sed '/^!e = /,$d' %s > %t.4.mlir
// RUN: fp4-runner %t.4.mlir --target=sm_120a --emit=so --ptxas=none -o %t.120.so
// RUN: fp4-run %t.120.so --device=sim --function=nvfp4 --dim M=33 --dim N=72 --dim K=160 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.120.so --device=sim --function=mxfp4 --dim M=130 --dim N=64 --dim K=224 --check=strict | FileCheck %s
// CHECK: equals the {{.*}}, bit for bit
// CHECK-NOT: differs
// CHECK: hazards {{.*}}none (strict check)

// RUN: not fp4-run %t.so --device=sim --function=nvfp4 --dim M=70 --dim N=72 --dim K=48 2>&1 | FileCheck %s --check-prefix=UNIT
// UNIT: error: columns of operand 'input' of the quantize at dynamic-linear.mlir:{{[0-9]+}}:{{[0-9]+}} must be 64, but got 48
// UNIT: note: pad the columns with zeros to a multiple of 32

!x = tensor<?x?xbf16>
!c = tensor<?x?xf4E2M1FN>
!ns = tensor<?x?xf8E4M3FN>
!nt = tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!es = tensor<?x?xf8E8M0FNU>
!et = tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !c, !nt>
func.func @nvfp4(%x: !x {fp4.dims = ["M", "K"]}, %w: !x {fp4.dims = ["N", "K"]}) -> !x {
  %ax = fp4.amax %x : !x -> tensor<f32>
  %aw = fp4.amax %w : !x -> tensor<f32>
  %qx, %sx = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (!x, tensor<f32>) -> (!c, !ns)
  %qw, %sw = fp4.quantize %w amax %aw {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (!x, tensor<f32>) -> (!c, !ns)
  %tx = fp4.swizzle_scales %sx : !ns -> !nt
  %tw = fp4.swizzle_scales %sw : !ns -> !nt
  %alpha = fp4.matmul_alpha %ax, %aw : tensor<f32>, tensor<f32> -> tensor<f32>
  %qx_scaled = fp4.scaled %qx, %tx : !operand
  %qw_scaled = fp4.scaled %qw, %tw : !operand
  %y = fp4.matmul %qx_scaled, %qw_scaled alpha %alpha : (!operand, !operand, tensor<f32>) -> !x
  return %y : !x
}

!operand2 = !fp4.scaled<mxfp4, !c, !et>
// The scales of W are a result too, so a kernel swizzles them.
func.func @mxfp4(%x: !x {fp4.dims = ["M", "K"]}, %w: !x {fp4.dims = ["N", "K"]}) -> (!x, !es) {
  %qx, %tx = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (!x) -> (!c, !et)
  %qw, %sw = fp4.quantize %w {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (!x) -> (!c, !es)
  %tw = fp4.swizzle_scales %sw : !es -> !et
  %qx_scaled = fp4.scaled %qx, %tx : !operand2
  %qw_scaled = fp4.scaled %qw, %tw : !operand2
  %y = fp4.matmul %qx_scaled, %qw_scaled : (!operand2, !operand2) -> !x
  return %y, %sw : !x, !es
}

!e = tensor<?x?xf8E4M3FN>
!operand3 = !fp4.scaled<mxfp8_e4m3, !e, !et>
func.func @mxfp8(%x: !x {fp4.dims = ["M", "K"]}, %w: tensor<?x?xf32> {fp4.dims = ["N", "K"]}) -> (!x, !es) {
  %qx, %tx = fp4.quantize %x {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_rceil>} : (!x) -> (!e, !et)
  %qw, %sw = fp4.quantize %w {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_rceil>} : (tensor<?x?xf32>) -> (!e, !es)
  %tw = fp4.swizzle_scales %sw : !es -> !et
  %qx_scaled = fp4.scaled %qx, %tx : !operand3
  %qw_scaled = fp4.scaled %qw, %tw : !operand3
  %y = fp4.matmul %qx_scaled, %qw_scaled : (!operand3, !operand3) -> !x
  return %y, %sw : !x, !es
}

!operand4 = !fp4.scaled<fp8_block128, !e, tensor<?x?xf32>>
// FP8 as DeepSeek-V3 has it: blocks of 1 x 128 of X and of 128 x 128 of W.
func.func @fp8(%x: !x {fp4.dims = ["M", "K"]}, %w: !x {fp4.dims = ["N", "K"]}) -> (!x, tensor<?x?xf32>) {
  %qx, %sx = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>} : (!x) -> (!e, tensor<?x?xf32>)
  %qw, %sw = fp4.quantize %w {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 128, 128>}
      : (!x) -> (!e, tensor<?x?xf32>)
  %qx_scaled = fp4.scaled %qx, %sx : !operand4
  %qw_scaled = fp4.scaled %qw, %sw : !operand4
  %y = fp4.matmul %qx_scaled, %qw_scaled : (!operand4, !operand4) -> !x
  return %y, %sw : !x, tensor<?x?xf32>
}
