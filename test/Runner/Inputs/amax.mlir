func.func @f(%x: tensor<16x16xbf16>) -> tensor<f32> {
  %a = fp4.amax %x : tensor<16x16xbf16> -> tensor<f32>
  return %a : tensor<f32>
}
