// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Formats that go together in a GEMM (docs/reference/semantics.md). The first GEMM of each function verifies; the
// second differs in one place.

!rhs = !fp4.scaled<mxfp4, tensor<8x64xf4E2M1FN>,
                   tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp8_e4m3, tensor<8x64xf8E4M3FN>,
                    tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// matmul (C190)
func.func @wide_weights(%a: tensor<?x64xbf16>, %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %d: tensor<8x64xf8E4M3FN>) {
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a, %b_scaled : (tensor<?x64xbf16>, !rhs) -> tensor<?x8xf32>
  %d_scaled = fp4.scaled %d, %sb : !rhs2
  // expected-error @+2 {{expects a GEMM that a route has, but no route multiplies a lhs of 16-bit floats and a rhs of mxfp8_e4m3}}
  // expected-note @+1 {{nearest operands that routes multiply, of one format or of two of OCP MX: elements of 8 bits with scales, or of 8 and 4 (mxfp4, mxfp8); elements of 6 bits (mxfp4, mxfp6, mxfp8); bf16 and f16 without scales and weights with scales (nvfp4, mxfp4)}}
  %1 = fp4.matmul %a, %d_scaled : (tensor<?x64xbf16>, !rhs2) -> tensor<?x8xf32>
  return
}

// -----

!lhs = !fp4.scaled<mxfp8_e4m3, tensor<?x128xf8E4M3FN>,
                   tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<8x128xf4E2M1FN>,
                   tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<nvfp4, tensor<8x128xf4E2M1FN>,
                    tensor<8x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// matmul (C190)
func.func @scales_of_two_types(%a: tensor<?x128xf8E4M3FN>, %sa: tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<8x128xf4E2M1FN>, %sb: tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %sn: tensor<8x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x8xbf16>
  %b_scaled2 = fp4.scaled %b, %sn : !rhs2
  // expected-error @+2 {{expects a GEMM that a route has, but no route multiplies a lhs of mxfp8_e4m3 and a rhs of nvfp4}}
  // expected-note @+1 {{nearest operands that routes multiply, of one format or of two of OCP MX: elements of 4 bits with scales (nvfp4, mxfp4); elements of 8 bits}}
  %1 = fp4.matmul %a_scaled, %b_scaled2 : (!lhs, !rhs2) -> tensor<?x8xbf16>
  return
}

// -----

!lhs = !fp4.scaled<mxfp8_e4m3, tensor<?x128xf8E4M3FN>,
                   tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<8x128xf4E2M1FN>,
                   tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp4, tensor<8x128xf8E4M3FN>,
                    tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// scaled (C1)
func.func @elements_of_rhs(%a: tensor<?x128xf8E4M3FN>, %sa: tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<8x128xf4E2M1FN>, %sb: tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %c: tensor<8x128xf8E4M3FN>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x8xbf16>
  // expected-error @+2 {{operand 'data' must have elements of type f4E2M1FN, but got 'tensor<8x128xf8E4M3FN>'}}
  // expected-note @+1 {{the element type is that of format mxfp4}}
  %c_scaled = fp4.scaled %c, %sb : !rhs2
  %1 = fp4.matmul %a_scaled, %c_scaled : (!lhs, !rhs2) -> tensor<?x8xbf16>
  return
}

// -----

!lhs = !fp4.scaled<mxfp8_e4m3, tensor<?x128xf8E4M3FN>,
                   tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<8x128xf4E2M1FN>,
                   tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!lhs2 = !fp4.scaled<mxfp8_e4m3, tensor<?x96xf8E4M3FN>,
                    tensor<?x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp4, tensor<8x96xf4E2M1FN>,
                    tensor<8x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// matmul (C191)
func.func @spread(%a: tensor<?x128xf8E4M3FN>, %sa: tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<8x128xf4E2M1FN>, %sb: tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %c: tensor<?x96xf8E4M3FN>, %sc: tensor<?x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %d: tensor<8x96xf4E2M1FN>, %sd: tensor<8x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x8xbf16>
  %c_scaled = fp4.scaled %c, %sc : !lhs2
  %d_scaled = fp4.scaled %d, %sd : !rhs2
  // expected-error @+2 {{operand 'rhs' must have a dimension 1 that is a multiple of 128, but got 96}}
  // expected-note @+1 {{beside an operand of 8 bits, elements of 4 bits are loaded 128 at a time; pad the contraction axis of both operands with zeros, or quantize both to one format}}
  %1 = fp4.matmul %c_scaled, %d_scaled : (!lhs2, !rhs2) -> tensor<?x8xbf16>
  return
}

// -----

!lhs = !fp4.scaled<mxfp4, tensor<4x64xf4E2M1FN>,
                   tensor<4x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<8x64xf4E2M1FN>,
                   tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!lhs2 = !fp4.scaled<mxfp8_e4m3, tensor<4x64xf8E4M3FN>,
                    tensor<4x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp8_e4m3, tensor<8x64xf8E4M3FN>,
                    tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// matmul (C190)
func.func @threads(%a: tensor<4x64xf8E4M3FN>, %sa: tensor<4x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<8x64xf8E4M3FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %x: tensor<4x64xf4E2M1FN>, %y: tensor<8x64xf4E2M1FN>) {
  %x_scaled = fp4.scaled %x, %sa : !lhs
  %y_scaled = fp4.scaled %y, %sb : !rhs
  %0 = fp4.matmul %x_scaled, %y_scaled {arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs, !rhs) -> tensor<4x8xf32>
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  // expected-error @+2 {{expects a GEMM that a route has, but no route multiplies a lhs of mxfp8_e4m3 and a rhs of mxfp8_e4m3 with arithmetic fma}}
  // expected-note @+1 {{nearest operands that routes multiply, of one format or of two of OCP MX: elements of 8 bits with scales in instructions of K = 64 (mxfp8); elements of 8 bits with scales, or of 8 and 4 (mxfp4, mxfp8); elements of 6 bits (mxfp4, mxfp6, mxfp8); few rows with arithmetic fma (nvfp4, mxfp4)}}
  %1 = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs2, !rhs2) -> tensor<4x8xf32>
  return
}
