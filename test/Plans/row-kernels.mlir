// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s
// RUN: fp4-opt %s -fp4-set-target=target=sm_100a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s
// RUN: fp4-opt %s -fp4-set-target=target=sm_120a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s --check-prefix=TWO
// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-generalize-elementwise -fp4-fuse "-fp4-plan-kernels=plans={reduce_rows, cluster = [1, 4]}" | FileCheck %s --check-prefix=FOUR
// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-generalize-elementwise -fp4-fuse "-fp4-plan-kernels=plans={reduce_rows, cluster = [1, 1]}" | FileCheck %s --check-prefix=ONE
// A row that registers of one CTA do not keep has a cluster, which reads it once if the row is in its registers.
// Nobody has measured on how many SMs of sm_120a a cluster of four CTAs finds room.

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func @short
// CHECK: #fp4.plan<reduce_rows, threads = 512, ctas_per_sm = 2>
// TWO-LABEL: func @short
// TWO: #fp4.plan<reduce_rows, threads = 512, ctas_per_sm = 2>
// FOUR-LABEL: func @short
// FOUR: #fp4.plan<reduce_rows, cluster = [1, 4], threads = 256>
func.func @short(%x: tensor<4096x16384xbf16>, %e: tensor<4096x16384xbf16>) -> tensor<4096x16384xbf16> {
  %zeros = arith.constant dense<0.0> : tensor<4096xf32>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4096x16384xbf16>) outs(%zeros : tensor<4096xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %s = arith.mulf %f, %f : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<4096x16384xbf16>, tensor<4096xf32>) outs(%e : tensor<4096x16384xbf16>) {
  ^bb0(%a: bf16, %b: f32, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %r = math.rsqrt %b : f32
    %d = arith.mulf %f, %r : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4096x16384xbf16>
  return %y : tensor<4096x16384xbf16>
}

// CHECK-LABEL: func @long
// CHECK: #fp4.plan<reduce_rows, cluster = [1, 4], threads = 352, ctas_per_sm = 3>
// TWO-LABEL: func @long
// TWO: #fp4.plan<reduce_rows, cluster = [1, 2], threads = 512, ctas_per_sm = 2>
// FOUR-LABEL: func @long
// FOUR: #fp4.plan<reduce_rows, cluster = [1, 4], threads =
func.func @long(%x: tensor<4096x65536xbf16>, %e: tensor<4096x65536xbf16>) -> tensor<4096x65536xbf16> {
  %zeros = arith.constant dense<0.0> : tensor<4096xf32>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4096x65536xbf16>) outs(%zeros : tensor<4096xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %s = arith.mulf %f, %f : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<4096x65536xbf16>, tensor<4096xf32>) outs(%e : tensor<4096x65536xbf16>) {
  ^bb0(%a: bf16, %b: f32, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %r = math.rsqrt %b : f32
    %d = arith.mulf %f, %r : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4096x65536xbf16>
  return %y : tensor<4096x65536xbf16>
}

// Registers of eight CTAs do not keep two longer rows. All CTAs read them twice, with the most threads.
// CHECK-LABEL: func @longest
// CHECK: #fp4.plan<reduce_rows, cluster = [1, {{[48]}}], threads = 512, ctas_per_sm = 2>
// TWO-LABEL: func @longest
// TWO: #fp4.plan<reduce_rows, cluster = [1, 2], threads = 512, ctas_per_sm = 2>
func.func @longest(%x: tensor<4096x262144xf32>, %r: tensor<4096x262144xf32>, %e: tensor<4096x262144xf32>) -> tensor<4096x262144xf32> {
  %zeros = arith.constant dense<0.0> : tensor<4096xf32>
  %n = linalg.generic {indexing_maps = [#all, #all, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %r : tensor<4096x262144xf32>, tensor<4096x262144xf32>) outs(%zeros : tensor<4096xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.mulf %a, %b : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<4096x262144xf32>, tensor<4096xf32>) outs(%e : tensor<4096x262144xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.mulf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<4096x262144xf32>
  return %y : tensor<4096x262144xf32>
}

// 768 threads would keep the row with 56 words each, for which an SM has no registers beside their other ones.
// ONE-LABEL: func @registers
// ONE: #fp4.plan<reduce_rows, cluster = [1, 1], threads = 672, ctas_per_sm = 1>
func.func @registers(%x: tensor<4096x86016xbf16>, %e: tensor<4096x86016xbf16>) -> tensor<4096x86016xbf16> {
  %zeros = arith.constant dense<0.0> : tensor<4096xf32>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4096x86016xbf16>) outs(%zeros : tensor<4096xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %s = arith.mulf %f, %f : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<4096x86016xbf16>, tensor<4096xf32>) outs(%e : tensor<4096x86016xbf16>) {
  ^bb0(%a: bf16, %b: f32, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %r = math.rsqrt %b : f32
    %d = arith.mulf %f, %r : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4096x86016xbf16>
  return %y : tensor<4096x86016xbf16>
}
