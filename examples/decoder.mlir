// A decoder layer of LLaMA in NVFP4, with a paged cache of keys and values in bf16, in plain operations:
//
//   H = X + R     Q, K, V = RMSNorm(H) * Wqkv^T     Q, K rotated (RoPE), K and V to slots of the cache
//   R' = H + Attention(Q, cache) * Wo^T             Y = (silu(N * Wg^T) .* (N * Wu^T)) * Wd^T, N = RMSNorm(R')
//
//   fp4-runner examples/decoder.mlir                    run and check, with the launches
//   fp4-runner examples/decoder.mlir --remarks          what fp4-fuse made one kernel, and what it did not
//
// Scales of activations are static: a_in, a_attn, a_post and a_gate are amaxes, and an alpha is that of an activation and its
// weight. X and R are sums of the layer before. fp4-fuse and the passes behind it make 9 kernels. Launches of one layer on one
// Blackwell GPU, counted in the sources of vLLM 0.20.2 (FlashInfer's attention, cache in FP8) and of TensorRT-LLM:
//
//   step                                fp4  vLLM  TensorRT-LLM
//   residual, RMSNorm, quantize          1     2     1   its FUSED_OPS are FP8's [1]; fused_add_rms_norm_quant [5]
//   Q, K and V                           1     1     1
//   RoPE, slots of the cache             1     2     1   one kernel on ROCm alone [2]; preprocessing of attention [6]
//   attention, quantize                  2     1     1   the kernel of attention writes codes [3] [7]
//   Wo                                   1     1     1   here with the residual
//   residual, RMSNorm, quantize          1     2     1
//   gate and up, SwiGLU, quantize        1     2     3   SwiGLU with codes [4]; GEMM, SwiGLU, and codes [8]
//   down                                 1     1     1
//   all                                  9    12    10   vLLM: 13 with a cache in bf16, and queries in FP8 are not counted
//
//   [1] vllm.compilation.passes.fusion.rms_quant_fusion, line 104     [2] vllm.config.compilation, line 282
//   [3] vllm.v1.attention.backends.flashinfer, line 1313              [4] act_quant_fusion beside [1], line 124
//   [5] operator trtllm::fused_add_rms_norm_quant                     [6] invokeQKVPreprocessing
//   [7] tensorrt_llm._torch.modules.attention, out_scale_sf           [8] its neighbour gated_mlp, _apply_activation
//
// In FP8 with scales of 128 elements fp4 has 10 (test/Runner/Programs/decoder-fp8.mlir) and vLLM 11.
//
// An attention of few queries has no scales in tiles of 128x4 as a result, so that its quantizer is a kernel. An order of keys,
// which tcgen05 has alone, would give the layer one set of bits.

