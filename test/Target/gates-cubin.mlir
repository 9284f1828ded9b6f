// ptxas accepts gates of groups for sm_90a without spills. The warps that convert both operands of a k tile have places
// of the group besides: with the 48 registers of those that convert one they spilled in every k tile.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py | FileCheck %s

// CHECK: gates_matmul_0 kernel: registers 128, spill 0, stack 0
// CHECK: biased_matmul_0 kernel: registers 128, spill 0, stack 0

!x = tensor<64x2880xf4E2M1FN>
!sx = tensor<5888x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!w = tensor<5888x2880xf4E2M1FN>
!sw = tensor<135424x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!y = tensor<64x2944xbf16>
!lhs = !fp4.scaled<mxfp4, !x, !sx>
!rhs = !fp4.scaled<mxfp4, !w, !sw>
func.func @gates(%x: !x, %sx: !sx, %w: !w, %sw: !sw, %v: !w, %sv: !sw) -> !y {
  %x_scaled = fp4.scaled %x, %sx : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %v_scaled = fp4.scaled %v, %sv : !rhs
  %y = fp4.matmul %x_scaled, %w_scaled with %v_scaled epilogue() {
  ^bb0(%s: f32, %t: f32):
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %s : f32
    %exp = math.exp %minus : f32
    %below = arith.addf %exp, %one : f32
    %silu = arith.divf %s, %below : f32
    %gated = arith.mulf %silu, %t : f32
    %z = arith.truncf %gated : f32 to bf16
    fp4.yield %z : bf16
  } {work = #fp4.work<groups = [30, 34]>} : (!lhs, !rhs, !rhs) -> !y
  return %y : !y
}

func.func @biased(%x: !x, %sx: !sx, %w: !w, %sw: !sw, %v: !w, %sv: !sw, %a: tensor<2xf32>, %b: tensor<2xf32>,
                  %bias: tensor<2x1x2944xbf16>) -> !y {
  %x_scaled = fp4.scaled %x, %sx : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %v_scaled = fp4.scaled %v, %sv : !rhs
  %y = fp4.matmul %x_scaled, %w_scaled with %v_scaled alpha %a alpha2 %b epilogue(%bias) {
  ^bb0(%s: f32, %t: f32, %c: bf16):
    %wide = arith.extf %c : bf16 to f32
    %up = arith.addf %t, %wide : f32
    %gated = arith.mulf %s, %up : f32
    %z = arith.truncf %gated : f32 to bf16
    fp4.yield %z : bf16
  } {work = #fp4.work<groups = [30, 34]>}
      : (!lhs, !rhs, !rhs, tensor<2xf32>, tensor<2xf32>, tensor<2x1x2944xbf16>) -> !y
  return %y : !y
}
