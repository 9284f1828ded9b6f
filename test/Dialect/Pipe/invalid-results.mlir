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

func.func @transpose(%v: vector<32xbf16>, %w: vector<16xbf16>) {
  %ok = pipe.transpose %v : vector<32xbf16>
  // (C212)
  // expected-error @+2 {{vector must have an element for each of the 32 threads of a warp, but got 16}}
  // expected-note @+1 {{read 32 columns of the accumulator}}
  %bad = pipe.transpose %w : vector<16xbf16>
  return
}

// -----

func.func @store(%v: vector<32xf4E2M1FN>, %w: vector<64xf4E2M1FN>, %q: !pipe.global<64x128xf4E2M1FN>, %c: i32) {
  pipe.store_column %v, %q[%c, %c] : vector<32xf4E2M1FN>, !pipe.global<64x128xf4E2M1FN>
  // (C213)
  // expected-error @+2 {{vector must be 32 codes, or 1 or 2 scales, but got 'vector<64xf4E2M1FN>'}}
  // expected-note @+1 {{quantize 32 elements of a column at a time}}
  pipe.store_column %w, %q[%c, %c] : vector<64xf4E2M1FN>, !pipe.global<64x128xf4E2M1FN>
  return
}

// -----

func.func @rows(%v: vector<32xf4E2M1FN>, %g: !pipe.global<?x?xf4E2M1FN>, %p: !pipe.global<?x128xf4E2M1FN>, %c: i32, %b: i64) {
  %q = pipe.matrix %g rows %c pitch %b : !pipe.global<?x?xf4E2M1FN> -> !pipe.global<?x128xf4E2M1FN>
  pipe.store_column %v, %q[%c, %c] : vector<32xf4E2M1FN>, !pipe.global<?x128xf4E2M1FN>
  // (C213)
  // expected-error @+2 {{destination must be a buffer of 'f4E2M1FN' and rank 2 with static columns, and with static rows or those of a pipe.matrix, but got '!pipe.global<?x128xf4E2M1FN>'}}
  // expected-note @+1 {{pass a buffer of the vector's elements, and say its rows with pipe.matrix}}
  pipe.store_column %v, %p[%c, %c] : vector<32xf4E2M1FN>, !pipe.global<?x128xf4E2M1FN>
  return
}
