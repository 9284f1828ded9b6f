// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// One case per constraint of Fp4Constraints.td. The first operation of a case is legal, the second differs
// from it in what the constraint is about.

// quantize (C1)
func.func @quantize_elements(%ok: tensor<4x32xf16>, %bad: tensor<4x32xf64>) {
  %0:2 = fp4.quantize %ok {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<4x32xf16>) -> (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>)
  // expected-error @+2 {{operand 'input' must have elements of type bf16, f16 or f32, but got 'tensor<4x32xf64>'}}
  // expected-note @+1 {{convert the tensor to one of these types first}}
  %1:2 = fp4.quantize %bad {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<4x32xf64>) -> (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>)
  return
}

// -----

// quantize (C2)
func.func @quantize_columns(%ok: tensor<4x?xbf16>, %bad: tensor<?xbf16>) {
  %0:2 = fp4.quantize %ok {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<4x?xbf16>) -> (tensor<4x?xf4E2M1FN>, tensor<4x?xf8E8M0FNU>)
  // expected-error @+1 {{operand 'input' must have 2 dimensions, but got 'tensor<?xbf16>'}}
  %1:2 = fp4.quantize %bad {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<?xbf16>) -> (tensor<4x?xf4E2M1FN>, tensor<4x?xf8E8M0FNU>)
  return
}

// -----

// quantize (C496)
func.func @quantize_columns_of_groups(%x: tensor<32x?xbf16>, %a: tensor<f32>, %g: tensor<2xf32>) {
  %0:2 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<32x?xbf16>, tensor<f32>) -> (tensor<32x?xf4E2M1FN>, tensor<32x?xf8E4M3FN>)
  // expected-error @+2 {{operand 'input' must have a static number of columns beside attribute 'groups', but got 'tensor<32x?xbf16>'}}
  // expected-note @+1 {{give the columns a static size, and compile a function for each; the rows may be dynamic}}
  %1:2 = fp4.quantize %x amax %g {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 16, 16>}
      : (tensor<32x?xbf16>, tensor<2xf32>) -> (tensor<32x?xf4E2M1FN>, tensor<32x?xf8E4M3FN>)
  return
}

// -----

// quantize (C7)
func.func @quantize_unknown_rows(%x: tensor<?x?xbf16>) {
  %0:2 = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 128, 128>}
      : (tensor<?x?xbf16>) -> (tensor<?x?xf8E4M3FN>, tensor<?x?xf32>)
  // expected-error @+2 {{attribute 'block' must be [1, 128] or [128, 128] for format fp8_block128, but got [1, 512]}}
  // expected-note @+1 {{leave 'block' out for blocks along a row}}
  %1:2 = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 512>}
      : (tensor<?x?xbf16>) -> (tensor<?x?xf8E4M3FN>, tensor<?x?xf32>)
  return
}

// -----

// quantize (C3)
func.func @quantize_block_multiple(%ok: tensor<4x64xbf16>, %bad: tensor<4x48xbf16>) {
  %0:2 = fp4.quantize %ok {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<4x64xbf16>) -> (tensor<4x64xf4E2M1FN>, tensor<4x2xf8E8M0FNU>)
  // expected-error @+2 {{operand 'input' must have a dimension 1 that is a multiple of 32, but got 48}}
  // expected-note @+1 {{a block of format mxfp4 has 32 elements of the contraction axis; pad that axis with zeros}}
  %1:2 = fp4.quantize %bad {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<4x48xbf16>) -> (tensor<4x48xf4E2M1FN>, tensor<4x2xf8E8M0FNU>)
  return
}

// -----

// quantize (C3)
func.func @quantize_columnwise_rows(%ok: tensor<32x48xbf16>, %bad: tensor<72x48xbf16>) {
  %0:2 = fp4.quantize %ok
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<columnwise>}
      : (tensor<32x48xbf16>) -> (tensor<48x32xf4E2M1FN>, tensor<48x1xf8E8M0FNU>)
  // expected-error @+2 {{operand 'input' must have a dimension 0 that is a multiple of 32, but got 72}}
  // expected-note @+1 {{a block of format mxfp4 has 32 elements}}
  %1:2 = fp4.quantize %bad
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<columnwise>}
      : (tensor<72x48xbf16>) -> (tensor<48x72xf4E2M1FN>, tensor<48x3xf8E8M0FNU>)
  return
}

