// RUN: fp4-opt %s -split-input-file -fp4-generalize-elementwise -fp4-fuse | FileCheck %s
// RUN: %fp4-opt-once %s -split-input-file -fp4-generalize-elementwise -fp4-fuse --remarks-filter=fp4-fuse -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARKS
// RUN: fp4-opt %s -split-input-file -fp4-generalize-elementwise "-fp4-fuse=fusions=epilogue" | FileCheck %s --check-prefix=OFF --implicit-check-not=fp4.prologue
// Operations before a quantizer, one of which reduces rows, are computed by its kernel.
// OFF: func.func @norm

#mm = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// The residual is read behind the kernel, which stores it.
// CHECK-LABEL: func.func @norm
// CHECK: linalg.generic {{.*}} attrs = {fp4.prologue = "stored"} {
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]{{.*}} attrs = {fp4.prologue} {
// CHECK: linalg.generic {{.*}} attrs = {fp4.prologue} {
// CHECK: fp4.quantize
func.func @norm(%x: tensor<8x64xbf16>, %r: tensor<8x64xbf16>) -> (tensor<8x64xbf16>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU>) {
  %h = arith.addf %x, %r : tensor<8x64xbf16>
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#mm, #row], iterator_types = ["parallel", "reduction"]}
      ins(%h : tensor<8x64xbf16>) outs(%zero : tensor<8xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %p = arith.mulf %f, %f : f32
    %n = arith.addf %acc, %p : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#mm, #row, #mm], iterator_types = ["parallel", "parallel"]}
      ins(%h, %sum : tensor<8x64xbf16>, tensor<8xf32>) outs(%x : tensor<8x64xbf16>) {
  ^bb0(%v: bf16, %s: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %d = arith.divf %f, %s : f32
    %b = arith.truncf %d : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<8x64xbf16>
  // REMARKS: remark: [Passed] rows | Category:fp4-fuse | {{.*}}one kernel by rows computes 3 operations before it and stores 1 of them
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<8x64xbf16>) -> (tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU>)
  return %h, %q, %s : tensor<8x64xbf16>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU>
}

// -----

// An amax of the whole tensor needs all rows before the quantizer has the first: two kernels compute the norm.
#mm = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
// CHECK-LABEL: func.func @dynamic
// CHECK-COUNT-2: attrs = {fp4.prologue} {
// CHECK: fp4.amax
// CHECK-NOT: fp4.prologue
func.func @dynamic(%x: tensor<8x64xbf16>) -> (tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN>) {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#mm, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xbf16>) outs(%zero : tensor<8xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %n = arith.maximumf %acc, %f : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#mm, #row, #mm], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<8x64xbf16>, tensor<8xf32>) outs(%x : tensor<8x64xbf16>) {
  ^bb0(%v: bf16, %s: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %d = arith.subf %f, %s : f32
    %b = arith.truncf %d : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<8x64xbf16>
  %a = fp4.amax %y : tensor<8x64xbf16> -> tensor<f32>
  // REMARKS: remark: [Passed] rows | Category:fp4-fuse | {{.*}}one kernel by rows computes 2 operations before it and stores 0 of them
  // REMARKS: remark: [Passed] rows | Category:fp4-fuse | {{.*}}the amax of the tensor takes a pass of its own before it; a static amax, or one of each row, takes none
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<8x64xbf16>, tensor<f32>) -> (tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN>)
  return %q, %s : tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN>
}

// -----

// Amaxes of columns read the norm before the quantizer computes it.
#mm = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
// CHECK-LABEL: func.func @amaxes_of_columns
// CHECK-COUNT-1: fp4.prologue
// CHECK: fp4.amax
// CHECK-NOT: fp4.prologue
func.func @amaxes_of_columns(%x: tensor<8x64xbf16>) -> (tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU>, tensor<64xf32>) {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#mm, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xbf16>) outs(%zero : tensor<8xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %n = arith.maximumf %acc, %f : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  // REMARKS: remark: [Missed] rows | Category:fp4-fuse | Reason="'fp4.amax' reads it before the kernel that would compute it"
  %y = linalg.generic {indexing_maps = [#mm, #row, #mm], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<8x64xbf16>, tensor<8xf32>) outs(%x : tensor<8x64xbf16>) {
  ^bb0(%v: bf16, %s: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %d = arith.subf %f, %s : f32
    %b = arith.truncf %d : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<8x64xbf16>
  %a = fp4.amax %y {per_column} : tensor<8x64xbf16> -> tensor<64xf32>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<8x64xbf16>) -> (tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU>)
  return %q, %s, %a : tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU>, tensor<64xf32>
}

// -----

// Quantizers along columns have no kernel by rows.
#mm = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
// CHECK-LABEL: func.func @columns
// CHECK: linalg.generic {{.*}} attrs = {fp4.prologue} {
// CHECK: linalg.generic
// CHECK-NOT: fp4.prologue
func.func @columns(%x: tensor<32x64xbf16>) -> (tensor<64x32xf4E2M1FN>, tensor<64x1xf8E8M0FNU>) {
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %sum = linalg.generic {indexing_maps = [#mm, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<32x64xbf16>) outs(%zero : tensor<32xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %n = arith.minnumf %acc, %f : f32
    linalg.yield %n : f32
  } -> tensor<32xf32>
  %y = linalg.generic {indexing_maps = [#mm, #row, #mm], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<32x64xbf16>, tensor<32xf32>) outs(%x : tensor<32x64xbf16>) {
  ^bb0(%v: bf16, %s: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %d = arith.subf %f, %s : f32
    %b = arith.truncf %d : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<32x64xbf16>
  // REMARKS: remark: [Missed] rows | Category:fp4-fuse | Reason="the quantizer runs along columns"
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<columnwise>}
      : (tensor<32x64xbf16>) -> (tensor<64x32xf4E2M1FN>, tensor<64x1xf8E8M0FNU>)
  return %q, %s : tensor<64x32xf4E2M1FN>, tensor<64x1xf8E8M0FNU>
}

// -----

// The amax of each row is in the kernel of the quantizer, also where something behind it reads the amax. A quantizer
// with a plan keeps its kernel.
// CHECK-LABEL: func.func @amax_of_rows
// CHECK: %[[A:.*]] = fp4.amax %{{.*}} {fp4.prologue, per_row}
// CHECK: fp4.quantize %{{.*}} amax %[[A]]
// CHECK: fp4.amax %{{.*}} {per_row}
func.func @amax_of_rows(%x: tensor<8x64xbf16>, %y: tensor<8x64xbf16>)
    -> (tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN>, tensor<8xf32>, tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN>) {
  %a = fp4.amax %x {per_row} : tensor<8x64xbf16> -> tensor<8xf32>
  // REMARKS: remark: [Passed] rows | Category:fp4-fuse | {{.*}}one kernel by rows computes 1 operation before it and stores 0 of them
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row}
      : (tensor<8x64xbf16>, tensor<8xf32>) -> (tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN>)
  %b = fp4.amax %y {per_row} : tensor<8x64xbf16> -> tensor<8xf32>
  %p, %t = fp4.quantize %y amax %b {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<stream_blocks>}
      : (tensor<8x64xbf16>, tensor<8xf32>) -> (tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN>)
  return %q, %s, %a, %p, %t : tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN>, tensor<8xf32>, tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN>
}

// -----

// The rounded residual of a norm that reads the exact sum: the chain does not read it, and its kernel stores it.
#mm = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
// CHECK-LABEL: func.func @beside
// CHECK: linalg.generic {{.*}} attrs = {fp4.prologue} {
// CHECK: linalg.generic {{.*}} attrs = {fp4.prologue = "beside"} {
// CHECK-COUNT-2: attrs = {fp4.prologue} {
// CHECK: fp4.quantize
func.func @beside(%x: tensor<8x64xbf16>, %r: tensor<8x64xbf16>) -> (tensor<8x64xbf16>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU>) {
  %wide = arith.extf %x : tensor<8x64xbf16> to tensor<8x64xf32>
  %more = arith.extf %r : tensor<8x64xbf16> to tensor<8x64xf32>
  %exact = arith.addf %wide, %more : tensor<8x64xf32>
  %h = arith.truncf %exact : tensor<8x64xf32> to tensor<8x64xbf16>
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %sum = linalg.reduce {arith.addf} ins(%exact : tensor<8x64xf32>) outs(%zero : tensor<8xf32>) dimensions = [1]
  %y = linalg.generic {indexing_maps = [#mm, #row, #mm], iterator_types = ["parallel", "parallel"]}
      ins(%exact, %sum : tensor<8x64xf32>, tensor<8xf32>) outs(%x : tensor<8x64xbf16>) {
  ^bb0(%v: f32, %s: f32, %o: bf16):
    %d = arith.divf %v, %s : f32
    %b = arith.truncf %d : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<8x64xbf16>
  // REMARKS: remark: [Passed] rows | Category:fp4-fuse | {{.*}}one kernel by rows computes 4 operations before it and stores 1 of them
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<8x64xbf16>) -> (tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU>)
  return %h, %q, %s : tensor<8x64xbf16>, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU>
}

// -----

// An operation behind the amax of the matrix is too late for the kernel of the amax, which the chain has first.
#mm = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
// CHECK-LABEL: func.func @too_late
// CHECK-NOT: "beside"
// CHECK: fp4.amax
// CHECK-NOT: "beside"
func.func @too_late(%x: tensor<8x64xbf16>) -> (tensor<8x64xbf16>, tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN>) {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %exact = arith.extf %x : tensor<8x64xbf16> to tensor<8x64xf32>
  %sum = linalg.reduce {arith.addf} ins(%exact : tensor<8x64xf32>) outs(%zero : tensor<8xf32>) dimensions = [1]
  %y = linalg.generic {indexing_maps = [#mm, #row, #mm], iterator_types = ["parallel", "parallel"]}
      ins(%exact, %sum : tensor<8x64xf32>, tensor<8xf32>) outs(%x : tensor<8x64xbf16>) {
  ^bb0(%v: f32, %s: f32, %o: bf16):
    %d = arith.divf %v, %s : f32
    %b = arith.truncf %d : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<8x64xbf16>
  %a = fp4.amax %y : tensor<8x64xbf16> -> tensor<f32>
  %late = linalg.generic {indexing_maps = [#mm, #row, affine_map<(i, j) -> ()>, #mm], iterator_types = ["parallel", "parallel"]}
      ins(%exact, %sum, %a : tensor<8x64xf32>, tensor<8xf32>, tensor<f32>) outs(%x : tensor<8x64xbf16>) {
  ^bb0(%v: f32, %s: f32, %w: f32, %o: bf16):
    %d = arith.divf %v, %w : f32
    %e = arith.addf %d, %s : f32
    %b = arith.truncf %e : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<8x64xbf16>
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<8x64xbf16>, tensor<f32>) -> (tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN>)
  return %late, %q, %s : tensor<8x64xbf16>, tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN>
}
