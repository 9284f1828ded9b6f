// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// One case per constraint of docs/Spec.md. The first operation of a case is legal, the second differs
// from it in what the constraint is about.

// amax (C1)
func.func @amax_elements(%ok: tensor<4x16xbf16>, %bad: tensor<4x16xi32>) {
  %0 = fp4.amax %ok : tensor<4x16xbf16> -> tensor<f32>
  // expected-error @+1 {{operand 'input' must have elements of type bf16, f16 or f32, but got 'tensor<4x16xi32>'}}
  %1 = fp4.amax %bad : tensor<4x16xi32> -> tensor<f32>
  return
}

// -----

// amax (C2)
func.func @amax_encoding(%ok: tensor<4x16xbf16>, %bad: tensor<4x16xbf16, "csr">) {
  %0 = fp4.amax %ok : tensor<4x16xbf16> -> tensor<f32>
  // expected-error @+1 {{operand 'input' must have no encoding but #fp4.scale_layout, but got 'tensor<4x16xbf16, "csr">'}}
  %1 = fp4.amax %bad : tensor<4x16xbf16, "csr"> -> tensor<f32>
  return
}

// -----

// amax (C2)
func.func @amax_rank(%ok: tensor<4x16xbf16>, %bad: tensor<64xbf16>) {
  %0 = fp4.amax %ok : tensor<4x16xbf16> -> tensor<f32>
  // expected-error @+1 {{operand 'input' must have 2 dimensions, but got 'tensor<64xbf16>'}}
  %1 = fp4.amax %bad : tensor<64xbf16> -> tensor<f32>
  return
}

// -----

// amax (C2)
func.func @amax_columns(%ok: tensor<?x16xbf16>, %bad: tensor<4x?xbf16>) {
  %0 = fp4.amax %ok : tensor<?x16xbf16> -> tensor<f32>
  // expected-error @+2 {{operand 'input' must have a static number of columns, but got 'tensor<4x?xbf16>'}}
  // expected-note @+1 {{only the rows, dimension 0, may be dynamic}}
  %1 = fp4.amax %bad : tensor<4x?xbf16> -> tensor<f32>
  return
}

// -----

// amax (C3)
func.func @amax_result(%x: tensor<4x16xbf16>) {
  %0 = fp4.amax %x : tensor<4x16xbf16> -> tensor<f32>
  // expected-error @+2 {{result 'amax' must be a tensor<f32>, but got 'tensor<bf16>'}}
  // expected-note @+1 {{one number in device memory}}
  %1 = fp4.amax %x : tensor<4x16xbf16> -> tensor<bf16>
  return
}

// -----

