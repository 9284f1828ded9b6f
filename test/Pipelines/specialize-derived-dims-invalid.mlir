// RUN: fp4-opt %s --split-input-file --verify-diagnostics --fp4-specialize-dims="dims=K=40"

// expected-error @+1 {{a dimension must be called NAME or NAME/SIZE with SIZE at least 1, but 'fp4.dims' of argument 0 has 'K/0'}}
func.func @zero(%x: tensor<8x64xf8E4M3FN> {fp4.dims = ["N", "K/0"]}) {
  return
}

// -----

// expected-error @+1 {{but 'fp4.dims' of argument 0 has 'K/block'}}
func.func @word(%x: tensor<8x64xf8E4M3FN> {fp4.dims = ["N", "K/block"]}) {
  return
}
