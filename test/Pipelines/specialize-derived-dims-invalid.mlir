// RUN: fp4-opt %s --split-input-file --verify-diagnostics --fp4-specialize-dims="dims=K=40"

// expected-error @+2 {{a dimension must be called NAME or NAME/SIZE with SIZE at least 1, but 'fp4.dims' of argument 0 has 'K/0'}}
// expected-note @+1 {{write "M", or "M/16" for as many blocks of 16 as M needs}}
func.func @zero(%x: tensor<8x64xf8E4M3FN> {fp4.dims = ["N", "K/0"]}) {
  return
}

// -----

// expected-error @+2 {{but 'fp4.dims' of argument 0 has 'K/block'}}
// expected-note @+1 {{write "M", or "M/16" for as many blocks of 16 as M needs}}
func.func @word(%x: tensor<8x64xf8E4M3FN> {fp4.dims = ["N", "K/block"]}) {
  return
}
