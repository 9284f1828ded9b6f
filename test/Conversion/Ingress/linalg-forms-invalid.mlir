// Twins of linalg-forms.mlir that fp4 has not, each with its reason and what helps.

// RUN: fp4-opt %s --convert-linalg-to-fp4 -split-input-file -verify-diagnostics

// Rows of two dimensions, of which one is dynamic.
func.func @rows(%a: tensor<?x16x64xf4E2M1FN>, %b: tensor<32x64xf4E2M1FN>, %sa: tensor<?x16x2xf8E8M0FNU>,
                %sb: tensor<32x2xf8E8M0FNU>, %empty: tensor<?x16x32xf32>) -> tensor<?x16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x16x32xf32>) -> tensor<?x16x32xf32>
  // expected-error @+2 {{rows of several dimensions must have static sizes}}
  // expected-note @+1 {{collapse them with tensor.collapse_shape before; the rows of a matrix may be dynamic}}
  %y = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (n, k)>,
                                        affine_map<(b, m, n, k) -> (b, m, k floordiv 32)>,
                                        affine_map<(b, m, n, k) -> (n, k floordiv 32)>,
                                        affine_map<(b, m, n, k) -> (b, m, n)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b, %sa, %sb : tensor<?x16x64xf4E2M1FN>, tensor<32x64xf4E2M1FN>, tensor<?x16x2xf8E8M0FNU>,
          tensor<32x2xf8E8M0FNU>) outs(%init : tensor<?x16x32xf32>) {
  ^bb0(%x: f4E2M1FN, %w: f4E2M1FN, %sx: f8E8M0FNU, %sw: f8E8M0FNU, %acc: f32):
    %xf = arith.scaling_extf %x, %sx : f4E2M1FN, f8E8M0FNU to f32
    %wf = arith.scaling_extf %w, %sw : f4E2M1FN, f8E8M0FNU to f32
    %p = arith.mulf %xf, %wf : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x16x32xf32>
  return %y : tensor<?x16x32xf32>
}

// -----

// Scales by 8 elements.
func.func @flat(%a: tensor<48x64xf4E2M1FN>, %sa: tensor<48x8xf8E4M3FN>, %b: tensor<32x64xf4E2M1FN>, %sb: tensor<32x8xf8E4M3FN>)
    -> tensor<48x32xf32> {
  %init = arith.constant dense<0.0> : tensor<48x32xf32>
  // expected-error @+2 {{scales must be f8E8M0FNU for blocks of 32 elements (mxfp4, mxfp8) or f8E4M3FN for blocks of 16 (nvfp4), but got K = 64, 8 blocks}}
  // expected-note @+1 {{quantize with the block and the scales of one of these formats}}
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (m, k floordiv 8)>,
                                        affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (n, k floordiv 8)>,
                                        affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %sa, %b, %sb : tensor<48x64xf4E2M1FN>, tensor<48x8xf8E4M3FN>, tensor<32x64xf4E2M1FN>, tensor<32x8xf8E4M3FN>)
      outs(%init : tensor<48x32xf32>) {
  ^bb0(%x: f4E2M1FN, %sx: f8E4M3FN, %w: f4E2M1FN, %sw: f8E4M3FN, %acc: f32):
    %xf = arith.scaling_extf %x, %sx : f4E2M1FN, f8E4M3FN to f32
    %wf = arith.scaling_extf %w, %sw : f4E2M1FN, f8E4M3FN to f32
    %p = arith.mulf %xf, %wf : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<48x32xf32>
  return %y : tensor<48x32xf32>
}

// -----

// The weights are on the left.
func.func @sides(%a: tensor<48x64xf4E2M1FN>, %sa: tensor<48x2xf8E8M0FNU>, %b: tensor<32x64xbf16>) -> tensor<48x32xf32> {
  %init = arith.constant dense<0.0> : tensor<48x32xf32>
  // expected-error @+2 {{the right side, the weights, must have scales}}
  // expected-note @+1 {{exchange the sides, and transpose the result with linalg.transpose}}
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (m, k floordiv 32)>,
                                        affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %sa, %b : tensor<48x64xf4E2M1FN>, tensor<48x2xf8E8M0FNU>, tensor<32x64xbf16>) outs(%init : tensor<48x32xf32>) {
  ^bb0(%x: f4E2M1FN, %sx: f8E8M0FNU, %w: bf16, %acc: f32):
    %xf = arith.scaling_extf %x, %sx : f4E2M1FN, f8E8M0FNU to f32
    %wf = arith.extf %w : bf16 to f32
    %p = arith.mulf %xf, %wf : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<48x32xf32>
  return %y : tensor<48x32xf32>
}

// -----

