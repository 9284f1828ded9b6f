// The program that load.cpp calls: the largest magnitude of two rows.
func.func @amax(%x: tensor<2x4xf32>) -> tensor<f32> {
  %a = fp4.amax %x : tensor<2x4xf32> -> tensor<f32>
  return %a : tensor<f32>
}
