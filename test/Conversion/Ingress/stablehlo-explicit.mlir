// GEMMs of numbers that the program dequantizes itself: data * repeat(scales, block), in bf16 or f32, and dot_general.
// The forms are those of jax's jnp.repeat, of its decomposition of scaled_dot, and of blocks as a dimension.

// RUN: fp4-opt %s --allow-unregistered-dialect --convert-stablehlo-to-fp4 | FileCheck %s

// The two sides, with alpha. The scales are repeated in a function of their own.
// CHECK-LABEL: func.func @both(
// CHECK-SAME:    %[[G:[a-z0-9]*]]: tensor<f32>
// CHECK:         fp4.matmul %{{.*}}, %{{.*}} alpha %[[G]] : (!nvfp4{{.*}} -> tensor<48x32xf32>
// CHECK-NOT:     stablehlo
// CHECK-NOT:     @_repeat
func.func @both(%a: tensor<48x64xf4E2M1FN>, %sa: tensor<48x4xf8E4M3FN>, %b: tensor<32x64xf4E2M1FN>, %sb: tensor<32x4xf8E4M3FN>,
                %g: tensor<f32> {fp4.name = "g"}) -> (tensor<48x32xf32> {fp4.name = "y"}) {
  %0 = func.call @_repeat(%sa) : (tensor<48x4xf8E4M3FN>) -> tensor<48x64xf8E4M3FN>
  %1 = "stablehlo.convert"(%0) : (tensor<48x64xf8E4M3FN>) -> tensor<48x64xf32>
  %2 = "stablehlo.convert"(%a) : (tensor<48x64xf4E2M1FN>) -> tensor<48x64xf32>
  %3 = "stablehlo.multiply"(%2, %1) : (tensor<48x64xf32>, tensor<48x64xf32>) -> tensor<48x64xf32>
  %4 = "stablehlo.reshape"(%sb) : (tensor<32x4xf8E4M3FN>) -> tensor<32x4x1xf8E4M3FN>
  %5 = "stablehlo.broadcast_in_dim"(%4) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<32x4x1xf8E4M3FN>) -> tensor<32x4x16xf8E4M3FN>
  %6 = "stablehlo.convert"(%5) : (tensor<32x4x16xf8E4M3FN>) -> tensor<32x4x16xf32>
  %7 = "stablehlo.reshape"(%b) : (tensor<32x64xf4E2M1FN>) -> tensor<32x4x16xf4E2M1FN>
  %8 = "stablehlo.convert"(%7) : (tensor<32x4x16xf4E2M1FN>) -> tensor<32x4x16xf32>
  %9 = "stablehlo.multiply"(%6, %8) : (tensor<32x4x16xf32>, tensor<32x4x16xf32>) -> tensor<32x4x16xf32>
  %10 = "stablehlo.reshape"(%9) : (tensor<32x4x16xf32>) -> tensor<32x64xf32>
  %11 = "stablehlo.dot_general"(%3, %10) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}>
      : (tensor<48x64xf32>, tensor<32x64xf32>) -> tensor<48x32xf32>
  %12 = "stablehlo.broadcast_in_dim"(%g) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<48x32xf32>
  %13 = "stablehlo.multiply"(%11, %12) : (tensor<48x32xf32>, tensor<48x32xf32>) -> tensor<48x32xf32>
  return %13 : tensor<48x32xf32>
}
func.func private @_repeat(%s: tensor<48x4xf8E4M3FN>) -> tensor<48x64xf8E4M3FN> {
  %0 = "stablehlo.broadcast_in_dim"(%s) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<48x4xf8E4M3FN>) -> tensor<48x4x16xf8E4M3FN>
  %1 = "stablehlo.reshape"(%0) : (tensor<48x4x16xf8E4M3FN>) -> tensor<48x64xf8E4M3FN>
  return %1 : tensor<48x64xf8E4M3FN>
}

