// RUN: fp4-opt %s -canonicalize -split-input-file | FileCheck %s

// CHECK-LABEL: func @unswizzle_of_swizzle
// CHECK-SAME: (%[[S:.*]]: tensor<?x64xf8E4M3FN>)
// CHECK-NEXT: return %[[S]]
func.func @unswizzle_of_swizzle(%s: tensor<?x64xf8E4M3FN>) -> tensor<?x64xf8E4M3FN> {
  %0 = fp4.swizzle_scales %s : tensor<?x64xf8E4M3FN> -> tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %1 = fp4.unswizzle_scales %0 : tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<?x64xf8E4M3FN>
  return %1 : tensor<?x64xf8E4M3FN>
}

// -----

// CHECK-LABEL: func @swizzle_of_unswizzle
// CHECK-SAME: (%[[S:.*]]: tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
// CHECK-NEXT: return %[[S]]
func.func @swizzle_of_unswizzle(%s: tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
    -> tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>> {
  %0 = fp4.unswizzle_scales %s : tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>> -> tensor<8x4xf8E8M0FNU>
  %1 = fp4.swizzle_scales %0 : tensor<8x4xf8E8M0FNU> -> tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  return %1 : tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
}

// -----

!lhs = !fp4.scaled<mxfp4, tensor<?x64xf4E2M1FN>,
                   tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<64x64xf4E2M1FN>,
                   tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// A static function called with forgetful types becomes static again, and so do its kernels.
// CHECK-LABEL: func @absorb_casts
// CHECK-NEXT:    %[[Q:.*]], %[[S:.*]] = fp4.quantize %{{.*}} : (tensor<64x64xbf16>) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
// CHECK-NEXT:    %[[SW:.*]] = fp4.swizzle_scales %[[S]] : tensor<64x2xf8E8M0FNU>
// CHECK-NEXT:    fp4.scaled %[[Q]], %[[SW]]
// CHECK-NEXT:    fp4.scaled %[[Q]], %[[SW]]
// CHECK-NEXT:    %[[Y:.*]] = fp4.matmul {{.*}} -> tensor<64x64xbf16>
// CHECK-NEXT:    %[[D:.*]] = fp4.dequantize {{.*}} -> tensor<64x64xf32>
// CHECK-NEXT:    return %[[Y]], %[[D]]
func.func @absorb_casts(%x: tensor<64x64xbf16>) -> (tensor<64x64xbf16>, tensor<64x64xf32>) {
  %d = tensor.cast %x : tensor<64x64xbf16> to tensor<?x64xbf16>
  %q, %s = fp4.quantize %d {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<?x64xbf16>) -> (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU>)
  %sw = fp4.swizzle_scales %s : tensor<?x2xf8E8M0FNU> -> tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qs = tensor.cast %q : tensor<?x64xf4E2M1FN> to tensor<64x64xf4E2M1FN>
  %ss = tensor.cast %sw : tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>> to tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %q_scaled = fp4.scaled %q, %sw : !lhs
  %qs_scaled = fp4.scaled %qs, %ss : !rhs
  %y = fp4.matmul %q_scaled, %qs_scaled : (!lhs, !rhs) -> tensor<?x64xbf16>
  %z = fp4.dequantize %q scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU>) -> tensor<?x64xf32>
  %0 = tensor.cast %y : tensor<?x64xbf16> to tensor<64x64xbf16>
  %1 = tensor.cast %z : tensor<?x64xf32> to tensor<64x64xf32>
  return %0, %1 : tensor<64x64xbf16>, tensor<64x64xf32>
}

// -----

// Scales that are written in a layout stay in it.
// CHECK-LABEL: func @absorb_cast_tiled
// CHECK-NEXT:    %{{.*}}, %[[S:.*]] = fp4.quantize %{{.*}} -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
// CHECK-NEXT:    return %[[S]]
func.func @absorb_cast_tiled(%x: tensor<64x64xbf16>) -> tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>> {
  %d = tensor.cast %x : tensor<64x64xbf16> to tensor<?x64xbf16>
  %q, %s = fp4.quantize %d {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<?x64xbf16>) -> (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
  %0 = tensor.cast %s : tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>> to tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  return %0 : tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
}

// -----

// Only the data is cast: its scales stay dynamic, and so must the data.
// CHECK-LABEL: func @half_cast
// CHECK:         tensor.cast
// CHECK:         fp4.dequantize {{.*}} (tensor<?x32xf4E2M1FN>, tensor<?x1xf8E8M0FNU>) -> tensor<?x32xf32>
func.func @half_cast(%q: tensor<4x32xf4E2M1FN>, %s: tensor<?x1xf8E8M0FNU>) -> tensor<?x32xf32> {
  %d = tensor.cast %q : tensor<4x32xf4E2M1FN> to tensor<?x32xf4E2M1FN>
  %0 = fp4.dequantize %d scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<?x32xf4E2M1FN>, tensor<?x1xf8E8M0FNU>) -> tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}

