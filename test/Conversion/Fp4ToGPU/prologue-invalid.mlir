// A prologue whose reader does not compute it has no kernel, and no memory has it.
// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-gpu -verify-diagnostics

func.func @read(%x: tensor<8x64xbf16>) -> tensor<8x64xbf16> {
  %e = tensor.empty() : tensor<8x64xbf16>
  // expected-error @+2 {{'linalg.generic' op must have readers that compute it, but 'func.return' reads it from memory}}
  // expected-note @+1 {{remove the attribute fp4.prologue, and the operation becomes a kernel of its own}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xbf16>) outs(%e : tensor<8x64xbf16>) attrs = {fp4.prologue} {
  ^bb0(%v: bf16, %o: bf16):
    %n = arith.negf %v : bf16
    linalg.yield %n : bf16
  } -> tensor<8x64xbf16>
  return %y : tensor<8x64xbf16>
}
