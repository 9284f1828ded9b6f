// A gated two-layer perceptron in NVFP4, as LLaMA has it (SwiGLU):
//
//   H[M,F] = silu(X[M,K] * W1[F,K]^T) .* (X[M,K] * W3[F,K]^T)        Y[M,N] = H[M,F] * W2[N,F]^T
//
//   fp4-runner examples/mlp.mlir                        run and check; --dim M=300 for other rows
//   fp4-runner examples/mlp.mlir --emit=mlir            the program after fusion
//   fp4-runner examples/mlp.mlir --benchmark            launches, and the bytes of each
//
// Written in plain operations. fp4-fuse makes one kernel of the two GEMMs that read X, the gate and
// the quantizer of H: neither the two GEMMs nor H are ever in memory, only the codes of H and its
// scales. The quantizer needs the amax of H before its first element is known. So the amax is an
// argument, h_amax, as calibration or the last training step knows it. The amax that this step found,
// for the next one, is a result of the same kernel.

#te = #fp4.recipe<transformer_engine>
#nvfp4 = #fp4.format<nvfp4>
#tiled = #fp4.scale_layout<tiled_128x4>

!lhs = !fp4.scaled<nvfp4, tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN, #tiled>>
!rhs = !fp4.scaled<nvfp4, tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN, #tiled>>
!lhs2 = !fp4.scaled<nvfp4, tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN, #tiled>>
!rhs2 = !fp4.scaled<nvfp4, tensor<384x256xf4E2M1FN>, tensor<384x16xf8E4M3FN, #tiled>>
func.func @mlp(%x: tensor<?x512xbf16> {fp4.name = "x", fp4.dims = ["M", "K"]},
               %h_amax: tensor<f32> {fp4.name = "h_amax"},
               %w1: tensor<256x512xbf16> {fp4.name = "w1", fp4.dims = ["F", "K"]},
               %w3: tensor<256x512xbf16> {fp4.name = "w3", fp4.dims = ["F", "K"]},
               %w2: tensor<384x256xbf16> {fp4.name = "w2", fp4.dims = ["N", "F"]})
    -> (tensor<?x384xbf16> {fp4.name = "y"}, tensor<f32> {fp4.name = "next_h_amax"}) {
  %ax = fp4.amax %x : tensor<?x512xbf16> -> tensor<f32>
  %qx, %sx = fp4.quantize %x amax %ax {format = #nvfp4, recipe = #te}
      : (tensor<?x512xbf16>, tensor<f32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>)
  %tx = fp4.swizzle_scales %sx : tensor<?x32xf8E4M3FN> -> tensor<?x32xf8E4M3FN, #tiled>

  %a1 = fp4.amax %w1 : tensor<256x512xbf16> -> tensor<f32>
  %q1, %s1 = fp4.quantize %w1 amax %a1 {format = #nvfp4, recipe = #te}
      : (tensor<256x512xbf16>, tensor<f32>) -> (tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN>)
  %t1 = fp4.swizzle_scales %s1 : tensor<256x32xf8E4M3FN> -> tensor<256x32xf8E4M3FN, #tiled>
  %a3 = fp4.amax %w3 : tensor<256x512xbf16> -> tensor<f32>
  %q3, %s3 = fp4.quantize %w3 amax %a3 {format = #nvfp4, recipe = #te}
      : (tensor<256x512xbf16>, tensor<f32>) -> (tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN>)
  %t3 = fp4.swizzle_scales %s3 : tensor<256x32xf8E4M3FN> -> tensor<256x32xf8E4M3FN, #tiled>
  %a2 = fp4.amax %w2 : tensor<384x256xbf16> -> tensor<f32>
  %q2, %s2 = fp4.quantize %w2 amax %a2 {format = #nvfp4, recipe = #te}
      : (tensor<384x256xbf16>, tensor<f32>) -> (tensor<384x256xf4E2M1FN>, tensor<384x16xf8E4M3FN>)
  %t2 = fp4.swizzle_scales %s2 : tensor<384x16xf8E4M3FN> -> tensor<384x16xf8E4M3FN, #tiled>

  // The two GEMMs of X.
  %alpha1 = fp4.matmul_alpha %ax, %a1 : tensor<f32>, tensor<f32> -> tensor<f32>
  %qx_scaled = fp4.scaled %qx, %tx : !lhs
  %q1_scaled = fp4.scaled %q1, %t1 : !rhs
  %gate = fp4.matmul %qx_scaled, %q1_scaled alpha %alpha1
      : (!lhs, !rhs, tensor<f32>) -> tensor<?x256xf32>
  %alpha3 = fp4.matmul_alpha %ax, %a3 : tensor<f32>, tensor<f32> -> tensor<f32>
  %q3_scaled = fp4.scaled %q3, %t3 : !rhs
  %up = fp4.matmul %qx_scaled, %q3_scaled alpha %alpha3
      : (!lhs, !rhs, tensor<f32>) -> tensor<?x256xf32>

  // silu(gate) .* up, rounded once to bf16.
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x512xbf16>
  %empty = tensor.empty(%m) : tensor<?x256xbf16>
  %h = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
                                        affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%gate, %up : tensor<?x256xf32>, tensor<?x256xf32>) outs(%empty : tensor<?x256xbf16>) {
  ^bb0(%g: f32, %u: f32, %out: bf16):
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %g : f32
    %exp = math.exp %minus : f32
    %below = arith.addf %exp, %one : f32
    %silu = arith.divf %g, %below : f32
    %gated = arith.mulf %silu, %u : f32
    %rounded = arith.truncf %gated : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<?x256xbf16>

  // Operands of the second GEMM, and the amax that the next step begins with.
  %next = fp4.amax %h : tensor<?x256xbf16> -> tensor<f32>
  %qh, %sh = fp4.quantize %h amax %h_amax {format = #nvfp4, recipe = #te}
      : (tensor<?x256xbf16>, tensor<f32>) -> (tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>)
  %th = fp4.swizzle_scales %sh : tensor<?x16xf8E4M3FN> -> tensor<?x16xf8E4M3FN, #tiled>
  %alpha2 = fp4.matmul_alpha %h_amax, %a2 : tensor<f32>, tensor<f32> -> tensor<f32>
  %qh_scaled = fp4.scaled %qh, %th : !lhs2
  %q2_scaled = fp4.scaled %q2, %t2 : !rhs2
  %y = fp4.matmul %qh_scaled, %q2_scaled alpha %alpha2
      : (!lhs2, !rhs2, tensor<f32>) -> tensor<?x384xbf16>
  return %y, %next : tensor<?x384xbf16>, tensor<f32>
}
