// A training step of a linear layer in NVFP4 in one program: Y = X W^T, dX = dY W and dW = dY^T X, quantizers included.
// benchmarks/training_step.sh times it; examples/fprop.mlir, dgrad.mlir and wgrad.mlir explain what is quantized how.
// W is quantized in every step, as at the first of the micro-batches that share it. All results are bf16.
//
//   fp4-runner training_step.mlir --target=sm_90a --shape M,N,K --emit=so -o training_step.so
//   fp4-run training_step.so --device cuda --benchmark

#te = #fp4.recipe<transformer_engine>
#nvfp4 = #fp4.format<nvfp4>
#both = #fp4.outputs<both>
#tiled = #fp4.scale_layout<tiled_128x4>

!lhs = !fp4.scaled<nvfp4, tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN, #tiled>>
!rhs = !fp4.scaled<nvfp4, tensor<384x512xf4E2M1FN>, tensor<384x32xf8E4M3FN, #tiled>>
!lhs2 = !fp4.scaled<nvfp4, tensor<256x384xf4E2M1FN>, tensor<256x24xf8E4M3FN, #tiled>>
!rhs2 = !fp4.scaled<nvfp4, tensor<512x384xf4E2M1FN>, tensor<512x24xf8E4M3FN, #tiled>>
!lhs3 = !fp4.scaled<nvfp4, tensor<384x256xf4E2M1FN>, tensor<384x16xf8E4M3FN, #tiled>>
!rhs3 = !fp4.scaled<nvfp4, tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN, #tiled>>
func.func @step(%x: tensor<256x512xbf16> {fp4.name = "x", fp4.dims = ["M", "K"]},
                %w: tensor<384x512xbf16> {fp4.name = "w", fp4.dims = ["N", "K"]},
                %dy: tensor<256x384xbf16> {fp4.name = "dy", fp4.dims = ["M", "N"]},
                %rng: tensor<2xi64> {fp4.name = "rng"})
    -> (tensor<256x384xbf16> {fp4.name = "y"}, tensor<256x512xbf16> {fp4.name = "dx"},
        tensor<384x512xbf16> {fp4.name = "dw"}) {
  %ax, %axt = fp4.hadamard_amax %x {dimension = 0 : i64} : tensor<256x512xbf16> -> tensor<f32>, tensor<f32>
  %qx, %sx, %qxt, %sxt = fp4.quantize %x amax %ax columnwise_amax %axt
      {format = #nvfp4, recipe = #te, outputs = #both, columnwise_hadamard = #fp4.hadamard<size = 16>}
      : (tensor<256x512xbf16>, tensor<f32>, tensor<f32>)
      -> (tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN, #tiled>,
          tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN, #tiled>)
  %aw = fp4.amax %w : tensor<384x512xbf16> -> tensor<f32>
  %qw, %sw, %qwt, %swt = fp4.quantize %w amax %aw
      {format = #nvfp4, recipe = #te, outputs = #both, block = array<i64: 16, 16>}
      : (tensor<384x512xbf16>, tensor<f32>)
      -> (tensor<384x512xf4E2M1FN>, tensor<384x32xf8E4M3FN, #tiled>,
          tensor<512x384xf4E2M1FN>, tensor<512x24xf8E4M3FN, #tiled>)
  %ady, %adyt = fp4.hadamard_amax %dy {dimension = 0 : i64} : tensor<256x384xbf16> -> tensor<f32>, tensor<f32>
  %qdy, %sdy, %qdyt, %sdyt = fp4.quantize %dy amax %ady columnwise_amax %adyt rng %rng
      {format = #nvfp4, recipe = #te, outputs = #both, rounding = #fp4.rounding<stochastic>,
       columnwise_hadamard = #fp4.hadamard<size = 16>}
      : (tensor<256x384xbf16>, tensor<f32>, tensor<f32>, tensor<2xi64>)
      -> (tensor<256x384xf4E2M1FN>, tensor<256x24xf8E4M3FN, #tiled>,
          tensor<384x256xf4E2M1FN>, tensor<384x16xf8E4M3FN, #tiled>)

  %alpha_y = fp4.matmul_alpha %ax, %aw : tensor<f32>, tensor<f32> -> tensor<f32>
  %qx_scaled = fp4.scaled %qx, %sx : !lhs
  %qw_scaled = fp4.scaled %qw, %sw : !rhs
  %y = fp4.matmul %qx_scaled, %qw_scaled alpha %alpha_y
      : (!lhs, !rhs, tensor<f32>) -> tensor<256x384xbf16>
  %alpha_dx = fp4.matmul_alpha %ady, %aw : tensor<f32>, tensor<f32> -> tensor<f32>
  %qdy_scaled = fp4.scaled %qdy, %sdy : !lhs2
  %qwt_scaled = fp4.scaled %qwt, %swt : !rhs2
  %dx = fp4.matmul %qdy_scaled, %qwt_scaled alpha %alpha_dx
      : (!lhs2, !rhs2, tensor<f32>) -> tensor<256x512xbf16>
  %alpha_dw = fp4.matmul_alpha %adyt, %axt : tensor<f32>, tensor<f32> -> tensor<f32>
  %qdyt_scaled = fp4.scaled %qdyt, %sdyt : !lhs3
  %qxt_scaled = fp4.scaled %qxt, %sxt : !rhs3
  %dw = fp4.matmul %qdyt_scaled, %qxt_scaled alpha %alpha_dw
      : (!lhs3, !rhs3, tensor<f32>) -> tensor<384x512xbf16>
  return %y, %dx, %dw : tensor<256x384xbf16>, tensor<256x512xbf16>, tensor<384x512xbf16>
}
