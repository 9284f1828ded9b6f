// RUN: %fp4-opt-once %s --fp4-check-program -split-input-file -verify-diagnostics
// The first function of a case is legal, the second differs from it in what the error is about.

!linear = tensor<128x4xf8E4M3FN>
!tiled = tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!rows = tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>

func.func @forgets_rows(%s: !tiled) -> !rows {
  %t = tensor.cast %s : !tiled to !rows
  return %t : !rows
}
func.func @makes_tiles(%s: !linear) -> !tiled {
  // expected-error @+2 {{'tensor.cast' op must not read or make scales in layout #fp4.scale_layout<tiled_128x4>, which it knows nothing of}}
  // expected-note @+1 {{fp4.swizzle_scales makes them of row-major scales, fp4.unswizzle_scales gives row-major ones back}}
  %t = tensor.cast %s : !linear to !tiled
  return %t : !tiled
}

// -----

!linear = tensor<128x4xf8E4M3FN>
!tiled = tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @reads_tiles(%s: !tiled) -> !linear {
  // expected-error @+2 {{'tensor.cast' op must not read or make scales}}
  // expected-note @+1 {{fp4.unswizzle_scales}}
  %t = tensor.cast %s : !tiled to !linear
  return %t : !linear
}

// -----

!linear = tensor<128x4xf8E4M3FN>
!tiled = tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @buffer(%s: !tiled) -> memref<1x1x512xi8> {
  %t = builtin.unrealized_conversion_cast %s : !tiled to memref<1x1x512xi8>
  return %t : memref<1x1x512xi8>
}
func.func @wrong_buffer(%s: !tiled) -> memref<128x4xi8> {
  // expected-error @+2 {{'builtin.unrealized_conversion_cast' op must not read or make scales}}
  // expected-note @+1 {{fp4.unswizzle_scales}}
  %t = builtin.unrealized_conversion_cast %s : !tiled to memref<128x4xi8>
  return %t : memref<128x4xi8>
}

// -----

!tiled = tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @from_memref(%m: memref<128x4xf8E4M3FN>) -> !tiled {
  // expected-error @+2 {{'bufferization.to_tensor' op must not read or make scales}}
  // expected-note @+1 {{fp4.swizzle_scales}}
  %t = bufferization.to_tensor %m : memref<128x4xf8E4M3FN> to !tiled
  return %t : !tiled
}

// -----

!tiled = tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @constant() -> !tiled {
  %t = arith.constant dense<1.0> : !tiled
  return %t : !tiled
}
func.func @empty() -> !tiled {
  // expected-error @+2 {{'tensor.empty' op must not read or make scales}}
  // expected-note @+1 {{fp4.swizzle_scales}}
  %t = tensor.empty() : !tiled
  return %t : !tiled
}

// -----

!linear = tensor<128x4xf8E4M3FN>
!tiled = tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @reinterpret(%s: !tiled) -> tensor<128x4xi8> {
  // expected-error @+2 {{'tensor.bitcast' op must not read or make scales}}
  // expected-note @+1 {{fp4.unswizzle_scales}}
  %t = tensor.bitcast %s : !tiled to tensor<128x4xi8>
  return %t : tensor<128x4xi8>
}

// -----

func.func @number() -> tensor<f32> {
  %unused = ub.poison : tensor<f32>
  %x = arith.constant dense<1.0> : tensor<f32>
  return %x : tensor<f32>
}
func.func @poison() -> tensor<f32> {
  // expected-error @+2 {{'ub.poison' op has no value that a kernel could read}}
  // expected-note @+1 {{make the tensor an argument or an arith.constant}}
  %x = ub.poison : tensor<f32>
  return %x : tensor<f32>
}

// -----

func.func @outer() {
  return
}
// expected-error @+2 {{a program must be one module, but got a module inside of another}}
// expected-note @+1 {{move its functions to the outer module}}
module @inner {
  func.func @f() {
    return
  }
}

// -----

func.func @rows(%x: tensor<64x32xbf16>) -> tensor<f32> {
  %y = tensor.extract_slice %x[0, 0] [1, 32] [1, 1] : tensor<64x32xbf16> to tensor<1x32xbf16>
  %a = fp4.amax %y : tensor<1x32xbf16> -> tensor<f32>
  return %a : tensor<f32>
}
func.func @no_rows(%x: tensor<64x32xbf16>) -> tensor<f32> {
  %y = tensor.extract_slice %x[0, 0] [0, 32] [1, 1] : tensor<64x32xbf16> to tensor<0x32xbf16>
  // expected-error @+2 {{'fp4.amax' op must read and give tensors with elements, but got 'tensor<0x32xbf16>'}}
  // expected-note @+1 {{devices have no empty buffers; leave the operation out}}
  %a = fp4.amax %y : tensor<0x32xbf16> -> tensor<f32>
  return %a : tensor<f32>
}