// -----

// A result with a number for each row becomes static with the rows, or not at all.
// CHECK-LABEL: func @rows_cast
// CHECK:         fp4.quantize {{.*}} (tensor<?x32xbf16>, tensor<?xf32>)
// CHECK:         fp4.dequantize {{.*}} (tensor<?x32xf4E2M1FN>, tensor<?x2xf8E4M3FN>, tensor<?xf32>)
// CHECK:         %[[A:.*]] = fp4.amax {{.*}} {per_row} : tensor<4x32xbf16> -> tensor<4xf32>
// CHECK:         fp4.quantize {{.*}} amax %[[A]] {{.*}} (tensor<4x32xbf16>, tensor<4xf32>)
func.func @rows_cast(%x: tensor<4x32xbf16>, %a: tensor<?xf32>)
    -> (tensor<?x32xf32>, tensor<?x32xf4E2M1FN>) {
  %d = tensor.cast %x : tensor<4x32xbf16> to tensor<?x32xbf16>
  %q, %s = fp4.quantize %d amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row}
      : (tensor<?x32xbf16>, tensor<?xf32>) -> (tensor<?x32xf4E2M1FN>, tensor<?x2xf8E4M3FN>)
  %y = fp4.dequantize %q scaled %s amax %a {format = #fp4.format<nvfp4>, per_row}
      : (tensor<?x32xf4E2M1FN>, tensor<?x2xf8E4M3FN>, tensor<?xf32>) -> tensor<?x32xf32>
  %b = fp4.amax %d {per_row} : tensor<?x32xbf16> -> tensor<?xf32>
  %p, %t = fp4.quantize %d amax %b {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row}
      : (tensor<?x32xbf16>, tensor<?xf32>) -> (tensor<?x32xf4E2M1FN>, tensor<?x2xf8E4M3FN>)
  return %y, %p : tensor<?x32xf32>, tensor<?x32xf4E2M1FN>
}

// -----

!lhs = !fp4.scaled<nvfp4, tensor<?x32xf4E2M1FN>,
                   tensor<?x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<8x32xf4E2M1FN>,
                   tensor<8x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// An alpha for each row becomes static with the rows; an alpha for each column has nothing to do with them.
// CHECK-LABEL: func @alphas_cast
// CHECK:         fp4.matmul {{.*}} -> tensor<?x8xf32>
// CHECK:         %[[A:.*]] = fp4.matmul_alpha {{.*}} : tensor<4xf32>, tensor<f32> -> tensor<4x1xf32>
// CHECK:         fp4.matmul {{.*}} alpha %[[A]] {{.*}} -> tensor<4x8xf32>
// CHECK:         fp4.matmul {{.*}} -> tensor<4x8xf32>
func.func @alphas_cast(%q: tensor<4x32xf4E2M1FN>, %s: tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %w: tensor<8x32xf4E2M1FN>, %t: tensor<8x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %rows: tensor<?x1xf32>, %columns: tensor<1x8xf32>, %a: tensor<4xf32>, %b: tensor<f32>)
    -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %qd = tensor.cast %q : tensor<4x32xf4E2M1FN> to tensor<?x32xf4E2M1FN>
  %sd = tensor.cast %s : tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> to tensor<?x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %qd_scaled = fp4.scaled %qd, %sd : !lhs
  %w_scaled = fp4.scaled %w, %t : !rhs
  %0 = fp4.matmul %qd_scaled, %w_scaled alpha %rows
      : (!lhs, !rhs, tensor<?x1xf32>) -> tensor<?x8xf32>
  %ad = tensor.cast %a : tensor<4xf32> to tensor<?xf32>
  %alpha = fp4.matmul_alpha %ad, %b : tensor<?xf32>, tensor<f32> -> tensor<?x1xf32>
  %1 = fp4.matmul %qd_scaled, %w_scaled alpha %alpha
      : (!lhs, !rhs, tensor<?x1xf32>) -> tensor<?x8xf32>
  %2 = fp4.matmul %qd_scaled, %w_scaled alpha %columns
      : (!lhs, !rhs, tensor<1x8xf32>) -> tensor<?x8xf32>
  return %0, %1, %2 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

