// fp4-opt --@flag@
// expected-remark @+1 {{has 2 operations of dialect fp4}}
module {
  func.func @amaxes(%x: tensor<64x32xbf16>, %y: tensor<64x32xbf16>) -> (tensor<f32>, tensor<f32>) {
    %a = fp4.amax %x : tensor<64x32xbf16> -> tensor<f32>
    %b = fp4.amax %y : tensor<64x32xbf16> -> tensor<f32>
    return %a, %b : tensor<f32>, tensor<f32>
  }
}
