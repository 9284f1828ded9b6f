// One library for amaxes of rows and of columns, quantizers that take them, GEMMs with their factors, and
// dequantizers, of any sizes.

// RUN: fp4-runner %s --emit=so --ptxas=none -o %t.so
// RUN: fp4-run %t.so --device=sim --function=tokens --dim M=70 --dim N=72 --dim K=288 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=tokens --dim M=1 --dim N=8 --dim K=32 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=channels --dim M=5 --dim N=136 --dim K=544 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=both --dim M=96 --dim K=160 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=both --dim M=16 --dim K=32 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=back --dim M=7 --dim K=96 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=back --dim M=130 --dim K=544 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=bytes --dim M=33 --dim K=160 --check=strict --policy=random | FileCheck %s
// CHECK: equals the {{.*}}, bit for bit
// CHECK-NOT: differs
// CHECK: hazards {{.*}}none (strict check)

// RUN: not fp4-run %t.so --device=sim --function=bytes --dim M=7 --dim K=80 2>&1 | FileCheck %s --check-prefix=UNIT
// RUN: not fp4-run %t.so --device=sim --function=both --dim M=16 --dim K=44 2>&1 | FileCheck %s --check-prefix=CHUNK
// CHUNK: error: columns of operand 'input' of the amax at dynamic-lines.mlir:{{[0-9]+}}:{{[0-9]+}} must be 48, but got 44
// UNIT: error: columns of operand 'data' of the dequantize at dynamic-lines.mlir:{{[0-9]+}}:{{[0-9]+}} must be 96, but got 80
// RUN: not fp4-run %t.so --device=sim --function=apart --dim M=7 --dim K=64 --dim H=96 2>&1 | FileCheck %s --check-prefix=SCALES
// SCALES: error: columns of operand 'scales' of the dequantize at dynamic-lines.mlir:{{[0-9]+}}:{{[0-9]+}} must be 4, but got 6
// RUN: not fp4-run %t.so --device=sim --function=apart --dim M=7 --dim L=9 --dim K=64 --dim H=64 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: error: numbers of operand 'amax' of the dequantize at dynamic-lines.mlir:{{[0-9]+}}:{{[0-9]+}} must be 7, but got 9

!x = tensor<?x?xbf16>
!c = tensor<?x?xf4E2M1FN>
!n = tensor<?x?xf8E4M3FN>
!t = tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!l = tensor<?xf32>
#nv = #fp4.format<nvfp4>
#te = #fp4.recipe<transformer_engine>
!operand = !fp4.scaled<nvfp4, !c, !t>
func.func @tokens(%x: !x {fp4.dims = ["M", "K"]}, %w: !x {fp4.dims = ["N", "K"]}) -> !x {
  %ax = fp4.amax %x {per_row} : !x -> !l
  %aw = fp4.amax %w : !x -> tensor<f32>
  %qx, %sx = fp4.quantize %x amax %ax {format = #nv, recipe = #te, per_row} : (!x, !l) -> (!c, !t)
  %qw, %sw = fp4.quantize %w amax %aw {format = #nv, recipe = #te} : (!x, tensor<f32>) -> (!c, !t)
  %alpha = fp4.matmul_alpha %ax, %aw : !l, tensor<f32> -> tensor<?x1xf32>
  %qx_scaled = fp4.scaled %qx, %sx : !operand
  %qw_scaled = fp4.scaled %qw, %sw : !operand
  %y = fp4.matmul %qx_scaled, %qw_scaled alpha %alpha : (!operand, !operand, tensor<?x1xf32>) -> !x
  return %y : !x
}

func.func @channels(%x: !x {fp4.dims = ["M", "K"]}, %w: !x {fp4.dims = ["N", "K"]}) -> !x {
  %ax = fp4.amax %x : !x -> tensor<f32>
  %aw = fp4.amax %w {per_row} : !x -> !l
  %qx, %sx = fp4.quantize %x amax %ax {format = #nv, recipe = #te} : (!x, tensor<f32>) -> (!c, !t)
  %qw, %sw = fp4.quantize %w amax %aw {format = #nv, recipe = #te, per_row} : (!x, !l) -> (!c, !t)
  %alpha = fp4.matmul_alpha %ax, %aw : tensor<f32>, !l -> tensor<1x?xf32>
  %qx_scaled = fp4.scaled %qx, %sx : !operand
  %qw_scaled = fp4.scaled %qw, %sw : !operand
  %y = fp4.matmul %qx_scaled, %qw_scaled alpha %alpha : (!operand, !operand, tensor<1x?xf32>) -> !x
  return %y : !x
}

func.func @both(%x: !x {fp4.dims = ["M", "K"]}) -> (!c, !n, !c, !n, !l, !l) {
  %r = fp4.amax %x {per_row} : !x -> !l
  %a = fp4.amax %x {per_column} : !x -> !l
  %q, %s, %p, %t = fp4.quantize %x amax %r columnwise_amax %a {format = #nv, recipe = #te, outputs = #fp4.outputs<both>, per_row}
      : (!x, !l, !l) -> (!c, !n, !c, !n)
  return %q, %s, %p, %t, %r, %a : !c, !n, !c, !n, !l, !l
}

func.func @back(%q: !c {fp4.dims = ["M", "K"]}, %s: !n {fp4.dims = ["M", "K/16"]}, %a: !l {fp4.dims = ["M"]}) -> (!x, tensor<?x?xf32>) {
  %x = fp4.dequantize %q scaled %s amax %a {format = #nv, per_row} : (!c, !n, !l) -> !x
  %y = fp4.dequantize %q scaled %s amax %a {format = #nv, per_row} : (!c, !n, !l) -> tensor<?x?xf32>
  return %x, %y : !x, tensor<?x?xf32>
}

func.func @apart(%q: !c {fp4.dims = ["M", "K"]}, %s: !n {fp4.dims = ["M", "H/16"]}, %a: !l {fp4.dims = ["L"]}) -> !x {
  %x = fp4.dequantize %q scaled %s amax %a {format = #nv, per_row} : (!c, !n, !l) -> !x
  return %x : !x
}

func.func @bytes(%q: tensor<?x?xf8E5M2> {fp4.dims = ["M", "K"]}, %s: tensor<?x?xf8E8M0FNU> {fp4.dims = ["M", "K/32"]}) -> !x {
  %x = fp4.dequantize %q scaled %s {format = #fp4.format<mxfp8_e5m2>} : (tensor<?x?xf8E5M2>, tensor<?x?xf8E8M0FNU>) -> !x
  return %x : !x
}
