// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s
// Threads that add rows by number wait for no others. ptxas begins their loads at once where it knows how many CTAs an SM has.

#all = affine_map<(i, j) -> (i, j)>

// Eight rows of two words for an element of a thread fill its registers.
// CHECK-LABEL: func @eight(
// CHECK: linalg.generic{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 128, ctas_per_sm = 6>
func.func @eight(%y0: tensor<65536x2048xbf16>, %y1: tensor<65536x2048xbf16>, %y2: tensor<65536x2048xbf16>, %y3: tensor<65536x2048xbf16>, %y4: tensor<65536x2048xbf16>, %y5: tensor<65536x2048xbf16>, %y6: tensor<65536x2048xbf16>, %y7: tensor<65536x2048xbf16>, %numbers: tensor<65536xi64>, %w: tensor<65536x1xf32>) -> tensor<65536x2048xbf16> {
  %rows = tensor.expand_shape %numbers [[0, 1]] output_shape [65536, 1] : tensor<65536xi64> into tensor<65536x1xi64>
  %e = tensor.empty() : tensor<65536x2048xbf16>
  %v0 = tensor.gather %y0[%rows] gather_dims([0]) : (tensor<65536x2048xbf16>, tensor<65536x1xi64>) -> tensor<65536x2048xbf16>
  %v1 = tensor.gather %y1[%rows] gather_dims([0]) : (tensor<65536x2048xbf16>, tensor<65536x1xi64>) -> tensor<65536x2048xbf16>
  %v2 = tensor.gather %y2[%rows] gather_dims([0]) : (tensor<65536x2048xbf16>, tensor<65536x1xi64>) -> tensor<65536x2048xbf16>
  %v3 = tensor.gather %y3[%rows] gather_dims([0]) : (tensor<65536x2048xbf16>, tensor<65536x1xi64>) -> tensor<65536x2048xbf16>
  %v4 = tensor.gather %y4[%rows] gather_dims([0]) : (tensor<65536x2048xbf16>, tensor<65536x1xi64>) -> tensor<65536x2048xbf16>
  %v5 = tensor.gather %y5[%rows] gather_dims([0]) : (tensor<65536x2048xbf16>, tensor<65536x1xi64>) -> tensor<65536x2048xbf16>
  %v6 = tensor.gather %y6[%rows] gather_dims([0]) : (tensor<65536x2048xbf16>, tensor<65536x1xi64>) -> tensor<65536x2048xbf16>
  %v7 = tensor.gather %y7[%rows] gather_dims([0]) : (tensor<65536x2048xbf16>, tensor<65536x1xi64>) -> tensor<65536x2048xbf16>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j floordiv 2048)>, #all, #all, #all, #all, #all, #all, #all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%w, %v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7 : tensor<65536x1xf32>, tensor<65536x2048xbf16>, tensor<65536x2048xbf16>, tensor<65536x2048xbf16>, tensor<65536x2048xbf16>, tensor<65536x2048xbf16>, tensor<65536x2048xbf16>, tensor<65536x2048xbf16>, tensor<65536x2048xbf16>) outs(%e : tensor<65536x2048xbf16>) {
  ^bb0(%f: f32, %a0: bf16, %a1: bf16, %a2: bf16, %a3: bf16, %a4: bf16, %a5: bf16, %a6: bf16, %a7: bf16, %o: bf16):
    %b1 = arith.addf %a0, %a1 : bf16
    %b2 = arith.addf %b1, %a2 : bf16
    %b3 = arith.addf %b2, %a3 : bf16
    %b4 = arith.addf %b3, %a4 : bf16
    %b5 = arith.addf %b4, %a5 : bf16
    %b6 = arith.addf %b5, %a6 : bf16
    %b7 = arith.addf %b6, %a7 : bf16
    %g = arith.truncf %f : f32 to bf16
    %p = arith.mulf %b7, %g : bf16
    linalg.yield %p : bf16
  } -> tensor<65536x2048xbf16>
  return %s : tensor<65536x2048xbf16>
}

