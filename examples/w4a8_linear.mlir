// A linear layer with activations of 8 bits and weights of 4: Y[M,N] = X[M,K] * W[N,K]^T, to bf16.
//
//   fp4-runner examples/w4a8_linear.mlir --shape 256,512,1024
//
// The two formats are of Open Compute, with one power of two for every 32 elements, so that one
// instruction multiplies them (kind mxf8f6f4). A weight takes half as many bytes as an activation.

!lhs = !fp4.scaled<mxfp8_e4m3, tensor<?x1024xf8E4M3FN>,
                   tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<512x1024xf4E2M1FN>,
                   tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @w4a8_linear(%x: tensor<?x1024xbf16> {fp4.name = "x", fp4.dims = ["M", "K"]},
                       %w: tensor<512x1024xbf16> {fp4.name = "w", fp4.dims = ["N", "K"]})
    -> (tensor<?x512xbf16> {fp4.name = "y"}) {
  %qx, %sx = fp4.quantize %x {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_rceil>}
      : (tensor<?x1024xbf16>) -> (tensor<?x1024xf8E4M3FN>, tensor<?x32xf8E8M0FNU>)
  %qw, %sw = fp4.quantize %w {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>}
      : (tensor<512x1024xbf16>) -> (tensor<512x1024xf4E2M1FN>, tensor<512x32xf8E8M0FNU>)
  %tx = fp4.swizzle_scales %sx
      : tensor<?x32xf8E8M0FNU> -> tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %tw = fp4.swizzle_scales %sw
      : tensor<512x32xf8E8M0FNU> -> tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qx_scaled = fp4.scaled %qx, %tx : !lhs
  %qw_scaled = fp4.scaled %qw, %tw : !rhs
  %y = fp4.matmul %qx_scaled, %qw_scaled : (!lhs, !rhs) -> tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}
