// Kernels of libraries of MXFP4 for any sizes, of groups, and of 1024 rows spill nothing. With a pre-dequantized lhs, the
// loading warp has the sizes and the addresses of four tensor maps in 40 registers. Each role has the number of its tile for
// itself, which two roles of 208 and 48 registers could not share.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s --implicit-check-not="spill {{[1-9]}}"

// CHECK: any_matmul_2 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK-NEXT: any_convert_0
// CHECK-NEXT: any_matmul_3 kernel: registers 168, spill 0, stack 0
// CHECK: any_matmul_6 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: layer_matmul_2 kernel: registers 128, spill 0, stack 0
// CHECK: groups_matmul_0 kernel: registers 128, spill 0, stack 0
// CHECK: known_matmul_0 kernel: registers 128, spill 0, stack 0

!c = tensor<?x?xf4E2M1FN>
!e = tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<mxfp4, !c, !e>
func.func @any(%a: !c, %s: !e, %b: !c, %t: !e) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %b_scaled = fp4.scaled %b, %t : !operand
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand, !operand) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

// Each role computes the numbers of tiles itself and has the tables of a conversion while it converts: from the begin of the
// kernel to the last tile, these were up to 14 registers too many of the threads that apply GELU and add a residual.
!d = tensor<?x512xf4E2M1FN>
!f = tensor<?x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!operand2 = !fp4.scaled<mxfp4, !d, !f>
func.func @layer(%a: !d, %s: !f, %b: !d, %t: !f, %bias: tensor<1x?xbf16>, %residual: tensor<?x?xbf16>) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand2
  %b_scaled = fp4.scaled %b, %t : !operand2
  %y = fp4.matmul %a_scaled, %b_scaled epilogue(%bias, %residual) {
  ^bb0(%sum: f32, %c: bf16, %d: bf16):
    %v = arith.extf %c : bf16 to f32
    %w = arith.extf %d : bf16 to f32
    %x = arith.addf %sum, %v : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %root = arith.constant 0.7978845608 : f32
    %cube = arith.constant 0.0356774081 : f32
    %square = arith.mulf %x, %x : f32
    %slope = arith.mulf %square, %cube : f32
    %more = arith.addf %slope, %root : f32
    %inner = arith.mulf %more, %x : f32
    %tanh = math.tanh %inner : f32
    %above = arith.addf %tanh, %one : f32
    %halved = arith.mulf %x, %half : f32
    %act = arith.mulf %above, %halved : f32
    %e = arith.addf %act, %w : f32
    %z = arith.truncf %e : f32 to bf16
    fp4.yield %z : bf16
  } : (!operand2, !operand2, tensor<1x?xbf16>, tensor<?x?xbf16>) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

!g = tensor<4096x2880xf4E2M1FN>
!p = tensor<230400x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!h = tensor<23552x2880xf4E2M1FN>
!q = tensor<1059840x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!r = tensor<4096x2944xbf16>
!lhs = !fp4.scaled<nvfp4, !g, !p>
!rhs = !fp4.scaled<nvfp4, !h, !q>
func.func @groups(%a: !g, %s: !p, %b: !h, %t: !q, %bias: tensor<8x1x2944xbf16>, %residual: !r, %o: tensor<9xi64>) -> !r {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o epilogue(%bias, %residual) {
  ^bb0(%sum: f32, %c: bf16, %d: bf16):
    %v = arith.extf %c : bf16 to f32
    %w = arith.extf %d : bf16 to f32
    %x = arith.addf %sum, %v : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %root = arith.constant 0.7978845608 : f32
    %cube = arith.constant 0.0356774081 : f32
    %square = arith.mulf %x, %x : f32
    %slope = arith.mulf %square, %cube : f32
    %more = arith.addf %slope, %root : f32
    %inner = arith.mulf %more, %x : f32
    %tanh = math.tanh %inner : f32
    %above = arith.addf %tanh, %one : f32
    %halved = arith.mulf %x, %half : f32
    %act = arith.mulf %above, %halved : f32
    %e = arith.addf %act, %w : f32
    %z = arith.truncf %e : f32 to bf16
    fp4.yield %z : bf16
  } {work = #fp4.work<expected_rows = 512, unspecified_rows>}
      : (!lhs, !rhs, tensor<9xi64>, tensor<8x1x2944xbf16>, !r) -> !r
  return %y : !r
}

!k = tensor<1024x1024xf4E2M1FN>
!l = tensor<2048x1024xf4E2M1FN>
!u = tensor<1024x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!v = tensor<2048x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs2 = !fp4.scaled<mxfp4, !k, !u>
!rhs2 = !fp4.scaled<mxfp4, !l, !v>
func.func @known(%a: !k, %s: !u, %b: !l, %t: !v) -> tensor<1024x2048xbf16> {
  %a_scaled = fp4.scaled %a, %s : !lhs2
  %b_scaled = fp4.scaled %b, %t : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs2, !rhs2) -> tensor<1024x2048xbf16>
  return %y : tensor<1024x2048xbf16>
}
