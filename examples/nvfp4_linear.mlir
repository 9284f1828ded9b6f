// A linear layer in NVFP4: Y[M,N] = X[M,K] * W[N,K]^T, from bf16 to bf16.
//
//   fp4-runner examples/nvfp4_linear.mlir                       run and check, M = 256
//   fp4-runner examples/nvfp4_linear.mlir --shape 300,384,272   other sizes (M is chosen at run time)
//
// The two operands are quantized to 4-bit elements with one 8-bit scale for every 16 of them and
// one fp32 scale for the tensor, which derives from its largest magnitude. The GEMM wants
// block scales in the layout of the tensor core; the tensor scales become one factor, alpha.

!lhs = !fp4.scaled<nvfp4, tensor<?x1024xf4E2M1FN>,
                   tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>,
                   tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @nvfp4_linear(%x: tensor<?x1024xbf16> {fp4.name = "x", fp4.dims = ["M", "K"]},
                        %w: tensor<512x1024xbf16> {fp4.name = "w", fp4.dims = ["N", "K"]})
    -> (tensor<?x512xbf16> {fp4.name = "y"}) {
  %ax = fp4.amax %x : tensor<?x1024xbf16> -> tensor<f32>
  %aw = fp4.amax %w : tensor<512x1024xbf16> -> tensor<f32>
  %qx, %sx = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x1024xbf16>, tensor<f32>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>)
  %qw, %sw = fp4.quantize %w amax %aw
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<512x1024xbf16>, tensor<f32>) -> (tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN>)
  %tx = fp4.swizzle_scales %sx
      : tensor<?x64xf8E4M3FN> -> tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %tw = fp4.swizzle_scales %sw
      : tensor<512x64xf8E4M3FN> -> tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %alpha = fp4.matmul_alpha %ax, %aw : tensor<f32>, tensor<f32> -> tensor<f32>
  %qx_scaled = fp4.scaled %qx, %tx : !lhs
  %qw_scaled = fp4.scaled %qw, %tw : !rhs
  %y = fp4.matmul %qx_scaled, %qw_scaled alpha %alpha
      : (!lhs, !rhs, tensor<f32>) -> tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}
