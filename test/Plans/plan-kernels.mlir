// RUN: fp4-opt %s -split-input-file -fp4-set-target -fp4-plan-kernels | FileCheck %s --check-prefixes=CHECK,SM100
// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefixes=CHECK,SM90
// The plans of every kind of operation on both kinds of targets. A second run changes nothing:
// RUN: fp4-opt %s -split-input-file -fp4-set-target -fp4-plan-kernels -fp4-plan-kernels | FileCheck %s --check-prefixes=CHECK,SM100

// CHECK-LABEL: func @reductions
func.func @reductions(%x: tensor<64x32xbf16>) {
  // CHECK: fp4.amax {{.*}}#fp4.plan<reduce_grid, threads = 512, items_per_thread = 1, grid = 4>
  %a = fp4.amax %x : tensor<64x32xbf16> -> tensor<f32>
  // CHECK: fp4.amax {{.*}}#fp4.plan<reduce_rows, threads = 256>
  %r = fp4.amax %x {per_row} : tensor<64x32xbf16> -> tensor<64xf32>
  // CHECK: fp4.amax {{.*}}#fp4.plan<stream_items, threads = 256, items_per_thread = 4>
  %c = fp4.amax %x {per_column} : tensor<64x32xbf16> -> tensor<32xf32>
  // CHECK: fp4.hadamard_amax {{.*}}#fp4.plan<reduce_grid, threads = 512, items_per_thread = 1, grid = 2>
  %b, %h = fp4.hadamard_amax %x : tensor<64x32xbf16> -> tensor<f32>, tensor<f32>
  // CHECK: fp4.hadamard_amax {{.*}}#fp4.plan<reduce_grid, threads = 256, items_per_thread = 1, grid = 1>
  %bc, %hc = fp4.hadamard_amax %x {dimension = 0 : i64} : tensor<64x32xbf16> -> tensor<f32>, tensor<f32>
  return
}

// -----

// CHECK-LABEL: func @quantizers
func.func @quantizers(%x: tensor<64x32xbf16>, %f: tensor<64x32xf32>, %a: tensor<f32>, %seed: tensor<2xi64>, %two: tensor<2xf32>) {
  // CHECK: fp4.quantize {{.*}}#fp4.plan<stream_blocks, threads = 256, blocks_per_thread = 1>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<64x32xbf16>, tensor<f32>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  // Each thread transforms its blocks.
  // CHECK: fp4.quantize {{.*}}#fp4.plan<stream_blocks, threads = 128, blocks_per_thread = 2>
  %q1, %s1 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, hadamard = #fp4.hadamard<>}
      : (tensor<64x32xbf16>, tensor<f32>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  // Two candidate scales, without an instruction for E2M1.
  // SM90: fp4.quantize {{.*}}#fp4.plan<stream_blocks, threads = 128, blocks_per_thread = 2>
  // SM100: fp4.quantize {{.*}}#fp4.plan<stream_blocks, threads = 256, blocks_per_thread = 1>
  %qf, %sf = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<four_over_six>}
      : (tensor<64x32xbf16>, tensor<f32>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  // As many blocks as the target's registers allow where blocks are plain, else three or two.
  // SM100: fp4.quantize {{.*}}#fp4.plan<tile_quantize, threads = 256, ctas_per_sm = 3>
  // SM90: fp4.quantize {{.*}}#fp4.plan<tile_quantize, threads = 256, ctas_per_sm = 4>
  %q2, %s2 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<columnwise>}
      : (tensor<64x32xbf16>, tensor<f32>) -> (tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>)
  // CHECK: fp4.quantize {{.*}}#fp4.plan<tile_quantize, threads = 256, ctas_per_sm = 3>
  %q3, %s3 = fp4.quantize %f amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<columnwise>}
      : (tensor<64x32xf32>, tensor<f32>) -> (tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>)
  // CHECK: fp4.quantize {{.*}}#fp4.plan<tile_quantize, threads = 256, ctas_per_sm = 3>
  %q4, %s4 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, block = array<i64: 16, 16>}
      : (tensor<64x32xbf16>, tensor<f32>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  // Blocks of 32 that are rounded stochastically take more registers without an instruction for it.
  // SM100: fp4.quantize {{.*}}#fp4.plan<tile_quantize, threads = 256, ctas_per_sm = 3>
  // SM90: fp4.quantize {{.*}}#fp4.plan<tile_quantize, threads = 256, ctas_per_sm = 2>
  %q5, %s5 = fp4.quantize %x rng %seed {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, rounding = #fp4.rounding<stochastic>, outputs = #fp4.outputs<columnwise>}
      : (tensor<64x32xbf16>, tensor<2xi64>) -> (tensor<32x64xf4E2M1FN>, tensor<32x2xf8E8M0FNU>)
  // SM100: fp4.quantize {{.*}}#fp4.plan<tile_quantize, threads = 256, ctas_per_sm = 3>
  // SM90: fp4.quantize {{.*}}#fp4.plan<tile_quantize, threads = 256, ctas_per_sm = 4>
  %q6, %s6 = fp4.quantize %x amax %two {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 32, 32>}
      : (tensor<64x32xbf16>, tensor<2xf32>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  // CHECK: fp4.dequantize {{.*}}#fp4.plan<stream_blocks, threads = 256, blocks_per_thread = 1>
  %y = fp4.dequantize %q scaled %s amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>, tensor<f32>) -> tensor<64x32xbf16>
  return
}

// -----

// CHECK-LABEL: func @items
func.func @items(%x: tensor<64x32xbf16>, %s: tensor<64x4xf8E4M3FN>, %a: tensor<f32>) {
  // The lanes of a transform wait for each other.
  // CHECK: fp4.hadamard {{.*}}#fp4.plan<stream_items, threads = 256, items_per_thread = 1>
  %h = fp4.hadamard %x : tensor<64x32xbf16> -> tensor<64x32xbf16>
  // CHECK: fp4.swizzle_scales {{.*}}#fp4.plan<stream_items, threads = 256, items_per_thread = 4>
  %t = fp4.swizzle_scales %s : tensor<64x4xf8E4M3FN> -> tensor<64x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  // CHECK: fp4.unswizzle_scales {{.*}}#fp4.plan<stream_items, threads = 256, items_per_thread = 4>
  %u = fp4.unswizzle_scales %t : tensor<64x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<64x4xf8E4M3FN>
  // CHECK: fp4.stack_scales {{.*}}#fp4.plan<stream_items, threads = 256, items_per_thread = 4>
  %k = fp4.stack_scales %s, %s : (tensor<64x4xf8E4M3FN>, tensor<64x4xf8E4M3FN>) -> tensor<128x4xf8E4M3FN>
  // CHECK: fp4.matmul_alpha {{.*}}#fp4.plan<stream_items, threads = 256, items_per_thread = 4>
  %p = fp4.matmul_alpha %a, %a : tensor<f32>, tensor<f32> -> tensor<f32>
  return
}
