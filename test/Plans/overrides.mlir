// A field that a program sets is kept, then comes the field of the option, then the decision of the pass.
// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels | FileCheck %s --check-prefixes=CHECK,OWN
// RUN: fp4-opt %s -fp4-set-target "-fp4-plan-kernels=plans={tile_gemm, tile = [128, 256, 256]; reduce_grid, threads = 64}" \
// RUN:   | FileCheck %s --check-prefixes=CHECK,ASKED
// The short options of fp4-opt and of fp4-runner give the same:
// RUN: fp4-opt %s --compile-to=planned "--plan=tile_gemm, tile = [128, 256, 256]" "--plan=reduce_grid, threads = 64" \
// RUN:   | FileCheck %s --check-prefixes=CHECK,ASKED
// RUN: fp4-runner %s --emit=mlir --compile-to=planned --plan "tile_gemm, tile = [128, 256, 256]" --plan "reduce_grid, threads = 64" \
// RUN:   | FileCheck %s --check-prefixes=CHECK,ASKED
// RUN: not fp4-opt %s -fp4-set-target "-fp4-plan-kernels=plans={reduce_grid, threads = 64; stream, threads = 64}" 2>&1 | FileCheck %s --check-prefix=TEXT
// TEXT: error: option 'plans' must list plans, but got 'stream, threads = 64': unknown family of kernels 'stream'
// TEXT-NEXT: note: known: tile_gemm,
// Factors of split-K and sizes other than m are the program's:
// RUN: not fp4-opt %s -fp4-set-target "-fp4-plan-kernels=plans={m = [1, 16], split_k = 2 : tile_gemm}" 2>&1 | FileCheck %s --check-prefix=SPLIT
// SPLIT: error: option 'plans' must list plans, but got 'm = [1, 16], split_k = 2 : tile_gemm': split_k is no field of a plan
// SPLIT-NEXT: note: give the matmul work = #fp4.work<split_k = 2>, for example
// RUN: not fp4-opt %s -fp4-set-target "-fp4-plan-kernels=plans={n = [1, 16] : tile_gemm}" 2>&1 | FileCheck %s --check-prefix=GUARD
// GUARD: error: option 'plans' must list plans, but got 'n = [1, 16] : tile_gemm': guards must be ranges of m
// GUARD-NEXT: note: give plans by n, k and k_unit in 'dispatch' of the matmul
// A plan that no kernel has is no error, because several programs may share their options, but it is said:
// RUN: fp4-opt %s -fp4-set-target "-fp4-plan-kernels=plans={m = [1, 16] : tile_gemm, tile = [128, 256, 256]; tile_transform, stages = 2; reduce_grid, threads = 64}" 2>&1 >/dev/null \
// RUN:   | FileCheck %s --check-prefix=UNUSED --implicit-check-not=warning:
// The program has its own threads (lost.mlir).
// UNUSED: warning: fp4.plan of the program wins over the plan 'reduce_grid, threads = 64' of the options in: threads
// UNUSED: warning: the plan 'm = [1, 16] : tile_gemm, tile = [128, 256, 256]' is for no kernel of this program
// UNUSED: note: plans with a guard of m are for GEMMs whose rows are dynamic and of no groups: leave the guard out
// UNUSED: warning: the plan 'tile_transform, stages = 2' is for no kernel of this program
// UNUSED: note: no kernel is of its family; --emit=mlir --compile-to=planned shows the plans of all
// The lowering obeys:
// RUN: fp4-opt %s --compile-to=tiles | FileCheck %s --check-prefix=TILES

!sa = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !sa>
// CHECK-LABEL: func @products
// TILES-DAG: gpu.func @kernel{{.*}}pipe.max_accumulators = 1 : i64, pipe.max_stages = 3 : i64
// TILES-DAG: pipe.accumulator : !pipe.tmem<128x192xf32>
// TILES-DAG: schedule #pipe.static_persistent<panels<4>>
func.func @products(%a: tensor<256x256xf4E2M1FN>, %s: !sa) -> (tensor<256x256xbf16>, tensor<256x256xf32>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  // OWN: fp4.matmul {{.*}}tile = [256, 64, 256], cluster = [2, 1], pair, schedule = #pipe.static_persistent<along_m>
  // ASKED: fp4.matmul {{.*}}tile = [128, 256, 256], store = tma, schedule = #pipe.static_persistent<along_m>
  %y = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<256x256xbf16>
  // CHECK: fp4.matmul {{.*}}tile = [128, 192, 256], store = tma, schedule = #pipe.static_persistent<panels<4>>
  %z = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 192, 256], schedule = #pipe.static_persistent<panels<4>>, stages = 3, accumulators = 1>}
      : (!operand, !operand) -> tensor<256x256xf32>
  return %y, %z : tensor<256x256xbf16>, tensor<256x256xf32>
}

// CHECK-LABEL: func @streams
// TILES-DAG: gpu.func @kernel{{.*}}known_block_size = array<i32: 512, 1, 1>{{.*}}nvvm.minctasm = 2
// TILES-DAG: gpu.func @kernel{{.*}}known_block_size = array<i32: 128, 1, 1>
func.func @streams(%x: tensor<64x32xbf16>, %a: tensor<f32>)
    -> (tensor<f32>, tensor<f32>, tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>, tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>) {
  // OWN: fp4.amax {{.*}}#fp4.plan<reduce_grid, threads = 512, items_per_thread = 1, grid = 4>
  // ASKED: fp4.amax {{.*}}#fp4.plan<reduce_grid, threads = 64, items_per_thread = 1, grid = 4>
  %b = fp4.amax %x : tensor<64x32xbf16> -> tensor<f32>
  // CHECK: fp4.amax {{.*}}#fp4.plan<reduce_grid, threads = 128, items_per_thread = 2, grid = 1>
  %c = fp4.amax %x {nan = #fp4.nan_policy<propagate>, fp4.plan = #fp4.plan<reduce_grid, threads = 128, items_per_thread = 2, grid = 1>}
      : tensor<64x32xbf16> -> tensor<f32>
  // CHECK: fp4.quantize {{.*}}#fp4.plan<stream_blocks, threads = 512, blocks_per_thread = 1, ctas_per_sm = 2, cache_hints>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      fp4.plan = #fp4.plan<stream_blocks, threads = 512, ctas_per_sm = 2, cache_hints>}
      : (tensor<64x32xbf16>, tensor<f32>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  // The tile quantizer writes rows too.
  // CHECK: fp4.quantize {{.*}}#fp4.plan<tile_quantize, threads = 256, ctas_per_sm = 1>
  %q1, %s1 = fp4.quantize %x amax %b {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      fp4.plan = #fp4.plan<tile_quantize, ctas_per_sm = 1>}
      : (tensor<64x32xbf16>, tensor<f32>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  return %b, %c, %q, %s, %q1, %s1 : tensor<f32>, tensor<f32>, tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>, tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>
}
