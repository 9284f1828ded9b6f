// The experts of a mixture with MXFP4 weights: rows offsets[g] to offsets[g + 1] of X times the
// weights of expert g, Y[rows of g, N] = X[rows of g, K] * W[g, N, K]^T, to bf16. One launch, behind
// the small kernel that makes the table of the experts' tiles.
//
//   fp4-runner examples/mxfp4_experts.mlir --target=sm_90a
//
// Activations are sorted by expert and stay in bf16. The weights of all experts are stacked, and
// prepacked in one piece, once where a program gets them as an argument. A server has the offsets on
// the device and passes them as an argument.

!weights = tensor<1024x320xf4E2M1FN>
!scales = tensor<1024x10xf8E8M0FNU>
!packed = tensor<8x5x4352xi8, #fp4.weight_layout<wgmma>>
func.func @mxfp4_experts(%x: tensor<96x320xbf16> {fp4.name = "x"}, %w: !weights {fp4.name = "w"},
                         %s: !scales {fp4.name = "s"}) -> (tensor<96x256xbf16> {fp4.name = "y"}) {
  %p = fp4.prepack %w scaled %s {format = #fp4.format<mxfp4>} : (!weights, !scales) -> !packed
  %offsets = arith.constant dense<[0, 41, 41, 42, 96]> : tensor<5xi64>
  %y = fp4.matmul %x, %p offsets %offsets {work = #fp4.work<expected_rows = 24>}
      : (tensor<96x320xbf16>, !packed, tensor<5xi64>) -> tensor<96x256xbf16>
  return %y : tensor<96x256xbf16>
}
