// RUN: fp4-opt %s --split-input-file --verify-diagnostics --fp4-generalize-elementwise
// The size of a dimension that a tensor does not have is an error, beside one that it has.

func.func @wrong(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c = arith.constant 16 : index
  // expected-error @+2 {{'tensor.dim' op index must be below the rank 2, but got 16}}
  // expected-note @+1 {{the dimensions of a tensor count from 0}}
  %rows = tensor.dim %x, %c : tensor<?x64xf32>
  %room = tensor.empty(%rows) : tensor<?x64xf32>
  %y = linalg.add ins(%x, %x : tensor<?x64xf32>, tensor<?x64xf32>) outs(%room : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

func.func @right(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c = arith.constant 0 : index
  %rows = tensor.dim %x, %c : tensor<?x64xf32>
  %room = tensor.empty(%rows) : tensor<?x64xf32>
  %y = linalg.add ins(%x, %x : tensor<?x64xf32>, tensor<?x64xf32>) outs(%room : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
