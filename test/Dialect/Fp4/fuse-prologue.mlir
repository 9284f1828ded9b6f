// RUN: fp4-opt %s -split-input-file -fp4-generalize-elementwise -fp4-fuse | FileCheck %s
// RUN: %fp4-opt-once %s -split-input-file -fp4-generalize-elementwise -fp4-fuse --remarks-filter=fp4-fuse -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARKS
// RUN: fp4-opt %s -split-input-file -fp4-generalize-elementwise "-fp4-fuse=fusions=epilogue" | FileCheck %s --check-prefix=OFF --implicit-check-not=fp4.prologue
// Elementwise operations that quantizers and amaxes alone read are computed by their kernels.
// OFF: func.func @gate

// CHECK-LABEL: func.func @gate
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} attrs = {fp4.prologue} {
// CHECK: fp4.amax %[[Y]]
// CHECK: fp4.quantize %[[Y]]
func.func @gate(%g: tensor<?x64xbf16>, %u: tensor<?x64xbf16>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>) {
  // REMARKS: remark: [Passed] elementwise+quantize | Category:fp4-fuse | {{.*}}the readers compute the elements, which are not stored
  %y = arith.mulf %g, %u : tensor<?x64xbf16>
  %a = fp4.amax %y : tensor<?x64xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x64xbf16>, tensor<f32>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>)
  return %q, %s : tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>
}

// -----

// CHECK-LABEL: func.func @read
// CHECK-NOT: fp4.prologue
func.func @read(%g: tensor<8x64xbf16>) -> (tensor<8x64xbf16>, tensor<f32>) {
  // REMARKS: remark: [Missed] elementwise+quantize | Category:fp4-fuse | Reason="'func.return' reads it from memory"
  %y = arith.mulf %g, %g : tensor<8x64xbf16>
  %a = fp4.amax %y : tensor<8x64xbf16> -> tensor<f32>
  return %y, %a : tensor<8x64xbf16>, tensor<f32>
}

// -----

// CHECK-LABEL: func.func @columns
// CHECK-NOT: fp4.prologue
func.func @columns(%g: tensor<8x?xbf16>) -> tensor<f32> {
  // REMARKS: remark: [Missed] elementwise+quantize | Category:fp4-fuse | Reason="the columns are dynamic"
  %y = arith.mulf %g, %g : tensor<8x?xbf16>
  %a = fp4.amax %y : tensor<8x?xbf16> -> tensor<f32>
  return %a : tensor<f32>
}

// -----

// CHECK-LABEL: func.func @many
// CHECK-NOT: fp4.prologue
func.func @many(%a: tensor<8x64xf32>, %b: tensor<8x64xf32>, %c: tensor<8x64xf32>) -> (tensor<f32>, tensor<8xf32>) {
  // REMARKS: remark: [Missed] elementwise+quantize | Category:fp4-fuse | Reason="the readers together would load more than a kernel of its own moves"
  %x = arith.addf %a, %b : tensor<8x64xf32>
  %w = arith.mulf %x, %c : tensor<8x64xf32>
  %y = arith.truncf %w : tensor<8x64xf32> to tensor<8x64xbf16>
  %m = fp4.amax %y : tensor<8x64xbf16> -> tensor<f32>
  %r = fp4.amax %y {per_row} : tensor<8x64xbf16> -> tensor<8xf32>
  return %m, %r : tensor<f32>, tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @planned
// CHECK-NOT: fp4.prologue
func.func @planned(%g: tensor<8x64xbf16>) -> tensor<f32> {
  %e = tensor.empty() : tensor<8x64xbf16>
  // REMARKS: remark: [Missed] elementwise+quantize | Category:fp4-fuse | Reason="'linalg.generic' has a plan for a kernel of its own"
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%g : tensor<8x64xbf16>) outs(%e : tensor<8x64xbf16>) attrs = {fp4.plan = #fp4.plan<stream_items>} {
  ^bb0(%x: bf16, %o: bf16):
    %n = arith.negf %x : bf16
    linalg.yield %n : bf16
  } -> tensor<8x64xbf16>
  %a = fp4.amax %y : tensor<8x64xbf16> -> tensor<f32>
  return %a : tensor<f32>
}