// -----

func.func private @deep(tensor<128x64xf4E2M1FN>)
// expected-error @+2 {{'func.func' op argument 0 must have elements, but got 'tensor<128x0xf4E2M1FN>'}}
// expected-note @+1 {{devices have no empty buffers; rows that may be none are dynamic}}
func.func private @no_depth(tensor<128x0xf4E2M1FN>)

// -----

func.func private @"f\C3\BC"()
// expected-error @+2 {{'func.func' op must have a name of UTF-8 text, but got 'f\FF'}}
// expected-note @+1 {{rename the function: its name is in manifests and headers, which are text}}
func.func private @"f\FF"()

// -----

func.func @constants() -> (tensor<4x4xf32>, tensor<200000x80000xf32>) {
  %0 = arith.constant dense<1.0> : tensor<4x4xf32>
  // expected-error @+2 {{'arith.constant' op must have at most 2147483648 bytes, but got 'tensor<200000x80000xf32>'}}
  // expected-note @+1 {{make the tensor an argument}}
  %1 = arith.constant dense<1.0> : tensor<200000x80000xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<200000x80000xf32>
}

// -----

// Weights for activations of e4m3 whose range is exact, and then not.
!w = tensor<128x128xf4E2M1FN>
!s = tensor<128x4xf8E8M0FNU>
!p = tensor<1x1x8704xi8, #fp4.weight_layout<wgmma>>
func.func @exact() -> !p {
  %w = arith.constant dense<1.0> : !w
  %s = arith.constant dense<1.0> : !s
  %p = fp4.prepack %w scaled %s {format = #fp4.format<mxfp4>} : (!w, !s) -> !p
  return %p : !p
}
func.func @far() -> !p {
  %w = arith.constant dense<1.0> : !w
  %s = arith.constant dense<"0x7F7F7F7F7F7F7F7F7F7F7F7F7F7F737F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F"> : !s
  // expected-error @+2 {{operand 'scales' must be at most 2^11 apart in 128 columns of a row, but got 2^-12 and 2^0 in row 3 from column 0 on}}
  // expected-note @+1 {{e4m3 has no such weights; prepack them in tiles of 4352 bytes for activations of bf16}}
  %p = fp4.prepack %w scaled %s {format = #fp4.format<mxfp4>} : (!w, !s) -> !p
  return %p : !p
}

// -----

// Tiles whose ranges are exact; but rows that have one power of two in all of their tiles are not.
!w = tensor<128x256xf4E2M1FN>
!s = tensor<128x8xf8E8M0FNU>
func.func @far_tiles() -> tensor<1x2x8704xi8, #fp4.weight_layout<wgmma>> {
  %w = arith.constant dense<1.0> : !w
  %s = arith.constant dense<"0x7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F737373737F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F"> : !s
  %p = fp4.prepack %w scaled %s {format = #fp4.format<mxfp4>} : (!w, !s) -> tensor<1x2x8704xi8, #fp4.weight_layout<wgmma>>
  return %p : tensor<1x2x8704xi8, #fp4.weight_layout<wgmma>>
}
func.func @far_rows() -> tensor<1x2x8704xi8, #fp4.weight_layout<wgmma_rows>> {
  %w = arith.constant dense<1.0> : !w
  %s = arith.constant dense<"0x7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F737373737F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F7F"> : !s
  // expected-error @+2 {{operand 'scales' must be at most 2^11 apart in a row, but got 2^-12 and 2^0 in row 3 from column 0 on}}
  // expected-note @+1 {{#fp4.weight_layout<wgmma> has such weights, for matmuls without arithmetic fast_accumulation, or make the elements}}
  %p = fp4.prepack %w scaled %s {format = #fp4.format<mxfp4>} : (!w, !s) -> tensor<1x2x8704xi8, #fp4.weight_layout<wgmma_rows>>
  return %p : tensor<1x2x8704xi8, #fp4.weight_layout<wgmma_rows>>
}

// -----

func.func private @tensors(tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
// expected-error @+2 {{'func.func' op must take and return tensors, but has a value of type '!fp4.scaled<mxfp4, }}
// expected-note @+1 {{pass data and scales as two tensors, and write fp4.scaled before the matmul}}
func.func private @bundle(!fp4.scaled<mxfp4, tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>)
