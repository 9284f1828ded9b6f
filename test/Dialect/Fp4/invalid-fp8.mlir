// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// GEMMs of FP8 with f32 scales (docs/reference/semantics.md). The first GEMM of each function verifies; the
// second differs in one place.

!lhs = !fp4.scaled<fp8_block128, tensor<?x256xf8E4M3FN>, tensor<?x2xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<200x256xf8E4M3FN>, tensor<2x2xf32>>
!rhs2 = !fp4.scaled<fp8_block128, tensor<200x256xf4E2M1FN>, tensor<2x2xf32>>
// scaled (C1)
func.func @elements(%a: tensor<?x256xf8E4M3FN>, %sa: tensor<?x2xf32>, %b: tensor<200x256xf8E4M3FN>, %sb: tensor<2x2xf32>,
                    %four: tensor<200x256xf4E2M1FN>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x200xbf16>
  // expected-error @+2 {{operand 'data' must have elements of type f8E4M3FN, but got 'tensor<200x256xf4E2M1FN>'}}
  // expected-note @+1 {{the element type is that of format fp8_block128}}
  %four_scaled = fp4.scaled %four, %sb : !rhs2
  %1 = fp4.matmul %a_scaled, %four_scaled : (!lhs, !rhs2) -> tensor<?x200xbf16>
  return
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<?x144xf8E4M3FN>, tensor<?x2xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<8x144xf8E4M3FN>, tensor<1x2xf32>>
!lhs2 = !fp4.scaled<fp8_block128, tensor<?x136xf8E4M3FN>, tensor<?x2xf32>>
!rhs2 = !fp4.scaled<fp8_block128, tensor<8x136xf8E4M3FN>, tensor<1x2xf32>>
// matmul (C50)
func.func @pitch(%a: tensor<?x144xf8E4M3FN>, %sa: tensor<?x2xf32>, %b: tensor<8x144xf8E4M3FN>, %sb: tensor<1x2xf32>,
                 %c: tensor<?x136xf8E4M3FN>, %d: tensor<8x136xf8E4M3FN>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x8xf32>
  %c_scaled = fp4.scaled %c, %sa : !lhs2
  %d_scaled = fp4.scaled %d, %sb : !rhs2
  // expected-error @+2 {{operand 'lhs' must have a dimension 1 that is a multiple of 16, but got 136}}
  // expected-note @+1 {{rows of operands begin at multiples of 16 bytes; pad the contraction axis with zeros}}
  %1 = fp4.matmul %c_scaled, %d_scaled : (!lhs2, !rhs2) -> tensor<?x8xf32>
  return
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<256x256xf8E4M3FN>, tensor<256x2xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<256x256xf8E4M3FN>, tensor<2x2xf32>>
// matmul (C51)
func.func @lhs_granularity(%a: tensor<256x256xf8E4M3FN>, %sa: tensor<256x2xf32>, %coarse: tensor<2x2xf32>, %b: tensor<256x256xf8E4M3FN>, %sb: tensor<2x2xf32>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<256x256xf32>
  %a_scaled2 = fp4.scaled %a, %coarse : !rhs
  // expected-error @+2 {{operand 'lhs_scales' must be 'tensor<256x2xf32>', but got 'tensor<2x2xf32>'}}
  // expected-note @+1 {{lhs has a row-major f32 scale for each 1 x 128 elements}}
  %1 = fp4.matmul %a_scaled2, %b_scaled : (!rhs, !rhs) -> tensor<256x256xf32>
  return
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<256x256xf8E4M3FN>, tensor<256x2xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<256x256xf8E4M3FN>, tensor<2x2xf32>>
// matmul (C51)
func.func @rhs_granularity(%a: tensor<256x256xf8E4M3FN>, %sa: tensor<256x2xf32>, %b: tensor<256x256xf8E4M3FN>, %sb: tensor<2x2xf32>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<256x256xf32>
  %b_scaled2 = fp4.scaled %b, %sa : !lhs
  // expected-error @+2 {{operand 'rhs_scales' must be 'tensor<2x2xf32>', but got 'tensor<256x2xf32>'}}
  // expected-note @+1 {{rhs has a row-major f32 scale for each 128 x 128 elements}}
  %1 = fp4.matmul %a_scaled, %b_scaled2 : (!lhs, !lhs) -> tensor<256x256xf32>
  return
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<256x256xf8E4M3FN>, tensor<256x2xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<400x256xf8E4M3FN>, tensor<4x2xf32>>
!rhs2 = !fp4.scaled<fp8_block128, tensor<400x256xf8E4M3FN>, tensor<3x2xf32>>
// matmul (C51)
func.func @groups(%a: tensor<256x256xf8E4M3FN>, %sa: tensor<256x2xf32>, %b: tensor<400x256xf8E4M3FN>, %sb: tensor<4x2xf32>, %plain: tensor<3x2xf32>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<groups = [56, 200]>}
      : (!lhs, !rhs) -> tensor<256x200xf32>
  %b_scaled2 = fp4.scaled %b, %plain : !rhs2
  // expected-error @+2 {{operand 'rhs_scales' must be 'tensor<4x2xf32>', but got 'tensor<3x2xf32>'}}
  // expected-note @+1 {{each group of rhs has a row-major f32 scale for each 128 x 128 elements}}
  %1 = fp4.matmul %a_scaled, %b_scaled2 {work = #fp4.work<groups = [56, 200]>}
      : (!lhs, !rhs2) -> tensor<256x200xf32>
  return
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<256x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<2x4xf32>>
// matmul (C14)
func.func @split(%a: tensor<256x512xf8E4M3FN>, %sa: tensor<256x4xf32>, %b: tensor<256x512xf8E4M3FN>, %sb: tensor<2x4xf32>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<split_k = 2>}
      : (!lhs, !rhs) -> tensor<256x256xf32>
  // expected-error @+2 {{'split_k' of 'work' must be 1 to 2 for K = 512, but got 3}}
  // expected-note @+1 {{a part has at least one slice of 256 elements of K; leave 'split_k' out for one part}}
  %1 = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<split_k = 3>}
      : (!lhs, !rhs) -> tensor<256x256xf32>
  return
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<4x512xf8E4M3FN>, tensor<4x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<2x4xf32>>
// matmul (C190)
func.func @fma(%a: tensor<4x512xf8E4M3FN>, %sa: tensor<4x4xf32>, %b: tensor<256x512xf8E4M3FN>, %sb: tensor<2x4xf32>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<4x256xf32>
  // expected-error @+2 {{expects a GEMM that a route has, but no route multiplies a lhs of fp8_block128 and a rhs of fp8_block128 with arithmetic fma}}
  // expected-note @+1 {{nearest operands that routes multiply, of one format or of two of OCP MX: FP8 with f32 scales in instructions of K = 64 (fp8_block128); FP8 with f32 scales (fp8_block128); few rows with arithmetic fma (nvfp4, mxfp4)}}
  %1 = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs, !rhs) -> tensor<4x256xf32>
  return
}

// -----

// dequantize (C50)
func.func @dequantize(%a: tensor<256x512xf8E4M3FN>, %sa: tensor<256x4xf32>, %sm: tensor<256x16xf8E8M0FNU>) {
  %0 = fp4.dequantize %a scaled %sm {format = #fp4.format<mxfp8_e4m3>}
      : (tensor<256x512xf8E4M3FN>, tensor<256x16xf8E8M0FNU>) -> tensor<256x512xf32>
  // expected-error @+2 {{attribute 'format' must have scales of 8 bits, but got fp8_block128}}
  // expected-note @+1 {{f32 scales are read by fp4.matmul alone}}
  %1 = fp4.dequantize %a scaled %sa {format = #fp4.format<fp8_block128>}
      : (tensor<256x512xf8E4M3FN>, tensor<256x4xf32>) -> tensor<256x512xf32>
  return
}

// -----

// quantize (C7)
func.func @block(%x: tensor<?x256xbf16>) {
  %0:2 = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<?x256xbf16>) -> (tensor<?x256xf8E4M3FN>, tensor<?x2xf32>)
  // expected-error @+2 {{attribute 'block' must be [1, 128], [128, 128] or [1, 256] for format fp8_block128, but got [16, 16]}}
  // expected-note @+1 {{leave 'block' out for blocks along a row}}
  %1:2 = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 16, 16>}
      : (tensor<?x256xbf16>) -> (tensor<?x256xf8E4M3FN>, tensor<?x2xf32>)
  return
}

// -----

// quantize (C8): a row has one scale.
func.func @rows(%x: tensor<?x256xbf16>) {
  %0:2 = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 256>}
      : (tensor<?x256xbf16>) -> (tensor<?x256xf8E4M3FN>, tensor<?x1xf32>)
  // expected-error @+1 {{result 'scales' must be 'tensor<?x1xf32>', but got 'tensor<?x2xf32>'}}
  %1:2 = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 256>}
      : (tensor<?x256xbf16>) -> (tensor<?x256xf8E4M3FN>, tensor<?x2xf32>)
  return
}

// -----

// quantize (C8)
func.func @granularity(%x: tensor<300x256xbf16>) {
  %0:2 = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 128, 128>}
      : (tensor<300x256xbf16>) -> (tensor<300x256xf8E4M3FN>, tensor<3x2xf32>)
  // expected-error @+1 {{result 'scales' must be 'tensor<3x2xf32>', but got 'tensor<300x2xf32>'}}
  %1:2 = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 128, 128>}
      : (tensor<300x256xbf16>) -> (tensor<300x256xf8E4M3FN>, tensor<300x2xf32>)
  return
}

// -----

// quantize (C50)
func.func @rows(%x: tensor<?x272xbf16>, %y: tensor<?x264xbf16>) {
  %0:2 = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<?x272xbf16>) -> (tensor<?x272xf8E4M3FN>, tensor<?x3xf32>)
  // expected-error @+2 {{operand 'input' must have a dimension 1 that is a multiple of 16, but got 264}}
  // expected-note @+1 {{rows of data begin at multiples of 16 bytes; pad them with zeros}}
  %1:2 = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<?x264xbf16>) -> (tensor<?x264xf8E4M3FN>, tensor<?x3xf32>)
  return
}

// -----

// quantize (C51)
func.func @outputs(%x: tensor<256x256xbf16>) {
  %0:2 = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm_power_of_two>}
      : (tensor<256x256xbf16>) -> (tensor<256x256xf8E4M3FN>, tensor<256x2xf32>)
  // expected-error @+2 {{expects no columnwise outputs for format fp8_block128}}
  // expected-note @+1 {{leave it out}}
  %1:2 = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm_power_of_two>, outputs = #fp4.outputs<columnwise>}
      : (tensor<256x256xbf16>) -> (tensor<256x256xf8E4M3FN>, tensor<256x2xf32>)
  return
}
