!x = tensor<2x40x64xbf16>
!w = tensor<3x32x64xbf16>
!m = tensor<80x64xbf16>
!e = tensor<32x64xbf16>
!mq = tensor<80x64xf4E2M1FN>
!ms = tensor<80x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!eq = tensor<32x64xf4E2M1FN>
!es = tensor<32x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>

!lhs = !fp4.scaled<nvfp4, !mq, !ms>
!rhs = !fp4.scaled<nvfp4, !eq, !es>
// A batch of rows and one of several experts: no kernel but those of fp4 operations.
func.func @batch(%x: !x {fp4.name = "x"}, %w: !w {fp4.name = "w"})
    -> (tensor<2x40x32xbf16> {fp4.name = "y"}, tensor<16x64xbf16> {fp4.name = "rows"}) {
  %m = tensor.collapse_shape %x [[0, 1], [2]] : !x into !m
  %e = tensor.extract_slice %w[1, 0, 0] [1, 32, 64] [1, 1, 1] : !w to !e
  %am = fp4.amax %m : !m -> tensor<f32>
  %ae = fp4.amax %e : !e -> tensor<f32>
  %q, %s = fp4.quantize %m amax %am {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (!m, tensor<f32>) -> (!mq, !ms)
  %eq, %es = fp4.quantize %e amax %ae {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (!e, tensor<f32>) -> (!eq, !es)
  %alpha = fp4.matmul_alpha %am, %ae : tensor<f32>, tensor<f32> -> tensor<f32>
  %q_scaled = fp4.scaled %q, %s : !lhs
  %eq_scaled = fp4.scaled %eq, %es : !rhs
  %y = fp4.matmul %q_scaled, %eq_scaled alpha %alpha
      : (!lhs, !rhs, tensor<f32>) -> tensor<80x32xbf16>
  %y3 = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 40, 32] : tensor<80x32xbf16> into tensor<2x40x32xbf16>
  %rows = tensor.extract_slice %m[8, 0] [16, 64] [1, 1] : !m to tensor<16x64xbf16>
  return %y3, %rows : tensor<2x40x32xbf16>, tensor<16x64xbf16>
}

!operand = !fp4.scaled<nvfp4, tensor<100x64xf4E2M1FN>,
                       tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// Parts of quantized tensors: whole rows, whole tiles.
func.func @parts(%q: tensor<2x256x64xf4E2M1FN> {fp4.name = "q"},
                 %s: tensor<300x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "s"})
    -> (tensor<100x100xf32> {fp4.name = "y"}) {
  %rows = tensor.extract_slice %q[1, 100, 0] [1, 100, 64] [1, 1, 1]
      : tensor<2x256x64xf4E2M1FN> to tensor<100x64xf4E2M1FN>
  %all = tensor.collapse_shape %q [[0, 1], [2]] : tensor<2x256x64xf4E2M1FN> into tensor<512x64xf4E2M1FN>
  %first = tensor.extract_slice %all[3, 0] [100, 64] [1, 1]
      : tensor<512x64xf4E2M1FN> to tensor<100x64xf4E2M1FN>
  %last = tensor.extract_slice %s[128, 0] [172, 4] [1, 1]
      : tensor<300x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
        to tensor<172x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %linear = fp4.unswizzle_scales %last
      : tensor<172x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<172x4xf8E4M3FN>
  %some = tensor.extract_slice %linear[72, 0] [100, 4] [1, 1] : tensor<172x4xf8E4M3FN> to tensor<100x4xf8E4M3FN>
  %t = fp4.swizzle_scales %some
      : tensor<100x4xf8E4M3FN> -> tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %rows_scaled = fp4.scaled %rows, %t : !operand
  %first_scaled = fp4.scaled %first, %t : !operand
  %y = fp4.matmul %rows_scaled, %first_scaled : (!operand, !operand) -> tensor<100x100xf32>
  return %y : tensor<100x100xf32>
}

// Batches whose number is not known.
func.func @dynamic(%x: tensor<?x8x32xbf16> {fp4.name = "x"})
    -> (tensor<?x32xf4E2M1FN> {fp4.name = "q"}, tensor<?x1xf8E8M0FNU> {fp4.name = "s"},
        tensor<?x4x32xbf16> {fp4.name = "halves"}) {
  %m = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x8x32xbf16> into tensor<?x32xbf16>
  %q, %s = fp4.quantize %m {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>}
      : (tensor<?x32xbf16>) -> (tensor<?x32xf4E2M1FN>, tensor<?x1xf8E8M0FNU>)
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %rows = tensor.dim %m, %c0 : tensor<?x32xbf16>
  %half = arith.divui %rows, %c4 : index
  %halves = tensor.expand_shape %m [[0, 1], [2]] output_shape [%half, 4, 32]
      : tensor<?x32xbf16> into tensor<?x4x32xbf16>
  return %q, %s, %halves : tensor<?x32xf4E2M1FN>, tensor<?x1xf8E8M0FNU>, tensor<?x4x32xbf16>
}

// A transposition is read through: the quantizer writes the other orientation.
func.func @transposed(%x: tensor<64x48xbf16> {fp4.name = "x"})
    -> (tensor<48x64xf4E2M1FN> {fp4.name = "q"}, tensor<48x4xf8E4M3FN> {fp4.name = "s"}) {
  %init = tensor.empty() : tensor<48x64xbf16>
  %t = linalg.transpose ins(%x : tensor<64x48xbf16>) outs(%init : tensor<48x64xbf16>) permutation = [1, 0]
  %a = fp4.amax %t : tensor<48x64xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %t amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<48x64xbf16>, tensor<f32>) -> (tensor<48x64xf4E2M1FN>, tensor<48x4xf8E4M3FN>)
  return %q, %s : tensor<48x64xf4E2M1FN>, tensor<48x4xf8E4M3FN>
}

!lhs2 = !fp4.scaled<mxfp4, tensor<24x64xf4E2M1FN>,
                    tensor<24x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp4, tensor<40x64xf4E2M1FN>,
                    tensor<40x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// The other way round: the GEMM is that of the operands exchanged.
func.func @transposed_gemm(%a: tensor<24x64xf4E2M1FN> {fp4.name = "a"}, %sa: tensor<24x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
                              %b: tensor<40x64xf4E2M1FN> {fp4.name = "b"}, %sb: tensor<40x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
    -> (tensor<40x24xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs2, !rhs2) -> tensor<24x40xbf16>
  %init = tensor.empty() : tensor<40x24xbf16>
  %t = linalg.transpose ins(%y : tensor<24x40xbf16>) outs(%init : tensor<40x24xbf16>) permutation = [1, 0]
  return %t : tensor<40x24xbf16>
}

// The size that a cast claims is checked when the program runs.
func.func @cast(%x: tensor<?x32xbf16> {fp4.name = "x"}) -> (tensor<8x32xbf16> {fp4.name = "y"}) {
  %y = tensor.cast %x : tensor<?x32xbf16> to tensor<8x32xbf16>
  return %y : tensor<8x32xbf16>
}
