// RUN: fp4-opt %s -split-input-file -fp4-generalize-elementwise | FileCheck %s
// Elementwise operations on batches of rows, beside a reshape of a matrix, become operations on matrices.

#m = affine_map<(b, i, j) -> (b, i, j)>
#bias = affine_map<(b, i, j) -> (0, 0, j)>
// CHECK-LABEL: func.func @behind
// CHECK-SAME: %[[X:.*]]: tensor<10x64xf32>, %[[BIAS:.*]]: tensor<1x1x64xf32>
// CHECK: %[[ROW:.*]] = tensor.collapse_shape %[[BIAS]] {{.*}} into tensor<64xf32>
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[ROW]] : tensor<10x64xf32>, tensor<64xf32>) outs(%{{.*}} : tensor<10x64xf32>)
// CHECK: tensor.expand_shape %[[Y]] {{\[\[}}0, 1], [2]] output_shape [2, 5, 64]
func.func @behind(%x: tensor<10x64xf32>, %bias: tensor<1x1x64xf32>) -> tensor<2x5x64xf32> {
  %a = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 5, 64] : tensor<10x64xf32> into tensor<2x5x64xf32>
  %e = tensor.empty() : tensor<2x5x64xf32>
  %y = linalg.generic {indexing_maps = [#m, #bias, #m], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %bias : tensor<2x5x64xf32>, tensor<1x1x64xf32>) outs(%e : tensor<2x5x64xf32>) {
  ^bb0(%v: f32, %b: f32, %o: f32):
    %s = arith.addf %v, %b : f32
    linalg.yield %s : f32
  } -> tensor<2x5x64xf32>
  return %y : tensor<2x5x64xf32>
}

// -----

// A factor of each batch has no rows that a matrix could have.
#m = affine_map<(b, i, j) -> (b, i, j)>
#batch = affine_map<(b, i, j) -> (b)>
// CHECK-LABEL: func.func @batches
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x5x64xf32>)
func.func @batches(%x: tensor<10x64xf32>, %f: tensor<2xf32>) -> tensor<2x5x64xf32> {
  %a = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 5, 64] : tensor<10x64xf32> into tensor<2x5x64xf32>
  %e = tensor.empty() : tensor<2x5x64xf32>
  %y = linalg.generic {indexing_maps = [#m, #batch, #m], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %f : tensor<2x5x64xf32>, tensor<2xf32>) outs(%e : tensor<2x5x64xf32>) {
  ^bb0(%v: f32, %b: f32, %o: f32):
    %s = arith.mulf %v, %b : f32
    linalg.yield %s : f32
  } -> tensor<2x5x64xf32>
  return %y : tensor<2x5x64xf32>
}

// -----

// Without a reshape beside it an operation keeps its dimensions.
#m = affine_map<(b, i, j) -> (b, i, j)>
// CHECK-LABEL: func.func @alone
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<1x5x64xf32>)
func.func @alone(%x: tensor<1x5x64xf32>) -> tensor<1x5x64xf32> {
  %e = tensor.empty() : tensor<1x5x64xf32>
  %y = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<1x5x64xf32>) outs(%e : tensor<1x5x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %s = arith.negf %v : f32
    linalg.yield %s : f32
  } -> tensor<1x5x64xf32>
  return %y : tensor<1x5x64xf32>
}

// -----

// A reduction of the innermost dimension is one of the rows of a matrix, and its reader follows. The view of a result
// is where the result is read as a batch.
#m = affine_map<(b, i, j) -> (b, i, j)>
#row = affine_map<(b, i, j) -> (b, i, 0)>
// CHECK-LABEL: func.func @reduction
// CHECK: %[[X:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0, 1], [2]] : tensor<2x5x64xf32> into tensor<10x64xf32>
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]{{.*}} ins(%[[X]] : tensor<10x64xf32>) outs(%{{.*}} : tensor<10xf32>)
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[SUM]] : tensor<10x64xf32>, tensor<10xf32>) outs(%{{.*}} : tensor<10x64xf32>)
// CHECK: tensor.expand_shape %[[SUM]]
func.func @reduction(%x: tensor<2x5x64xf32>) -> (tensor<2x5x64xf32>, tensor<2x5x1xf32>) {
  %zero = arith.constant dense<0.0> : tensor<2x5x1xf32>
  %sum = linalg.generic {indexing_maps = [#m, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<2x5x64xf32>) outs(%zero : tensor<2x5x1xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %n = arith.addf %acc, %v : f32
    linalg.yield %n : f32
  } -> tensor<2x5x1xf32>
  %e = tensor.empty() : tensor<2x5x64xf32>
  %y = linalg.generic {indexing_maps = [#m, #row, #m], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %sum : tensor<2x5x64xf32>, tensor<2x5x1xf32>) outs(%e : tensor<2x5x64xf32>) {
  ^bb0(%v: f32, %s: f32, %o: f32):
    %d = arith.divf %v, %s : f32
    linalg.yield %d : f32
  } -> tensor<2x5x64xf32>
  return %y, %sum : tensor<2x5x64xf32>, tensor<2x5x1xf32>
}
