// Buffers of dynamic sizes; the first operation of each case is legal.
// RUN: fp4-opt %s -split-input-file -verify-diagnostics

func.func @twin(%g: !pipe.global<?x?xbf16>, %n: i32, %p: i64) {
  %y = pipe.view %g columns %n pitch %p : !pipe.global<?x?xbf16> -> !pipe.global<64x?xbf16>
  return
}
func.func @bad(%g: !pipe.global<64x?xbf16>, %n: i32, %p: i64) {
  // (C490)
  // expected-error @+2 {{expects a buffer with dynamic rows and columns of the result's element type and layout, but got '!pipe.global<64x?xbf16>' and '!pipe.global<64x?xbf16>'}}
  // expected-note @+1 {{the result has the element type and layout of the argument, !pipe.global<?x?xT>}}
  %y = pipe.view %g columns %n pitch %p : !pipe.global<64x?xbf16> -> !pipe.global<64x?xbf16>
  return
}

// -----

func.func @bad(%g: !pipe.global<?x?xbf16>, %p: i64) {
  // (C490)
  // expected-error @+2 {{expects 'pitch', 'columns' for dynamic columns and 'rows' for no static rows, but got '!pipe.global<64x?xbf16>'}}
  // expected-note @+1 {{write 'rows %m' and 'columns %k' for the dimensions that the result leaves dynamic, and always 'pitch %b'}}
  %y = pipe.view %g pitch %p : !pipe.global<?x?xbf16> -> !pipe.global<64x?xbf16>
  return
}

// -----

func.func @bad(%g: !pipe.global<?x?xbf16>, %m: i32, %p: i64) {
  // (C490)
  // expected-error @+2 {{expects 'pitch', 'columns' for dynamic columns and 'rows' for no static rows, but got '!pipe.global<64x64xbf16>'}}
  // expected-note @+1 {{write 'rows %m' and 'columns %k' for the dimensions that the result leaves dynamic, and always 'pitch %b'}}
  %y = pipe.view %g rows %m pitch %p : !pipe.global<?x?xbf16> -> !pipe.global<64x64xbf16>
  return
}

// -----

func.func @bad(%g: !pipe.global<?x?xbf16>, %n: i32) {
  // (C490)
  // expected-error @+2 {{expects 'pitch', 'columns' for dynamic columns and 'rows' for no static rows, but got '!pipe.global<64x?xbf16>'}}
  // expected-note @+1 {{write 'rows %m' and 'columns %k' for the dimensions that the result leaves dynamic, and always 'pitch %b'}}
  %y = pipe.view %g columns %n : !pipe.global<?x?xbf16> -> !pipe.global<64x?xbf16>
  return
}

// -----

func.func @twin(%x: memref<8x64xbf16>, %g: !pipe.global<8x64xbf16>) {
  %argument = pipe.view %x : memref<8x64xbf16> -> !pipe.global<8x64xbf16>
  %address = pipe.view %g : !pipe.global<8x64xbf16> -> !llvm.ptr<1>
  return
}
func.func @bad(%x: memref<8x64xbf16>) {
  // (C107)
  // expected-error @+2 {{source of a pointer must be a !pipe.global, but got 'memref<8x64xbf16>'}}
  // expected-note @+1 {{view the buffer as an argument of the kernel first}}
  %address = pipe.view %x : memref<8x64xbf16> -> !llvm.ptr<1>
  return
}

// -----

func.func @bad(%g: !pipe.global<8x64xbf16>) {
  // (C107)
  // expected-error @+2 {{result must be a !pipe.global or a pointer of '!pipe.global<8x64xbf16>', but got 'memref<8x64xbf16>'}}
  // expected-note @+1 {{view the buffer on the host, before a kernel gets it}}
  %x = pipe.view %g : !pipe.global<8x64xbf16> -> memref<8x64xbf16>
  return
}

// -----

func.func @bad(%x: memref<8x64xbf16>, %m: i32) {
  // (C128)
  // expected-error @+2 {{rows must be an index, but got 'i32'}}
  // expected-note @+1 {{the host counts in index, and kernels in 32 bits}}
  %rows = "pipe.view"(%x, %m) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (memref<8x64xbf16>, i32) -> memref<?x64xbf16>
  return
}

// -----

func.func @bad(%x: memref<8x64xbf16>) {
  // (C128)
  // expected-error @+2 {{must have 'offset' and 'rows' of a buffer in another one, and 'rows', 'columns' and 'pitch' of an argument alone}}
  // expected-note @+1 {{leave out what the types of the view do not ask for}}
  %argument = pipe.view %x offset 32 : memref<8x64xbf16> -> !pipe.global<8x64xbf16>
  return
}

// -----

func.func @bad(%g: !pipe.global<8x64xbf16>, %n: i32) {
  // (C128)
  // expected-error @+2 {{must have 'offset' and 'rows' of a buffer in another one, and 'rows', 'columns' and 'pitch' of an argument alone}}
  // expected-note @+1 {{leave out what the types of the view do not ask for}}
  %address = pipe.view %g columns %n : !pipe.global<8x64xbf16> -> !llvm.ptr<1>
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
  %y = pipe.view %g columns %n pitch %p : !pipe.global<?x?xbf16> -> !pipe.global<64x?xbf16>
  pipe.store %v, %y[%c, %c] : tensor<128x32xbf16, #pipe.distribution<lanes>>, !pipe.global<64x?xbf16>
  return
}
func.func @bad(%y: !pipe.global<64x?xbf16>, %v: tensor<128x32xbf16, #pipe.distribution<lanes>>, %c: i32) {
  // (C492)
  // expected-error @+2 {{buffer must have static columns or come from a pipe.view with a pitch, but got '!pipe.global<64x?xbf16>'}}
  // expected-note @+1 {{a pointer does not say where its rows are}}
  pipe.store %v, %y[%c, %c] : tensor<128x32xbf16, #pipe.distribution<lanes>>, !pipe.global<64x?xbf16>
  return
}

// -----

func.func @bad(%y: !pipe.global<64x?xbf16>, %v: tensor<64x64xbf16, #pipe.distribution<wgmma>>, %c: i32) {
  // (C492)
  // expected-error @+2 {{buffer must have static columns or come from a pipe.view with a pitch, but got '!pipe.global<64x?xbf16>'}}
  // expected-note @+1 {{a pointer does not say where its rows are}}
  pipe.store %v, %y[%c, %c] : tensor<64x64xbf16, #pipe.distribution<wgmma>>, !pipe.global<64x?xbf16>
  return
}

// -----

func.func @bad(%f: !pipe.global<1x?xf32>, %c: i32) {
  // (C492)
  // expected-error @+2 {{buffer must have static columns or come from a pipe.view with a pitch, but got '!pipe.global<1x?xf32>'}}
  // expected-note @+1 {{a pointer does not say where its rows are}}
  %v = pipe.fetch %f[%c, %c] : !pipe.global<1x?xf32> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  return
}

// -----

func.func @bad(%f: !pipe.global<1x?xf32>, %c: i32) {
  // (C492)
  // expected-error @+2 {{buffer must have static columns or come from a pipe.view with a pitch, but got '!pipe.global<1x?xf32>'}}
  // expected-note @+1 {{a pointer does not say where its rows are}}
  %v = pipe.fetch %f[%c, %c] : !pipe.global<1x?xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  return
}
