// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s
// RUN: fp4-opt %s -fp4-set-target=target=sm_100a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s --check-prefix=CONVERTS
// Strips of rows that become FP8 with f32 scales.

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Threads have two chunks of 128.
// CHECK-LABEL: func @bytes(
// CONVERTS-LABEL: func @bytes(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 64>
// CONVERTS-NOT: strip =
func.func @bytes(%x: tensor<65536x2048xbf16>) -> (tensor<65536x2048xf8E4M3FN>, tensor<65536x1xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %e = tensor.empty() : tensor<65536x2048xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x2048xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<65536x2048xbf16>, tensor<65536xf32>) outs(%e : tensor<65536x2048xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %d = arith.mulf %f, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x2048xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 2048>} : (tensor<65536x2048xbf16>) -> (tensor<65536x2048xf8E4M3FN>, tensor<65536x1xf32>)
  return %q, %s : tensor<65536x2048xf8E4M3FN>, tensor<65536x1xf32>
}

// Words of two matrices leave room for two chunks of a thread.
// CHECK-LABEL: func @bytes_of_two(
// CONVERTS-LABEL: func @bytes_of_two(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 256, ctas_per_sm = 3>
// CONVERTS-NOT: strip =
func.func @bytes_of_two(%x: tensor<65536x8192xbf16>, %r0: tensor<65536x8192xbf16>) -> (tensor<65536x8192xf8E4M3FN>, tensor<65536x1xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %e = tensor.empty() : tensor<65536x8192xbf16>
  %h = arith.addf %x, %r0 : tensor<65536x8192xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%h : tensor<65536x8192xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%h, %n : tensor<65536x8192xbf16>, tensor<65536xf32>) outs(%e : tensor<65536x8192xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %d = arith.mulf %f, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x8192xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 8192>} : (tensor<65536x8192xbf16>) -> (tensor<65536x8192xf8E4M3FN>, tensor<65536x1xf32>)
  return %q, %s : tensor<65536x8192xf8E4M3FN>, tensor<65536x1xf32>
}

// Instructions convert the elements of blocks, which wait for no scale of the row.
// CHECK-LABEL: func @bytes_of_blocks(
// CONVERTS-LABEL: func @bytes_of_blocks(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, strip = 4, stages = 1, threads = 128, single_rows = 1280, ctas_per_sm = 5>
// CONVERTS-NOT: strip =
func.func @bytes_of_blocks(%x: tensor<65536x8192xbf16>) -> (tensor<65536x8192xf8E4M3FN>, tensor<65536x64xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %e = tensor.empty() : tensor<65536x8192xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x8192xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<65536x8192xbf16>, tensor<65536xf32>) outs(%e : tensor<65536x8192xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %d = arith.mulf %f, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x8192xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>} : (tensor<65536x8192xbf16>) -> (tensor<65536x8192xf8E4M3FN>, tensor<65536x64xf32>)
  return %q, %s : tensor<65536x8192xf8E4M3FN>, tensor<65536x64xf32>
}

// Results that wait for their scale leave no registers to five CTAs,
// CHECK-LABEL: func @bytes_of_row(
// CONVERTS-LABEL: func @bytes_of_row(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 128, ctas_per_sm = 5>
// CONVERTS-NOT: strip =
func.func @bytes_of_row(%x: tensor<65536x8192xbf16>) -> (tensor<65536x8192xf8E4M3FN>, tensor<65536x1xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %e = tensor.empty() : tensor<65536x8192xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x8192xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<65536x8192xbf16>, tensor<65536xf32>) outs(%e : tensor<65536x8192xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %d = arith.mulf %f, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x8192xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 8192>} : (tensor<65536x8192xbf16>) -> (tensor<65536x8192xf8E4M3FN>, tensor<65536x1xf32>)
  return %q, %s : tensor<65536x8192xf8E4M3FN>, tensor<65536x1xf32>
}

// but to two,
// CHECK-LABEL: func @bytes_of_long_row(
// CONVERTS-LABEL: func @bytes_of_long_row(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, strip = 4, stages = 1, threads = 256, single_rows = 256, ctas_per_sm = 2>
// CONVERTS-NOT: strip =
func.func @bytes_of_long_row(%x: tensor<65536x16384xbf16>) -> (tensor<65536x16384xf8E4M3FN>, tensor<65536x1xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %e = tensor.empty() : tensor<65536x16384xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x16384xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<65536x16384xbf16>, tensor<65536xf32>) outs(%e : tensor<65536x16384xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %d = arith.mulf %f, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x16384xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 16384>} : (tensor<65536x16384xbf16>) -> (tensor<65536x16384xf8E4M3FN>, tensor<65536x1xf32>)
  return %q, %s : tensor<65536x16384xf8E4M3FN>, tensor<65536x1xf32>
}

