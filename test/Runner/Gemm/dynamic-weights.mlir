// One library for 16-bit floats beside weights of any N and K.

// RUN: fp4-runner %s --emit=so --ptxas=none -o %t.so
// RUN: fp4-run %t.so --device=sim --function=nvfp4 --dim M=70 --dim N=72 --dim K=288 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=nvfp4 --dim M=1 --dim N=8 --dim K=32 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=nvfp4 --dim M=17 --dim N=264 --dim K=544 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=mxfp4 --dim M=5 --dim N=136 --dim K=160 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=few --dim N=200 --dim K=96 --check=strict --policy=random | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --emit=so --ptxas=none -o %t.90.so
// RUN: fp4-run %t.90.so --device=sim --function=nvfp4 --dim M=70 --dim N=72 --dim K=288 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.90.so --device=sim --function=nvfp4 --dim M=1 --dim N=8 --dim K=32 --check=strict | FileCheck %s
// RUN: fp4-run %t.90.so --device=sim --function=mxfp4 --dim M=130 --dim N=136 --dim K=160 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.90.so --device=sim --function=few --dim N=200 --dim K=96 --check=strict --policy=random | FileCheck %s
// RUN: fp4-runner %s --target=sm_120a --emit=so --ptxas=none -o %t.120.so
// RUN: fp4-run %t.120.so --device=sim --function=nvfp4 --dim M=70 --dim N=72 --dim K=288 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.120.so --device=sim --function=mxfp4 --dim M=5 --dim N=264 --dim K=160 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.120.so --device=sim --function=few --dim N=8 --dim K=96 --check=strict | FileCheck %s
// CHECK: equals the {{.*}}, bit for bit
// CHECK-NOT: differs
// CHECK: hazards {{.*}}none (strict check)

// RUN: not fp4-run %t.so --device=sim --function=apart --dim M=5 --dim N=72 --dim K=64 --dim H=96 2>&1 | FileCheck %s --check-prefix=DEPTH
// DEPTH: error: columns of operand 'rhs' of the matmul at dynamic-weights.mlir:{{[0-9]+}}:{{[0-9]+}} must be 64, but got 96
// RUN: not fp4-run %t.120.so --device=sim --function=nvfp4 --dim M=5 --dim N=76 --dim K=64 2>&1 | FileCheck %s --check-prefix=WIDTH
// WIDTH: error: rows of operand 'rhs' of the matmul at dynamic-weights.mlir:{{[0-9]+}}:{{[0-9]+}} must be 80, but got 76

!c = tensor<?x?xf4E2M1FN>
!nt = tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!et = tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!rhs = !fp4.scaled<nvfp4, !c, !nt>
func.func @nvfp4(%x: tensor<?x?xf16> {fp4.dims = ["M", "K"]}, %w: !c {fp4.dims = ["N", "K"]}, %s: !nt {fp4.dims = ["N", "K/16"]},
                 %alpha: tensor<1x?xf32> {fp4.dims = ["", "N"]}, %bias: tensor<1x?xf16> {fp4.dims = ["", "N"]}) -> tensor<?x?xf16> {
  %w_scaled = fp4.scaled %w, %s : !rhs
  %y = fp4.matmul %x, %w_scaled alpha %alpha epilogue(%bias) {
  ^bb0(%sum: f32, %one: f16):
    %wide = arith.extf %one : f16 to f32
    %r = arith.addf %sum, %wide : f32
    %z = arith.truncf %r : f32 to f16
    fp4.yield %z : f16
  } : (tensor<?x?xf16>, !rhs, tensor<1x?xf32>, tensor<1x?xf16>) -> tensor<?x?xf16>
  return %y : tensor<?x?xf16>
}

!rhs2 = !fp4.scaled<mxfp4, !c, !et>
func.func @mxfp4(%x: tensor<?x?xbf16> {fp4.dims = ["M", "K"]}, %w: !c {fp4.dims = ["N", "K"]}, %s: !et {fp4.dims = ["N", "K/32"]},
                 %alpha: tensor<?x1xf32> {fp4.dims = ["M", ""]}) -> tensor<?x?xf32> {
  %w_scaled = fp4.scaled %w, %s : !rhs2
  %y = fp4.matmul %x, %w_scaled alpha %alpha
      : (tensor<?x?xbf16>, !rhs2, tensor<?x1xf32>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

func.func @few(%x: tensor<3x?xbf16> {fp4.dims = ["", "K"]}, %w: !c {fp4.dims = ["N", "K"]}, %s: !et {fp4.dims = ["N", "K/32"]},
               %residual: tensor<3x?xbf16> {fp4.dims = ["", "N"]}) -> tensor<3x?xbf16> {
  %w_scaled = fp4.scaled %w, %s : !rhs2
  %y = fp4.matmul %x, %w_scaled : (tensor<3x?xbf16>, !rhs2) -> tensor<3x?xbf16>
  %z = arith.addf %y, %residual : tensor<3x?xbf16>
  return %z : tensor<3x?xbf16>
}

func.func @apart(%x: tensor<?x?xbf16> {fp4.dims = ["M", "K"]}, %w: !c {fp4.dims = ["N", "H"]}, %s: !et {fp4.dims = ["N", "H/32"]}) -> tensor<?x?xbf16> {
  %w_scaled = fp4.scaled %w, %s : !rhs2
  %y = fp4.matmul %x, %w_scaled : (tensor<?x?xbf16>, !rhs2) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}
