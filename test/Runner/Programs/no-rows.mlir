// Programs of dynamic rows take none of them, as an expert without tokens has: what has no element is not launched,
// and the amax of nothing is 0. The contraction axis of a GEMM is no such size, and a static size of 0 is an error.
// RUN: fp4-runner %s --emit=so --ptxas=none -o %t.so
// RUN: fp4-run %t.so --device=sim --function=product --shape 0 --check=strict | FileCheck %s --check-prefixes=OK,PRODUCT
// RUN: fp4-run %t.so --device=sim --function=product --shape 1 --check=strict | FileCheck %s --check-prefixes=OK,ONE
// RUN: fp4-run %t.so --device=sim --function=results --shape 0 --check=strict | FileCheck %s --check-prefixes=OK,RESULTS
// RUN: fp4-run %t.so --device=sim --function=results --shape 1 --check=strict | FileCheck %s --check-prefixes=OK,RESULT
// RUN: fp4-run %t.so --device=sim --function=sizes --dim M=0 --dim N=0 --dim K=64 --check=strict | FileCheck %s --check-prefixes=OK,SIZES
// RUN: fp4-run %t.so --device=sim --function=sizes --dim M=16 --dim N=0 --dim K=64 --check=strict | FileCheck %s --check-prefixes=OK
// RUN: not fp4-run %t.so --device=sim --function=sizes --dim M=16 --dim N=16 --dim K=0 2>&1 | FileCheck %s --check-prefix=DEPTH
// RUN: fp4-run %t.so --device=sim --function=gradient --dim M=32 --check=strict | FileCheck %s --check-prefix=OK
// RUN: not fp4-run %t.so --device=sim --function=gradient --dim M=0 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: fp4-run %t.so --device=sim --function=joined --shape 0 --check=strict | FileCheck %s --check-prefixes=OK,JOINED
// RUN: fp4-run %t.so --device=sim --function=joined --shape 1 --check=strict | FileCheck %s --check-prefixes=OK,PARTS
// RUN: fp4-run %t.so --device=sim --function=groups --check=strict | FileCheck %s --check-prefix=OK
// RUN: not fp4-runner %s --function=product --dim M=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// OK: passed
// PRODUCT: r0 {{.*}}0x64xbf16 equals
// ONE: r0 {{.*}}1x64xbf16 equals
// RESULTS: h {{ *}}0x64xbf16 equals
// RESULTS: rows {{ *}}0xf32 equals
// RESULTS: amax {{ *}}f32 equals
// RESULT: amax {{ *}}f32 equals
// SIZES: 0 launched
// JOINED: 0 launched
// JOINED: r0 {{.*}}0x64xbf16 equals
// PARTS: r0 {{.*}}1x64xbf16 equals
// OK: hazards none (strict check)
// DEPTH: error: columns of operand 'lhs' of the matmul at {{.*}} must be 32, but got 0
// DEPTH: note: pad the contraction axis of both operands with zeros to a multiple of 32
// ROWS: error: columns of operand 'lhs' of the matmul at {{.*}} must be 32, but got 0
// NEGATIVE: error: --dim expects a size from 0 to 2147483647, but got '-1'

#tiled = #fp4.scale_layout<tiled_128x4>
#all = affine_map<(i, j) -> (i, j)>
!w = tensor<64x128xf4E2M1FN>
!sw = tensor<64x8xf8E4M3FN, #tiled>
!qx = tensor<?x128xf4E2M1FN>
!sx = tensor<?x8xf8E4M3FN, #tiled>

!lhs = !fp4.scaled<nvfp4, !qx, !sx>
!rhs = !fp4.scaled<nvfp4, !w, !sw>
func.func @product(%x: tensor<?x128xbf16> {fp4.name = "x", fp4.dims = ["M", "K"]}, %w: !w, %sw: !sw) -> tensor<?x64xbf16> {
  %a = fp4.amax %x : tensor<?x128xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x128xbf16>, tensor<f32>) -> (!qx, !sx)
  %q_scaled = fp4.scaled %q, %s : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %q_scaled, %w_scaled alpha %a : (!lhs, !rhs, tensor<f32>) -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}

