// RUN: fp4-opt %s -verify-diagnostics -split-input-file
// Constants and views of the host.

func.func @constant_bytes() {
  %twin = pipe.device_constant dense<1> : tensor<4xi8> -> memref<2xbf16>
  // (C139)
  // expected-error @+2 {{bytes must be as many as 'memref<2xbf16>' has, but got 5}}
  // expected-note @+1 {{write an i8 for each byte of the buffer}}
  %bad = pipe.device_constant dense<1> : tensor<5xi8> -> memref<2xbf16>
  return
}

// -----

func.func @constant_elements() {
  %twin = pipe.device_constant dense<1> : tensor<4xi8> -> memref<2xbf16>
  // (C139)
  // expected-error @+2 {{bytes must be a tensor of i8, but got 'tensor<1xi32>'}}
  // expected-note @+1 {{bitcast the elements to bytes}}
  %bad = pipe.device_constant dense<1> : tensor<1xi32> -> memref<2xbf16>
  return
}

// -----

func.func @view_offset(%x: memref<8x64xbf16>) {
  %twin = pipe.view %x offset 32 : memref<8x64xbf16> -> memref<4x64xbf16>
  // (C128)
  // expected-error @+2 {{offset must be a multiple of 32, but got 16}}
  // expected-note @+1 {{buffers begin at multiples of 32 bytes, so that vectors and TMA can reach them}}
  %bad = pipe.view %x offset 16 : memref<8x64xbf16> -> memref<4x64xbf16>
  return
}

// -----

func.func @view_end(%x: memref<8x64xbf16>) {
  %twin = pipe.view %x offset 512 : memref<8x64xbf16> -> memref<4x64xbf16>
  // (C128)
  // expected-error @+2 {{result must end within the 1024 bytes of the source, but has 512 from 544 on}}
  // expected-note @+1 {{allocate a larger source, or take fewer elements}}
  %bad = pipe.view %x offset 544 : memref<8x64xbf16> -> memref<4x64xbf16>
  return
}

// -----

func.func @view_rows(%x: memref<?x64xbf16>, %rows: index) {
  %twin = pipe.view %x rows %rows : memref<?x64xbf16> -> memref<?x32xbf16>
  // (C128)
  // expected-error @+2 {{rows must be there for a result with one dynamic dimension, but got 'memref<?x32xbf16>'}}
  // expected-note @+1 {{add 'rows %m' for a dynamic first dimension, and leave it out for a static one}}
  %bad = pipe.view %x : memref<?x64xbf16> -> memref<?x32xbf16>
  return
}

// -----

func.func @view_strides(%x: memref<8x64xbf16, strided<[128, 1]>>, %y: memref<8x64xbf16>) {
  %twin = pipe.view %y : memref<8x64xbf16> -> memref<512xbf16>
  // (C128)
  // expected-error @+2 {{source and result must be row-major memrefs of numbers}}
  // expected-note @+1 {{copy a strided memref first}}
  %bad = pipe.view %x : memref<8x64xbf16, strided<[128, 1]>> -> memref<512xbf16>
  return
}
