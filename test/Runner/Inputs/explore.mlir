func.func @product(%a: tensor<128x256xf4E2M1FN>, %sa: tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
                   %b: tensor<64x256xf4E2M1FN>, %sb: tensor<64x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    -> (tensor<128x64xbf16> {fp4.name = "y"}) {
  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<nvfp4>, fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256]>}
      : (tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
         tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<128x64xbf16>
  return %y : tensor<128x64xbf16>
}
