// Contractions that look block-scaled and are not those that fp4 has, each with its reason.

// RUN: fp4-opt %s --convert-linalg-to-fp4 -split-input-file -verify-diagnostics

#a = affine_map<(m, n, o, i) -> (m, o, i)>
#b = affine_map<(m, n, o, i) -> (n, o, i)>
#sa = affine_map<(m, n, o, i) -> (m, o)>
#sb = affine_map<(m, n, o, i) -> (n, o)>
#y = affine_map<(m, n, o, i) -> (m, n)>
// The result is added to a tensor.
func.func @init(%a: tensor<48x2x32xf4E2M1FN>, %b: tensor<32x2x32xf4E2M1FN>, %sa: tensor<48x2xf8E8M0FNU>,
                %sb: tensor<32x2xf8E8M0FNU>, %init: tensor<48x32xf32>) -> tensor<48x32xf32> {
  // expected-error @+2 {{the result must begin with zero, because a matmul adds to nothing}}
  // expected-note @+1 {{begin with a linalg.fill of 0.0, and add the other tensor behind the contraction}}
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

// -----

#a = affine_map<(m, n, o, i) -> (m, o, i)>
#b = affine_map<(m, n, o, i) -> (n, o, i)>
#sa = affine_map<(m, n, o, i) -> (m, o)>
#sb = affine_map<(m, n, o, i) -> (n, o)>
#y = affine_map<(m, n, o, i) -> (m, n)>
// A side meets the scale of the other one.
func.func @body(%a: tensor<48x2x32xf4E2M1FN>, %b: tensor<32x2x32xf4E2M1FN>, %sa: tensor<48x2xf8E8M0FNU>,
                %sb: tensor<32x2xf8E8M0FNU>) -> tensor<48x32xf32> {
  %init = arith.constant dense<0.0> : tensor<48x32xf32>
  // expected-error @+2 {{the body must be acc + product, where product has each side and each scale once, in f32}}
  // expected-note @+1 {{use arith.extf and arith.mulf, or arith.scaling_extf of a side and its scale}}
  %y = linalg.generic {indexing_maps = [#a, #b, #sa, #sb, #y],
                       iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%a, %b, %sa, %sb : tensor<48x2x32xf4E2M1FN>, tensor<32x2x32xf4E2M1FN>,
          tensor<48x2xf8E8M0FNU>, tensor<32x2xf8E8M0FNU>) outs(%init : tensor<48x32xf32>) {
  ^bb0(%x: f4E2M1FN, %w: f4E2M1FN, %sx: f8E8M0FNU, %sw: f8E8M0FNU, %acc: f32):
    %xf = arith.scaling_extf %x, %sx : f4E2M1FN, f8E8M0FNU to f32
    %wf = arith.scaling_extf %w, %sx : f4E2M1FN, f8E8M0FNU to f32
    %p = arith.mulf %xf, %wf : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<48x32xf32>
  return %y : tensor<48x32xf32>
}

// -----

#a = affine_map<(m, n, o, i) -> (m, o, i)>
#b = affine_map<(m, n, o, i) -> (n, o, i)>
#sa = affine_map<(m, n, o, i) -> (m, o)>
#sb = affine_map<(m, n, o, i) -> (n, o)>
#y = affine_map<(m, n, o, i) -> (m, n)>
// Packed rows of 16 elements have no buffer.
func.func @blocks(%a: tensor<48x4x16xf4E2M1FN>, %b: tensor<32x4x16xf4E2M1FN>, %sa: tensor<48x4xf8E4M3FN>,
                  %sb: tensor<32x4xf8E4M3FN>) -> tensor<48x32xf32> {
  %init = arith.constant dense<0.0> : tensor<48x32xf32>
  // expected-error @+2 {{a side in blocks of 16 has no buffer}}
  // expected-note @+1 {{pass the side as a matrix, and make blocks of it with tensor.expand_shape}}
  %y = linalg.generic {indexing_maps = [#a, #b, #sa, #sb, #y],
                       iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%a, %b, %sa, %sb : tensor<48x4x16xf4E2M1FN>, tensor<32x4x16xf4E2M1FN>,
          tensor<48x4xf8E4M3FN>, tensor<32x4xf8E4M3FN>) outs(%init : tensor<48x32xf32>) {
  ^bb0(%x: f4E2M1FN, %w: f4E2M1FN, %sx: f8E4M3FN, %sw: f8E4M3FN, %acc: f32):
    %xf = arith.scaling_extf %x, %sx : f4E2M1FN, f8E4M3FN to f32
    %wf = arith.scaling_extf %w, %sw : f4E2M1FN, f8E4M3FN to f32
    %p = arith.mulf %xf, %wf : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<48x32xf32>
  return %y : tensor<48x32xf32>
}

// -----

#a = affine_map<(m, n, o, i) -> (m, o, i)>
#b = affine_map<(m, n, o, i) -> (n, o, i)>
#sa = affine_map<(m, n, o, i) -> (m, o)>
#y = affine_map<(m, n, o, i) -> (m, n)>
// The right side has scales of the left one.
func.func @operands(%a: tensor<48x2x32xf4E2M1FN>, %b: tensor<32x2x32xf4E2M1FN>, %sa: tensor<48x2xf8E8M0FNU>)
    -> tensor<48x32xf32> {
  %init = arith.constant dense<0.0> : tensor<48x32xf32>
  // expected-error @+2 {{its operands are not two sides in blocks with a scale for each block}}
  // expected-note @+1 {{write it as linalg.generic over (B.., M.., N.., Ko, Kb)}}
  %y = linalg.generic {indexing_maps = [#a, #b, #sa, #sa, #y],
                       iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%a, %b, %sa, %sa : tensor<48x2x32xf4E2M1FN>, tensor<32x2x32xf4E2M1FN>,
          tensor<48x2xf8E8M0FNU>, tensor<48x2xf8E8M0FNU>) outs(%init : tensor<48x32xf32>) {
  ^bb0(%x: f4E2M1FN, %w: f4E2M1FN, %sx: f8E8M0FNU, %sw: f8E8M0FNU, %acc: f32):
    %xf = arith.scaling_extf %x, %sx : f4E2M1FN, f8E8M0FNU to f32
    %wf = arith.scaling_extf %w, %sw : f4E2M1FN, f8E8M0FNU to f32
    %p = arith.mulf %xf, %wf : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<48x32xf32>
  return %y : tensor<48x32xf32>
}
