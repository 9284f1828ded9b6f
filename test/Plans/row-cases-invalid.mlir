// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels -verify-diagnostics
// Cases of the program must fit as its other plans. Cases that fit are in row-cases.mlir.

func.func @rows(%y: tensor<?x512xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>) {
  %a = fp4.amax %y {per_row} : tensor<?x512xf32> -> tensor<?xf32>
  // expected-error @+2 {{must have a plan whose 'rows_per_thread' is at most 4, but got 40}}
  // expected-note @+1 {{leave 'rows_per_thread' out, and fp4-plan-kernels decides it}}
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, rows_per_thread = 40>], fp4.plan = #fp4.plan<reduce_rows, threads = 128>} : (tensor<?x512xf32>, tensor<?xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>)
  return %q, %s : tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>
}

// -----

func.func @threads(%y: tensor<?x512xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>) {
  %a = fp4.amax %y {per_row} : tensor<?x512xf32> -> tensor<?xf32>
  // expected-error @+2 {{must have a plan whose 'threads' are a multiple of 32 up to 1024 on sm_90a, but got 2048}}
  // expected-note @+1 {{leave 'threads' out, and fp4-plan-kernels decides it}}
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 2048>], fp4.plan = #fp4.plan<reduce_rows, threads = 128>} : (tensor<?x512xf32>, tensor<?xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>)
  return %q, %s : tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>
}

// -----

func.func @odd(%y: tensor<?x512xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>) {
  %a = fp4.amax %y {per_row} : tensor<?x512xf32> -> tensor<?xf32>
  // expected-error @+2 {{must have a plan whose 'threads' are a multiple of 32 up to 1024 on sm_90a, but got 100}}
  // expected-note @+1 {{leave 'threads' out, and fp4-plan-kernels decides it}}
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 100>], fp4.plan = #fp4.plan<reduce_rows, threads = 128>} : (tensor<?x512xf32>, tensor<?xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>)
  return %q, %s : tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>
}

// -----

func.func @cluster(%y: tensor<?x512xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>) {
  %a = fp4.amax %y {per_row} : tensor<?x512xf32> -> tensor<?xf32>
  // expected-error @+2 {{must have a plan whose 'cluster' is [1, n] with n up to 16 on sm_90a, but got [1, 64]}}
  // expected-note @+1 {{leave 'cluster' out, and fp4-plan-kernels decides it}}
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 32, cluster = [1, 64]>], fp4.plan = #fp4.plan<reduce_rows, threads = 128>} : (tensor<?x512xf32>, tensor<?xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>)
  return %q, %s : tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>
}

// -----

func.func @static(%y: tensor<7x512xf32>) -> (tensor<7x512xf4E2M1FN>, tensor<7x32xf8E4M3FN>) {
  %a = fp4.amax %y {per_row} : tensor<7x512xf32> -> tensor<7xf32>
  // expected-error @+2 {{must have one plan for all rows, because its rows are static, but got}}
  // expected-note @+1 {{remove the attribute fp4.dispatch}}
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 64>], fp4.plan = #fp4.plan<reduce_rows, threads = 128>} : (tensor<7x512xf32>, tensor<7xf32>) -> (tensor<7x512xf4E2M1FN>, tensor<7x32xf8E4M3FN>)
  return %q, %s : tensor<7x512xf4E2M1FN>, tensor<7x32xf8E4M3FN>
}

// -----

// A quantizer of no prologues has blocks, and no teams of threads for its rows.
func.func @stream(%y: tensor<?x512xf32>, %a: tensor<?xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>) {
  // expected-error @+2 {{must have cases of its kernel's family stream_blocks, but got reduce_rows}}
  // expected-note @+1 {{plans of a kernel differ by rows in all but the family}}
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 64>]} : (tensor<?x512xf32>, tensor<?xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>)
  return %q, %s : tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>
}

// -----

