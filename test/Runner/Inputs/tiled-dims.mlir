// Nothing but the sizes of x says those of s.
!c = tensor<?x?xf4E2M1FN>
!s = tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !c, !s>
func.func @values(%x: !c {fp4.name = "x", fp4.dims = ["M", "K"]}, %s: !s {fp4.name = "s", fp4.dims = ["M", "K/16"]},
                  %w: !c {fp4.name = "w", fp4.dims = ["N", "K"]}, %t: !s {fp4.name = "t", fp4.dims = ["N", "K/16"]})
    -> (tensor<?x?xf32> {fp4.name = "y"}) {
  %x_scaled = fp4.scaled %x, %s : !operand
  %w_scaled = fp4.scaled %w, %t : !operand
  %y = fp4.matmul %x_scaled, %w_scaled : (!operand, !operand) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
