!linear = tensor<100x4xf8E4M3FN>
!tiled = tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<100x64xf4E2M1FN>, !tiled>
func.func @f(%q: tensor<100x64xf4E2M1FN>, %s: !linear) -> tensor<100x100xf32> {
  // The sizes agree, and the order of the bytes does not.
  %t = tensor.cast %s : !linear to !tiled
  %q_scaled = fp4.scaled %q, %t : !operand
  %y = fp4.matmul %q_scaled, %q_scaled : (!operand, !operand) -> tensor<100x100xf32>
  return %y : tensor<100x100xf32>
}
