// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_120a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels -verify-diagnostics

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// The first sum of each pair has a plan that fits; the second differs in one place.
func.func @most(%x: tensor<64x4096xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x4096xf32>) outs(%zeros : tensor<64xf32>) attrs = {fp4.plan = #fp4.plan<reduce_rows, cluster = [1, 8]>} {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  // expected-error @+2 {{must have a plan whose 'cluster' is [1, n] with n up to 8 on sm_120a, but got [1, 9]}}
  // expected-note @+1 {{leave 'cluster' out, and fp4-plan-kernels decides it}}
  %1 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x4096xf32>) outs(%zeros : tensor<64xf32>) attrs = {fp4.plan = #fp4.plan<reduce_rows, cluster = [1, 9]>} {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  return %0, %1 : tensor<64xf32>, tensor<64xf32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

func.func @rows(%x: tensor<64x4096xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x4096xf32>) outs(%zeros : tensor<64xf32>) attrs = {fp4.plan = #fp4.plan<reduce_rows, cluster = [1, 2]>} {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  // expected-error @+2 {{must have a plan whose 'cluster' is [1, n] with n up to 8 on sm_120a, but got [2, 1]}}
  // expected-note @+1 {{leave 'cluster' out, and fp4-plan-kernels decides it}}
  %1 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x4096xf32>) outs(%zeros : tensor<64xf32>) attrs = {fp4.plan = #fp4.plan<reduce_rows, cluster = [2, 1]>} {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  return %0, %1 : tensor<64xf32>, tensor<64xf32>
}

// -----

// One CTA has the amax of a row in memory, and one warp chooses the best columns of a row.
func.func @others(%x: tensor<64x128xf32>) {
  %0 = fp4.amax %x {per_row, fp4.plan = #fp4.plan<reduce_rows, cluster = [1, 1]>} : tensor<64x128xf32> -> tensor<64xf32>
  // expected-error @+2 {{must have a plan whose 'cluster' is [1, 1] for this operation, but got [1, 2]}}
  // expected-note @+1 {{leave 'cluster' out, and fp4-plan-kernels decides it}}
  %1 = fp4.amax %x {per_row, fp4.plan = #fp4.plan<reduce_rows, cluster = [1, 2]>} : tensor<64x128xf32> -> tensor<64xf32>
  %v, %i = fp4.top_k %x {k = 4 : i64, fp4.plan = #fp4.plan<reduce_rows, cluster = [1, 1]>} : tensor<64x128xf32> -> tensor<64x4xf32>, tensor<64x4xi32>
  // expected-error @+2 {{must have a plan whose 'cluster' is [1, 1] for this operation, but got [1, 2]}}
  // expected-note @+1 {{leave 'cluster' out, and fp4-plan-kernels decides it}}
  %w, %j = fp4.top_k %x {k = 4 : i64, fp4.plan = #fp4.plan<reduce_rows, cluster = [1, 2]>} : tensor<64x128xf32> -> tensor<64x4xf32>, tensor<64x4xi32>
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Segments of a row meet in shared memory. The first row fits; the second has 512 chunks more.
func.func @fits(%x: tensor<2x5562368xbf16>) -> tensor<2xf32> {
  %zeros = arith.constant dense<0.0> : tensor<2xf32>
  %0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<2x5562368xbf16>) outs(%zeros : tensor<2xf32>) attrs = {fp4.plan = #fp4.plan<reduce_rows, cluster = [1, 1], threads = 512>} {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %t = arith.addf %o, %f : f32
    linalg.yield %t : f32
  } -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @too_long(%x: tensor<2x5570560xbf16>) -> tensor<2xf32> {
  %zeros = arith.constant dense<0.0> : tensor<2xf32>
  // expected-error @+2 {{must have rows whose reductions take up to 48896 bytes of shared memory, but got 5570560 columns, which take 48960}}
  // expected-note @+1 {{reduce parts of a row as rows of their own, and their results afterwards}}
  %0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<2x5570560xbf16>) outs(%zeros : tensor<2xf32>) attrs = {fp4.plan = #fp4.plan<reduce_rows, cluster = [1, 1], threads = 512>} {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %t = arith.addf %o, %f : f32
    linalg.yield %t : f32
  } -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A chunk of f32 takes 16 words: registers keep four rows of a thread whose warp has rows. A longer
// row meets through shared memory, and is read again where registers do not keep it.
func.func @warp(%x: tensor<64x512xf32>, %long: tensor<64x528xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x512xf32>) outs(%zeros : tensor<64xf32>) attrs = {fp4.plan = #fp4.plan<reduce_rows, rows_per_thread = 4>} {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  %1 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%long : tensor<64x528xf32>) outs(%zeros : tensor<64xf32>) attrs = {fp4.plan = #fp4.plan<reduce_rows, rows_per_thread = 5>} {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  // expected-error @+2 {{must have a plan whose 'rows_per_thread' is at most 4, but got 5}}
  // expected-note @+1 {{leave 'rows_per_thread' out, and fp4-plan-kernels decides it}}
  %2 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x512xf32>) outs(%zeros : tensor<64xf32>) attrs = {fp4.plan = #fp4.plan<reduce_rows, rows_per_thread = 5>} {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  return %0, %1, %2 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}