// hadamard (C1)
func.func @hadamard_elements(%ok: tensor<4x16xbf16>, %bad: tensor<4x16xf32>) {
  %0 = fp4.hadamard %ok : tensor<4x16xbf16> -> tensor<4x16xbf16>
  // expected-error @+1 {{operand 'input' must have elements of type bf16, but got 'tensor<4x16xf32>'}}
  %1 = fp4.hadamard %bad : tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----

// hadamard (C2)
func.func @hadamard_rank(%ok: tensor<4x16xbf16>, %bad: tensor<1x4x16xbf16>) {
  %0 = fp4.hadamard %ok : tensor<4x16xbf16> -> tensor<4x16xbf16>
  // expected-error @+1 {{operand 'input' must have 2 dimensions}}
  %1 = fp4.hadamard %bad : tensor<1x4x16xbf16> -> tensor<1x4x16xbf16>
  return
}

// -----

// hadamard (C3)
func.func @hadamard_size(%x: tensor<4x96xbf16>) {
  %0 = fp4.hadamard %x {size = 32 : i64} : tensor<4x96xbf16> -> tensor<4x96xbf16>
  // expected-error @+1 {{attribute 'size' must be 16, 32, 64 or 128, but got 48}}
  %1 = fp4.hadamard %x {size = 48 : i64} : tensor<4x96xbf16> -> tensor<4x96xbf16>
  return
}

// -----

// hadamard (C4)
func.func @hadamard_dimension(%x: tensor<16x16xbf16>) {
  %0 = fp4.hadamard %x {dimension = 0 : i64} : tensor<16x16xbf16> -> tensor<16x16xbf16>
  // expected-error @+1 {{attribute 'dimension' must be 0 or 1, but got 2}}
  %1 = fp4.hadamard %x {dimension = 2 : i64} : tensor<16x16xbf16> -> tensor<16x16xbf16>
  return
}

// -----

// hadamard (C5)
func.func @hadamard_multiple(%x: tensor<24x16xbf16>) {
  %0 = fp4.hadamard %x : tensor<24x16xbf16> -> tensor<24x16xbf16>
  // expected-error @+2 {{operand 'input' must have a dimension 0 that is a multiple of 16, but got 24}}
  // expected-note @+1 {{groups do not cross the edge; pad the dimension with zeros}}
  %1 = fp4.hadamard %x {dimension = 0 : i64} : tensor<24x16xbf16> -> tensor<24x16xbf16>
  return
}

// -----

// hadamard (C6)
func.func @hadamard_signs(%x: tensor<16x16xbf16>) {
  %0 = fp4.hadamard %x {sign_mask = 65535 : i64} : tensor<16x16xbf16> -> tensor<16x16xbf16>
  // expected-error @+2 {{attribute 'sign_mask' must have no bit set at or above 16, but got 65536}}
  // expected-note @+1 {{bit i negates element i of each group of 16}}
  %1 = fp4.hadamard %x {sign_mask = 65536 : i64} : tensor<16x16xbf16> -> tensor<16x16xbf16>
  return
}

// -----

// hadamard (C7)
func.func @hadamard_result(%x: tensor<16x16xbf16>) {
  %0 = fp4.hadamard %x : tensor<16x16xbf16> -> tensor<16x16xbf16>
  // expected-error @+1 {{result 'result' must be 'tensor<16x16xbf16>', but got 'tensor<16x16xf32>'}}
  %1 = fp4.hadamard %x : tensor<16x16xbf16> -> tensor<16x16xf32>
  return
}

// -----

// quantize (C1)
func.func @quantize_elements(%ok: tensor<4x32xf16>, %bad: tensor<4x32xf64>) {
  %0:2 = fp4.quantize %ok {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<4x32xf16>) -> (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>)
  // expected-error @+1 {{operand 'input' must have elements of type bf16, f16 or f32, but got 'tensor<4x32xf64>'}}
  %1:2 = fp4.quantize %bad {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<4x32xf64>) -> (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>)
  return
}

// -----

// quantize (C2)
func.func @quantize_columns(%ok: tensor<?x32xbf16>, %bad: tensor<4x?xbf16>) {
  %0:2 = fp4.quantize %ok {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<?x32xbf16>) -> (tensor<?x32xf4E2M1FN>, tensor<?x1xf8E8M0FNU>)
  // expected-error @+2 {{operand 'input' must have a static number of columns}}
  // expected-note @+1 {{only the rows}}
  %1:2 = fp4.quantize %bad {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<4x?xbf16>) -> (tensor<4x?xf4E2M1FN>, tensor<4x?xf8E8M0FNU>)
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
func.func @quantize_columnwise_rows(%ok: tensor<32x48xbf16>, %bad: tensor<?x48xbf16>) {
  %0:2 = fp4.quantize %ok
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<columnwise>}
      : (tensor<32x48xbf16>) -> (tensor<48x32xf4E2M1FN>, tensor<48x1xf8E8M0FNU>)
  // expected-error @+2 {{operand 'input' must have a dimension 0 that is a multiple of 32, but got ?}}
  // expected-note @+1 {{a block of format mxfp4 has 32 elements}}
  %1:2 = fp4.quantize %bad
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<columnwise>}
      : (tensor<?x48xbf16>) -> (tensor<48x?xf4E2M1FN>, tensor<48x?xf8E8M0FNU>)
  return
}

// -----

// quantize (C4)
func.func @quantize_recipe(%x: tensor<4x32xbf16>) {
  %0:2 = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>}
      : (tensor<4x32xbf16>) -> (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>)
  // expected-error @+2 {{expects a recipe of format mxfp4, but got transformer_engine}}
  // expected-note @+1 {{those of mxfp4 are ocp_floor, ocp_ceil, ocp_even and ocp_rceil}}
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
  // expected-error @+1 {{attribute 'block' must be [1, 16] or [16, 16] for format nvfp4, but got [1, 32]}}
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

