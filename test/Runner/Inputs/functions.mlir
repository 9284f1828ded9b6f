func.func private @largest(%x: tensor<?x64xbf16>) -> tensor<f32> {
  %a = fp4.amax %x : tensor<?x64xbf16> -> tensor<f32>
  return %a : tensor<f32>
}
func.func @once(%x: tensor<?x64xbf16>) -> tensor<f32> {
  %a = func.call @largest(%x) : (tensor<?x64xbf16>) -> tensor<f32>
  return %a : tensor<f32>
}
func.func @twice(%x: tensor<?x64xbf16>) -> (tensor<f32>, tensor<f32>) {
  %a = func.call @largest(%x) : (tensor<?x64xbf16>) -> tensor<f32>
  return %a, %a : tensor<f32>, tensor<f32>
}