// x @ w.T with activations of bf16 in a batch, and weights that are transposed behind their dequantization.
// CHECK-LABEL: func.func @weights(
// CHECK:         %[[X:.*]] = tensor.collapse_shape %{{.*}} : tensor<2x5x64xbf16> into tensor<10x64xbf16>
// CHECK:         %[[Y:.*]] = fp4.matmul %[[X]], %{{.*}} : (tensor<10x64xbf16>, !mxfp4) -> tensor<10x32xbf16>
// CHECK:         tensor.expand_shape %[[Y]] {{.*}} output_shape [2, 5, 32]
// CHECK-NOT:     stablehlo
func.func @weights(%x: tensor<2x5x64xbf16>, %w: tensor<32x64xf4E2M1FN>, %s: tensor<32x2xf8E8M0FNU>) -> (tensor<2x5x32xbf16> {fp4.name = "y"}) {
  %0 = "stablehlo.convert"(%w) : (tensor<32x64xf4E2M1FN>) -> tensor<32x64xbf16>
  %1 = "stablehlo.convert"(%s) : (tensor<32x2xf8E8M0FNU>) -> tensor<32x2xbf16>
  %2 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<32x2xbf16>) -> tensor<32x2x32xbf16>
  %3 = "stablehlo.reshape"(%2) : (tensor<32x2x32xbf16>) -> tensor<32x64xbf16>
  %4 = "stablehlo.multiply"(%0, %3) : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %5 = "stablehlo.transpose"(%4) <{permutation = array<i64: 1, 0>}> : (tensor<32x64xbf16>) -> tensor<64x32xbf16>
  %6 = "stablehlo.dot_general"(%x, %5) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}>
      : (tensor<2x5x64xbf16>, tensor<64x32xbf16>) -> tensor<2x5x32xbf16>
  return %6 : tensor<2x5x32xbf16>
}

// Batches of both sides, one GEMM for each.
// CHECK-LABEL: func.func @batches(
// CHECK-COUNT-2: fp4.matmul {{.*}} : (!mxfp4{{.*}} -> tensor<16x32xf32>
// CHECK:         tensor.concat dim(0)
// CHECK-NOT:     stablehlo
func.func @batches(%a: tensor<2x16x64xf4E2M1FN>, %sa: tensor<2x16x2xf8E8M0FNU>, %w: tensor<2x32x64xf4E2M1FN>, %s: tensor<2x32x2xf8E8M0FNU>)
    -> (tensor<2x16x32xf32> {fp4.name = "y"}) {
  %0 = "stablehlo.convert"(%w) : (tensor<2x32x64xf4E2M1FN>) -> tensor<2x32x64xbf16>
  %1 = "stablehlo.broadcast_in_dim"(%s) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x32x2xf8E8M0FNU>) -> tensor<2x32x2x32xf8E8M0FNU>
  %2 = "stablehlo.reshape"(%1) : (tensor<2x32x2x32xf8E8M0FNU>) -> tensor<2x32x64xf8E8M0FNU>
  %3 = "stablehlo.convert"(%2) : (tensor<2x32x64xf8E8M0FNU>) -> tensor<2x32x64xbf16>
  %4 = "stablehlo.multiply"(%0, %3) : (tensor<2x32x64xbf16>, tensor<2x32x64xbf16>) -> tensor<2x32x64xbf16>
  %5 = "stablehlo.convert"(%a) : (tensor<2x16x64xf4E2M1FN>) -> tensor<2x16x64xbf16>
  %6 = "stablehlo.broadcast_in_dim"(%sa) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x16x2xf8E8M0FNU>) -> tensor<2x16x2x32xf8E8M0FNU>
  %7 = "stablehlo.reshape"(%6) : (tensor<2x16x2x32xf8E8M0FNU>) -> tensor<2x16x64xf8E8M0FNU>
  %8 = "stablehlo.convert"(%7) : (tensor<2x16x64xf8E8M0FNU>) -> tensor<2x16x64xbf16>
  %9 = "stablehlo.multiply"(%5, %8) : (tensor<2x16x64xbf16>, tensor<2x16x64xbf16>) -> tensor<2x16x64xbf16>
  %10 = "stablehlo.dot_general"(%9, %4) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2]>}>
      : (tensor<2x16x64xbf16>, tensor<2x32x64xbf16>) -> tensor<2x16x32xf32>
  return %10 : tensor<2x16x32xf32>
}
