// Buffers of dynamic sizes; the first operation of each case is legal.
// RUN: fp4-opt %s -split-input-file -verify-diagnostics

func.func @twin(%g: !pipe.global<?x?xbf16>, %n: i32, %p: i64) {
  %y = pipe.matrix %g columns %n pitch %p : !pipe.global<?x?xbf16> -> !pipe.global<64x?xbf16>
  return
}
func.func @bad(%g: !pipe.global<64x?xbf16>, %n: i32, %p: i64) {
  // (C490)
  // expected-error @+2 {{expects a buffer with dynamic rows and columns of the result's element type and layout, but got '!pipe.global<64x?xbf16>' and '!pipe.global<64x?xbf16>'}}
  // expected-note @+1 {{the result has the element type and layout of the argument, !pipe.global<?x?xT>}}
  %y = pipe.matrix %g columns %n pitch %p : !pipe.global<64x?xbf16> -> !pipe.global<64x?xbf16>
  return
}

// -----

func.func @bad(%g: !pipe.global<?x?xbf16>, %p: i64) {
  // (C490)
  // expected-error @+2 {{expects 'columns' for dynamic columns and 'rows' for no static rows, but got '!pipe.global<64x?xbf16>'}}
  // expected-note @+1 {{write 'rows %m' and 'columns %k' for the dimensions that the result leaves dynamic}}
  %y = pipe.matrix %g pitch %p : !pipe.global<?x?xbf16> -> !pipe.global<64x?xbf16>
  return
}

// -----

func.func @bad(%g: !pipe.global<?x?xbf16>, %m: i32, %p: i64) {
  // (C490)
  // expected-error @+2 {{expects 'columns' for dynamic columns and 'rows' for no static rows, but got '!pipe.global<64x64xbf16>'}}
  // expected-note @+1 {{write 'rows %m' and 'columns %k' for the dimensions that the result leaves dynamic}}
  %y = pipe.matrix %g rows %m pitch %p : !pipe.global<?x?xbf16> -> !pipe.global<64x64xbf16>
  return
}

// -----

func.func @twin(%q: memref<?x?xi8>, %k: index) {
  %map = pipe.make_tensor_map %q columns %k : memref<?x?xi8> -> !pipe.tensor_map<128x128xf8E4M3FN, swizzle_128B>
  return
}
func.func @bad(%q: memref<?x256xi8>, %k: index) {
  // (C491)
  // expected-error @+2 {{buffer must be a row-major memref of 'i8' of rank 2 with dynamic columns for a map of 'f8E4M3FN', but got 'memref<?x256xi8>'}}
  // expected-note @+1 {{write 'columns 256' where the columns of the buffer are static}}
  %map = pipe.make_tensor_map %q columns %k : memref<?x256xi8> -> !pipe.tensor_map<128x128xf8E4M3FN, swizzle_128B>
  return
}

// -----

func.func @bad(%q: memref<?x256xi8>, %k: index) {
  // (C108)
  // expected-error @+2 {{columns must be a number or a value, but got both}}
  // expected-note @+1 {{write 'columns 256' or 'columns %n', and not both}}
  %map = "pipe.make_tensor_map"(%q, %k) {columns = 256 : i64} : (memref<?x256xi8>, index) -> !pipe.tensor_map<128x128xf8E4M3FN, swizzle_128B>
  return
}

// -----

func.func @twin(%g: !pipe.global<?x?xbf16>, %n: i32, %p: i64, %v: tensor<128x32xbf16, #pipe.distribution<lanes>>, %c: i32) {
  %y = pipe.matrix %g columns %n pitch %p : !pipe.global<?x?xbf16> -> !pipe.global<64x?xbf16>
  pipe.store %v, %y[%c, %c] : tensor<128x32xbf16, #pipe.distribution<lanes>>, !pipe.global<64x?xbf16>
  return
}
func.func @bad(%y: !pipe.global<64x?xbf16>, %v: tensor<128x32xbf16, #pipe.distribution<lanes>>, %c: i32) {
  // (C492)
  // expected-error @+2 {{buffer must have static columns or come from pipe.matrix, but got '!pipe.global<64x?xbf16>'}}
  // expected-note @+1 {{a pointer does not say where its rows are}}
  pipe.store %v, %y[%c, %c] : tensor<128x32xbf16, #pipe.distribution<lanes>>, !pipe.global<64x?xbf16>
  return
}

// -----

func.func @bad(%y: !pipe.global<64x?xbf16>, %v: tensor<64x64xbf16, #pipe.distribution<wgmma>>, %c: i32) {
  // (C492)
  // expected-error @+2 {{buffer must have static columns or come from pipe.matrix, but got '!pipe.global<64x?xbf16>'}}
  // expected-note @+1 {{a pointer does not say where its rows are}}
  pipe.store %v, %y[%c, %c] : tensor<64x64xbf16, #pipe.distribution<wgmma>>, !pipe.global<64x?xbf16>
  return
}

// -----

func.func @bad(%f: !pipe.global<1x?xf32>, %c: i32) {
  // (C492)
  // expected-error @+2 {{buffer must have static columns or come from pipe.matrix, but got '!pipe.global<1x?xf32>'}}
  // expected-note @+1 {{a pointer does not say where its rows are}}
  %v = pipe.load_factors %f[%c, %c] : !pipe.global<1x?xf32> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  return
}

// -----

func.func @bad(%f: !pipe.global<1x?xf32>, %c: i32) {
  // (C492)
  // expected-error @+2 {{buffer must have static columns or come from pipe.matrix, but got '!pipe.global<1x?xf32>'}}
  // expected-note @+1 {{a pointer does not say where its rows are}}
  %v = pipe.load_factors %f[%c, %c] : !pipe.global<1x?xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  return
}
