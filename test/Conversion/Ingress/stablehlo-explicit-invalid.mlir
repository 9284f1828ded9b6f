// Twins of stablehlo-explicit.mlir that are no GEMM of fp4. An operand of a GEMM that is reported is not reported again.

// RUN: fp4-opt %s --allow-unregistered-dialect --convert-stablehlo-to-fp4 -split-input-file -verify-diagnostics

// Scales are tiled and not repeated: element k has scale k mod 2.
func.func @tiled(%x: tensor<8x64xbf16>, %w: tensor<32x64xf4E2M1FN>, %s: tensor<32x2xf8E8M0FNU>) -> tensor<8x32xbf16> {
  %0 = "stablehlo.convert"(%w) : (tensor<32x64xf4E2M1FN>) -> tensor<32x64xbf16>
  %1 = "stablehlo.broadcast_in_dim"(%s) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<32x2xf8E8M0FNU>) -> tensor<32x32x2xf8E8M0FNU>
  %2 = "stablehlo.reshape"(%1) : (tensor<32x32x2xf8E8M0FNU>) -> tensor<32x64xf8E8M0FNU>
  %3 = "stablehlo.convert"(%2) : (tensor<32x64xf8E8M0FNU>) -> tensor<32x64xbf16>
  %4 = "stablehlo.multiply"(%0, %3) : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x64xbf16>
  // expected-error @+2 {{its right side is not numbers times scales that are repeated for their blocks}}
  // expected-note @+1 {{write it as data * repeat(scales, block, axis=-1), both converted to bf16 or f32}}
  %5 = "stablehlo.dot_general"(%x, %4) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}>
      : (tensor<8x64xbf16>, tensor<32x64xbf16>) -> tensor<8x32xbf16>
  return %5 : tensor<8x32xbf16>
}

// -----

// K is first on both sides.
func.func @first(%x: tensor<64x8xbf16>, %w: tensor<64x32xf4E2M1FN>, %s: tensor<64x32xf8E8M0FNU>) -> tensor<8x32xbf16> {
  %0 = "stablehlo.convert"(%w) : (tensor<64x32xf4E2M1FN>) -> tensor<64x32xbf16>
  %1 = "stablehlo.convert"(%s) : (tensor<64x32xf8E8M0FNU>) -> tensor<64x32xbf16>
  %2 = "stablehlo.multiply"(%0, %1) : (tensor<64x32xbf16>, tensor<64x32xbf16>) -> tensor<64x32xbf16>
  // expected-error @+2 {{its dot_dimension_numbers must contract the last dimension of both sides}}
  // expected-note @+1 {{move the axes in jax before the matmul, and keep weights as N x K}}
  %3 = "stablehlo.dot_general"(%x, %2) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>}>
      : (tensor<64x8xbf16>, tensor<64x32xbf16>) -> tensor<8x32xbf16>
  return %3 : tensor<8x32xbf16>
}

// -----

// Activations of f32 are no operands of a GEMM.
func.func @f32(%x: tensor<8x64xf32>, %w: tensor<32x64xf4E2M1FN>, %s: tensor<32x2xf8E8M0FNU>) -> tensor<8x32xf32> {
  %0 = "stablehlo.convert"(%w) : (tensor<32x64xf4E2M1FN>) -> tensor<32x64xf32>
  %1 = "stablehlo.broadcast_in_dim"(%s) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<32x2xf8E8M0FNU>) -> tensor<32x2x32xf8E8M0FNU>
  %2 = "stablehlo.reshape"(%1) : (tensor<32x2x32xf8E8M0FNU>) -> tensor<32x64xf8E8M0FNU>
  %3 = "stablehlo.convert"(%2) : (tensor<32x64xf8E8M0FNU>) -> tensor<32x64xf32>
  %4 = "stablehlo.multiply"(%0, %3) : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  // expected-error @+2 {{its left side is neither of bf16 or f16 nor numbers times scales}}
  // expected-note @+1 {{convert it to bf16}}
  %5 = "stablehlo.dot_general"(%x, %4) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}>
      : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
  return %5 : tensor<8x32xf32>
}
