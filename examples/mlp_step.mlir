// A two-layer perceptron with silu in NVFP4, forward and backward, as TransformerEngine trains its layers:
//
//   P[M,F] = X[M,K] * W1[F,K]^T     H = silu(P)     Y[M,N] = H * W2[N,F]^T
//   dH = dY * W2     dW2 = dY^T * H     dP = dH .* silu'(P)     dX = dP * W1     dW1 = dP^T * X
//
//   fp4-runner examples/mlp_step.mlir                   run and check
//   validation/mlp_step.py                                   launches and bytes beside TransformerEngine's
//
// Written in plain operations. X, H, dY and dP are quantized along rows, and transformed (random Hadamard signs) along
// columns, gradients stochastically; W1 and W2 in blocks of 16 x 16. fp4-fuse makes 25 kernels.

#te = #fp4.recipe<transformer_engine>
#nvfp4 = #fp4.format<nvfp4>
#stochastic = #fp4.rounding<stochastic>
#columns = #fp4.outputs<columnwise>
#tiled = #fp4.scale_layout<tiled_128x4>
#id = affine_map<(i, j) -> (i, j)>

!lhs = !fp4.scaled<nvfp4, tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN, #tiled>>
!rhs = !fp4.scaled<nvfp4, tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN, #tiled>>
!lhs2 = !fp4.scaled<nvfp4, tensor<128x512xf4E2M1FN>, tensor<128x32xf8E4M3FN, #tiled>>
!rhs2 = !fp4.scaled<nvfp4, tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN, #tiled>>
!lhs3 = !fp4.scaled<nvfp4, tensor<256x128xf4E2M1FN>, tensor<256x8xf8E4M3FN, #tiled>>
!rhs3 = !fp4.scaled<nvfp4, tensor<512x128xf4E2M1FN>, tensor<512x8xf8E4M3FN, #tiled>>
func.func @mlp_step(%x: tensor<128x256xbf16> {fp4.name = "x", fp4.dims = ["M", "K"]},
                    %w1: tensor<512x256xbf16> {fp4.name = "w1", fp4.dims = ["F", "K"]},
                    %w2: tensor<256x512xbf16> {fp4.name = "w2", fp4.dims = ["N", "F"]},
                    %dy: tensor<128x256xbf16> {fp4.name = "dy", fp4.dims = ["M", "N"]},
                    %rng: tensor<2xi64> {fp4.name = "rng"})
    -> (tensor<128x256xbf16> {fp4.name = "y"}, tensor<128x256xbf16> {fp4.name = "dx"},
        tensor<512x256xf32> {fp4.name = "dw1"}, tensor<256x512xf32> {fp4.name = "dw2"}) {
  // Forward, layer 1. Operands that WGrad and DGrad read later are made in the same pass.
  %ax = fp4.amax %x : tensor<128x256xbf16> -> tensor<f32>
  %qx, %sx = fp4.quantize %x amax %ax {format = #nvfp4, recipe = #te}
      : (tensor<128x256xbf16>, tensor<f32>) -> (tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>)
  %tx = fp4.swizzle_scales %sx : tensor<128x16xf8E4M3FN> -> tensor<128x16xf8E4M3FN, #tiled>
  %rx = fp4.hadamard %x {dimension = 0 : i64} : tensor<128x256xbf16> -> tensor<128x256xbf16>
  %axt = fp4.amax %rx : tensor<128x256xbf16> -> tensor<f32>
  %qxt, %sxt = fp4.quantize %rx amax %axt {format = #nvfp4, recipe = #te, outputs = #columns}
      : (tensor<128x256xbf16>, tensor<f32>) -> (tensor<256x128xf4E2M1FN>, tensor<256x8xf8E4M3FN>)
  %txt = fp4.swizzle_scales %sxt : tensor<256x8xf8E4M3FN> -> tensor<256x8xf8E4M3FN, #tiled>
  %aw1 = fp4.amax %w1 : tensor<512x256xbf16> -> tensor<f32>
  %qw1, %sw1 = fp4.quantize %w1 amax %aw1 {format = #nvfp4, recipe = #te, block = array<i64: 16, 16>}
      : (tensor<512x256xbf16>, tensor<f32>) -> (tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN>)
  %tw1 = fp4.swizzle_scales %sw1 : tensor<512x16xf8E4M3FN> -> tensor<512x16xf8E4M3FN, #tiled>
  %qw1t, %sw1t = fp4.quantize %w1 amax %aw1 {format = #nvfp4, recipe = #te, block = array<i64: 16, 16>, outputs = #columns}
      : (tensor<512x256xbf16>, tensor<f32>) -> (tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN>)
  %tw1t = fp4.swizzle_scales %sw1t : tensor<256x32xf8E4M3FN> -> tensor<256x32xf8E4M3FN, #tiled>
  %alpha_p = fp4.matmul_alpha %ax, %aw1 : tensor<f32>, tensor<f32> -> tensor<f32>
  %qx_scaled = fp4.scaled %qx, %tx : !lhs
  %qw1_scaled = fp4.scaled %qw1, %tw1 : !rhs
  %p = fp4.matmul %qx_scaled, %qw1_scaled alpha %alpha_p
      : (!lhs, !rhs, tensor<f32>) -> tensor<128x512xbf16>

  // H = silu(P). The gradient needs P too, so that this is no epilogue: it becomes a kernel of its own.
  %empty = tensor.empty() : tensor<128x512xbf16>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<128x512xbf16>) outs(%empty : tensor<128x512xbf16>) {
  ^bb0(%v: bf16, %o: bf16):
    %one = arith.constant 1.0 : f32
    %wide = arith.extf %v : bf16 to f32
    %minus = arith.negf %wide : f32
    %exp = math.exp %minus : f32
    %below = arith.addf %exp, %one : f32
    %silu = arith.divf %wide, %below : f32
    %r = arith.truncf %silu : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<128x512xbf16>

  // Forward, layer 2.
  %ah = fp4.amax %h : tensor<128x512xbf16> -> tensor<f32>
  %qh, %sh = fp4.quantize %h amax %ah {format = #nvfp4, recipe = #te}
      : (tensor<128x512xbf16>, tensor<f32>) -> (tensor<128x512xf4E2M1FN>, tensor<128x32xf8E4M3FN>)
  %th = fp4.swizzle_scales %sh : tensor<128x32xf8E4M3FN> -> tensor<128x32xf8E4M3FN, #tiled>
  %rh = fp4.hadamard %h {dimension = 0 : i64} : tensor<128x512xbf16> -> tensor<128x512xbf16>
  %aht = fp4.amax %rh : tensor<128x512xbf16> -> tensor<f32>
  %qht, %sht = fp4.quantize %rh amax %aht {format = #nvfp4, recipe = #te, outputs = #columns}
      : (tensor<128x512xbf16>, tensor<f32>) -> (tensor<512x128xf4E2M1FN>, tensor<512x8xf8E4M3FN>)
  %tht = fp4.swizzle_scales %sht : tensor<512x8xf8E4M3FN> -> tensor<512x8xf8E4M3FN, #tiled>
  %aw2 = fp4.amax %w2 : tensor<256x512xbf16> -> tensor<f32>
  %qw2, %sw2 = fp4.quantize %w2 amax %aw2 {format = #nvfp4, recipe = #te, block = array<i64: 16, 16>}
      : (tensor<256x512xbf16>, tensor<f32>) -> (tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN>)
  %tw2 = fp4.swizzle_scales %sw2 : tensor<256x32xf8E4M3FN> -> tensor<256x32xf8E4M3FN, #tiled>
  %qw2t, %sw2t = fp4.quantize %w2 amax %aw2 {format = #nvfp4, recipe = #te, block = array<i64: 16, 16>, outputs = #columns}
      : (tensor<256x512xbf16>, tensor<f32>) -> (tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN>)
  %tw2t = fp4.swizzle_scales %sw2t : tensor<512x16xf8E4M3FN> -> tensor<512x16xf8E4M3FN, #tiled>
  %alpha_y = fp4.matmul_alpha %ah, %aw2 : tensor<f32>, tensor<f32> -> tensor<f32>
  %qh_scaled = fp4.scaled %qh, %th : !lhs2
  %qw2_scaled = fp4.scaled %qw2, %tw2 : !rhs2
  %y = fp4.matmul %qh_scaled, %qw2_scaled alpha %alpha_y
      : (!lhs2, !rhs2, tensor<f32>) -> tensor<128x256xbf16>

  // Backward, layer 2.
  %ag = fp4.amax %dy : tensor<128x256xbf16> -> tensor<f32>
  %qg, %sg = fp4.quantize %dy amax %ag rng %rng {format = #nvfp4, recipe = #te, rounding = #stochastic}
      : (tensor<128x256xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>)
  %tg = fp4.swizzle_scales %sg : tensor<128x16xf8E4M3FN> -> tensor<128x16xf8E4M3FN, #tiled>
  %rg = fp4.hadamard %dy {dimension = 0 : i64} : tensor<128x256xbf16> -> tensor<128x256xbf16>
  %agt = fp4.amax %rg : tensor<128x256xbf16> -> tensor<f32>
  %qgt, %sgt = fp4.quantize %rg amax %agt rng %rng {format = #nvfp4, recipe = #te, rounding = #stochastic, outputs = #columns}
      : (tensor<128x256xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<256x128xf4E2M1FN>, tensor<256x8xf8E4M3FN>)
  %tgt = fp4.swizzle_scales %sgt : tensor<256x8xf8E4M3FN> -> tensor<256x8xf8E4M3FN, #tiled>
  %alpha_dh = fp4.matmul_alpha %ag, %aw2 : tensor<f32>, tensor<f32> -> tensor<f32>
  %qg_scaled = fp4.scaled %qg, %tg : !lhs
  %qw2t_scaled = fp4.scaled %qw2t, %tw2t : !rhs
  %dh = fp4.matmul %qg_scaled, %qw2t_scaled alpha %alpha_dh
      : (!lhs, !rhs, tensor<f32>) -> tensor<128x512xbf16>
  %alpha_dw2 = fp4.matmul_alpha %agt, %aht : tensor<f32>, tensor<f32> -> tensor<f32>
  %qgt_scaled = fp4.scaled %qgt, %tgt : !lhs3
  %qht_scaled = fp4.scaled %qht, %tht : !rhs3
  %dw2 = fp4.matmul %qgt_scaled, %qht_scaled alpha %alpha_dw2
      : (!lhs3, !rhs3, tensor<f32>) -> tensor<256x512xf32>

  // dP = dH .* silu'(P), which the GEMM that computes dH does: dH is never in memory.
  %dp = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%dh, %p : tensor<128x512xbf16>, tensor<128x512xbf16>) outs(%empty : tensor<128x512xbf16>) {
  ^bb0(%d: bf16, %v: bf16, %o: bf16):
    %one = arith.constant 1.0 : f32
    %wide = arith.extf %v : bf16 to f32
    %minus = arith.negf %wide : f32
    %exp = math.exp %minus : f32
    %below = arith.addf %exp, %one : f32
    %sigmoid = arith.divf %one, %below : f32
    %rest = arith.subf %one, %sigmoid : f32
    %more = arith.mulf %wide, %rest : f32
    %factor = arith.addf %more, %one : f32
    %slope = arith.mulf %sigmoid, %factor : f32
    %gradient = arith.extf %d : bf16 to f32
    %e = arith.mulf %gradient, %slope : f32
    %r = arith.truncf %e : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<128x512xbf16>

  // Backward, layer 1.
  %ae = fp4.amax %dp : tensor<128x512xbf16> -> tensor<f32>
  %qe, %se = fp4.quantize %dp amax %ae rng %rng {format = #nvfp4, recipe = #te, rounding = #stochastic}
      : (tensor<128x512xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<128x512xf4E2M1FN>, tensor<128x32xf8E4M3FN>)
  %te = fp4.swizzle_scales %se : tensor<128x32xf8E4M3FN> -> tensor<128x32xf8E4M3FN, #tiled>
  %re = fp4.hadamard %dp {dimension = 0 : i64} : tensor<128x512xbf16> -> tensor<128x512xbf16>
  %aet = fp4.amax %re : tensor<128x512xbf16> -> tensor<f32>
  %qet, %set = fp4.quantize %re amax %aet rng %rng {format = #nvfp4, recipe = #te, rounding = #stochastic, outputs = #columns}
      : (tensor<128x512xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<512x128xf4E2M1FN>, tensor<512x8xf8E4M3FN>)
  %tet = fp4.swizzle_scales %set : tensor<512x8xf8E4M3FN> -> tensor<512x8xf8E4M3FN, #tiled>
  %alpha_dx = fp4.matmul_alpha %ae, %aw1 : tensor<f32>, tensor<f32> -> tensor<f32>
  %qe_scaled = fp4.scaled %qe, %te : !lhs2
  %qw1t_scaled = fp4.scaled %qw1t, %tw1t : !rhs2
  %dx = fp4.matmul %qe_scaled, %qw1t_scaled alpha %alpha_dx
      : (!lhs2, !rhs2, tensor<f32>) -> tensor<128x256xbf16>
  %alpha_dw1 = fp4.matmul_alpha %aet, %axt : tensor<f32>, tensor<f32> -> tensor<f32>
  %qet_scaled = fp4.scaled %qet, %tet : !rhs3
  %qxt_scaled = fp4.scaled %qxt, %txt : !lhs3
  %dw1 = fp4.matmul %qet_scaled, %qxt_scaled alpha %alpha_dw1
      : (!rhs3, !lhs3, tensor<f32>) -> tensor<512x256xf32>
  return %y, %dx, %dw1, %dw2 : tensor<128x256xbf16>, tensor<128x256xbf16>, tensor<512x256xf32>, tensor<256x512xf32>
}