// A GEMM that gives the amax of its result too.
func.func @results(%q: !qx {fp4.dims = ["M", "K"]}, %s: !sx {fp4.dims = ["M", ""]}, %w: !w, %sw: !sw)
    -> (tensor<?x64xbf16> {fp4.name = "h"}, tensor<?xf32> {fp4.name = "rows"}, tensor<f32> {fp4.name = "amax"}) {
  %q_scaled = fp4.scaled %q, %s : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %q_scaled, %w_scaled : (!lhs, !rhs) -> tensor<?x64xbf16>
  %rows = fp4.amax %y {per_row} : tensor<?x64xbf16> -> tensor<?xf32>
  %amax = fp4.amax %y : tensor<?x64xbf16> -> tensor<f32>
  return %y, %rows, %amax : tensor<?x64xbf16>, tensor<?xf32>, tensor<f32>
}

!lhs2 = !fp4.scaled<nvfp4, tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN, #tiled>>
!rhs2 = !fp4.scaled<nvfp4, tensor<64x512xf4E2M1FN>, tensor<64x32xf8E4M3FN, #tiled>>
// A reduction over split-K has counters, of which no rows have none.
func.func @joined(%q: tensor<?x512xf4E2M1FN> {fp4.dims = ["M", "K"]}, %s: tensor<?x32xf8E4M3FN, #tiled> {fp4.dims = ["M", ""]},
                  %w: tensor<64x512xf4E2M1FN>, %sw: tensor<64x32xf8E4M3FN, #tiled>) -> tensor<?x64xbf16> {
  %q_scaled = fp4.scaled %q, %s : !lhs2
  %w_scaled = fp4.scaled %w, %sw : !rhs2
  %y = fp4.matmul %q_scaled, %w_scaled {work = #fp4.work<split_k = 2>}
      : (!lhs2, !rhs2) -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}

!any = tensor<?x?xf4E2M1FN>
!scales = tensor<?x?xf8E4M3FN, #tiled>
!operand = !fp4.scaled<nvfp4, !any, !scales>
func.func @sizes(%a: !any {fp4.dims = ["M", "K"]}, %s: !scales {fp4.dims = ["M", "K/16"]},
                 %b: !any {fp4.dims = ["N", "K"]}, %t: !scales {fp4.dims = ["N", "K/16"]}) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %b_scaled = fp4.scaled %b, %t : !operand
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand, !operand) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

// The rows are the contraction axis.
!te = tensor<64x?xf8E8M0FNU, #tiled>
!operand2 = !fp4.scaled<mxfp4, tensor<64x?xf4E2M1FN>, !te>
func.func @gradient(%x: tensor<?x64xbf16> {fp4.dims = ["M", "K"]}, %d: tensor<?x64xbf16> {fp4.dims = ["M", "N"]}) -> tensor<64x64xbf16> {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<columnwise>}
      : (tensor<?x64xbf16>) -> (tensor<64x?xf4E2M1FN>, !te)
  %p, %t = fp4.quantize %d {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<columnwise>}
      : (tensor<?x64xbf16>) -> (tensor<64x?xf4E2M1FN>, !te)
  %p_scaled = fp4.scaled %p, %t : !operand2
  %q_scaled = fp4.scaled %q, %s : !operand2
  %y = fp4.matmul %p_scaled, %q_scaled : (!operand2, !operand2) -> tensor<64x64xbf16>
  return %y : tensor<64x64xbf16>
}

!lhs3 = !fp4.scaled<nvfp4, tensor<16x128xf4E2M1FN>, tensor<512x4xf8E4M3FN, #tiled>>
!rhs3 = !fp4.scaled<nvfp4, tensor<128x128xf4E2M1FN>, tensor<512x4xf8E4M3FN, #tiled>>
// No group has a row.
func.func @groups(%a: tensor<16x128xf4E2M1FN>, %s: tensor<512x4xf8E4M3FN, #tiled>, %b: tensor<128x128xf4E2M1FN>, %t: tensor<512x4xf8E4M3FN, #tiled>) -> tensor<16x64xbf16> {
  %o = arith.constant dense<0> : tensor<3xi64>
  %a_scaled = fp4.scaled %a, %s : !lhs3
  %b_scaled = fp4.scaled %b, %t : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o
      : (!lhs3, !rhs3, tensor<3xi64>) -> tensor<16x64xbf16>
  return %y : tensor<16x64xbf16>
}