!operand = !fp4.scaled<mxfp4, tensor<8x32xf4E2M1FN>,
                       tensor<8x1xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: func @alpha
// CHECK:         fp4.matmul %{{.*}}, %{{.*}} : (!mxfp4
// CHECK:         fp4.matmul %{{.*}}, %{{.*}} alpha %{{.*}} : (
func.func @alpha(%q: tensor<8x32xf4E2M1FN>, %s: tensor<8x1xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %one = arith.constant dense<1.0> : tensor<f32>
  %two = arith.constant dense<2.0> : tensor<f32>
  %q_scaled = fp4.scaled %q, %s : !operand
  %0 = fp4.matmul %q_scaled, %q_scaled alpha %one
      : (!operand, !operand, tensor<f32>) -> tensor<8x8xf32>
  %1 = fp4.matmul %q_scaled, %q_scaled alpha %two
      : (!operand, !operand, tensor<f32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// One shard is the whole.
// CHECK-LABEL: func @one_shard
// CHECK-SAME:    (%[[S:.*]]: tensor<4x2xf8E4M3FN>, %[[Q:.*]]: tensor<8x2xf4E2M1FN>)
// CHECK-NEXT:    return %[[S]], %[[Q]]
func.func @one_shard(%s: tensor<4x2xf8E4M3FN>, %q: tensor<8x2xf4E2M1FN>) -> (tensor<4x2xf8E4M3FN>, tensor<8x2xf4E2M1FN>) {
  %0 = fp4.stack_scales %s : (tensor<4x2xf8E4M3FN>) -> tensor<4x2xf8E4M3FN>
  %1 = fp4.interleave_shards %q {shards = 1 : i64} : tensor<8x2xf4E2M1FN> -> tensor<8x2xf4E2M1FN>
  return %0, %1 : tensor<4x2xf8E4M3FN>, tensor<8x2xf4E2M1FN>
}

// -----

// Constant scales have their layout when the program is compiled; elements are logical.
// CHECK-LABEL: func @constant_scales
// CHECK-DAG:     %[[T:.*]] = arith.constant dense<{{\[\[}}1.000000e+00], [2.000000e+00]]> : tensor<2x1xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
// CHECK-DAG:     %[[S:.*]] = arith.constant dense_resource<scales> : tensor<2x1xf8E4M3FN>
// CHECK:         return %[[T]], %[[S]]
func.func @constant_scales() -> (tensor<2x1xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<2x1xf8E4M3FN>) {
  %0 = arith.constant dense<[[1.0], [2.0]]> : tensor<2x1xf8E4M3FN>
  %1 = fp4.swizzle_scales %0 : tensor<2x1xf8E4M3FN> -> tensor<2x1xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %2 = arith.constant dense_resource<scales> : tensor<2x1xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %3 = fp4.unswizzle_scales %2 : tensor<2x1xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<2x1xf8E4M3FN>
  return %1, %3 : tensor<2x1xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<2x1xf8E4M3FN>
}
{-#
  dialect_resources: { builtin: { scales: "0x010000003840" } }
#-}

// -----

// The orientations of a transposed matrix are those of the matrix, the other way round.
// CHECK-LABEL: func @transposed
// CHECK-SAME:    (%[[X:.*]]: tensor<64x48xbf16>
// CHECK-NOT:     linalg.transpose
// CHECK:         %[[A:.*]], %[[B:.*]] = fp4.hadamard_amax %[[X]] {dimension = 0 : i64}
// CHECK:         %[[Q:.*]], %[[S:.*]], %[[T:.*]]:2 = fp4.quantize %[[X]] amax %[[B]] columnwise_amax %[[A]]
// CHECK-SAME:      hadamard = #fp4.hadamard<size = 16, sign_mask = 0xD7E8>, outputs = #fp4.outputs<both>
// CHECK:         return %[[T]]#0, %[[T]]#1, %[[Q]], %[[S]]
func.func @transposed(%x: tensor<64x48xbf16>)
    -> (tensor<48x64xf4E2M1FN>, tensor<48x4xf8E4M3FN>, tensor<64x48xf4E2M1FN>, tensor<64x3xf8E4M3FN>) {
  %init = tensor.empty() : tensor<48x64xbf16>
  %t = linalg.transpose ins(%x : tensor<64x48xbf16>) outs(%init : tensor<48x64xbf16>) permutation = [1, 0]
  %a, %b = fp4.hadamard_amax %t {dimension = 1 : i64} : tensor<48x64xbf16> -> tensor<f32>, tensor<f32>
  %0:4 = fp4.quantize %t amax %a columnwise_amax %b {format = #fp4.format<nvfp4>,
      recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>, columnwise_hadamard = #fp4.hadamard<>}
      : (tensor<48x64xbf16>, tensor<f32>, tensor<f32>)
      -> (tensor<48x64xf4E2M1FN>, tensor<48x4xf8E4M3FN>, tensor<64x48xf4E2M1FN>, tensor<64x3xf8E4M3FN>)
  return %0#0, %0#1, %0#2, %0#3
      : tensor<48x64xf4E2M1FN>, tensor<48x4xf8E4M3FN>, tensor<64x48xf4E2M1FN>, tensor<64x3xf8E4M3FN>
}

// -----

// Random numbers belong to an orientation.
// CHECK-LABEL: func @random
// CHECK:         %[[T:.*]] = linalg.transpose
// CHECK:         fp4.quantize %[[T]]
func.func @random(%x: tensor<64x48xbf16>, %a: tensor<f32>, %rng: tensor<2xi64>) -> (tensor<48x64xf4E2M1FN>, tensor<48x4xf8E4M3FN>) {
  %init = tensor.empty() : tensor<48x64xbf16>
  %t = linalg.transpose ins(%x : tensor<64x48xbf16>) outs(%init : tensor<48x64xbf16>) permutation = [1, 0]
  %0:2 = fp4.quantize %t amax %a rng %rng {format = #fp4.format<nvfp4>,
      recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>}
      : (tensor<48x64xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<48x64xf4E2M1FN>, tensor<48x4xf8E4M3FN>)
  return %0#0, %0#1 : tensor<48x64xf4E2M1FN>, tensor<48x4xf8E4M3FN>
}

// -----

!lhs = !fp4.scaled<mxfp4, tensor<64x32xf4E2M1FN>,
                   tensor<64x1xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<8x32xf4E2M1FN>,
                   tensor<8x1xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// A transposed GEMM is that of the operands the other way round, with its plan; one that is used as it is too
// stays.
// CHECK-LABEL: func @transposed_gemm
// CHECK-SAME:    (%[[A:.*]]: tensor<64x32xf4E2M1FN>, %[[SA:.*]]: tensor<64x1xf8E8M0FNU, {{.*}}>, %[[B:.*]]: tensor<8x32xf4E2M1FN>, %[[SB:.*]]: tensor<8x1xf8E8M0FNU
// CHECK:         %[[RHS:.*]] = fp4.scaled %[[A]], %[[SA]]
// CHECK:         %[[LHS:.*]] = fp4.scaled %[[B]], %[[SB]]
// CHECK:         %[[Y:.*]] = fp4.matmul %[[LHS]], %[[RHS]] {{.*}}fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256]>} {{.*}} -> tensor<8x64xf32>
// CHECK:         %[[Z:.*]] = fp4.matmul %[[LHS]], %[[LHS]]
// CHECK:         %[[ZT:.*]] = linalg.transpose ins(%[[Z]]
// CHECK:         return %[[Y]], %[[Z]], %[[ZT]]
func.func @transposed_gemm(%a: tensor<64x32xf4E2M1FN>, %sa: tensor<64x1xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
                              %b: tensor<8x32xf4E2M1FN>, %sb: tensor<8x1xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
    -> (tensor<8x64xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256]>}
      : (!lhs, !rhs) -> tensor<64x8xf32>
  %yi = tensor.empty() : tensor<8x64xf32>
  %yt = linalg.transpose ins(%y : tensor<64x8xf32>) outs(%yi : tensor<8x64xf32>) permutation = [1, 0]
  %z = fp4.matmul %b_scaled, %b_scaled : (!rhs, !rhs) -> tensor<8x8xf32>
  %zi = tensor.empty() : tensor<8x8xf32>
  %zt = linalg.transpose ins(%z : tensor<8x8xf32>) outs(%zi : tensor<8x8xf32>) permutation = [1, 0]
  return %yt, %z, %zt : tensor<8x64xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Amaxes of the rows of the transposed matrix are those of columns.
// CHECK-LABEL: func @transposed_rows
// CHECK-SAME:    %[[X:.*]]: tensor<64x32xbf16>
// CHECK-NOT:     linalg.transpose
// CHECK:         %[[A:.*]] = fp4.amax %[[X]] {per_column}
// CHECK:         fp4.quantize %[[X]] amax %[[A]] {{.*}}outputs = #fp4.outputs<columnwise>, per_row
// CHECK:         fp4.quantize %[[X]] {format = #fp4.format<mxfp8_e4m3>
func.func @transposed_rows(%x: tensor<64x32xbf16>)
    -> (tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>, tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>) {
  %init = tensor.empty() : tensor<32x64xbf16>
  %t = linalg.transpose ins(%x : tensor<64x32xbf16>) outs(%init : tensor<32x64xbf16>) permutation = [1, 0]
  %a = fp4.amax %t {per_row} : tensor<32x64xbf16> -> tensor<32xf32>
  %q, %s = fp4.quantize %t amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row}
      : (tensor<32x64xbf16>, tensor<32xf32>) -> (tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>)
  %p, %r = fp4.quantize %t {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_floor>}
      : (tensor<32x64xbf16>) -> (tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>)
  return %q, %s, %p, %r : tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>, tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>
}

// -----

!e = tensor<64x128xf4E2M1FN>
!s = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
// A dual GEMM keeps an alpha of 1 beside another one; a single GEMM does not.
// CHECK-LABEL: func @dual_alphas
// CHECK:         fp4.matmul {{.*}} with {{.*}} alpha %{{.*}} alpha2 %
// CHECK:         fp4.matmul
// CHECK-NOT:     alpha
// CHECK:         return
func.func @dual_alphas(%a: !e, %s: !s, %f: tensor<f32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %one = arith.constant dense<1.0> : tensor<f32>
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled with %a_scaled alpha %one alpha2 %f epilogue() {
  ^bb0(%x: f32, %z: f32):
    %y = arith.mulf %x, %z : f32
    fp4.yield %y : f32
  } : (!operand, !operand, !operand, tensor<f32>, tensor<f32>) -> tensor<64x64xf32>
  %1 = fp4.matmul %a_scaled, %a_scaled alpha %one
      : (!operand, !operand, tensor<f32>) -> tensor<64x64xf32>
  return %0, %1 : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// Formats, and plans, that only rowwise outputs have keep the transposed matrix.
// CHECK-LABEL: func @rowwise_only
// CHECK-SAME:    %[[X:.*]]: tensor<128x128xbf16>
// CHECK:         %[[T:.*]] = linalg.transpose
// CHECK:         fp4.quantize %[[T]] {format = #fp4.format<fp8_block128>
// CHECK:         fp4.quantize %[[T]] {block = array<i64: 128, 128>, format = #fp4.format<fp8_block128>
// CHECK:         fp4.quantize %[[T]] amax %{{.*}} #fp4.plan<stream_blocks, threads = 128>
// CHECK:         fp4.quantize %[[X]] amax %{{.*}} #fp4.plan<tile_quantize, threads = 128>
func.func @rowwise_only(%x: tensor<128x128xbf16>, %a: tensor<f32>)
    -> (tensor<128x1xf32>, tensor<1x1xf32>, tensor<128x8xf8E4M3FN>, tensor<128x8xf8E4M3FN>) {
  %e = tensor.empty() : tensor<128x128xbf16>
  %t = linalg.transpose ins(%x : tensor<128x128xbf16>) outs(%e : tensor<128x128xbf16>) permutation = [1, 0]
  %q0, %s0 = fp4.quantize %t {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<128x128xbf16>) -> (tensor<128x128xf8E4M3FN>, tensor<128x1xf32>)
  %q1, %s1 = fp4.quantize %t {format = #fp4.format<fp8_block128>, block = array<i64: 128, 128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<128x128xbf16>) -> (tensor<128x128xf8E4M3FN>, tensor<1x1xf32>)
  %q2, %s2 = fp4.quantize %t amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, fp4.plan = #fp4.plan<stream_blocks, threads = 128>}
      : (tensor<128x128xbf16>, tensor<f32>) -> (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>)
  %q3, %s3 = fp4.quantize %t amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, fp4.plan = #fp4.plan<tile_quantize, threads = 128>}
      : (tensor<128x128xbf16>, tensor<f32>) -> (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>)
  return %s0, %s1, %s2, %s3 : tensor<128x1xf32>, tensor<1x1xf32>, tensor<128x8xf8E4M3FN>, tensor<128x8xf8E4M3FN>
}
