// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s
// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-generalize-elementwise -fp4-fuse "-fp4-plan-kernels=plans={reduce_rows, threads = 256}" | FileCheck %s --check-prefix=GIVEN
// Threads of a quantizer have four chunks of a row of 8192 elements and more, where there are more rows than SMs and
// registers keep the row, and so many CTAs that these registers are enough.

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Four chunks.
// CHECK-LABEL: func @four
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 128, ctas_per_sm = 5>
// Registers of more threads that somebody asks for do not spill.
// GIVEN-LABEL: func @four
// GIVEN: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 256, ctas_per_sm = 2>
func.func @four(%x: tensor<4096x8192xbf16>) -> (tensor<4096x8192xf8E4M3FN>, tensor<4096x1xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<4096xf32>
  %e = tensor.empty() : tensor<4096x8192xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4096x8192xbf16>) outs(%zeros : tensor<4096xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %s = arith.mulf %f, %f : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<4096x8192xbf16>, tensor<4096xf32>) outs(%e : tensor<4096x8192xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r0 = math.rsqrt %b : f32
    %d = arith.mulf %f, %r0 : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4096x8192xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 8192>} : (tensor<4096x8192xbf16>) -> (tensor<4096x8192xf8E4M3FN>, tensor<4096x1xf32>)
  return %q, %s : tensor<4096x8192xf8E4M3FN>, tensor<4096x1xf32>
}

// The longest rows that one CTA has without a choice.
// CHECK-LABEL: func @wide
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, strip = 4, stages = 1, threads = 256, single_rows = 256, ctas_per_sm = 2>
func.func @wide(%x: tensor<4096x16384xbf16>) -> (tensor<4096x16384xf8E4M3FN>, tensor<4096x1xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<4096xf32>
  %e = tensor.empty() : tensor<4096x16384xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4096x16384xbf16>) outs(%zeros : tensor<4096xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %s = arith.mulf %f, %f : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<4096x16384xbf16>, tensor<4096xf32>) outs(%e : tensor<4096x16384xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r0 = math.rsqrt %b : f32
    %d = arith.mulf %f, %r0 : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4096x16384xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 16384>} : (tensor<4096x16384xbf16>) -> (tensor<4096x16384xf8E4M3FN>, tensor<4096x1xf32>)
  return %q, %s : tensor<4096x16384xf8E4M3FN>, tensor<4096x1xf32>
}

// No SM has two rows.
// CHECK-LABEL: func @few
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 512, ctas_per_sm = 2>
func.func @few(%x: tensor<64x8192xbf16>) -> (tensor<64x8192xf8E4M3FN>, tensor<64x1xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<64xf32>
  %e = tensor.empty() : tensor<64x8192xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x8192xbf16>) outs(%zeros : tensor<64xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %s = arith.mulf %f, %f : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<64x8192xbf16>, tensor<64xf32>) outs(%e : tensor<64x8192xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r0 = math.rsqrt %b : f32
    %d = arith.mulf %f, %r0 : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<64x8192xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 8192>} : (tensor<64x8192xbf16>) -> (tensor<64x8192xf8E4M3FN>, tensor<64x1xf32>)
  return %q, %s : tensor<64x8192xf8E4M3FN>, tensor<64x1xf32>
}

// A row of 511 chunks.
// CHECK-LABEL: func @short
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 256>
func.func @short(%x: tensor<4096x8176xbf16>) -> (tensor<4096x8176xf8E4M3FN>, tensor<4096x1xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<4096xf32>
  %e = tensor.empty() : tensor<4096x8176xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4096x8176xbf16>) outs(%zeros : tensor<4096xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %s = arith.mulf %f, %f : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<4096x8176xbf16>, tensor<4096xf32>) outs(%e : tensor<4096x8176xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r0 = math.rsqrt %b : f32
    %d = arith.mulf %f, %r0 : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4096x8176xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 8176>} : (tensor<4096x8176xbf16>) -> (tensor<4096x8176xf8E4M3FN>, tensor<4096x1xf32>)
  return %q, %s : tensor<4096x8176xf8E4M3FN>, tensor<4096x1xf32>
}

// Registers do not keep four chunks of two matrices of f32.
// CHECK-LABEL: func @words
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 256>
func.func @words(%x: tensor<4096x8192xf32>, %r: tensor<4096x8192xf32>) -> (tensor<4096x8192xf8E4M3FN>, tensor<4096x1xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<4096xf32>
  %e = tensor.empty() : tensor<4096x8192xbf16>
  %h = arith.addf %x, %r : tensor<4096x8192xf32>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%h : tensor<4096x8192xf32>) outs(%zeros : tensor<4096xf32>) {
  ^bb0(%v: f32, %o: f32):
    %s = arith.mulf %v, %v : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%h, %n : tensor<4096x8192xf32>, tensor<4096xf32>) outs(%e : tensor<4096x8192xbf16>) {
  ^bb0(%v: f32, %b: f32, %o: bf16):
    %r0 = math.rsqrt %b : f32
    %d = arith.mulf %v, %r0 : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4096x8192xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 8192>} : (tensor<4096x8192xbf16>) -> (tensor<4096x8192xf8E4M3FN>, tensor<4096x1xf32>)
  return %q, %s : tensor<4096x8192xf8E4M3FN>, tensor<4096x1xf32>
}
