// W4A16 experts whose rows the device has: the kernels report rows that decrease.
!p = tensor<3x1x4608xi8, #fp4.weight_layout<wgmma>>
func.func @experts(%x: tensor<70x64xbf16>, %p: !p, %o: tensor<4xi64>) -> tensor<70x128xbf16> {
  %y = fp4.matmul %x, %p offsets %o : (tensor<70x64xbf16>, !p, tensor<4xi64>) -> tensor<70x128xbf16>
  return %y : tensor<70x128xbf16>
}
