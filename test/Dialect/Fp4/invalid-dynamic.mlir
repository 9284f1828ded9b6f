// GEMMs of any N and K; the first operation of each case is legal.
// RUN: fp4-opt %s -split-input-file -verify-diagnostics

// blockscaled_matmul (C8)
func.func @ranges(%a: tensor<?x?xf8E4M3FN>, %sa: tensor<?x?xf32>, %b: tensor<?x?xf8E4M3FN>, %sb: tensor<?x?xf32>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<fp8_block128>}
      : (tensor<?x?xf8E4M3FN>, tensor<?x?xf32>, tensor<?x?xf8E4M3FN>, tensor<?x?xf32>) -> tensor<?x?xbf16>
  // expected-error @+2 {{expects static N and K beside split-K, but got 'tensor<?x?xf8E4M3FN>'}}
  // expected-note @+1 {{leave it out, or give N and K static sizes and compile a function for each; M may be dynamic}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<fp8_block128>, split_k = 2 : i64}
      : (tensor<?x?xf8E4M3FN>, tensor<?x?xf32>, tensor<?x?xf8E4M3FN>, tensor<?x?xf32>) -> tensor<?x?xbf16>
  return
}

// -----

// blockscaled_matmul (C2)
func.func @depths(%a: tensor<?x?xf8E4M3FN>, %sa: tensor<?x?xf32>, %b: tensor<64x256xf8E4M3FN>, %sb: tensor<1x2xf32>,
    %c: tensor<64x?xf8E4M3FN>, %sc: tensor<1x?xf32>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %c scaled %sc {format = #fp4.format<fp8_block128>}
      : (tensor<?x?xf8E4M3FN>, tensor<?x?xf32>, tensor<64x?xf8E4M3FN>, tensor<1x?xf32>) -> tensor<?x64xbf16>
  // expected-error @+2 {{expects operands 'lhs' and 'rhs' with equal dimensions 1, but got ? and 256}}
  // expected-note @+1 {{both are contracted along dimension 1: lhs is M x K and rhs is N x K}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<fp8_block128>}
      : (tensor<?x?xf8E4M3FN>, tensor<?x?xf32>, tensor<64x256xf8E4M3FN>, tensor<1x2xf32>) -> tensor<?x64xbf16>
  return
}
