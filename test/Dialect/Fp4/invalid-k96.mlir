// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Instructions of K = 96 (docs/reference/semantics.md). The first GEMM of each function verifies; the second differs in one
// place.

// blockscaled_matmul (C312)
func.func @split(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<nvfp4>, arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xbf16>
  // expected-error @+2 {{expects neither 'split_k' nor operand 'rhs2' with arithmetic tensor_core_k96}}
  // expected-note @+1 {{leave 'arithmetic' out, and instructions have K = 64}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb with %b scaled %sb epilogue() {
  ^bb0(%x: f32, %y: f32):
    %z = arith.mulf %x, %y : f32
    fp4.yield %z : f32
  } {format = #fp4.format<nvfp4>, arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  return
}

// -----

// blockscaled_matmul (C312)
func.func @wide(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %c: tensor<?x64xf8E4M3FN>, %sc: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %d: tensor<8x64xf8E4M3FN>, %sd: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<nvfp4>, arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xbf16>
  // expected-error @+2 {{expects operands of nvfp4 or mxfp4 with scales for arithmetic tensor_core_k96, but got others}}
  // expected-note @+1 {{leave 'arithmetic' out, and instructions have K = 64}}
  %1 = fp4.blockscaled_matmul %c scaled %sc, %d scaled %sd {format = #fp4.format<mxfp8_e4m3>, arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>}
      : (tensor<?x64xf8E4M3FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf8E4M3FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xbf16>
  return
}
