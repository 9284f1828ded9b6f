// RUN: fp4-opt %s -split-input-file -fp4-generalize-elementwise -fp4-fuse -canonicalize | FileCheck %s
// RUN: %fp4-opt-once %s -split-input-file -fp4-generalize-elementwise -fp4-fuse --remarks-filter=fp4-fuse -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARKS
// Two GEMMs of one lhs are one, and what is derived from the elements of a GEMM is a result of it.

!e = tensor<128x256xf4E2M1FN>
!s = tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
// CHECK-LABEL: func.func @gate
// CHECK-SAME: %[[A:.*]]: tensor<128x256xf4E2M1FN>, %[[B:.*]]: tensor<128x256xf4E2M1FN>, %[[C:.*]]: tensor<128x256xf4E2M1FN>
// CHECK: %[[LHS:.*]] = fp4.scaled %[[A]],
// CHECK: %[[RHS:.*]] = fp4.scaled %[[C]],
// CHECK: %[[SECOND:.*]] = fp4.scaled %[[B]],
// CHECK: fp4.matmul %[[LHS]], %[[RHS]] with %[[SECOND]] epilogue() {
// CHECK-NEXT: ^bb0(%[[Y:.*]]: f32, %[[X:.*]]: f32):
// CHECK-NEXT:   %[[ROUNDED:.*]] = arith.truncf %[[X]] : f32 to bf16
// CHECK-NEXT:   %[[WIDE:.*]] = arith.extf %[[ROUNDED]] : bf16 to f32
// CHECK-NEXT:   %[[SQUARE:.*]] = arith.mulf %[[WIDE]], %[[WIDE]] : f32
// CHECK-NEXT:   %[[GATED:.*]] = arith.divf %[[SQUARE]], %[[Y]] : f32
// CHECK-NEXT:   fp4.yield %[[GATED]] : f32
func.func @gate(%a: !e, %b: !e, %c: !e, %s: !s) -> tensor<128x128xf32> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %c_scaled = fp4.scaled %c, %s : !operand
  %y = fp4.matmul %a_scaled, %c_scaled : (!operand, !operand) -> tensor<128x128xf32>
  %b_scaled = fp4.scaled %b, %s : !operand
  %x = fp4.matmul %a_scaled, %b_scaled : (!operand, !operand) -> tensor<128x128xbf16>
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
!operand = !fp4.scaled<nvfp4, !e, !s>
// CHECK-LABEL: func.func @other_lhs
// CHECK-COUNT-2: fp4.matmul
func.func @other_lhs(%a: !e, %b: !e, %s: !s) -> tensor<128x128xf32> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %x = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<128x128xf32>
  %b_scaled = fp4.scaled %b, %s : !operand
  %y = fp4.matmul %b_scaled, %a_scaled : (!operand, !operand) -> tensor<128x128xf32>
  // REMARKS: remark: [Missed] matmul+matmul | Category:fp4-fuse | Reason="the matmuls have no common lhs"
  // REMARKS: remark: [Passed] matmul+elementwise
  %z = arith.mulf %x, %y : tensor<128x128xf32>
  return %z : tensor<128x128xf32>
}

// -----

