// One library for GEMMs of any M, N and K: tensor maps, k tiles and tiles of columns follow from the arguments.

// RUN: fp4-runner %s --target=sm_90a --emit=so --ptxas=none -o %t.so
// RUN: fp4-run %t.so --device=sim --function=fp8 --dim M=70 --dim N=72 --dim K=272 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=fp8 --dim M=1 --dim N=8 --dim K=16 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=fp8 --dim M=130 --dim N=264 --dim K=640 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=depth --dim M=70 --dim K=400 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=columns --dim M=70 --dim N=136 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=body --dim N=200 --dim K=272 --check=strict | FileCheck %s
// RUN: fp4-runner %s --ptxas=none --device=sim --function=fp8 --dim M=70 --dim N=72 --dim K=272 --check=strict | FileCheck %s
// CHECK: equals the {{.*}}, bit for bit
// CHECK-NOT: differs
// CHECK: hazards {{.*}}none (strict check)

// RUN: not fp4-run %t.so --device=sim --function=fp8 --dim M=70 --dim N=72 --dim K=264 2>&1 | FileCheck %s --check-prefix=DEPTH
// DEPTH: error: columns of operand 'lhs' of the matmul at dynamic.mlir:{{[0-9]+}}:{{[0-9]+}} must be 272, but got 264
// DEPTH: note: pad the contraction axis of both operands with zeros to a multiple of 16
// RUN: not fp4-run %t.so --device=sim --function=fp8 --dim M=70 --dim N=70 --dim K=272 2>&1 | FileCheck %s --check-prefix=WIDTH
// WIDTH: error: rows of operand 'rhs' of the matmul at dynamic.mlir:{{[0-9]+}}:{{[0-9]+}} must be 72, but got 70
// WIDTH: note: rows of the result begin at multiples of 16 bytes; pad rhs with rows of zeros to a multiple of 8

!a = tensor<?x?xf8E4M3FN>
!s = tensor<?x?xf32>
!operand = !fp4.scaled<fp8_block128, !a, !s>
func.func @fp8(%a: !a {fp4.dims = ["M", "K"]}, %s: !s {fp4.dims = ["M", "K/128"]},
               %b: !a {fp4.dims = ["N", "K"]}, %t: !s {fp4.dims = ["N/128", "K/128"]}) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %b_scaled = fp4.scaled %b, %t : !operand
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand, !operand) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

!rhs = !fp4.scaled<fp8_block128, tensor<136x?xf8E4M3FN>, tensor<2x?xf32>>
func.func @depth(%a: !a {fp4.dims = ["M", "K"]}, %s: !s {fp4.dims = ["M", "K/128"]},
                 %b: tensor<136x?xf8E4M3FN> {fp4.dims = ["", "K"]}, %t: tensor<2x?xf32> {fp4.dims = ["", "K/128"]}) -> tensor<?x136xf32> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %b_scaled = fp4.scaled %b, %t : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand, !rhs) -> tensor<?x136xf32>
  return %y : tensor<?x136xf32>
}

!operand2 = !fp4.scaled<fp8_block128, tensor<?x512xf8E4M3FN>, tensor<?x4xf32>>
func.func @columns(%a: tensor<?x512xf8E4M3FN> {fp4.dims = ["M", ""]}, %s: tensor<?x4xf32> {fp4.dims = ["M", ""]},
                   %b: tensor<?x512xf8E4M3FN> {fp4.dims = ["N", ""]}, %t: tensor<?x4xf32> {fp4.dims = ["N/128", ""]}) -> tensor<?x?xf16> {
  %a_scaled = fp4.scaled %a, %s : !operand2
  %b_scaled = fp4.scaled %b, %t : !operand2
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand2, !operand2) -> tensor<?x?xf16>
  return %y : tensor<?x?xf16>
}

// Elementwise operations behind the GEMM, static rows, and an alpha for each column.
!l = tensor<33x?xf8E4M3FN>
!ls = tensor<33x?xf32>
!lhs = !fp4.scaled<fp8_block128, !l, !ls>
func.func @body(%a: !l {fp4.dims = ["", "K"]}, %s: !ls {fp4.dims = ["", "K/128"]},
                %b: !a {fp4.dims = ["N", "K"]}, %t: !s {fp4.dims = ["N/128", "K/128"]},
                %alpha: tensor<1x?xf32> {fp4.dims = ["", "N"]}, %residual: tensor<33x?xbf16> {fp4.dims = ["", "N"]}) -> tensor<33x?xbf16> {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !operand
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      : (!lhs, !operand, tensor<1x?xf32>) -> tensor<33x?xbf16>
  %r = arith.addf %y, %residual : tensor<33x?xbf16>
  return %r : tensor<33x?xbf16>
}
