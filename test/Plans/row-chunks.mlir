// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s
// Chunks of a thread of rows that no quantizer follows: more share what a thread computes once, and wait for each other.

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A chunk of a thread,
// CHECK-LABEL: func @short(
// CHECK: linalg.generic{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 128>
func.func @short(%x: tensor<65536x2048xbf16>, %e: tensor<65536x2048xbf16>) -> tensor<65536x2048xbf16> {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %n0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x2048xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %s = arith.mulf %f, %f : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n0 : tensor<65536x2048xbf16>, tensor<65536xf32>) outs(%e : tensor<65536x2048xbf16>) {
  ^bb0(%a: bf16, %b0: f32, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %d = arith.mulf %f, %b0 : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x2048xbf16>
  return %y : tensor<65536x2048xbf16>
}

// but two where elements take exponentials.
// CHECK-LABEL: func @exponentials(
// CHECK: linalg.generic{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 64>
func.func @exponentials(%x: tensor<65536x2048xbf16>, %e: tensor<65536x2048xbf16>) -> tensor<65536x2048xbf16> {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %n0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x2048xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %s = arith.mulf %f, %f : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n0 : tensor<65536x2048xbf16>, tensor<65536xf32>) outs(%e : tensor<65536x2048xbf16>) {
  ^bb0(%a: bf16, %b0: f32, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %g = math.exp %f : f32
    %d = arith.mulf %g, %b0 : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x2048xbf16>
  return %y : tensor<65536x2048xbf16>
}

// Two chunks of a thread,
// CHECK-LABEL: func @long(
// CHECK: linalg.generic{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 512, ctas_per_sm = 2>
func.func @long(%x: tensor<65536x16384xbf16>, %e: tensor<65536x16384xbf16>) -> tensor<65536x16384xbf16> {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %n0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x16384xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %s = arith.mulf %f, %f : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n0 : tensor<65536x16384xbf16>, tensor<65536xf32>) outs(%e : tensor<65536x16384xbf16>) {
  ^bb0(%a: bf16, %b0: f32, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %d = arith.mulf %f, %b0 : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x16384xbf16>
  return %y : tensor<65536x16384xbf16>
}

// but four where threads wait for two sums.
// CHECK-LABEL: func @means(
// CHECK: linalg.generic{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 256, ctas_per_sm = 2>
func.func @means(%x: tensor<1024x16384xbf16>, %e: tensor<1024x16384xbf16>) -> tensor<1024x16384xbf16> {
  %zeros = arith.constant dense<0.0> : tensor<1024xf32>
  %n0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<1024x16384xbf16>) outs(%zeros : tensor<1024xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %s = arith.mulf %f, %f : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<1024xf32>
  %n1 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<1024x16384xbf16>) outs(%zeros : tensor<1024xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %t = arith.addf %o, %f : f32
    linalg.yield %t : f32
  } -> tensor<1024xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n0, %n1 : tensor<1024x16384xbf16>, tensor<1024xf32>, tensor<1024xf32>) outs(%e : tensor<1024x16384xbf16>) {
  ^bb0(%a: bf16, %b0: f32, %b1: f32, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %c = arith.subf %f, %b1 : f32
    %d = arith.mulf %c, %b0 : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<1024x16384xbf16>
  return %y : tensor<1024x16384xbf16>
}

// CTAs take four of many such rows, one after the other,
// CHECK-LABEL: func @strips(
// CHECK: linalg.generic{{.*}}fp4.plan = #fp4.plan<reduce_rows, strip = 4, stages = 1, threads = 256, single_rows = 264, ctas_per_sm = 2>
func.func @strips(%x: tensor<65536x16384xbf16>, %e: tensor<65536x16384xbf16>) -> tensor<65536x16384xbf16> {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %n0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x16384xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %s = arith.mulf %f, %f : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<65536xf32>
  %n1 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x16384xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %t = arith.addf %o, %f : f32
    linalg.yield %t : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n0, %n1 : tensor<65536x16384xbf16>, tensor<65536xf32>, tensor<65536xf32>) outs(%e : tensor<65536x16384xbf16>) {
  ^bb0(%a: bf16, %b0: f32, %b1: f32, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %c = arith.subf %f, %b1 : f32
    %d = arith.mulf %c, %b0 : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x16384xbf16>
  return %y : tensor<65536x16384xbf16>
}

// and eight where threads wait for the largest number and the sum of approximate exponentials.
// CHECK-LABEL: func @loss(
// CHECK: linalg.generic{{.*}}fp4.dispatch = [{{.*}}#fp4.case<m = [133, 31679] : reduce_rows, threads = 256, ctas_per_sm = 6>], fp4.plan = #fp4.plan<reduce_rows, strip = 8, stages = 1, threads = 256, single_rows = 1980, ctas_per_sm = 5>
func.func @loss(%x: tensor<?x8192xbf16>, %e: tensor<?xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %lows = linalg.fill ins(%low : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %m = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x8192xbf16>) outs(%lows : tensor<?xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %t = arith.maximumf %o, %f : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %n = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<?x8192xbf16>, tensor<?xf32>) outs(%zeros : tensor<?xf32>) {
  ^bb0(%a: bf16, %b: f32, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %d = arith.subf %f, %b : f32
    %p = math.exp %d fastmath<afn> : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  return %n : tensor<?xf32>
}

// Longer rows have three CTAs of an SM and no strips, and shorter ones twelve.
// CHECK-LABEL: func @long_loss(
// CHECK: linalg.generic{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 512, ctas_per_sm = 3>
func.func @long_loss(%x: tensor<?x16384xbf16>, %e: tensor<?xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %lows = linalg.fill ins(%low : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %m = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x16384xbf16>) outs(%lows : tensor<?xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %t = arith.maximumf %o, %f : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %n = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<?x16384xbf16>, tensor<?xf32>) outs(%zeros : tensor<?xf32>) {
  ^bb0(%a: bf16, %b: f32, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %d = arith.subf %f, %b : f32
    %p = math.exp %d fastmath<afn> : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  return %n : tensor<?xf32>
}
// CHECK-LABEL: func @short_loss(
// CHECK: linalg.generic{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 128, ctas_per_sm = 12>
func.func @short_loss(%x: tensor<?x4096xbf16>, %e: tensor<?xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %lows = linalg.fill ins(%low : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %m = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x4096xbf16>) outs(%lows : tensor<?xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %t = arith.maximumf %o, %f : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %n = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<?x4096xbf16>, tensor<?xf32>) outs(%zeros : tensor<?xf32>) {
  ^bb0(%a: bf16, %b: f32, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %d = arith.subf %f, %b : f32
    %p = math.exp %d fastmath<afn> : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  return %n : tensor<?xf32>
}