!e = tensor<128x256xf4E2M1FN>
!s = tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
// The amax that is given may be computed behind the GEMM; the elements are in memory for their reader only.
// CHECK-LABEL: func.func @quantized
// CHECK: fp4.amax
// CHECK: %[[R:.*]]:4 = fp4.matmul {{.*}} epilogue(%{{.*}}) {
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %[[AMAX:.*]]: f32):
// CHECK-NEXT:   %[[ROUNDED:.*]] = arith.truncf %[[X]] : f32 to bf16
// CHECK-NEXT:   %[[Q:.*]]:2 = fp4.epilogue_quantize %[[ROUNDED]] amax %[[AMAX]] {recipe = #fp4.recipe<transformer_engine>} : (bf16, f32) -> (f4E2M1FN, f8E4M3FN)
// CHECK-NEXT:   %[[LARGEST:.*]] = fp4.epilogue_amax %[[ROUNDED]] : bf16 -> f32
// CHECK-NEXT:   fp4.yield %[[ROUNDED]], %[[Q]]#0, %[[Q]]#1, %[[LARGEST]] : bf16, f4E2M1FN, f8E4M3FN, f32
// CHECK-NEXT: } : (!nvfp4, !nvfp4, tensor<f32>)
// CHECK-SAME: -> (tensor<128x128xbf16>, tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>, tensor<f32>)
// CHECK-NOT: fp4.quantize{{ }}
func.func @quantized(%a: !e, %s: !s, %t: tensor<64x64xbf16>)
    -> (tensor<128x128xbf16>, tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>, tensor<f32>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %x = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<128x128xbf16>
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
!operand = !fp4.scaled<nvfp4, !e, !s>
// An amax of the elements is known when all of them are.
// CHECK-LABEL: func.func @own_amax
// CHECK: %[[R:.*]]:2 = fp4.matmul {{.*}}
// CHECK: fp4.epilogue_amax
// CHECK: fp4.quantize %[[R]]#0 amax %[[R]]#1
func.func @own_amax(%a: !e, %s: !s) -> (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %x = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<128x128xbf16>
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
!operand = !fp4.scaled<nvfp4, !e, !s>
// CHECK-LABEL: func.func @reasons
// CHECK: fp4.matmul
// CHECK-NOT: epilogue
// CHECK: return
func.func @reasons(%a: !e, %s: !s, %f: tensor<f32>, %rng: tensor<2xi64>) -> (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>, tensor<128xf32>, tensor<f32>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %x = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<128x128xbf16>
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
!operand = !fp4.scaled<nvfp4, !e, !s>
module attributes {fp4.target = #fp4.target<sm_90a>} {
// CHECK-LABEL: func.func @hopper
// CHECK: fp4.matmul {{.*}} with
// CHECK: fp4.epilogue_amax
// CHECK-NOT: fp4.amax
func.func @hopper(%a: !e, %s: !s) -> (tensor<128x128xf32>, tensor<f32>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %x = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<128x128xf32>
  %y = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<128x128xf32>
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
!operand = !fp4.scaled<nvfp4, !e, !s>
module attributes {fp4.target = #fp4.target<sm_90a>} {
// CHECK-LABEL: func.func @small_m
// CHECK: fp4.matmul
// CHECK: fp4.epilogue_amax
// CHECK-NOT: fp4.amax
func.func @small_m(%a: !e, %s: !s) -> (tensor<64x64xf32>, tensor<f32>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %x = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<64x64xf32>
  // REMARKS: remark: [Passed] matmul+amax
  %amax = fp4.amax %x : tensor<64x64xf32> -> tensor<f32>
  return %x, %amax : tensor<64x64xf32>, tensor<f32>
}
}

// -----

// Two deep GEMMs of a target without fp4 tensor cores have their lhs converted once, before both.
!e = tensor<128x2048xf4E2M1FN>
!s = tensor<128x128xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
module attributes {fp4.target = #fp4.target<sm_90a>} {
// CHECK-LABEL: func.func @deep
// CHECK: fp4.matmul %{{.*}} with %
// CHECK: fp4.epilogue_quantize
// CHECK-NOT: fp4.quantize
func.func @deep(%a: !e, %s: !s, %f: tensor<f32>) -> (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>, tensor<f32>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %x = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<128x128xf32>
  %y = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<128x128xf32>
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
!lhs = !fp4.scaled<mxfp4, !e, !t>
!rhs = !fp4.scaled<mxfp4, tensor<128x128xf4E2M1FN>, !t>
// Codes of the groups of the GEMM, whose scales are the list of tiles that the next GEMM takes, and row-major ones.
// CHECK-LABEL: func.func @same_groups
// CHECK: fp4.matmul {{.*}} epilogue() {
// CHECK: fp4.epilogue_quantize
// CHECK: groups = [24, 40]
// CHECK-NOT: fp4.quantize{{ }}
// CHECK-LABEL: func.func @rows
// CHECK: fp4.epilogue_quantize
// CHECK: groups = [24, 40]
// CHECK-NOT: fp4.quantize{{ }}
// CHECK-LABEL: func.func @other_groups
// CHECK: fp4.quantize
// REMARKS: remark: [Missed] matmul+quantize | Category:fp4-fuse | Reason="the quantizer has other groups than the matmul, or an amax for each"
func.func @same_groups(%a: !e, %t: !t, %w: tensor<128x128xf4E2M1FN>) -> (tensor<64x64xf4E2M1FN>, !t) {
  %a_scaled = fp4.scaled %a, %t : !lhs
  %w_scaled = fp4.scaled %w, %t : !rhs
  %y = fp4.matmul %a_scaled, %w_scaled {work = #fp4.work<groups = [24, 40]>}
      : (!lhs, !rhs) -> tensor<64x64xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, groups = array<i64: 24, 40>}
      : (tensor<64x64xbf16>) -> (tensor<64x64xf4E2M1FN>, !t)
  return %q, %s : tensor<64x64xf4E2M1FN>, !t
}
func.func @rows(%a: !e, %t: !t, %w: tensor<128x128xf4E2M1FN>) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>) {
  %a_scaled = fp4.scaled %a, %t : !lhs
  %w_scaled = fp4.scaled %w, %t : !rhs
  %y = fp4.matmul %a_scaled, %w_scaled {work = #fp4.work<groups = [24, 40]>}
      : (!lhs, !rhs) -> tensor<64x64xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<64x64xbf16>) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
  return %q, %s : tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>
}
func.func @other_groups(%a: !e, %t: !t, %w: tensor<128x128xf4E2M1FN>) -> (tensor<64x64xf4E2M1FN>, !t) {
  %a_scaled = fp4.scaled %a, %t : !lhs
  %w_scaled = fp4.scaled %w, %t : !rhs
  %y = fp4.matmul %a_scaled, %w_scaled {work = #fp4.work<groups = [24, 40]>}
      : (!lhs, !rhs) -> tensor<64x64xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, groups = array<i64: 40, 24>}
      : (tensor<64x64xbf16>) -> (tensor<64x64xf4E2M1FN>, !t)
  return %q, %s : tensor<64x64xf4E2M1FN>, !t
}

// -----

!e = tensor<64x128xf4E2M1FN>
!l = tensor<256x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!t = tensor<256x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<mxfp4, !e, !l>
!rhs = !fp4.scaled<mxfp4, tensor<128x128xf4E2M1FN>, !t>
// The fusion also fires where only the device knows the rows. A GEMM that leaves rows as they are leaves tiles too.
// CHECK-LABEL: func.func @same_offsets
// CHECK: fp4.matmul {{.*}} offsets %{{.*}} epilogue() {
// CHECK: fp4.epilogue_quantize
// CHECK-NOT: fp4.quantize{{ }}
// CHECK-LABEL: func.func @other_offsets
// CHECK: fp4.quantize {{.*}} offsets
// CHECK-LABEL: func.func @left
// CHECK: fp4.quantize {{.*}} offsets
// REMARKS: remark: [Missed] matmul+quantize | Category:fp4-fuse | Reason="rows of no group are zero, and their codes and scales may be not"
// REMARKS: remark: [Missed] matmul+quantize | Category:fp4-fuse | Reason="the matmul leaves tiles of scales that the quantizer clears"
func.func @same_offsets(%a: !e, %s: !l, %w: tensor<128x128xf4E2M1FN>, %t: !t, %o: tensor<3xi64>) -> (tensor<64x64xf4E2M1FN>, !l) {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %w_scaled = fp4.scaled %w, %t : !rhs
  %y = fp4.matmul %a_scaled, %w_scaled offsets %o
      : (!lhs, !rhs, tensor<3xi64>) -> tensor<64x64xbf16>
  %q, %u = fp4.quantize %y offsets %o {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<64x64xbf16>, tensor<3xi64>) -> (tensor<64x64xf4E2M1FN>, !l)
  return %q, %u : tensor<64x64xf4E2M1FN>, !l
}
func.func @other_offsets(%a: !e, %s: !l, %w: tensor<128x128xf4E2M1FN>, %t: !t, %o: tensor<3xi64>, %p: tensor<3xi64>) -> (tensor<64x64xf4E2M1FN>, !l) {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %w_scaled = fp4.scaled %w, %t : !rhs
  %y = fp4.matmul %a_scaled, %w_scaled offsets %o
      : (!lhs, !rhs, tensor<3xi64>) -> tensor<64x64xbf16>
  %q, %u = fp4.quantize %y offsets %p {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<64x64xbf16>, tensor<3xi64>) -> (tensor<64x64xf4E2M1FN>, !l)
  return %q, %u : tensor<64x64xf4E2M1FN>, !l
}
func.func @left(%a: !e, %s: !l, %w: tensor<128x128xf4E2M1FN>, %t: !t, %o: tensor<3xi64>) -> (tensor<64x64xf4E2M1FN>, !l) {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %w_scaled = fp4.scaled %w, %t : !rhs
  %y = fp4.matmul %a_scaled, %w_scaled offsets %o {work = #fp4.work<unspecified_rows>}
      : (!lhs, !rhs, tensor<3xi64>) -> tensor<64x64xbf16>
  %q, %u = fp4.quantize %y offsets %o {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, unspecified_rows}
      : (tensor<64x64xbf16>, tensor<3xi64>) -> (tensor<64x64xf4E2M1FN>, !l)
  return %q, %u : tensor<64x64xf4E2M1FN>, !l
}

// -----

// Codes of 8 bits have blocks of 32, under an f32 of 128.
!e = tensor<128x256xf4E2M1FN>
!s = tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
// CHECK-LABEL: func.func @eight_bits
// CHECK: fp4.epilogue_quantize %{{.*}} {recipe = #fp4.recipe<mxfp8_e5m2_floor>} : (bf16) -> (f8E5M2, f8E8M0FNU)
// CHECK: fp4.epilogue_quantize %{{.*}} {recipe = #fp4.recipe<fp8_deepgemm>} : (bf16) -> (f8E4M3FN, f32)
// CHECK-NOT: fp4.quantize{{ }}
func.func @eight_bits(%a: !e, %s: !s) -> (tensor<128x128xf8E5M2>, tensor<128x4xf8E8M0FNU>, tensor<128x128xf8E4M3FN>, tensor<128x1xf32>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %x = fp4.matmul %a_scaled, %a_scaled {epilogue = #fp4.epilogue<relu>} : (!operand, !operand) -> tensor<128x128xbf16>
  %y = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<128x128xbf16>
  // REMARKS: remark: [Passed] matmul+quantize
  %q, %r = fp4.quantize %x {format = #fp4.format<mxfp8_e5m2>, recipe = #fp4.recipe<mxfp8_e5m2_floor>}
      : (tensor<128x128xbf16>) -> (tensor<128x128xf8E5M2>, tensor<128x4xf8E8M0FNU>)
  // REMARKS: remark: [Passed] matmul+quantize
  %p, %t = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<128x128xbf16>) -> (tensor<128x128xf8E4M3FN>, tensor<128x1xf32>)
  return %q, %r, %p, %t : tensor<128x128xf8E5M2>, tensor<128x4xf8E8M0FNU>, tensor<128x128xf8E4M3FN>, tensor<128x1xf32>
}

// -----

// A tile has parts of whole rows, and of a block of rows; a row of 192 elements ends in half a block.
!e = tensor<192x256xf4E2M1FN>
!s = tensor<192x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
// CHECK-LABEL: func.func @other_blocks
// CHECK-NOT: epilogue_quantize
// CHECK: return
func.func @other_blocks(%a: !e, %s: !s) -> (tensor<192x192xf8E4M3FN>, tensor<192x1xf32>, tensor<192x192xf8E4M3FN>, tensor<2x2xf32>, tensor<192x192xf8E4M3FN>, tensor<192x2xf32>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %x = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<192x192xbf16>
  // REMARKS: remark: [Missed] matmul+quantize | Category:fp4-fuse | Reason="blocks are whole rows, of which a tile has some columns"
  %q, %r = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 192>}
      : (tensor<192x192xbf16>) -> (tensor<192x192xf8E4M3FN>, tensor<192x1xf32>)
  // REMARKS: remark: [Missed] matmul+quantize | Category:fp4-fuse | Reason="square blocks span rows of several threads"
  %p, %t = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 128, 128>}
      : (tensor<192x192xbf16>) -> (tensor<192x192xf8E4M3FN>, tensor<2x2xf32>)
  // REMARKS: remark: [Missed] matmul+quantize | Category:fp4-fuse | Reason="rows end in a shorter block"
  %v, %u = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<192x192xbf16>) -> (tensor<192x192xf8E4M3FN>, tensor<192x2xf32>)
  return %q, %r, %p, %t, %v, %u : tensor<192x192xf8E4M3FN>, tensor<192x1xf32>, tensor<192x192xf8E4M3FN>, tensor<2x2xf32>, tensor<192x192xf8E4M3FN>, tensor<192x2xf32>
}

// -----

// A call may have rows that end in a shorter block of 128.
!any = !fp4.scaled<mxfp4, tensor<?x?xf4E2M1FN>, tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: func.func @dynamic_blocks
// CHECK-NOT: epilogue_quantize
// CHECK: return
func.func @dynamic_blocks(%a: tensor<?x?xf4E2M1FN>, %s: tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> (tensor<?x?xf8E4M3FN>, tensor<?x?xf32>) {
  %a_scaled = fp4.scaled %a, %s : !any
  %x = fp4.matmul %a_scaled, %a_scaled : (!any, !any) -> tensor<?x?xbf16>
  // REMARKS: remark: [Missed] matmul+quantize | Category:fp4-fuse | Reason="rows of dynamic size may end in a shorter block"
  %q, %r = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<?x?xbf16>) -> (tensor<?x?xf8E4M3FN>, tensor<?x?xf32>)
  return %q, %r : tensor<?x?xf8E4M3FN>, tensor<?x?xf32>
}
