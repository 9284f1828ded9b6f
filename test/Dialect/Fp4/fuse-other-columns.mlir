// RUN: fp4-opt %s -split-input-file -fp4-generalize-elementwise -fp4-fuse | FileCheck %s
// RUN: %fp4-opt-once %s -split-input-file -fp4-generalize-elementwise -fp4-fuse --remarks-filter=fp4-fuse -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARKS
// Operations that read other columns than their own need whole rows, as reductions do: they are kernels by rows, and
// prologues of quantizers. Elements at whole chunks of 16 columns, or of the own chunk, are computed again.

#id = affine_map<(i, j) -> (i, j)>
#halves = affine_map<(i, j) -> (i, (j + 64) mod 128)>
// CHECK-LABEL: func.func @halves
// CHECK: linalg.generic {{.*}} attrs = {fp4.prologue} {
// CHECK: linalg.generic {{.*}} attrs = {fp4.prologue} {
// CHECK: fp4.quantize
// REMARKS: remark: [Passed] rows | Category:fp4-fuse | {{.*}}one kernel by rows computes 2 operations before it and stores 0 of them
func.func @halves(%x: tensor<8x128xbf16>, %w: tensor<8x128xbf16>) -> (tensor<8x128xf4E2M1FN>, tensor<8x4xf8E8M0FNU>) {
  %e = tensor.empty() : tensor<8x128xbf16>
  %h = arith.mulf %x, %w : tensor<8x128xbf16>
  %y = linalg.generic {indexing_maps = [#id, #halves, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h, %h : tensor<8x128xbf16>, tensor<8x128xbf16>) outs(%e : tensor<8x128xbf16>) {
  ^bb0(%v: bf16, %p: bf16, %o: bf16):
    %n = arith.addf %v, %p : bf16
    linalg.yield %n : bf16
  } -> tensor<8x128xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<8x128xbf16>) -> (tensor<8x128xf4E2M1FN>, tensor<8x4xf8E8M0FNU>)
  return %q, %s : tensor<8x128xf4E2M1FN>, tensor<8x4xf8E8M0FNU>
}

// -----

// The elements of pairs are in the chunk of their reader, whatever their type.
#id = affine_map<(i, j) -> (i, j)>
#neighbours = affine_map<(i, j) -> (i, j + 1 - (j mod 2) * 2)>
// CHECK-LABEL: func.func @neighbours
// CHECK: linalg.generic {{.*}} attrs = {fp4.prologue} {
// CHECK: linalg.generic
// CHECK-NOT: fp4.prologue
// CHECK: return
// REMARKS: remark: [Passed] rows | Category:fp4-fuse | {{.*}}one kernel by rows computes 1 operation before it and stores 0 of them
func.func @neighbours(%x: tensor<8x64xf32>, %w: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  %h = arith.mulf %x, %w : tensor<8x64xf32>
  %y = linalg.generic {indexing_maps = [#neighbours, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

// Halves of 40 columns do not begin at chunks of 16.
#id = affine_map<(i, j) -> (i, j)>
#halves = affine_map<(i, j) -> (i, (j + 40) mod 80)>
// CHECK-LABEL: func.func @half_chunks
// CHECK-NOT: fp4.prologue
// CHECK: return
func.func @half_chunks(%x: tensor<8x80xf32>, %w: tensor<8x80xf32>) -> tensor<8x80xf32> {
  %e = tensor.empty() : tensor<8x80xf32>
  // REMARKS: fuse-other-columns.mlir:[[# @LINE + 1]]:{{.*}} remark: [Missed] rows | Category:fp4-fuse | Reason="'linalg.generic' reads columns of it that are no whole chunks of 16"
  %h = linalg.generic {indexing_maps = [#halves, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x80xf32>) outs(%e : tensor<8x80xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<8x80xf32>
  %y = linalg.generic {indexing_maps = [#id, #halves, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %h : tensor<8x80xf32>, tensor<8x80xf32>) outs(%e : tensor<8x80xf32>) {
  ^bb0(%v: f32, %p: f32, %o: f32):
    %n = arith.addf %v, %p : f32
    linalg.yield %n : f32
  } -> tensor<8x80xf32>
  return %y : tensor<8x80xf32>
}

// -----

// A CTA that computes a row does not compute what another row needs.
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#pair = affine_map<(i, j) -> (i floordiv 2, j)>
// CHECK-LABEL: func.func @other_rows
// CHECK: linalg.generic {{.*}} attrs = {fp4.prologue} {
// CHECK-NOT: fp4.prologue
// CHECK: return
// REMARKS: remark: [Missed] rows | Category:fp4-fuse | Reason="'linalg.generic' reads other rows of it"
func.func @other_rows(%x: tensor<8x64xf32>, %w: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %sum = linalg.reduce {arith.addf} ins(%x : tensor<8x64xf32>) outs(%zero : tensor<8xf32>) dimensions = [1]
  %h = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<8x64xf32>, tensor<8xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %s: f32, %o: f32):
    %n = arith.divf %v, %s : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #pair, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %h : tensor<8x64xf32>, tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %p: f32, %o: f32):
    %n = arith.addf %v, %p : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

// A sum of each row that is read by another number of rows is in memory, too.
#id = affine_map<(i, j) -> (i, j)>
#pair = affine_map<(i, j) -> (i floordiv 2)>
// CHECK-LABEL: func.func @sums_of_other_rows
// CHECK-NOT: fp4.prologue
// CHECK: return
// REMARKS: remark: [Missed] rows | Category:fp4-fuse | Reason="'linalg.generic' reads other rows of it"
func.func @sums_of_other_rows(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %sum = linalg.reduce {arith.addf} ins(%x : tensor<8x64xf32>) outs(%zero : tensor<8xf32>) dimensions = [1]
  %y = linalg.generic {indexing_maps = [#id, #pair, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<8x64xf32>, tensor<8xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %s: f32, %o: f32):
    %n = arith.divf %v, %s : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

// An epilogue has the elements of a tile, and no others.
#id = affine_map<(i, j) -> (i, j)>
#halves = affine_map<(i, j) -> (i, (j + 64) mod 128)>
// CHECK-LABEL: func.func @epilogue
// CHECK: fp4.matmul
// CHECK: linalg.generic
// REMARKS: remark: [Missed] {{.*}}Reason="the operation reads other rows and columns than its own"
!s = tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<128x256xf4E2M1FN>, !s>
func.func @epilogue(%a: tensor<128x256xf4E2M1FN>, %s: !s) -> tensor<128x128xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %c = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<128x128xbf16>
  %e = tensor.empty() : tensor<128x128xbf16>
  %y = linalg.generic {indexing_maps = [#halves, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<128x128xbf16>) outs(%e : tensor<128x128xbf16>) {
  ^bb0(%v: bf16, %o: bf16):
    %n = arith.negf %v : bf16
    linalg.yield %n : bf16
  } -> tensor<128x128xbf16>
  return %y : tensor<128x128xbf16>
}
