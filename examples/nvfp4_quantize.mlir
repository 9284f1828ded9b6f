// Quantizes a matrix to NVFP4 and back: four kernels that stream through memory and need no tensor core,
// so that they run on every target of the table.
//
//   fp4-runner examples/nvfp4_quantize.mlir                      run and check, M = 256
//   fp4-runner examples/nvfp4_quantize.mlir --target=sm_90a      the same on a Hopper GPU, if there is one
//   fp4-runner examples/nvfp4_quantize.mlir --output q=q.npy     the packed codes
//
// Every 16 elements of a row share one 8-bit scale; the tensor's largest magnitude gives another, in fp32.

func.func @nvfp4_quantize(%x: tensor<?x1024xbf16> {fp4.name = "x", fp4.dims = ["M", "K"]})
    -> (tensor<f32> {fp4.name = "amax"},
        tensor<?x1024xf4E2M1FN> {fp4.name = "q"},
        tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "scales"},
        tensor<?x1024xbf16> {fp4.name = "y"}) {
  %amax = fp4.amax %x : tensor<?x1024xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %amax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x1024xbf16>, tensor<f32>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>)
  %t = fp4.swizzle_scales %s
      : tensor<?x64xf8E4M3FN> -> tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %y = fp4.dequantize %q scaled %s amax %amax {format = #fp4.format<nvfp4>}
      : (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>, tensor<f32>) -> tensor<?x1024xbf16>
  return %amax, %q, %t, %y
      : tensor<f32>, tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<?x1024xbf16>
}
