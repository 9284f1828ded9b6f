// Programs that stablehlo can say and fp4 cannot do are errors at their places, with a remedy.

// RUN: fp4-opt %s --allow-unregistered-dialect --convert-stablehlo-to-fp4 -split-input-file -verify-diagnostics

// The default of jax: the right side is K x N.
func.func @columns(%a: tensor<48x64xf4E2M1FN>, %b: tensor<64x32xf4E2M1FN>, %sa: tensor<48x2xf8E8M0FNU>,
                   %sb: tensor<2x32xf8E8M0FNU>) -> tensor<48x32xf32> {
  // expected-error @+2 {{the right side must be N x K with K contiguous, and to transpose packed numbers would move data}}
  // expected-note @+1 {{keep it as N x K in jax, and say so: dimension_numbers=(((2,), (2,)), ((0,), (0,))) for batches}}
  %y = "stablehlo.composite"(%a, %b, %sa, %sb) <{
      composite_attributes = {dimension_numbers = [[[1], [0]], [[], []]], preferred_element_type = f32},
      name = "xla.scaled_dot"}>
      : (tensor<48x64xf4E2M1FN>, tensor<64x32xf4E2M1FN>, tensor<48x2xf8E8M0FNU>, tensor<2x32xf8E8M0FNU>)
      -> tensor<48x32xf32>
  return %y : tensor<48x32xf32>
}

// -----

func.func @first(%a: tensor<64x48xf4E2M1FN>, %b: tensor<64x32xf4E2M1FN>, %sa: tensor<2x48xf8E8M0FNU>,
                 %sb: tensor<2x32xf8E8M0FNU>) -> tensor<48x32xf32> {
  // expected-error @+2 {{its dimension_numbers must contract the last dimension of the left side}}
  // expected-note @+1 {{move the axes in jax before the matmul}}
  %y = "stablehlo.composite"(%a, %b, %sa, %sb) <{
      composite_attributes = {dimension_numbers = [[[0], [0]], [[], []]]}, name = "xla.scaled_dot"}>
      : (tensor<64x48xf4E2M1FN>, tensor<64x32xf4E2M1FN>, tensor<2x48xf8E8M0FNU>, tensor<2x32xf8E8M0FNU>)
      -> tensor<48x32xf32>
  return %y : tensor<48x32xf32>
}

// -----

func.func @layout(%a: tensor<1x48x64xf4E2M1FN>, %b: tensor<1x32x64xf4E2M1FN>, %sa: tensor<1x48x2xf8E8M0FNU>,
                  %sb: tensor<1x32x2xf8E8M0FNU>) -> tensor<1x48x32xf32> {
  // expected-error @+2 {{its operand_layouts must be row-major}}
  // expected-note @+1 {{export the program without layouts of its own}}
  %y = "stablehlo.custom_call"(%a, %b, %sa, %sb) <{call_target_name = "__op$block_scaled_dot",
      operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>]}>
      : (tensor<1x48x64xf4E2M1FN>, tensor<1x32x64xf4E2M1FN>, tensor<1x48x2xf8E8M0FNU>,
         tensor<1x32x2xf8E8M0FNU>) -> tensor<1x48x32xf32>
  return %y : tensor<1x48x32xf32>
}

// -----

func.func @config(%a: tensor<1x48x64xf4E2M1FN>, %b: tensor<1x32x64xf4E2M1FN>, %sa: tensor<1x48x2xf8E8M0FNU>,
                  %sb: tensor<1x32x2xf8E8M0FNU>) -> tensor<1x48x32xf32> {
  // expected-error @+2 {{its backend_config must have dimension 0 as the batch of both sides, but got '{}'}}
  // expected-note @+1 {{move the batches to the front before the matmul}}
  %y = "stablehlo.custom_call"(%a, %b, %sa, %sb) <{call_target_name = "__op$block_scaled_dot",
      backend_config = "{}"}>
      : (tensor<1x48x64xf4E2M1FN>, tensor<1x32x64xf4E2M1FN>, tensor<1x48x2xf8E8M0FNU>,
         tensor<1x32x2xf8E8M0FNU>) -> tensor<1x48x32xf32>
  return %y : tensor<1x48x32xf32>
}

// -----

// Elements of 4 bits beside such of 8 are loaded 128 at a time.
func.func @spread(%a: tensor<1x48x64xf8E4M3FN>, %b: tensor<1x32x64xf4E2M1FN>, %sa: tensor<1x48x2xf8E8M0FNU>,
                  %sb: tensor<1x32x2xf8E8M0FNU>) -> tensor<1x48x32xf32> {
  // expected-error @+2 {{elements of 4 bits beside such of 8 must have a K that is a multiple of 128, but got 64}}
  // expected-note @+1 {{pad K of both sides with zeros, or quantize both sides to as many bits}}
  %y = "stablehlo.custom_call"(%a, %b, %sa, %sb) <{call_target_name = "__op$block_scaled_dot"}>
      : (tensor<1x48x64xf8E4M3FN>, tensor<1x32x64xf4E2M1FN>, tensor<1x48x2xf8E8M0FNU>,
         tensor<1x32x2xf8E8M0FNU>) -> tensor<1x48x32xf32>
  return %y : tensor<1x48x32xf32>
}

// -----

// Scales of NVFP4 for blocks of MXFP4.
func.func @scales(%a: tensor<1x48x64xf4E2M1FN>, %b: tensor<1x32x64xf4E2M1FN>, %sa: tensor<1x48x2xf8E4M3FN>,
                  %sb: tensor<1x32x2xf8E4M3FN>) -> tensor<1x48x32xf32> {
  // expected-error @+2 {{scales must be f8E8M0FNU for blocks of 32 elements (mxfp4, mxfp8) or f8E4M3FN for blocks of 16 (nvfp4), but got K = 64, 2 blocks, and scales of f8E4M3FN and f8E4M3FN}}
  // expected-note @+1 {{quantize with the block and the scales of one of these formats}}
  %y = "stablehlo.custom_call"(%a, %b, %sa, %sb) <{call_target_name = "__op$block_scaled_dot"}>
      : (tensor<1x48x64xf4E2M1FN>, tensor<1x32x64xf4E2M1FN>, tensor<1x48x2xf8E4M3FN>,
         tensor<1x32x2xf8E4M3FN>) -> tensor<1x48x32xf32>
  return %y : tensor<1x48x32xf32>
}

// -----

// Numbers of 4 bits that are converted by hand.
func.func @by_hand(%a: tensor<48x64xf4E2M1FN>) -> tensor<48x64xbf16> {
  // expected-error @+2 {{it reads or makes numbers of 4 bits and is no matmul}}
  // expected-note @+1 {{only __op$block_scaled_dot, xla.scaled_dot, and dot_general of numbers times their scales are known}}
  %y = "stablehlo.convert"(%a) : (tensor<48x64xf4E2M1FN>) -> tensor<48x64xbf16>
  return %y : tensor<48x64xbf16>
}
