!s = tensor<65x20xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<200x20xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @rows(%a: tensor<65x320xf4E2M1FN>, %sa: !s, %b: tensor<200x320xf4E2M1FN>, %sb: !t) -> tensor<65x200xbf16> {
  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<nvfp4>PLAN}
      : (tensor<65x320xf4E2M1FN>, !s, tensor<200x320xf4E2M1FN>, !t) -> tensor<65x200xbf16>
  return %y : tensor<65x200xbf16>
}
