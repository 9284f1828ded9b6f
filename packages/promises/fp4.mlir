!mxfp4 = !fp4.scaled<mxfp4, tensor<96x64xf4E2M1FN>, tensor<96x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!mxfp4_1 = !fp4.scaled<mxfp4, tensor<512x1024xf4E2M1FN>, tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!mxfp8_e4m3 = !fp4.scaled<mxfp8_e4m3, tensor<?x1024xf8E4M3FN>, tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!nvfp4 = !fp4.scaled<nvfp4, tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!nvfp4_1 = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!nvfp4_2 = !fp4.scaled<nvfp4, tensor<64x128xf4E2M1FN>, tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
module {
  func.func @nvfp4_linear(%arg0: tensor<?x1024xbf16>, %arg1: tensor<512x1024xbf16>, %arg2: tensor<1x512xf32>) -> tensor<?x512xbf16> {
    %0 = fp4.amax %arg0 : tensor<?x1024xbf16> -> tensor<f32>
    %1 = fp4.amax %arg1 : tensor<512x1024xbf16> -> tensor<f32>
    %data, %scales = fp4.quantize %arg0 amax %0 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (tensor<?x1024xbf16>, tensor<f32>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>)
    %data_0, %scales_1 = fp4.quantize %arg1 amax %1 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine_2_13>} : (tensor<512x1024xbf16>, tensor<f32>) -> (tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN>)
    %2 = fp4.swizzle_scales %scales : tensor<?x64xf8E4M3FN> -> tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
    %3 = fp4.swizzle_scales %scales_1 : tensor<512x64xf8E4M3FN> -> tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
    %4 = fp4.matmul_alpha %0, %1 : tensor<f32>, tensor<f32> -> tensor<f32>
    %5 = fp4.scaled %data, %2 : !nvfp4
    %6 = fp4.scaled %data_0, %3 : !nvfp4_1
    %7 = fp4.matmul %5, %6 alpha %4 : (!nvfp4, !nvfp4_1, tensor<f32>) -> tensor<?x512xbf16>
    %8 = fp4.matmul %5, %6 epilogue(%arg2) {
    ^bb0(%arg3: f32, %arg4: f32):
      %9 = arith.addf %arg3, %arg4 : f32
      fp4.yield %9 : f32
    } : (!nvfp4, !nvfp4_1, tensor<1x512xf32>) -> tensor<?x512xf32>
    return %7 : tensor<?x512xbf16>
  }
  func.func @rounded(%arg0: tensor<?x1024xf4E2M1FN>, %arg1: tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %arg2: tensor<512x1024xf4E2M1FN>, %arg3: tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x512xbf16> {
    %0 = fp4.scaled %arg0, %arg1 : !nvfp4
    %1 = fp4.scaled %arg2, %arg3 : !nvfp4_1
    %2 = fp4.matmul %0, %1 epilogue() {
    ^bb0(%arg4: f32):
      %3 = arith.truncf %arg4 : f32 to bf16
      fp4.yield %3 : bf16
    } : (!nvfp4, !nvfp4_1) -> tensor<?x512xbf16>
    return %2 : tensor<?x512xbf16>
  }
  func.func @mxfp4(%arg0: tensor<96x64xf32>) -> tensor<96x96xf32> {
    %data, %scales = fp4.quantize %arg0 {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>} : (tensor<96x64xf32>) -> (tensor<96x64xf4E2M1FN>, tensor<96x2xf8E8M0FNU>)
    %0 = fp4.swizzle_scales %scales : tensor<96x2xf8E8M0FNU> -> tensor<96x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
    %1 = fp4.scaled %data, %0 : !mxfp4
    %2 = fp4.matmul %1, %1 {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>} : (!mxfp4, !mxfp4) -> tensor<96x96xf32>
    return %2 : tensor<96x96xf32>
  }
  func.func @matmul_of_two_formats(%arg0: tensor<?x1024xf8E4M3FN>, %arg1: tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %arg2: tensor<512x1024xf4E2M1FN>, %arg3: tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x512xbf16> {
    %0 = fp4.scaled %arg0, %arg1 : !mxfp8_e4m3
    %1 = fp4.scaled %arg2, %arg3 : !mxfp4_1
    %2 = fp4.matmul %0, %1 : (!mxfp8_e4m3, !mxfp4_1) -> tensor<?x512xbf16>
    return %2 : tensor<?x512xbf16>
  }
  func.func @derived(%arg0: tensor<?x1024xf4E2M1FN>, %arg1: tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %arg2: tensor<512x1024xf4E2M1FN>, %arg3: tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %arg4: tensor<f32>) {
    %0 = fp4.scaled %arg0, %arg1 : !nvfp4
    %1 = fp4.scaled %arg2, %arg3 : !nvfp4_1
    %2:4 = fp4.matmul %0, %1 epilogue(%arg4) {
    ^bb0(%arg5: f32, %arg6: f32):
      %3 = arith.truncf %arg5 : f32 to bf16
      %4:2 = fp4.epilogue_quantize %3 amax %arg6 {recipe = #fp4.recipe<transformer_engine>} : (bf16, f32) -> (f4E2M1FN, f8E4M3FN)
      %5 = fp4.epilogue_amax %3 : bf16 -> f32
      fp4.yield %3, %4#0, %4#1, %5 : bf16, f4E2M1FN, f8E4M3FN, f32
    } : (!nvfp4, !nvfp4_1, tensor<f32>) -> (tensor<?x512xbf16>, tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>, tensor<f32>)
    return
  }
  func.func @dual(%arg0: tensor<?x1024xf4E2M1FN>, %arg1: tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %arg2: tensor<512x1024xf4E2M1FN>, %arg3: tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
    %0 = fp4.scaled %arg0, %arg1 : !nvfp4
    %1 = fp4.scaled %arg2, %arg3 : !nvfp4_1
    %2:2 = fp4.matmul %0, %1 with %1 epilogue() {
    ^bb0(%arg4: f32, %arg5: f32):
      %3 = arith.mulf %arg4, %arg5 : f32
      %4 = arith.truncf %3 : f32 to bf16
      %5:2 = fp4.epilogue_quantize %4 {recipe = #fp4.recipe<ocp_floor>} : (bf16) -> (f4E2M1FN, f8E8M0FNU)
      fp4.yield %5#0, %5#1 : f4E2M1FN, f8E8M0FNU
    } : (!nvfp4, !nvfp4_1, !nvfp4_1) -> (tensor<?x512xf4E2M1FN>, tensor<?x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
    return
  }
  func.func @fused(%arg0: tensor<64x128xf4E2M1FN>, %arg1: tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %arg2: tensor<f32>) {
    %0 = fp4.scaled %arg0, %arg1 : !nvfp4_2
    %1:6 = fp4.matmul %0, %0 with %0 alpha %arg2 alpha2 %arg2 epilogue(%arg2) {
    ^bb0(%arg3: f32, %arg4: f32, %arg5: f32):
      %2:4 = fp4.epilogue_quantize %arg3 amax %arg5 {outputs = #fp4.outputs<both>, recipe = #fp4.recipe<transformer_engine>} : (f32, f32) -> (f4E2M1FN, f8E4M3FN, f4E2M1FN, f8E4M3FN)
      %3 = fp4.epilogue_amax %arg3 : f32 -> f32
      fp4.yield %arg3, %2#0, %2#1, %2#2, %2#3, %3 : f32, f4E2M1FN, f8E4M3FN, f4E2M1FN, f8E4M3FN, f32
    } : (!nvfp4_2, !nvfp4_2, !nvfp4_2, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<64x64xf32>, tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>, tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<f32>)
    return
  }
  func.func @hadamard(%arg0: tensor<256x1024xbf16>) {
    %0 = fp4.hadamard %arg0 {dimension = 0 : i64} : tensor<256x1024xbf16> -> tensor<256x1024xbf16>
    %1 = fp4.hadamard %arg0 {sign_mask = 0 : i64, size = 32 : i64} : tensor<256x1024xbf16> -> tensor<256x1024xbf16>
    return
  }
  func.func @dequantize(%arg0: tensor<?x64xf4E2M1FN>, %arg1: tensor<?x4xf8E4M3FN>, %arg2: tensor<f32>) -> tensor<?x64xf32> {
    %0 = fp4.dequantize %arg0 scaled %arg1 amax %arg2 {format = #fp4.format<nvfp4>} : (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>, tensor<f32>) -> tensor<?x64xf32>
    return %0 : tensor<?x64xf32>
  }
  func.func @quantize_family(%arg0: tensor<64x32xbf16>, %arg1: tensor<f32>, %arg2: tensor<2xi64>) {
    %data, %scales, %transposed:2 = fp4.quantize %arg0 amax %arg1 rng %arg2 {block = array<i64: 16, 16>, format = #fp4.format<nvfp4>, outputs = #fp4.outputs<both>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>} : (tensor<64x32xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>, tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>)
    %data_0, %scales_1 = fp4.quantize %arg0 amax %arg1 {format = #fp4.format<nvfp4>, outputs = #fp4.outputs<columnwise>, recipe = #fp4.recipe<transformer_engine>} : (tensor<64x32xbf16>, tensor<f32>) -> (tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>)
    return
  }
  func.func @recipes(%arg0: tensor<4x40xbf16>, %arg1: tensor<f32>) {
    %data, %scales = fp4.quantize %arg0 amax %arg1 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine, guard = none, e4m3_max = 256, scale_floor = 0.015625>} : (tensor<4x40xbf16>, tensor<f32>) -> (tensor<4x40xf4E2M1FN>, tensor<4x3xf8E4M3FN>)
    %data_0, %scales_1 = fp4.quantize %arg0 amax %arg1 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<mslk, scale_floor = 1.0e-05>} : (tensor<4x40xbf16>, tensor<f32>) -> (tensor<4x40xf4E2M1FN>, tensor<4x3xf8E4M3FN>)
    %data_2, %scales_3 = fp4.quantize %arg0 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : (tensor<4x40xbf16>) -> (tensor<4x40xf4E2M1FN>, tensor<4x3xf8E4M3FN>)
    %0 = fp4.dequantize %data scaled %scales amax %arg1 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<four_over_six>} : (tensor<4x40xf4E2M1FN>, tensor<4x3xf8E4M3FN>, tensor<f32>) -> tensor<4x40xf32>
    %1 = fp4.amax %arg0 {nan = #fp4.nan_policy<propagate>} : tensor<4x40xbf16> -> tensor<f32>
    return
  }
  func.func @transforms(%arg0: tensor<256x1024xbf16>, %arg1: tensor<2xi64>) {
    %before, %after = fp4.hadamard_amax %arg0 {dimension = 0 : i64} : tensor<256x1024xbf16> -> tensor<f32>, tensor<f32>
    %data, %scales, %transposed:2 = fp4.quantize %arg0 amax %before columnwise_amax %after rng %arg1 {columnwise_hadamard = #fp4.hadamard<size = 16, sign_mask = 0xD7E8>, format = #fp4.format<nvfp4>, outputs = #fp4.outputs<both>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>} : (tensor<256x1024xbf16>, tensor<f32>, tensor<f32>, tensor<2xi64>) -> (tensor<256x1024xf4E2M1FN>, tensor<256x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<1024x256xf4E2M1FN>, tensor<1024x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    %data_0, %scales_1 = fp4.quantize %arg0 amax %after rng %arg1 {format = #fp4.format<nvfp4>, hadamard = #fp4.hadamard<size = 128, sign_mask = 0x0, arithmetic = tensor_core>, philox = #fp4.philox<transformer_engine>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>} : (tensor<256x1024xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<256x1024xf4E2M1FN>, tensor<256x64xf8E4M3FN>)
    %0 = fp4.hadamard %arg0 {arithmetic = #fp4.hadamard_arithmetic<tensor_core>, size = 64 : i64} : tensor<256x1024xbf16> -> tensor<256x1024xbf16>
    return
  }
  func.func @unswizzle(%arg0: tensor<256x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<256x64xf8E4M3FN> {
    %0 = fp4.unswizzle_scales %arg0 : tensor<256x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<256x64xf8E4M3FN>
    return %0 : tensor<256x64xf8E4M3FN>
  }
  func.func @gather(%arg0: tensor<100x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %arg1: tensor<60x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %arg2: tensor<2048x64xf4E2M1FN>) {
    %0 = fp4.stack_scales %arg0, %arg1 : (tensor<100x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<60x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<160x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
    %1 = fp4.interleave_shards %arg2 {shards = 4 : i64} : tensor<2048x64xf4E2M1FN> -> tensor<512x256xf4E2M1FN>
    return
  }
  func.func @route(%arg0: tensor<?x256xf32>, %arg1: tensor<?x256xf32>) {
    %values, %ids = fp4.top_k %arg0 weights %arg1 {k = 8 : i64, num_groups = 8 : i64, top_groups = 4 : i64} : tensor<?x256xf32>, tensor<?x256xf32> -> tensor<?x8xf32>, tensor<?x8xi32>
    %values_0, %ids_1 = fp4.top_k %arg1 {k = 1 : i64} : tensor<?x256xf32> -> tensor<?x1xf32>, tensor<?x1xi32>
    %offsets, %rows, %tokens = fp4.expert_order %ids {experts = 256 : i64, multiple = 128 : i64} : tensor<?x8xi32> -> tensor<257xi64>, tensor<?x8xi64>, tensor<?xi64>
    return
  }
  func.func @groups(%arg0: tensor<192x512xbf16>) {
    %0 = fp4.amax %arg0 {groups = array<i64: 130, 0, 62>} : tensor<192x512xbf16> -> tensor<3xf32>
    %data, %scales = fp4.quantize %arg0 amax %0 {format = #fp4.format<nvfp4>, groups = array<i64: 130, 0, 62>, recipe = #fp4.recipe<transformer_engine>} : (tensor<192x512xbf16>, tensor<3xf32>) -> (tensor<192x512xf4E2M1FN>, tensor<3072x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    %before, %after = fp4.hadamard_amax %arg0 {dimension = 0 : i64, groups = array<i64: 128, 64>} : tensor<192x512xbf16> -> tensor<2xf32>, tensor<2xf32>
    %data_0, %scales_1, %transposed:2 = fp4.quantize %arg0 amax %before columnwise_amax %after {columnwise_hadamard = #fp4.hadamard<size = 16, sign_mask = 0xD7E8>, format = #fp4.format<nvfp4>, groups = array<i64: 128, 64>, outputs = #fp4.outputs<both>, recipe = #fp4.recipe<transformer_engine>} : (tensor<192x512xbf16>, tensor<2xf32>, tensor<2xf32>) -> (tensor<192x512xf4E2M1FN>, tensor<192x32xf8E4M3FN>, tensor<512x192xf4E2M1FN>, tensor<1536x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    return
  }
  func.func @per_row(%arg0: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
    %0 = fp4.amax %arg0 {per_row} : tensor<?x64xbf16> -> tensor<?xf32>
    %data, %scales = fp4.quantize %arg0 amax %0 {format = #fp4.format<nvfp4>, per_row, recipe = #fp4.recipe<transformer_engine>} : (tensor<?x64xbf16>, tensor<?xf32>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>)
    %1 = fp4.dequantize %data scaled %scales amax %0 {format = #fp4.format<nvfp4>, per_row} : (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>, tensor<?xf32>) -> tensor<?x64xbf16>
    return %1 : tensor<?x64xbf16>
  }
  func.func @wide(%arg0: tensor<?x64xbf16>) -> (tensor<?x64xf32>, tensor<?x64xf6E2M3FN>) {
    %data, %scales = fp4.quantize %arg0 {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_rceil>} : (tensor<?x64xbf16>) -> (tensor<?x64xf8E4M3FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
    %data_0, %scales_1 = fp4.quantize %arg0 {format = #fp4.format<mxfp6_e2m3>, recipe = #fp4.recipe<mxfp6_e2m3_floor, exponent = even>} : (tensor<?x64xbf16>) -> (tensor<?x64xf6E2M3FN>, tensor<?x2xf8E8M0FNU>)
    %0 = fp4.dequantize %data_0 scaled %scales_1 {format = #fp4.format<mxfp6_e2m3>} : (tensor<?x64xf6E2M3FN>, tensor<?x2xf8E8M0FNU>) -> tensor<?x64xf32>
    return %0, %data_0 : tensor<?x64xf32>, tensor<?x64xf6E2M3FN>
  }
  func.func @alpha(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = fp4.matmul_alpha %arg0, %arg1 {rhs_recipe = #fp4.recipe<four_over_six>} : tensor<f32>, tensor<f32> -> tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @alphas(%arg0: tensor<?xf32>, %arg1: tensor<8xf32>, %arg2: tensor<f32>) -> (tensor<?x1xf32>, tensor<1x8xf32>) {
    %0 = fp4.matmul_alpha %arg0, %arg2 : tensor<?xf32>, tensor<f32> -> tensor<?x1xf32>
    %1 = fp4.matmul_alpha %arg2, %arg1 : tensor<f32>, tensor<8xf32> -> tensor<1x8xf32>
    return %0, %1 : tensor<?x1xf32>, tensor<1x8xf32>
  }
  func.func @weights(%arg0: tensor<512x1024xf4E2M1FN>, %arg1: tensor<512x64xf8E4M3FN>) -> tensor<4x16x4608xi8, #fp4.weight_layout<wgmma>> {
    %0 = fp4.prepack %arg0 scaled %arg1 {format = #fp4.format<nvfp4>} : (tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN>) -> tensor<4x16x4608xi8, #fp4.weight_layout<wgmma>>
    return %0 : tensor<4x16x4608xi8, #fp4.weight_layout<wgmma>>
  }
  func.func @ragged_weights(%arg0: tensor<400x176xf4E2M1FN>, %arg1: tensor<400x11xf8E4M3FN>) -> tensor<400x176xf4E2M1FN> {
    %0 = fp4.prepack %arg0 scaled %arg1 {format = #fp4.format<nvfp4>, groups = 2 : i64} : (tensor<400x176xf4E2M1FN>, tensor<400x11xf8E4M3FN>) -> tensor<4x3x4608xi8, #fp4.weight_layout<wgmma>>
    %data, %scales = fp4.unprepack %0 {format = #fp4.format<nvfp4>, groups = 2 : i64} : (tensor<4x3x4608xi8, #fp4.weight_layout<wgmma>>) -> (tensor<400x176xf4E2M1FN>, tensor<400x11xf8E4M3FN>)
    return %data : tensor<400x176xf4E2M1FN>
  }
  func.func @plain_weights(%arg0: tensor<4x16x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<512x1024xf4E2M1FN> {
    %data, %scales = fp4.unprepack %arg0 {format = #fp4.format<nvfp4>} : (tensor<4x16x4608xi8, #fp4.weight_layout<wgmma>>) -> (tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN>)
    return %data : tensor<512x1024xf4E2M1FN>
  }
  func.func @groups_of_the_device(%arg0: tensor<192x512xbf16>, %arg1: tensor<4xi64>, %arg2: tensor<3x2xi64>, %arg3: tensor<192x32xf8E4M3FN>) -> (tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
    %0 = fp4.amax %arg0 offsets %arg1 : tensor<192x512xbf16>, tensor<4xi64> -> tensor<3xf32>
    %data, %scales = fp4.quantize %arg0 amax %0 offsets %arg2 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, unspecified_rows} : (tensor<192x512xbf16>, tensor<3xf32>, tensor<3x2xi64>) -> (tensor<192x512xf4E2M1FN>, tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    %1 = fp4.swizzle_scales %arg3 offsets %arg1 : tensor<192x32xf8E4M3FN>, tensor<4xi64> -> tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
    return %scales, %1 : tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  }
  func.func @tokens_of_experts(%arg0: tensor<192x512xbf16>, %arg1: tensor<4xi64>) -> (tensor<192x512xf4E2M1FN>, tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
    %0 = fp4.amax %arg0 offsets %arg1 : tensor<192x512xbf16>, tensor<4xi64> -> tensor<3xf32>
    %data, %scales = fp4.quantize %arg0 amax %0 offsets %arg1 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (tensor<192x512xbf16>, tensor<3xf32>, tensor<4xi64>) -> (tensor<192x512xf4E2M1FN>, tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    return %data, %scales : tensor<192x512xf4E2M1FN>, tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  }
  func.func @attention(%arg0: tensor<1x256x8x64xbf16>, %arg1: tensor<1x512x2x64xbf16>, %arg2: tensor<1x512x2x64xbf16>) -> tensor<1x256x8x64xbf16> {
    %result = fp4.attention %arg0, %arg1, %arg2 scale 1.250000e-01 causal : tensor<1x256x8x64xbf16>, tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16> -> tensor<1x256x8x64xbf16>
    return %result : tensor<1x256x8x64xbf16>
  }
  func.func @attention_of_windows(%arg0: tensor<1x256x8x64xbf16>, %arg1: tensor<1x512x2x64xbf16>, %arg2: tensor<1x512x2x64xbf16>, %arg3: tensor<8xf32>) -> (tensor<1x256x8x64xbf16>, tensor<1x256x8xf32>) {
    %result, %lse = fp4.attention %arg0, %arg1, %arg2 sinks(%arg3 : tensor<8xf32>) scale 1.250000e-01 softcap 5.000000e+01 causal window 128 : tensor<1x256x8x64xbf16>, tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16> -> tensor<1x256x8x64xbf16>, tensor<1x256x8xf32>
    return %result, %lse : tensor<1x256x8x64xbf16>, tensor<1x256x8xf32>
  }
  func.func @attention_over_a_cache(%arg0: tensor<2x1x32x128xbf16>, %arg1: tensor<64x16x8x128xbf16>, %arg2: tensor<64x16x8x128xbf16>, %arg3: tensor<2xi32>, %arg4: tensor<2x8xi32>) -> tensor<2x1x32x128xbf16> {
    %result = fp4.attention %arg0, %arg1, %arg2 lengths(%arg3 : tensor<2xi32>) pages(%arg4 : tensor<2x8xi32>) scale 0.0883883535 causal : tensor<2x1x32x128xbf16>, tensor<64x16x8x128xbf16>, tensor<64x16x8x128xbf16> -> tensor<2x1x32x128xbf16>
    return %result : tensor<2x1x32x128xbf16>
  }
  func.func @attention_over_codes(%arg0: tensor<2x1x32x128xbf16>, %arg1: tensor<64x16x8x128xf4E2M1FN>, %arg2: tensor<64x16x8x128xf4E2M1FN>, %arg3: tensor<64x16x8x8xf8E4M3FN>, %arg4: tensor<64x16x8x8xf8E4M3FN>, %arg5: tensor<1xf32>, %arg6: tensor<1xf32>, %arg7: tensor<2xi32>, %arg8: tensor<2x8xi32>) -> tensor<2x1x32x128xbf16> {
    %result = fp4.attention %arg0, %arg1, %arg2 scales(%arg3, %arg4 : tensor<64x16x8x8xf8E4M3FN>, tensor<64x16x8x8xf8E4M3FN>) factors(%arg5, %arg6 : tensor<1xf32>, tensor<1xf32>) lengths(%arg7 : tensor<2xi32>) pages(%arg8 : tensor<2x8xi32>) scale 0.0883883535 : tensor<2x1x32x128xbf16>, tensor<64x16x8x128xf4E2M1FN>, tensor<64x16x8x128xf4E2M1FN> -> tensor<2x1x32x128xbf16>
    return %result : tensor<2x1x32x128xbf16>
  }
  func.func @attention_of_packed_sequences(%arg0: tensor<?x8x64xbf16>, %arg1: tensor<?x2x64xbf16>, %arg2: tensor<?x2x64xbf16>, %arg3: tensor<5xi32>, %arg4: tensor<5xi32>) -> tensor<?x8x64xbf16> {
    %result = fp4.attention %arg0, %arg1, %arg2 query_offsets(%arg3 : tensor<5xi32>) key_offsets(%arg4 : tensor<5xi32>) scale 1.250000e-01 causal : tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16> -> tensor<?x8x64xbf16>
    return %result : tensor<?x8x64xbf16>
  }
  func.func @attention_with_slopes(%arg0: tensor<1x256x8x64xbf16>, %arg1: tensor<1x512x2x64xbf16>, %arg2: tensor<8xf32>) -> tensor<1x256x8x64xbf16> {
    %result = fp4.attention %arg0, %arg1, %arg1 slopes(%arg2 : tensor<8xf32>) scale 1.250000e-01 : tensor<1x256x8x64xbf16>, tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16> -> tensor<1x256x8x64xbf16>
    return %result : tensor<1x256x8x64xbf16>
  }
  func.func @attention_over_heads_of_pages(%arg0: tensor<?x8x64xbf16>, %arg1: tensor<64x2x16x64xbf16>, %arg2: tensor<5xi32>, %arg3: tensor<4xi32>, %arg4: tensor<4x8xi32>) -> tensor<?x8x64xbf16> {
    %result = fp4.attention %arg0, %arg1, %arg1 lengths(%arg3 : tensor<4xi32>) pages(%arg4 : tensor<4x8xi32>) heads_first query_offsets(%arg2 : tensor<5xi32>) scale 1.250000e-01 causal : tensor<?x8x64xbf16>, tensor<64x2x16x64xbf16>, tensor<64x2x16x64xbf16> -> tensor<?x8x64xbf16>
    return %result : tensor<?x8x64xbf16>
  }
}

