// The experts of a mixture in NVFP4, weights and activations (W4A4): rows offsets[g] to offsets[g + 1]
// of X are quantized with an amax of their own and multiplied with the weights of expert g, Y[rows of
// g, N] = X[rows of g, K] * W[g, N, K]^T, to bf16.
//
//   fp4-runner examples/nvfp4_experts.mlir --target=sm_100a
//
// Activations are sorted by expert, and only the device knows the offsets. The quantizer writes the
// scales as the list of tiles that the GEMM of these groups reads, in which each expert begins
// anew. A server quantizes the weights once, and has their codes, scales and amaxes as arguments.

#tiled = #fp4.scale_layout<tiled_128x4>
#recipe = #fp4.recipe<transformer_engine>
!lhs = !fp4.scaled<nvfp4, tensor<160x320xf4E2M1FN>, tensor<2560x4xf8E4M3FN, #tiled>>
!rhs = !fp4.scaled<nvfp4, tensor<192x320xf4E2M1FN>, tensor<1920x4xf8E4M3FN, #tiled>>
func.func @nvfp4_experts(%x: tensor<160x320xbf16> {fp4.name = "x"}, %w: tensor<192x320xbf16> {fp4.name = "w"},
                         %offsets: tensor<4xi64> {fp4.name = "offsets"}) -> (tensor<160x64xbf16> {fp4.name = "y"}) {
  %ax = fp4.amax %x offsets %offsets : tensor<160x320xbf16>, tensor<4xi64> -> tensor<3xf32>
  %qx, %sx = fp4.quantize %x amax %ax offsets %offsets {format = #fp4.format<nvfp4>, recipe = #recipe}
      : (tensor<160x320xbf16>, tensor<3xf32>, tensor<4xi64>)
      -> (tensor<160x320xf4E2M1FN>, tensor<2560x4xf8E4M3FN, #tiled>)

  %aw = fp4.amax %w {groups = array<i64: 64, 64, 64>} : tensor<192x320xbf16> -> tensor<3xf32>
  %qw, %sw = fp4.quantize %w amax %aw
      {format = #fp4.format<nvfp4>, recipe = #recipe, groups = array<i64: 64, 64, 64>}
      : (tensor<192x320xbf16>, tensor<3xf32>)
      -> (tensor<192x320xf4E2M1FN>, tensor<1920x4xf8E4M3FN, #tiled>)

  %alpha = fp4.matmul_alpha %ax, %aw {per_group} : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  %qx_scaled = fp4.scaled %qx, %sx : !lhs
  %qw_scaled = fp4.scaled %qw, %sw : !rhs
  %y = fp4.matmul %qx_scaled, %qw_scaled alpha %alpha offsets %offsets
      : (!lhs, !rhs, tensor<3xf32>, tensor<4xi64>) -> tensor<160x64xbf16>
  return %y : tensor<160x64xbf16>
}
