// Kernels of libraries of FP8 for any M and N, and any K or one K, spill nothing. The loading warp has the sizes in
// registers, for which it has 40 instead of the 24 beside known sizes; only the largest tiles whose threads load scales
// leave it 24.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s --implicit-check-not="spill {{[1-9]}}"

// CHECK-COUNT-11: any_matmul_{{[0-9]+}} kernel: registers {{168|248}}, spill 0, stack 0
// CHECK-COUNT-11: biased_matmul_{{[0-9]+}} kernel: registers {{168|248}}, spill 0, stack 0
// CHECK-COUNT-11: rows_matmul_{{[0-9]+}} kernel: registers {{168|248}}, spill 0, stack 0
// CHECK-COUNT-2: depth_matmul_{{[0-9]+}} kernel: registers 168, spill 0, stack 0

!a = tensor<?x?xf8E4M3FN>
!s = tensor<?x?xf32>
!operand = !fp4.scaled<fp8_block128, !a, !s>
func.func @any(%a: !a, %s: !s, %b: !a, %t: !s) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %b_scaled = fp4.scaled %b, %t : !operand
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand, !operand) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

// The last sums of a tile are not promoted where its parts are stored, which took 64 registers more.
func.func @biased(%a: !a, %s: !s, %b: !a, %t: !s, %bias: tensor<1x?xbf16>) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %b_scaled = fp4.scaled %b, %t : !operand
  %y = fp4.matmul %a_scaled, %b_scaled epilogue(%bias) {
  ^bb0(%sum: f32, %c: bf16):
    %wide = arith.extf %c : bf16 to f32
    %biased = arith.addf %sum, %wide : f32
    %z = arith.truncf %biased : f32 to bf16
    fp4.yield %z : bf16
  } : (!operand, !operand, tensor<1x?xbf16>) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

// Each store of a tile has its place computed in front of it, which took a register for each otherwise.
func.func @rows(%a: !a, %s: !s, %b: !a, %t: !s, %factor: tensor<?x1xf32>) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %b_scaled = fp4.scaled %b, %t : !operand
  %y = fp4.matmul %a_scaled, %b_scaled epilogue(%factor) {
  ^bb0(%sum: f32, %f: f32):
    %scaled = arith.mulf %sum, %f : f32
    %z = arith.truncf %scaled : f32 to bf16
    fp4.yield %z : bf16
  } : (!operand, !operand, tensor<?x1xf32>) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

// With one K the largest tiles may leave through shared memory, with a warp that stores.
!d = tensor<?x1024xf8E4M3FN>
!e = tensor<?x8xf32>
!operand2 = !fp4.scaled<fp8_block128, !d, !e>
func.func @depth(%a: !d, %s: !e, %b: !d, %t: !e) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand2
  %b_scaled = fp4.scaled %b, %t : !operand2
  %y = fp4.matmul %a_scaled, %b_scaled
      {dispatch = [#fp4.case<any : tile_gemm, tile = [128, 192, 128], store = tma, wave_cost = [1, 1, 1]>, #fp4.case<any : tile_gemm, tile = [256, 128, 128], store = tma, wave_cost = [1, 1, 1]>]}
      : (!operand2, !operand2) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}
