// RUN: %fp4-opt-once %s -split-input-file -fp4-fuse --remarks-filter=fp4-fuse -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARKS
// A chain along rows that does not become one kernel says where it ends, and why. Each differs in one thing from @norm,
// which is one kernel.

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// One kernel.
func.func @norm(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
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
  %y = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %w : tensor<64x256xbf16>, tensor<64xf32>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %n = arith.mulf %f, %rs : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<64x256xbf16>
  // REMARKS: :[[#@LINE + 1]]:{{.*}}remark: [Passed] rows | Category:fp4-fuse | Remark="one kernel by rows computes 2 operations before it and stores 0 of them"
  %q:2 = fp4.quantize %y {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : (tensor<64x256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
  return %q#0, %q#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// Blocks that are no rows of the norm.
func.func @view(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>) {
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
  %y = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %w : tensor<64x256xbf16>, tensor<64xf32>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %n = arith.mulf %f, %rs : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<64x256xbf16>
  %z0 = tensor.expand_shape %y [[0], [1, 2]] output_shape [64, 2, 128] : tensor<64x256xbf16> into tensor<64x2x128xbf16>
  // REMARKS: :[[#@LINE + 1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="'tensor.collapse_shape' is between the chain and 'fp4.quantize', which reads its result from memory"
  %z = tensor.collapse_shape %z0 [[0, 1], [2]] : tensor<64x2x128xbf16> into tensor<128x128xbf16>
  %q:2 = fp4.quantize %z {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : (tensor<128x128xbf16>) -> (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>)
  return %q#0, %q#1 : tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// Sums of columns.
func.func @columns(%x: tensor<256x256xbf16>, %w: tensor<256xbf16>) -> (tensor<256x256xf4E2M1FN>, tensor<256x16xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<256xf32>) -> tensor<256xf32>
  // REMARKS: :[[#@LINE + 1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="the result is not indexed by the row alone"
  %sum = linalg.generic {indexing_maps = [#all, #column], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<256x256xbf16>) outs(%init : tensor<256xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %e = arith.mulf %f, %f : f32
    %n = arith.addf %acc, %e : f32
    linalg.yield %n : f32
  } -> tensor<256xf32>
  %m = tensor.empty() : tensor<256x256xbf16>
  %y = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %w : tensor<256x256xbf16>, tensor<256xf32>, tensor<256xbf16>) outs(%m : tensor<256x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %n = arith.mulf %f, %rs : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<256x256xbf16>
  %q:2 = fp4.quantize %y {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : (tensor<256x256xbf16>) -> (tensor<256x256xf4E2M1FN>, tensor<256x16xf8E4M3FN>)
  return %q#0, %q#1 : tensor<256x256xf4E2M1FN>, tensor<256x16xf8E4M3FN>
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// No sum.
func.func @combination(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64xf32>) -> tensor<64xf32>
  // REMARKS: :[[#@LINE + 1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="'arith.subf' does not combine elements; these do: arith.addf, mulf, maximumf, minimumf, maxnumf, minnumf"
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x256xbf16>) outs(%init : tensor<64xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %e = arith.mulf %f, %f : f32
    %n0 = arith.addf %e, %e : f32
    %n = arith.subf %n0, %acc : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %m = tensor.empty() : tensor<64x256xbf16>
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
// A sum that begins with a number that the program is given.
func.func @start(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>, %zero: f32) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
  %e0 = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64xf32>) -> tensor<64xf32>
  // REMARKS: :[[#@LINE + 1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="the result does not begin as a constant number: expects a linalg.fill, or a dense constant, of f32"
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x256xbf16>) outs(%init : tensor<64xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %e = arith.mulf %f, %f : f32
    %n = arith.addf %acc, %e : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %m = tensor.empty() : tensor<64x256xbf16>
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
// A quantizer with a transform.
func.func @transform(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
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
  %y = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %w : tensor<64x256xbf16>, tensor<64xf32>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %n = arith.mulf %f, %rs : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<64x256xbf16>
  // REMARKS: :[[#@LINE + 1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="the quantizer transforms its input"
  %q:2 = fp4.quantize %y {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>, hadamard = #fp4.hadamard<size = 16>} : (tensor<64x256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
  return %q#0, %q#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// A quantizer with two candidate scales.
func.func @candidates(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>, %a: tensor<f32>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
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
  %y = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %w : tensor<64x256xbf16>, tensor<64xf32>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %n = arith.mulf %f, %rs : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<64x256xbf16>
  // REMARKS: :[[#@LINE + 1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="the recipe compares two scales of a block"
  %q:2 = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<four_over_six>} : (tensor<64x256xbf16>, tensor<f32>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
  return %q#0, %q#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
// A plan of another family.
func.func @family(%x: tensor<64x256xbf16>, %w: tensor<256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) {
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
  %y = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %w : tensor<64x256xbf16>, tensor<64xf32>, tensor<256xbf16>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %rs = math.rsqrt %q0 : f32
    %n = arith.mulf %f, %rs : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<64x256xbf16>
  // REMARKS: :[[#@LINE + 1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="the plan is of another family"
  %q:2 = fp4.quantize %y {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>, fp4.plan = #fp4.plan<stream_blocks>} : (tensor<64x256xbf16>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
  return %q#0, %q#1 : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>
}

// -----

// Named operations.
func.func @named(%x: tensor<64x256xf32>) -> (tensor<64xf32>, tensor<256xf32>, tensor<64x256xf32>, tensor<64x256xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x256xf32>
  %e0 = tensor.empty() : tensor<64xf32>
  %e1 = tensor.empty() : tensor<256xf32>
  %rows = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64xf32>) -> tensor<64xf32>
  %columns = linalg.fill ins(%zero : f32) outs(%e1 : tensor<256xf32>) -> tensor<256xf32>
  // REMARKS-NOT: :[[#@LINE + 1]]:
  %s = linalg.reduce { arith.addf } ins(%x : tensor<64x256xf32>) outs(%rows : tensor<64xf32>) dimensions = [1]
  // REMARKS: :[[#@LINE + 1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="it reduces the rows of each column, and a kernel reduces the columns of each row"
  %t = linalg.reduce { arith.addf } ins(%x : tensor<64x256xf32>) outs(%columns : tensor<256xf32>) dimensions = [0]
  // REMARKS: :[[#@LINE + 1]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="kernels have a softmax of f32 along the last dimension"
  %p = linalg.softmax dimension(0) ins(%x : tensor<64x256xf32>) outs(%e : tensor<64x256xf32>) -> tensor<64x256xf32>
  return %s, %t, %p, %p : tensor<64xf32>, tensor<256xf32>, tensor<64x256xf32>, tensor<64x256xf32>
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
// The amax of the tensor for the next step, beside a quantizer that has that of the step before (delayed).
func.func @delayed(%x: tensor<64x256xbf16>, %a: tensor<f32>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x256xbf16>) outs(%init : tensor<64xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %n = arith.addf %acc, %f : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %m = tensor.empty() : tensor<64x256xbf16>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %sum : tensor<64x256xbf16>, tensor<64xf32>) outs(%m : tensor<64x256xbf16>) {
  ^bb0(%v: bf16, %q0: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %n = arith.mulf %f, %q0 : f32
    %b = arith.truncf %n : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<64x256xbf16>
  // REMARKS: :[[#@LINE + 2]]:{{.*}}remark: [Missed] rows | Category:fp4-fuse | Reason="the amax of the tensor takes a pass of its own over what another kernel stores; a quantizer with an amax of each row needs none"
  %q:2 = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (tensor<64x256xbf16>, tensor<f32>) -> (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>)
  %next = fp4.amax %y : tensor<64x256xbf16> -> tensor<f32>
  return %q#0, %q#1, %next : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>, tensor<f32>
}
