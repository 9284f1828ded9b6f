// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s
// RUN: fp4-opt %s -fp4-set-target=target=sm_100a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s --check-prefix=CONVERTS
// The next row of a strip waits in shared memory if threads wait for sums of their row more than once, or if many CTAs
// share an SM, and in registers otherwise.

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Threads wait once for a row: four chunks of the next one wait in registers.
// CHECK-LABEL: func @waits_once(
// CONVERTS-LABEL: func @waits_once(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, strip = 4, threads = 128, ctas_per_sm = 4>
// CONVERTS-NOT: strip =
func.func @waits_once(%x: tensor<65536x8192xbf16>, %amax: tensor<f32>) -> (tensor<65536x8192xf4E2M1FN>, tensor<65536x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
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
  %q, %s = fp4.quantize %y amax %amax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (tensor<65536x8192xbf16>, tensor<f32>) -> (tensor<65536x8192xf4E2M1FN>, tensor<65536x512xf8E4M3FN>)
  %t = fp4.swizzle_scales %s : tensor<65536x512xf8E4M3FN> -> tensor<65536x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<65536x8192xf4E2M1FN>, tensor<65536x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// Threads wait for a mean and a variance.
// CHECK-LABEL: func @waits_twice(
// CONVERTS-LABEL: func @waits_twice(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, strip = 4, stages = 1, threads = 128, single_rows = 1280, ctas_per_sm = 5>
// CONVERTS-NOT: strip =
func.func @waits_twice(%x: tensor<65536x8192xbf16>, %amax: tensor<f32>) -> (tensor<65536x8192xf4E2M1FN>, tensor<65536x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %e = tensor.empty() : tensor<65536x8192xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x8192xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %s0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x8192xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %a = arith.addf %o, %f : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n, %s0 : tensor<65536x8192xbf16>, tensor<65536xf32>, tensor<65536xf32>) outs(%e : tensor<65536x8192xbf16>) {
  ^bb0(%v: bf16, %b: f32, %s1: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %g = arith.subf %f, %s1 : f32
    %d = arith.mulf %g, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x8192xbf16>
  %q, %s = fp4.quantize %y amax %amax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (tensor<65536x8192xbf16>, tensor<f32>) -> (tensor<65536x8192xf4E2M1FN>, tensor<65536x512xf8E4M3FN>)
  %t = fp4.swizzle_scales %s : tensor<65536x512xf8E4M3FN> -> tensor<65536x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<65536x8192xf4E2M1FN>, tensor<65536x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// An SM that has two CTAs would lack much of one beside rows in shared memory.
// CHECK-LABEL: func @two_ctas(
// CONVERTS-LABEL: func @two_ctas(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, strip = 4, threads = 256, single_rows = 256, ctas_per_sm = 2>
// CONVERTS-NOT: strip =
func.func @two_ctas(%x: tensor<65536x16384xbf16>, %amax: tensor<f32>) -> (tensor<65536x16384xf4E2M1FN>, tensor<65536x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
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
  %q, %s = fp4.quantize %y amax %amax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (tensor<65536x16384xbf16>, tensor<f32>) -> (tensor<65536x16384xf4E2M1FN>, tensor<65536x1024xf8E4M3FN>)
  %t = fp4.swizzle_scales %s : tensor<65536x1024xf8E4M3FN> -> tensor<65536x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<65536x16384xf4E2M1FN>, tensor<65536x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// More CTAs fit beside rows in shared memory where threads have two chunks.
// CHECK-LABEL: func @waits_once_of_two(
// CONVERTS-LABEL: func @waits_once_of_two(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, strip = 4, stages = 1, threads = 224, single_rows = 512, ctas_per_sm = 4>
// CONVERTS-NOT: strip =
func.func @waits_once_of_two(%x: tensor<65536x7168xbf16>, %amax: tensor<f32>) -> (tensor<65536x7168xf4E2M1FN>, tensor<65536x448xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
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
  %q, %s = fp4.quantize %y amax %amax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (tensor<65536x7168xbf16>, tensor<f32>) -> (tensor<65536x7168xf4E2M1FN>, tensor<65536x448xf8E4M3FN>)
  %t = fp4.swizzle_scales %s : tensor<65536x448xf8E4M3FN> -> tensor<65536x448xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<65536x7168xf4E2M1FN>, tensor<65536x448xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// Rows of eight CTAs of an SM wait in shared memory, too, if their threads wait for sums,
// CHECK-LABEL: func @many_wait_twice(
// CONVERTS-LABEL: func @many_wait_twice(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, strip = 4, stages = 1, threads = 64, single_rows = 1024, ctas_per_sm = 8>
// CONVERTS-NOT: strip =
func.func @many_wait_twice(%x: tensor<65536x4096xbf16>, %amax: tensor<f32>) -> (tensor<65536x4096xf4E2M1FN>, tensor<65536x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
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
  %q, %s = fp4.quantize %y amax %amax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (tensor<65536x4096xbf16>, tensor<f32>) -> (tensor<65536x4096xf4E2M1FN>, tensor<65536x256xf8E4M3FN>)
  %t = fp4.swizzle_scales %s : tensor<65536x256xf8E4M3FN> -> tensor<65536x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<65536x4096xf4E2M1FN>, tensor<65536x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// from three quarters of a wave on,
// CHECK-LABEL: func @some_wait_twice(
// CONVERTS-LABEL: func @some_wait_twice(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, strip = 4, stages = 1, threads = 64, single_rows = 1024, ctas_per_sm = 8>
// CONVERTS-NOT: strip =
func.func @some_wait_twice(%x: tensor<3168x4096xbf16>, %amax: tensor<f32>) -> (tensor<3168x4096xf4E2M1FN>, tensor<3168x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %zeros = arith.constant dense<0.0> : tensor<3168xf32>
  %e = tensor.empty() : tensor<3168x4096xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3168x4096xbf16>) outs(%zeros : tensor<3168xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<3168xf32>
  %s0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3168x4096xbf16>) outs(%zeros : tensor<3168xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %a = arith.addf %o, %f : f32
    linalg.yield %a : f32
  } -> tensor<3168xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n, %s0 : tensor<3168x4096xbf16>, tensor<3168xf32>, tensor<3168xf32>) outs(%e : tensor<3168x4096xbf16>) {
  ^bb0(%v: bf16, %b: f32, %s1: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %g = arith.subf %f, %s1 : f32
    %d = arith.mulf %g, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<3168x4096xbf16>
  %q, %s = fp4.quantize %y amax %amax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (tensor<3168x4096xbf16>, tensor<f32>) -> (tensor<3168x4096xf4E2M1FN>, tensor<3168x256xf8E4M3FN>)
  %t = fp4.swizzle_scales %s : tensor<3168x256xf8E4M3FN> -> tensor<3168x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<3168x4096xf4E2M1FN>, tensor<3168x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// not for less.
// CHECK-LABEL: func @less_wait_twice(
// CONVERTS-LABEL: func @less_wait_twice(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 128>
// CONVERTS-NOT: strip =
func.func @less_wait_twice(%x: tensor<3072x4096xbf16>, %amax: tensor<f32>) -> (tensor<3072x4096xf4E2M1FN>, tensor<3072x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %zeros = arith.constant dense<0.0> : tensor<3072xf32>
  %e = tensor.empty() : tensor<3072x4096xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3072x4096xbf16>) outs(%zeros : tensor<3072xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<3072xf32>
  %s0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3072x4096xbf16>) outs(%zeros : tensor<3072xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %a = arith.addf %o, %f : f32
    linalg.yield %a : f32
  } -> tensor<3072xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n, %s0 : tensor<3072x4096xbf16>, tensor<3072xf32>, tensor<3072xf32>) outs(%e : tensor<3072x4096xbf16>) {
  ^bb0(%v: bf16, %b: f32, %s1: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %g = arith.subf %f, %s1 : f32
    %d = arith.mulf %g, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<3072x4096xbf16>
  %q, %s = fp4.quantize %y amax %amax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (tensor<3072x4096xbf16>, tensor<f32>) -> (tensor<3072x4096xf4E2M1FN>, tensor<3072x256xf8E4M3FN>)
  %t = fp4.swizzle_scales %s : tensor<3072x256xf8E4M3FN> -> tensor<3072x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<3072x4096xf4E2M1FN>, tensor<3072x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// Threads that wait for one sum alone gain as much,
// CHECK-LABEL: func @many_wait_once(
// CONVERTS-LABEL: func @many_wait_once(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, strip = 4, stages = 1, threads = 64, single_rows = 1024, ctas_per_sm = 8>
// CONVERTS-NOT: strip =
func.func @many_wait_once(%x: tensor<65536x4096xbf16>, %amax: tensor<f32>) -> (tensor<65536x4096xf4E2M1FN>, tensor<65536x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %e = tensor.empty() : tensor<65536x4096xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x4096xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<65536x4096xbf16>, tensor<65536xf32>) outs(%e : tensor<65536x4096xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %d = arith.mulf %f, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x4096xbf16>
  %q, %s = fp4.quantize %y amax %amax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (tensor<65536x4096xbf16>, tensor<f32>) -> (tensor<65536x4096xf4E2M1FN>, tensor<65536x256xf8E4M3FN>)
  %t = fp4.swizzle_scales %s : tensor<65536x256xf8E4M3FN> -> tensor<65536x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<65536x4096xf4E2M1FN>, tensor<65536x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// but not those that share blocks.
// CHECK-LABEL: func @many_share_blocks(
// CONVERTS-LABEL: func @many_share_blocks(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, strip = 4, threads = 64, ctas_per_sm = 8>
// CONVERTS-NOT: strip =
func.func @many_share_blocks(%x: tensor<65536x4096xbf16>) -> (tensor<65536x4096xf4E2M1FN>, tensor<65536x128xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %e = tensor.empty() : tensor<65536x4096xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x4096xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<65536x4096xbf16>, tensor<65536xf32>) outs(%e : tensor<65536x4096xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %d = arith.mulf %f, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x4096xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<65536x4096xbf16>) -> (tensor<65536x4096xf4E2M1FN>, tensor<65536x128xf8E8M0FNU>)
  %t = fp4.swizzle_scales %s : tensor<65536x128xf8E8M0FNU> -> tensor<65536x128xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<65536x4096xf4E2M1FN>, tensor<65536x128xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
}
