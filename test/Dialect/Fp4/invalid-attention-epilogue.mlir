// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// Epilogue regions of attention. The first operation of a case is legal, the second differs from it
// in what the constraint is about.

!q = tensor<1x128x4x64xbf16>
!b = tensor<1x128x4x64xf8E4M3FN>
func.func @vectors(%q: !q, %f: tensor<f32>, %g: tensor<4xf32>) {
  %0 = fp4.attention %q, %q, %q scale 1.0 inputs(%f : tensor<f32>) epilogue {
  ^bb0(%x: f32, %s: f32):
    %y = arith.mulf %x, %s : f32
    fp4.yield %y : f32
  } : !q, !q, !q -> !b
  // attention (C20)
  // expected-error @+2 {{operand 'inputs' must be scalars, but got 'tensor<4xf32>'}}
  // expected-note @+1 {{compute the rest behind the attention with an operation of its own}}
  %1 = fp4.attention %q, %q, %q scale 1.0 inputs(%g : tensor<4xf32>) epilogue {
  ^bb0(%x: f32, %s: f32):
    %y = arith.mulf %x, %s : f32
    fp4.yield %y : f32
  } : !q, !q, !q -> !b
  return
}

// -----

!q = tensor<1x128x4x64xbf16>
func.func @no_region(%q: !q, %f: tensor<f32>) {
  %0 = fp4.attention %q, %q, %q scale 1.0 : !q, !q, !q -> !q
  // attention (C20)
  // expected-error @+2 {{expects an epilogue region beside 'inputs', 'quantized' or no result, but got none}}
  // expected-note @+1 {{the region says what becomes of the elements, and in which type}}
  %1 = fp4.attention %q, %q, %q scale 1.0 inputs(%f : tensor<f32>) : !q, !q, !q -> !q
  return
}

// -----

!q = tensor<1x128x4x64xbf16>
func.func @amax(%q: !q) {
  %0, %c, %s = fp4.attention %q, %q, %q scale 1.0 epilogue {
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %y {recipe = #fp4.recipe<ocp_floor>} : (bf16) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %y, %code, %scale : bf16, f4E2M1FN, f8E8M0FNU
  } : !q, !q, !q -> !q quantized(tensor<128x256xf4E2M1FN>, tensor<128x8xf8E8M0FNU>)
  // attention (C20)
  // expected-error @+2 {{expects no columnwise outputs in its epilogue region, but got one}}
  // expected-note @+1 {{compute it behind the attention with an operation of its own}}
  %1, %d, %t = fp4.attention %q, %q, %q scale 1.0 epilogue {
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %y {recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<columnwise>} : (bf16) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %y, %code, %scale : bf16, f4E2M1FN, f8E8M0FNU
  } : !q, !q, !q -> !q quantized(tensor<256x128xf4E2M1FN>, tensor<256x4xf8E8M0FNU>)
  return
}

// -----

!q = tensor<1x128x4x64xbf16>
func.func @count(%q: !q) {
  %c, %s = fp4.attention %q, %q, %q scale 1.0 epilogue {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>} : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : !q, !q, !q -> quantized(tensor<128x256xf4E2M1FN>, tensor<128x8xf8E8M0FNU>)
  // attention (C20)
  // expected-error @+2 {{expects 2 results 'quantized', those of fp4.epilogue_quantize, but got 1}}
  // expected-note @+1 {{codes and scales are of one operation of the epilogue region}}
  %d = fp4.attention %q, %q, %q scale 1.0 epilogue {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>} : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : !q, !q, !q -> quantized(tensor<128x256xf4E2M1FN>)
  return
}

// -----

!q = tensor<1x128x1x32xbf16>
func.func @blocks(%q: !q) {
  %c, %s = fp4.attention %q, %q, %q scale 1.0 epilogue {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>} : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : !q, !q, !q -> quantized(tensor<128x32xf4E2M1FN>, tensor<128x1xf8E8M0FNU>)
  // attention (C21)
  // expected-error @+2 {{expects a multiple of 128 elements of all heads beside fp4.epilogue_quantize, but got 32}}
  // expected-note @+1 {{quantize the result with fp4.quantize}}
  %d, %t = fp4.attention %q, %q, %q scale 1.0 epilogue {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<fp8_deepgemm>} : (f32) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } : !q, !q, !q -> quantized(tensor<128x32xf8E4M3FN>, tensor<128x1xf32>)
  return
}

// -----

!q = tensor<1x128x4x64xbf16>
func.func @types(%q: !q) {
  %c, %s = fp4.attention %q, %q, %q scale 1.0 epilogue {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>} : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : !q, !q, !q -> quantized(tensor<128x256xf4E2M1FN>, tensor<128x8xf8E8M0FNU>)
  // attention (C21)
  // expected-error @+1 {{result 'data' must be 'tensor<128x256xf4E2M1FN>', but got 'tensor<128x128xf4E2M1FN>'}}
  %d, %t = fp4.attention %q, %q, %q scale 1.0 epilogue {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>} : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : !q, !q, !q -> quantized(tensor<128x128xf4E2M1FN>, tensor<128x8xf8E8M0FNU>)
  return
}
