// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// Groups of quantizers, amaxes and scales: one case per constraint of docs/reference/semantics.md, as in
// invalid-groups.mlir.

// quantize (C610)
func.func @quantize_both(%x: tensor<64x32xbf16>, %a: tensor<2xf32>, %o: tensor<3xi64>) {
  %0:2 = fp4.quantize %x amax %a offsets %o {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<64x32xbf16>, tensor<2xf32>, tensor<3xi64>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  // expected-error @+2 {{expects one of attribute 'groups' and operand 'offsets', but got both}}
  // expected-note @+1 {{'groups' are rows that the program knows, 'offsets' those that only the device knows}}
  %1:2 = fp4.quantize %x amax %a offsets %o {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 32, 32>}
      : (tensor<64x32xbf16>, tensor<2xf32>, tensor<3xi64>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  return
}

// -----

// quantize (C610)
func.func @quantize_offsets(%x: tensor<64x32xbf16>, %a: tensor<2xf32>, %o: tensor<2x2xi64>, %three: tensor<2x3xi64>) {
  %0:2 = fp4.quantize %x amax %a offsets %o {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<64x32xbf16>, tensor<2xf32>, tensor<2x2xi64>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  // expected-error @+2 {{operand 'offsets' must be a static tensor of i64 with one number more than there are groups, or with two numbers for each group, but got 'tensor<2x3xi64>'}}
  // expected-note @+1 {{write tensor<Gx2xi64> of the first row and the end of each group, or tensor<(G + 1)xi64> where groups follow each other}}
  %1:2 = fp4.quantize %x amax %a offsets %three {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<64x32xbf16>, tensor<2xf32>, tensor<2x3xi64>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  return
}

// -----

// quantize (C610)
func.func @quantize_no_numbers(%x: tensor<64x32xbf16>, %o: tensor<2xi64>, %none: tensor<i64>) {
  %0:2 = fp4.quantize %x offsets %o {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<64x32xbf16>, tensor<2xi64>) -> (tensor<64x32xf4E2M1FN>, tensor<64x1xf8E8M0FNU>)
  // expected-error @+2 {{operand 'offsets' must be a static tensor of i64 with one number more than there are groups, or with two numbers for each group, but got 'tensor<i64>'}}
  // expected-note @+1 {{write tensor<Gx2xi64>}}
  %1:2 = fp4.quantize %x offsets %none {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<64x32xbf16>, tensor<i64>) -> (tensor<64x32xf4E2M1FN>, tensor<64x1xf8E8M0FNU>)
  return
}

// -----

// quantize (C610)
func.func @quantize_many(%x: tensor<64x32xbf16>, %o: tensor<65537xi64>, %many: tensor<65538xi64>) {
  %0:2 = fp4.quantize %x offsets %o {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<64x32xbf16>, tensor<65537xi64>) -> (tensor<64x32xf4E2M1FN>, tensor<64x1xf8E8M0FNU>)
  // expected-error @+2 {{operand 'offsets' must have at most 65537 numbers, but got 'tensor<65538xi64>'}}
  // expected-note @+1 {{cut so many groups into several operations}}
  %1:2 = fp4.quantize %x offsets %many {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<64x32xbf16>, tensor<65538xi64>) -> (tensor<64x32xf4E2M1FN>, tensor<64x1xf8E8M0FNU>)
  return
}

// -----

// quantize (C610)
func.func @quantize_rows(%x: tensor<64x32xbf16>, %d: tensor<?x32xbf16>, %o: tensor<3xi64>) {
  %0:2 = fp4.quantize %x offsets %o {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<64x32xbf16>, tensor<3xi64>) -> (tensor<64x32xf4E2M1FN>, tensor<64x1xf8E8M0FNU>)
  // expected-error @+2 {{operand 'input' must have static rows beside 'offsets', but got 'tensor<?x32xbf16>'}}
  // expected-note @+1 {{the last of the offsets says how many of them the groups use}}
  %1:2 = fp4.quantize %d offsets %o {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<?x32xbf16>, tensor<3xi64>) -> (tensor<?x32xf4E2M1FN>, tensor<?x1xf8E8M0FNU>)
  return
}

// -----

// quantize (C611)
func.func @quantize_columns(%x: tensor<64x32xbf16>, %o: tensor<3xi64>) {
  %0:2 = fp4.quantize %x offsets %o {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<64x32xbf16>, tensor<3xi64>) -> (tensor<64x32xf4E2M1FN>, tensor<64x1xf8E8M0FNU>)
  // expected-error @+2 {{expects outputs rowwise and blocks of one row beside 'offsets', but got columnwise}}
  // expected-note @+1 {{a block of several rows would cross the edge of a group; 'groups', which the program knows, may be whole blocks}}
  %1:2 = fp4.quantize %x offsets %o {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<columnwise>}
      : (tensor<64x32xbf16>, tensor<3xi64>) -> (tensor<32x64xf4E2M1FN>, tensor<32x2xf8E8M0FNU>)
  return
}

// -----

// quantize (C611)
func.func @quantize_squares(%x: tensor<64x32xbf16>, %a: tensor<2xf32>, %o: tensor<3xi64>) {
  %0:2 = fp4.quantize %x amax %a offsets %o {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, block = array<i64: 1, 16>}
      : (tensor<64x32xbf16>, tensor<2xf32>, tensor<3xi64>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  // expected-error @+2 {{expects outputs rowwise and blocks of one row beside 'offsets', but got blocks of 16 x 16}}
  // expected-note @+1 {{a block of several rows would cross the edge of a group}}
  %1:2 = fp4.quantize %x amax %a offsets %o {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, block = array<i64: 16, 16>}
      : (tensor<64x32xbf16>, tensor<2xf32>, tensor<3xi64>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  return
}

// -----

// quantize (C611)
func.func @quantize_unspecified(%x: tensor<64x32xbf16>, %o: tensor<3xi64>) {
  %0:2 = fp4.quantize %x offsets %o {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, unspecified_rows}
      : (tensor<64x32xbf16>, tensor<3xi64>) -> (tensor<64x32xf4E2M1FN>, tensor<64x1xf8E8M0FNU>)
  // expected-error @+2 {{expects attribute 'unspecified_rows' with operand 'offsets' alone}}
  // expected-note @+1 {{without 'offsets' every row is quantized}}
  %1:2 = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, unspecified_rows}
      : (tensor<64x32xbf16>) -> (tensor<64x32xf4E2M1FN>, tensor<64x1xf8E8M0FNU>)
  return
}

// -----

// quantize (C496)
func.func @quantize_any_columns(%x: tensor<64x32xbf16>, %d: tensor<64x?xbf16>, %o: tensor<3xi64>) {
  %0:2 = fp4.quantize %x offsets %o {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<64x32xbf16>, tensor<3xi64>) -> (tensor<64x32xf4E2M1FN>, tensor<64x1xf8E8M0FNU>)
  // expected-error @+2 {{operand 'input' must have a static number of columns beside operand 'offsets', but got 'tensor<64x?xbf16>'}}
  // expected-note @+1 {{give the columns a static size}}
  %1:2 = fp4.quantize %d offsets %o {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<64x?xbf16>, tensor<3xi64>) -> (tensor<64x?xf4E2M1FN>, tensor<64x?xf8E8M0FNU>)
  return
}

// -----

// quantize (C5)
func.func @quantize_amax(%x: tensor<64x32xbf16>, %two: tensor<2xf32>, %one: tensor<f32>, %o: tensor<3xi64>) {
  %0:2 = fp4.quantize %x amax %two offsets %o {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<64x32xbf16>, tensor<2xf32>, tensor<3xi64>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  // expected-error @+1 {{operand 'amax' must be 'tensor<2xf32>', but got 'tensor<f32>'}}
  %1:2 = fp4.quantize %x amax %one offsets %o {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<64x32xbf16>, tensor<f32>, tensor<3xi64>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  return
}

// -----

!list = tensor<640x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!short = tensor<512x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
// quantize (C8)
func.func @quantize_list(%x: tensor<384x32xbf16>, %o: tensor<3xi64>) {
  %0:2 = fp4.quantize %x offsets %o {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<384x32xbf16>, tensor<3xi64>) -> (tensor<384x32xf4E2M1FN>, !list)
  // expected-error @+1 {{result 'scales' must be 'tensor<640x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>', but got}}
  %1:2 = fp4.quantize %x offsets %o {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<384x32xbf16>, tensor<3xi64>) -> (tensor<384x32xf4E2M1FN>, !short)
  return
}

// -----

// quantize (C51)
func.func @quantize_fp8(%x: tensor<64x32xbf16>, %o: tensor<3xi64>) {
  %0:2 = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<64x32xbf16>) -> (tensor<64x32xf8E4M3FN>, tensor<64x1xf32>)
  // expected-error @+2 {{expects no operand 'offsets' for format fp8_block128}}
  // expected-note @+1 {{leave it out}}
  %1:2 = fp4.quantize %x offsets %o {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<64x32xbf16>, tensor<3xi64>) -> (tensor<64x32xf8E4M3FN>, tensor<64x1xf32>)
  return
}

// -----

// amax (C610)
func.func @amax_offsets(%x: tensor<64x32xbf16>, %o: tensor<3xi64>, %f: tensor<3xf32>) {
  %0 = fp4.amax %x offsets %o : tensor<64x32xbf16>, tensor<3xi64> -> tensor<2xf32>
  // expected-error @+2 {{operand 'offsets' must be a static tensor of i64 with one number more than there are groups, or with two numbers for each group, but got 'tensor<3xf32>'}}
  // expected-note @+1 {{write tensor<Gx2xi64>}}
  %1 = fp4.amax %x offsets %f : tensor<64x32xbf16>, tensor<3xf32> -> tensor<2xf32>
  return
}

// -----

// amax (C5)
func.func @amax_rows(%x: tensor<64x32xbf16>, %o: tensor<3xi64>) {
  %0 = fp4.amax %x offsets %o : tensor<64x32xbf16>, tensor<3xi64> -> tensor<2xf32>
  // expected-error @+2 {{expects no operand 'offsets' beside 'per_row', but got one}}
  // expected-note @+1 {{rows and columns have amaxes of their own already: leave 'offsets' out}}
  %1 = fp4.amax %x offsets %o {per_row} : tensor<64x32xbf16>, tensor<3xi64> -> tensor<64xf32>
  return
}

// -----

// amax (C3)
func.func @amax_result(%x: tensor<64x32xbf16>, %o: tensor<3xi64>) {
  %0 = fp4.amax %x offsets %o : tensor<64x32xbf16>, tensor<3xi64> -> tensor<2xf32>
  // expected-error @+1 {{result 'amax' must be 'tensor<2xf32>', but got 'tensor<f32>'}}
  %1 = fp4.amax %x offsets %o : tensor<64x32xbf16>, tensor<3xi64> -> tensor<f32>
  return
}

// -----

!list = tensor<640x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!short = tensor<384x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
// swizzle_scales (C4)
func.func @swizzle_list(%s: tensor<384x4xf8E8M0FNU>, %o: tensor<3xi64>) {
  %0 = fp4.swizzle_scales %s offsets %o : tensor<384x4xf8E8M0FNU>, tensor<3xi64> -> !list
  // expected-error @+2 {{result 'result' must be 'tensor<640x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>', but got}}
  // expected-note @+1 {{the list of tiles has room for any groups}}
  %1 = fp4.swizzle_scales %s offsets %o : tensor<384x4xf8E8M0FNU>, tensor<3xi64> -> !short
  return
}

// -----

!list = tensor<640x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
// swizzle_scales (C610)
func.func @swizzle_offsets(%s: tensor<384x4xf8E8M0FNU>, %o: tensor<3xi64>, %one: tensor<1xi64>) {
  %0 = fp4.swizzle_scales %s offsets %o : tensor<384x4xf8E8M0FNU>, tensor<3xi64> -> !list
  // expected-error @+2 {{operand 'offsets' must be a static tensor of i64 with one number more than there are groups, or with two numbers for each group, but got 'tensor<1xi64>'}}
  // expected-note @+1 {{write tensor<Gx2xi64>}}
  %1 = fp4.swizzle_scales %s offsets %one : tensor<384x4xf8E8M0FNU>, tensor<1xi64> -> !list
  return
}

// -----

!list = tensor<640x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
// swizzle_scales (C496)
func.func @swizzle_columns(%s: tensor<384x4xf8E8M0FNU>, %d: tensor<384x?xf8E8M0FNU>, %o: tensor<3xi64>) {
  %0 = fp4.swizzle_scales %s offsets %o : tensor<384x4xf8E8M0FNU>, tensor<3xi64> -> !list
  // expected-error @+2 {{operand 'input' must have a static number of columns beside operand 'offsets', but got 'tensor<384x?xf8E8M0FNU>'}}
  // expected-note @+1 {{give the columns a static size}}
  %1 = fp4.swizzle_scales %d offsets %o : tensor<384x?xf8E8M0FNU>, tensor<3xi64> -> !list
  return
}
