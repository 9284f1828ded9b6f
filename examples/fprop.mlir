// Forward pass of a linear layer in NVFP4, as TransformerEngine trains it: Y[M,N] = X[M,K] * W[N,K]^T.
//
//   fp4-runner examples/fprop.mlir                      run and check; --shape M,N,K for other sizes
//   fp4-runner examples/fprop.mlir --emit=mlir          the program after fusion
//
// Besides Y it returns what the backward pass needs and what is therefore made in the same pass over X and W:
//
//   x_t  X^T, transformed and quantized along M, with its scales and amax   -> wgrad.mlir
//   w_t  W^T, quantized along N, with its scales and amax                   -> dgrad.mlir
//
// Written in plain operations, 13 of them; fp4-fuse makes 6 kernels. X is quantized with one scale for every 16
// elements of a row; for WGrad its columns first go through a random Hadamard transform, which spreads outliers.
// W has one scale for every 16 x 16 elements, so that W and W^T are quantized to the same numbers.

#te = #fp4.recipe<transformer_engine>
#nvfp4 = #fp4.format<nvfp4>
#tiled = #fp4.scale_layout<tiled_128x4>

!lhs = !fp4.scaled<nvfp4, tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN, #tiled>>
!rhs = !fp4.scaled<nvfp4, tensor<384x512xf4E2M1FN>, tensor<384x32xf8E4M3FN, #tiled>>
func.func @fprop(%x: tensor<256x512xbf16> {fp4.name = "x", fp4.dims = ["M", "K"]},
                 %w: tensor<384x512xbf16> {fp4.name = "w", fp4.dims = ["N", "K"]})
    -> (tensor<256x384xbf16> {fp4.name = "y"},
        tensor<512x256xf4E2M1FN> {fp4.name = "x_t"},
        tensor<512x16xf8E4M3FN, #tiled> {fp4.name = "x_t_scales"},
        tensor<f32> {fp4.name = "x_t_amax"},
        tensor<512x384xf4E2M1FN> {fp4.name = "w_t"},
        tensor<512x24xf8E4M3FN, #tiled> {fp4.name = "w_t_scales"},
        tensor<f32> {fp4.name = "w_amax"}) {
  // X along K, to nearest even.
  %ax = fp4.amax %x : tensor<256x512xbf16> -> tensor<f32>
  %qx, %sx = fp4.quantize %x amax %ax {format = #nvfp4, recipe = #te}
      : (tensor<256x512xbf16>, tensor<f32>) -> (tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN>)
  %tx = fp4.swizzle_scales %sx : tensor<256x32xf8E4M3FN> -> tensor<256x32xf8E4M3FN, #tiled>

  // X^T along M, transformed.
  %hx = fp4.hadamard %x {dimension = 0 : i64} : tensor<256x512xbf16> -> tensor<256x512xbf16>
  %ahx = fp4.amax %hx : tensor<256x512xbf16> -> tensor<f32>
  %qxt, %sxt = fp4.quantize %hx amax %ahx {format = #nvfp4, recipe = #te, outputs = #fp4.outputs<columnwise>}
      : (tensor<256x512xbf16>, tensor<f32>) -> (tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN>)
  %txt = fp4.swizzle_scales %sxt : tensor<512x16xf8E4M3FN> -> tensor<512x16xf8E4M3FN, #tiled>

  // W along K, and W^T along N.
  %aw = fp4.amax %w : tensor<384x512xbf16> -> tensor<f32>
  %qw, %sw = fp4.quantize %w amax %aw {format = #nvfp4, recipe = #te, block = array<i64: 16, 16>}
      : (tensor<384x512xbf16>, tensor<f32>) -> (tensor<384x512xf4E2M1FN>, tensor<384x32xf8E4M3FN>)
  %tw = fp4.swizzle_scales %sw : tensor<384x32xf8E4M3FN> -> tensor<384x32xf8E4M3FN, #tiled>
  %qwt, %swt = fp4.quantize %w amax %aw {format = #nvfp4, recipe = #te, block = array<i64: 16, 16>,
                                         outputs = #fp4.outputs<columnwise>}
      : (tensor<384x512xbf16>, tensor<f32>) -> (tensor<512x384xf4E2M1FN>, tensor<512x24xf8E4M3FN>)
  %twt = fp4.swizzle_scales %swt : tensor<512x24xf8E4M3FN> -> tensor<512x24xf8E4M3FN, #tiled>

  %alpha = fp4.matmul_alpha %ax, %aw : tensor<f32>, tensor<f32> -> tensor<f32>
  %qx_scaled = fp4.scaled %qx, %tx : !lhs
  %qw_scaled = fp4.scaled %qw, %tw : !rhs
  %y = fp4.matmul %qx_scaled, %qw_scaled alpha %alpha
      : (!lhs, !rhs, tensor<f32>) -> tensor<256x384xbf16>
  return %y, %qxt, %txt, %ahx, %qwt, %twt, %aw
      : tensor<256x384xbf16>, tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN, #tiled>, tensor<f32>,
        tensor<512x384xf4E2M1FN>, tensor<512x24xf8E4M3FN, #tiled>, tensor<f32>
}
