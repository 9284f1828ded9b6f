// RUN: fp4-opt %s -split-input-file -verify-diagnostics
// Constraints of a dual GEMM, and of results that are not the elements. Each case has a twin that verifies.

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @shape(%a: !e, %s: !s, %b: tensor<32x128xf4E2M1FN>) {
  %r0 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s with %a scaled %s epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>}
      : (!e, !s, !e, !s, !e, !s) -> tensor<64x64xf32>
  // blockscaled_matmul (C40)
  // expected-error @+2 {{operand 'rhs2' must be 'tensor<64x128xf4E2M1FN>', but got 'tensor<32x128xf4E2M1FN>'}}
  // expected-note @+1 {{both matmuls have the shape of the result}}
  %r1 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s with %b scaled %s epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>}
      : (!e, !s, !e, !s, tensor<32x128xf4E2M1FN>, !s) -> tensor<64x64xf32>
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @alphas(%a: !e, %s: !s, %f: tensor<f32>) {
  %r0 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s alpha %f with %a scaled %s alpha2 %f epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>} : (!e, !s, !e, !s, tensor<f32>, !e, !s, tensor<f32>) -> tensor<64x64xf32>
  // blockscaled_matmul (C40)
  // expected-error @+2 {{expects operands 'alpha' and 'alpha2' of a dual GEMM together}}
  // expected-note @+1 {{pass a constant 1.0 for the matmul that needs no factor}}
  %r1 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s alpha %f with %a scaled %s epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>} : (!e, !s, !e, !s, tensor<f32>, !e, !s) -> tensor<64x64xf32>
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @lonely_alpha(%a: !e, %s: !s, %f: tensor<f32>) {
  %r0 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s with %a scaled %s epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>}
      : (!e, !s, !e, !s, !e, !s) -> tensor<64x64xf32>
  // blockscaled_matmul (C40)
  // expected-error @+2 {{expects operand 'alpha2' only beside 'rhs2', but got one}}
  // expected-note @+1 {{leave it out; 'alpha' is the factor of the one matmul}}
  %r1 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s alpha2 %f {format = #fp4.format<nvfp4>}
      : (!e, !s, !e, !s, tensor<f32>) -> tensor<64x64xf32>
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @steps(%a: !e, %s: !s) {
  %r0 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s with %a scaled %s epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>}
      : (!e, !s, !e, !s, !e, !s) -> tensor<64x64xf32>
  // blockscaled_matmul (C40)
  // expected-error @+2 {{expects no attribute 'epilogue' in a dual GEMM, but got one}}
  // expected-note @+1 {{write its steps in the epilogue region}}
  %r1 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s with %a scaled %s epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, epilogue = #fp4.epilogue<relu>}
      : (!e, !s, !e, !s, !e, !s) -> tensor<64x64xf32>
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @no_body(%a: !e, %s: !s) {
  %r0 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s with %a scaled %s epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>}
      : (!e, !s, !e, !s, !e, !s) -> tensor<64x64xf32>
  // blockscaled_matmul (C41)
  // expected-error @+2 {{expects an epilogue region beside operand 'rhs2', but got none}}
  // expected-note @+1 {{the epilogue region says what becomes of the sums, and in which type}}
  %r1 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s with %a scaled %s {format = #fp4.format<nvfp4>}
      : (!e, !s, !e, !s, !e, !s) -> tensor<64x64xf32>
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @groups(%a: !e, %t: tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %r0 = fp4.blockscaled_matmul %a scaled %t, %a scaled %t with %a scaled %t epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, groups = array<i64: 64>}
      : (!e, tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, !e, tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
         !e, tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<64x64xf32>
  // blockscaled_matmul (C41)
  // expected-error @+2 {{expects no groups beside attribute 'with_amax'}}
  // expected-note @+1 {{compute it with an operation of its own behind the matmul}}
  %r1:2 = fp4.blockscaled_matmul %a scaled %t, %a scaled %t with %a scaled %t epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, groups = array<i64: 64>, with_amax}
      : (!e, tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, !e, tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
         !e, tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> (tensor<64x64xf32>, tensor<f32>)
  return
}

// -----

!e = tensor<64x512xf4E2M1FN>
!s = tensor<64x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @ranges(%a: !e, %s: !s) {
  %r0 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s with %a scaled %s epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>} : (!e, !s, !e, !s, !e, !s) -> tensor<64x64xf32>
  // blockscaled_matmul (C41)
  // expected-error @+2 {{expects no split-K beside operand 'rhs2'}}
  // expected-note @+1 {{leave it out, or compute it with an operation of its own behind the matmul}}
  %r1 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s with %a scaled %s epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, split_k = 2 : i64} : (!e, !s, !e, !s, !e, !s) -> tensor<64x64xf32>
  return
}

