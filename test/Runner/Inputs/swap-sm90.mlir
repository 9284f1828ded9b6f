!s = tensor<65x20xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<200x20xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<65x320xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<200x320xf4E2M1FN>, !t>
func.func @rows(%a: tensor<65x320xf4E2M1FN>, %sa: !s, %b: tensor<200x320xf4E2M1FN>, %sb: !t) -> tensor<65x200xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {PLAN} : (!lhs, !rhs) -> tensor<65x200xbf16>
  return %y : tensor<65x200xbf16>
}
