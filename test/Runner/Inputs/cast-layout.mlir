!linear = tensor<100x4xf8E4M3FN>
!tiled = tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @f(%q: tensor<100x64xf4E2M1FN>, %s: !linear) -> tensor<100x100xf32> {
  // The sizes agree, and the order of the bytes does not.
  %t = tensor.cast %s : !linear to !tiled
  %y = fp4.blockscaled_matmul %q scaled %t, %q scaled %t {format = #fp4.format<nvfp4>}
      : (tensor<100x64xf4E2M1FN>, !tiled, tensor<100x64xf4E2M1FN>, !tiled) -> tensor<100x100xf32>
  return %y : tensor<100x100xf32>
}
