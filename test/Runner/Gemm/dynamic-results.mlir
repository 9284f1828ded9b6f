// One library for layers of any M, N and K that end in codes: GEMMs that quantize their elements, give their amax,
// or both, for the next GEMM of the layer.

// RUN: fp4-runner %s --emit=so --ptxas=none -o %t.so
// RUN: fp4-run %t.so --device=sim --function=mlp --dim M=70 --dim N=96 --dim K=288 --dim H=72 --check=strict --policy=random | FileCheck %s --check-prefixes=FUSED,CHECK
// RUN: fp4-run %t.so --device=sim --function=mlp --dim M=1 --dim N=32 --dim K=32 --dim H=8 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=mlp --dim M=257 --dim N=352 --dim K=64 --dim H=136 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=linear --dim M=130 --dim N=160 --dim K=96 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=gated --dim M=130 --dim N=224 --dim K=64 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=maximum --dim M=2 --dim N=72 --dim K=64 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=columns --dim N=72 --dim K=64 --check=strict --policy=random | FileCheck %s
// FUSED: kernels 3 launched
// CHECK: equals the {{.*}}, bit for bit
// CHECK-NOT: differs
// CHECK: hazards {{.*}}none (strict check)

// RUN: not fp4-run %t.so --device=sim --function=linear --dim M=70 --dim N=80 --dim K=96 2>&1 | FileCheck %s --check-prefix=UNIT
// UNIT: error: rows of operand 'rhs' of the matmul at dynamic-results.mlir:{{[0-9]+}}:{{[0-9]+}} must be 96, but got 80
// UNIT: note: rows of the result begin at multiples of 16 bytes; pad rhs with rows of zeros to a multiple of 32

!x = tensor<?x?xbf16>
!c = tensor<?x?xf4E2M1FN>
!nt = tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!et = tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!es = tensor<?x?xf8E8M0FNU>
#mx = #fp4.format<mxfp4>
#nv = #fp4.format<nvfp4>
#floor = #fp4.recipe<ocp_floor>

