// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s
// A thread that stores bytes rotates two heads, which have the angles of their token together, where such threads
// fill all SMs. Fewer heads have a thread each, and launches of the fewest overlap.

#all = affine_map<(i, j) -> (i, j)>
#half = affine_map<(i, j) -> (i, (j + 64) mod 128)>
#cosines = affine_map<(i, j) -> (i floordiv 16, j mod 64)>
// CHECK-LABEL: func @bytes(
// CHECK: fp4.dispatch = [#fp4.case<m = [1, 4224] : reduce_rows, threads = 64, rows_per_thread = 1, pdl = in_turn>, #fp4.case<m = [4225, 42239] : reduce_rows, threads = 128, rows_per_thread = 1>], fp4.plan = #fp4.plan<reduce_rows, threads = 64, rows_per_thread = 2, ctas_per_sm = 10>
func.func @bytes(%heads: tensor<?x128xbf16>, %positions: tensor<?x1xi64>, %table: tensor<4096x128xf32>) -> tensor<?x128xf8E4M3FN> {
  %c0 = arith.constant 0 : index
  %height = tensor.dim %heads, %c0 : tensor<?x128xbf16>
  %angles = tensor.gather %table[%positions] gather_dims([0]) : (tensor<4096x128xf32>, tensor<?x1xi64>) -> tensor<?x128xf32>
  %e = tensor.empty(%height) : tensor<?x128xf8E4M3FN>
  %y = linalg.generic {indexing_maps = [#all, #half, #cosines, #all], iterator_types = ["parallel", "parallel"]}
      ins(%heads, %heads, %angles : tensor<?x128xbf16>, tensor<?x128xbf16>, tensor<?x128xf32>) outs(%e : tensor<?x128xf8E4M3FN>) {
  ^bb0(%a: bf16, %b: bf16, %c: f32, %o: f8E4M3FN):
    %x = arith.extf %a : bf16 to f32
    %p = arith.extf %b : bf16 to f32
    %u = arith.mulf %x, %c : f32
    %v = arith.addf %u, %p : f32
    %r = arith.truncf %v : f32 to f8E4M3FN
    linalg.yield %r : f8E4M3FN
  } -> tensor<?x128xf8E4M3FN>
  return %y : tensor<?x128xf8E4M3FN>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#half = affine_map<(i, j) -> (i, (j + 64) mod 128)>
#cosines = affine_map<(i, j) -> (i floordiv 16, j mod 64)>
// Two bytes of an element take as long with one head, for which one case is left.
// CHECK-LABEL: func @wide(
// CHECK: fp4.dispatch = [#fp4.case<m = [1, 4224] : reduce_rows, threads = 64, {{.*}}pdl = in_turn>], fp4.plan = #fp4.plan<reduce_rows, threads = 128{{>|, rows_per_thread = 1>}}
func.func @wide(%heads: tensor<?x128xbf16>, %positions: tensor<?x1xi64>, %table: tensor<4096x128xf32>) -> tensor<?x128xbf16> {
  %c0 = arith.constant 0 : index
  %height = tensor.dim %heads, %c0 : tensor<?x128xbf16>
  %angles = tensor.gather %table[%positions] gather_dims([0]) : (tensor<4096x128xf32>, tensor<?x1xi64>) -> tensor<?x128xf32>
  %e = tensor.empty(%height) : tensor<?x128xbf16>
  %y = linalg.generic {indexing_maps = [#all, #half, #cosines, #all], iterator_types = ["parallel", "parallel"]}
      ins(%heads, %heads, %angles : tensor<?x128xbf16>, tensor<?x128xbf16>, tensor<?x128xf32>) outs(%e : tensor<?x128xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %c: f32, %o: bf16):
    %x = arith.extf %a : bf16 to f32
    %p = arith.extf %b : bf16 to f32
    %u = arith.mulf %x, %c : f32
    %v = arith.addf %u, %p : f32
    %r = arith.truncf %v : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<?x128xbf16>
  return %y : tensor<?x128xbf16>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#half = affine_map<(i, j) -> (i, (j + 64) mod 128)>
#cosines = affine_map<(i, j) -> (i floordiv 16, j mod 64)>
// Threads that rotate many heads to codes have four of them, and two up to ten waves of such threads.
// CHECK-LABEL: func @codes(
// CHECK: fp4.dispatch = [#fp4.case<m = [1, 4224] : reduce_rows, threads = 64, rows_per_thread = 1, pdl = in_turn>, #fp4.case<m = [4225, 25343] : reduce_rows, threads = 128, rows_per_thread = 1, ctas_per_sm = 5>, #fp4.case<m = [25344, 506880] : reduce_rows, threads = 64, rows_per_thread = 2, ctas_per_sm = 6>], fp4.plan = #fp4.plan<reduce_rows, threads = 64, rows_per_thread = 4, ctas_per_sm = 6>
func.func @codes(%heads: tensor<?x128xbf16>, %positions: tensor<?x1xi64>, %table: tensor<4096x128xf32>, %amax: tensor<f32>) -> (tensor<?x128xf4E2M1FN>, tensor<?x8xf8E4M3FN>) {
  %c0 = arith.constant 0 : index
  %height = tensor.dim %heads, %c0 : tensor<?x128xbf16>
  %angles = tensor.gather %table[%positions] gather_dims([0]) : (tensor<4096x128xf32>, tensor<?x1xi64>) -> tensor<?x128xf32>
  %e = tensor.empty(%height) : tensor<?x128xbf16>
  %y = linalg.generic {indexing_maps = [#all, #half, #cosines, #all], iterator_types = ["parallel", "parallel"]}
      ins(%heads, %heads, %angles : tensor<?x128xbf16>, tensor<?x128xbf16>, tensor<?x128xf32>) outs(%e : tensor<?x128xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %c: f32, %o: bf16):
    %x = arith.extf %a : bf16 to f32
    %p = arith.extf %b : bf16 to f32
    %u = arith.mulf %x, %c : f32
    %v = arith.addf %u, %p : f32
    %r = arith.truncf %v : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<?x128xbf16>
  %q, %s = fp4.quantize %y amax %amax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (tensor<?x128xbf16>, tensor<f32>) -> (tensor<?x128xf4E2M1FN>, tensor<?x8xf8E4M3FN>)
  return %q, %s : tensor<?x128xf4E2M1FN>, tensor<?x8xf8E4M3FN>
}
