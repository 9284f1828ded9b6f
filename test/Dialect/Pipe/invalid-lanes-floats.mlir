// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// MMAs of 16-bit floats on tcgen05 (PipeConstraints.td). Every error has a twin above it that differs in one place and
// verifies.

!v = !pipe.shared<128x64xbf16, swizzle_128B>
func.func @twin(%acc: !pipe.tmem<128x64xf32>, %p: !pipe.tmem<128x128xbf16>, %v: !v) {
  pipe.mma %acc, %p, %v transposed : !pipe.tmem<128x64xf32>, !pipe.tmem<128x128xbf16>, !v
  return
}
func.func @bad(%acc: !pipe.tmem<128x128xf32>, %p: !pipe.tmem<128x64xbf16>, %v: !v) {
  // (C468)
  // expected-error @+2 {{b must be 'bf16' with K = 64 and layout swizzle_128B, but got '!pipe.shared<128x64xbf16, swizzle_128B>'}}
  // expected-note @+1 {{load a row of the operand's type for each element of K}}
  pipe.mma %acc, %p, %v transposed : !pipe.tmem<128x128xf32>, !pipe.tmem<128x64xbf16>, !v
  return
}

// -----

!v = !pipe.shared<128x64xbf16, swizzle_128B>
func.func @bad(%acc: !pipe.tmem<128x128xf32>, %p: !pipe.tmem<128x128xbf16>, %v: !v) {
  // (C468)
  // expected-error @+2 {{accumulator must be 128 rows of f32 of no pair, with 64 columns, but got '!pipe.tmem<128x128xf32>'}}
  // expected-note @+1 {{let the accumulator have the columns of b}}
  pipe.mma %acc, %p, %v transposed : !pipe.tmem<128x128xf32>, !pipe.tmem<128x128xbf16>, !v
  return
}

// -----

!q = !pipe.shared<128x64xbf16, swizzle_128B>
!k = !pipe.shared<96x64xbf16, swizzle_128B>
!h = !pipe.shared<96x64xf16, swizzle_128B>
func.func @twin(%acc: !pipe.tmem<128x96xf32>, %q: !q, %k: !k) {
  pipe.mma %acc, %q, %k : !pipe.tmem<128x96xf32>, !q, !k
  return
}
func.func @bad(%acc: !pipe.tmem<128x96xf32>, %q: !q, %k: !h) {
  // (C373)
  // expected-error @+2 {{a and b must have the same 16-bit floats and K, a multiple of 64, in layout swizzle_128B, but got '!pipe.shared<128x64xbf16, swizzle_128B>' and '!pipe.shared<96x64xf16, swizzle_128B>'}}
  // expected-note @+1 {{load both operands with boxes of 64 elements of K}}
  pipe.mma %acc, %q, %k : !pipe.tmem<128x96xf32>, !q, !h
  return
}
