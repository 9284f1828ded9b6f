// RUN: fp4-opt %s -split-input-file -fp4-generalize-elementwise -fp4-fuse -canonicalize | FileCheck %s
// RUN: %fp4-opt-once %s -split-input-file -fp4-generalize-elementwise -fp4-fuse --remarks-filter=fp4-fuse -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARKS
// Two GEMMs of one lhs are one, and what is derived from the elements of a GEMM is a result of it.

!e = tensor<128x256xf4E2M1FN>
!s = tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
// CHECK-LABEL: func.func @gate
// CHECK-SAME: %[[A:.*]]: tensor<128x256xf4E2M1FN>, %[[B:.*]]: tensor<128x256xf4E2M1FN>, %[[C:.*]]: tensor<128x256xf4E2M1FN>
// CHECK: fp4.blockscaled_matmul %[[A]] scaled %{{.*}}, %[[C]] scaled %{{.*}} with %[[B]] scaled %{{.*}} epilogue() {
// CHECK-NEXT: ^bb0(%[[Y:.*]]: f32, %[[X:.*]]: f32):
// CHECK-NEXT:   %[[ROUNDED:.*]] = arith.truncf %[[X]] : f32 to bf16
// CHECK-NEXT:   %[[WIDE:.*]] = arith.extf %[[ROUNDED]] : bf16 to f32
// CHECK-NEXT:   %[[SQUARE:.*]] = arith.mulf %[[WIDE]], %[[WIDE]] : f32
// CHECK-NEXT:   %[[GATED:.*]] = arith.divf %[[SQUARE]], %[[Y]] : f32
// CHECK-NEXT:   fp4.yield %[[GATED]] : f32
func.func @gate(%a: !e, %b: !e, %c: !e, %s: !s) -> tensor<128x128xf32> {
  %y = fp4.blockscaled_matmul %a scaled %s, %c scaled %s {format = #fp4.format<nvfp4>} : (!e, !s, !e, !s) -> tensor<128x128xf32>
  %x = fp4.blockscaled_matmul %a scaled %s, %b scaled %s {format = #fp4.format<nvfp4>} : (!e, !s, !e, !s) -> tensor<128x128xbf16>
  // The order of the arguments is that of the GEMMs.
  %w = arith.extf %x : tensor<128x128xbf16> to tensor<128x128xf32>
  %square = arith.mulf %w, %w : tensor<128x128xf32>
  // REMARKS: remark: [Passed] matmul+matmul | Category:fp4-fuse | {{.*}}two matmuls of one lhs are one
  %z = arith.divf %square, %y : tensor<128x128xf32>
  return %z : tensor<128x128xf32>
}

// -----

!e = tensor<128x256xf4E2M1FN>
!s = tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
// CHECK-LABEL: func.func @other_lhs
// CHECK-COUNT-2: fp4.blockscaled_matmul
func.func @other_lhs(%a: !e, %b: !e, %s: !s) -> tensor<128x128xf32> {
  %x = fp4.blockscaled_matmul %a scaled %s, %a scaled %s {format = #fp4.format<nvfp4>} : (!e, !s, !e, !s) -> tensor<128x128xf32>
  %y = fp4.blockscaled_matmul %b scaled %s, %a scaled %s {format = #fp4.format<nvfp4>} : (!e, !s, !e, !s) -> tensor<128x128xf32>
  // REMARKS: remark: [Missed] matmul+matmul | Category:fp4-fuse | Reason="the matmuls have no common lhs"
  // REMARKS: remark: [Passed] matmul+elementwise
  %z = arith.mulf %x, %y : tensor<128x128xf32>
  return %z : tensor<128x128xf32>
}

// -----

!e = tensor<128x256xf4E2M1FN>
!s = tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
// The amax that is given may be computed behind the GEMM; the elements are in memory for their reader only.
// CHECK-LABEL: func.func @quantized
// CHECK: fp4.amax
// CHECK: %[[R:.*]]:4 = fp4.blockscaled_matmul {{.*}} quantize_amax %{{.*}} epilogue() {
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32):
// CHECK-NEXT:   %[[ROUNDED:.*]] = arith.truncf %[[X]] : f32 to bf16
// CHECK-NEXT:   fp4.yield %[[ROUNDED]] : bf16
// CHECK-NEXT: } {format = #fp4.format<nvfp4>, quantize_recipe = #fp4.recipe<transformer_engine>, with_amax}
// CHECK-SAME: -> (tensor<128x128xbf16>, tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>, tensor<f32>)
// CHECK-NOT: fp4.quantize{{ }}
func.func @quantized(%a: !e, %s: !s, %t: tensor<64x64xbf16>)
    -> (tensor<128x128xbf16>, tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>, tensor<f32>) {
  %x = fp4.blockscaled_matmul %a scaled %s, %a scaled %s {format = #fp4.format<nvfp4>} : (!e, !s, !e, !s) -> tensor<128x128xbf16>
  %given = fp4.amax %t : tensor<64x64xbf16> -> tensor<f32>
  // REMARKS: remark: [Passed] matmul+quantize | Category:fp4-fuse | {{.*}}the matmul gives its elements and their codes and scales
  %q, %r = fp4.quantize %x amax %given {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<128x128xbf16>, tensor<f32>) -> (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>)
  // REMARKS: remark: [Passed] matmul+amax | Category:fp4-fuse | {{.*}}the matmul gives the amax of its elements
  %amax = fp4.amax %x : tensor<128x128xbf16> -> tensor<f32>
  return %x, %q, %r, %amax : tensor<128x128xbf16>, tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>, tensor<f32>
}

// -----

!e = tensor<128x256xf4E2M1FN>
!s = tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
// An amax of the elements is known when all of them are.
// CHECK-LABEL: func.func @own_amax
// CHECK: %[[R:.*]]:2 = fp4.blockscaled_matmul {{.*}}
// CHECK: with_amax
// CHECK: fp4.quantize %[[R]]#0 amax %[[R]]#1
func.func @own_amax(%a: !e, %s: !s) -> (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>) {
  %x = fp4.blockscaled_matmul %a scaled %s, %a scaled %s {format = #fp4.format<nvfp4>} : (!e, !s, !e, !s) -> tensor<128x128xbf16>
  %amax = fp4.amax %x : tensor<128x128xbf16> -> tensor<f32>
  // REMARKS: remark: [Missed] matmul+quantize | Category:fp4-fuse | Reason="the amax is computed from the matmul, or cannot move before it"
  // REMARKS: remark: [Passed] matmul+amax
  %q, %r = fp4.quantize %x amax %amax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<128x128xbf16>, tensor<f32>) -> (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>)
  return %q, %r : tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>
}

// -----

!e = tensor<128x256xf4E2M1FN>
!s = tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
// CHECK-LABEL: func.func @reasons
// CHECK: fp4.blockscaled_matmul
// CHECK-NOT: epilogue
// CHECK: return
func.func @reasons(%a: !e, %s: !s, %f: tensor<f32>, %rng: tensor<2xi64>) -> (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>, tensor<128xf32>, tensor<f32>) {
  %x = fp4.blockscaled_matmul %a scaled %s, %a scaled %s {format = #fp4.format<nvfp4>} : (!e, !s, !e, !s) -> tensor<128x128xbf16>
  // REMARKS: remark: [Missed] matmul+quantize | Category:fp4-fuse | Reason="the quantizer rounds stochastically"
  %q, %r = fp4.quantize %x amax %f rng %rng {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>}
      : (tensor<128x128xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>)
  // REMARKS: remark: [Missed] matmul+amax | Category:fp4-fuse | Reason="the amax is not one of the whole"
  %rows = fp4.amax %x {per_row} : tensor<128x128xbf16> -> tensor<128xf32>
  // REMARKS: remark: [Missed] matmul+amax | Category:fp4-fuse | Reason="a NaN makes the amax NaN"
  %nan = fp4.amax %x {nan = #fp4.nan_policy<propagate>} : tensor<128x128xbf16> -> tensor<f32>
  return %q, %r, %rows, %nan : tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>, tensor<128xf32>, tensor<f32>
}

// -----

// GEMMs with sums in registers fuse too.
!e = tensor<128x256xf4E2M1FN>
!s = tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
module attributes {fp4.target = #fp4.target<sm_90a>} {
// CHECK-LABEL: func.func @hopper
// CHECK: fp4.blockscaled_matmul {{.*}} with
// CHECK: with_amax
// CHECK-NOT: fp4.amax
func.func @hopper(%a: !e, %s: !s) -> (tensor<128x128xf32>, tensor<f32>) {
  %x = fp4.blockscaled_matmul %a scaled %s, %a scaled %s {format = #fp4.format<nvfp4>} : (!e, !s, !e, !s) -> tensor<128x128xf32>
  %y = fp4.blockscaled_matmul %a scaled %s, %a scaled %s {format = #fp4.format<nvfp4>} : (!e, !s, !e, !s) -> tensor<128x128xf32>
  // REMARKS: remark: [Passed] matmul+matmul
  %z = arith.mulf %x, %y : tensor<128x128xf32>
  // REMARKS: remark: [Passed] matmul+amax
  %amax = fp4.amax %z : tensor<128x128xf32> -> tensor<f32>
  return %z, %amax : tensor<128x128xf32>, tensor<f32>
}
}

// -----

// Small-M GEMMs that swap their operands, on a target without fp4 tensor cores, fuse too.
!e = tensor<64x256xf4E2M1FN>
!s = tensor<64x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
module attributes {fp4.target = #fp4.target<sm_90a>} {
// CHECK-LABEL: func.func @small_m
// CHECK: fp4.blockscaled_matmul
// CHECK: with_amax}
// CHECK-NOT: fp4.amax
func.func @small_m(%a: !e, %s: !s) -> (tensor<64x64xf32>, tensor<f32>) {
  %x = fp4.blockscaled_matmul %a scaled %s, %a scaled %s {format = #fp4.format<nvfp4>} : (!e, !s, !e, !s) -> tensor<64x64xf32>
  // REMARKS: remark: [Passed] matmul+amax
  %amax = fp4.amax %x : tensor<64x64xf32> -> tensor<f32>
  return %x, %amax : tensor<64x64xf32>, tensor<f32>
}
}

// -----

// Two deep GEMMs of a target without fp4 tensor cores have their lhs converted once, before both.
!e = tensor<128x2048xf4E2M1FN>
!s = tensor<128x128xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
module attributes {fp4.target = #fp4.target<sm_90a>} {
// CHECK-LABEL: func.func @deep
// CHECK: fp4.blockscaled_matmul %{{.*}} with %
// CHECK: quantize_recipe
// CHECK-NOT: fp4.quantize
func.func @deep(%a: !e, %s: !s, %f: tensor<f32>) -> (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>, tensor<f32>) {
  %x = fp4.blockscaled_matmul %a scaled %s, %a scaled %s {format = #fp4.format<nvfp4>} : (!e, !s, !e, !s) -> tensor<128x128xf32>
  %y = fp4.blockscaled_matmul %a scaled %s, %a scaled %s {format = #fp4.format<nvfp4>} : (!e, !s, !e, !s) -> tensor<128x128xf32>
  // REMARKS: remark: [Passed] matmul+matmul
  %z = arith.mulf %x, %y : tensor<128x128xf32>
  // REMARKS: remark: [Passed] matmul+quantize
  %q, %r = fp4.quantize %z amax %f {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<128x128xf32>, tensor<f32>) -> (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>)
  // REMARKS: remark: [Passed] matmul+amax
  %amax = fp4.amax %z : tensor<128x128xf32> -> tensor<f32>
  return %q, %r, %amax : tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>, tensor<f32>
}
}

// -----

!e = tensor<64x128xf4E2M1FN>
!t = tensor<256x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
// Codes of the groups of the GEMM, whose scales are the list of tiles that the next GEMM takes, and row-major ones.
// CHECK-LABEL: func.func @same_groups
// CHECK: fp4.blockscaled_matmul {{.*}} epilogue() {
// CHECK: groups = array<i64: 24, 40>, quantize_recipe
// CHECK-NOT: fp4.quantize{{ }}
// CHECK-LABEL: func.func @rows
// CHECK: groups = array<i64: 24, 40>, quantize_recipe
// CHECK-NOT: fp4.quantize{{ }}
// CHECK-LABEL: func.func @other_groups
// CHECK: fp4.quantize
// REMARKS: remark: [Missed] matmul+quantize | Category:fp4-fuse | Reason="the quantizer has other groups than the matmul, or an amax for each"
func.func @same_groups(%a: !e, %t: !t, %w: tensor<128x128xf4E2M1FN>) -> (tensor<64x64xf4E2M1FN>, !t) {
  %y = fp4.blockscaled_matmul %a scaled %t, %w scaled %t {format = #fp4.format<mxfp4>, groups = array<i64: 24, 40>}
      : (!e, !t, tensor<128x128xf4E2M1FN>, !t) -> tensor<64x64xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, groups = array<i64: 24, 40>}
      : (tensor<64x64xbf16>) -> (tensor<64x64xf4E2M1FN>, !t)
  return %q, %s : tensor<64x64xf4E2M1FN>, !t
}
func.func @rows(%a: !e, %t: !t, %w: tensor<128x128xf4E2M1FN>) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>) {
  %y = fp4.blockscaled_matmul %a scaled %t, %w scaled %t {format = #fp4.format<mxfp4>, groups = array<i64: 24, 40>}
      : (!e, !t, tensor<128x128xf4E2M1FN>, !t) -> tensor<64x64xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<64x64xbf16>) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  return %q, %s : tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>
}
func.func @other_groups(%a: !e, %t: !t, %w: tensor<128x128xf4E2M1FN>) -> (tensor<64x64xf4E2M1FN>, !t) {
  %y = fp4.blockscaled_matmul %a scaled %t, %w scaled %t {format = #fp4.format<mxfp4>, groups = array<i64: 24, 40>}
      : (!e, !t, tensor<128x128xf4E2M1FN>, !t) -> tensor<64x64xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, groups = array<i64: 40, 24>}
      : (tensor<64x64xbf16>) -> (tensor<64x64xf4E2M1FN>, !t)
  return %q, %s : tensor<64x64xf4E2M1FN>, !t
}

// -----

!e = tensor<64x128xf4E2M1FN>
!l = tensor<256x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!t = tensor<256x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
// The fusion also fires where only the device knows the rows. A GEMM that leaves rows as they are leaves tiles too.
// CHECK-LABEL: func.func @same_offsets
// CHECK: fp4.blockscaled_matmul {{.*}} offsets %{{.*}} epilogue() {
// CHECK: quantize_recipe
// CHECK-NOT: fp4.quantize{{ }}
// CHECK-LABEL: func.func @other_offsets
// CHECK: fp4.quantize {{.*}} offsets
// CHECK-LABEL: func.func @left
// CHECK: fp4.quantize {{.*}} offsets
// REMARKS: remark: [Missed] matmul+quantize | Category:fp4-fuse | Reason="rows of no group are zero, and their codes and scales may be not"
// REMARKS: remark: [Missed] matmul+quantize | Category:fp4-fuse | Reason="the matmul leaves tiles of scales that the quantizer clears"
func.func @same_offsets(%a: !e, %s: !l, %w: tensor<128x128xf4E2M1FN>, %t: !t, %o: tensor<3xi64>) -> (tensor<64x64xf4E2M1FN>, !l) {
  %y = fp4.blockscaled_matmul %a scaled %s, %w scaled %t offsets %o {format = #fp4.format<mxfp4>}
      : (!e, !l, tensor<128x128xf4E2M1FN>, !t, tensor<3xi64>) -> tensor<64x64xbf16>
  %q, %u = fp4.quantize %y offsets %o {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<64x64xbf16>, tensor<3xi64>) -> (tensor<64x64xf4E2M1FN>, !l)
  return %q, %u : tensor<64x64xf4E2M1FN>, !l
}
func.func @other_offsets(%a: !e, %s: !l, %w: tensor<128x128xf4E2M1FN>, %t: !t, %o: tensor<3xi64>, %p: tensor<3xi64>) -> (tensor<64x64xf4E2M1FN>, !l) {
  %y = fp4.blockscaled_matmul %a scaled %s, %w scaled %t offsets %o {format = #fp4.format<mxfp4>}
      : (!e, !l, tensor<128x128xf4E2M1FN>, !t, tensor<3xi64>) -> tensor<64x64xbf16>
  %q, %u = fp4.quantize %y offsets %p {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<64x64xbf16>, tensor<3xi64>) -> (tensor<64x64xf4E2M1FN>, !l)
  return %q, %u : tensor<64x64xf4E2M1FN>, !l
}
func.func @left(%a: !e, %s: !l, %w: tensor<128x128xf4E2M1FN>, %t: !t, %o: tensor<3xi64>) -> (tensor<64x64xf4E2M1FN>, !l) {
  %y = fp4.blockscaled_matmul %a scaled %s, %w scaled %t offsets %o {format = #fp4.format<mxfp4>, unspecified_rows}
      : (!e, !l, tensor<128x128xf4E2M1FN>, !t, tensor<3xi64>) -> tensor<64x64xbf16>
  %q, %u = fp4.quantize %y offsets %o {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, unspecified_rows}
      : (tensor<64x64xbf16>, tensor<3xi64>) -> (tensor<64x64xf4E2M1FN>, !l)
  return %q, %u : tensor<64x64xf4E2M1FN>, !l
}
