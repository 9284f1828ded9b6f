// RUN: fp4-opt %s -split-input-file -verify-diagnostics
// Each case has a twin that verifies.

func.func @fold_amax(%m: f32, %p: !pipe.global<f32>, %q: !pipe.global<4xf32>) {
  pipe.fold_amax %m, %p : !pipe.global<f32>
  // (C211)
  // expected-error @+2 {{destination must be a scalar f32, but got '!pipe.global<4xf32>'}}
  // expected-note @+1 {{pass a buffer of type !pipe.global<f32>, which is zero before the kernel}}
  pipe.fold_amax %m, %q : !pipe.global<4xf32>
  return
}

// -----

func.func @transpose(%v: tensor<128x32xbf16, #pipe.distribution<lanes>>, %w: tensor<128x16xbf16, #pipe.distribution<lanes>>) {
  %ok = pipe.transpose %v : tensor<128x32xbf16, #pipe.distribution<lanes>> -> tensor<128x32xbf16, #pipe.distribution<columns>>
  // (C212)
  // expected-error @+2 {{value must be lanes with a column for each of the 32 threads of a warp, and the result its columns, but got 'tensor<128x16xbf16, #pipe.distribution<lanes>>'}}
  // expected-note @+1 {{read 32 columns of the accumulator}}
  %bad = pipe.transpose %w : tensor<128x16xbf16, #pipe.distribution<lanes>> -> tensor<64x32xbf16, #pipe.distribution<columns>>
  return
}

// -----

func.func @store(%v: tensor<128x32xf4E2M1FN, #pipe.distribution<columns>>, %w: tensor<256x32xf4E2M1FN, #pipe.distribution<columns>>, %q: !pipe.global<64x128xf4E2M1FN>, %c: i32) {
  pipe.store %v, %q[%c, %c] transposed : tensor<128x32xf4E2M1FN, #pipe.distribution<columns>>, !pipe.global<64x128xf4E2M1FN>
  // (C213)
  // expected-error @+2 {{value of columns must be transposed, 32 codes, 1 or 2 scales of a thread or an f32, but got 'tensor<256x32xf4E2M1FN, #pipe.distribution<columns>>'}}
  // expected-note @+1 {{quantize 32 elements of a column at a time}}
  pipe.store %w, %q[%c, %c] transposed : tensor<256x32xf4E2M1FN, #pipe.distribution<columns>>, !pipe.global<64x128xf4E2M1FN>
  return
}

// -----

func.func @shared(%v: tensor<4x32xf32, #pipe.distribution<columns>>, %w: tensor<8x32xf32, #pipe.distribution<columns>>, %q: !pipe.global<64x2xf32>, %c: i32) {
  pipe.store %v, %q[%c, %c] transposed : tensor<4x32xf32, #pipe.distribution<columns>>, !pipe.global<64x2xf32>
  // (C213)
  // expected-error @+2 {{value of columns must be transposed, 32 codes, 1 or 2 scales of a thread or an f32, but got 'tensor<8x32xf32, #pipe.distribution<columns>>'}}
  // expected-note @+1 {{quantize 32 elements of a column at a time}}
  pipe.store %w, %q[%c, %c] transposed : tensor<8x32xf32, #pipe.distribution<columns>>, !pipe.global<64x2xf32>
  return
}

// -----

func.func @rows(%v: tensor<128x32xf4E2M1FN, #pipe.distribution<columns>>, %g: !pipe.global<?x?xf4E2M1FN>, %p: !pipe.global<?x128xf4E2M1FN>, %c: i32, %b: i64) {
  %q = pipe.view %g rows %c pitch %b : !pipe.global<?x?xf4E2M1FN> -> !pipe.global<?x128xf4E2M1FN>
  pipe.store %v, %q[%c, %c] transposed : tensor<128x32xf4E2M1FN, #pipe.distribution<columns>>, !pipe.global<?x128xf4E2M1FN>
  pipe.store %v, %p[%c, %c] rows %c transposed : tensor<128x32xf4E2M1FN, #pipe.distribution<columns>>, !pipe.global<?x128xf4E2M1FN>
  // (C213)
  // expected-error @+2 {{destination must have static columns, and rows that are static, of a pipe.view or said, but got '!pipe.global<?x128xf4E2M1FN>'}}
  // expected-note @+1 {{say the rows with pipe.view, or add 'rows %m'}}
  pipe.store %v, %p[%c, %c] transposed : tensor<128x32xf4E2M1FN, #pipe.distribution<columns>>, !pipe.global<?x128xf4E2M1FN>
  return
}