// and to four of threads with two chunks, if these wait twice.
// CHECK-LABEL: func @bytes_of_two_chunks(
// CONVERTS-LABEL: func @bytes_of_two_chunks(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, strip = 4, stages = 1, threads = 224, single_rows = 512, ctas_per_sm = 4>
// CONVERTS-NOT: strip =
func.func @bytes_of_two_chunks(%x: tensor<65536x7168xbf16>) -> (tensor<65536x7168xf8E4M3FN>, tensor<65536x1xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %e = tensor.empty() : tensor<65536x7168xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x7168xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<65536x7168xbf16>, tensor<65536xf32>) outs(%e : tensor<65536x7168xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %d = arith.mulf %f, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x7168xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 7168>} : (tensor<65536x7168xbf16>) -> (tensor<65536x7168xf8E4M3FN>, tensor<65536x1xf32>)
  return %q, %s : tensor<65536x7168xf8E4M3FN>, tensor<65536x1xf32>
}

// Behind a mean they wait for three numbers, and the fewer threads do, the better.
// CHECK-LABEL: func @bytes_of_means(
// CONVERTS-LABEL: func @bytes_of_means(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 128, ctas_per_sm = 5>
// CONVERTS-NOT: strip =
func.func @bytes_of_means(%x: tensor<65536x7168xbf16>) -> (tensor<65536x7168xf8E4M3FN>, tensor<65536x1xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %e = tensor.empty() : tensor<65536x7168xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x7168xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %s0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x7168xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %a = arith.addf %o, %f : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n, %s0 : tensor<65536x7168xbf16>, tensor<65536xf32>, tensor<65536xf32>) outs(%e : tensor<65536x7168xbf16>) {
  ^bb0(%v: bf16, %b: f32, %s1: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %g = arith.subf %f, %s1 : f32
    %d = arith.mulf %g, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x7168xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 7168>} : (tensor<65536x7168xbf16>) -> (tensor<65536x7168xf8E4M3FN>, tensor<65536x1xf32>)
  return %q, %s : tensor<65536x7168xf8E4M3FN>, tensor<65536x1xf32>
}

// CHECK-LABEL: func @bytes_of_short_means(
// CONVERTS-LABEL: func @bytes_of_short_means(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 64, ctas_per_sm = 10>
// CONVERTS-NOT: strip =
func.func @bytes_of_short_means(%x: tensor<65536x4096xbf16>) -> (tensor<65536x4096xf8E4M3FN>, tensor<65536x1xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %e = tensor.empty() : tensor<65536x4096xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x4096xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %s0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x4096xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %a = arith.addf %o, %f : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n, %s0 : tensor<65536x4096xbf16>, tensor<65536xf32>, tensor<65536xf32>) outs(%e : tensor<65536x4096xbf16>) {
  ^bb0(%v: bf16, %b: f32, %s1: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %g = arith.subf %f, %s1 : f32
    %d = arith.mulf %g, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x4096xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 4096>} : (tensor<65536x4096xbf16>) -> (tensor<65536x4096xf8E4M3FN>, tensor<65536x1xf32>)
  return %q, %s : tensor<65536x4096xf8E4M3FN>, tensor<65536x1xf32>
}

// Bytes of blocks have two chunks of a thread.
// CHECK-LABEL: func @blocks_of_means(
// CONVERTS-LABEL: func @blocks_of_means(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, strip = 4, stages = 1, threads = 128, single_rows = 1024, ctas_per_sm = 8>
// CONVERTS-NOT: strip =
func.func @blocks_of_means(%x: tensor<65536x4096xbf16>) -> (tensor<65536x4096xf8E4M3FN>, tensor<65536x32xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %e = tensor.empty() : tensor<65536x4096xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x4096xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %s0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x4096xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %a = arith.addf %o, %f : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n, %s0 : tensor<65536x4096xbf16>, tensor<65536xf32>, tensor<65536xf32>) outs(%e : tensor<65536x4096xbf16>) {
  ^bb0(%v: bf16, %b: f32, %s1: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %g = arith.subf %f, %s1 : f32
    %d = arith.mulf %g, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x4096xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>} : (tensor<65536x4096xbf16>) -> (tensor<65536x4096xf8E4M3FN>, tensor<65536x32xf32>)
  return %q, %s : tensor<65536x4096xf8E4M3FN>, tensor<65536x32xf32>
}
