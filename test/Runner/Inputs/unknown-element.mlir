func.func @f(%x: tensor<8x8xbf16>,
             // Nobody uses it.
             %unused: tensor<8x8xi16>) -> tensor<8x8xbf16> {
  return %x : tensor<8x8xbf16>
}
