// RUN: fp4-opt %s -split-input-file -fp4-fuse | FileCheck %s
// RUN: %fp4-opt-once %s -split-input-file -fp4-fuse --remarks-filter=fp4-fuse -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARKS
// The kernel of an operation on the k best columns chooses them.

#id = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#other = affine_map<(r, c) -> (r, 3 - c)>

// CHECK-LABEL: func.func @both_sides
// CHECK: linalg.generic {{.*}} attrs = {fp4.prologue} {
// CHECK: fp4.top_k {{.*}} {fp4.prologue, k = 4 : i64}
// CHECK: linalg.generic {{.*}}"reduction"]{{.*}} attrs = {fp4.prologue} {
// CHECK-NOT: fp4.prologue
// REMARKS: [Passed] rows | Category:fp4-fuse | {{.*}}one kernel by rows computes 2 operations before it and stores 0 of them
// REMARKS: [Passed] rows | Category:fp4-fuse | {{.*}}one kernel by rows computes 1 operation before it and stores 0 of them
func.func @both_sides(%x: tensor<8x64xf32>) -> (tensor<8x4xf32>, tensor<8x4xi32>) {
  %zeros = arith.constant dense<0.0> : tensor<8xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %ek = tensor.empty() : tensor<8x4xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  %v, %i = fp4.top_k %s {k = 4 : i64} : tensor<8x64xf32> -> tensor<8x4xf32>, tensor<8x4xi32>
  %n = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%v : tensor<8x4xf32>) outs(%zeros : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %w = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%v, %n : tensor<8x4xf32>, tensor<8xf32>) outs(%ek : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8x4xf32>
  return %w, %i : tensor<8x4xf32>, tensor<8x4xi32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#other = affine_map<(r, c) -> (r, (c + 1) mod 4)>

// Columns of the k best in another order are read from memory.
// CHECK-LABEL: func.func @turned
// CHECK-NOT: fp4.prologue
// REMARKS: [Missed] rows | Category:fp4-fuse | {{.*}}'linalg.generic' reads other rows or columns of it
func.func @turned(%x: tensor<8x64xf32>) -> tensor<8x4xf32> {
  %ek = tensor.empty() : tensor<8x4xf32>
  %v, %i = fp4.top_k %x {k = 4 : i64} : tensor<8x64xf32> -> tensor<8x4xf32>, tensor<8x4xi32>
  %w = linalg.generic {indexing_maps = [#other, #id], iterator_types = ["parallel", "parallel"]} ins(%v : tensor<8x4xf32>) outs(%ek : tensor<8x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.absf %a : f32
    linalg.yield %t : f32
  } -> tensor<8x4xf32>
  return %w : tensor<8x4xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>

// A kernel before reads the values.
// CHECK-LABEL: func.func @read_before
// CHECK-NOT: fp4.prologue
// REMARKS: [Missed] rows | Category:fp4-fuse | {{.*}}something reads it before the kernel that would compute it
func.func @read_before(%x: tensor<8x64xf32>) -> (tensor<8x2xf32>, tensor<8x4xf32>) {
  %ek = tensor.empty() : tensor<8x4xf32>
  %v, %i = fp4.top_k %x {k = 4 : i64} : tensor<8x64xf32> -> tensor<8x4xf32>, tensor<8x4xi32>
  %u, %j = fp4.top_k %v {k = 2 : i64} : tensor<8x4xf32> -> tensor<8x2xf32>, tensor<8x2xi32>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%v : tensor<8x4xf32>) outs(%ek : tensor<8x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.absf %a : f32
    linalg.yield %t : f32
  } -> tensor<8x4xf32>
  return %u, %w : tensor<8x2xf32>, tensor<8x4xf32>
}
