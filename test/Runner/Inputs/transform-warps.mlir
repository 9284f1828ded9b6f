// Quantizers that transform on the tensor core by mma.sync alone: of dynamic rows, of matrices that are stacked, with an
// amax for each row.
func.func @dynamic(%x: tensor<?x72xbf16> {fp4.name = "x"}, %ax: tensor<f32> {fp4.name = "ax"}) -> (tensor<72x?xf4E2M1FN>, tensor<72x?xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<?x72xbf16>, tensor<f32>) -> (tensor<72x?xf4E2M1FN>, tensor<72x?xf8E4M3FN>)
  return %q, %s : tensor<72x?xf4E2M1FN>, tensor<72x?xf8E4M3FN>
}
func.func @stacked(%x: tensor<96x40xbf16> {fp4.name = "x"}, %ax: tensor<2xf32> {fp4.name = "ax"}) -> (tensor<40x96xf4E2M1FN>, tensor<40x6xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>, groups = array<i64: 32, 64>}
      : (tensor<96x40xbf16>, tensor<2xf32>) -> (tensor<40x96xf4E2M1FN>, tensor<40x6xf8E4M3FN>)
  return %q, %s : tensor<40x96xf4E2M1FN>, tensor<40x6xf8E4M3FN>
}
func.func @tokens(%x: tensor<48x40xbf16> {fp4.name = "x"}, %ax: tensor<40xf32> {fp4.name = "ax"}) -> (tensor<40x48xf4E2M1FN>, tensor<40x3xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>, per_row}
      : (tensor<48x40xbf16>, tensor<40xf32>) -> (tensor<40x48xf4E2M1FN>, tensor<40x3xf8E4M3FN>)
  return %q, %s : tensor<40x48xf4E2M1FN>, tensor<40x3xf8E4M3FN>
}