// Tiles of both orientations have one plan.
func.func @tiles(%y: tensor<?x512xf32>, %a: tensor<f32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>) {
  // expected-error @+2 {{must have one plan for all rows, because its kernel is of family tile_quantize, but got}}
  // expected-note @+1 {{remove the attribute fp4.dispatch}}
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, fp4.dispatch = [#fp4.case<m = [1, 16] : stream_blocks, threads = 64>], fp4.plan = #fp4.plan<tile_quantize>} : (tensor<?x512xf32>, tensor<f32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>)
  return %q, %s : tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>
}

// -----

// Two launches may take the place of a quantizer with its amax.
func.func @amax(%y: tensor<?x512xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>) {
  %a = fp4.amax %y : tensor<?x512xf32> -> tensor<f32>
  // expected-error @+2 {{must have one plan for all rows, because its kernel has other work beside its rows, but got}}
  // expected-note @+1 {{remove the attribute fp4.dispatch}}
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, fp4.dispatch = [#fp4.case<m = [1, 16] : stream_blocks, threads = 64>]} : (tensor<?x512xf32>, tensor<f32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>)
  return %q, %s : tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>
}

// -----

func.func @elements(%g: tensor<7x512xbf16>, %u: tensor<7x512xbf16>) -> tensor<7x512xbf16> {
  // expected-error @+2 {{must have one plan for all rows, because its rows are static, but got}}
  // expected-note @+1 {{remove the attribute fp4.dispatch}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%g, %u : tensor<7x512xbf16>, tensor<7x512xbf16>) outs(%g : tensor<7x512xbf16>) attrs = {fp4.dispatch = [#fp4.case<m = [1, 16] : stream_items, threads = 64>]} {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %s = arith.mulf %a, %b : bf16
    linalg.yield %s : bf16
  } -> tensor<7x512xbf16>
  return %y : tensor<7x512xbf16>
}

// -----

// The number of elements tells nothing of rows.
func.func @vector(%g: tensor<?xbf16>, %u: tensor<?xbf16>) -> tensor<?xbf16> {
  // expected-error @+2 {{must have one plan for all rows, because its result is no matrix, but got}}
  // expected-note @+1 {{remove the attribute fp4.dispatch}}
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%g, %u : tensor<?xbf16>, tensor<?xbf16>) outs(%g : tensor<?xbf16>) attrs = {fp4.dispatch = [#fp4.case<m = [1, 16] : stream_items, threads = 64>]} {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %s = arith.mulf %a, %b : bf16
    linalg.yield %s : bf16
  } -> tensor<?xbf16>
  return %y : tensor<?xbf16>
}

// -----

// A copy of the kernel would write the rows of no scatter.
func.func @scattered(%k: tensor<?x256xbf16>, %slots: tensor<?x1xi64>) -> (tensor<96x256xf8E4M3FN>, tensor<96x1xf32>) {
  // expected-error @+2 {{must have one plan for all rows, because its rows are scattered, but got}}
  // expected-note @+1 {{remove the attribute fp4.dispatch}}
  %q, %s = fp4.quantize %k {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 256>, fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 64>], fp4.plan = #fp4.plan<reduce_rows, threads = 128>} : (tensor<?x256xbf16>) -> (tensor<?x256xf8E4M3FN>, tensor<?x1xf32>)
  %e = tensor.empty() : tensor<96x256xf8E4M3FN>
  %f = tensor.empty() : tensor<96x1xf32>
  %c = tensor.scatter %q into %e[%slots] scatter_dims([0]) unique : (tensor<?x256xf8E4M3FN>, tensor<96x256xf8E4M3FN>, tensor<?x1xi64>) -> tensor<96x256xf8E4M3FN>
  %d = tensor.scatter %s into %f[%slots] scatter_dims([0]) unique : (tensor<?x1xf32>, tensor<96x1xf32>, tensor<?x1xi64>) -> tensor<96x1xf32>
  return %c, %d : tensor<96x256xf8E4M3FN>, tensor<96x1xf32>
}

// -----

// The kernel of the second sum computes the first one, and has the plans of both.
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @prologue(%x: tensor<?x512xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x512xf32>
  %zero = arith.constant 0.0 : f32
  %numbers = tensor.empty(%rows) : tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%numbers : tensor<?xf32>) -> tensor<?xf32>
  // expected-error @+2 {{must have a kernel of its own with attribute fp4.dispatch, but another kernel computes it, or none}}
  // expected-note @+1 {{give fp4.dispatch to the last operation of the kernel, which has one plan for all that it computes}}
  %0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x512xf32>) outs(%zeros : tensor<?xf32>) attrs = {fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 64>]} {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %0 : tensor<?x512xf32>, tensor<?xf32>) outs(%zeros : tensor<?xf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %d = arith.subf %a, %s : f32
    %t = arith.addf %o, %d : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
