!lhs = !fp4.scaled<nvfp4, tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>>
!rhs = !fp4.scaled<nvfp4, tensor<128x256xf4E2M1FN>,
                   tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @f(%a: tensor<128x256xf4E2M1FN>, %s: tensor<128x16xf8E4M3FN>,
             %t: tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    -> tensor<128x128xf32> {
  // The scales of lhs were not swizzled.
  %a_scaled = fp4.scaled %a, %s : !lhs
  %a_scaled2 = fp4.scaled %a, %t : !rhs
  %y = fp4.matmul %a_scaled, %a_scaled2 : (!lhs, !rhs) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}
