// ptxas accepts GEMMs of FP8 with f32 scales that are dual, or quantize, for sm_90a without spills: with the sums of two GEMMs
// and the elements that threads quantize beside them, and with two parts of a tile, one of which threads quantize.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | tee %t | FileCheck %s

// CHECK: tall_matmul_0 kernel: registers 168, spill 0, stack 0
// CHECK: gate_matmul_0 kernel: registers 168, spill 0, stack 0

!x = tensor<4096x2048xf8E4M3FN>
!sx = tensor<4096x16xf32>
!sw = tensor<32x16xf32>
!lhs = !fp4.scaled<fp8_block128, !x, !sx>
!rhs = !fp4.scaled<fp8_block128, !x, !sw>
!codes = tensor<4096x4096xf8E4M3FN>
!scales = tensor<4096x32xf32>
func.func @tall(%x: !x, %sx: !sx, %w: !x, %sw: !sw) -> (!codes, !scales) {
  %x_scaled = fp4.scaled %x, %sx : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %c, %s = fp4.matmul %x_scaled, %w_scaled epilogue() {
  ^bb0(%sum: f32):
    %z = arith.truncf %sum : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z {recipe = #fp4.recipe<fp8_deepgemm>} : (bf16) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128]>} : (!lhs, !rhs) -> (!codes, !scales)
  return %c, %s : !codes, !scales
}
func.func @gate(%x: !x, %sx: !sx, %w: !x, %sw: !sw, %v: !x, %sv: !sw) -> (!codes, !scales) {
  %x_scaled = fp4.scaled %x, %sx : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %v_scaled = fp4.scaled %v, %sv : !rhs
  %c, %s = fp4.matmul %x_scaled, %w_scaled with %v_scaled epilogue() {
  ^bb0(%gate: f32, %up: f32):
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %gate : f32
    %exp = math.exp %minus : f32
    %below = arith.addf %exp, %one : f32
    %silu = arith.divf %gate, %below : f32
    %gated = arith.mulf %silu, %up : f32
    %z = arith.truncf %gated : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z {recipe = #fp4.recipe<fp8_deepgemm>} : (bf16) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } : (!lhs, !rhs, !rhs) -> (!codes, !scales)
  return %c, %s : !codes, !scales
}
