// Nothing that a caller could name.
func.func private @helper(%x: tensor<?x64xbf16>) -> tensor<f32> {
  %a = fp4.amax %x : tensor<?x64xbf16> -> tensor<f32>
  return %a : tensor<f32>
}
