// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-pipe -verify-diagnostics -split-input-file
// RUN: not fp4-opt %s -fp4-set-target=target=sm_90a -fp4-plan-kernels -convert-fp4-to-pipe -split-input-file 2>&1 | FileCheck %s

// Quantizers that transform on the tensor core and have no kernel there; the first has one. On sm_90a warps have the
// kernel, which can do more.

// CHECK: error: 'fp4.quantize' op with a transform on the tensor core must have no transform of rows, but got 'hadamard'
// CHECK: note: give the transform 'arithmetic = butterfly'
// CHECK: error: {{.*}}must have size 16, but got 32
// CHECK: error: {{.*}}must have format nvfp4, but got mxfp4
func.func @twin(%x: tensor<32x8xbf16>, %ax: tensor<f32>) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<32x8xbf16>, tensor<f32>) -> (tensor<8x32xf4E2M1FN>, tensor<8x2xf8E4M3FN>)
  return
}

// -----

func.func @both(%x: tensor<32x16xbf16>, %ax: tensor<f32>, %rng: tensor<2xi64>) {
  // Two kernels would draw two sets of these random numbers; fp4-plan-kernels leaves one operation.
  // expected-error @+2 {{with a transform on the tensor core must have outputs columnwise, but got both}}
  // expected-note @+1 {{give the transform 'arithmetic = butterfly'}}
  %q, %s, %qt, %st = fp4.quantize %x amax %ax rng %rng {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      rounding = #fp4.rounding<stochastic>, philox = #fp4.philox<transformer_engine>,
      outputs = #fp4.outputs<both>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<32x16xbf16>, tensor<f32>, tensor<2xi64>)
      -> (tensor<32x16xf4E2M1FN>, tensor<32x1xf8E4M3FN>, tensor<16x32xf4E2M1FN>, tensor<16x2xf8E4M3FN>)
  return
}

// -----

func.func @rowwise(%x: tensor<32x16xbf16>, %ax: tensor<f32>) {
  // expected-error @+2 {{with a transform on the tensor core must have outputs columnwise, but got rowwise}}
  // expected-note @+1 {{give the transform 'arithmetic = butterfly'}}
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<32x16xbf16>, tensor<f32>) -> (tensor<32x16xf4E2M1FN>, tensor<32x1xf8E4M3FN>)
  return
}

// -----

func.func @size(%x: tensor<32x16xbf16>, %ax: tensor<f32>) {
  // expected-error @+2 {{with a transform on the tensor core must have size 16, but got 32}}
  // expected-note @+1 {{give the transform 'arithmetic = butterfly'}}
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<size = 32, arithmetic = tensor_core>}
      : (tensor<32x16xbf16>, tensor<f32>) -> (tensor<16x32xf4E2M1FN>, tensor<16x2xf8E4M3FN>)
  return
}

// -----

func.func @format(%x: tensor<32x16xbf16>) {
  // expected-error @+2 {{with a transform on the tensor core must have format nvfp4, but got mxfp4}}
  // expected-note @+1 {{give the transform 'arithmetic = butterfly'}}
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<32x16xbf16>) -> (tensor<16x32xf4E2M1FN>, tensor<16x1xf8E8M0FNU>)
  return
}

// -----

func.func @columns(%x: tensor<32x12xbf16>, %ax: tensor<f32>) {
  // expected-error @+2 {{must have columns of the input a static, positive multiple of 8, but got 12}}
  // expected-note @+1 {{give the transform 'arithmetic = butterfly'}}
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<32x12xbf16>, tensor<f32>) -> (tensor<12x32xf4E2M1FN>, tensor<12x2xf8E4M3FN>)
  return
}