// -----

!p = tensor<1x2x4352xi8, #fp4.weight_layout<wgmma>>
func.func @prepacked(%x: tensor<8x128xbf16>, %p: !p, %s: tensor<128x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %r0 = fp4.blockscaled_matmul %x, %p with %p epilogue() {
  ^bb0(%a: f32, %b: f32):
    fp4.yield %a : f32
  } {format = #fp4.format<mxfp4>} : (tensor<8x128xbf16>, !p, !p) -> tensor<8x128xf32>
  // blockscaled_matmul (C40)
  // expected-error @+2 {{expects no operand 'rhs2_scales' beside prepacked weights}}
  // expected-note @+1 {{leave it out: tiles of fp4.prepack contain their scales}}
  %r1 = fp4.blockscaled_matmul %x, %p with %p scaled %s epilogue() {
  ^bb0(%a: f32, %b: f32):
    fp4.yield %a : f32
  } {format = #fp4.format<mxfp4>}
      : (tensor<8x128xbf16>, !p, !p, tensor<128x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<8x128xf32>
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @outputs(%a: !e, %s: !s) {
  %r0:2 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, quantize_recipe = #fp4.recipe<ocp_floor>}
      : (!e, !s, !e, !s) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  // blockscaled_matmul (C41)
  // expected-error @+2 {{expects attribute 'quantize_outputs' only beside 'quantize_recipe'}}
  // expected-note @+1 {{leave it out, or say the recipe that quantizes the result}}
  %r1 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, quantize_outputs = #fp4.outputs<both>}
      : (!e, !s, !e, !s) -> tensor<64x64xf32>
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @no_amax(%a: !e, %s: !s) {
  %r0:2 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, quantize_recipe = #fp4.recipe<ocp_floor>}
      : (!e, !s, !e, !s) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  // blockscaled_matmul (C42)
  // expected-error @+2 {{expects operand 'quantize_amax' for recipe transformer_engine, but got none}}
  // expected-note @+1 {{the recipe says whether there is a scale of the tensor (docs/reference/recipes.md)}}
  %r1:2 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, quantize_recipe = #fp4.recipe<transformer_engine>}
      : (!e, !s, !e, !s) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>)
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @lonely_amax(%a: !e, %s: !s, %f: tensor<f32>) {
  %r0:2 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, quantize_recipe = #fp4.recipe<ocp_floor>}
      : (!e, !s, !e, !s) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  // blockscaled_matmul (C42)
  // expected-error @+2 {{expects operand 'quantize_amax' only beside 'quantize_recipe'}}
  // expected-note @+1 {{leave it out, or say the recipe that quantizes the result}}
  %r1 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s quantize_amax %f epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>}
      : (!e, !s, !e, !s, tensor<f32>) -> tensor<64x64xf32>
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @wide(%a: !e, %s: !s) {
  %r0:2 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, quantize_recipe = #fp4.recipe<ocp_floor>}
      : (!e, !s, !e, !s) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  // blockscaled_matmul (C42)
  // expected-error @+2 {{attribute 'quantize_recipe' must have elements of 4 bits, but got }}
  // expected-note @+1 {{quantize the result with fp4.quantize}}
  %r1:2 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, quantize_recipe = #fp4.recipe<mxfp8_e4m3_floor>}
      : (!e, !s, !e, !s) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @columns(%a: !e, %s: !s, %b: tensor<40x128xf4E2M1FN>, %t: tensor<40x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %r0:2 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, quantize_recipe = #fp4.recipe<ocp_floor>}
      : (!e, !s, !e, !s) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  // blockscaled_matmul (C42)
  // expected-error @+2 {{expects N a multiple of 32 beside 'quantize_recipe', but got 40}}
  // expected-note @+1 {{pad rhs with rows of zeros, or quantize the result with fp4.quantize}}
  %r1:2 = fp4.blockscaled_matmul %a scaled %s, %b scaled %t epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, quantize_recipe = #fp4.recipe<ocp_floor>}
      : (!e, !s, tensor<40x128xf4E2M1FN>, tensor<40x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> (tensor<64x40xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @rows(%a: !e, %s: !s, %b: tensor<40x128xf4E2M1FN>, %t: tensor<40x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %r0:2 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, quantize_recipe = #fp4.recipe<ocp_floor>}
      : (!e, !s, !e, !s) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  // blockscaled_matmul (C42)
  // expected-error @+2 {{expects M static and a multiple of 32 beside columnwise outputs}}
  // expected-note @+1 {{leave columnwise outputs to fp4.quantize, or pad lhs with rows of zeros}}
  %r1:2 = fp4.blockscaled_matmul %b scaled %t, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, quantize_recipe = #fp4.recipe<ocp_floor>, quantize_outputs = #fp4.outputs<columnwise>}
      : (tensor<40x128xf4E2M1FN>, tensor<40x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, !e, !s) -> (tensor<64x40xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @count(%a: !e, %s: !s) {
  %r0:2 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, quantize_recipe = #fp4.recipe<ocp_floor>}
      : (!e, !s, !e, !s) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  // blockscaled_matmul (C43)
  // expected-error @+2 {{expects 2 results of its attributes, and at most one of its elements, but got 1}}
  // expected-note @+1 {{'quantize_recipe' gives data and scales of each orientation}}
  %r1 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, quantize_recipe = #fp4.recipe<ocp_floor>}
      : (!e, !s, !e, !s) -> tensor<64x64xf32>
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @scales(%a: !e, %s: !s) {
  %r0:2 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, quantize_recipe = #fp4.recipe<ocp_floor>}
      : (!e, !s, !e, !s) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  // blockscaled_matmul (C43)
  // expected-error @+1 {{result 'scales' must be 'tensor<64x2xf8E8M0FNU>', but got 'tensor<64x4xf8E8M0FNU>'}}
  %r1:2 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, quantize_recipe = #fp4.recipe<ocp_floor>}
      : (!e, !s, !e, !s) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E8M0FNU>)
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @amax(%a: !e, %s: !s) {
  %r0:2 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, with_amax}
      : (!e, !s, !e, !s) -> (tensor<64x64xf32>, tensor<f32>)
  // blockscaled_matmul (C43)
  // expected-error @+2 {{result 'amax' must be a tensor<f32>, but got 'tensor<1xf32>'}}
  // expected-note @+1 {{a scalar operand is one number in device memory}}
  %r1:2 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, with_amax}
      : (!e, !s, !e, !s) -> (tensor<64x64xf32>, tensor<1xf32>)
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @e4m3(%a: !e, %s: !s) {
  %r0 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>} : (!e, !s, !e, !s) -> tensor<64x64xf8E4M3FN>
  // blockscaled_matmul (C323)
  // expected-error @+2 {{expects no other result beside elements of type f8E4M3FN, but got some}}
  // expected-note @+1 {{codes and an amax are those of elements of type bf16, f16 or f32}}
  %r1:2 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<nvfp4>, with_amax}
      : (!e, !s, !e, !s) -> (tensor<64x64xf8E4M3FN>, tensor<f32>)
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @amax_of_e4m3(%a: !e, %s: !s) {
  %r0 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    fp4.yield %y : bf16
  } {format = #fp4.format<nvfp4>, with_amax} : (!e, !s, !e, !s) -> tensor<f32>
  // blockscaled_matmul (C323)
  // expected-error @+2 {{expects no other result beside elements of type f8E4M3FN, but got some}}
  // expected-note @+1 {{codes and an amax are those of elements of type bf16, f16 or f32}}
  %r1 = fp4.blockscaled_matmul %a scaled %s, %a scaled %s epilogue() {
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to f8E4M3FN
    fp4.yield %y : f8E4M3FN
  } {format = #fp4.format<nvfp4>, with_amax} : (!e, !s, !e, !s) -> tensor<f32>
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!t = tensor<256x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!s = tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
func.func @list(%a: !e, %t: !t, %w: tensor<128x128xf4E2M1FN>) {
  %c0, %s0 = fp4.blockscaled_matmul %a scaled %t, %w scaled %t epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<mxfp4>, groups = array<i64: 24, 40>, quantize_recipe = #fp4.recipe<ocp_floor>}
      : (!e, !t, tensor<128x128xf4E2M1FN>, !t) -> (tensor<64x64xf4E2M1FN>, !t)
  // blockscaled_matmul (C43)
  // expected-error @+2 {{result 'scales' must be 'tensor<256x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>', but got 'tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>'}}
  // expected-note @+1 {{tiled scales are a list of the tiles of all groups, each padded to 128 rows and 4 blocks, as a matmul of these groups takes them}}
  %c1, %s1 = fp4.blockscaled_matmul %a scaled %t, %w scaled %t epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } {format = #fp4.format<mxfp4>, groups = array<i64: 24, 40>, quantize_recipe = #fp4.recipe<ocp_floor>}
      : (!e, !t, tensor<128x128xf4E2M1FN>, !t) -> (tensor<64x64xf4E2M1FN>, !s)
  return
}