// -----

// quantize (C4)
func.func @quantize_recipe(%x: tensor<4x32xbf16>) {
  %0:2 = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>}
      : (tensor<4x32xbf16>) -> (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>)
  // expected-error @+2 {{expects a recipe of format mxfp4, but got transformer_engine}}
  // expected-note @+1 {{the recipes of mxfp4 are ocp_floor, ocp_ceil, ocp_even, ocp_even_down, ocp_rceil}}
  %1:2 = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<4x32xbf16>) -> (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>)
  return
}

// -----

// quantize (C5)
func.func @quantize_missing_amax(%x: tensor<4x32xbf16>, %ax: tensor<f32>) {
  %0:2 = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<4x32xbf16>, tensor<f32>) -> (tensor<4x32xf4E2M1FN>, tensor<4x2xf8E4M3FN>)
  // expected-error @+2 {{expects operand 'amax' for format nvfp4, but got none}}
  // expected-note @+1 {{compute it with fp4.amax; a constant 2688.0 makes the tensor scale 1}}
  %1:2 = fp4.quantize %x {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<4x32xbf16>) -> (tensor<4x32xf4E2M1FN>, tensor<4x2xf8E4M3FN>)
  return
}

// -----

// quantize (C5)
func.func @quantize_needless_amax(%x: tensor<4x32xbf16>, %ax: tensor<f32>) {
  %0:2 = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<4x32xbf16>) -> (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>)
  // expected-error @+2 {{expects no operand 'amax' for format mxfp4, but got one}}
  // expected-note @+1 {{mxfp4 has no tensor scale}}
  %1:2 = fp4.quantize %x amax %ax {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<4x32xbf16>, tensor<f32>) -> (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>)
  return
}

// -----

// quantize (C5)
func.func @quantize_amax_type(%x: tensor<4x32xbf16>, %ax: tensor<f32>, %bad: tensor<4xf32>) {
  %0:2 = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<4x32xbf16>, tensor<f32>) -> (tensor<4x32xf4E2M1FN>, tensor<4x2xf8E4M3FN>)
  // expected-error @+2 {{operand 'amax' must be a tensor<f32>, but got 'tensor<4xf32>'}}
  // expected-note @+1 {{one number in device memory}}
  %1:2 = fp4.quantize %x amax %bad {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<4x32xbf16>, tensor<4xf32>) -> (tensor<4x32xf4E2M1FN>, tensor<4x2xf8E4M3FN>)
  return
}

// -----

// quantize (C6)
func.func @quantize_rng(%x: tensor<4x32xbf16>, %rng: tensor<2xi64>) {
  %0:2 = fp4.quantize %x rng %rng
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, rounding = #fp4.rounding<stochastic>}
      : (tensor<4x32xbf16>, tensor<2xi64>) -> (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>)
  // expected-error @+2 {{expects operand 'rng' for rounding stochastic, but got none}}
  // expected-note @+1 {{stochastic rounding takes its seed and offset from a tensor<2xi64>}}
  %1:2 = fp4.quantize %x
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, rounding = #fp4.rounding<stochastic>}
      : (tensor<4x32xbf16>) -> (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>)
  return
}

// -----

// quantize (C6)
func.func @quantize_rng_type(%x: tensor<4x32xbf16>, %rng: tensor<2xi64>, %bad: tensor<2xi32>) {
  %0:2 = fp4.quantize %x rng %rng
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, rounding = #fp4.rounding<stochastic>}
      : (tensor<4x32xbf16>, tensor<2xi64>) -> (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>)
  // expected-error @+1 {{operand 'rng' must be 'tensor<2xi64>', but got 'tensor<2xi32>'}}
  %1:2 = fp4.quantize %x rng %bad
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, rounding = #fp4.rounding<stochastic>}
      : (tensor<4x32xbf16>, tensor<2xi32>) -> (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>)
  return
}

