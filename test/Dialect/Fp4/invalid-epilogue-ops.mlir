// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// Operands of type !fp4.scaled, and operations of the epilogue region. The first operation of a case is legal, the
// second differs from it in what the constraint is about.

!a = !fp4.scaled<mxfp4, tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @argument(%d: tensor<64x64xf4E2M1FN>, %s: tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: !a) {
  %a = fp4.scaled %d, %s : !a
  %0 = fp4.matmul %a, %a : (!a, !a) -> tensor<64x64xf32>
  // matmul (C4)
  // expected-error @+2 {{operand 'rhs' must be a result of fp4.scaled, but got another value of '!fp4.scaled<mxfp4}}
  // expected-note @+1 {{functions and control flow hand on tensors: pass data and scales, and write fp4.scaled before the matmul}}
  %1 = fp4.matmul %a, %b : (!a, !a) -> tensor<64x64xf32>
  return
}

// -----

!a = !fp4.scaled<mxfp4, tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @other_value(%d: tensor<64x64xf4E2M1FN>, %s: tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.scaled %d, %s : !a
  %0:2 = fp4.matmul %a, %a epilogue() {
  ^bb0(%x: f32):
    %amax = fp4.epilogue_amax %x : f32 -> f32
    fp4.yield %x, %amax : f32, f32
  } : (!a, !a) -> (tensor<64x64xf32>, tensor<f32>)
  // matmul (C44)
  // expected-error @+2 {{expects one fp4.epilogue_amax, of the element that the region yields, but got one of another value}}
  // expected-note @+1 {{all results are of one value}}
  %1:2 = fp4.matmul %a, %a epilogue() {
  ^bb0(%x: f32):
    %y = arith.mulf %x, %x : f32
    %amax = fp4.epilogue_amax %y : f32 -> f32
    fp4.yield %x, %amax : f32, f32
  } : (!a, !a) -> (tensor<64x64xf32>, tensor<f32>)
  return
}

// -----

!a = !fp4.scaled<mxfp4, tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @last_argument(%d: tensor<64x64xf4E2M1FN>, %s: tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %f: tensor<f32>) {
  %a = fp4.scaled %d, %s : !a
  %0:2 = fp4.matmul %a, %a epilogue(%f) {
  ^bb0(%x: f32, %amax: f32):
    %code, %scale = fp4.epilogue_quantize %x amax %amax {recipe = #fp4.recipe<transformer_engine>} : (f32, f32) -> (f4E2M1FN, f8E4M3FN)
    fp4.yield %code, %scale : f4E2M1FN, f8E4M3FN
  } : (!a, !a, tensor<f32>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>)
  // matmul (C44)
  // expected-error @+2 {{expects the amax of fp4.epilogue_quantize as the last argument of the epilogue region, which nothing else reads}}
  // expected-note @+1 {{pass the amax, a tensor<f32>, as the last epilogue input}}
  %1:2 = fp4.matmul %a, %a epilogue(%f, %f) {
  ^bb0(%x: f32, %amax: f32, %other: f32):
    %code, %scale = fp4.epilogue_quantize %x amax %amax {recipe = #fp4.recipe<transformer_engine>} : (f32, f32) -> (f4E2M1FN, f8E4M3FN)
    fp4.yield %code, %scale : f4E2M1FN, f8E4M3FN
  } : (!a, !a, tensor<f32>, tensor<f32>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>)
  return
}

// -----

!a = !fp4.scaled<mxfp4, tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @order(%d: tensor<64x64xf4E2M1FN>, %s: tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.scaled %d, %s : !a
  // matmul (C43)
  // expected-error @+2 {{epilogue region must yield the element where it is a result, then the results of fp4.epilogue_quantize and of fp4.epilogue_amax}}
  // expected-note @+1 {{give the operation a result for each, in this order}}
  %1:2 = fp4.matmul %a, %a epilogue() {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>} : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %scale, %code : f8E8M0FNU, f4E2M1FN
  } : (!a, !a) -> (tensor<64x2xf8E8M0FNU>, tensor<64x64xf4E2M1FN>)
  return
}

// -----

!a = !fp4.scaled<mxfp4, tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @types(%d: tensor<64x64xf4E2M1FN>, %s: tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.scaled %d, %s : !a
  %1:2 = fp4.matmul %a, %a epilogue() {
  ^bb0(%x: f32):
    // epilogue_quantize (C3)
    // expected-error @+2 {{must give 'f4E2M1FN', 'f8E8M0FNU', but gives 'f4E2M1FN', 'f8E4M3FN'}}
    // expected-note @+1 {{a code and a scale of the recipe's format for each orientation of 'outputs'}}
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>} : (f32) -> (f4E2M1FN, f8E4M3FN)
    fp4.yield %code, %scale : f4E2M1FN, f8E4M3FN
  } : (!a, !a) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>)
  return
}

// -----

!a = !fp4.scaled<mxfp4, tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @value(%d: tensor<64x64xf4E2M1FN>, %s: tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.scaled %d, %s : !a
  %1:2 = fp4.matmul %a, %a epilogue() {
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to f8E4M3FN
    // epilogue_quantize (C4)
    // expected-error @+2 {{must read f32, bf16 or f16, but reads 'f8E4M3FN'}}
    // expected-note @+1 {{quantize the element before it is rounded to 8 bits}}
    %code, %scale = fp4.epilogue_quantize %y {recipe = #fp4.recipe<ocp_floor>} : (f8E4M3FN) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : (!a, !a) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  return
}

// -----

!a = !fp4.scaled<mxfp4, tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @amax_value(%d: tensor<64x64xf4E2M1FN>, %s: tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.scaled %d, %s : !a
  %1 = fp4.matmul %a, %a epilogue() {
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to f8E4M3FN
    // epilogue_amax (C1)
    // expected-error @+2 {{must read f32, bf16 or f16, but reads 'f8E4M3FN'}}
    // expected-note @+1 {{take the amax of the element before it is rounded to 8 bits}}
    %amax = fp4.epilogue_amax %y : f8E4M3FN -> f32
    fp4.yield %amax : f32
  } : (!a, !a) -> tensor<f32>
  return
}

// -----

!a = !fp4.scaled<mxfp4, tensor<128x128xf4E2M1FN>, tensor<128x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @rows(%d: tensor<128x128xf4E2M1FN>, %s: tensor<128x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.scaled %d, %s : !a
  %0:2 = fp4.matmul %a, %a epilogue() {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<fp8_deepgemm>} : (f32) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } : (!a, !a) -> (tensor<128x128xf8E4M3FN>, tensor<128x1xf32>)
  %1:2 = fp4.matmul %a, %a epilogue() {
  ^bb0(%x: f32):
    // epilogue_quantize (C1)
    // expected-error @+2 {{attribute 'outputs' must be rowwise for recipe fp8_deepgemm, but got columnwise}}
    // expected-note @+1 {{leave 'outputs' out: fp8_block128 has blocks of rows}}
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<fp8_deepgemm>, outputs = #fp4.outputs<columnwise>} : (f32) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } : (!a, !a) -> (tensor<128x128xf8E4M3FN>, tensor<128x1xf32>)
  return
}
