// RUN: fp4-opt %s -split-input-file -verify-diagnostics
// The labels (C1), ... are those of Fp4Constraints.td.

// prologue (C1)
func.func @op(%x: tensor<8x64xbf16>) -> tensor<f32> {
  // expected-error @+2 {{attribute fp4.prologue must be a unit attribute, "stored" or "beside", on a linalg.generic}}
  // expected-note @+1 {{remove it, and the operation becomes a kernel of its own}}
  %a = fp4.amax %x {fp4.prologue} : tensor<8x64xbf16> -> tensor<f32>
  return %a : tensor<f32>
}

// -----

// prologue (C1)
func.func @cube(%x: tensor<2x8x64xbf16>) -> tensor<2x8x64xbf16> {
  // expected-error @+2 {{attribute fp4.prologue must be on an operation that readers can compute, but the result is no matrix and no number for each row}}
  // expected-note @+1 {{remove it, and the operation becomes a kernel of its own}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x8x64xbf16>) outs(%x : tensor<2x8x64xbf16>) attrs = {fp4.prologue} {
  ^bb0(%v: bf16, %o: bf16):
    %n = arith.negf %v : bf16
    linalg.yield %n : bf16
  } -> tensor<2x8x64xbf16>
  return %y : tensor<2x8x64xbf16>
}

// -----

// prologue (C1)
func.func @word(%x: tensor<8x64xbf16>) -> tensor<8x64xbf16> {
  // expected-error @+2 {{attribute fp4.prologue must be a unit attribute, "stored" or "beside", on a linalg.generic}}
  // expected-note @+1 {{remove it, and the operation becomes a kernel of its own}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xbf16>) outs(%x : tensor<8x64xbf16>) attrs = {fp4.prologue = "kept"} {
  ^bb0(%v: bf16, %o: bf16):
    %n = arith.negf %v : bf16
    linalg.yield %n : bf16
  } -> tensor<8x64xbf16>
  return %y : tensor<8x64xbf16>
}
