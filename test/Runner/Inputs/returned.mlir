func.func @padded(%x: tensor<4x16xf4E2M1FN>) -> tensor<4x16xf4E2M1FN> {
  return %x : tensor<4x16xf4E2M1FN>
}
func.func @constant(%x: tensor<4x16xbf16>) -> tensor<f32> {
  %one = arith.constant dense<1.0> : tensor<f32>
  return %one : tensor<f32>
}