func.func @f16(%a: tensor<48x64xf16>, %b: tensor<32x64xf4E2M1FN>, %sb: tensor<32x2xf8E8M0FNU>) -> tensor<48x32xf32> {
  %init = arith.constant dense<0.0> : tensor<48x32xf32>
  // expected-error @+2 {{a side of f16 has not the exponents of mxfp4 scales beside it}}
  // expected-note @+1 {{convert it to bf16}}
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                                        affine_map<(m, n, k) -> (n, k floordiv 32)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b, %sb : tensor<48x64xf16>, tensor<32x64xf4E2M1FN>, tensor<32x2xf8E8M0FNU>) outs(%init : tensor<48x32xf32>) {
  ^bb0(%x: f16, %w: f4E2M1FN, %sw: f8E8M0FNU, %acc: f32):
    %xf = arith.extf %x : f16 to f32
    %wf = arith.scaling_extf %w, %sw : f4E2M1FN, f8E8M0FNU to f32
    %p = arith.mulf %xf, %wf : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<48x32xf32>
  return %y : tensor<48x32xf32>
}

// -----

// The result of the GEMM is rounded to bf16 before it is added.
func.func @rounded(%a: tensor<48x64xf4E2M1FN>, %sa: tensor<48x2xf8E8M0FNU>, %b: tensor<32x64xf4E2M1FN>, %sb: tensor<32x2xf8E8M0FNU>)
    -> tensor<48x32xf32> {
  %init = arith.constant dense<0.0> : tensor<48x32xf32>
  // expected-error @+2 {{the body must be acc + product, where product has each side and each scale once, in f32}}
  // expected-note @+1 {{use arith.extf and arith.mulf, or arith.scaling_extf of a side and its scale}}
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (m, k floordiv 32)>,
                                        affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (n, k floordiv 32)>,
                                        affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %sa, %b, %sb : tensor<48x64xf4E2M1FN>, tensor<48x2xf8E8M0FNU>, tensor<32x64xf4E2M1FN>, tensor<32x2xf8E8M0FNU>)
      outs(%init : tensor<48x32xf32>) {
  ^bb0(%x: f4E2M1FN, %sx: f8E8M0FNU, %w: f4E2M1FN, %sw: f8E8M0FNU, %acc: f32):
    %xf = arith.scaling_extf %x, %sx : f4E2M1FN, f8E8M0FNU to bf16
    %wf = arith.scaling_extf %w, %sw : f4E2M1FN, f8E8M0FNU to bf16
    %p = arith.mulf %xf, %wf : bf16
    %pf = arith.extf %p : bf16 to f32
    %s = arith.addf %acc, %pf : f32
    linalg.yield %s : f32
  } -> tensor<48x32xf32>
  return %y : tensor<48x32xf32>
}

// -----

// A quantization whose scales are computed elsewhere.
func.func @truncf(%x: tensor<48x64xf32>, %s: tensor<48x2xf8E8M0FNU>) -> tensor<48x64xf4E2M1FN> {
  %empty = tensor.empty() : tensor<48x64xf4E2M1FN>
  // expected-error @+2 {{arith.scaling_truncf takes scales that are computed before, and a quantizer of fp4 computes them of its blocks}}
  // expected-note @+1 {{use fp4.quantize, whose recipe says how a scale derives from its block: ocp_floor is that of OCP MX}}
  %q = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k floordiv 32)>, affine_map<(m, k) -> (m, k)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<48x64xf32>, tensor<48x2xf8E8M0FNU>) outs(%empty : tensor<48x64xf4E2M1FN>) {
  ^bb0(%v: f32, %e: f8E8M0FNU, %o: f4E2M1FN):
    %c = arith.scaling_truncf %v, %e : f32, f8E8M0FNU to f4E2M1FN
    linalg.yield %c : f4E2M1FN
  } -> tensor<48x64xf4E2M1FN>
  return %q : tensor<48x64xf4E2M1FN>
}

// -----

// A dequantization with one scale for each row.
func.func @dequantize(%a: tensor<48x64xf4E2M1FN>, %sa: tensor<48xf8E8M0FNU>) -> tensor<48x64xf32> {
  %empty = tensor.empty() : tensor<48x64xf32>
  // expected-error @+2 {{its operands are not numbers and a scale for each block of them}}
  // expected-note @+1 {{write a dequantization as linalg.generic over (m, ko, kb)}}
  %x = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>, affine_map<(m, k) -> (m, k)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%a, %sa : tensor<48x64xf4E2M1FN>, tensor<48xf8E8M0FNU>) outs(%empty : tensor<48x64xf32>) {
  ^bb0(%v: f4E2M1FN, %s: f8E8M0FNU, %o: f32):
    %f = arith.scaling_extf %v, %s : f4E2M1FN, f8E8M0FNU to f32
    linalg.yield %f : f32
  } -> tensor<48x64xf32>
  return %x : tensor<48x64xf32>
}
