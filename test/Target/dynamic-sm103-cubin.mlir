// A GEMM of FP8 with f32 scales for any sizes spills nothing on sm_103a where its epilogue region has operations.
// Not told that an SM has one CTA, ptxas kept to 80 registers for three and spilled 12 bytes (16 of stack).
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_103a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s --implicit-check-not="spill {{[1-9]}}"

// CHECK-COUNT-4: gelu_matmul_{{[0-3]}} kernel: registers {{[0-9]+}}, spill 0, stack 0

!a = tensor<?x512xf8E4M3FN>
!s = tensor<?x4xf32>
!operand = !fp4.scaled<fp8_block128, !a, !s>
func.func @gelu(%a: !a, %s: !s, %b: !a, %t: !s) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %b_scaled = fp4.scaled %b, %t : !operand
  %y = fp4.matmul %a_scaled, %b_scaled epilogue() {
  ^bb0(%x: f32):
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %root = arith.constant 0.7978845608 : f32
    %cube = arith.constant 0.0356774081 : f32
    %square = arith.mulf %x, %x : f32
    %slope = arith.mulf %square, %cube : f32
    %sum = arith.addf %slope, %root : f32
    %inner = arith.mulf %sum, %x : f32
    %tanh = math.tanh %inner : f32
    %above = arith.addf %tanh, %one : f32
    %halved = arith.mulf %x, %half : f32
    %act = arith.mulf %above, %halved : f32
    %z = arith.truncf %act : f32 to bf16
    fp4.yield %z : bf16
  } : (!operand, !operand) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}
