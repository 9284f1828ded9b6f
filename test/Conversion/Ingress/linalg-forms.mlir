// Forms of block-scaled operations in linalg beside (M, N, Ko, Kb): rows of several dimensions, batches, a flat K, 16-bit
// floats beside weights, and dequantization. linalg-forms-invalid.mlir has their refused twins.

// RUN: fp4-opt %s --convert-linalg-to-fp4 --canonicalize | FileCheck %s

// Rows of two dimensions.
// CHECK-LABEL: func.func @rows(
// CHECK:         tensor.collapse_shape %{{.*}} {{\[\[}}0, 1], [2]] : tensor<3x16x64xf4E2M1FN> into tensor<48x64xf4E2M1FN>
// CHECK:         %[[Y:.*]] = fp4.matmul {{.*}} : (!mxfp4{{.*}} -> tensor<48x32xf32>
// CHECK:         tensor.expand_shape %[[Y]] {{\[\[}}0, 1], [2]] output_shape [3, 16, 32]
func.func @rows(%a: tensor<3x16x64xf4E2M1FN>, %b: tensor<32x64xf4E2M1FN>, %sa: tensor<3x16x2xf8E8M0FNU>,
                %sb: tensor<32x2xf8E8M0FNU>) -> (tensor<3x16x32xf32> {fp4.name = "y"}) {
  %init = arith.constant dense<0.0> : tensor<3x16x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (n, k)>,
                                        affine_map<(b, m, n, k) -> (b, m, k floordiv 32)>,
                                        affine_map<(b, m, n, k) -> (n, k floordiv 32)>,
                                        affine_map<(b, m, n, k) -> (b, m, n)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b, %sa, %sb : tensor<3x16x64xf4E2M1FN>, tensor<32x64xf4E2M1FN>, tensor<3x16x2xf8E8M0FNU>,
          tensor<32x2xf8E8M0FNU>) outs(%init : tensor<3x16x32xf32>) {
  ^bb0(%x: f4E2M1FN, %w: f4E2M1FN, %sx: f8E8M0FNU, %sw: f8E8M0FNU, %acc: f32):
    %xf = arith.scaling_extf %x, %sx : f4E2M1FN, f8E8M0FNU to f32
    %wf = arith.scaling_extf %w, %sw : f4E2M1FN, f8E8M0FNU to f32
    %p = arith.mulf %xf, %wf : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<3x16x32xf32>
  return %y : tensor<3x16x32xf32>
}

// Two batches, in blocks, by alpha; the sides are exact in bf16.
// CHECK-LABEL: func.func @batches(
// CHECK-SAME:    %[[ALPHA:[a-z0-9]*]]: tensor<f32>
// CHECK-COUNT-2: fp4.matmul {{.*}} alpha %[[ALPHA]] : (!mxfp4
// CHECK-NOT:     linalg.
func.func @batches(%a: tensor<2x48x2x32xf4E2M1FN>, %b: tensor<2x32x2x32xf4E2M1FN>, %sa: tensor<2x48x2xf8E8M0FNU>,
                   %sb: tensor<2x32x2xf8E8M0FNU>, %alpha: tensor<f32> {fp4.name = "alpha"})
    -> (tensor<2x48x32xbf16> {fp4.name = "y"}) {
  %init = arith.constant dense<0.0> : tensor<2x48x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, m, n, o, i) -> (b, m, o, i)>, affine_map<(b, m, n, o, i) -> (b, n, o, i)>,
                                        affine_map<(b, m, n, o, i) -> (b, m, o)>, affine_map<(b, m, n, o, i) -> (b, n, o)>,
                                        affine_map<(b, m, n, o, i) -> (b, m, n)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%a, %b, %sa, %sb : tensor<2x48x2x32xf4E2M1FN>, tensor<2x32x2x32xf4E2M1FN>, tensor<2x48x2xf8E8M0FNU>,
          tensor<2x32x2xf8E8M0FNU>) outs(%init : tensor<2x48x32xf32>) {
  ^bb0(%x: f4E2M1FN, %w: f4E2M1FN, %sx: f8E8M0FNU, %sw: f8E8M0FNU, %acc: f32):
    %xb = arith.scaling_extf %x, %sx : f4E2M1FN, f8E8M0FNU to bf16
    %wb = arith.scaling_extf %w, %sw : f4E2M1FN, f8E8M0FNU to bf16
    %xf = arith.extf %xb : bf16 to f32
    %wf = arith.extf %wb : bf16 to f32
    %p = arith.mulf %xf, %wf : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x48x32xf32>
  %empty = tensor.empty() : tensor<2x48x32xbf16>
  %z = linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> ()>,
                                        affine_map<(b, m, n) -> (b, m, n)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %alpha : tensor<2x48x32xf32>, tensor<f32>) outs(%empty : tensor<2x48x32xbf16>) {
  ^bb0(%v: f32, %f: f32, %o: bf16):
    %p = arith.mulf %v, %f : f32
    %t = arith.truncf %p : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<2x48x32xbf16>
  return %z : tensor<2x48x32xbf16>
}

