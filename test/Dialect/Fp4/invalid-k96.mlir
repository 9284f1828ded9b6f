// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Instructions of K = 96 (docs/reference/semantics.md). The first GEMM of each function verifies; the second differs in one
// place.

!lhs = !fp4.scaled<nvfp4, tensor<?x64xf4E2M1FN>,
                   tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<8x64xf4E2M1FN>,
                   tensor<8x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// matmul (C190)
func.func @dual(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>}
      : (!lhs, !rhs) -> tensor<?x8xbf16>
  // expected-error @+2 {{expects a GEMM that a route has, but no route has 'rhs2' for elements of 4 bits in instructions of K = 96}}
  // expected-note @+1 {{routes have that for: elements of 4 bits with scales (nvfp4, mxfp4); elements of 4 bits in instructions of K = 128 (nvfp4, mxfp4); elements of 8 bits}}
  %1 = fp4.matmul %a_scaled, %b_scaled with %b_scaled epilogue() {
  ^bb0(%x: f32, %y: f32):
    %z = arith.mulf %x, %y : f32
    fp4.yield %z : f32
  } {arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>} : (!lhs, !rhs, !rhs) -> tensor<?x8xf32>
  return
}

// -----

!lhs = !fp4.scaled<nvfp4, tensor<?x64xf4E2M1FN>,
                   tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<8x64xf4E2M1FN>,
                   tensor<8x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!lhs2 = !fp4.scaled<mxfp8_e4m3, tensor<?x64xf8E4M3FN>,
                    tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp8_e4m3, tensor<8x64xf8E4M3FN>,
                    tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// matmul (C190)
func.func @wide(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %c: tensor<?x64xf8E4M3FN>, %sc: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %d: tensor<8x64xf8E4M3FN>, %sd: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>}
      : (!lhs, !rhs) -> tensor<?x8xbf16>
  %c_scaled = fp4.scaled %c, %sc : !lhs2
  %d_scaled = fp4.scaled %d, %sd : !rhs2
  // expected-error @+2 {{expects a GEMM that a route has, but no route multiplies a lhs of mxfp8_e4m3 and a rhs of mxfp8_e4m3 with arithmetic tensor_core_k96}}
  // expected-note @+1 {{nearest operands that routes multiply, of one format or of two of OCP MX: elements of 4 bits in instructions of K = 96 (nvfp4, mxfp4)}}
  %1 = fp4.matmul %c_scaled, %d_scaled {arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>}
      : (!lhs2, !rhs2) -> tensor<?x8xbf16>
  return
}

// -----

!tiled = tensor<8x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<8x512xf4E2M1FN>, !tiled>
// matmul (C312)
func.func @split(%a: tensor<8x512xf4E2M1FN>, %s: !tiled) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled
      {work = #fp4.work<split_k = 1>, arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>}
      : (!operand, !operand) -> tensor<8x8xf32>
  // expected-error @+2 {{expects no 'split_k' with arithmetic tensor_core_k96}}
  // expected-note @+1 {{leave 'arithmetic' out, and instructions have K = 64}}
  %1 = fp4.matmul %a_scaled, %a_scaled
      {work = #fp4.work<split_k = 2>, arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>}
      : (!operand, !operand) -> tensor<8x8xf32>
  return
}
