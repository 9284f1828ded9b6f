!lhs = !fp4.scaled<nvfp4, tensor<128x256xf4E2M1FN>,
                   tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<64x256xf4E2M1FN>,
                   tensor<64x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @product(%a: tensor<128x256xf4E2M1FN>, %sa: tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
                   %b: tensor<64x256xf4E2M1FN>, %sb: tensor<64x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    -> (tensor<128x64xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256]>}
      : (!lhs, !rhs) -> tensor<128x64xbf16>
  return %y : tensor<128x64xbf16>
}
