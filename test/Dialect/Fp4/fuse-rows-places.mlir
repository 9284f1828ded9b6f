// RUN: %fp4-opt-once %s -split-input-file -fp4-fuse --remarks-filter=fp4-fuse -o /dev/null 2>&1 | FileCheck %s --implicit-check-not=remark:
// Chains that read other rows than their own, or whose sums are those of other loops. Each differs in one thing from @norm of
// fuse-rows-missed.mlir, and says which one: all remarks are here.

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// The number of another row.
func.func @rows_before(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x256xbf16>) outs(%init : tensor<64xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %e = arith.mulf %f, %f : f32
    %n = arith.addf %acc, %e : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %m = tensor.empty() : tensor<64x256xbf16>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="the row of an operand is not d0, d0 divided by a number, or d0 * n + c
  %y = linalg.generic {indexing_maps = [#all, affine_map<(r, c) -> ((r + 63) mod 64)>, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %w : tensor<64x256xbf16>, tensor<64xf32>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %n = arith.mulf %f, %rs : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<64x256xbf16>
  %q:2 = fp4.quantize %y {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : (tensor<64x256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
  return %q#0, %q#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// Elements of another row of what is normed.
func.func @next_row(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>, %z: tensor<65x256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x256xbf16>) outs(%init : tensor<64xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %e = arith.mulf %f, %f : f32
    %n = arith.addf %acc, %e : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %m = tensor.empty() : tensor<64x256xbf16>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="the row of an operand is not d0, d0 divided by a number, or d0 * n + c
  %y = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r + 1, c)>, #row, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%z, %sum, %w : tensor<65x256xbf16>, tensor<64xf32>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %n = arith.mulf %f, %rs : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<64x256xbf16>
  %q:2 = fp4.quantize %y {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : (tensor<64x256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
  return %q#0, %q#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// Other rows of the norm itself.
func.func @norm_of_next_row(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x256xbf16>) outs(%init : tensor<64xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %e = arith.mulf %f, %f : f32
    %n = arith.addf %acc, %e : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %m = tensor.empty() : tensor<64x256xbf16>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Passed] rows | Category:fp4-fuse | Remark="one kernel by rows computes 1 operation before it and stores 0 of them
  %y = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %w : tensor<64x256xbf16>, tensor<64xf32>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %n = arith.mulf %f, %rs : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<64x256xbf16>
  %m2 = tensor.empty() : tensor<64x256xbf16>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="no operand has an element for each of the result
  %y2 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r floordiv 2, c)>, #all], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<64x256xbf16>) outs(%m2 : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %o: bf16):
    %n = arith.negf %v : bf16
    linalg.yield %n : bf16
  } -> tensor<64x256xbf16>
  %q:2 = fp4.quantize %y2 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : (tensor<64x256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
  return %q#0, %q#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// Rows of the norm by number.
func.func @gathered(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>, %ids: tensor<64x1xi64>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x256xbf16>) outs(%init : tensor<64xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %e = arith.mulf %f, %f : f32
    %n = arith.addf %acc, %e : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %m = tensor.empty() : tensor<64x256xbf16>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Passed] rows | Category:fp4-fuse | Remark="one kernel by rows computes 1 operation before it and stores 0 of them
  %y = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %w : tensor<64x256xbf16>, tensor<64xf32>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %n = arith.mulf %f, %rs : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<64x256xbf16>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="'tensor.gather' is between the chain and 'fp4.quantize', which reads its result from memory
  %g = tensor.gather %y[%ids] gather_dims([0]) : (tensor<64x256xbf16>, tensor<64x1xi64>) -> tensor<64x256xbf16>
  %q:2 = fp4.quantize %g {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : (tensor<64x256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
  return %q#0, %q#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// Sums of a matrix that has other rows.
func.func @other_rows(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>, %z: tensor<128x256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<128xf32>) -> tensor<128xf32>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="'linalg.generic' reads other rows of it
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%z : tensor<128x256xbf16>) outs(%init : tensor<128xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %e = arith.mulf %f, %f : f32
    %n = arith.addf %acc, %e : f32
    linalg.yield %n : f32
  } -> tensor<128xf32>
  %m = tensor.empty() : tensor<64x256xbf16>
  %y = linalg.generic {indexing_maps = [#all, affine_map<(r, c) -> (r * 2)>, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %w : tensor<64x256xbf16>, tensor<128xf32>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %n = arith.mulf %f, %rs : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<64x256xbf16>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Passed] rows | Category:fp4-fuse | Remark="one kernel by rows computes 1 operation before it and stores 0 of them
  %q:2 = fp4.quantize %y {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : (tensor<64x256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
  return %q#0, %q#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// The loop of the columns outside that of the rows.
func.func @inner_rows(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64xf32>) -> tensor<64xf32>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="the loop of the columns is not inside that of the rows
  %sum = linalg.generic {indexing_maps = [affine_map<(c, r) -> (r, c)>, affine_map<(c, r) -> (r)>], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<64x256xbf16>) outs(%init : tensor<64xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %e = arith.mulf %f, %f : f32
    %n = arith.addf %acc, %e : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %m = tensor.empty() : tensor<64x256xbf16>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Passed] elementwise+quantize | Category:fp4-fuse | Remark="the readers compute the elements, which are not stored
  %y = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %w : tensor<64x256xbf16>, tensor<64xf32>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %n = arith.mulf %f, %rs : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<64x256xbf16>
  %q:2 = fp4.quantize %y {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : (tensor<64x256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
  return %q#0, %q#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// Sums along the rows of a matrix.
func.func @transposed(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<256xf32>) -> tensor<256xf32>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="it reduces the rows of each column, and a kernel reduces the columns of each row
  %sum = linalg.generic {indexing_maps = [affine_map<(r, c) -> (c, r)>, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x256xbf16>) outs(%init : tensor<256xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %e = arith.mulf %f, %f : f32
    %n = arith.addf %acc, %e : f32
    linalg.yield %n : f32
  } -> tensor<256xf32>
  %m = tensor.empty() : tensor<64x256xbf16>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Passed] elementwise+quantize | Category:fp4-fuse | Remark="the readers compute the elements, which are not stored
  %y = linalg.generic {indexing_maps = [#all, #column, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %w : tensor<64x256xbf16>, tensor<256xf32>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %n = arith.mulf %f, %rs : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<64x256xbf16>
  %q:2 = fp4.quantize %y {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : (tensor<64x256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
  return %q#0, %q#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// One sum of the whole matrix.
func.func @whole(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="no loop of it is a parallel one
  %sum = linalg.generic {indexing_maps = [#all, affine_map<(r, c) -> ()>], iterator_types = ["reduction", "reduction"]} ins(%x : tensor<64x256xbf16>) outs(%init : tensor<f32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %e = arith.mulf %f, %f : f32
    %n = arith.addf %acc, %e : f32
    linalg.yield %n : f32
  } -> tensor<f32>
  %m = tensor.empty() : tensor<64x256xbf16>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Passed] elementwise+quantize | Category:fp4-fuse | Remark="the readers compute the elements, which are not stored
  %y = linalg.generic {indexing_maps = [#all, affine_map<(r, c) -> ()>, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %w : tensor<64x256xbf16>, tensor<f32>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %n = arith.mulf %f, %rs : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<64x256xbf16>
  %q:2 = fp4.quantize %y {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : (tensor<64x256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
  return %q#0, %q#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// A sum that is doubled at each element.
func.func @indirect(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64xf32>) -> tensor<64xf32>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="the body does not yield the result so far combined with an element
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x256xbf16>) outs(%init : tensor<64xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %e = arith.mulf %f, %f : f32
    %d = arith.addf %acc, %acc : f32
    %n = arith.addf %d, %e : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %m = tensor.empty() : tensor<64x256xbf16>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Passed] elementwise+quantize | Category:fp4-fuse | Remark="the readers compute the elements, which are not stored
  %y = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %w : tensor<64x256xbf16>, tensor<64xf32>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %n = arith.mulf %f, %rs : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<64x256xbf16>
  %q:2 = fp4.quantize %y {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : (tensor<64x256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
  return %q#0, %q#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// Views of the sums.
func.func @reshaped_sum(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x256xbf16>) outs(%init : tensor<64xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %e = arith.mulf %f, %f : f32
    %n = arith.addf %acc, %e : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %s2 = tensor.expand_shape %sum [[0, 1]] output_shape [32, 2] : tensor<64xf32> into tensor<32x2xf32>
  // CHECK-DAG: :[[@LINE+2]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="'tensor.collapse_shape' is between the chain and 'linalg.generic', which reads its result from memory
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="'tensor.collapse_shape' is between the chain and 'linalg.generic', which reads its result from memory
  %s3 = tensor.collapse_shape %s2 [[0, 1]] : tensor<32x2xf32> into tensor<64xf32>
  %m = tensor.empty() : tensor<64x256xbf16>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Passed] elementwise+quantize | Category:fp4-fuse | Remark="the readers compute the elements, which are not stored
  %y = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %s3, %w : tensor<64x256xbf16>, tensor<64xf32>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %n = arith.mulf %f, %rs : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<64x256xbf16>
  %q:2 = fp4.quantize %y {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : (tensor<64x256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
  return %q#0, %q#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
}
