// RUN: fp4-opt %s -split-input-file -verify-diagnostics
// The labels (C1), ... are those of Fp4Constraints.td.

// prologue (C1)
func.func @op(%x: tensor<8x64xbf16>) -> tensor<f32> {
  // expected-error @+2 {{attribute fp4.prologue must be a unit attribute on a linalg.generic}}
  // expected-note @+1 {{remove it, and the operation becomes a kernel of its own}}
  %a = fp4.amax %x {fp4.prologue} : tensor<8x64xbf16> -> tensor<f32>
  return %a : tensor<f32>
}

// -----

// prologue (C1)
func.func @vector(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error @+2 {{attribute fp4.prologue must be on a matrix that readers can compute, but the result is no matrix}}
  // expected-note @+1 {{remove it, and the operation becomes a kernel of its own}}
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<64xbf16>) outs(%x : tensor<64xbf16>) attrs = {fp4.prologue} {
  ^bb0(%v: bf16, %o: bf16):
    %n = arith.negf %v : bf16
    linalg.yield %n : bf16
  } -> tensor<64xbf16>
  return %y : tensor<64xbf16>
}