// Four do not,
// CHECK-LABEL: func @four(
// CHECK: linalg.generic{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 128>
func.func @four(%y0: tensor<65536x2048xbf16>, %y1: tensor<65536x2048xbf16>, %y2: tensor<65536x2048xbf16>, %y3: tensor<65536x2048xbf16>, %numbers: tensor<65536xi64>, %w: tensor<65536x1xf32>) -> tensor<65536x2048xbf16> {
  %rows = tensor.expand_shape %numbers [[0, 1]] output_shape [65536, 1] : tensor<65536xi64> into tensor<65536x1xi64>
  %e = tensor.empty() : tensor<65536x2048xbf16>
  %v0 = tensor.gather %y0[%rows] gather_dims([0]) : (tensor<65536x2048xbf16>, tensor<65536x1xi64>) -> tensor<65536x2048xbf16>
  %v1 = tensor.gather %y1[%rows] gather_dims([0]) : (tensor<65536x2048xbf16>, tensor<65536x1xi64>) -> tensor<65536x2048xbf16>
  %v2 = tensor.gather %y2[%rows] gather_dims([0]) : (tensor<65536x2048xbf16>, tensor<65536x1xi64>) -> tensor<65536x2048xbf16>
  %v3 = tensor.gather %y3[%rows] gather_dims([0]) : (tensor<65536x2048xbf16>, tensor<65536x1xi64>) -> tensor<65536x2048xbf16>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j floordiv 2048)>, #all, #all, #all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%w, %v0, %v1, %v2, %v3 : tensor<65536x1xf32>, tensor<65536x2048xbf16>, tensor<65536x2048xbf16>, tensor<65536x2048xbf16>, tensor<65536x2048xbf16>) outs(%e : tensor<65536x2048xbf16>) {
  ^bb0(%f: f32, %a0: bf16, %a1: bf16, %a2: bf16, %a3: bf16, %o: bf16):
    %b1 = arith.addf %a0, %a1 : bf16
    %b2 = arith.addf %b1, %a2 : bf16
    %b3 = arith.addf %b2, %a3 : bf16
    %g = arith.truncf %f : f32 to bf16
    %p = arith.mulf %b3, %g : bf16
    linalg.yield %p : bf16
  } -> tensor<65536x2048xbf16>
  return %s : tensor<65536x2048xbf16>
}

// and a loop over chunks begins few loads anyway.
// CHECK-LABEL: func @loop(
// CHECK: linalg.generic{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 128>
func.func @loop(%y0: tensor<65536x4096xbf16>, %y1: tensor<65536x4096xbf16>, %y2: tensor<65536x4096xbf16>, %y3: tensor<65536x4096xbf16>, %y4: tensor<65536x4096xbf16>, %y5: tensor<65536x4096xbf16>, %y6: tensor<65536x4096xbf16>, %y7: tensor<65536x4096xbf16>, %numbers: tensor<65536xi64>, %w: tensor<65536x1xf32>) -> tensor<65536x4096xbf16> {
  %rows = tensor.expand_shape %numbers [[0, 1]] output_shape [65536, 1] : tensor<65536xi64> into tensor<65536x1xi64>
  %e = tensor.empty() : tensor<65536x4096xbf16>
  %v0 = tensor.gather %y0[%rows] gather_dims([0]) : (tensor<65536x4096xbf16>, tensor<65536x1xi64>) -> tensor<65536x4096xbf16>
  %v1 = tensor.gather %y1[%rows] gather_dims([0]) : (tensor<65536x4096xbf16>, tensor<65536x1xi64>) -> tensor<65536x4096xbf16>
  %v2 = tensor.gather %y2[%rows] gather_dims([0]) : (tensor<65536x4096xbf16>, tensor<65536x1xi64>) -> tensor<65536x4096xbf16>
  %v3 = tensor.gather %y3[%rows] gather_dims([0]) : (tensor<65536x4096xbf16>, tensor<65536x1xi64>) -> tensor<65536x4096xbf16>
  %v4 = tensor.gather %y4[%rows] gather_dims([0]) : (tensor<65536x4096xbf16>, tensor<65536x1xi64>) -> tensor<65536x4096xbf16>
  %v5 = tensor.gather %y5[%rows] gather_dims([0]) : (tensor<65536x4096xbf16>, tensor<65536x1xi64>) -> tensor<65536x4096xbf16>
  %v6 = tensor.gather %y6[%rows] gather_dims([0]) : (tensor<65536x4096xbf16>, tensor<65536x1xi64>) -> tensor<65536x4096xbf16>
  %v7 = tensor.gather %y7[%rows] gather_dims([0]) : (tensor<65536x4096xbf16>, tensor<65536x1xi64>) -> tensor<65536x4096xbf16>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j floordiv 4096)>, #all, #all, #all, #all, #all, #all, #all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%w, %v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7 : tensor<65536x1xf32>, tensor<65536x4096xbf16>, tensor<65536x4096xbf16>, tensor<65536x4096xbf16>, tensor<65536x4096xbf16>, tensor<65536x4096xbf16>, tensor<65536x4096xbf16>, tensor<65536x4096xbf16>, tensor<65536x4096xbf16>) outs(%e : tensor<65536x4096xbf16>) {
  ^bb0(%f: f32, %a0: bf16, %a1: bf16, %a2: bf16, %a3: bf16, %a4: bf16, %a5: bf16, %a6: bf16, %a7: bf16, %o: bf16):
    %b1 = arith.addf %a0, %a1 : bf16
    %b2 = arith.addf %b1, %a2 : bf16
    %b3 = arith.addf %b2, %a3 : bf16
    %b4 = arith.addf %b3, %a4 : bf16
    %b5 = arith.addf %b4, %a5 : bf16
    %b6 = arith.addf %b5, %a6 : bf16
    %b7 = arith.addf %b6, %a7 : bf16
    %g = arith.truncf %f : f32 to bf16
    %p = arith.mulf %b7, %g : bf16
    linalg.yield %p : bf16
  } -> tensor<65536x4096xbf16>
  return %s : tensor<65536x4096xbf16>
}