// A flat K of NVFP4 with dynamic rows; factors in f32.
// CHECK-LABEL: func.func @flat(
// CHECK:         fp4.matmul {{.*}} : (!nvfp4
func.func @flat(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x4xf8E4M3FN>, %b: tensor<32x64xf4E2M1FN>, %sb: tensor<32x4xf8E4M3FN>)
    -> (tensor<?x32xf32> {fp4.name = "y"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %rows = tensor.dim %a, %c0 : tensor<?x64xf4E2M1FN>
  %empty = tensor.empty(%rows) : tensor<?x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x32xf32>) -> tensor<?x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (m, k floordiv 16)>,
                                        affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (n, k floordiv 16)>,
                                        affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %sa, %b, %sb : tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>, tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>)
      outs(%init : tensor<?x32xf32>) {
  ^bb0(%x: f4E2M1FN, %sx: f8E4M3FN, %w: f4E2M1FN, %sw: f8E4M3FN, %acc: f32):
    %xf = arith.extf %x : f4E2M1FN to f32
    %sxf = arith.extf %sx : f8E4M3FN to f32
    %wf = arith.extf %w : f4E2M1FN to f32
    %swf = arith.extf %sw : f8E4M3FN to f32
    %l = arith.mulf %xf, %sxf : f32
    %r = arith.mulf %wf, %swf : f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// bf16 beside weights of MXFP4, with a batch of rows.
// CHECK-LABEL: func.func @floats(
// CHECK:         fp4.matmul %{{.*}}, %{{.*}} : (tensor<10x64xbf16>, !mxfp4
func.func @floats(%a: tensor<2x5x64xbf16>, %b: tensor<32x64xf4E2M1FN>, %sb: tensor<32x2xf8E8M0FNU>)
    -> (tensor<2x5x32xf32> {fp4.name = "y"}) {
  %init = arith.constant dense<0.0> : tensor<2x5x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (n, k)>,
                                        affine_map<(b, m, n, k) -> (n, k floordiv 32)>, affine_map<(b, m, n, k) -> (b, m, n)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b, %sb : tensor<2x5x64xbf16>, tensor<32x64xf4E2M1FN>, tensor<32x2xf8E8M0FNU>) outs(%init : tensor<2x5x32xf32>) {
  ^bb0(%x: bf16, %w: f4E2M1FN, %sw: f8E8M0FNU, %acc: f32):
    %xf = arith.extf %x : bf16 to f32
    %wf = arith.scaling_extf %w, %sw : f4E2M1FN, f8E8M0FNU to f32
    %p = arith.mulf %xf, %wf : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x5x32xf32>
  return %y : tensor<2x5x32xf32>
}

// Numbers by their scales, and no contraction.
// CHECK-LABEL: func.func @dequantize(
// CHECK:         fp4.dequantize %{{.*}} scaled %{{.*}} {format = #fp4.format<mxfp4>} : {{.*}} -> tensor<48x64xf32>
// CHECK:         fp4.dequantize %{{.*}} scaled %{{.*}} {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>} : {{.*}} -> tensor<48x64xbf16>
func.func @dequantize(%a: tensor<48x2x32xf4E2M1FN>, %sa: tensor<48x2xf8E8M0FNU>, %b: tensor<48x64xf4E2M1FN>, %sb: tensor<48x4xf8E4M3FN>)
    -> (tensor<48x2x32xf32> {fp4.name = "x"}, tensor<48x64xbf16> {fp4.name = "y"}) {
  %ex = tensor.empty() : tensor<48x2x32xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(m, o, i) -> (m, o, i)>, affine_map<(m, o, i) -> (m, o)>, affine_map<(m, o, i) -> (m, o, i)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %sa : tensor<48x2x32xf4E2M1FN>, tensor<48x2xf8E8M0FNU>) outs(%ex : tensor<48x2x32xf32>) {
  ^bb0(%v: f4E2M1FN, %s: f8E8M0FNU, %o: f32):
    %f = arith.scaling_extf %v, %s : f4E2M1FN, f8E8M0FNU to f32
    linalg.yield %f : f32
  } -> tensor<48x2x32xf32>
  %ey = tensor.empty() : tensor<48x64xbf16>
  %y = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k floordiv 16)>, affine_map<(m, k) -> (m, k)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%b, %sb : tensor<48x64xf4E2M1FN>, tensor<48x4xf8E4M3FN>) outs(%ey : tensor<48x64xbf16>) {
  ^bb0(%v: f4E2M1FN, %s: f8E4M3FN, %o: bf16):
    %vf = arith.extf %v : f4E2M1FN to f32
    %sf = arith.extf %s : f8E4M3FN to f32
    %p = arith.mulf %vf, %sf : f32
    %t = arith.truncf %p : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<48x64xbf16>
  return %x, %y : tensor<48x2x32xf32>, tensor<48x64xbf16>
}
