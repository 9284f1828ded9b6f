// RUN: fp4-opt %s --fp4-finalize-host-buffers --split-input-file --verify-diagnostics

// expected-error@+2 {{argument 0 of 'scalar' must be a tensor with a device buffer, but got 'f32'}}
// expected-note@+1 {{buffers exist for scalars and matrices of bf16}}
func.func @scalar(%x: f32) {
  return
}

// -----

// expected-error@+2 {{result 0 of 'columns' must be a tensor with a device buffer, but got 'tensor<2x4x?xbf16>'}}
// expected-note@+1 {{of which rows, and columns of matrices, may be dynamic}}
func.func @columns(%x: tensor<2x4x8xbf16>) -> tensor<2x4x?xbf16> {
  %0 = tensor.cast %x : tensor<2x4x8xbf16> to tensor<2x4x?xbf16>
  return %0 : tensor<2x4x?xbf16>
}

// -----

// expected-error@+2 {{argument 0 of 'transposed' must be a tensor with a device buffer, but got 'tensor<2x4x?xf4E2M1FN>'}}
// expected-note@+1 {{of which rows, and columns of matrices, may be dynamic}}
func.func @transposed(%q: tensor<2x4x?xf4E2M1FN>) {
  return
}

// -----

// Manifests have no word for other element types, so that no tool could load the library.

func.func @known(%a: tensor<4xi64>, %b: tensor<4xf32>, %c: tensor<4xf16>, %d: tensor<4xf8E4M3FN>,
                 %e: tensor<4xf8E5M2>, %f: tensor<4xf6E3M2FN>) {
  return
}
func.func @unknown(
    %a: tensor<4xi64>,
    // expected-error@+2 {{argument 1 of 'unknown' must be a tensor with a device buffer, but got 'tensor<4xi16>'}}
    // expected-note@+1 {{drop what is not used, and convert other types outside}}
    %b: tensor<4xi16>) {
  return
}

// -----

// expected-error@+2 {{argument 0 of 'bytes' must be a tensor with a device buffer, but got 'tensor<4xi8>'}}
// expected-note@+1 {{for vectors of i64}}
func.func @bytes(%b: tensor<4xi8>) {
  return
}

// -----

// expected-error@+2 {{argument 0 of 'double' must be a tensor with a device buffer, but got 'tensor<4xf64>'}}
// expected-note@+1 {{buffers exist for}}
func.func @double(%b: tensor<4xf64>) {
  return
}

// -----

// expected-error@+2 {{argument 0 of 'e3m4' must be a tensor with a device buffer, but got 'tensor<4xf8E3M4>'}}
// expected-note@+1 {{buffers exist for}}
func.func @e3m4(%b: tensor<4xf8E3M4>) -> tensor<4xf8E3M4> {
  return %b : tensor<4xf8E3M4>
}

// -----

func.func @transpose(%x: tensor<4x8xbf16>) -> tensor<8x4xbf16> {
  %init = tensor.empty() : tensor<8x4xbf16>
  // expected-error@+2 {{'linalg.transpose' computes on tensors and has no kernel}}
  // expected-note@+1 {{fp4.amax and fp4.quantize without groups and random numbers read through it}}
  %0 = linalg.transpose ins(%x : tensor<4x8xbf16>) outs(%init : tensor<8x4xbf16>) permutation = [1, 0]
  return %0 : tensor<8x4xbf16>
}

// -----

func.func @elementwise(%x: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  // expected-error@+2 {{'arith.addf' computes on tensors and has no kernel}}
  // expected-note@+1 {{host functions consist of fp4 operations}}
  %0 = arith.addf %x, %x : tensor<4x8xbf16>
  return %0 : tensor<4x8xbf16>
}

// -----

// expected-error@+2 {{'branches' must be straight-line code, but got branches}}
// expected-note@+1 {{decide outside, and call one function per case}}
func.func @branches(%x: tensor<4x8xbf16>) {
  cf.br ^next
^next:
  return
}

// -----

// expected-error@+2 {{'declared' must have a body, but got a declaration}}
// expected-note@+1 {{define the function, or remove the declaration; programs are compiled whole}}
func.func private @declared(%x: tensor<4x8xbf16>)

// -----

// expected-error@+2 {{argument 0 of 'empty' must be a tensor with a device buffer, but got 'tensor<0x8xbf16>'}}
// expected-note@+1 {{none for tensors without elements}}
func.func @empty(%x: tensor<0x8xbf16>) {
  return
}

// -----

// expected-error@+2 {{function name must not start with 'fp4rt_', but got 'fp4rt_alloc'}}
// expected-note@+1 {{emitted libraries use such names themselves}}
func.func @fp4rt_alloc(%x: tensor<4x8xbf16>) {
  return
}

// -----

// The right twin: a prefix of a prefix is fine.
func.func @fp4_alloc(%x: tensor<4x8xbf16>) {
  return
}

// -----

// Matrices are copied one by one, so their number must be known where an operation takes no strides.
// expected-note@+1 {{fp4.quantize and fp4.amax take strides}}
func.func @copied_batch(%x: tensor<?x4x32xbf16> {fp4.strided}) -> tensor<?x32xbf16> {
  // expected-error@+1 {{a strided argument of dynamically many matrices must be read by an operation that takes strides}}
  %m = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x4x32xbf16> into tensor<?x32xbf16>
  return %m : tensor<?x32xbf16>
}
