// The sizes of s follow from those of x.
func.func @blocks(%x: tensor<?x64xbf16> {fp4.name = "x", fp4.dims = ["M", "K"]},
                  %s: tensor<?x4xf8E4M3FN> {fp4.name = "s", fp4.dims = ["M/16", "K/16"]})
    -> (tensor<f32> {fp4.name = "amax"},
        tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "t"}) {
  %amax = fp4.amax %x : tensor<?x64xbf16> -> tensor<f32>
  %t = fp4.swizzle_scales %s
      : tensor<?x4xf8E4M3FN> -> tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %amax, %t : tensor<f32>, tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
