// RUN: fp4-opt %s --fp4-finalize-host-buffers --split-input-file --verify-diagnostics

// expected-error@+2 {{argument 0 of 'scalar' must be a tensor with a device buffer, but got 'f32'}}
// expected-note@+1 {{buffers exist for scalars and matrices of bf16}}
func.func @scalar(%x: f32) {
  return
}

// -----

// expected-error@+2 {{result 0 of 'columns' must be a tensor with a device buffer, but got 'tensor<4x?xbf16>'}}
// expected-note@+1 {{only the rows are dynamic}}
func.func @columns(%x: tensor<4x8xbf16>) -> tensor<4x?xbf16> {
  %0 = tensor.cast %x : tensor<4x8xbf16> to tensor<4x?xbf16>
  return %0 : tensor<4x?xbf16>
}

// -----

// expected-error@+2 {{argument 0 of 'transposed' must be a tensor with a device buffer, but got 'tensor<4x?xf4E2M1FN>'}}
// expected-note@+1 {{only the rows are dynamic}}
func.func @transposed(%q: tensor<4x?xf4E2M1FN>) {
  return
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

// expected-error@+1 {{'declared' must have a body, but got a declaration}}
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

// Its twin: a prefix of a prefix is fine.
func.func @fp4_alloc(%x: tensor<4x8xbf16>) {
  return
}