#te = #fp4.recipe<transformer_engine>
#nvfp4 = #fp4.format<nvfp4>
#tiled = #fp4.scale_layout<tiled_128x4>
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#partner = affine_map<(i, j) -> (i, (j + 32) mod 64)>
#cosine = affine_map<(i, j) -> (i floordiv 8, j mod 32)>
#sine = affine_map<(i, j) -> (i floordiv 8, j mod 32 + 32)>
!wqkv = !fp4.scaled<nvfp4, tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN, #tiled>>
!wo = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, tensor<256x16xf8E4M3FN, #tiled>>
!wg = !fp4.scaled<nvfp4, tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN, #tiled>>
!wu = !fp4.scaled<nvfp4, tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN, #tiled>>
!wd = !fp4.scaled<nvfp4, tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN, #tiled>>
!x256 = !fp4.scaled<nvfp4, tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN, #tiled>>
!x512 = !fp4.scaled<nvfp4, tensor<128x512xf4E2M1FN>, tensor<128x32xf8E4M3FN, #tiled>>
func.func @decoder(
    %x: tensor<128x256xbf16> {fp4.name = "x"},
    %residual: tensor<128x256xbf16> {fp4.name = "residual"},
    %w_in: tensor<256xbf16> {fp4.name = "w_in"},
    %w_post: tensor<256xbf16> {fp4.name = "w_post"},
    %wqkv: tensor<512x256xf4E2M1FN> {fp4.name = "wqkv"}, %wqkv_scales: tensor<512x16xf8E4M3FN, #tiled> {fp4.name = "wqkv_scales"},
    %wqkv_alpha: tensor<f32> {fp4.name = "wqkv_alpha"},
    %wo: tensor<256x256xf4E2M1FN> {fp4.name = "wo"}, %wo_scales: tensor<256x16xf8E4M3FN, #tiled> {fp4.name = "wo_scales"},
    %wo_alpha: tensor<f32> {fp4.name = "wo_alpha"},
    %wg: tensor<512x256xf4E2M1FN> {fp4.name = "wg"}, %wg_scales: tensor<512x16xf8E4M3FN, #tiled> {fp4.name = "wg_scales"},
    %wg_alpha: tensor<f32> {fp4.name = "wg_alpha"},
    %wu: tensor<512x256xf4E2M1FN> {fp4.name = "wu"}, %wu_scales: tensor<512x16xf8E4M3FN, #tiled> {fp4.name = "wu_scales"},
    %wu_alpha: tensor<f32> {fp4.name = "wu_alpha"},
    %wd: tensor<256x512xf4E2M1FN> {fp4.name = "wd"}, %wd_scales: tensor<256x32xf8E4M3FN, #tiled> {fp4.name = "wd_scales"},
    %wd_alpha: tensor<f32> {fp4.name = "wd_alpha"},
    %a_in: tensor<f32> {fp4.name = "a_in"},
    %a_attn: tensor<f32> {fp4.name = "a_attn"},
    %a_post: tensor<f32> {fp4.name = "a_post"},
    %a_gate: tensor<f32> {fp4.name = "a_gate"},
    %positions: tensor<128xi64> {fp4.name = "positions"},
    %cos_sin: tensor<512x64xf32> {fp4.name = "cos_sin"},
    %q_rows: tensor<1024x1xi64> {fp4.name = "q_rows"},
    %k_rows: tensor<1024x1xi64> {fp4.name = "k_rows"},
    %v_rows: tensor<1024x1xi64> {fp4.name = "v_rows"})
    -> (tensor<128x256xbf16> {fp4.name = "y"}, tensor<128x256xbf16> {fp4.name = "residual_out"},
        tensor<256x64xbf16> {fp4.name = "keys"}, tensor<256x64xbf16> {fp4.name = "values"}) {
  // Sequences of 64 and 61 tokens in pages of 16.
  %lengths = arith.constant dense<[64, 61]> : tensor<2xi32>
  %pages = arith.constant dense<[[7, 3, 0, 4], [5, 2, 6, 1]]> : tensor<2x4xi32>
  %zero = arith.constant 0.0 : f32
  %numbers = tensor.empty() : tensor<128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%numbers : tensor<128xf32>) -> tensor<128xf32>

  // The residual, and the norm in front of the projection.
  %h = arith.addf %x, %residual : tensor<128x256xbf16>
  %n1_squares = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%h : tensor<128x256xbf16>) outs(%zeros : tensor<128xf32>) {
  ^bb0(%e: bf16, %sum: f32):
    %wide = arith.extf %e : bf16 to f32
    %square = arith.mulf %wide, %wide : f32
    %next = arith.addf %sum, %square : f32
    linalg.yield %next : f32
  } -> tensor<128xf32>
  %n1_empty = tensor.empty() : tensor<128x256xbf16>
  %n1 = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]}
      ins(%h, %n1_squares, %w_in : tensor<128x256xbf16>, tensor<128xf32>, tensor<256xbf16>) outs(%n1_empty
      : tensor<128x256xbf16>) {
  ^bb0(%e: bf16, %sum: f32, %weight: bf16, %o: bf16):
    %columns = arith.constant 256.0 : f32
    %eps = arith.constant 1.0e-5 : f32
    %mean = arith.divf %sum, %columns : f32
    %above = arith.addf %mean, %eps : f32
    %rstd = math.rsqrt %above : f32
    %wide = arith.extf %e : bf16 to f32
    %normed = arith.mulf %wide, %rstd : f32
    %factor = arith.extf %weight : bf16 to f32
    %scaled = arith.mulf %normed, %factor : f32
    %r = arith.truncf %scaled : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<128x256xbf16>
  %q1, %q1_row = fp4.quantize %n1 amax %a_in {format = #nvfp4, recipe = #te}
      : (tensor<128x256xbf16>, tensor<f32>) -> (tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>)
  %q1_scales = fp4.swizzle_scales %q1_row : tensor<128x16xf8E4M3FN> -> tensor<128x16xf8E4M3FN, #tiled>
  %q1_scaled = fp4.scaled %q1, %q1_scales : !x256
  %wqkv_scaled = fp4.scaled %wqkv, %wqkv_scales : !wqkv
  %qkv = fp4.matmul %q1_scaled, %wqkv_scaled alpha %wqkv_alpha : (!x256, !wqkv, tensor<f32>) -> tensor<128x512xbf16>

  // Heads are rows. A row has a number among the queries, among the slots of keys, and among those of values, or -1.
  %heads = tensor.expand_shape %qkv [[0], [1, 2]] output_shape [128, 8, 64] : tensor<128x512xbf16> into tensor<128x8x64xbf16>
  %rows = tensor.collapse_shape %heads [[0, 1], [2]] : tensor<128x8x64xbf16> into tensor<1024x64xbf16>
  %places = tensor.expand_shape %positions [[0, 1]] output_shape [128, 1] : tensor<128xi64> into tensor<128x1xi64>
  %angles = tensor.gather %cos_sin[%places] gather_dims([0]) : (tensor<512x64xf32>, tensor<128x1xi64>) -> tensor<128x64xf32>
  %stored = tensor.empty() : tensor<1024x64xbf16>
  %q, %k, %v = linalg.generic {indexing_maps = [#all, #partner, #cosine, #sine, #all, #all, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%rows, %rows, %angles, %angles : tensor<1024x64xbf16>, tensor<1024x64xbf16>, tensor<128x64xf32>, tensor<128x64xf32>)
      outs(%stored, %stored, %stored
      : tensor<1024x64xbf16>, tensor<1024x64xbf16>, tensor<1024x64xbf16>) {
  ^bb0(%e: bf16, %p: bf16, %cosine: f32, %sine: f32, %o0: bf16, %o1: bf16, %o2: bf16):
    %half = arith.constant 32 : i32
    %column = linalg.index 1 : index
    %at = arith.index_cast %column : index to i32
    %first = arith.cmpi ult, %at, %half : i32
    %wide = arith.extf %e : bf16 to f32
    %partner = arith.extf %p : bf16 to f32
    %negative = arith.negf %partner : f32
    %other = arith.select %first, %negative, %partner : f32
    %u = arith.mulf %wide, %cosine : f32
    %w = arith.mulf %other, %sine : f32
    %turned = arith.addf %u, %w : f32
    %query = arith.truncf %turned : f32 to bf16
    %same = math.copysign %turned, %turned : f32
    %key = arith.truncf %same : f32 to bf16
    linalg.yield %query, %key, %e : bf16, bf16, bf16
  } -> (tensor<1024x64xbf16>, tensor<1024x64xbf16>, tensor<1024x64xbf16>)
  %q_empty = tensor.empty() : tensor<512x64xbf16>
  %q_all = tensor.scatter %q into %q_empty[%q_rows] scatter_dims([0]) unique
      : (tensor<1024x64xbf16>, tensor<512x64xbf16>, tensor<1024x1xi64>) -> tensor<512x64xbf16>
  %k_empty = tensor.empty() : tensor<256x64xbf16>
  %k_all = tensor.scatter %k into %k_empty[%k_rows] scatter_dims([0]) unique
      : (tensor<1024x64xbf16>, tensor<256x64xbf16>, tensor<1024x1xi64>) -> tensor<256x64xbf16>
  %v_empty = tensor.empty() : tensor<256x64xbf16>
  %v_all = tensor.scatter %v into %v_empty[%v_rows] scatter_dims([0]) unique
      : (tensor<1024x64xbf16>, tensor<256x64xbf16>, tensor<1024x1xi64>) -> tensor<256x64xbf16>

  // Attention of all tokens over the pages that were written.
  %query4 = tensor.expand_shape %q_all [[0, 1, 2], [3]] output_shape [2, 64, 4, 64]
      : tensor<512x64xbf16> into tensor<2x64x4x64xbf16>
  %key_cache = tensor.expand_shape %k_all [[0, 1, 2], [3]] output_shape [8, 16, 2, 64]
      : tensor<256x64xbf16> into tensor<8x16x2x64xbf16>
  %value_cache = tensor.expand_shape %v_all [[0, 1, 2], [3]] output_shape [8, 16, 2, 64]
      : tensor<256x64xbf16> into tensor<8x16x2x64xbf16>
  %attended = fp4.attention %query4, %key_cache, %value_cache lengths(%lengths : tensor<2xi32>) pages(%pages
      : tensor<2x4xi32>) scale 0.125 causal
      : tensor<2x64x4x64xbf16>, tensor<8x16x2x64xbf16>, tensor<8x16x2x64xbf16> -> tensor<2x64x4x64xbf16>
  %attn3 = tensor.collapse_shape %attended [[0, 1, 2], [3]] : tensor<2x64x4x64xbf16> into tensor<512x64xbf16>
  %attn4 = tensor.expand_shape %attn3 [[0, 1], [2]] output_shape [128, 4, 64] : tensor<512x64xbf16> into tensor<128x4x64xbf16>
  %attn = tensor.collapse_shape %attn4 [[0], [1, 2]] : tensor<128x4x64xbf16> into tensor<128x256xbf16>

  // The projection behind it, whose epilogue adds the residual.
  %q2, %q2_row = fp4.quantize %attn amax %a_attn {format = #nvfp4, recipe = #te}
      : (tensor<128x256xbf16>, tensor<f32>) -> (tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>)
  %q2_scales = fp4.swizzle_scales %q2_row : tensor<128x16xf8E4M3FN> -> tensor<128x16xf8E4M3FN, #tiled>
  %q2_scaled = fp4.scaled %q2, %q2_scales : !x256
  %wo_scaled = fp4.scaled %wo, %wo_scales : !wo
  %projected = fp4.matmul %q2_scaled, %wo_scaled alpha %wo_alpha : (!x256, !wo, tensor<f32>) -> tensor<128x256xbf16>
  %h2 = arith.addf %projected, %h : tensor<128x256xbf16>

  // The gated perceptron: two GEMMs, SwiGLU and the quantizer are one kernel.
  %n2_squares = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%h2 : tensor<128x256xbf16>) outs(%zeros : tensor<128xf32>) {
  ^bb0(%e: bf16, %sum: f32):
    %wide = arith.extf %e : bf16 to f32
    %square = arith.mulf %wide, %wide : f32
    %next = arith.addf %sum, %square : f32
    linalg.yield %next : f32
  } -> tensor<128xf32>
  %n2_empty = tensor.empty() : tensor<128x256xbf16>
  %n2 = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]}
      ins(%h2, %n2_squares, %w_post : tensor<128x256xbf16>, tensor<128xf32>, tensor<256xbf16>) outs(%n2_empty
      : tensor<128x256xbf16>) {
  ^bb0(%e: bf16, %sum: f32, %weight: bf16, %o: bf16):
    %columns = arith.constant 256.0 : f32
    %eps = arith.constant 1.0e-5 : f32
    %mean = arith.divf %sum, %columns : f32
    %above = arith.addf %mean, %eps : f32
    %rstd = math.rsqrt %above : f32
    %wide = arith.extf %e : bf16 to f32
    %normed = arith.mulf %wide, %rstd : f32
    %factor = arith.extf %weight : bf16 to f32
    %scaled = arith.mulf %normed, %factor : f32
    %r = arith.truncf %scaled : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<128x256xbf16>
  %q3, %q3_row = fp4.quantize %n2 amax %a_post {format = #nvfp4, recipe = #te}
      : (tensor<128x256xbf16>, tensor<f32>) -> (tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>)
  %q3_scales = fp4.swizzle_scales %q3_row : tensor<128x16xf8E4M3FN> -> tensor<128x16xf8E4M3FN, #tiled>
  %q3_scaled = fp4.scaled %q3, %q3_scales : !x256
  %wg_scaled = fp4.scaled %wg, %wg_scales : !wg
  %gate = fp4.matmul %q3_scaled, %wg_scaled alpha %wg_alpha : (!x256, !wg, tensor<f32>) -> tensor<128x512xf32>
  %wu_scaled = fp4.scaled %wu, %wu_scales : !wu
  %up = fp4.matmul %q3_scaled, %wu_scaled alpha %wu_alpha : (!x256, !wu, tensor<f32>) -> tensor<128x512xf32>
  %gated_empty = tensor.empty() : tensor<128x512xbf16>
  %gated = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%gate, %up : tensor<128x512xf32>, tensor<128x512xf32>) outs(%gated_empty : tensor<128x512xbf16>) {
  ^bb0(%g: f32, %u: f32, %o0: bf16):
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %g : f32
    %exp = math.exp %minus : f32
    %below = arith.addf %exp, %one : f32
    %silu = arith.divf %g, %below : f32
    %product = arith.mulf %silu, %u : f32
    %r = arith.truncf %product : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<128x512xbf16>
  %q4, %q4_row = fp4.quantize %gated amax %a_gate {format = #nvfp4, recipe = #te}
      : (tensor<128x512xbf16>, tensor<f32>) -> (tensor<128x512xf4E2M1FN>, tensor<128x32xf8E4M3FN>)
  %q4_scales = fp4.swizzle_scales %q4_row : tensor<128x32xf8E4M3FN> -> tensor<128x32xf8E4M3FN, #tiled>
  %q4_scaled = fp4.scaled %q4, %q4_scales : !x512
  %wd_scaled = fp4.scaled %wd, %wd_scales : !wd
  %y = fp4.matmul %q4_scaled, %wd_scaled alpha %wd_alpha : (!x512, !wd, tensor<f32>) -> tensor<128x256xbf16>
  return %y, %h2, %k_all, %v_all : tensor<128x256xbf16>, tensor<128x256xbf16>, tensor<256x64xbf16>, tensor<256x64xbf16>
}
