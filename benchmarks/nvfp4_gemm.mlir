!lhs = !fp4.scaled<nvfp4, tensor<256x1024xf4E2M1FN>,
                   tensor<256x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>,
                   tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// A GEMM of quantized operands alone: what benchmarks/run.py compiles and simulates.
func.func @gemm(%a: tensor<256x1024xf4E2M1FN> {fp4.name = "a", fp4.dims = ["M", ""]},
                %sa: tensor<256x64xf8E4M3FN> {fp4.name = "sa", fp4.dims = ["M", ""]},
                %b: tensor<512x1024xf4E2M1FN> {fp4.name = "b", fp4.dims = ["N", ""]},
                %sb: tensor<512x64xf8E4M3FN> {fp4.name = "sb", fp4.dims = ["N", ""]})
    -> (tensor<256x512xbf16> {fp4.name = "y"}) {
  %ta = fp4.swizzle_scales %sa
      : tensor<256x64xf8E4M3FN> -> tensor<256x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %tb = fp4.swizzle_scales %sb
      : tensor<512x64xf8E4M3FN> -> tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %ta : !lhs
  %b_scaled = fp4.scaled %b, %tb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<256x512xbf16>
  return %y : tensor<256x512xbf16>
}
