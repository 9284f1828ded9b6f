// Conditions and integers of 32 bits have steps in an epilogue region; numbers of other integer types have none.

// RUN: fp4-opt %s -split-input-file -verify-diagnostics

!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !s>
func.func @condition(%a: tensor<256x256xf4E2M1FN>, %s: !s) -> tensor<256x256xf32> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %c = arith.constant true
    %n = arith.uitofp %c : i1 to f32
    %l = arith.addf %x, %n : f32
    fp4.yield %l : f32
  } : (!operand, !operand) -> tensor<256x256xf32>
  return %y : tensor<256x256xf32>
}

// -----

!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !s>
func.func @integer(%a: tensor<256x256xf4E2M1FN>, %s: !s) -> tensor<256x256xf32> {
  %a_scaled = fp4.scaled %a, %s : !operand
  // matmul (C12)
  // expected-error @+2 {{epilogue region must be elementwise, but 'arith.fptosi' has no elementwise step; these have one: arith.addf}}
  // expected-note @+1 {{compute the rest outside of the operation; fp4-fuse puts into the region what it can}}
  %y = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %c = arith.fptosi %x : f32 to i64
    %n = arith.sitofp %c : i64 to f32
    %l = arith.addf %x, %n : f32
    fp4.yield %l : f32
  } : (!operand, !operand) -> tensor<256x256xf32>
  return %y : tensor<256x256xf32>
}