// -----

// quantize (C7)
func.func @quantize_block(%x: tensor<32x32xbf16>, %ax: tensor<f32>) {
  %0:2 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, block = array<i64: 16, 16>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // expected-error @+2 {{attribute 'block' must be [1, 16] or [16, 16] for format nvfp4, but got [1, 32]}}
  // expected-note @+1 {{leave 'block' out for blocks along a row}}
  %1:2 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, block = array<i64: 1, 32>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// quantize (C8)
func.func @quantize_data_type(%x: tensor<4x32xbf16>) {
  %0:2 = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<4x32xbf16>) -> (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>)
  // expected-error @+1 {{result 'data' must be 'tensor<4x32xf4E2M1FN>', but got 'tensor<4x16xi8>'}}
  %1:2 = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<4x32xbf16>) -> (tensor<4x16xi8>, tensor<4x1xf8E8M0FNU>)
  return
}

// -----

// quantize (C8)
func.func @quantize_scales_type(%x: tensor<4x32xbf16>) {
  %0:2 = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<4x32xbf16>) -> (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>)
  // expected-error @+1 {{result 'scales' must be 'tensor<4x1xf8E8M0FNU>', but got 'tensor<4x2xf8E4M3FN>'}}
  %1:2 = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<4x32xbf16>) -> (tensor<4x32xf4E2M1FN>, tensor<4x2xf8E4M3FN>)
  return
}

// -----

// quantize (C8)
func.func @quantize_results(%x: tensor<32x32xbf16>) {
  %0:4 = fp4.quantize %x
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<both>}
      : (tensor<32x32xbf16>) -> (tensor<32x32xf4E2M1FN>, tensor<32x1xf8E8M0FNU>,
                                 tensor<32x32xf4E2M1FN>, tensor<32x1xf8E8M0FNU>)
  // expected-error @+2 {{expects 4 results for outputs both, but got 2}}
  // expected-note @+1 {{each orientation gives its data and its scales}}
  %1:2 = fp4.quantize %x
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<both>}
      : (tensor<32x32xbf16>) -> (tensor<32x32xf4E2M1FN>, tensor<32x1xf8E8M0FNU>)
  return
}

// -----

// quantize (C3)
func.func @quantize_mxfp4_rows(%ok: tensor<64x40xbf16>, %bad: tensor<72x40xbf16>) {
  %0:2 = fp4.quantize %ok
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<columnwise>}
      : (tensor<64x40xbf16>) -> (tensor<40x64xf4E2M1FN>, tensor<40x2xf8E8M0FNU>)
  // expected-error @+2 {{operand 'input' must have a dimension 0 that is a multiple of 32, but got 72}}
  // expected-note @+1 {{a block of format mxfp4 has 32 elements}}
  %1:2 = fp4.quantize %bad
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<columnwise>}
      : (tensor<72x40xbf16>) -> (tensor<40x72xf4E2M1FN>, tensor<40x3xf8E8M0FNU>)
  return
}

// -----

// quantize (C5)
func.func @quantize_one_level(%x: tensor<32x32xbf16>, %ax: tensor<f32>) {
  %0:2 = fp4.quantize %x
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>}
      : (tensor<32x32xbf16>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // expected-error @+2 {{expects no operand 'amax' for recipe torchao_1level, but got one}}
  // expected-note @+1 {{recipe torchao_1level has no tensor scale; remove the operand}}
  %1:2 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// quantize (C8)
func.func @quantize_scale_layout(%x: tensor<32x32xbf16>, %ax: tensor<f32>) {
  %0:2 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  // Tiled scales keep their logical shape: padding is a matter of the layout.
  // expected-error @+1 {{result 'scales' must be 'tensor<32x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>', but got 'tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>'}}
  %1:2 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return
}

// -----

// quantize (C9)
func.func @quantize_second_amax_alone(%x: tensor<32x32xbf16>, %ax: tensor<f32>) {
  %0:4 = fp4.quantize %x
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<both>}
      : (tensor<32x32xbf16>) -> (tensor<32x32xf4E2M1FN>, tensor<32x1xf8E8M0FNU>, tensor<32x32xf4E2M1FN>, tensor<32x1xf8E8M0FNU>)
  // expected-error @+2 {{expects operand 'columnwise_amax' only beside 'amax' and for outputs both, but got outputs both}}
  // expected-note @+1 {{'amax' is that of the only orientation there is}}
  %1:4 = fp4.quantize %x columnwise_amax %ax
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<both>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x1xf8E8M0FNU>, tensor<32x32xf4E2M1FN>, tensor<32x1xf8E8M0FNU>)
  return
}

