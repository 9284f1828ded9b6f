// RUN: fp4-opt %s | FileCheck %s
// Every operation prints what it parsed; default attributes are not printed.

!act = !fp4.scaled<nvfp4, tensor<?x1024xf4E2M1FN>,
                   tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!weights = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>,
                   tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: func @nvfp4_linear
func.func @nvfp4_linear(%x: tensor<?x1024xbf16>, %w: tensor<512x1024xbf16>, %bias: tensor<1x512xf32>) -> tensor<?x512xbf16> {
  // CHECK: fp4.amax %{{.*}} : tensor<?x1024xbf16> -> tensor<f32>
  %ax = fp4.amax %x : tensor<?x1024xbf16> -> tensor<f32>
  %aw = fp4.amax %w : tensor<512x1024xbf16> -> tensor<f32>
  // CHECK: fp4.quantize %{{.*}} amax %{{.*}} {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
  // CHECK-SAME: (tensor<?x1024xbf16>, tensor<f32>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>)
  %q, %s = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x1024xbf16>, tensor<f32>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>)
  // CHECK: fp4.quantize %{{.*}} amax %{{.*}} {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine_2_13>}
  %qw, %t = fp4.quantize %w amax %aw
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine_2_13>, rounding = #fp4.rounding<nearest_even>}
      : (tensor<512x1024xbf16>, tensor<f32>) -> (tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN>)
  // CHECK: fp4.swizzle_scales %{{.*}} : tensor<?x64xf8E4M3FN> -> tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sw = fp4.swizzle_scales %s
      : tensor<?x64xf8E4M3FN> -> tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %tw = fp4.swizzle_scales %t
      : tensor<512x64xf8E4M3FN> -> tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  // CHECK: fp4.matmul_alpha %{{.*}}, %{{.*}} : tensor<f32>, tensor<f32> -> tensor<f32>
  %alpha = fp4.matmul_alpha %ax, %aw : tensor<f32>, tensor<f32> -> tensor<f32>
  %a = fp4.scaled %q, %sw : !act
  %b = fp4.scaled %qw, %tw : !weights
  // CHECK: fp4.matmul %{{.*}}, %{{.*}} alpha %{{.*}} : (!nvfp4
  %y = fp4.matmul %a, %b alpha %alpha
      : (!act, !weights, tensor<f32>) -> tensor<?x512xbf16>
  // CHECK: fp4.matmul %{{.*}}, %{{.*}} epilogue(%{{.*}}) {
  // CHECK-NEXT: ^bb0(%[[SUM:.*]]: f32, %[[B:.*]]: f32):
  // CHECK-NEXT: arith.addf %[[SUM]], %[[B]] : f32
  %z = fp4.matmul %a, %b epilogue(%bias) {
  ^bb0(%sum: f32, %shift: f32):
    %biased = arith.addf %sum, %shift : f32
    fp4.yield %biased : f32
  } : (!act, !weights, tensor<1x512xf32>) -> tensor<?x512xf32>
  return %y : tensor<?x512xbf16>
}

// CHECK-LABEL: func @rounded
func.func @rounded(%q: tensor<?x1024xf4E2M1FN>, %sw: tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %qw: tensor<512x1024xf4E2M1FN>, %tw: tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x512xbf16> {
  %q_scaled = fp4.scaled %q, %sw : !act
  %qw_scaled = fp4.scaled %qw, %tw : !weights
  // CHECK: fp4.matmul %{{.*}}, %{{.*}} epilogue() {
  %rounded = fp4.matmul %q_scaled, %qw_scaled epilogue() {
  ^bb0(%sum: f32):
    %x = arith.truncf %sum : f32 to bf16
    fp4.yield %x : bf16
  } : (!act, !weights) -> tensor<?x512xbf16>
  return %rounded : tensor<?x512xbf16>
}

!operand = !fp4.scaled<mxfp4, tensor<96x64xf4E2M1FN>,
                       tensor<96x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: func @mxfp4
func.func @mxfp4(%x: tensor<96x64xf32>) -> tensor<96x96xf32> {
  // Equal decisions are one attribute, whatever name the text starts with.
  // CHECK: fp4.quantize %{{.*}} {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>} :
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor, exponent = round_up>}
      : (tensor<96x64xf32>) -> (tensor<96x64xf4E2M1FN>, tensor<96x2xf8E8M0FNU>)
  %st = fp4.swizzle_scales %s
      : tensor<96x2xf8E8M0FNU> -> tensor<96x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %q_scaled = fp4.scaled %q, %st : !operand
  // CHECK: fp4.matmul %{{.*}}, %{{.*}} {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>} :
  %y = fp4.matmul %q_scaled, %q_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>}
      : (!operand, !operand) -> tensor<96x96xf32>
  return %y : tensor<96x96xf32>
}

!lhs2 = !fp4.scaled<mxfp8_e4m3, tensor<?x1024xf8E4M3FN>,
                    tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp4, tensor<512x1024xf4E2M1FN>,
                    tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: func.func @matmul_of_two_formats
