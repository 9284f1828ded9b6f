// A gated layer of any M, N and K in one library: a dual GEMM, whose elements an epilogue combines, with a factor
// for each column; a bias of N columns is loaded 16 bytes at a time.

// RUN: fp4-runner %s --emit=so --ptxas=none -o %t.so
// RUN: fp4-run %t.so --device=sim --function=gated --dim M=70 --dim N=72 --dim K=288 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=gated --dim M=130 --dim N=136 --dim K=64 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=biased --dim M=70 --dim N=40 --dim K=288 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --emit=so --ptxas=none -o %t.90.so
// RUN: fp4-run %t.90.so --device=sim --function=gated --dim M=70 --dim N=72 --dim K=288 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.90.so --device=sim --function=biased --dim M=70 --dim N=40 --dim K=288 --check=strict | FileCheck %s
// RUN: fp4-runner %s --target=sm_120a --emit=so --ptxas=none -o %t.120.so
// RUN: fp4-run %t.120.so --device=sim --function=gated --dim M=70 --dim N=72 --dim K=288 --check=strict --policy=random | FileCheck %s
// CHECK: equals the {{.*}}, bit for bit
// CHECK-NOT: differs
// CHECK: hazards {{.*}}none (strict check)

// The matrices of the second GEMM are checked as those of the first.
// RUN: not fp4-run %t.so --device=sim --function=apart --dim M=70 --dim N=72 --dim L=80 --dim K=288 --dim H=288 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: error: rows of operand 'rhs2' of the matmul at dynamic-dual.mlir:{{[0-9]+}}:{{[0-9]+}} must be 72, but got 80
// RUN: not fp4-run %t.so --device=sim --function=apart --dim M=70 --dim N=72 --dim L=72 --dim K=288 --dim H=256 2>&1 | FileCheck %s --check-prefix=DEPTH
// DEPTH: error: columns of operand 'rhs2' of the matmul at dynamic-dual.mlir:{{[0-9]+}}:{{[0-9]+}} must be 288, but got 256

!c = tensor<?x?xf4E2M1FN>
!s = tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!n = tensor<1x?xf32>
!operand = !fp4.scaled<nvfp4, !c, !s>
func.func @gated(%a: !c {fp4.dims = ["M", "K"]}, %sa: !s {fp4.dims = ["M", "K/16"]},
                 %b: !c {fp4.dims = ["N", "K"]}, %sb: !s {fp4.dims = ["N", "K/16"]},
                 %d: !c {fp4.dims = ["N", "K"]}, %sd: !s {fp4.dims = ["N", "K/16"]},
                 %f: !n {fp4.dims = ["", "N"]}, %g: !n {fp4.dims = ["", "N"]}) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %d_scaled = fp4.scaled %d, %sd : !operand
  %y = fp4.matmul %a_scaled, %b_scaled with %d_scaled alpha %f alpha2 %g epilogue() {
  ^bb0(%gate: f32, %up: f32):
    %p = arith.mulf %gate, %up : f32
    %r = arith.truncf %p : f32 to bf16
    fp4.yield %r : bf16
  } : (!operand, !operand, !operand, !n, !n) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

func.func @apart(%a: !c {fp4.dims = ["M", "K"]}, %sa: !s {fp4.dims = ["M", "K/16"]},
                 %b: !c {fp4.dims = ["N", "K"]}, %sb: !s {fp4.dims = ["N", "K/16"]},
                 %d: !c {fp4.dims = ["L", "H"]}, %sd: !s {fp4.dims = ["L", "H/16"]}) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %d_scaled = fp4.scaled %d, %sd : !operand
  %y = fp4.matmul %a_scaled, %b_scaled with %d_scaled epilogue() {
  ^bb0(%gate: f32, %up: f32):
    %p = arith.mulf %gate, %up : f32
    %r = arith.truncf %p : f32 to bf16
    fp4.yield %r : bf16
  } : (!operand, !operand, !operand) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

func.func @biased(%a: !c {fp4.dims = ["M", "K"]}, %sa: !s {fp4.dims = ["M", "K/16"]},
                  %b: !c {fp4.dims = ["N", "K"]}, %sb: !s {fp4.dims = ["N", "K/16"]},
                  %alpha: !n {fp4.dims = ["", "N"]}, %bias: tensor<1x?xbf16> {fp4.dims = ["", "N"]}) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha epilogue(%bias) {
  ^bb0(%sum: f32, %one: bf16):
    %wide = arith.extf %one : bf16 to f32
    %s = arith.addf %sum, %wide : f32
    %r = arith.truncf %s : f32 to bf16
    fp4.yield %r : bf16
  } : (!operand, !operand, !n, tensor<1x?xbf16>) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}