// -----

// quantize (C9)
func.func @quantize_columnwise_amax(%x: tensor<32x32xbf16>, %ax: tensor<f32>) {
  %0:4 = fp4.quantize %x amax %ax columnwise_amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>}
      : (tensor<32x32xbf16>, tensor<f32>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>, tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // expected-error @+2 {{expects operand 'columnwise_amax' only beside 'amax' and for outputs both, but got outputs columnwise}}
  // expected-note @+1 {{'amax' is that of the only orientation there is}}
  %1:2 = fp4.quantize %x amax %ax columnwise_amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<columnwise>}
      : (tensor<32x32xbf16>, tensor<f32>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// quantize (C10)
func.func @quantize_adaptive(%x: tensor<32x32xbf16>, %ax: tensor<f32>, %rng: tensor<2xi64>) {
  %0:2 = fp4.quantize %x amax %ax rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>}
      : (tensor<32x32xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // expected-error @+2 {{expects rounding nearest_even for recipe four_over_six, but got stochastic}}
  // expected-note @+1 {{the recipe chooses scales or codes by their rounding error, or has elements of more than 4 bits}}
  %1:2 = fp4.quantize %x amax %ax rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<four_over_six>, rounding = #fp4.rounding<stochastic>}
      : (tensor<32x32xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// quantize (C11)
func.func @quantize_hadamard_side(%x: tensor<32x32xbf16>, %ax: tensor<f32>) {
  %0:2 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, hadamard = #fp4.hadamard<size = 16>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // expected-error @+2 {{expects no attribute 'columnwise_hadamard' for outputs rowwise, but got one}}
  // expected-note @+1 {{leave it out, or let 'outputs' have this orientation}}
  %1:2 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, columnwise_hadamard = #fp4.hadamard<size = 16>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// quantize (C11)
func.func @quantize_hadamard_elements(%x: tensor<32x32xbf16>, %bad: tensor<32x32xf32>, %ax: tensor<f32>) {
  %0:2 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, hadamard = #fp4.hadamard<size = 16>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // expected-error @+2 {{operand 'input' must have elements of type bf16, which 'hadamard' transforms, but got 'tensor<32x32xf32>'}}
  // expected-note @+1 {{convert the tensor to bf16 first, or leave the transform out}}
  %1:2 = fp4.quantize %bad amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, hadamard = #fp4.hadamard<size = 16>}
      : (tensor<32x32xf32>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// quantize (C11)
func.func @quantize_hadamard_multiple(%x: tensor<32x32xbf16>, %ax: tensor<f32>) {
  %0:2 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, hadamard = #fp4.hadamard<size = 32>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // expected-error @+2 {{operand 'input' must have a dimension 1 that is a multiple of 64, but got 32}}
  // expected-note @+1 {{groups do not cross the edge}}
  %1:2 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, hadamard = #fp4.hadamard<size = 64>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// quantize (C12)
func.func @quantize_square_hadamard(%x: tensor<32x32xbf16>, %ax: tensor<f32>) {
  %0:2 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, block = array<i64: 16, 16>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // expected-error @+2 {{expects no attribute 'hadamard' for block [16, 16], but got one}}
  // expected-note @+1 {{the outputs of square blocks are each other's transposed}}
  %1:2 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, block = array<i64: 16, 16>, hadamard = #fp4.hadamard<size = 16>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// quantize (C12)
func.func @quantize_square_amax(%x: tensor<32x32xbf16>, %ax: tensor<f32>) {
  %0:4 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, block = array<i64: 16, 16>, outputs = #fp4.outputs<both>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>, tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // expected-error @+2 {{expects no operand 'columnwise_amax' for block [16, 16], but got one}}
  // expected-note @+1 {{the outputs of square blocks are each other's transposed}}
  %1:4 = fp4.quantize %x amax %ax columnwise_amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, block = array<i64: 16, 16>, outputs = #fp4.outputs<both>}
      : (tensor<32x32xbf16>, tensor<f32>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>, tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// quantize (C13)
func.func @quantize_philox(%x: tensor<32x32xbf16>, %ax: tensor<f32>, %rng: tensor<2xi64>) {
  %0:2 = fp4.quantize %x amax %ax rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>, philox = #fp4.philox<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // expected-error @+2 {{attribute 'philox' must be element unless rounding is stochastic and blocks are nvfp4's 1 x 16 of one matrix, but got transformer_engine}}
  // expected-note @+1 {{TransformerEngine defines its mapping for that kernel only}}
  %1:2 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, philox = #fp4.philox<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// quantize (C13)
func.func @quantize_philox_square(%x: tensor<32x32xbf16>, %ax: tensor<f32>, %rng: tensor<2xi64>) {
  %0:2 = fp4.quantize %x amax %ax rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>, block = array<i64: 16, 16>}
      : (tensor<32x32xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // expected-error @+2 {{attribute 'philox' must be element unless rounding is stochastic and blocks are nvfp4's 1 x 16 of one matrix, but got transformer_engine}}
  // expected-note @+1 {{TransformerEngine defines its mapping for that kernel only}}
  %1:2 = fp4.quantize %x amax %ax rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>, block = array<i64: 16, 16>, philox = #fp4.philox<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// quantize (C5)
func.func @quantize_group_amax(%x: tensor<48x32xbf16>, %ok: tensor<2xf32>, %bad: tensor<f32>) {
  %0:2 = fp4.quantize %x amax %ok {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 32, 16>}
      : (tensor<48x32xbf16>, tensor<2xf32>) -> (tensor<48x32xf4E2M1FN>, tensor<48x2xf8E4M3FN>)
  // expected-error @+1 {{operand 'amax' must be 'tensor<2xf32>', but got 'tensor<f32>'}}
  %1:2 = fp4.quantize %x amax %bad {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 32, 16>}
      : (tensor<48x32xbf16>, tensor<f32>) -> (tensor<48x32xf4E2M1FN>, tensor<48x2xf8E4M3FN>)
  return
}

// -----

// quantize (C8)
func.func @quantize_group_tiles(%x: tensor<192x512xbf16>, %ax: tensor<3xf32>) {
  %0:2 = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 130, 0, 62>}
      : (tensor<192x512xbf16>, tensor<3xf32>) -> (tensor<192x512xf4E2M1FN>, tensor<3072x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  // Three row tiles of eight, not two: the second group starts with a tile of its own.
  // expected-error @+1 {{result 'scales' must be 'tensor<3072x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>', but got 'tensor<192x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>'}}
  %1:2 = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 130, 0, 62>}
      : (tensor<192x512xbf16>, tensor<3xf32>) -> (tensor<192x512xf4E2M1FN>, tensor<192x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return
}

// -----

// quantize (C8)
func.func @quantize_group_tiles_columnwise(%x: tensor<96x40xbf16>, %ax: tensor<2xf32>) {
  %0:2 = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 80, 16>, outputs = #fp4.outputs<columnwise>}
      : (tensor<96x40xbf16>, tensor<2xf32>) -> (tensor<40x96xf4E2M1FN>, tensor<384x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  // expected-error @+1 {{result 'scales' must be 'tensor<384x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>', but got 'tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>'}}
  %1:2 = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 80, 16>, outputs = #fp4.outputs<columnwise>}
      : (tensor<96x40xbf16>, tensor<2xf32>) -> (tensor<40x96xf4E2M1FN>, tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return
}

// -----

// quantize (C9)
func.func @quantize_group_columnwise_amax(%x: tensor<32x32xbf16>, %ax: tensor<2xf32>, %bad: tensor<f32>) {
  %0:4 = fp4.quantize %x amax %ax columnwise_amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 16, 16>, outputs = #fp4.outputs<both>}
      : (tensor<32x32xbf16>, tensor<2xf32>, tensor<2xf32>)
      -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>, tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // expected-error @+1 {{operand 'columnwise_amax' must be 'tensor<2xf32>', but got 'tensor<f32>'}}
  %1:4 = fp4.quantize %x amax %ax columnwise_amax %bad {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 16, 16>, outputs = #fp4.outputs<both>}
      : (tensor<32x32xbf16>, tensor<2xf32>, tensor<f32>)
      -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>, tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// quantize (C11)
func.func @quantize_group_hadamard(%x: tensor<64x32xbf16>, %ax: tensor<2xf32>) {
  %0:2 = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 48, 16>, outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<size = 16>}
      : (tensor<64x32xbf16>, tensor<2xf32>) -> (tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>)
  // expected-error @+2 {{attribute 'groups' must be multiples of 32, but got [48, 16]}}
  // expected-note @+1 {{the transform of a group does not cross its edge; pad the groups with zeros}}
  %1:2 = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 48, 16>, outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<size = 32>}
      : (tensor<64x32xbf16>, tensor<2xf32>) -> (tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>)
  return
}

// -----

// quantize (C13)
func.func @quantize_group_philox(%x: tensor<32x32xbf16>, %ax: tensor<2xf32>, %rng: tensor<2xi64>) {
  %0:2 = fp4.quantize %x amax %ax rng %rng {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 16, 16>, rounding = #fp4.rounding<stochastic>}
      : (tensor<32x32xbf16>, tensor<2xf32>, tensor<2xi64>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // expected-error @+2 {{attribute 'philox' must be element unless rounding is stochastic and blocks are nvfp4's 1 x 16 of one matrix}}
  // expected-note @+1 {{TransformerEngine defines its mapping for that kernel only}}
  %1:2 = fp4.quantize %x amax %ax rng %rng {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 16, 16>, rounding = #fp4.rounding<stochastic>, philox = #fp4.philox<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<2xf32>, tensor<2xi64>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// quantize (C14)
func.func @quantize_group_rows(%x: tensor<32x32xbf16>) {
  %0:2 = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, groups = array<i64: 31, 0, 1>}
      : (tensor<32x32xbf16>) -> (tensor<32x32xf4E2M1FN>, tensor<32x1xf8E8M0FNU>)
  // expected-error @+2 {{attribute 'groups' must add up to the rows of operand 'input', but got [31, 2]}}
  // expected-note @+1 {{operand 'input' is 'tensor<32x32xbf16>'; the operand holds the groups one after the other}}
  %1:2 = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, groups = array<i64: 31, 2>}
      : (tensor<32x32xbf16>) -> (tensor<32x32xf4E2M1FN>, tensor<32x1xf8E8M0FNU>)
  return
}

// -----

// quantize (C14)
func.func @quantize_group_blocks(%x: tensor<32x32xbf16>, %ax: tensor<2xf32>) {
  %0:2 = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 24, 8>}
      : (tensor<32x32xbf16>, tensor<2xf32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // expected-error @+2 {{attribute 'groups' must be multiples of 16, but got [24, 8]}}
  // expected-note @+1 {{blocks do not cross the edge of a group; pad the groups with zeros}}
  %1:2 = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 24, 8>, block = array<i64: 16, 16>}
      : (tensor<32x32xbf16>, tensor<2xf32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// quantize (C15)
func.func @quantize_per_row(%x: tensor<32x32xbf16>, %ax: tensor<32xf32>) {
  %0:2 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row}
      : (tensor<32x32xbf16>, tensor<32xf32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // expected-error @+2 {{expects blocks of one row and no groups beside 'per_row', but got blocks of 16 x 16}}
  // expected-note @+1 {{each row has a tensor scale of its own}}
  %1:2 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, block = array<i64: 16, 16>}
      : (tensor<32x32xbf16>, tensor<32xf32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// quantize (C15)
func.func @quantize_per_row_both(%x: tensor<32x48xbf16>, %rows: tensor<32xf32>, %columns: tensor<48xf32>) {
  %0:4 = fp4.quantize %x amax %rows columnwise_amax %columns
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, outputs = #fp4.outputs<both>}
      : (tensor<32x48xbf16>, tensor<32xf32>, tensor<48xf32>)
      -> (tensor<32x48xf4E2M1FN>, tensor<32x3xf8E4M3FN>, tensor<48x32xf4E2M1FN>, tensor<48x2xf8E4M3FN>)
  // expected-error @+2 {{expects operand 'columnwise_amax' beside 'per_row' for outputs both, but got none}}
  // expected-note @+1 {{a row of the columnwise output is a column of the input: fp4.amax with 'per_column'}}
  %1:4 = fp4.quantize %x amax %rows
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, outputs = #fp4.outputs<both>}
      : (tensor<32x48xbf16>, tensor<32xf32>)
      -> (tensor<32x48xf4E2M1FN>, tensor<32x3xf8E4M3FN>, tensor<48x32xf4E2M1FN>, tensor<48x2xf8E4M3FN>)
  return
}

// -----

// quantize (C9)
func.func @quantize_per_row_columns(%x: tensor<32x48xbf16>, %rows: tensor<32xf32>, %columns: tensor<48xf32>) {
  %0:4 = fp4.quantize %x amax %rows columnwise_amax %columns
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, outputs = #fp4.outputs<both>}
      : (tensor<32x48xbf16>, tensor<32xf32>, tensor<48xf32>)
      -> (tensor<32x48xf4E2M1FN>, tensor<32x3xf8E4M3FN>, tensor<48x32xf4E2M1FN>, tensor<48x2xf8E4M3FN>)
  // expected-error @+1 {{operand 'columnwise_amax' must be 'tensor<48xf32>', but got 'tensor<32xf32>'}}
  %1:4 = fp4.quantize %x amax %rows columnwise_amax %rows
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, outputs = #fp4.outputs<both>}
      : (tensor<32x48xbf16>, tensor<32xf32>, tensor<32xf32>)
      -> (tensor<32x48xf4E2M1FN>, tensor<32x3xf8E4M3FN>, tensor<48x32xf4E2M1FN>, tensor<48x2xf8E4M3FN>)
  return
}

// -----

// quantize (C5)
func.func @quantize_per_row_amax(%x: tensor<32x32xbf16>, %ok: tensor<32xf32>, %bad: tensor<f32>) {
  %0:2 = fp4.quantize %x amax %ok
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row}
      : (tensor<32x32xbf16>, tensor<32xf32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // expected-error @+1 {{operand 'amax' must be 'tensor<32xf32>', but got 'tensor<f32>'}}
  %1:2 = fp4.quantize %x amax %bad
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// quantize (C8)
func.func @quantize_wide_data(%x: tensor<32x32xbf16>) {
  %0:2 = fp4.quantize %x {format = #fp4.format<mxfp8_e5m2>, recipe = #fp4.recipe<mxfp8_e5m2_rceil>}
      : (tensor<32x32xbf16>) -> (tensor<32x32xf8E5M2>, tensor<32x1xf8E8M0FNU>)
  // expected-error @+1 {{result 'data' must be 'tensor<32x32xf8E5M2>', but got 'tensor<32x32xf8E4M3FN>'}}
  %1:2 = fp4.quantize %x {format = #fp4.format<mxfp8_e5m2>, recipe = #fp4.recipe<mxfp8_e5m2_rceil>}
      : (tensor<32x32xbf16>) -> (tensor<32x32xf8E4M3FN>, tensor<32x1xf8E8M0FNU>)
  return
}

// -----

// quantize (C5)
func.func @per_row_without_amax(%x: tensor<4x32xbf16>) {
  // expected-error @+2 {{expects no attribute 'per_row' for format mxfp8_e4m3, but got one}}
  // expected-note @+1 {{format mxfp8_e4m3 has no tensor scale; remove the attribute or use format nvfp4}}
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_floor>, per_row}
      : (tensor<4x32xbf16>) -> (tensor<4x32xf8E4M3FN>, tensor<4x1xf8E8M0FNU>)
  return
}
