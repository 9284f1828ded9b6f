// RUN: fp4-opt %s -split-input-file -verify-diagnostics
// Constraints of a dual GEMM, and of results that are not the elements. Each case has a twin that verifies.

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
!operand2 = !fp4.scaled<nvfp4, tensor<32x128xf4E2M1FN>, !s>
func.func @shape(%a: !e, %s: !s, %b: tensor<32x128xf4E2M1FN>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %r0 = fp4.matmul %a_scaled, %a_scaled with %a_scaled epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } : (!operand, !operand, !operand) -> tensor<64x64xf32>
  %b_scaled = fp4.scaled %b, %s : !operand2
  // matmul (C40)
  // expected-error @+2 {{operand 'rhs2' must have the type of 'rhs', '!fp4.scaled<nvfp4, tensor<64x128xf4E2M1FN>, tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>', but got '!fp4.scaled<nvfp4, tensor<32x128xf4E2M1FN>, tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>'}}
  // expected-note @+1 {{both matmuls have the shape of the result}}
  %r1 = fp4.matmul %a_scaled, %a_scaled with %b_scaled epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } : (!operand, !operand, !operand2) -> tensor<64x64xf32>
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
func.func @alphas(%a: !e, %s: !s, %f: tensor<f32>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %r0 = fp4.matmul %a_scaled, %a_scaled with %a_scaled alpha %f alpha2 %f epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } : (!operand, !operand, !operand, tensor<f32>, tensor<f32>) -> tensor<64x64xf32>
  // matmul (C40)
  // expected-error @+2 {{expects operands 'alpha' and 'alpha2' of a dual GEMM together}}
  // expected-note @+1 {{pass a constant 1.0 for the matmul that needs no factor}}
  %r1 = fp4.matmul %a_scaled, %a_scaled with %a_scaled alpha %f epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } : (!operand, !operand, !operand, tensor<f32>) -> tensor<64x64xf32>
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
func.func @lonely_alpha(%a: !e, %s: !s, %f: tensor<f32>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %r0 = fp4.matmul %a_scaled, %a_scaled with %a_scaled epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } : (!operand, !operand, !operand) -> tensor<64x64xf32>
  // matmul (C40)
  // expected-error @+2 {{expects operand 'alpha2' only beside 'rhs2', but got one}}
  // expected-note @+1 {{leave it out; 'alpha' is the factor of the one matmul}}
  %r1 = fp4.matmul %a_scaled, %a_scaled alpha2 %f
      : (!operand, !operand, tensor<f32>) -> tensor<64x64xf32>
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
func.func @steps(%a: !e, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %r0 = fp4.matmul %a_scaled, %a_scaled with %a_scaled epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } : (!operand, !operand, !operand) -> tensor<64x64xf32>
  // matmul (C40)
  // expected-error @+2 {{expects no attribute 'epilogue' in a dual GEMM, but got one}}
  // expected-note @+1 {{write its steps in the epilogue region}}
  %r1 = fp4.matmul %a_scaled, %a_scaled with %a_scaled epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } {epilogue = #fp4.epilogue<relu>} : (!operand, !operand, !operand) -> tensor<64x64xf32>
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
func.func @no_body(%a: !e, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %r0 = fp4.matmul %a_scaled, %a_scaled with %a_scaled epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } : (!operand, !operand, !operand) -> tensor<64x64xf32>
  // matmul (C41)
  // expected-error @+2 {{expects an epilogue region beside operand 'rhs2', but got none}}
  // expected-note @+1 {{the epilogue region says what becomes of the sums, and in which type}}
  %r1 = fp4.matmul %a_scaled, %a_scaled with %a_scaled
      : (!operand, !operand, !operand) -> tensor<64x64xf32>
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @groups(%a: !e, %t: tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %t : !operand
  %r0 = fp4.matmul %a_scaled, %a_scaled with %a_scaled epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } {work = #fp4.work<groups = [64]>} : (!operand, !operand, !operand) -> tensor<64x64xf32>
  // matmul (C41)
  // expected-error @+2 {{expects no groups beside fp4.epilogue_amax}}
  // expected-note @+1 {{compute it with an operation of its own behind the matmul}}
  %r1:2 = fp4.matmul %a_scaled, %a_scaled with %a_scaled epilogue() {
  ^bb0(%x: f32, %z: f32):
    %amax_out = fp4.epilogue_amax %x : f32 -> f32
    fp4.yield %x, %amax_out : f32, f32
  } {work = #fp4.work<groups = [64]>}
      : (!operand, !operand, !operand) -> (tensor<64x64xf32>, tensor<f32>)
  return
}

// -----

!e = tensor<64x512xf4E2M1FN>
!s = tensor<64x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
func.func @ranges(%a: !e, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %r0 = fp4.matmul %a_scaled, %a_scaled with %a_scaled epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } : (!operand, !operand, !operand) -> tensor<64x64xf32>
  // matmul (C41)
  // expected-error @+2 {{expects no split-K beside operand 'rhs2'}}
  // expected-note @+1 {{leave it out, or compute it with an operation of its own behind the matmul}}
  %r1 = fp4.matmul %a_scaled, %a_scaled with %a_scaled epilogue() {
  ^bb0(%x: f32, %z: f32):
    fp4.yield %x : f32
  } {work = #fp4.work<split_k = 2>} : (!operand, !operand, !operand) -> tensor<64x64xf32>
  return
}

// -----

!p = tensor<1x2x4352xi8, #fp4.weight_layout<wgmma>>
!rhs = !fp4.scaled<mxfp4, !p, tensor<128x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @prepacked(%x: tensor<8x128xbf16>, %p: !p, %s: tensor<128x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %r0 = fp4.matmul %x, %p with %p epilogue() {
  ^bb0(%a: f32, %b: f32):
    fp4.yield %a : f32
  } : (tensor<8x128xbf16>, !p, !p) -> tensor<8x128xf32>
  // scaled (C1)
  // expected-error @+2 {{operand 'data' must have elements of type f4E2M1FN, but got 'tensor<1x2x4352xi8, #fp4.weight_layout<wgmma>>'}}
  // expected-note @+1 {{the element type is that of format mxfp4}}
  %p_scaled = fp4.scaled %p, %s : !rhs
  %r1 = fp4.matmul %x, %p with %p_scaled epilogue() {
  ^bb0(%a: f32, %b: f32):
    fp4.yield %a : f32
  } : (tensor<8x128xbf16>, !p, !rhs) -> tensor<8x128xf32>
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
func.func @no_amax(%a: !e, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %r0:2 = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>}
        : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : (!operand, !operand) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  %r1:2 = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    // epilogue_quantize (C2)
    // expected-error @+2 {{expects operand 'amax' for recipe transformer_engine, but got none}}
    // expected-note @+1 {{the recipe says whether there is a scale of the tensor (docs/reference/recipes.md)}}
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<transformer_engine>}
        : (f32) -> (f4E2M1FN, f8E4M3FN)
    fp4.yield %code, %scale : f4E2M1FN, f8E4M3FN
  } : (!operand, !operand) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>)
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
func.func @lonely_amax(%a: !e, %s: !s, %f: tensor<f32>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %r0:2 = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>}
        : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : (!operand, !operand) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  // matmul (C12)
  // expected-error @+2 {{epilogue region must take 'f32', 'f32' and yield 'f32' in one block with fp4.yield, but got 'f32' and 'f32'}}
  // expected-note @+1 {{the region takes the sum, in f32, that of 'rhs2' if there is one, and the elements of the epilogue inputs}}
  %r1 = fp4.matmul %a_scaled, %a_scaled epilogue(%f) {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } : (!operand, !operand, tensor<f32>) -> tensor<64x64xf32>
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
func.func @wide(%a: !e, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %r0:2 = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<mxfp8_e4m3_floor>}
        : (f32) -> (f8E4M3FN, f8E8M0FNU)
    fp4.yield %code, %scale : f8E4M3FN, f8E8M0FNU
  } : (!operand, !operand) -> (tensor<64x64xf8E4M3FN>, tensor<64x2xf8E8M0FNU>)
  %r1:2 = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    // epilogue_quantize (C3)
    // expected-error @+2 {{must give 'f8E4M3FN', 'f8E8M0FNU', but gives 'f4E2M1FN', 'f8E8M0FNU'}}
    // expected-note @+1 {{a code and a scale of the recipe's format for each orientation of 'outputs'}}
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<mxfp8_e4m3_floor>}
        : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : (!operand, !operand) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
