// Kernels on dense operands, and again on rows with gaps between them (fp4.strided), for sm_90a:
//
//   fp4-runner strided.mlir --target=sm_90a --emit=so -o strided.so
//   fp4-run strided.so --device cuda --function q_strided --shape 4096 --benchmark
//
// fp4-run puts 16 bytes, or up to 31, behind each row, and interleaves the matrices of a batch.
// notebook/quantizers.md has what an H200 measured.

func.func @q_dense(%x: tensor<?x4096xbf16> {fp4.name = "x"}) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.amax %x : tensor<?x4096xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x4096xbf16>, tensor<f32>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
func.func @q_strided(%x: tensor<?x4096xbf16> {fp4.name = "x", fp4.strided}) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.amax %x : tensor<?x4096xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x4096xbf16>, tensor<f32>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
func.func @heads_strided(%x: tensor<16x512x128xbf16> {fp4.strided}) -> (tensor<8192x128xf4E2M1FN>, tensor<8192x8xf8E4M3FN>) {
  %m = tensor.collapse_shape %x [[0, 1], [2]] : tensor<16x512x128xbf16> into tensor<8192x128xbf16>
  %a = fp4.amax %m : tensor<8192x128xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %m amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<8192x128xbf16>, tensor<f32>) -> (tensor<8192x128xf4E2M1FN>, tensor<8192x8xf8E4M3FN>)
  return %q, %s : tensor<8192x128xf4E2M1FN>, tensor<8192x8xf8E4M3FN>
}
!lhs = !fp4.scaled<fp8_block128, tensor<?x2048xf8E4M3FN>, tensor<?x16xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<2048x2048xf8E4M3FN>, tensor<16x16xf32>>
func.func @fp8_dense(%a: tensor<?x2048xf8E4M3FN> {fp4.name = "a"}, %s: tensor<?x16xf32>, %b: tensor<2048x2048xf8E4M3FN> {fp4.name = "b"}, %t: tensor<16x16xf32>) -> tensor<?x2048xbf16> {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x2048xbf16>
  return %y : tensor<?x2048xbf16>
}
func.func @fp8_strided(%a: tensor<?x2048xf8E4M3FN> {fp4.name = "a", fp4.strided}, %s: tensor<?x16xf32>, %b: tensor<2048x2048xf8E4M3FN> {fp4.name = "b", fp4.strided}, %t: tensor<16x16xf32>) -> tensor<?x2048xbf16> {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x2048xbf16>
  return %y : tensor<?x2048xbf16>
}
func.func @w4_dense(%a: tensor<?x2048xbf16> {fp4.name = "a"}, %w: tensor<16x32x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x2048xbf16> {
  %y = fp4.matmul %a, %w
      : (tensor<?x2048xbf16>, tensor<16x32x4608xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<?x2048xbf16>
  return %y : tensor<?x2048xbf16>
}
func.func @w4_strided(%a: tensor<?x2048xbf16> {fp4.name = "a", fp4.strided}, %w: tensor<16x32x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x2048xbf16> {
  %y = fp4.matmul %a, %w
      : (tensor<?x2048xbf16>, tensor<16x32x4608xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<?x2048xbf16>
  return %y : tensor<?x2048xbf16>
}
!lhs2 = !fp4.scaled<nvfp4, tensor<?x2064xf4E2M1FN>,
                    tensor<?x129xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<nvfp4, tensor<1024x2064xf4E2M1FN>,
                    tensor<1024x129xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @nv_dense(%a: tensor<?x2064xf4E2M1FN> {fp4.name = "a"}, %s: tensor<?x129xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %b: tensor<1024x2064xf4E2M1FN> {fp4.name = "b"}, %t: tensor<1024x129xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x1024xbf16> {
  %a_scaled = fp4.scaled %a, %s : !lhs2
  %b_scaled = fp4.scaled %b, %t : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs2, !rhs2) -> tensor<?x1024xbf16>
  return %y : tensor<?x1024xbf16>
}
func.func @nv_strided(%a: tensor<?x2064xf4E2M1FN> {fp4.name = "a", fp4.strided}, %s: tensor<?x129xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %b: tensor<1024x2064xf4E2M1FN> {fp4.name = "b", fp4.strided}, %t: tensor<1024x129xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x1024xbf16> {
  %a_scaled = fp4.scaled %a, %s : !lhs2
  %b_scaled = fp4.scaled %b, %t : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs2, !rhs2) -> tensor<?x1024xbf16>
  return %y : tensor<?x1024xbf16>
}
