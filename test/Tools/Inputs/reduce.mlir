func.func @other(%s: tensor<64x4xf8E4M3FN>) -> tensor<64x4xf8E4M3FN> {
  return %s : tensor<64x4xf8E4M3FN>
}

!operand = !fp4.scaled<nvfp4, tensor<64x64xf4E2M1FN>,
                       tensor<64x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @main(%x: tensor<64x64xbf16>) {
  %a = fp4.amax %x : tensor<64x64xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<64x64xbf16>, tensor<f32>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>)
  %t = fp4.swizzle_scales %s
      : tensor<64x4xf8E4M3FN> -> tensor<64x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %alpha = fp4.matmul_alpha %a, %a : tensor<f32>, tensor<f32> -> tensor<f32>
  %q_scaled = fp4.scaled %q, %t : !operand
  %y = fp4.matmul %q_scaled, %q_scaled alpha %alpha
      : (!operand, !operand, tensor<f32>) -> tensor<64x64xbf16>
  %d = fp4.dequantize %q scaled %s amax %a {format = #fp4.format<nvfp4>}
      : (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>, tensor<f32>) -> tensor<64x64xbf16>
  return
}
