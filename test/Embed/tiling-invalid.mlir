// RUN: fp4-opt %s --split-input-file --verify-diagnostics --transform-interpreter

// Operations that an attribute ties to the whole; MLIR adds that the loops were not made.

module attributes {transform.with_named_sequence} {
  func.func @stochastic(%x: tensor<64x32xf32>, %a: tensor<f32>, %rng: tensor<2xi64>)
      -> tensor<64x32xf4E2M1FN> {
    // expected-error @below {{'fp4.quantize' op must not be tiled along its rows}}
    // expected-note @below {{random numbers belong to the place of an element in the whole}}
    // expected-error @below {{to tile operation}}
    // expected-error @below {{failed to generate tiling loops}}
    %q, %s = fp4.quantize %x amax %a rng %rng
        {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
         rounding = #fp4.rounding<stochastic>}
        : (tensor<64x32xf32>, tensor<f32>, tensor<2xi64>)
        -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
    return %q : tensor<64x32xf4E2M1FN>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp4.quantize"]} in %root
        : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [32]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

module attributes {transform.with_named_sequence} {
  func.func @columns(%x: tensor<64x32xbf16>) -> tensor<64x32xbf16> {
    // expected-error @below {{'fp4.hadamard' op must not be tiled along its rows}}
    // expected-note @below {{the transform along dimension 0 needs other rows}}
    // expected-error @below {{to tile operation}}
    // expected-error @below {{failed to generate tiling loops}}
    %r = fp4.hadamard %x {dimension = 0 : i64} : tensor<64x32xbf16> -> tensor<64x32xbf16>
    return %r : tensor<64x32xbf16>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["fp4.hadamard"]} in %root
        : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [32]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
