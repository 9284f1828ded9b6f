func.func @f(%a: tensor<128x256xf4E2M1FN>, %s: tensor<128x16xf8E4M3FN>,
             %t: tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    -> tensor<128x128xf32> {
  // The scales of lhs were not swizzled.
  %y = fp4.blockscaled_matmul %a scaled %s, %a scaled %t {format = #fp4.format<nvfp4>}
      : (tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>, tensor<128x256xf4E2M1FN>,
         tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}
