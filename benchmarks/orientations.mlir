// The two orientations in one pass at the sizes of docs/performance/quantizers.md: bf16 rows of 4096. The
// amaxes are computed first, by kernels of their own: a made-up amax would make most blocks
// saturate.
//
//   fp4-runner orientations.mlir --target=sm_90a --shape 16384 --emit=so -o orientations.so        # and 56064
//   fp4-run orientations.so --device cuda --function both --benchmark    # weight, activation, gradient
//
// `both` has plain blocks, `weight` square ones. `activation` and `gradient` are what TransformerEngine trains with: rows as they
// are, columns transformed; to nearest even, or stochastically. `activation_tensor` and `gradient_tensor` transform on the tensor
// core.

func.func @both(%x: tensor<16384x4096xbf16> {fp4.name = "x", fp4.dims = ["M", ""]})
    -> (tensor<16384x4096xf4E2M1FN>, tensor<16384x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
        tensor<4096x16384xf4E2M1FN>, tensor<4096x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.amax %x : tensor<16384x4096xbf16> -> tensor<f32>
  %q, %s, %qt, %st = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>}
      : (tensor<16384x4096xbf16>, tensor<f32>)
      -> (tensor<16384x4096xf4E2M1FN>, tensor<16384x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
          tensor<4096x16384xf4E2M1FN>, tensor<4096x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s, %qt, %st : tensor<16384x4096xf4E2M1FN>, tensor<16384x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
      tensor<4096x16384xf4E2M1FN>, tensor<4096x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
func.func @weight(%x: tensor<16384x4096xbf16> {fp4.name = "x", fp4.dims = ["M", ""]})
    -> (tensor<16384x4096xf4E2M1FN>, tensor<16384x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
        tensor<4096x16384xf4E2M1FN>, tensor<4096x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.amax %x : tensor<16384x4096xbf16> -> tensor<f32>
  %q, %s, %qt, %st = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>,
       block = array<i64: 16, 16>}
      : (tensor<16384x4096xbf16>, tensor<f32>)
      -> (tensor<16384x4096xf4E2M1FN>, tensor<16384x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
          tensor<4096x16384xf4E2M1FN>, tensor<4096x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s, %qt, %st : tensor<16384x4096xf4E2M1FN>, tensor<16384x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
      tensor<4096x16384xf4E2M1FN>, tensor<4096x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
func.func @activation(%x: tensor<16384x4096xbf16> {fp4.name = "x", fp4.dims = ["M", ""]})
    -> (tensor<16384x4096xf4E2M1FN>, tensor<16384x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
        tensor<4096x16384xf4E2M1FN>, tensor<4096x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a, %at = fp4.hadamard_amax %x {dimension = 0 : i64} : tensor<16384x4096xbf16> -> tensor<f32>, tensor<f32>
  %q, %s, %qt, %st = fp4.quantize %x amax %a columnwise_amax %at
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>,
       columnwise_hadamard = #fp4.hadamard<size = 16>}
      : (tensor<16384x4096xbf16>, tensor<f32>, tensor<f32>)
      -> (tensor<16384x4096xf4E2M1FN>, tensor<16384x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
          tensor<4096x16384xf4E2M1FN>, tensor<4096x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s, %qt, %st : tensor<16384x4096xf4E2M1FN>, tensor<16384x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
      tensor<4096x16384xf4E2M1FN>, tensor<4096x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
func.func @gradient(%x: tensor<16384x4096xbf16> {fp4.name = "x", fp4.dims = ["M", ""]}, %rng: tensor<2xi64> {fp4.name = "rng"})
    -> (tensor<16384x4096xf4E2M1FN>, tensor<16384x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
        tensor<4096x16384xf4E2M1FN>, tensor<4096x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a, %at = fp4.hadamard_amax %x {dimension = 0 : i64} : tensor<16384x4096xbf16> -> tensor<f32>, tensor<f32>
  %q, %s, %qt, %st = fp4.quantize %x amax %a columnwise_amax %at rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>,
       rounding = #fp4.rounding<stochastic>, columnwise_hadamard = #fp4.hadamard<size = 16>}
      : (tensor<16384x4096xbf16>, tensor<f32>, tensor<f32>, tensor<2xi64>)
      -> (tensor<16384x4096xf4E2M1FN>, tensor<16384x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
          tensor<4096x16384xf4E2M1FN>, tensor<4096x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s, %qt, %st : tensor<16384x4096xf4E2M1FN>, tensor<16384x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
      tensor<4096x16384xf4E2M1FN>, tensor<4096x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
func.func @activation_tensor(%x: tensor<16384x4096xbf16> {fp4.name = "x", fp4.dims = ["M", ""]})
    -> (tensor<16384x4096xf4E2M1FN>, tensor<16384x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
        tensor<4096x16384xf4E2M1FN>, tensor<4096x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a, %at = fp4.hadamard_amax %x {dimension = 0 : i64} : tensor<16384x4096xbf16> -> tensor<f32>, tensor<f32>
  %q, %s, %qt, %st = fp4.quantize %x amax %a columnwise_amax %at
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>,
       columnwise_hadamard = #fp4.hadamard<size = 16, arithmetic = tensor_core>}
      : (tensor<16384x4096xbf16>, tensor<f32>, tensor<f32>)
      -> (tensor<16384x4096xf4E2M1FN>, tensor<16384x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
          tensor<4096x16384xf4E2M1FN>, tensor<4096x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s, %qt, %st : tensor<16384x4096xf4E2M1FN>, tensor<16384x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
      tensor<4096x16384xf4E2M1FN>, tensor<4096x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
func.func @gradient_tensor(%x: tensor<16384x4096xbf16> {fp4.name = "x", fp4.dims = ["M", ""]}, %rng: tensor<2xi64> {fp4.name = "rng"})
    -> (tensor<16384x4096xf4E2M1FN>, tensor<16384x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
        tensor<4096x16384xf4E2M1FN>, tensor<4096x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a, %at = fp4.hadamard_amax %x {dimension = 0 : i64} : tensor<16384x4096xbf16> -> tensor<f32>, tensor<f32>
  %q, %s, %qt, %st = fp4.quantize %x amax %a columnwise_amax %at rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>,
       rounding = #fp4.rounding<stochastic>, columnwise_hadamard = #fp4.hadamard<size = 16, arithmetic = tensor_core>}
      : (tensor<16384x4096xbf16>, tensor<f32>, tensor<f32>, tensor<2xi64>)
      -> (tensor<16384x4096xf4E2M1FN>, tensor<16384x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
          tensor<4096x16384xf4E2M1FN>, tensor<4096x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s, %qt, %st : tensor<16384x4096xf4E2M1FN>, tensor<16384x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
      tensor<4096x16384xf4E2M1FN>, tensor<4096x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
