// GEMMs of any N and K; the first operation of each case is legal.
// RUN: fp4-opt %s -split-input-file -verify-diagnostics

!operand = !fp4.scaled<fp8_block128, tensor<?x?xf8E4M3FN>, tensor<?x?xf32>>
// matmul (C8)
func.func @ranges(%a: tensor<?x?xf8E4M3FN>, %sa: tensor<?x?xf32>, %b: tensor<?x?xf8E4M3FN>, %sb: tensor<?x?xf32>) {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %0 = fp4.matmul %a_scaled, %b_scaled : (!operand, !operand) -> tensor<?x?xbf16>
  // expected-error @+2 {{expects static N and K beside split-K, but got 'tensor<?x?xf8E4M3FN>'}}
  // expected-note @+1 {{leave it out, or give N and K static sizes and compile a function for each; M may be dynamic}}
  %1 = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<split_k = 2>}
      : (!operand, !operand) -> tensor<?x?xbf16>
  return
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<?x?xf8E4M3FN>, tensor<?x?xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<64x?xf8E4M3FN>, tensor<1x?xf32>>
!rhs2 = !fp4.scaled<fp8_block128, tensor<64x256xf8E4M3FN>, tensor<1x2xf32>>
// matmul (C2)
func.func @depths(%a: tensor<?x?xf8E4M3FN>, %sa: tensor<?x?xf32>, %b: tensor<64x256xf8E4M3FN>, %sb: tensor<1x2xf32>,
    %c: tensor<64x?xf8E4M3FN>, %sc: tensor<1x?xf32>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %c_scaled = fp4.scaled %c, %sc : !rhs
  %0 = fp4.matmul %a_scaled, %c_scaled : (!lhs, !rhs) -> tensor<?x64xbf16>
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  // expected-error @+2 {{expects operands 'lhs' and 'rhs' with equal dimensions 1, but got ? and 256}}
  // expected-note @+1 {{both are contracted along dimension 1: lhs is M x K and rhs is N x K}}
  %1 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs2) -> tensor<?x64xbf16>
  return
}

// -----

!tiles = tensor<?x?x4608xi8, #fp4.weight_layout<wgmma>>
!some = tensor<2x?x4608xi8, #fp4.weight_layout<wgmma>>
// matmul (C2), (C8), (C10)
func.func @prepacked(%x: tensor<?x?xbf16>, %known: tensor<?x256xbf16>, %p: !tiles, %q: !some) {
  %0 = fp4.matmul %x, %p : (tensor<?x?xbf16>, !tiles) -> tensor<?x?xbf16>
  %1 = fp4.matmul %x, %q : (tensor<?x?xbf16>, !some) -> tensor<?x136xbf16>
  // expected-error @+2 {{operand 'lhs' must have dynamic columns, which end in the last tiles of 'rhs'}}
  // expected-note @+1 {{fp4.prepack makes ceil(K/64) tiles of a row}}
  %2 = fp4.matmul %known, %p : (tensor<?x256xbf16>, !tiles) -> tensor<?x?xbf16>
  return
}

// -----

!tiles = tensor<?x?x4608xi8, #fp4.weight_layout<wgmma>>
func.func @columns(%x: tensor<?x?xbf16>, %p: !tiles) {
  // expected-error @+1 {{result 'result' must be 'tensor<?x?xbf16>', but got 'tensor<?x256xbf16>'}}
  %0 = fp4.matmul %x, %p : (tensor<?x?xbf16>, !tiles) -> tensor<?x256xbf16>
  return
}

// -----

!some = tensor<2x?x4608xi8, #fp4.weight_layout<wgmma>>
func.func @known(%x: tensor<?x?xbf16>, %p: !some) {
  // expected-error @+2 {{result 'result' must have 129 to 256 columns, which end in the last tiles of 'rhs'}}
  // expected-note @+1 {{fp4.prepack makes ceil(N/128) rows of tiles}}
  %0 = fp4.matmul %x, %p : (tensor<?x?xbf16>, !some) -> tensor<?x?xbf16>
  return
}

// -----

!tiles = tensor<?x?x4608xi8, #fp4.weight_layout<wgmma>>
func.func @parts(%x: tensor<?x?xbf16>, %p: !tiles) {
  // expected-error @+2 {{expects static N and K beside split-K, but got 'tensor<?x?x4608xi8, #fp4.weight_layout<wgmma>>'}}
  // expected-note @+1 {{leave it out, or give N and K static sizes and compile a function for each; M may be dynamic}}
  %0 = fp4.matmul %x, %p {work = #fp4.work<split_k = 2>} : (tensor<?x?xbf16>, !tiles) -> tensor<?x?xbf16>
  return
}
