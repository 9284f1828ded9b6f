// Kernels of libraries for any sizes spill nothing on sm_100a. Threads that add the sums of k tiles in registers read 64
// columns at a time: with 32, ptxas moved so many of them forward that the sizes had no room. Results of f32 are stored
// as words, because the pairs of floats that LLVM makes kept sums in memory. A gate with biases has 240 registers.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_100a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s --implicit-check-not="spill {{[1-9]}}"

// CHECK-COUNT-4: any_matmul_{{[0-3]}} kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK-COUNT-4: floats_matmul_{{[0-3]}} kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK-COUNT-4: depth_matmul_{{[0-3]}} kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: few_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: gate_matmul_0 kernel: registers 168, spill 0, stack 0
// CHECK: weights_matmul_1 kernel: registers 128, spill 0, stack 0
// CHECK: known_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0

!a = tensor<?x?xf8E4M3FN>
!s = tensor<?x?xf32>
!operand = !fp4.scaled<fp8_block128, !a, !s>
func.func @any(%a: !a, %s: !s, %b: !a, %t: !s) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %b_scaled = fp4.scaled %b, %t : !operand
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand, !operand) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}
func.func @floats(%a: !a, %s: !s, %b: !a, %t: !s) -> tensor<?x?xf32> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %b_scaled = fp4.scaled %b, %t : !operand
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand, !operand) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
!d = tensor<?x512xf8E4M3FN>
!e = tensor<?x4xf32>
!operand2 = !fp4.scaled<fp8_block128, !d, !e>
func.func @depth(%a: !d, %s: !e, %b: !d, %t: !e) -> tensor<?x?xf32> {
  %a_scaled = fp4.scaled %a, %s : !operand2
  %b_scaled = fp4.scaled %b, %t : !operand2
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand2, !operand2) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

!lhs = !fp4.scaled<fp8_block128, tensor<64x2880xf8E4M3FN>, tensor<64x23xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<23552x2880xf8E4M3FN>, tensor<184x23xf32>>
// The device has the rows of groups.
func.func @few(%a: tensor<64x2880xf8E4M3FN>, %sa: tensor<64x23xf32>, %b: tensor<23552x2880xf8E4M3FN>, %sb: tensor<184x23xf32>,
               %residual: tensor<64x2944xbf16>, %o: tensor<9xi64>) -> tensor<64x2944xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o epilogue(%residual) {
  ^bb0(%sum: f32, %c: bf16):
    %wide = arith.extf %c : bf16 to f32
    %added = arith.addf %sum, %wide : f32
    %z = arith.truncf %added : f32 to bf16
    fp4.yield %z : bf16
  } {work = #fp4.work<expected_rows = 8, unspecified_rows>}
      : (!lhs, !rhs, tensor<9xi64>, tensor<64x2944xbf16>) -> tensor<64x2944xbf16>
  return %y : tensor<64x2944xbf16>
}

!x = tensor<?x?xf4E2M1FN>
!q = tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand3 = !fp4.scaled<nvfp4, !x, !q>
func.func @gate(%x: !x, %sx: !q, %w: !x, %sw: !q, %left: tensor<1x?xbf16>, %right: tensor<1x?xbf16>, %v: !x, %sv: !q)
    -> tensor<?x?xbf16> {
  %x_scaled = fp4.scaled %x, %sx : !operand3
  %w_scaled = fp4.scaled %w, %sw : !operand3
  %v_scaled = fp4.scaled %v, %sv : !operand3
  %y = fp4.matmul %x_scaled, %w_scaled with %v_scaled epilogue(%left, %right) {
  ^bb0(%s: f32, %t: f32, %c: bf16, %d: bf16):
    %wide = arith.extf %c : bf16 to f32
    %more = arith.extf %d : bf16 to f32
    %gate = arith.addf %s, %wide : f32
    %up = arith.addf %t, %more : f32
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %gate : f32
    %exp = math.exp %minus : f32
    %below = arith.addf %exp, %one : f32
    %silu = arith.divf %gate, %below : f32
    %gated = arith.mulf %silu, %up : f32
    %z = arith.truncf %gated : f32 to bf16
    fp4.yield %z : bf16
  } : (!operand3, !operand3, !operand3, tensor<1x?xbf16>, tensor<1x?xbf16>) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

// Roles of 40 registers compute the numbers of tiles themselves.
func.func @weights(%a: tensor<?x?xbf16>, %w: !x, %sw: !q) -> tensor<?x?xbf16> {
  %w_scaled = fp4.scaled %w, %sw : !operand3
  %y = fp4.matmul %a, %w_scaled : (tensor<?x?xbf16>, !operand3) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

// A thread that has the limit of a group's rows and its factor holds 192 columns.
!l = tensor<512x7168xf4E2M1FN>
!m = tensor<57344x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!n = tensor<32768x7168xf4E2M1FN>
!o = tensor<1835008x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs2 = !fp4.scaled<mxfp4, !l, !m>
!rhs2 = !fp4.scaled<mxfp4, !n, !o>
func.func @known(%a: !l, %sa: !m, %b: !n, %sb: !o, %alpha: tensor<8xf32>) -> tensor<512x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {work = #fp4.work<groups = [61, 67, 61, 67, 61, 67, 61, 67]>}
      : (!lhs2, !rhs2, tensor<8xf32>) -> tensor<512x4096xbf16>
  return %y : tensor<512x4096xbf16>
}
