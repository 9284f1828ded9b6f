// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s
// Cases of the program are completed as its other plans are, and stay.

// CHECK-LABEL: func @open
// CHECK: fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 128, pdl = in_turn>], fp4.plan = #fp4.plan<reduce_rows, threads = 128>
func.func @open(%y: tensor<?x512xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>) {
  %a = fp4.amax %y {per_row} : tensor<?x512xf32> -> tensor<?xf32>
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows>], fp4.plan = #fp4.plan<reduce_rows, threads = 128>} : (tensor<?x512xf32>, tensor<?xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>)
  return %q, %s : tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>
}
// CHECK-LABEL: func @partial
// CHECK: fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 64, rows_per_thread = 2, pdl = in_turn>], fp4.plan = #fp4.plan<reduce_rows, threads = 128>
func.func @partial(%y: tensor<?x512xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>) {
  %a = fp4.amax %y {per_row} : tensor<?x512xf32> -> tensor<?xf32>
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 64, rows_per_thread = 2>], fp4.plan = #fp4.plan<reduce_rows, threads = 128>} : (tensor<?x512xf32>, tensor<?xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>)
  return %q, %s : tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>
}
// CHECK-LABEL: func @alone
// CHECK: fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 64, pdl = in_turn>], fp4.plan = #fp4.plan<reduce_rows, threads = 128>
func.func @alone(%y: tensor<?x512xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>) {
  %a = fp4.amax %y {per_row} : tensor<?x512xf32> -> tensor<?xf32>
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 64>]} : (tensor<?x512xf32>, tensor<?xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>)
  return %q, %s : tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>
}

// The plan of the program stays where another one would be proposed.
// CHECK-LABEL: func @long
// CHECK: fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 512{{.*}}>], fp4.plan = #fp4.plan<reduce_rows, threads = 160>
func.func @long(%y: tensor<?x4112xf32>) -> (tensor<?x4112xf4E2M1FN>, tensor<?x257xf8E4M3FN>) {
  %a = fp4.amax %y {per_row} : tensor<?x4112xf32> -> tensor<?xf32>
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 512>]} : (tensor<?x4112xf32>, tensor<?xf32>) -> (tensor<?x4112xf4E2M1FN>, tensor<?x257xf8E4M3FN>)
  return %q, %s : tensor<?x4112xf4E2M1FN>, tensor<?x257xf8E4M3FN>
}

// The last operation of a kernel has the plans of its prologues.
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
// CHECK-LABEL: func @prologue
// CHECK: fp4.prologue
// CHECK: fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 64, pdl = in_turn>], fp4.plan = #fp4.plan<reduce_rows, threads = 128>
func.func @prologue(%x: tensor<?x512xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x512xf32>
  %zero = arith.constant 0.0 : f32
  %numbers = tensor.empty(%rows) : tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%numbers : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x512xf32>) outs(%zeros : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %0 : tensor<?x512xf32>, tensor<?xf32>) outs(%zeros : tensor<?xf32>) attrs = {fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 64>]} {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %d = arith.subf %a, %s : f32
    %t = arith.addf %o, %d : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