func.func @matmul_of_two_formats(%q: tensor<?x1024xf8E4M3FN>, %sw: tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
                                 %qw: tensor<512x1024xf4E2M1FN>, %tw: tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
    -> tensor<?x512xbf16> {
  %q_scaled = fp4.scaled %q, %sw : !lhs2
  %qw_scaled = fp4.scaled %qw, %tw : !rhs2
  // CHECK: fp4.matmul {{.*}} : (!mxfp8_e4m3{{.*}}, !mxfp4
  %y = fp4.matmul %q_scaled, %qw_scaled : (!lhs2, !rhs2) -> tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}

// CHECK-LABEL: func @derived
func.func @derived(%q: tensor<?x1024xf4E2M1FN>, %sw: tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %qw: tensor<512x1024xf4E2M1FN>, %tw: tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %given: tensor<f32>) {
  %lhs = fp4.scaled %q, %sw : !act
  %rhs = fp4.scaled %qw, %tw : !weights
  // CHECK: %[[Q:.*]]:2 = fp4.epilogue_quantize %[[X:.*]] amax %{{.*}} {recipe = #fp4.recipe<transformer_engine>} : (bf16, f32) -> (f4E2M1FN, f8E4M3FN)
  // CHECK-NEXT: %[[AMAX:.*]] = fp4.epilogue_amax %[[X]] : bf16 -> f32
  // CHECK-NEXT: fp4.yield %[[X]], %[[Q]]#0, %[[Q]]#1, %[[AMAX]] : bf16, f4E2M1FN, f8E4M3FN, f32
  %r:4 = fp4.matmul %lhs, %rhs epilogue(%given) {
  ^bb0(%sum: f32, %a: f32):
    %x = arith.truncf %sum : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %x amax %a {recipe = #fp4.recipe<transformer_engine>}
        : (bf16, f32) -> (f4E2M1FN, f8E4M3FN)
    %amax = fp4.epilogue_amax %x : bf16 -> f32
    fp4.yield %x, %code, %scale, %amax : bf16, f4E2M1FN, f8E4M3FN, f32
  } : (!act, !weights, tensor<f32>)
      -> (tensor<?x512xbf16>, tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>, tensor<f32>)
  return
}

// CHECK-LABEL: func @dual
func.func @dual(%q: tensor<?x1024xf4E2M1FN>, %sw: tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %qw: tensor<512x1024xf4E2M1FN>, %tw: tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.scaled %q, %sw : !act
  %b = fp4.scaled %qw, %tw : !weights
  // CHECK: %{{.*}}:2 = fp4.matmul %{{.*}}, %{{.*}} with %{{.*}} epilogue() {
  // CHECK-NEXT: ^bb0(%[[UP:.*]]: f32, %[[GATE:.*]]: f32):
  // CHECK: %[[Q:.*]]:2 = fp4.epilogue_quantize %{{.*}} {recipe = #fp4.recipe<ocp_floor>} : (bf16) -> (f4E2M1FN, f8E8M0FNU)
  // CHECK-NEXT: fp4.yield %[[Q]]#0, %[[Q]]#1 : f4E2M1FN, f8E8M0FNU
  %p, %t = fp4.matmul %a, %b with %b epilogue() {
  ^bb0(%up: f32, %gate: f32):
    %product = arith.mulf %up, %gate : f32
    %rounded = arith.truncf %product : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %rounded {recipe = #fp4.recipe<ocp_floor>}
        : (bf16) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : (!act, !weights, !weights)
      -> (tensor<?x512xf4E2M1FN>, tensor<?x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
    return
}

!operand2 = !fp4.scaled<nvfp4, tensor<64x128xf4E2M1FN>,
                        tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: func @fused
func.func @fused(%q: tensor<64x128xf4E2M1FN>, %s: tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %a: tensor<f32>) {
  %q_scaled = fp4.scaled %q, %s : !operand2
  // CHECK: with %{{.*}} alpha %{{.*}} alpha2 %{{.*}} epilogue(%{{.*}}) {
  // CHECK: fp4.epilogue_quantize %{{.*}} amax %{{.*}} {outputs = #fp4.outputs<both>, recipe = #fp4.recipe<transformer_engine>}
  // CHECK: fp4.epilogue_amax
  %r:6 = fp4.matmul %q_scaled, %q_scaled with %q_scaled alpha %a alpha2 %a epilogue(%a) {
  ^bb0(%x: f32, %y: f32, %amax_in: f32):
    %code, %scale, %code_t, %scale_t = fp4.epilogue_quantize %x amax %amax_in {recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>}
        : (f32, f32) -> (f4E2M1FN, f8E4M3FN, f4E2M1FN, f8E4M3FN)
    %amax_out = fp4.epilogue_amax %x : f32 -> f32
    fp4.yield %x, %code, %scale, %code_t, %scale_t, %amax_out : f32, f4E2M1FN, f8E4M3FN, f4E2M1FN, f8E4M3FN, f32
  } : (!operand2, !operand2, !operand2, tensor<f32>, tensor<f32>, tensor<f32>)
      -> (tensor<64x64xf32>, tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>, tensor<64x64xf4E2M1FN>,
          tensor<64x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<f32>)
  return
}

// CHECK-LABEL: func @hadamard
func.func @hadamard(%x: tensor<256x1024xbf16>) {
  // CHECK: fp4.hadamard %{{.*}} {dimension = 0 : i64} : tensor<256x1024xbf16> -> tensor<256x1024xbf16>
  %r = fp4.hadamard %x {dimension = 0 : i64} : tensor<256x1024xbf16> -> tensor<256x1024xbf16>
  // CHECK: fp4.hadamard %{{.*}} {sign_mask = 0 : i64, size = 32 : i64} :
  %0 = fp4.hadamard %x {size = 32 : i64, dimension = 1 : i64, sign_mask = 0 : i64}
      : tensor<256x1024xbf16> -> tensor<256x1024xbf16>
  return
}

// CHECK-LABEL: func @dequantize
func.func @dequantize(%q: tensor<?x64xf4E2M1FN>, %s: tensor<?x4xf8E4M3FN>, %ax: tensor<f32>)
    -> tensor<?x64xf32> {
  // CHECK: fp4.dequantize %{{.*}} scaled %{{.*}} amax %{{.*}} {format = #fp4.format<nvfp4>} :
  %y = fp4.dequantize %q scaled %s amax %ax {format = #fp4.format<nvfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>, tensor<f32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// The quantization family: both orientations, square blocks, stochastic rounding.
// CHECK-LABEL: func @quantize_family
func.func @quantize_family(%x: tensor<64x32xbf16>, %ax: tensor<f32>, %rng: tensor<2xi64>) {
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}}:2 = fp4.quantize %{{.*}} amax %{{.*}} rng %{{.*}} {block = array<i64: 16, 16>, format = #fp4.format<nvfp4>,
  // CHECK-SAME: outputs = #fp4.outputs<both>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>}
  %q:4 = fp4.quantize %x amax %ax rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, block = array<i64: 16, 16>,
       rounding = #fp4.rounding<stochastic>, outputs = #fp4.outputs<both>}
      : (tensor<64x32xbf16>, tensor<f32>, tensor<2xi64>)
      -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>, tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>)
  // CHECK: fp4.quantize %{{.*}} {{{.*}}outputs = #fp4.outputs<columnwise>
  %c:2 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<columnwise>}
      : (tensor<64x32xbf16>, tensor<f32>) -> (tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>)
  return
}

// Recipes print in one spelling: decisions in the order of recipes.md, only where they differ.
// CHECK-LABEL: func @recipes
func.func @recipes(%x: tensor<4x40xbf16>, %ax: tensor<f32>) {
  // CHECK: recipe = #fp4.recipe<transformer_engine, guard = none, e4m3_max = 256, scale_floor = 0.015625>}
  %0:2 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine, scale_floor = 1.5625e-02, e4m3_max = 256.0,
                                                         guard = none, scale = multiply_folded>}
      : (tensor<4x40xbf16>, tensor<f32>) -> (tensor<4x40xf4E2M1FN>, tensor<4x3xf8E4M3FN>)
  // CHECK: recipe = #fp4.recipe<mslk, scale_floor = 1.0e-05>}
  %1:2 = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<mslk, scale_floor = 0.00001>}
      : (tensor<4x40xbf16>, tensor<f32>) -> (tensor<4x40xf4E2M1FN>, tensor<4x3xf8E4M3FN>)
  // CHECK: fp4.quantize %{{.*}} {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>}
  %2:2 = fp4.quantize %x {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>}
      : (tensor<4x40xbf16>) -> (tensor<4x40xf4E2M1FN>, tensor<4x3xf8E4M3FN>)
  // CHECK: fp4.dequantize {{.*}} recipe = #fp4.recipe<four_over_six>}
  %3 = fp4.dequantize %0#0 scaled %0#1 amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<four_over_six>}
      : (tensor<4x40xf4E2M1FN>, tensor<4x3xf8E4M3FN>, tensor<f32>) -> tensor<4x40xf32>
  // CHECK: fp4.amax %{{.*}} {nan = #fp4.nan_policy<propagate>}
  %4 = fp4.amax %x {nan = #fp4.nan_policy<propagate>} : tensor<4x40xbf16> -> tensor<f32>
  return
}

// Transforms inside of other operations, and both orientations with what TransformerEngine gives each.
// CHECK-LABEL: func @transforms
func.func @transforms(%x: tensor<256x1024xbf16>, %rng: tensor<2xi64>) {
  // CHECK: fp4.hadamard_amax %{{.*}} {dimension = 0 : i64} : tensor<256x1024xbf16> -> tensor<f32>, tensor<f32>
  %ax, %ay = fp4.hadamard_amax %x {dimension = 0 : i64}
      : tensor<256x1024xbf16> -> tensor<f32>, tensor<f32>
  // CHECK: fp4.quantize %{{.*}} amax %{{.*}} columnwise_amax %{{.*}} rng %{{.*}} {columnwise_hadamard = #fp4.hadamard<size = 16, sign_mask = 0xD7E8>, format
  %q, %s, %qt, %st = fp4.quantize %x amax %ax columnwise_amax %ay rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
       outputs = #fp4.outputs<both>, rounding = #fp4.rounding<stochastic>,
       columnwise_hadamard = #fp4.hadamard<size = 16, sign_mask = 0xD7E8>}
      : (tensor<256x1024xbf16>, tensor<f32>, tensor<f32>, tensor<2xi64>)
      -> (tensor<256x1024xf4E2M1FN>, tensor<256x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
          tensor<1024x256xf4E2M1FN>, tensor<1024x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  // CHECK: hadamard = #fp4.hadamard<size = 128, sign_mask = 0x0, arithmetic = tensor_core>, philox = #fp4.philox<transformer_engine>
  %0:2 = fp4.quantize %x amax %ay rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>,
       hadamard = #fp4.hadamard<arithmetic = tensor_core, sign_mask = 0, size = 128>, philox = #fp4.philox<transformer_engine>}
      : (tensor<256x1024xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<256x1024xf4E2M1FN>, tensor<256x64xf8E4M3FN>)
  // CHECK: fp4.hadamard %{{.*}} {arithmetic = #fp4.hadamard_arithmetic<tensor_core>, size = 64 : i64}
  %1 = fp4.hadamard %x {arithmetic = #fp4.hadamard_arithmetic<tensor_core>, size = 64 : i64}
      : tensor<256x1024xbf16> -> tensor<256x1024xbf16>
  return
}

// CHECK-LABEL: func @unswizzle
func.func @unswizzle(%sw: tensor<256x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    -> tensor<256x64xf8E4M3FN> {
  // CHECK: fp4.unswizzle_scales
  %s = fp4.unswizzle_scales %sw
      : tensor<256x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<256x64xf8E4M3FN>
  return %s : tensor<256x64xf8E4M3FN>
}

// Shards that ranks quantized for themselves become the whole.
// CHECK-LABEL: func @gather
func.func @gather(%s0: tensor<100x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %s1: tensor<60x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
                  %gathered: tensor<2048x64xf4E2M1FN>) {
  // CHECK: fp4.stack_scales %{{.*}}, %{{.*}} : (tensor<100x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<60x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<160x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %s = fp4.stack_scales %s0, %s1
      : (tensor<100x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
         tensor<60x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
      -> tensor<160x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  // CHECK: fp4.interleave_shards %{{.*}} {shards = 4 : i64} : tensor<2048x64xf4E2M1FN> -> tensor<512x256xf4E2M1FN>
  %qt = fp4.interleave_shards %gathered {shards = 4 : i64}
      : tensor<2048x64xf4E2M1FN> -> tensor<512x256xf4E2M1FN>
  return
}

// The router of DeepSeek-V3, and tokens in the order of their experts.
// CHECK-LABEL: func @route
func.func @route(%biased: tensor<?x256xf32>, %s: tensor<?x256xf32>) {
  // CHECK: fp4.top_k %{{.*}} weights %{{.*}} {k = 8 : i64, num_groups = 8 : i64, top_groups = 4 : i64} : tensor<?x256xf32>, tensor<?x256xf32> -> tensor<?x8xf32>, tensor<?x8xi32>
  %w, %ids = fp4.top_k %biased weights %s {k = 8 : i64, num_groups = 8 : i64, top_groups = 4 : i64}
      : tensor<?x256xf32>, tensor<?x256xf32> -> tensor<?x8xf32>, tensor<?x8xi32>
  // CHECK: fp4.top_k %{{.*}} {k = 1 : i64} : tensor<?x256xf32> -> tensor<?x1xf32>, tensor<?x1xi32>
  %v, %i = fp4.top_k %s {k = 1 : i64} : tensor<?x256xf32> -> tensor<?x1xf32>, tensor<?x1xi32>
  // CHECK: fp4.expert_order %{{.*}} {experts = 256 : i64, multiple = 128 : i64} : tensor<?x8xi32> -> tensor<257xi64>, tensor<?x8xi64>, tensor<?xi64>
  %o, %r, %t = fp4.expert_order %ids {experts = 256 : i64, multiple = 128 : i64}
      : tensor<?x8xi32> -> tensor<257xi64>, tensor<?x8xi64>, tensor<?xi64>
  return
}

// The tokens of three experts, both orientations, transformed.
// CHECK-LABEL: func @groups
func.func @groups(%tokens: tensor<192x512xbf16>) {
  // CHECK: fp4.amax %{{.*}} {groups = array<i64: 130, 0, 62>} : tensor<192x512xbf16> -> tensor<3xf32>
  %ag = fp4.amax %tokens {groups = array<i64: 130, 0, 62>} : tensor<192x512xbf16> -> tensor<3xf32>
  // CHECK: fp4.quantize %{{.*}} amax %{{.*}} {format = #fp4.format<nvfp4>, groups = array<i64: 130, 0, 62>, recipe = #fp4.recipe<transformer_engine>}
  %qg, %sg = fp4.quantize %tokens amax %ag
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
       groups = array<i64: 130, 0, 62>}
      : (tensor<192x512xbf16>, tensor<3xf32>)
      -> (tensor<192x512xf4E2M1FN>, tensor<3072x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  // CHECK: fp4.hadamard_amax %{{.*}} {dimension = 0 : i64, groups = array<i64: 128, 64>}
  %ax, %ay = fp4.hadamard_amax %tokens {dimension = 0 : i64, groups = array<i64: 128, 64>}
      : tensor<192x512xbf16> -> tensor<2xf32>, tensor<2xf32>
  // CHECK: fp4.quantize {{.*}} -> (tensor<192x512xf4E2M1FN>, tensor<192x32xf8E4M3FN>, tensor<512x192xf4E2M1FN>, tensor<1536x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  %0:4 = fp4.quantize %tokens amax %ax columnwise_amax %ay
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 128, 64>,
       outputs = #fp4.outputs<both>, columnwise_hadamard = #fp4.hadamard<size = 16>}
      : (tensor<192x512xbf16>, tensor<2xf32>, tensor<2xf32>)
      -> (tensor<192x512xf4E2M1FN>, tensor<192x32xf8E4M3FN>, tensor<512x192xf4E2M1FN>, tensor<1536x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return
}

// An amax for each token.
// CHECK-LABEL: func @per_row
func.func @per_row(%x: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
  // CHECK: fp4.amax %{{.*}} {per_row} : tensor<?x64xbf16> -> tensor<?xf32>
  %ax = fp4.amax %x {per_row} : tensor<?x64xbf16> -> tensor<?xf32>
  // CHECK: fp4.quantize %{{.*}} amax %{{.*}} {format = #fp4.format<nvfp4>, per_row, recipe = #fp4.recipe<transformer_engine>}
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row}
      : (tensor<?x64xbf16>, tensor<?xf32>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>)
  // CHECK: fp4.dequantize %{{.*}} scaled %{{.*}} amax %{{.*}} {format = #fp4.format<nvfp4>, per_row}
  %y = fp4.dequantize %q scaled %s amax %ax {format = #fp4.format<nvfp4>, per_row}
      : (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>, tensor<?xf32>) -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}

// CHECK-LABEL: func @wide
func.func @wide(%x: tensor<?x64xbf16>) -> (tensor<?x64xf32>, tensor<?x64xf6E2M3FN>) {
  // CHECK: fp4.quantize %{{.*}} {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_rceil>} : (tensor<?x64xbf16>) -> (tensor<?x64xf8E4M3FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_rceil>}
      : (tensor<?x64xbf16>) -> (tensor<?x64xf8E4M3FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
  // CHECK: recipe = #fp4.recipe<mxfp6_e2m3_floor, exponent = even>
  %p, %t = fp4.quantize %x {format = #fp4.format<mxfp6_e2m3>, recipe = #fp4.recipe<mxfp6_e2m3_floor, exponent = even>}
      : (tensor<?x64xbf16>) -> (tensor<?x64xf6E2M3FN>, tensor<?x2xf8E8M0FNU>)
  // CHECK: fp4.dequantize %{{.*}} scaled %{{.*}} {format = #fp4.format<mxfp6_e2m3>} : (tensor<?x64xf6E2M3FN>, tensor<?x2xf8E8M0FNU>) -> tensor<?x64xf32>
  %y = fp4.dequantize %p scaled %t {format = #fp4.format<mxfp6_e2m3>}
      : (tensor<?x64xf6E2M3FN>, tensor<?x2xf8E8M0FNU>) -> tensor<?x64xf32>
  return %y, %p : tensor<?x64xf32>, tensor<?x64xf6E2M3FN>
}

// CHECK-LABEL: func @alpha
func.func @alpha(%ax: tensor<f32>, %aw: tensor<f32>) -> tensor<f32> {
  // CHECK: fp4.matmul_alpha %{{.*}}, %{{.*}} {rhs_recipe = #fp4.recipe<four_over_six>} : tensor<f32>, tensor<f32> -> tensor<f32>
  %alpha = fp4.matmul_alpha %ax, %aw {rhs_recipe = #fp4.recipe<four_over_six>}
      : tensor<f32>, tensor<f32> -> tensor<f32>
  return %alpha : tensor<f32>
}

// CHECK-LABEL: func @alphas
func.func @alphas(%ax: tensor<?xf32>, %aw: tensor<8xf32>, %one: tensor<f32>) -> (tensor<?x1xf32>, tensor<1x8xf32>) {
  // CHECK: fp4.matmul_alpha %{{.*}}, %{{.*}} : tensor<?xf32>, tensor<f32> -> tensor<?x1xf32>
  %rows = fp4.matmul_alpha %ax, %one : tensor<?xf32>, tensor<f32> -> tensor<?x1xf32>
  // CHECK: fp4.matmul_alpha %{{.*}}, %{{.*}} : tensor<f32>, tensor<8xf32> -> tensor<1x8xf32>
  %columns = fp4.matmul_alpha %one, %aw : tensor<f32>, tensor<8xf32> -> tensor<1x8xf32>
  return %rows, %columns : tensor<?x1xf32>, tensor<1x8xf32>
}

// CHECK-LABEL: func @weights
func.func @weights(%q: tensor<512x1024xf4E2M1FN>, %s: tensor<512x64xf8E4M3FN>) -> tensor<4x16x4608xi8, #fp4.weight_layout<wgmma>> {
  // CHECK: fp4.prepack %{{.*}} scaled %{{.*}} {format = #fp4.format<nvfp4>} : (tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN>) -> tensor<4x16x4608xi8, #fp4.weight_layout<wgmma>>
  %p = fp4.prepack %q scaled %s {format = #fp4.format<nvfp4>}
      : (tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN>)
      -> tensor<4x16x4608xi8, #fp4.weight_layout<wgmma>>
  return %p : tensor<4x16x4608xi8, #fp4.weight_layout<wgmma>>
}

// N and K end within the last tiles, of each of two groups.
// CHECK-LABEL: func @ragged_weights
func.func @ragged_weights(%q: tensor<400x176xf4E2M1FN>, %s: tensor<400x11xf8E4M3FN>) -> tensor<400x176xf4E2M1FN> {
  // CHECK: fp4.prepack %{{.*}} scaled %{{.*}} {format = #fp4.format<nvfp4>, groups = 2 : i64} : (tensor<400x176xf4E2M1FN>, tensor<400x11xf8E4M3FN>) -> tensor<4x3x4608xi8, #fp4.weight_layout<wgmma>>
  %p = fp4.prepack %q scaled %s {format = #fp4.format<nvfp4>, groups = 2}
      : (tensor<400x176xf4E2M1FN>, tensor<400x11xf8E4M3FN>)
      -> tensor<4x3x4608xi8, #fp4.weight_layout<wgmma>>
  // CHECK: fp4.unprepack %{{.*}} {format = #fp4.format<nvfp4>, groups = 2 : i64} : (tensor<4x3x4608xi8, #fp4.weight_layout<wgmma>>) -> (tensor<400x176xf4E2M1FN>, tensor<400x11xf8E4M3FN>)
  %data, %scales = fp4.unprepack %p {format = #fp4.format<nvfp4>, groups = 2}
      : (tensor<4x3x4608xi8, #fp4.weight_layout<wgmma>>)
      -> (tensor<400x176xf4E2M1FN>, tensor<400x11xf8E4M3FN>)
  return %data : tensor<400x176xf4E2M1FN>
}

// CHECK-LABEL: func @plain_weights
func.func @plain_weights(%p: tensor<4x16x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<512x1024xf4E2M1FN> {
  // CHECK: fp4.unprepack %{{.*}} {format = #fp4.format<nvfp4>} : (tensor<4x16x4608xi8, #fp4.weight_layout<wgmma>>) -> (tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN>)
  %q, %s = fp4.unprepack %p {format = #fp4.format<nvfp4>}
      : (tensor<4x16x4608xi8, #fp4.weight_layout<wgmma>>)
      -> (tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN>)
  return %q : tensor<512x1024xf4E2M1FN>
}

// CHECK-LABEL: func @groups_of_the_device
func.func @groups_of_the_device(%x: tensor<192x512xbf16>, %o: tensor<4xi64>, %r: tensor<3x2xi64>, %s: tensor<192x32xf8E4M3FN>)
    -> (tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  // CHECK: fp4.amax %{{.*}} offsets %{{.*}} : tensor<192x512xbf16>, tensor<4xi64> -> tensor<3xf32>
  %a = fp4.amax %x offsets %o : tensor<192x512xbf16>, tensor<4xi64> -> tensor<3xf32>
  // CHECK: fp4.quantize %{{.*}} amax %{{.*}} offsets %{{.*}} {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, unspecified_rows}
  // CHECK-SAME: (tensor<192x512xbf16>, tensor<3xf32>, tensor<3x2xi64>)
  %q, %t = fp4.quantize %x amax %a offsets %r {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, unspecified_rows}
      : (tensor<192x512xbf16>, tensor<3xf32>, tensor<3x2xi64>)
      -> (tensor<192x512xf4E2M1FN>, tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  // CHECK: fp4.swizzle_scales %{{.*}} offsets %{{.*}} : tensor<192x32xf8E4M3FN>, tensor<4xi64> -> tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %u = fp4.swizzle_scales %s offsets %o : tensor<192x32xf8E4M3FN>, tensor<4xi64> -> tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %t, %u : tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// CHECK-LABEL: func @tokens_of_experts
func.func @tokens_of_experts(%tokens: tensor<192x512xbf16>, %rows: tensor<4xi64>)
    -> (tensor<192x512xf4E2M1FN>, tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  // CHECK: fp4.quantize %{{.*}} amax %{{.*}} offsets %{{.*}} {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
  %ao = fp4.amax %tokens offsets %rows : tensor<192x512xbf16>, tensor<4xi64> -> tensor<3xf32>
  %qo, %so = fp4.quantize %tokens amax %ao offsets %rows
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<192x512xbf16>, tensor<3xf32>, tensor<4xi64>)
      -> (tensor<192x512xf4E2M1FN>, tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %qo, %so : tensor<192x512xf4E2M1FN>, tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// CHECK-LABEL: func @attention
func.func @attention(%q: tensor<1x256x8x64xbf16>, %k: tensor<1x512x2x64xbf16>, %v: tensor<1x512x2x64xbf16>)
    -> tensor<1x256x8x64xbf16> {
  // CHECK: fp4.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.250000e-01 causal : tensor<1x256x8x64xbf16>, tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16> -> tensor<1x256x8x64xbf16>
  %o = fp4.attention %q, %k, %v scale 1.250000e-01 causal
      : tensor<1x256x8x64xbf16>, tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16>
      -> tensor<1x256x8x64xbf16>
  return %o : tensor<1x256x8x64xbf16>
}

// CHECK-LABEL: func @attention_backward
func.func @attention_backward(%q: tensor<1x256x8x64xbf16>, %k: tensor<1x512x2x64xbf16>, %v: tensor<1x512x2x64xbf16>,
                              %o: tensor<1x256x8x64xbf16>, %do: tensor<1x256x8x64xbf16>, %l: tensor<1x256x8xf32>)
    -> tensor<1x512x2x64xbf16> {
  // CHECK: fp4.attention_backward %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale 1.250000e-01 causal : tensor<1x256x8x64xbf16>, tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16>, tensor<1x256x8x64xbf16>, tensor<1x256x8xf32>
  %dq, %dk, %dv = fp4.attention_backward %q, %k, %v, %o, %do, %l scale 1.250000e-01 causal
      : tensor<1x256x8x64xbf16>, tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16>,
        tensor<1x256x8x64xbf16>, tensor<1x256x8xf32>
  // CHECK: fp4.attention_backward {{.*}} scale 1.250000e-01 softcap 5.000000e+01 causal :
  %cq, %ck, %cv = fp4.attention_backward %q, %dk, %v, %o, %do, %l scale 1.250000e-01 softcap 5.000000e+01 causal
      : tensor<1x256x8x64xbf16>, tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16>,
        tensor<1x256x8x64xbf16>, tensor<1x256x8xf32>
  return %ck : tensor<1x512x2x64xbf16>
}

// CHECK-LABEL: func @packed_attention_backward
func.func @packed_attention_backward(%q: tensor<?x8x64xbf16>, %k: tensor<?x2x64xbf16>, %l: tensor<?x8xf32>, %n: tensor<3xi32>)
    -> tensor<?x2x64xbf16> {
  // CHECK: fp4.attention_backward {{.*}} query_offsets(%{{.*}} : tensor<3xi32>) key_offsets(%{{.*}} : tensor<3xi32>) scale 1.250000e-01 causal window 9 : tensor<?x8x64xbf16>,
  %dq, %dk, %dv = fp4.attention_backward %q, %k, %k, %q, %q, %l query_offsets(%n : tensor<3xi32>) key_offsets(%n : tensor<3xi32>)
      scale 1.250000e-01 causal window 9
      : tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>, tensor<?x8x64xbf16>, tensor<?x8xf32>
  return %dk : tensor<?x2x64xbf16>
}

// CHECK-LABEL: func @attention_in_an_order
func.func @attention_in_an_order(%q: tensor<1x256x8x64xbf16>, %k: tensor<1x512x2x64xbf16>) -> tensor<1x256x8x64xbf16> {
  // CHECK: fp4.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.250000e-01 causal order <in_blocks = 64, growth = 8.000000e+00> :
  %o = fp4.attention %q, %k, %k scale 1.250000e-01 causal order <in_blocks = 64, growth = 8.0>
      : tensor<1x256x8x64xbf16>, tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16>
      -> tensor<1x256x8x64xbf16>
  return %o : tensor<1x256x8x64xbf16>
}

// CHECK-LABEL: func @latent_attention
func.func @latent_attention(%q: tensor<2x1x128x576xbf16>, %c: tensor<64x64x1x576xbf16>, %n: tensor<2xi32>,
                            %p: tensor<2x8xi32>) -> tensor<2x1x128x512xbf16> {
  // CHECK: fp4.attention %[[Q:.*]], %[[C:.*]], %[[C]] lengths(%{{.*}} : tensor<2xi32>) pages(%{{.*}} : tensor<2x8xi32>) scale 0.0721687824 latent 512 :
  %o = fp4.attention %q, %c, %c lengths(%n : tensor<2xi32>) pages(%p : tensor<2x8xi32>)
      scale 7.216878e-02 latent 512
      : tensor<2x1x128x576xbf16>, tensor<64x64x1x576xbf16>, tensor<64x64x1x576xbf16>
      -> tensor<2x1x128x512xbf16>
  return %o : tensor<2x1x128x512xbf16>
}

// CHECK-LABEL: func @attention_of_windows
func.func @attention_of_windows(%q: tensor<1x256x8x64xbf16>, %k: tensor<1x512x2x64xbf16>, %v: tensor<1x512x2x64xbf16>,
                                %s: tensor<8xf32>) -> (tensor<1x256x8x64xbf16>, tensor<1x256x8xf32>) {
  // CHECK: fp4.attention %{{.*}}, %{{.*}}, %{{.*}} sinks(%{{.*}} : tensor<8xf32>) scale 1.250000e-01 softcap 5.000000e+01 causal window 128 : tensor<1x256x8x64xbf16>, tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16> -> tensor<1x256x8x64xbf16>, tensor<1x256x8xf32>
  %g, %l = fp4.attention %q, %k, %v sinks(%s : tensor<8xf32>) scale 1.250000e-01
      softcap 5.000000e+01 causal window 128
      : tensor<1x256x8x64xbf16>, tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16>
      -> tensor<1x256x8x64xbf16>, tensor<1x256x8xf32>
  return %g, %l : tensor<1x256x8x64xbf16>, tensor<1x256x8xf32>
}

// CHECK-LABEL: func @attention_over_a_cache
func.func @attention_over_a_cache(%q: tensor<2x1x32x128xbf16>, %k: tensor<64x16x8x128xbf16>,
                                  %v: tensor<64x16x8x128xbf16>, %n: tensor<2xi32>, %p: tensor<2x8xi32>)
    -> tensor<2x1x32x128xbf16> {
  // CHECK: fp4.attention %{{.*}}, %{{.*}}, %{{.*}} lengths(%{{.*}} : tensor<2xi32>) pages(%{{.*}} : tensor<2x8xi32>) scale 0.0883883535 causal
  %d = fp4.attention %q, %k, %v lengths(%n : tensor<2xi32>) pages(%p : tensor<2x8xi32>)
      scale 8.838835e-02 causal
      : tensor<2x1x32x128xbf16>, tensor<64x16x8x128xbf16>, tensor<64x16x8x128xbf16>
      -> tensor<2x1x32x128xbf16>
  return %d : tensor<2x1x32x128xbf16>
}

// CHECK-LABEL: func @attention_over_codes
func.func @attention_over_codes(%q: tensor<2x1x32x128xbf16>, %ck: tensor<64x16x8x128xf4E2M1FN>,
                                %cv: tensor<64x16x8x128xf4E2M1FN>, %ks: tensor<64x16x8x8xf8E4M3FN>,
                                %vs: tensor<64x16x8x8xf8E4M3FN>, %fk: tensor<1xf32>, %fv: tensor<1xf32>,
                                %n: tensor<2xi32>, %p: tensor<2x8xi32>) -> tensor<2x1x32x128xbf16> {
  // CHECK: fp4.attention %{{.*}}, %{{.*}}, %{{.*}} scales(%{{.*}}, %{{.*}} : tensor<64x16x8x8xf8E4M3FN>, tensor<64x16x8x8xf8E4M3FN>) factors(%{{.*}}, %{{.*}} : tensor<1xf32>, tensor<1xf32>) lengths(%{{.*}} : tensor<2xi32>) pages(%{{.*}} : tensor<2x8xi32>) scale 0.0883883535 :
  %e = fp4.attention %q, %ck, %cv
      scales(%ks, %vs : tensor<64x16x8x8xf8E4M3FN>, tensor<64x16x8x8xf8E4M3FN>)
      factors(%fk, %fv : tensor<1xf32>, tensor<1xf32>)
      lengths(%n : tensor<2xi32>) pages(%p : tensor<2x8xi32>) scale 8.838835e-02
      : tensor<2x1x32x128xbf16>, tensor<64x16x8x128xf4E2M1FN>, tensor<64x16x8x128xf4E2M1FN>
      -> tensor<2x1x32x128xbf16>
  return %e : tensor<2x1x32x128xbf16>
}

// CHECK-LABEL: func @attention_of_packed_sequences
func.func @attention_of_packed_sequences(%q: tensor<?x8x64xbf16>, %k: tensor<?x2x64xbf16>, %v: tensor<?x2x64xbf16>,
                                         %a: tensor<5xi32>, %c: tensor<5xi32>) -> tensor<?x8x64xbf16> {
  // CHECK: fp4.attention %{{.*}}, %{{.*}}, %{{.*}} query_offsets(%{{.*}} : tensor<5xi32>) key_offsets(%{{.*}} : tensor<5xi32>) scale 1.250000e-01 causal :
  %u = fp4.attention %q, %k, %v query_offsets(%a : tensor<5xi32>)
      key_offsets(%c : tensor<5xi32>) scale 1.250000e-01 causal
      : tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16> -> tensor<?x8x64xbf16>
  return %u : tensor<?x8x64xbf16>
}

// CHECK-LABEL: func @attention_with_slopes
func.func @attention_with_slopes(%q: tensor<1x256x8x64xbf16>, %k: tensor<1x512x2x64xbf16>, %s: tensor<8xf32>)
    -> tensor<1x256x8x64xbf16> {
  // CHECK: fp4.attention %{{.*}}, %{{.*}}, %{{.*}} slopes(%{{.*}} : tensor<8xf32>) scale 1.250000e-01 :
  %o = fp4.attention %q, %k, %k slopes(%s : tensor<8xf32>) scale 1.250000e-01
      : tensor<1x256x8x64xbf16>, tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16> -> tensor<1x256x8x64xbf16>
  return %o : tensor<1x256x8x64xbf16>
}

// CHECK-LABEL: func @attention_over_heads_of_pages
func.func @attention_over_heads_of_pages(%q: tensor<?x8x64xbf16>, %k: tensor<64x2x16x64xbf16>, %a: tensor<5xi32>,
                                         %n: tensor<4xi32>, %p: tensor<4x8xi32>) -> tensor<?x8x64xbf16> {
  // CHECK: fp4.attention %{{.*}}, %{{.*}}, %{{.*}} lengths(%{{.*}} : tensor<4xi32>) pages(%{{.*}} : tensor<4x8xi32>) heads_first query_offsets(%{{.*}} : tensor<5xi32>) scale 1.250000e-01 causal :
  %u = fp4.attention %q, %k, %k lengths(%n : tensor<4xi32>) pages(%p : tensor<4x8xi32>) heads_first
      query_offsets(%a : tensor<5xi32>) scale 1.250000e-01 causal
      : tensor<?x8x64xbf16>, tensor<64x2x16x64xbf16>, tensor<64x2x16x64xbf16> -> tensor<?x8x64xbf16>
  return %u : tensor<?x8x64xbf16>
}

// CHECK-LABEL: func @block_scales
!nq = tensor<2x100x4x128xf4E2M1FN>
!nk = tensor<2x192x2x128xf4E2M1FN>
!nv = tensor<2x2x64x192xf4E2M1FN>
!nqs = tensor<1024x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!nks = tensor<1024x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!nvs = tensor<512x12xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!nw = tensor<2x192x2x64xf8E4M3FN>
!no = tensor<2x100x4x64xbf16>
func.func @block_scales(%q: !nq, %k: !nk, %v: !nv, %w: !nw, %qs: !nqs, %ks: !nks, %vs: !nvs) {
  // CHECK: fp4.attention %{{.*}}, %{{.*}}, %{{.*}} block_scales(%[[QS:.*]], %[[KS:.*]], %{{.*}} : tensor<1024x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<1024x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<512x12xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) scale 1.000000e+00 :
  %0 = fp4.attention %q, %k, %v block_scales(%qs, %ks, %vs : !nqs, !nks, !nvs) scale 1.0 : !nq, !nk, !nv -> !no
  // CHECK: block_scales(%[[QS]], %[[KS]] : tensor<1024x8xf8E4M3FN
  %1 = fp4.attention %q, %k, %w block_scales(%qs, %ks : !nqs, !nks) scale 1.0 : !nq, !nk, !nw -> !no
  return
}
