// ptxas accepts GEMMs with results of e4m3 without spills: with every sum of a thread in registers at a time, with
// staged rows of 64 and of 32 bytes, with swapped operands, and with accumulators in registers.
// REQUIRES: ptxas
// RUN: fp4-opt %s --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py | FileCheck %s
// RUN: sed 's/{fp4.plan = .*>}//; s/, fp4.plan = .*>}/}/' %s > %t.mlir
// RUN: fp4-opt %t.mlir --fp4-set-target=target=sm_90a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s
// RUN: fp4-opt %t.mlir --fp4-set-target=target=sm_120a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s

// CHECK: wide_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: pair_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: narrow_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: few_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0

#tiled = #fp4.scale_layout<tiled_128x4>
!a = tensor<512x1024xf4E2M1FN>
!sa = tensor<512x64xf8E4M3FN, #tiled>
!v = tensor<40x1024xf4E2M1FN>
!sv = tensor<40x64xf8E4M3FN, #tiled>

!operand = !fp4.scaled<nvfp4, !a, !sa>
func.func @wide(%a: !a, %sa: !sa, %b: !a, %sb: !sa, %alpha: tensor<f32>) -> tensor<512x512xf8E4M3FN> {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 256]>}
      : (!operand, !operand, tensor<f32>) -> tensor<512x512xf8E4M3FN>
  return %y : tensor<512x512xf8E4M3FN>
}
func.func @pair(%a: !a, %sa: !sa, %b: !a, %sb: !sa, %alpha: tensor<f32>) -> tensor<512x512xf8E4M3FN> {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 256, 256], store = tma>}
      : (!operand, !operand, tensor<f32>) -> tensor<512x512xf8E4M3FN>
  return %y : tensor<512x512xf8E4M3FN>
}
func.func @narrow(%a: !a, %sa: !sa, %b: !a, %sb: !sa, %alpha: tensor<f32>) -> tensor<512x512xf8E4M3FN> {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 96, 256], store = tma>}
      : (!operand, !operand, tensor<f32>) -> tensor<512x512xf8E4M3FN>
  return %y : tensor<512x512xf8E4M3FN>
}
!lhs = !fp4.scaled<nvfp4, !v, !sv>
func.func @few(%a: !v, %sa: !sv, %b: !a, %sb: !sa, %alpha: tensor<f32>) -> tensor<40x512xf8E4M3FN> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 64, 256]>}
      : (!lhs, !operand, tensor<f32>) -> tensor<40x512xf8E4M3FN>
  return %y : tensor<40x512xf8E4M3FN>
}
