// Quantizers that transform on the tensor core. M and K are those of the input; a tile is 64 x 128.

// One block of one transform: all but 16 rows and 8 columns of the tile are beyond the input.
func.func @one(%x: tensor<16x8xbf16> {fp4.name = "x"}, %ax: tensor<f32> {fp4.name = "ax"})
    -> (tensor<8x16xf4E2M1FN> {fp4.name = "q"}, tensor<8x1xf8E4M3FN> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<16x8xbf16>, tensor<f32>) -> (tensor<8x16xf4E2M1FN>, tensor<8x1xf8E4M3FN>)
  return %q, %s : tensor<8x16xf4E2M1FN>, tensor<8x1xf8E4M3FN>
}

// Whole tiles, scales in blocks of 128 x 4.
func.func @whole(%x: tensor<256x256xbf16> {fp4.name = "x"}, %ax: tensor<f32> {fp4.name = "ax"})
    -> (tensor<256x256xf4E2M1FN> {fp4.name = "q"}, tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<256x256xbf16>, tensor<f32>) -> (tensor<256x256xf4E2M1FN>, tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<256x256xf4E2M1FN>, tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// The second tile has 16 rows and 8 columns: a block of scales with one column, 120 rows of padding.
func.func @ragged(%x: tensor<80x136xbf16> {fp4.name = "x"}, %ax: tensor<f32> {fp4.name = "ax"})
    -> (tensor<136x80xf4E2M1FN> {fp4.name = "q"}, tensor<136x5xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<80x136xbf16>, tensor<f32>) -> (tensor<136x80xf4E2M1FN>, tensor<136x5xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<136x80xf4E2M1FN>, tensor<136x5xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// 65 scales to a row: stored byte by byte. Rows of 520 bytes of codes have a pitch of 528.
func.func @bytes(%x: tensor<1040x72xbf16> {fp4.name = "x"}, %ax: tensor<f32> {fp4.name = "ax"})
    -> (tensor<72x1040xf4E2M1FN> {fp4.name = "q"}, tensor<72x65xf8E4M3FN> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<1040x72xbf16>, tensor<f32>) -> (tensor<72x1040xf4E2M1FN>, tensor<72x65xf8E4M3FN>)
  return %q, %s : tensor<72x1040xf4E2M1FN>, tensor<72x65xf8E4M3FN>
}

// A recipe that gives zero blocks a scale: padding is zero all the same.
func.func @floor(%x: tensor<48x40xbf16> {fp4.name = "x"}, %ax: tensor<f32> {fp4.name = "ax"})
    -> (tensor<40x48xf4E2M1FN> {fp4.name = "q"}, tensor<40x3xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<48x40xbf16>, tensor<f32>) -> (tensor<40x48xf4E2M1FN>, tensor<40x3xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<40x48xf4E2M1FN>, tensor<40x3xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// Two candidate scales per block.
func.func @six(%x: tensor<64x128xbf16> {fp4.name = "x"}, %ax: tensor<f32> {fp4.name = "ax"})
    -> (tensor<128x64xf4E2M1FN> {fp4.name = "q"}, tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<four_over_six>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<64x128xbf16>, tensor<f32>) -> (tensor<128x64xf4E2M1FN>, tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<128x64xf4E2M1FN>, tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// No random signs.
func.func @plain(%x: tensor<64x128xbf16> {fp4.name = "x"}, %ax: tensor<f32> {fp4.name = "ax"})
    -> (tensor<128x64xf4E2M1FN> {fp4.name = "q"}, tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core, sign_mask = 0>}
      : (tensor<64x128xbf16>, tensor<f32>) -> (tensor<128x64xf4E2M1FN>, tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<128x64xf4E2M1FN>, tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// 297 tiles: two to a strip and a CTA, and one left.
func.func @strips(%x: tensor<19008x72xbf16> {fp4.name = "x"}, %ax: tensor<f32> {fp4.name = "ax"})
    -> (tensor<72x19008xf4E2M1FN> {fp4.name = "q"}, tensor<72x1188xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<19008x72xbf16>, tensor<f32>) -> (tensor<72x19008xf4E2M1FN>, tensor<72x1188xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<72x19008xf4E2M1FN>, tensor<72x1188xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// Stochastic rounding.
func.func @random(%x: tensor<208x136xbf16> {fp4.name = "x"}, %ax: tensor<f32> {fp4.name = "ax"}, %rng: tensor<2xi64> {fp4.name = "rng"})
    -> (tensor<136x208xf4E2M1FN> {fp4.name = "q"}, tensor<136x13xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x amax %ax rng %rng {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>, rounding = #fp4.rounding<stochastic>}
      : (tensor<208x136xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<136x208xf4E2M1FN>, tensor<136x13xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<136x208xf4E2M1FN>, tensor<136x13xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// The two orientations of a gradient: a streaming kernel for the rows, another of tiles for the columns.
func.func @both(%x: tensor<96x144xbf16> {fp4.name = "x"})
    -> (tensor<96x144xf4E2M1FN> {fp4.name = "q"}, tensor<96x9xf8E4M3FN> {fp4.name = "s"},
        tensor<144x96xf4E2M1FN> {fp4.name = "qt"}, tensor<144x6xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "st"}) {
  %ax, %ay = fp4.hadamard_amax %x {dimension = 0 : i64} : tensor<96x144xbf16> -> tensor<f32>, tensor<f32>
  %q, %s, %qt, %st = fp4.quantize %x amax %ax columnwise_amax %ay {format = #fp4.format<nvfp4>,
      recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>,
      columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<96x144xbf16>, tensor<f32>, tensor<f32>)
      -> (tensor<96x144xf4E2M1FN>, tensor<96x9xf8E4M3FN>, tensor<144x96xf4E2M1FN>, tensor<144x6xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s, %qt, %st : tensor<96x144xf4E2M1FN>, tensor<96x9xf8E4M3FN>, tensor<144x96xf4E2M1FN>, tensor<144x6xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// Plain operations instead.
func.func @plain_both(%x: tensor<96x144xbf16> {fp4.name = "x"})
    -> (tensor<96x144xf4E2M1FN> {fp4.name = "q"}, tensor<96x9xf8E4M3FN> {fp4.name = "s"},
        tensor<144x96xf4E2M1FN> {fp4.name = "qt"}, tensor<144x6xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "st"}) {
  %ax = fp4.amax %x : tensor<96x144xbf16> -> tensor<f32>
  %y = fp4.hadamard %x {dimension = 0 : i64, arithmetic = #fp4.hadamard_arithmetic<tensor_core>} : tensor<96x144xbf16> -> tensor<96x144xbf16>
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<96x144xbf16>, tensor<f32>) -> (tensor<96x144xf4E2M1FN>, tensor<96x9xf8E4M3FN>)
  %qt, %st = fp4.quantize %y amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>} : (tensor<96x144xbf16>, tensor<f32>) -> (tensor<144x96xf4E2M1FN>, tensor<144x6xf8E4M3FN>)
  %tt = fp4.swizzle_scales %st : tensor<144x6xf8E4M3FN> -> tensor<144x6xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %q, %s, %qt, %tt : tensor<96x144xf4E2M1FN>, tensor<96x9xf8E4M3FN>, tensor<144x96xf4E2M1FN>, tensor<144x6xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
