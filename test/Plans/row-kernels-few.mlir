// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s
// RUN: fp4-opt %s -fp4-set-target=target=sm_110a -fp4-generalize-elementwise -fp4-fuse "-fp4-plan-kernels=plans={reduce_rows, cluster = [1, 16]}" | FileCheck %s --check-prefix=SIXTEEN
// RUN: fp4-opt %s -fp4-set-target=target=sm_120a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s --check-prefix=TWO
// Few rows have clusters while the CTAs of all rows find an SM each. An SM with several CTAs of a row would take longer.

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#partner = affine_map<(i, j) -> (i, (j + 3584) mod 7168)>

// Threads that wait for no other thread are as many as a row has chunks where rows are few.
// CHECK-LABEL: func @few_of_other_columns
// CHECK: #fp4.plan<reduce_rows, threads = 448>
func.func @few_of_other_columns(%x: tensor<64x7168xbf16>) -> tensor<64x7168xbf16> {
  %e = tensor.empty() : tensor<64x7168xbf16>
  %y = linalg.generic {indexing_maps = [#all, #partner, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %x : tensor<64x7168xbf16>, tensor<64x7168xbf16>) outs(%e : tensor<64x7168xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %t = arith.mulf %a, %b : bf16
    linalg.yield %t : bf16
  } -> tensor<64x7168xbf16>
  return %y : tensor<64x7168xbf16>
}

// CHECK-LABEL: func @many_of_other_columns
// CHECK: #fp4.plan<reduce_rows, threads = 128>
func.func @many_of_other_columns(%x: tensor<640x7168xbf16>) -> tensor<640x7168xbf16> {
  %e = tensor.empty() : tensor<640x7168xbf16>
  %y = linalg.generic {indexing_maps = [#all, #partner, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %x : tensor<640x7168xbf16>, tensor<640x7168xbf16>) outs(%e : tensor<640x7168xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %t = arith.mulf %a, %b : bf16
    linalg.yield %t : bf16
  } -> tensor<640x7168xbf16>
  return %y : tensor<640x7168xbf16>
}

// CHECK-LABEL: func @eight
// CHECK: #fp4.plan<reduce_rows, cluster = [1, 4], threads = 512, ctas_per_sm = 3>
// SIXTEEN-LABEL: func @eight
// SIXTEEN: #fp4.plan<reduce_rows, cluster = [1, 16], threads = 512
// TWO-LABEL: func @eight
// TWO: #fp4.plan<reduce_rows, cluster = [1, 2], threads = 512
func.func @eight(%x: tensor<8x16400xbf16>) -> tensor<8x16400xbf16> {
  %zeros = arith.constant dense<0.0> : tensor<8xf32>
  %lows = arith.constant dense<0xFF800000> : tensor<8xf32>
  %m = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x16400xbf16>) outs(%lows : tensor<8xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %t = arith.maximumf %o, %f : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %n = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<8x16400xbf16>, tensor<8xf32>) outs(%zeros : tensor<8xf32>) {
  ^bb0(%a: bf16, %b: f32, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %s = arith.subf %f, %b : f32
    %p = math.exp %s : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %e = tensor.empty() : tensor<8x16400xbf16>
  %y = linalg.generic {indexing_maps = [#all, #row, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %m, %n : tensor<8x16400xbf16>, tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8x16400xbf16>) {
  ^bb0(%a: bf16, %b: f32, %c: f32, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %s = arith.subf %f, %b : f32
    %p = math.exp %s : f32
    %d = arith.divf %p, %c : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<8x16400xbf16>
  return %y : tensor<8x16400xbf16>
}

// CHECK-LABEL: func @sixty_six
// CHECK: #fp4.plan<reduce_rows, cluster = [1, 2], threads = 512, ctas_per_sm = 2>
func.func @sixty_six(%x: tensor<66x16400xbf16>) -> tensor<66x16400xbf16> {
  %zeros = arith.constant dense<0.0> : tensor<66xf32>
  %lows = arith.constant dense<0xFF800000> : tensor<66xf32>
  %m = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<66x16400xbf16>) outs(%lows : tensor<66xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %t = arith.maximumf %o, %f : f32
    linalg.yield %t : f32
  } -> tensor<66xf32>
  %n = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<66x16400xbf16>, tensor<66xf32>) outs(%zeros : tensor<66xf32>) {
  ^bb0(%a: bf16, %b: f32, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %s = arith.subf %f, %b : f32
    %p = math.exp %s : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<66xf32>
  %e = tensor.empty() : tensor<66x16400xbf16>
  %y = linalg.generic {indexing_maps = [#all, #row, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %m, %n : tensor<66x16400xbf16>, tensor<66xf32>, tensor<66xf32>) outs(%e : tensor<66x16400xbf16>) {
  ^bb0(%a: bf16, %b: f32, %c: f32, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %s = arith.subf %f, %b : f32
    %p = math.exp %s : f32
    %d = arith.divf %p, %c : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<66x16400xbf16>
  return %y : tensor<66x16400xbf16>
}

// CHECK-LABEL: func @hundred
// CHECK: #fp4.plan<reduce_rows, threads = 512, ctas_per_sm = 2>
func.func @hundred(%x: tensor<100x16400xbf16>) -> tensor<100x16400xbf16> {
  %zeros = arith.constant dense<0.0> : tensor<100xf32>
  %lows = arith.constant dense<0xFF800000> : tensor<100xf32>
  %m = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<100x16400xbf16>) outs(%lows : tensor<100xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %t = arith.maximumf %o, %f : f32
    linalg.yield %t : f32
  } -> tensor<100xf32>
  %n = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<100x16400xbf16>, tensor<100xf32>) outs(%zeros : tensor<100xf32>) {
  ^bb0(%a: bf16, %b: f32, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %s = arith.subf %f, %b : f32
    %p = math.exp %s : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<100xf32>
  %e = tensor.empty() : tensor<100x16400xbf16>
  %y = linalg.generic {indexing_maps = [#all, #row, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %m, %n : tensor<100x16400xbf16>, tensor<100xf32>, tensor<100xf32>) outs(%e : tensor<100x16400xbf16>) {
  ^bb0(%a: bf16, %b: f32, %c: f32, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %s = arith.subf %f, %b : f32
    %p = math.exp %s : f32
    %d = arith.divf %p, %c : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<100x16400xbf16>
  return %y : tensor<100x16400xbf16>
}

// A row of more elements is worth several CTAs of an SM.
// CHECK-LABEL: func @long
// CHECK: #fp4.plan<reduce_rows, cluster = [1, 8], threads = 512, ctas_per_sm = 3>
func.func @long(%x: tensor<33x65536xbf16>) -> tensor<33x65536xbf16> {
  %zeros = arith.constant dense<0.0> : tensor<33xf32>
  %lows = arith.constant dense<0xFF800000> : tensor<33xf32>
  %m = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<33x65536xbf16>) outs(%lows : tensor<33xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %t = arith.maximumf %o, %f : f32
    linalg.yield %t : f32
  } -> tensor<33xf32>
  %n = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<33x65536xbf16>, tensor<33xf32>) outs(%zeros : tensor<33xf32>) {
  ^bb0(%a: bf16, %b: f32, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %s = arith.subf %f, %b : f32
    %p = math.exp %s : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<33xf32>
  %e = tensor.empty() : tensor<33x65536xbf16>
  %y = linalg.generic {indexing_maps = [#all, #row, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %m, %n : tensor<33x65536xbf16>, tensor<33xf32>, tensor<33xf32>) outs(%e : tensor<33x65536xbf16>) {
  ^bb0(%a: bf16, %b: f32, %c: f32, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %s = arith.subf %f, %b : f32
    %p = math.exp %s : f32
    %d = arith.divf %p, %c : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<33x65536xbf16>
  return %y : tensor<33x65536xbf16>
}

// No rows are planned as one.
// CHECK-LABEL: func @none
// CHECK: #fp4.plan<reduce_rows, {{(cluster = \[1, [48]\], )?}}threads = 512
func.func @none(%x: tensor<0x16400xbf16>) -> tensor<0x16400xbf16> {
  %zeros = arith.constant dense<0.0> : tensor<0xf32>
  %lows = arith.constant dense<0xFF800000> : tensor<0xf32>
  %m = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<0x16400xbf16>) outs(%lows : tensor<0xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %t = arith.maximumf %o, %f : f32
    linalg.yield %t : f32
  } -> tensor<0xf32>
  %n = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<0x16400xbf16>, tensor<0xf32>) outs(%zeros : tensor<0xf32>) {
  ^bb0(%a: bf16, %b: f32, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %s = arith.subf %f, %b : f32
    %p = math.exp %s : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<0xf32>
  %e = tensor.empty() : tensor<0x16400xbf16>
  %y = linalg.generic {indexing_maps = [#all, #row, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %m, %n : tensor<0x16400xbf16>, tensor<0xf32>, tensor<0xf32>) outs(%e : tensor<0x16400xbf16>) {
  ^bb0(%a: bf16, %b: f32, %c: f32, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %s = arith.subf %f, %b : f32
    %p = math.exp %s : f32
    %d = arith.divf %p, %c : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<0x16400xbf16>
  return %y : tensor<0x16400xbf16>
}
