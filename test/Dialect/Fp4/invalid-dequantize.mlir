// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// One case per constraint of Fp4Constraints.td. The first operation of a case is legal, the second differs
// from it in what the constraint is about.

// dequantize (C1)
func.func @dequantize_data(%ok: tensor<4x32xf4E2M1FN>, %bad: tensor<4x32xi4>, %s: tensor<4x1xf8E8M0FNU>) {
  %0 = fp4.dequantize %ok scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>) -> tensor<4x32xf32>
  // expected-error @+2 {{operand 'data' must have elements of type f4E2M1FN, but got 'tensor<4x32xi4>'}}
  // expected-note @+1 {{the element type is that of format mxfp4}}
  %1 = fp4.dequantize %bad scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<4x32xi4>, tensor<4x1xf8E8M0FNU>) -> tensor<4x32xf32>
  return
}

// -----

// dequantize (C1)
func.func @dequantize_wide_data(%ok: tensor<4x32xf6E3M2FN>, %bad: tensor<4x32xf6E2M3FN>, %s: tensor<4x1xf8E8M0FNU>) {
  %0 = fp4.dequantize %ok scaled %s {format = #fp4.format<mxfp6_e3m2>}
      : (tensor<4x32xf6E3M2FN>, tensor<4x1xf8E8M0FNU>) -> tensor<4x32xf32>
  // expected-error @+2 {{operand 'data' must have elements of type f6E3M2FN, but got 'tensor<4x32xf6E2M3FN>'}}
  // expected-note @+1 {{the element type is that of format mxfp6_e3m2}}
  %1 = fp4.dequantize %bad scaled %s {format = #fp4.format<mxfp6_e3m2>}
      : (tensor<4x32xf6E2M3FN>, tensor<4x1xf8E8M0FNU>) -> tensor<4x32xf32>
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
  // expected-note @+1 {{the scale type is that of format mxfp4}}
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
  // expected-error @+2 {{result 'result' must have elements of type bf16, f16 or f32, but got 'tensor<4x32xf64>'}}
  // expected-note @+1 {{convert the tensor to one of these types first}}
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

// dequantize (C6)
func.func @dequantize_one_level(%q: tensor<4x32xf4E2M1FN>, %s: tensor<4x2xf8E4M3FN>, %ax: tensor<f32>) {
  %0 = fp4.dequantize %q scaled %s {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>}
      : (tensor<4x32xf4E2M1FN>, tensor<4x2xf8E4M3FN>) -> tensor<4x32xf32>
  // expected-error @+2 {{expects no operand 'amax' for recipe torchao_1level, but got one}}
  // expected-note @+1 {{recipe torchao_1level has no tensor scale; remove the operand}}
  %1 = fp4.dequantize %q scaled %s amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>}
      : (tensor<4x32xf4E2M1FN>, tensor<4x2xf8E4M3FN>, tensor<f32>) -> tensor<4x32xf32>
  return
}

// -----

// dequantize (C9)
func.func @dequantize_recipe(%q: tensor<4x32xf4E2M1FN>, %s: tensor<4x1xf8E8M0FNU>) {
  %0 = fp4.dequantize %q scaled %s {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_even>}
      : (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>) -> tensor<4x32xf32>
  // expected-error @+2 {{expects a recipe of format mxfp4, but got vllm}}
  // expected-note @+1 {{the recipes of mxfp4 are ocp_floor}}
  %1 = fp4.dequantize %q scaled %s {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<vllm>}
      : (tensor<4x32xf4E2M1FN>, tensor<4x1xf8E8M0FNU>) -> tensor<4x32xf32>
  return
}
