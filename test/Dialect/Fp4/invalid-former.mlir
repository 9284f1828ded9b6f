// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// Words of the former fp4.blockscaled_matmul on fp4.matmul, and what the former one may not have. Both may stand in
// one program.

!a = !fp4.scaled<mxfp4, tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @both(%d: tensor<64x64xf4E2M1FN>, %s: tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.scaled %d, %s : !a
  %0 = fp4.matmul %a, %a : (!a, !a) -> tensor<64x64xf32>
  // expected-warning @+2 {{fp4.blockscaled_matmul is a former spelling, which the next release does not read}}
  // expected-note @+1 {{fp4-opt --fp4-upgrade writes the program with fp4.matmul and fp4.scaled}}
  %1 = fp4.blockscaled_matmul %d scaled %s, %d scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
         tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<64x64xf32>
  return
}

// -----

!a = !fp4.scaled<mxfp4, tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @format(%d: tensor<64x64xf4E2M1FN>, %s: tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.scaled %d, %s : !a
  // expected-error @+2 {{has the unknown attribute 'format'}}
  // expected-note @+1 {{the operand names its format: %a = fp4.scaled %data, %scales : !fp4.scaled<nvfp4, ..>}}
  %0 = fp4.matmul %a, %a {format = #fp4.format<mxfp4>} : (!a, !a) -> tensor<64x64xf32>
  return
}

// -----

!a = !fp4.scaled<mxfp4, tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @split(%d: tensor<64x64xf4E2M1FN>, %s: tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.scaled %d, %s : !a
  // expected-error @+2 {{has the unknown attribute 'split_k'}}
  // expected-note @+1 {{the attribute 'work' has it: work = #fp4.work<split_k = ..>}}
  %0 = fp4.matmul %a, %a {split_k = 2 : i64} : (!a, !a) -> tensor<64x64xf32>
  return
}

// -----

!a = !fp4.scaled<mxfp4, tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @recipe(%d: tensor<64x64xf4E2M1FN>, %s: tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.scaled %d, %s : !a
  // expected-error @+2 {{has the unknown attribute 'quantize_recipe'}}
  // expected-note @+1 {{the epilogue region quantizes: fp4.epilogue_quantize %x {recipe = ..}}}
  %0 = fp4.matmul %a, %a {quantize_recipe = #fp4.recipe<ocp_floor>} : (!a, !a) -> tensor<64x64xf32>
  return
}

// -----

!a = !fp4.scaled<mxfp4, tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @amax(%d: tensor<64x64xf4E2M1FN>, %s: tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.scaled %d, %s : !a
  // expected-error @+2 {{has the unknown attribute 'with_amax'}}
  // expected-note @+1 {{the epilogue region gives the amax: fp4.epilogue_amax %x : bf16 -> f32}}
  %0 = fp4.matmul %a, %a {with_amax} : (!a, !a) -> tensor<64x64xf32>
  return
}

// -----

func.func @scales(%d: tensor<64x64xf4E2M1FN>, %s: tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  // expected-error @+2 {{expects no word 'scaled' behind an operand}}
  // expected-note @+1 {{write %a = fp4.scaled %data, %scales : !fp4.scaled<FORMAT, DATA, SCALES> before it, and pass %a}}
  %0 = fp4.matmul %d scaled %s, %d scaled %s {format = #fp4.format<mxfp4>}
  return
}

// -----

func.func @former(%d: tensor<64x64xf4E2M1FN>, %s: tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %x: tensor<64x64xbf16>) {
  // blockscaled_matmul (C1)
  // expected-error @+2 {{expects no attribute 'rhs_format' beside a lhs without scales}}
  // expected-note @+1 {{leave it out: 'format' is that of rhs}}
  %1 = fp4.blockscaled_matmul %x, %d scaled %s {format = #fp4.format<mxfp4>, rhs_format = #fp4.format<mxfp4>}
      : (tensor<64x64xbf16>, tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
      -> tensor<64x64xf32>
  return
}

// -----

func.func @outputs(%d: tensor<64x64xf4E2M1FN>, %s: tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  // blockscaled_matmul (C1)
  // expected-error @+2 {{expects 'quantize_amax' and 'quantize_outputs' only beside 'quantize_recipe'}}
  // expected-note @+1 {{leave them out, or say the recipe that quantizes the result}}
  %1 = fp4.blockscaled_matmul %d scaled %s, %d scaled %s {format = #fp4.format<mxfp4>, quantize_outputs = #fp4.outputs<both>}
      : (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
         tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<64x64xf32>
  return
}
