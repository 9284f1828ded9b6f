// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Formats that go together in a GEMM (docs/reference/semantics.md). The first GEMM of each function verifies; the
// second differs in one place.

// blockscaled_matmul (C190)
func.func @wide_weights(%a: tensor<?x64xbf16>, %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %d: tensor<8x64xf8E4M3FN>) {
  %0 = fp4.blockscaled_matmul %a, %b scaled %sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xbf16>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  // expected-error @+2 {{expects a GEMM that a route has, but no route multiplies a lhs of 16-bit floats and a rhs of mxfp8_e4m3}}
  // expected-note @+1 {{nearest operands that routes multiply, of one format or of two of OCP MX: elements of 8 bits with scales, or of 8 and 4 (mxfp4, mxfp8); elements of 6 bits (mxfp4, mxfp6, mxfp8); bf16 and f16 without scales and weights with scales (nvfp4, mxfp4)}}
  %1 = fp4.blockscaled_matmul %a, %d scaled %sb {format = #fp4.format<mxfp8_e4m3>}
      : (tensor<?x64xbf16>, tensor<8x64xf8E4M3FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  return
}

// -----

// blockscaled_matmul (C190)
func.func @scales_of_two_types(%a: tensor<?x128xf8E4M3FN>, %sa: tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<8x128xf4E2M1FN>, %sb: tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %sn: tensor<8x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp8_e4m3>, rhs_format = #fp4.format<mxfp4>}
      : (tensor<?x128xf8E4M3FN>, tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x128xf4E2M1FN>, tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xbf16>
  // expected-error @+2 {{expects a GEMM that a route has, but no route multiplies a lhs of mxfp8_e4m3 and a rhs of nvfp4}}
  // expected-note @+1 {{nearest operands that routes multiply, of one format or of two of OCP MX: elements of 4 bits with scales (nvfp4, mxfp4); elements of 8 bits}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sn {format = #fp4.format<mxfp8_e4m3>, rhs_format = #fp4.format<nvfp4>}
      : (tensor<?x128xf8E4M3FN>, tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x128xf4E2M1FN>, tensor<8x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xbf16>
  return
}

// -----

// blockscaled_matmul (C11)
func.func @format_of_floats(%a: tensor<?x64xbf16>, %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.blockscaled_matmul %a, %b scaled %sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xbf16>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  // expected-error @+2 {{expects no attribute 'rhs_format' beside a lhs without scales}}
  // expected-note @+1 {{leave it out: 'format' is that of rhs}}
  %1 = fp4.blockscaled_matmul %a, %b scaled %sb {format = #fp4.format<mxfp4>, rhs_format = #fp4.format<mxfp4>}
      : (tensor<?x64xbf16>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  return
}

// -----

// blockscaled_matmul (C1)
func.func @elements_of_rhs(%a: tensor<?x128xf8E4M3FN>, %sa: tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<8x128xf4E2M1FN>, %sb: tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %c: tensor<8x128xf8E4M3FN>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp8_e4m3>, rhs_format = #fp4.format<mxfp4>}
      : (tensor<?x128xf8E4M3FN>, tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x128xf4E2M1FN>, tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xbf16>
  // expected-error @+2 {{operand 'rhs' must have elements of type f4E2M1FN, but got 'tensor<8x128xf8E4M3FN>'}}
  // expected-note @+1 {{the element type is that of format mxfp4}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %c scaled %sb {format = #fp4.format<mxfp8_e4m3>, rhs_format = #fp4.format<mxfp4>}
      : (tensor<?x128xf8E4M3FN>, tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x128xf8E4M3FN>, tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xbf16>
  return
}

// -----

// blockscaled_matmul (C191)
func.func @spread(%a: tensor<?x128xf8E4M3FN>, %sa: tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<8x128xf4E2M1FN>, %sb: tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %c: tensor<?x96xf8E4M3FN>, %sc: tensor<?x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %d: tensor<8x96xf4E2M1FN>, %sd: tensor<8x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp8_e4m3>, rhs_format = #fp4.format<mxfp4>}
      : (tensor<?x128xf8E4M3FN>, tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x128xf4E2M1FN>, tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xbf16>
  // expected-error @+2 {{operand 'rhs' must have a dimension 1 that is a multiple of 128, but got 96}}
  // expected-note @+1 {{beside an operand of 8 bits, elements of 4 bits are loaded 128 at a time; pad the contraction axis of both operands with zeros, or quantize both to one format}}
  %1 = fp4.blockscaled_matmul %c scaled %sc, %d scaled %sd {format = #fp4.format<mxfp8_e4m3>, rhs_format = #fp4.format<mxfp4>}
      : (tensor<?x96xf8E4M3FN>, tensor<?x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x96xf4E2M1FN>, tensor<8x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xbf16>
  return
}

// -----

// blockscaled_matmul (C190)
func.func @threads(%a: tensor<4x64xf8E4M3FN>, %sa: tensor<4x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<8x64xf8E4M3FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %x: tensor<4x64xf4E2M1FN>, %y: tensor<8x64xf4E2M1FN>) {
  %0 = fp4.blockscaled_matmul %x scaled %sa, %y scaled %sb {format = #fp4.format<mxfp4>, arithmetic = #fp4.matmul_arithmetic<fma>}
      : (tensor<4x64xf4E2M1FN>, tensor<4x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<4x8xf32>
  // expected-error @+2 {{expects a GEMM that a route has, but no route multiplies a lhs of mxfp8_e4m3 and a rhs of mxfp8_e4m3 with arithmetic fma}}
  // expected-note @+1 {{nearest operands that routes multiply, of one format or of two of OCP MX: elements of 8 bits with scales, or of 8 and 4 (mxfp4, mxfp8); elements of 6 bits (mxfp4, mxfp6, mxfp8); few rows with arithmetic fma (nvfp4, mxfp4)}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp8_e4m3>, arithmetic = #fp4.matmul_arithmetic<fma>}
      : (tensor<4x64xf8E4M3FN>, tensor<4x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf8E4M3FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<4x8xf32>
  return
}
