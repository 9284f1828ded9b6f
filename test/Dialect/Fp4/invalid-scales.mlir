// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// One case per constraint of Fp4Constraints.td. The first operation of a case is legal, the second differs
// from it in what the constraint is about.

// swizzle_scales (C1)
func.func @swizzle_elements(%ok: tensor<4x2xf8E4M3FN>, %bad: tensor<4x2xf8E5M2>) {
  %0 = fp4.swizzle_scales %ok : tensor<4x2xf8E4M3FN> -> tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  // expected-error @+2 {{operand 'input' must have elements of type f8E4M3FN or f8E8M0FNU, but got 'tensor<4x2xf8E5M2>'}}
  // expected-note @+1 {{fp4.quantize gives scales of these types}}
  %1 = fp4.swizzle_scales %bad : tensor<4x2xf8E5M2> -> tensor<4x2xf8E5M2>
  return
}

// -----

// swizzle_scales (C2)
func.func @swizzle_rank(%ok: tensor<4x2xf8E4M3FN>, %bad: tensor<8xf8E4M3FN>) {
  %0 = fp4.swizzle_scales %ok : tensor<4x2xf8E4M3FN> -> tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  // expected-error @+1 {{operand 'input' must have 2 dimensions, but got 'tensor<8xf8E4M3FN>'}}
  %1 = fp4.swizzle_scales %bad : tensor<8xf8E4M3FN> -> tensor<8xf8E4M3FN>
  return
}

// -----

// swizzle_scales (C3)
func.func @swizzle_twice(%ok: tensor<4x2xf8E4M3FN>) {
  %0 = fp4.swizzle_scales %ok : tensor<4x2xf8E4M3FN> -> tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  // expected-error @+2 {{operand 'input' must be row-major}}
  // expected-note @+1 {{insert fp4.unswizzle_scales}}
  %1 = fp4.swizzle_scales %0 : tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return
}

// -----

// swizzle_scales (C4)
func.func @swizzle_result(%ok: tensor<4x2xf8E4M3FN>) {
  %0 = fp4.swizzle_scales %ok : tensor<4x2xf8E4M3FN> -> tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  // expected-error @+1 {{result 'result' must be 'tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>', but got 'tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>'}}
  %1 = fp4.swizzle_scales %ok : tensor<4x2xf8E4M3FN> -> tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return
}

// -----

// unswizzle_scales (C1)
func.func @unswizzle_elements(%ok: tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %bad: tensor<4x2xi8>) {
  %0 = fp4.unswizzle_scales %ok : tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<4x2xf8E4M3FN>
  // expected-error @+2 {{operand 'input' must have elements of type f8E4M3FN or f8E8M0FNU, but got 'tensor<4x2xi8>'}}
  // expected-note @+1 {{fp4.quantize gives scales of these types}}
  %1 = fp4.unswizzle_scales %bad : tensor<4x2xi8> -> tensor<4x2xi8>
  return
}

// -----

// unswizzle_scales (C2)
func.func @unswizzle_columns(%ok: tensor<?x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
                             %bad: tensor<4x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.unswizzle_scales %ok : tensor<?x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<?x2xf8E4M3FN>
  // expected-error @+2 {{operand 'input' must have a static number of columns}}
  // expected-note @+1 {{only the rows, dimension 0, may be dynamic}}
  %1 = fp4.unswizzle_scales %bad : tensor<4x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<4x?xf8E4M3FN>
  return
}

// -----

// unswizzle_scales (C3)
func.func @unswizzle_row_major(%ok: tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %bad: tensor<4x2xf8E4M3FN>) {
  %0 = fp4.unswizzle_scales %ok : tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<4x2xf8E4M3FN>
  // expected-error @+2 {{operand 'input' must have layout #fp4.scale_layout<tiled_128x4>, but got 'tensor<4x2xf8E4M3FN>'}}
  // expected-note @+1 {{insert fp4.swizzle_scales}}
  %1 = fp4.unswizzle_scales %bad : tensor<4x2xf8E4M3FN> -> tensor<4x2xf8E4M3FN>
  return
}

// -----

// unswizzle_scales (C4)
func.func @unswizzle_result(%ok: tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.unswizzle_scales %ok : tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<4x2xf8E4M3FN>
  // expected-error @+1 {{result 'result' must be 'tensor<4x2xf8E4M3FN>', but got 'tensor<4x2xf8E8M0FNU>'}}
  %1 = fp4.unswizzle_scales %ok : tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<4x2xf8E8M0FNU>
  return
}
