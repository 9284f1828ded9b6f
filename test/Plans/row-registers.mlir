// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s
// RUN: fp4-opt %s -fp4-set-target=target=sm_100a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s
// An SM has two CTAs of a row where it has registers for both. Weights that a sum reads, and the result again, are kept.

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// CHECK-LABEL: func @weights_of_both
// CHECK: #fp4.plan<reduce_rows, threads = 512, ctas_per_sm = 1>
func.func @weights_of_both(%x: tensor<4096x16384xbf16>, %g: tensor<4096x16384xbf16>, %w: tensor<16384xbf16>, %e: tensor<4096x16384xbf16>) -> tensor<4096x16384xbf16> {
  %zeros = arith.constant dense<0.0> : tensor<4096xf32>
  %n = linalg.generic {indexing_maps = [#all, #all, #column, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %g, %w : tensor<4096x16384xbf16>, tensor<4096x16384xbf16>, tensor<16384xbf16>) outs(%zeros : tensor<4096xf32>) {
  ^bb0(%a: bf16, %b: bf16, %c: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %h = arith.extf %b : bf16 to f32
    %v = arith.extf %c : bf16 to f32
    %p = arith.mulf %f, %h : f32
    %q = arith.mulf %p, %v : f32
    %t = arith.addf %o, %q : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %y = linalg.generic {indexing_maps = [#all, #all, #column, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %g, %w, %n : tensor<4096x16384xbf16>, tensor<4096x16384xbf16>, tensor<16384xbf16>, tensor<4096xf32>) outs(%e : tensor<4096x16384xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %c: bf16, %s: f32, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %h = arith.extf %b : bf16 to f32
    %v = arith.extf %c : bf16 to f32
    %p = arith.mulf %h, %v : f32
    %q = arith.mulf %f, %s : f32
    %d = arith.subf %p, %q : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4096x16384xbf16>
  return %y : tensor<4096x16384xbf16>
}

// CHECK-LABEL: func @weights_of_result
// CHECK: #fp4.plan<reduce_rows, threads = 512, ctas_per_sm = 2>
func.func @weights_of_result(%x: tensor<4096x16384xbf16>, %g: tensor<4096x16384xbf16>, %w: tensor<16384xbf16>, %e: tensor<4096x16384xbf16>) -> tensor<4096x16384xbf16> {
  %zeros = arith.constant dense<0.0> : tensor<4096xf32>
  %n = linalg.generic {indexing_maps = [#all, #all, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %g : tensor<4096x16384xbf16>, tensor<4096x16384xbf16>) outs(%zeros : tensor<4096xf32>) {
  ^bb0(%a: bf16, %b: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %h = arith.extf %b : bf16 to f32
    %p = arith.mulf %f, %h : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %y = linalg.generic {indexing_maps = [#all, #all, #column, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %g, %w, %n : tensor<4096x16384xbf16>, tensor<4096x16384xbf16>, tensor<16384xbf16>, tensor<4096xf32>) outs(%e : tensor<4096x16384xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %c: bf16, %s: f32, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %h = arith.extf %b : bf16 to f32
    %v = arith.extf %c : bf16 to f32
    %p = arith.mulf %h, %v : f32
    %q = arith.mulf %f, %s : f32
    %d = arith.subf %p, %q : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4096x16384xbf16>
  return %y : tensor<4096x16384xbf16>
}

// Two CTAs of 384 threads have 80 registers each.
// CHECK-LABEL: func @fewer_threads
// CHECK: #fp4.plan<reduce_rows, threads = 384, ctas_per_sm = 2>
func.func @fewer_threads(%x: tensor<4096x12288xbf16>, %g: tensor<4096x12288xbf16>, %w: tensor<12288xbf16>, %e: tensor<4096x12288xbf16>) -> tensor<4096x12288xbf16> {
  %zeros = arith.constant dense<0.0> : tensor<4096xf32>
  %n = linalg.generic {indexing_maps = [#all, #all, #column, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %g, %w : tensor<4096x12288xbf16>, tensor<4096x12288xbf16>, tensor<12288xbf16>) outs(%zeros : tensor<4096xf32>) {
  ^bb0(%a: bf16, %b: bf16, %c: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %h = arith.extf %b : bf16 to f32
    %v = arith.extf %c : bf16 to f32
    %p = arith.mulf %f, %h : f32
    %q = arith.mulf %p, %v : f32
    %t = arith.addf %o, %q : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %y = linalg.generic {indexing_maps = [#all, #all, #column, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %g, %w, %n : tensor<4096x12288xbf16>, tensor<4096x12288xbf16>, tensor<12288xbf16>, tensor<4096xf32>) outs(%e : tensor<4096x12288xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %c: bf16, %s: f32, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %h = arith.extf %b : bf16 to f32
    %v = arith.extf %c : bf16 to f32
    %p = arith.mulf %h, %v : f32
    %q = arith.mulf %f, %s : f32
    %d = arith.subf %p, %q : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4096x12288xbf16>
  return %y : tensor<4096x12288xbf16>
}
