// RUN: fp4-runner %s --check=strict | FileCheck %s
// RUN: fp4-runner %s --check=strict --policy=lazy | FileCheck %s
// The layer of examples/decoder.mlir in FP8 with scales of 128 elements: gate and up are one GEMM, whose columns the gate reads,
// because such a GEMM has no codes as results. Ten launches, where those of vLLM 0.20.2 are eleven: it rotates and writes the
// cache in two.
// CHECK: row_quantize_0
// CHECK-NEXT: matmul_0
// CHECK-NEXT: rows_0
// CHECK-NEXT: attention_0
// CHECK-NEXT: quantize_0
// CHECK-NEXT: matmul_1
// CHECK-NEXT: row_quantize_1
// CHECK-NEXT: matmul_2
// CHECK-NEXT: row_quantize_2
// CHECK-NEXT: matmul_3
// CHECK-NEXT: kernels 10 launched
// CHECK: y {{.*}} equals the tcgen05 model, bit for bit
// CHECK: residual_out {{.*}} equals the reference, bit for bit
// CHECK: keys {{.*}} equals the reference, bit for bit
// CHECK: values {{.*}} equals the reference, bit for bit
// CHECK: hazards {{.*}}none

#te = #fp4.recipe<transformer_engine>
#nvfp4 = #fp4.format<nvfp4>
#tiled = #fp4.scale_layout<tiled_128x4>
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#partner = affine_map<(i, j) -> (i, (j + 32) mod 64)>
#cosine = affine_map<(i, j) -> (i floordiv 8, j mod 32)>
#sine = affine_map<(i, j) -> (i floordiv 8, j mod 32 + 32)>
!wqkv = !fp4.scaled<fp8_block128, tensor<512x256xf8E4M3FN>, tensor<4x2xf32>>
!wo = !fp4.scaled<fp8_block128, tensor<256x256xf8E4M3FN>, tensor<2x2xf32>>
!wgu = !fp4.scaled<fp8_block128, tensor<1024x256xf8E4M3FN>, tensor<8x2xf32>>
!wd = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<2x4xf32>>
!x256 = !fp4.scaled<fp8_block128, tensor<128x256xf8E4M3FN>, tensor<128x2xf32>>
!x512 = !fp4.scaled<fp8_block128, tensor<128x512xf8E4M3FN>, tensor<128x4xf32>>
func.func @decoder(
    %x: tensor<128x256xbf16> {fp4.name = "x"},
    %residual: tensor<128x256xbf16> {fp4.name = "residual"},
    %w_in: tensor<256xbf16> {fp4.name = "w_in"},
    %w_post: tensor<256xbf16> {fp4.name = "w_post"},
    %wqkv: tensor<512x256xf8E4M3FN> {fp4.name = "wqkv"}, %wqkv_scales: tensor<4x2xf32> {fp4.name = "wqkv_scales"}, %wqkv_alpha: tensor<f32> {fp4.name = "wqkv_alpha"},
    %wo: tensor<256x256xf8E4M3FN> {fp4.name = "wo"}, %wo_scales: tensor<2x2xf32> {fp4.name = "wo_scales"}, %wo_alpha: tensor<f32> {fp4.name = "wo_alpha"},
    %wgu: tensor<1024x256xf8E4M3FN> {fp4.name = "wgu"}, %wgu_scales: tensor<8x2xf32> {fp4.name = "wgu_scales"}, %wgu_alpha: tensor<f32> {fp4.name = "wgu_alpha"},
    %wd: tensor<256x512xf8E4M3FN> {fp4.name = "wd"}, %wd_scales: tensor<2x4xf32> {fp4.name = "wd_scales"}, %wd_alpha: tensor<f32> {fp4.name = "wd_alpha"},
    %a_in: tensor<f32> {fp4.name = "a_in"},
    %a_attn: tensor<f32> {fp4.name = "a_attn"},
    %a_post: tensor<f32> {fp4.name = "a_post"},
    %a_gate: tensor<f32> {fp4.name = "a_gate"},
    %positions: tensor<128xi64> {fp4.name = "positions"},
    %cos_sin: tensor<512x64xf32> {fp4.name = "cos_sin"},
    %q_rows: tensor<1024x1xi64> {fp4.name = "q_rows"},
    %k_rows: tensor<1024x1xi64> {fp4.name = "k_rows"},
    %v_rows: tensor<1024x1xi64> {fp4.name = "v_rows"})
    -> (tensor<128x256xbf16> {fp4.name = "y"}, tensor<128x256xbf16> {fp4.name = "residual_out"}, tensor<256x64xbf16> {fp4.name = "keys"}, tensor<256x64xbf16> {fp4.name = "values"}) {
  %lengths = arith.constant dense<[64, 61]> : tensor<2xi32>
  %pages = arith.constant dense<[[7, 3, 0, 4], [5, 2, 6, 1]]> : tensor<2x4xi32>
  %zero = arith.constant 0.0 : f32
  %numbers = tensor.empty() : tensor<128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%numbers : tensor<128xf32>) -> tensor<128xf32>
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
      ins(%h, %n1_squares, %w_in : tensor<128x256xbf16>, tensor<128xf32>, tensor<256xbf16>) outs(%n1_empty : tensor<128x256xbf16>) {
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
  %q1, %q1_scales = fp4.quantize %n1 {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<128x256xbf16>) -> (tensor<128x256xf8E4M3FN>, tensor<128x2xf32>)
  %q1_scaled = fp4.scaled %q1, %q1_scales : !x256
  %wqkv_scaled = fp4.scaled %wqkv, %wqkv_scales : !wqkv
  %qkv = fp4.matmul %q1_scaled, %wqkv_scaled : (!x256, !wqkv) -> tensor<128x512xbf16>
  %heads = tensor.expand_shape %qkv [[0], [1, 2]] output_shape [128, 8, 64] : tensor<128x512xbf16> into tensor<128x8x64xbf16>
  %rows = tensor.collapse_shape %heads [[0, 1], [2]] : tensor<128x8x64xbf16> into tensor<1024x64xbf16>
  %places = tensor.expand_shape %positions [[0, 1]] output_shape [128, 1] : tensor<128xi64> into tensor<128x1xi64>
  %angles = tensor.gather %cos_sin[%places] gather_dims([0]) : (tensor<512x64xf32>, tensor<128x1xi64>) -> tensor<128x64xf32>
  %stored = tensor.empty() : tensor<1024x64xbf16>
  %q, %k, %v = linalg.generic {indexing_maps = [#all, #partner, #cosine, #sine, #all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%rows, %rows, %angles, %angles : tensor<1024x64xbf16>, tensor<1024x64xbf16>, tensor<128x64xf32>, tensor<128x64xf32>) outs(%stored, %stored, %stored : tensor<1024x64xbf16>, tensor<1024x64xbf16>, tensor<1024x64xbf16>) {
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
  %q_all = tensor.scatter %q into %q_empty[%q_rows] scatter_dims([0]) unique : (tensor<1024x64xbf16>, tensor<512x64xbf16>, tensor<1024x1xi64>) -> tensor<512x64xbf16>
  %k_empty = tensor.empty() : tensor<256x64xbf16>
  %k_all = tensor.scatter %k into %k_empty[%k_rows] scatter_dims([0]) unique : (tensor<1024x64xbf16>, tensor<256x64xbf16>, tensor<1024x1xi64>) -> tensor<256x64xbf16>
  %v_empty = tensor.empty() : tensor<256x64xbf16>
  %v_all = tensor.scatter %v into %v_empty[%v_rows] scatter_dims([0]) unique : (tensor<1024x64xbf16>, tensor<256x64xbf16>, tensor<1024x1xi64>) -> tensor<256x64xbf16>
  %query4 = tensor.expand_shape %q_all [[0, 1, 2], [3]] output_shape [2, 64, 4, 64] : tensor<512x64xbf16> into tensor<2x64x4x64xbf16>
  %key_cache = tensor.expand_shape %k_all [[0, 1, 2], [3]] output_shape [8, 16, 2, 64] : tensor<256x64xbf16> into tensor<8x16x2x64xbf16>
  %value_cache = tensor.expand_shape %v_all [[0, 1, 2], [3]] output_shape [8, 16, 2, 64] : tensor<256x64xbf16> into tensor<8x16x2x64xbf16>
  %attended = fp4.attention %query4, %key_cache, %value_cache lengths(%lengths : tensor<2xi32>) pages(%pages : tensor<2x4xi32>) scale 0.125 causal order <in_blocks = 128, growth = 8.0>
      : tensor<2x64x4x64xbf16>, tensor<8x16x2x64xbf16>, tensor<8x16x2x64xbf16> -> tensor<2x64x4x64xbf16>
  %attn3 = tensor.collapse_shape %attended [[0, 1, 2], [3]] : tensor<2x64x4x64xbf16> into tensor<512x64xbf16>
  %attn4 = tensor.expand_shape %attn3 [[0, 1], [2]] output_shape [128, 4, 64] : tensor<512x64xbf16> into tensor<128x4x64xbf16>
  %attn = tensor.collapse_shape %attn4 [[0], [1, 2]] : tensor<128x4x64xbf16> into tensor<128x256xbf16>
  %q2, %q2_scales = fp4.quantize %attn {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<128x256xbf16>) -> (tensor<128x256xf8E4M3FN>, tensor<128x2xf32>)
  %q2_scaled = fp4.scaled %q2, %q2_scales : !x256
  %wo_scaled = fp4.scaled %wo, %wo_scales : !wo
  %projected = fp4.matmul %q2_scaled, %wo_scaled : (!x256, !wo) -> tensor<128x256xbf16>
  %h2 = arith.addf %projected, %h : tensor<128x256xbf16>
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
      ins(%h2, %n2_squares, %w_post : tensor<128x256xbf16>, tensor<128xf32>, tensor<256xbf16>) outs(%n2_empty : tensor<128x256xbf16>) {
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
  %q3, %q3_scales = fp4.quantize %n2 {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<128x256xbf16>) -> (tensor<128x256xf8E4M3FN>, tensor<128x2xf32>)
  %q3_scaled = fp4.scaled %q3, %q3_scales : !x256
  %wgu_scaled = fp4.scaled %wgu, %wgu_scales : !wgu
  %both = fp4.matmul %q3_scaled, %wgu_scaled : (!x256, !wgu) -> tensor<128x1024xbf16>
  %gate = tensor.extract_slice %both[0, 0] [128, 512] [1, 1] : tensor<128x1024xbf16> to tensor<128x512xbf16>
  %up = tensor.extract_slice %both[0, 512] [128, 512] [1, 1] : tensor<128x1024xbf16> to tensor<128x512xbf16>
  %gated_empty = tensor.empty() : tensor<128x512xbf16>
  %gated = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%gate, %up : tensor<128x512xbf16>, tensor<128x512xbf16>) outs(%gated_empty : tensor<128x512xbf16>) {
  ^bb0(%gb: bf16, %ub: bf16, %o0: bf16):
    %g = arith.extf %gb : bf16 to f32
    %u = arith.extf %ub : bf16 to f32
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %g : f32
    %exp = math.exp %minus : f32
    %below = arith.addf %exp, %one : f32
    %silu = arith.divf %g, %below : f32
    %product = arith.mulf %silu, %u : f32
    %r = arith.truncf %product : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<128x512xbf16>
  %q4, %q4_scales = fp4.quantize %gated {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<128x512xbf16>) -> (tensor<128x512xf8E4M3FN>, tensor<128x4xf32>)
  %q4_scaled = fp4.scaled %q4, %q4_scales : !x512
  %wd_scaled = fp4.scaled %wd, %wd_scales : !wd
  %y = fp4.matmul %q4_scaled, %wd_scaled : (!x512, !wd) -> tensor<128x256xbf16>
  return %y, %h2, %k_all, %v_all : tensor<128x256xbf16>, tensor<128x256xbf16>, tensor<256x64xbf16>, tensor<256x64xbf16>
}