!rhs = !fp4.scaled<nvfp4, tensor<40x128xf4E2M1FN>,
                   tensor<40x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @columns(%a: !e, %s: !s, %b: tensor<40x128xf4E2M1FN>, %t: tensor<40x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %r0:2 = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>}
        : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : (!operand, !operand) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  %b_scaled = fp4.scaled %b, %t : !rhs
  // matmul (C42)
  // expected-error @+2 {{expects N a multiple of 32 beside fp4.epilogue_quantize, but got 40}}
  // expected-note @+1 {{pad rhs with rows of zeros, or quantize the result with fp4.quantize}}
  %r1:2 = fp4.matmul %a_scaled, %b_scaled epilogue() {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>}
        : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : (!operand, !rhs) -> (tensor<64x40xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
!lhs = !fp4.scaled<nvfp4, tensor<40x128xf4E2M1FN>,
                   tensor<40x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @rows(%a: !e, %s: !s, %b: tensor<40x128xf4E2M1FN>, %t: tensor<40x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %r0:2 = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>}
        : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : (!operand, !operand) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  %b_scaled = fp4.scaled %b, %t : !lhs
  // matmul (C42)
  // expected-error @+2 {{expects M static and a multiple of 32 beside columnwise outputs}}
  // expected-note @+1 {{leave columnwise outputs to fp4.quantize, or pad lhs with rows of zeros}}
  %r1:2 = fp4.matmul %b_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<columnwise>}
        : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : (!lhs, !operand) -> (tensor<64x40xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
func.func @count(%a: !e, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %r0:2 = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>}
        : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : (!operand, !operand) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  // matmul (C43)
  // expected-error @+2 {{expects 2 results, one for each value of its epilogue region, but got 1}}
  // expected-note @+1 {{fp4.yield gives the element, then codes and scales, then the amax; without a region the elements are the result}}
  %r1 = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>}
        : (f32) -> (f32, f8E4M3FN)
    fp4.yield %code, %scale : f32, f8E4M3FN
  } : (!operand, !operand) -> tensor<64x64xf32>
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
func.func @scales(%a: !e, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %r0:2 = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>}
        : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : (!operand, !operand) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  // matmul (C43)
  // expected-error @+1 {{result 'scales' must be 'tensor<64x2xf8E8M0FNU>', but got 'tensor<64x4xf8E8M0FNU>'}}
  %r1:2 = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>}
        : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : (!operand, !operand) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E8M0FNU>)
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
func.func @amax(%a: !e, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %r0:2 = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %amax_out = fp4.epilogue_amax %x : f32 -> f32
    fp4.yield %x, %amax_out : f32, f32
  } : (!operand, !operand) -> (tensor<64x64xf32>, tensor<f32>)
  // matmul (C43)
  // expected-error @+2 {{result 'amax' must be a tensor<f32>, but got 'tensor<1xf32>'}}
  // expected-note @+1 {{a scalar operand is one number in device memory}}
  %r1:2 = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %amax_out = fp4.epilogue_amax %x : f32 -> f32
    fp4.yield %x, %amax_out : f32, f32
  } : (!operand, !operand) -> (tensor<64x64xf32>, tensor<1xf32>)
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
func.func @e4m3(%a: !e, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %r0 = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    fp4.yield %x : f32
  } : (!operand, !operand) -> tensor<64x64xf8E4M3FN>
  // matmul (C323)
  // expected-error @+2 {{expects no other result beside elements of type f8E4M3FN, but got some}}
  // expected-note @+1 {{codes and an amax are those of elements of type bf16, f16 or f32}}
  %r1:2 = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %amax_out = fp4.epilogue_amax %x : f32 -> f32
    fp4.yield %x, %amax_out : f32, f32
  } : (!operand, !operand) -> (tensor<64x64xf8E4M3FN>, tensor<f32>)
  return
}

// -----

!e = tensor<64x128xf4E2M1FN>
!t = tensor<256x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!s = tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<mxfp4, !e, !t>
!rhs = !fp4.scaled<mxfp4, tensor<128x128xf4E2M1FN>, !t>
func.func @list(%a: !e, %t: !t, %w: tensor<128x128xf4E2M1FN>) {
  %a_scaled = fp4.scaled %a, %t : !lhs
  %w_scaled = fp4.scaled %w, %t : !rhs
  %c0, %s0 = fp4.matmul %a_scaled, %w_scaled epilogue() {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>}
        : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } {work = #fp4.work<groups = [24, 40]>} : (!lhs, !rhs) -> (tensor<64x64xf4E2M1FN>, !t)
  // matmul (C43)
  // expected-error @+2 {{result 'scales' must be 'tensor<256x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>', but got 'tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>'}}
  // expected-note @+1 {{tiled scales are a list of the tiles of all groups, each padded to 128 rows and 4 blocks, as a matmul of these groups takes them}}
  %c1, %s1 = fp4.matmul %a_scaled, %w_scaled epilogue() {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>}
        : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } {work = #fp4.work<groups = [24, 40]>} : (!lhs, !rhs) -> (tensor<64x64xf4E2M1FN>, !s)
  return
}
