// Block-scaled contractions of linalg.generic, in the forms that they are written in.

// RUN: fp4-opt %s --convert-linalg-to-fp4 --canonicalize | FileCheck %s

#a = affine_map<(m, n, o, i) -> (m, o, i)>
#b = affine_map<(m, n, o, i) -> (n, o, i)>
#sa = affine_map<(m, n, o, i) -> (m, o)>
#sb = affine_map<(m, n, o, i) -> (n, o)>
#y = affine_map<(m, n, o, i) -> (m, n)>

// CHECK-LABEL: func.func @mxfp4(
// CHECK:         fp4.matmul {{.*}} : (!mxfp4{{.*}} -> tensor<48x32xf32>
// CHECK-NOT:     linalg.
func.func @mxfp4(%a: tensor<48x2x32xf4E2M1FN>, %b: tensor<32x2x32xf4E2M1FN>, %sa: tensor<48x2xf8E8M0FNU>,
                 %sb: tensor<32x2xf8E8M0FNU>) -> (tensor<48x32xf32> {fp4.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<48x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<48x32xf32>) -> tensor<48x32xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #sa, #sb, #y],
                       iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%a, %b, %sa, %sb : tensor<48x2x32xf4E2M1FN>, tensor<32x2x32xf4E2M1FN>,
          tensor<48x2xf8E8M0FNU>, tensor<32x2xf8E8M0FNU>) outs(%init : tensor<48x32xf32>) {
  ^bb0(%x: f4E2M1FN, %w: f4E2M1FN, %sx: f8E8M0FNU, %sw: f8E8M0FNU, %acc: f32):
    %xf = arith.scaling_extf %x, %sx : f4E2M1FN, f8E8M0FNU to f32
    %wf = arith.scaling_extf %w, %sw : f4E2M1FN, f8E8M0FNU to f32
    %p = arith.mulf %xf, %wf : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<48x32xf32>
  return %y : tensor<48x32xf32>
}

// Loops in another order, operands in another order, factors in another association; alpha and the rounding
// to bf16 are part of the GEMM.
#a2 = affine_map<(i, n, m, o) -> (m, o, i)>
#b2 = affine_map<(i, n, m, o) -> (n, o, i)>
#sa2 = affine_map<(i, n, m, o) -> (m, o)>
#sb2 = affine_map<(i, n, m, o) -> (n, o)>
#y2 = affine_map<(i, n, m, o) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#number = affine_map<(m, n) -> ()>
// CHECK-LABEL: func.func @nvfp4(
// CHECK-SAME:    %[[A:.*]]: tensor<48x64xf4E2M1FN>{{.*}}, %{{.*}}: tensor<48x4xf8E4M3FN>{{.*}}, %[[B:.*]]: tensor<32x64xf4E2M1FN>{{.*}}, %[[ALPHA:.*]]: tensor<f32>
// CHECK-NOT:     tensor.
// CHECK:         %[[LHS:.*]] = fp4.scaled %[[A]],
// CHECK:         %[[RHS:.*]] = fp4.scaled %[[B]],
// CHECK:         fp4.matmul %[[LHS]], %[[RHS]] alpha %[[ALPHA]] : (!nvfp4{{.*}} -> tensor<48x32xbf16>
// CHECK-NOT:     linalg.
func.func @nvfp4(%a: tensor<48x64xf4E2M1FN>, %sa: tensor<48x4xf8E4M3FN>, %b: tensor<32x64xf4E2M1FN>,
                 %sb: tensor<32x4xf8E4M3FN>, %alpha: tensor<f32> {fp4.name = "alpha"})
    -> (tensor<48x32xbf16> {fp4.name = "y"}) {
  %ab = tensor.expand_shape %a [[0], [1, 2]] output_shape [48, 4, 16]
      : tensor<48x64xf4E2M1FN> into tensor<48x4x16xf4E2M1FN>
  %bb = tensor.expand_shape %b [[0], [1, 2]] output_shape [32, 4, 16]
      : tensor<32x64xf4E2M1FN> into tensor<32x4x16xf4E2M1FN>
  %init = arith.constant dense<0.0> : tensor<48x32xf32>
  %sum = linalg.generic {indexing_maps = [#sb2, #b2, #a2, #sa2, #y2],
                         iterator_types = ["reduction", "parallel", "parallel", "reduction"]}
      ins(%sb, %bb, %ab, %sa : tensor<32x4xf8E4M3FN>, tensor<32x4x16xf4E2M1FN>,
          tensor<48x4x16xf4E2M1FN>, tensor<48x4xf8E4M3FN>) outs(%init : tensor<48x32xf32>) {
  ^bb0(%sw: f8E4M3FN, %w: f4E2M1FN, %x: f4E2M1FN, %sx: f8E4M3FN, %acc: f32):
    %swf = arith.extf %sw : f8E4M3FN to f32
    %wf = arith.extf %w : f4E2M1FN to f32
    %xf = arith.extf %x : f4E2M1FN to f32
    %sxf = arith.extf %sx : f8E4M3FN to f32
    %scales = arith.mulf %swf, %sxf : f32
    %numbers = arith.mulf %wf, %xf : f32
    %p = arith.mulf %numbers, %scales : f32
    %s = arith.addf %p, %acc : f32
    linalg.yield %s : f32
  } -> tensor<48x32xf32>
  %empty = tensor.empty() : tensor<48x32xbf16>
  %y = linalg.generic {indexing_maps = [#id, #number, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %alpha : tensor<48x32xf32>, tensor<f32>) outs(%empty : tensor<48x32xbf16>) {
  ^bb0(%x: f32, %f: f32, %o: bf16):
    %p = arith.mulf %f, %x : f32
    %t = arith.truncf %p : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<48x32xbf16>
  return %y : tensor<48x32xbf16>
}