!operand = !fp4.scaled<mxfp4, !c, !et>
// The codes of a hidden layer are the lhs of the next GEMM; nothing of it is in memory as bf16.
func.func @mlp(%x: !x {fp4.dims = ["M", "K"]}, %w: !c {fp4.dims = ["N", "K"]}, %sw: !et {fp4.dims = ["N", "K/32"]},
               %v: !c {fp4.dims = ["H", "N"]}, %sv: !et {fp4.dims = ["H", "N/32"]}) -> !x {
  %qx, %sx = fp4.quantize %x {format = #mx, recipe = #floor} : (!x) -> (!c, !et)
  %qx_scaled = fp4.scaled %qx, %sx : !operand
  %w_scaled = fp4.scaled %w, %sw : !operand
  %h = fp4.matmul %qx_scaled, %w_scaled {epilogue = #fp4.epilogue<relu>}
      : (!operand, !operand) -> !x
  %qh, %sh = fp4.quantize %h {format = #mx, recipe = #floor} : (!x) -> (!c, !et)
  %qh_scaled = fp4.scaled %qh, %sh : !operand
  %v_scaled = fp4.scaled %v, %sv : !operand
  %y = fp4.matmul %qh_scaled, %v_scaled : (!operand, !operand) -> !x
  return %y : !x
}

!operand2 = !fp4.scaled<nvfp4, !c, !nt>
// Codes with a tensor scale that was calibrated, beside the elements and the amax of the next call.
func.func @linear(%a: !c {fp4.dims = ["M", "K"]}, %sa: !nt {fp4.dims = ["M", "K/16"]}, %b: !c {fp4.dims = ["N", "K"]},
                  %sb: !nt {fp4.dims = ["N", "K/16"]}, %amax: tensor<f32>) -> (!x, !c, tensor<?x?xf8E4M3FN>, tensor<f32>) {
  %a_scaled = fp4.scaled %a, %sa : !operand2
  %b_scaled = fp4.scaled %b, %sb : !operand2
  %y, %q, %s, %m = fp4.matmul %a_scaled, %b_scaled epilogue(%amax) {
  ^bb0(%sum: f32, %amax_in: f32):
    %r = arith.truncf %sum : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %r amax %amax_in {recipe = #fp4.recipe<transformer_engine>}
        : (bf16, f32) -> (f4E2M1FN, f8E4M3FN)
    %amax_out = fp4.epilogue_amax %r : bf16 -> f32
    fp4.yield %r, %code, %scale, %amax_out : bf16, f4E2M1FN, f8E4M3FN, f32
  } : (!operand2, !operand2, tensor<f32>) -> (!x, !c, tensor<?x?xf8E4M3FN>, tensor<f32>)
  return %y, %q, %s, %m : !x, !c, tensor<?x?xf8E4M3FN>, tensor<f32>
}

// A gated unit: a dual GEMM becomes codes whose scales are tiled. Scales of columns behind the last are not 0.
func.func @gated(%a: !c {fp4.dims = ["M", "K"]}, %sa: !nt {fp4.dims = ["M", "K/16"]}, %b: !c {fp4.dims = ["N", "K"]},
                 %sb: !nt {fp4.dims = ["N", "K/16"]}, %d: !c {fp4.dims = ["N", "K"]}, %sd: !nt {fp4.dims = ["N", "K/16"]},
                 %amax: tensor<f32>) -> (!c, !nt, tensor<f32>) {
  %a_scaled = fp4.scaled %a, %sa : !operand2
  %b_scaled = fp4.scaled %b, %sb : !operand2
  %d_scaled = fp4.scaled %d, %sd : !operand2
  %q, %s, %m = fp4.matmul %a_scaled, %b_scaled with %d_scaled epilogue(%amax) {
  ^bb0(%x: f32, %y: f32, %amax_in: f32):
    %p = arith.mulf %x, %y : f32
    %c = arith.constant 8.0 : f32
    %s = arith.addf %p, %c : f32
    %r = arith.truncf %s : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %r amax %amax_in {recipe = #fp4.recipe<transformer_engine>}
        : (bf16, f32) -> (f4E2M1FN, f8E4M3FN)
    %amax_out = fp4.epilogue_amax %r : bf16 -> f32
    fp4.yield %code, %scale, %amax_out : f4E2M1FN, f8E4M3FN, f32
  } : (!operand2, !operand2, !operand2, tensor<f32>) -> (!c, !nt, tensor<f32>)
  return %q, %s, %m : !c, !nt, tensor<f32>
}

// Columns of an amax are no whole part of a tile, and those behind the last have the largest element.
func.func @maximum(%a: !c {fp4.dims = ["M", "K"]}, %sa: !nt {fp4.dims = ["M", "K/16"]}, %b: !c {fp4.dims = ["N", "K"]},
                   %sb: !nt {fp4.dims = ["N", "K/16"]}) -> (!x, tensor<f32>) {
  %a_scaled = fp4.scaled %a, %sa : !operand2
  %b_scaled = fp4.scaled %b, %sb : !operand2
  %y, %m = fp4.matmul %a_scaled, %b_scaled epilogue() {
  ^bb0(%x: f32):
    %one = arith.constant 1.0 : f32
    %abs = math.absf %x : f32
    %sum = arith.addf %abs, %one : f32
    %z = arith.divf %one, %sum : f32
    %r = arith.truncf %z : f32 to bf16
    %amax_out = fp4.epilogue_amax %r : bf16 -> f32
    fp4.yield %r, %amax_out : bf16, f32
  } : (!operand2, !operand2) -> (!x, tensor<f32>)
  return %y, %m : !x, tensor<f32>
}

// With static rows the columns are quantized too: they are rows of their codes, of any number.
!a = tensor<96x?xf4E2M1FN>
!sa = tensor<96x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, !a, !sa>
func.func @columns(%a: !a {fp4.dims = ["", "K"]}, %sa: !sa {fp4.dims = ["", "K/16"]}, %b: !c {fp4.dims = ["N", "K"]},
                   %sb: !nt {fp4.dims = ["N", "K/16"]}) -> (tensor<?x96xf4E2M1FN>, tensor<?x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !operand2
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !operand2) -> tensor<96x?xbf16>
  %q, %s = fp4.quantize %y {format = #mx, recipe = #floor, outputs = #fp4.outputs<columnwise>}
      : (tensor<96x?xbf16>) -> (tensor<?x96xf4E2M1FN>, tensor<?x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<?x96xf4E2M1FN>, tensor<?x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
}
