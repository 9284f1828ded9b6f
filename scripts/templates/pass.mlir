// @Summary@
// RUN: fp4-opt %s --@flag@ -split-input-file -verify-diagnostics

// The example of the description is executed too (check_examples.py).
// expected-remark @+1 {{has 0 operations of dialect @dialect@}}
module {
  func.func @none(%x: tensor<64x32xbf16>) -> tensor<64x32xbf16> {
    return %x : tensor<64x32xbf16>
  }
}

// -----

@twin@
