// Backward pass of a linear layer in NVFP4 to its input: dX[M,K] = dY[M,N] * W[N,K].
//
//   fp4-runner examples/dgrad.mlir                      run and check; --shape M,N,K for other sizes
//   fp4-runner examples/fprop.mlir --output w_t=w_t.npy --output w_t_scales=s.npy --output w_amax=a.npy
//   fp4-runner examples/dgrad.mlir --input w_t=w_t.npy --input w_t_scales=s.npy --input w_amax=a.npy
//
// W comes from the forward pass, quantized along N. The gradient is rounded stochastically: rng holds a seed and an
// offset (the next call adds 1), and --seed is the seed that fp4-runner makes up. Besides dX it returns what WGrad
// needs of dY: dy_t, dY^T transformed and quantized along M, with its scales and amax.
//
// Written in plain operations, 9 of them; fp4-fuse makes 4 kernels.

#te = #fp4.recipe<transformer_engine>
#nvfp4 = #fp4.format<nvfp4>
#stochastic = #fp4.rounding<stochastic>
#tiled = #fp4.scale_layout<tiled_128x4>

!lhs = !fp4.scaled<nvfp4, tensor<256x384xf4E2M1FN>, tensor<256x24xf8E4M3FN, #tiled>>
!rhs = !fp4.scaled<nvfp4, tensor<512x384xf4E2M1FN>, tensor<512x24xf8E4M3FN, #tiled>>
func.func @dgrad(%dy: tensor<256x384xbf16> {fp4.name = "dy", fp4.dims = ["M", "N"]},
                 %qwt: tensor<512x384xf4E2M1FN> {fp4.name = "w_t", fp4.dims = ["K", "N"]},
                 %twt: tensor<512x24xf8E4M3FN, #tiled> {fp4.name = "w_t_scales", fp4.dims = ["K", "N/16"]},
                 %aw: tensor<f32> {fp4.name = "w_amax"},
                 %rng: tensor<2xi64> {fp4.name = "rng"})
    -> (tensor<256x512xbf16> {fp4.name = "dx"},
        tensor<384x256xf4E2M1FN> {fp4.name = "dy_t"},
        tensor<384x16xf8E4M3FN, #tiled> {fp4.name = "dy_t_scales"},
        tensor<f32> {fp4.name = "dy_t_amax"}) {
  // dY along N.
  %ady = fp4.amax %dy : tensor<256x384xbf16> -> tensor<f32>
  %qdy, %sdy = fp4.quantize %dy amax %ady rng %rng {format = #nvfp4, recipe = #te, rounding = #stochastic}
      : (tensor<256x384xbf16>, tensor<f32>, tensor<2xi64>)
      -> (tensor<256x384xf4E2M1FN>, tensor<256x24xf8E4M3FN>)
  %tdy = fp4.swizzle_scales %sdy : tensor<256x24xf8E4M3FN> -> tensor<256x24xf8E4M3FN, #tiled>

  // dY^T along M, transformed with the signs that X^T has, so that their product is that of the originals.
  %hdy = fp4.hadamard %dy {dimension = 0 : i64} : tensor<256x384xbf16> -> tensor<256x384xbf16>
  %ahdy = fp4.amax %hdy : tensor<256x384xbf16> -> tensor<f32>
  %qdyt, %sdyt = fp4.quantize %hdy amax %ahdy rng %rng
      {format = #nvfp4, recipe = #te, rounding = #stochastic, outputs = #fp4.outputs<columnwise>}
      : (tensor<256x384xbf16>, tensor<f32>, tensor<2xi64>)
      -> (tensor<384x256xf4E2M1FN>, tensor<384x16xf8E4M3FN>)
  %tdyt = fp4.swizzle_scales %sdyt : tensor<384x16xf8E4M3FN> -> tensor<384x16xf8E4M3FN, #tiled>

  %alpha = fp4.matmul_alpha %ady, %aw : tensor<f32>, tensor<f32> -> tensor<f32>
  %qdy_scaled = fp4.scaled %qdy, %tdy : !lhs
  %qwt_scaled = fp4.scaled %qwt, %twt : !rhs
  %dx = fp4.matmul %qdy_scaled, %qwt_scaled alpha %alpha
      : (!lhs, !rhs, tensor<f32>) -> tensor<256x512xbf16>
  return %dx, %qdyt, %tdyt, %ahdy
      : tensor<256x512xbf16>, tensor<384x256xf4E2M1FN>, tensor<384x16xf8E4M3FN, #tiled>, tensor<f32>
}