// A thread has one chunk of four long rows.
// CHECK-LABEL: func @long(
// CHECK: linalg.generic{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 512>
func.func @long(%y0: tensor<65536x8192xbf16>, %y1: tensor<65536x8192xbf16>, %y2: tensor<65536x8192xbf16>, %y3: tensor<65536x8192xbf16>, %numbers: tensor<65536xi64>, %w: tensor<65536x1xf32>) -> tensor<65536x8192xbf16> {
  %rows = tensor.expand_shape %numbers [[0, 1]] output_shape [65536, 1] : tensor<65536xi64> into tensor<65536x1xi64>
  %e = tensor.empty() : tensor<65536x8192xbf16>
  %v0 = tensor.gather %y0[%rows] gather_dims([0]) : (tensor<65536x8192xbf16>, tensor<65536x1xi64>) -> tensor<65536x8192xbf16>
  %v1 = tensor.gather %y1[%rows] gather_dims([0]) : (tensor<65536x8192xbf16>, tensor<65536x1xi64>) -> tensor<65536x8192xbf16>
  %v2 = tensor.gather %y2[%rows] gather_dims([0]) : (tensor<65536x8192xbf16>, tensor<65536x1xi64>) -> tensor<65536x8192xbf16>
  %v3 = tensor.gather %y3[%rows] gather_dims([0]) : (tensor<65536x8192xbf16>, tensor<65536x1xi64>) -> tensor<65536x8192xbf16>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j floordiv 8192)>, #all, #all, #all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%w, %v0, %v1, %v2, %v3 : tensor<65536x1xf32>, tensor<65536x8192xbf16>, tensor<65536x8192xbf16>, tensor<65536x8192xbf16>, tensor<65536x8192xbf16>) outs(%e : tensor<65536x8192xbf16>) {
  ^bb0(%f: f32, %a0: bf16, %a1: bf16, %a2: bf16, %a3: bf16, %o: bf16):
    %b1 = arith.addf %a0, %a1 : bf16
    %b2 = arith.addf %b1, %a2 : bf16
    %b3 = arith.addf %b2, %a3 : bf16
    %g = arith.truncf %f : f32 to bf16
    %p = arith.mulf %b3, %g : bf16
    linalg.yield %p : bf16
  } -> tensor<65536x8192xbf16>
  return %s : tensor<65536x8192xbf16>
}
