// RUN: %fp4-opt-once %s -split-input-file -fp4-fuse --remarks-filter=fp4-fuse -o /dev/null 2>&1 | FileCheck %s --implicit-check-not=remark:
// Chains that nearly are one kernel by rows. Each differs in one thing from @norm of fuse-rows-missed.mlir, and says which one:
// all remarks are here.

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// A sum in f16.
func.func @accumulator(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f16
  %e0 = tensor.empty() : tensor<64xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e0 : tensor<64xf16>) -> tensor<64xf16>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="the result is not f32
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x256xbf16>) outs(%init : tensor<64xf16>) {
  ^bb0(%v: bf16, %acc: f16):
    %f = arith.extf %v : bf16 to f32
    %e = arith.mulf %f, %f : f32
    %h = arith.truncf %e : f32 to f16
    %n = arith.addf %acc, %h : f16
    linalg.yield %n : f16
  } -> tensor<64xf16>
  %m = tensor.empty() : tensor<64x256xbf16>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Passed] elementwise+quantize | Category:fp4-fuse | Remark="the readers compute the elements, which are not stored
  %y = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %w : tensor<64x256xbf16>, tensor<64xf16>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q1: f16, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %q0 = arith.extf %q1 : f16 to f32
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
// Two sums of one operation.
func.func @two_results(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64xf32>) -> tensor<64xf32>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="it has several results
  %sum, %total = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x256xbf16>) outs(%init, %init : tensor<64xf32>, tensor<64xf32>) {
  ^bb0(%v: bf16, %acc: f32, %acc2: f32):
    %f = arith.extf %v : bf16 to f32
    %e = arith.mulf %f, %f : f32
    %n = arith.addf %acc, %e : f32
    %n2 = arith.addf %acc2, %f : f32
    linalg.yield %n, %n2 : f32, f32
  } -> (tensor<64xf32>, tensor<64xf32>)
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
// An operation that no kernel has, in the sum.
func.func @function_of_sum(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64xf32>) -> tensor<64xf32>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="'math.cosh' has no elementwise step
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x256xbf16>) outs(%init : tensor<64xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %e = math.cosh %f : f32
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
// A quantizer in another block.
func.func @block(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>, %c: i1) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
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
  // CHECK-DAG: :[[@LINE+2]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="it is in another block than the kernel that would compute it
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Passed] rows | Category:fp4-fuse | Remark="one kernel by rows computes 1 operation before it and stores 0 of them
  %y = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %w : tensor<64x256xbf16>, tensor<64xf32>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %n = arith.mulf %f, %rs : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<64x256xbf16>
  %q:2 = scf.if %c -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
    %p:2 = fp4.quantize %y {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : (tensor<64x256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
    scf.yield %p#0, %p#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
  } else {
    %p:2 = fp4.quantize %x {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : (tensor<64x256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
    scf.yield %p#0, %p#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
  }
  return %q#0, %q#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// A sum that has a plan for a kernel of its own.
func.func @planned(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64xf32>) -> tensor<64xf32>
  // CHECK-DAG: :[[@LINE+2]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="'linalg.generic' has a plan for a kernel of its own
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="'linalg.generic' has a plan for a kernel of its own
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x256xbf16>) outs(%init : tensor<64xf32>) attrs = {fp4.plan = #fp4.plan<reduce_rows>} {
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
// Numbers of rows in i64.
func.func @labels(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>, %l: tensor<64xi64>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
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
  // CHECK-DAG: :[[@LINE+3]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="the elements are not f32, bf16 or f16
  // CHECK-DAG: :[[@LINE+2]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="the elements are not f32, bf16 or f16
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] elementwise+quantize | Category:fp4-fuse | Reason="the elements are not f32, bf16 or f16
  %y = linalg.generic {indexing_maps = [#all, #row, #row, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %l, %w : tensor<64x256xbf16>, tensor<64xf32>, tensor<64xi64>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %i: i64, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %z = arith.constant 3 : i64
    %is = arith.cmpi eq, %i, %z : i64
    %n0 = arith.mulf %f, %rs : f32
    %n = arith.select %is, %n0, %f : f32
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
// An amax that something else is computed from.
func.func @scaled_amax(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
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
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="'fp4.amax' reads it before the kernel that would compute it
  %y = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %w : tensor<64x256xbf16>, tensor<64xf32>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %n = arith.mulf %f, %rs : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<64x256xbf16>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Passed] rows | Category:fp4-fuse | Remark="one kernel by rows computes 2 operations before it and stores 1 of them
  %a = fp4.amax %y : tensor<64x256xbf16> -> tensor<f32>
  %ae = tensor.empty() : tensor<f32>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] elementwise+quantize | Category:fp4-fuse | Reason="the result is no matrix and no number for each row
  %b = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%a : tensor<f32>) outs(%ae : tensor<f32>) {
  ^bb0(%v: f32, %o: f32):
    %two = arith.constant 2.0 : f32
    %n = arith.mulf %v, %two : f32
    linalg.yield %n : f32
  } -> tensor<f32>
  %q:2 = fp4.quantize %y amax %b {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (tensor<64x256xbf16>, tensor<f32>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
  return %q#0, %q#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// Blocks of several rows.
func.func @square(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
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
  %a = fp4.amax %x : tensor<64x256xbf16> -> tensor<f32>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="the blocks have several rows
  %q:2 = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, block = array<i64: 16, 16>} : (tensor<64x256xbf16>, tensor<f32>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
  return %q#0, %q#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// A quantizer with groups.
func.func @groups(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
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
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="the quantizer has groups
  %q:2 = fp4.quantize %y {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>, groups = array<i64: 32, 32>} : (tensor<64x256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
  return %q#0, %q#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
}

// -----

// Two choices of one row.
func.func @top_k(%x: tensor<64x256xf32>) -> (tensor<64x4xf32>, tensor<64x4xi32>) {
  %v, %i = fp4.top_k %x {k = 4 : i64} : tensor<64x256xf32> -> tensor<64x4xf32>, tensor<64x4xi32>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="the kernel computes another one
  %u, %j = fp4.top_k %x {k = 4 : i64} : tensor<64x256xf32> -> tensor<64x4xf32>, tensor<64x4xi32>
  %e = tensor.empty() : tensor<64x4xf32>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Passed] rows | Category:fp4-fuse | Remark="one kernel by rows computes 1 operation before it and stores 0 of them
  %s = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%v, %u : tensor<64x4xf32>, tensor<64x4xf32>) outs(%e : tensor<64x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.addf %a, %b : f32
    linalg.yield %n : f32
  } -> tensor<64x4xf32>
  return %s, %i : tensor<64x4xf32>, tensor<64x4xi32>
}

// -----

// The elements of an attention, with the heads as rows.
func.func @attention(%q: tensor<1x64x2x128xbf16>) -> (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>) {
  %o = fp4.attention %q, %q, %q scale 0.125 : tensor<1x64x2x128xbf16>, tensor<1x64x2x128xbf16>, tensor<1x64x2x128xbf16> -> tensor<1x64x2x128xbf16>
  %y = tensor.collapse_shape %o [[0, 1, 2], [3]] : tensor<1x64x2x128xbf16> into tensor<128x128xbf16>
  // CHECK-DAG: :[[@LINE+1]]:{{.*}}remark: [Missed] attention+quantize | Category:fp4-fuse | Reason="the quantizer reads no matrix of tokens
  %z:2 = fp4.quantize %y {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : (tensor<128x128xbf16>) -> (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>)
  return %z#0, %z#1 : tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>
}