// dequantize (C1)
func.func @dequantize_data(%ok: tensor<4x32xf4E2M1FN>, %bad: tensor<4x32xi4>, %s: tensor<4x1xf8E8M0FNU>) {
  %0 = fp4.dequantize %ok scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>) -> tensor<4x32xf32>
  // expected-error @+1 {{operand 'data' must have elements of type f4E2M1FN, but got 'tensor<4x32xi4>'}}
  %1 = fp4.dequantize %bad scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<4x32xi4>, tensor<4x1xf8E8M0FNU>) -> tensor<4x32xf32>
  return
}

// -----

// dequantize (C2)
func.func @dequantize_multiple(%ok: tensor<4x32xf4E2M1FN>, %bad: tensor<4x24xf4E2M1FN>, %s: tensor<4x1xf8E8M0FNU>) {
  %0 = fp4.dequantize %ok scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>) -> tensor<4x32xf32>
  // expected-error @+2 {{operand 'data' must have a dimension 1 that is a multiple of 32, but got 24}}
  // expected-note @+1 {{pad that axis with zeros}}
  %1 = fp4.dequantize %bad scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<4x24xf4E2M1FN>, tensor<4x1xf8E8M0FNU>) -> tensor<4x24xf32>
  return
}

// -----

// dequantize (C3)
func.func @dequantize_scale_elements(%q: tensor<4x32xf4E2M1FN>, %ok: tensor<4x1xf8E8M0FNU>, %bad: tensor<4x1xf8E4M3FN>) {
  %0 = fp4.dequantize %q scaled %ok {format = #fp4.format<mxfp4>}
      : (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>) -> tensor<4x32xf32>
  // expected-error @+2 {{operand 'scales' must have elements of type f8E8M0FNU, but got 'tensor<4x1xf8E4M3FN>'}}
  // expected-note @+1 {{this is the scale type of format mxfp4}}
  %1 = fp4.dequantize %q scaled %bad {format = #fp4.format<mxfp4>}
      : (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E4M3FN>) -> tensor<4x32xf32>
  return
}

// -----

// dequantize (C4)
func.func @dequantize_layout(%q: tensor<4x32xf4E2M1FN>, %ok: tensor<4x1xf8E8M0FNU>,
                             %bad: tensor<4x1xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.dequantize %q scaled %ok {format = #fp4.format<mxfp4>}
      : (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>) -> tensor<4x32xf32>
  // expected-error @+2 {{operand 'scales' must be row-major}}
  // expected-note @+1 {{insert fp4.unswizzle_scales}}
  %1 = fp4.dequantize %q scaled %bad {format = #fp4.format<mxfp4>}
      : (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<4x32xf32>
  return
}

// -----

// dequantize (C5)
func.func @dequantize_scale_shape(%q: tensor<4x64xf4E2M1FN>, %ok: tensor<4x2xf8E8M0FNU>, %bad: tensor<4x4xf8E8M0FNU>) {
  %0 = fp4.dequantize %q scaled %ok {format = #fp4.format<mxfp4>}
      : (tensor<4x64xf4E2M1FN>, tensor<4x2xf8E8M0FNU>) -> tensor<4x64xf32>
  // expected-error @+1 {{operand 'scales' must be 'tensor<4x2xf8E8M0FNU>', but got 'tensor<4x4xf8E8M0FNU>'}}
  %1 = fp4.dequantize %q scaled %bad {format = #fp4.format<mxfp4>}
      : (tensor<4x64xf4E2M1FN>, tensor<4x4xf8E8M0FNU>) -> tensor<4x64xf32>
  return
}

// -----

// dequantize (C6)
func.func @dequantize_amax(%q: tensor<4x32xf4E2M1FN>, %s: tensor<4x2xf8E4M3FN>, %ax: tensor<f32>) {
  %0 = fp4.dequantize %q scaled %s amax %ax {format = #fp4.format<nvfp4>}
      : (tensor<4x32xf4E2M1FN>, tensor<4x2xf8E4M3FN>, tensor<f32>) -> tensor<4x32xf32>
  // expected-error @+2 {{expects operand 'amax' for format nvfp4, but got none}}
  // expected-note @+1 {{compute it with fp4.amax}}
  %1 = fp4.dequantize %q scaled %s {format = #fp4.format<nvfp4>}
      : (tensor<4x32xf4E2M1FN>, tensor<4x2xf8E4M3FN>) -> tensor<4x32xf32>
  return
}

// -----

// dequantize (C7)
func.func @dequantize_result_elements(%q: tensor<4x32xf4E2M1FN>, %s: tensor<4x1xf8E8M0FNU>) {
  %0 = fp4.dequantize %q scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>) -> tensor<4x32xbf16>
  // expected-error @+1 {{result 'result' must have elements of type bf16, f16 or f32, but got 'tensor<4x32xf64>'}}
  %1 = fp4.dequantize %q scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>) -> tensor<4x32xf64>
  return
}

// -----

// dequantize (C8)
func.func @dequantize_result_shape(%q: tensor<4x32xf4E2M1FN>, %s: tensor<4x1xf8E8M0FNU>) {
  %0 = fp4.dequantize %q scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>) -> tensor<4x32xf32>
  // expected-error @+1 {{result 'result' must be 'tensor<4x32xf32>', but got 'tensor<32x4xf32>'}}
  %1 = fp4.dequantize %q scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>) -> tensor<32x4xf32>
  return
}

// -----

// swizzle_scales (C1)
func.func @swizzle_elements(%ok: tensor<4x2xf8E4M3FN>, %bad: tensor<4x2xf8E5M2>) {
  %0 = fp4.swizzle_scales %ok : tensor<4x2xf8E4M3FN> -> tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  // expected-error @+1 {{operand 'input' must have elements of type f8E4M3FN or f8E8M0FNU, but got 'tensor<4x2xf8E5M2>'}}
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
  // expected-error @+1 {{operand 'input' must have elements of type f8E4M3FN or f8E8M0FNU, but got 'tensor<4x2xi8>'}}
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

// -----

// matmul_alpha (C1)
func.func @alpha_operand(%ok: tensor<f32>, %bad: tensor<1xf32>) {
  %0 = fp4.matmul_alpha %ok, %ok : tensor<f32>, tensor<f32> -> tensor<f32>
  // expected-error @+2 {{operand 'rhs_amax' must be a tensor<f32>, but got 'tensor<1xf32>'}}
  // expected-note @+1 {{one number in device memory}}
  %1 = fp4.matmul_alpha %ok, %bad : tensor<f32>, tensor<1xf32> -> tensor<f32>
  return
}

// -----

// matmul_alpha (C2)
func.func @alpha_result(%ok: tensor<f32>) {
  %0 = fp4.matmul_alpha %ok, %ok : tensor<f32>, tensor<f32> -> tensor<f32>
  // expected-error @+2 {{result 'alpha' must be a tensor<f32>, but got 'tensor<bf16>'}}
  // expected-note @+1 {{one number in device memory}}
  %1 = fp4.matmul_alpha %ok, %ok : tensor<f32>, tensor<f32> -> tensor<bf16>
  return
}

// -----

// blockscaled_matmul (C1)
func.func @matmul_data(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %bad_b: tensor<8x64xbf16>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  // expected-error @+1 {{operand 'rhs' must have elements of type f4E2M1FN, but got 'tensor<8x64xbf16>'}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %bad_b scaled %sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xbf16>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  return
}

// -----

// blockscaled_matmul (C2)
func.func @matmul_k(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %bad_b: tensor<8x96xf4E2M1FN>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  // expected-error @+2 {{expects operands 'lhs' and 'rhs' with equal dimensions 1, but got 64 and 96}}
  // expected-note @+1 {{both are contracted along dimension 1: lhs is M x K and rhs is N x K}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %bad_b scaled %sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x96xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  return
}

// -----

// blockscaled_matmul (C3)
func.func @matmul_block(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %bad_a: tensor<?x48xf4E2M1FN>, %bad_b: tensor<8x48xf4E2M1FN>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  // expected-error @+2 {{operand 'lhs' must have a dimension 1 that is a multiple of 32, but got 48}}
  // expected-note @+1 {{a block of format mxfp4 has 32 elements of the contraction axis; pad that axis with zeros}}
  %1 = fp4.blockscaled_matmul %bad_a scaled %sa, %bad_b scaled %sb {format = #fp4.format<mxfp4>}
      : (tensor<?x48xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x48xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  return
}

// -----

// blockscaled_matmul (C4)
func.func @matmul_scale_elements(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %bad_sa: tensor<?x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  // expected-error @+2 {{operand 'lhs_scales' must have elements of type f8E8M0FNU}}
  // expected-note @+1 {{this is the scale type of format mxfp4}}
  %1 = fp4.blockscaled_matmul %a scaled %bad_sa, %b scaled %sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  return
}

// -----

// blockscaled_matmul (C5)
func.func @matmul_scale_layout(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %bad_sb: tensor<8x2xf8E8M0FNU>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  // expected-error @+2 {{operand 'rhs_scales' must have layout #fp4.scale_layout<tiled_128x4>, but got 'tensor<8x2xf8E8M0FNU>'}}
  // expected-note @+1 {{insert fp4.swizzle_scales}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %bad_sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU>) -> tensor<?x8xf32>
  return
}

// -----

// blockscaled_matmul (C6)
func.func @matmul_scale_shape(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %bad_sa: tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  // expected-error @+1 {{operand 'lhs_scales' must be 'tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>', but got 'tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>'}}
  %1 = fp4.blockscaled_matmul %a scaled %bad_sa, %b scaled %sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  return
}

// -----

// blockscaled_matmul (C7)
func.func @matmul_alpha_type(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %alpha: tensor<f32>, %bad: tensor<8xf32>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb alpha %alpha {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<f32>) -> tensor<?x8xf32>
  // expected-error @+2 {{operand 'alpha' must be a tensor<f32>, but got 'tensor<8xf32>'}}
  // expected-note @+1 {{one number in device memory}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb alpha %bad {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// blockscaled_matmul (C8)
func.func @matmul_dynamic_rhs(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %bad_b: tensor<?x64xf4E2M1FN>, %bad_sb: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  // expected-error @+2 {{operand 'rhs' must have a static shape, but got 'tensor<?x64xf4E2M1FN>'}}
  // expected-note @+1 {{only the rows of 'lhs' may be dynamic; swap the operands to make the other side dynamic}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %bad_b scaled %bad_sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  return
}

// -----

// blockscaled_matmul (C9)
func.func @matmul_result_elements(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  // expected-error @+1 {{result 'result' must have elements of type bf16, f16 or f32, but got 'tensor<?x8xf8E4M3FN>'}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf8E4M3FN>
  return
}

// -----

// blockscaled_matmul (C10)
func.func @matmul_result_shape(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  // expected-error @+1 {{result 'result' must be 'tensor<?x8xf32>', but got 'tensor<8x?xf32>'}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<8x?xf32>
  return
}

// -----

// blockscaled_matmul (C11)
func.func @matmul_tile(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp4>, tile_n = 64 : i64}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  // expected-error @+1 {{attribute 'tile_n' must be 64, 128, 192 or 256, but got 96}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp4>, tile_n = 96 : i64}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x8xf32>
  return
}

// -----

// scale_layout (C1)
func.func private @layout_elements(tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
// expected-error @+1 {{scale layout #fp4.scale_layout<tiled_128x4> expects elements of type f8E4M3FN or f8E8M0FNU, but got 'bf16'}}
func.func private @layout_elements_bad(tensor<4x2xbf16, #fp4.scale_layout<tiled_128x4>>)

// -----

// scale_layout (C2)
func.func private @layout_rank(tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
// expected-error @+1 {{scale layout #fp4.scale_layout<tiled_128x4> expects 2 dimensions, but got 1}}
func.func private @layout_rank_bad(tensor<8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)

// -----

// function (C1)
func.func private @name(tensor<4x8xbf16> {fp4.name = "x"})
// expected-error @+1 {{attribute 'fp4.name' of argument 0 must be a string, but got 7 : i64}}
func.func private @name_bad(tensor<4x8xbf16> {fp4.name = 7})

// -----

// function (C2)
func.func private @dims(tensor<4x8xbf16> {fp4.dims = ["M", "K"]})
// expected-error @+1 {{attribute 'fp4.dims' of argument 0 must be one string for each dimension of 'tensor<4x8xbf16>', but got ["M"]}}
func.func private @dims_bad(tensor<4x8xbf16> {fp4.dims = ["M"]})

// -----

func.func private @known() -> (tensor<f32> {fp4.name = "alpha"})
// expected-error @+2 {{result 0 has the unknown attribute 'fp4.title'}}
// expected-note @+1 {{known are fp4.name and fp4.dims}}
func.func private @unknown() -> (tensor<f32> {fp4.title = "alpha"})
