// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// Rules of fp4.@name@. The first operation of a case is legal, the second differs from it in what the
// rule is about.

func.func @matrix(%x: tensor<64x32xbf16>, %batch: tensor<2x64x32xbf16>) {
  %0 = fp4.@name@ %x : tensor<64x32xbf16>
  // @name@ (C1)
  // expected-error @+2 {{operand 'input' must have 2 dimensions, but got 'tensor<2x64x32xbf16>'}}
  // expected-note @+1 {{tensor.collapse_shape makes a matrix of a batch}}
  %1 = fp4.@name@ %batch : tensor<2x64x32xbf16>
  return
}
