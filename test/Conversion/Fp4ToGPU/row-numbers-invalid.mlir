// RUN: fp4-opt %s -split-input-file -verify-diagnostics -fp4-set-target="target=sm_90a" -fp4-generalize-elementwise -fp4-plan-kernels -convert-fp4-to-gpu

func.func @columns(%x: tensor<16x32xf32>, %i: tensor<4x1xi64>) -> tensor<4x16xf32> {
  // expected-error @+2 {{'tensor.gather' op has no kernel: it gathers other than the rows of a matrix}}
  // expected-note @+1 {{kernels gather rows of a matrix with static columns by row numbers in a tensor of M x 1 i64, gather_dims([0])}}
  %y = tensor.gather %x[%i] gather_dims([1]) : (tensor<16x32xf32>, tensor<4x1xi64>) -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// -----

func.func @narrow(%x: tensor<16x32xf32>, %i: tensor<4x1xi32>) -> tensor<4x32xf32> {
  // expected-error @+2 {{'tensor.gather' op has no kernel: the row numbers are not i64}}
  // expected-note @+1 {{kernels gather rows}}
  %y = tensor.gather %x[%i] gather_dims([0]) : (tensor<16x32xf32>, tensor<4x1xi32>) -> tensor<4x32xf32>
  return %y : tensor<4x32xf32>
}

// -----

func.func @codes(%x: tensor<16x32xf8E4M3FN>, %i: tensor<4x1xi64>) -> tensor<4x32xf8E4M3FN> {
  // expected-error @+2 {{'tensor.gather' op has no kernel: the elements are not f32, bf16 or f16}}
  // expected-note @+1 {{kernels gather rows}}
  %y = tensor.gather %x[%i] gather_dims([0]) : (tensor<16x32xf8E4M3FN>, tensor<4x1xi64>) -> tensor<4x32xf8E4M3FN>
  return %y : tensor<4x32xf8E4M3FN>
}

// -----

func.func @cache(%x: tensor<4x32xf32>, %c: tensor<16x32xf32>, %i: tensor<4x1xi64>) -> tensor<16x32xf32> {
  // expected-error @+2 {{'tensor.scatter' op has no kernel: it does not write into a tensor.empty}}
  // expected-note @+1 {{kernels scatter rows into a tensor.empty of static sizes by row numbers in a tensor of M x 1 i64, scatter_dims([0]) unique}}
  %y = tensor.scatter %x into %c[%i] scatter_dims([0]) unique : (tensor<4x32xf32>, tensor<16x32xf32>, tensor<4x1xi64>) -> tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}

// -----

func.func @dynamic(%x: tensor<4x32xf32>, %n: index, %i: tensor<4x1xi64>) -> tensor<?x32xf32> {
  %e = tensor.empty(%n) : tensor<?x32xf32>
  // expected-error @+2 {{'tensor.scatter' op has no kernel: the sizes of the result are dynamic}}
  // expected-note @+1 {{kernels scatter rows}}
  %y = tensor.scatter %x into %e[%i] scatter_dims([0]) unique : (tensor<4x32xf32>, tensor<?x32xf32>, tensor<4x1xi64>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

func.func @tiled(%x: tensor<128x64xbf16>, %i: tensor<128x1xi64>) -> (tensor<128x64xf4E2M1FN>, tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %q, %s = fp4.quantize %x {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : (tensor<128x64xbf16>) -> (tensor<128x64xf4E2M1FN>, tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  %e = tensor.empty() : tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  // expected-error @+2 {{'tensor.scatter' op has no kernel: scales in a layout have no rows one after the other}}
  // expected-note @+1 {{kernels scatter rows}}
  %y = tensor.scatter %s into %e[%i] scatter_dims([0]) unique : (tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<128x1xi64>) -> tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %q, %y : tensor<128x64xf4E2M1FN>, tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
