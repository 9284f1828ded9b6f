// Backward pass of a linear layer in NVFP4 to its weights: dW[N,K] = dY[M,N]^T * X[M,K].
//
//   fp4-runner examples/wgrad.mlir                      run and check; --shape M,N,K for other sizes
//
// The two operands are quantized along M already: X^T by fprop.mlir (to nearest even), dY^T by dgrad.mlir
// (stochastically), each with its scales where the tensor core reads them. --output of those programs writes them,
// --input reads them. The Hadamard transforms of the two cancel in the GEMM. M is the depth of this GEMM and
// therefore static.

#tiled = #fp4.scale_layout<tiled_128x4>

!lhs = !fp4.scaled<nvfp4, tensor<384x256xf4E2M1FN>, tensor<384x16xf8E4M3FN, #tiled>>
!rhs = !fp4.scaled<nvfp4, tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN, #tiled>>
func.func @wgrad(%qdyt: tensor<384x256xf4E2M1FN> {fp4.name = "dy_t", fp4.dims = ["N", "M"]},
                 %tdyt: tensor<384x16xf8E4M3FN, #tiled> {fp4.name = "dy_t_scales", fp4.dims = ["N", "M/16"]},
                 %ady: tensor<f32> {fp4.name = "dy_t_amax"},
                 %qxt: tensor<512x256xf4E2M1FN> {fp4.name = "x_t", fp4.dims = ["K", "M"]},
                 %txt: tensor<512x16xf8E4M3FN, #tiled> {fp4.name = "x_t_scales", fp4.dims = ["K", "M/16"]},
                 %ax: tensor<f32> {fp4.name = "x_t_amax"})
    -> (tensor<384x512xf32> {fp4.name = "dw"}) {
  %alpha = fp4.matmul_alpha %ady, %ax : tensor<f32>, tensor<f32> -> tensor<f32>
  %qdyt_scaled = fp4.scaled %qdyt, %tdyt : !lhs
  %qxt_scaled = fp4.scaled %qxt, %txt : !rhs
  %dw = fp4.matmul %qdyt_scaled, %qxt_scaled alpha %alpha
      : (!lhs, !rhs, tensor<f32>) -> tensor<384x512xf32>
  return %dw : tensor<384x512xf32>
}
