// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// Grouped GEMMs and split-K: one case per constraint of docs/reference/semantics.md. The first operation of
// a case is legal, the second differs from it in what the constraint is about.

!s = tensor<64x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<64x512xf4E2M1FN>, !s>
// matmul (C14)
func.func @split(%a: tensor<64x512xf4E2M1FN>, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<split_k = 2>}
      : (!operand, !operand) -> tensor<64x64xbf16>
  // expected-error @+2 {{'split_k' of 'work' must be 1 to 2 for K = 512, but got 3}}
  // expected-note @+1 {{a part has at least one slice of 256 elements of K; leave 'split_k' out for one part}}
  %1 = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<split_k = 3>}
      : (!operand, !operand) -> tensor<64x64xbf16>
  return
}

// -----

!s = tensor<2048x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<64x512xf4E2M1FN>, !s>
// matmul (C15)
func.func @rows(%a: tensor<64x512xf4E2M1FN>, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<groups = [24, 40]>}
      : (!operand, !operand) -> tensor<64x32xbf16>
  // expected-error @+2 {{attribute 'groups' must add up to the rows of operand 'lhs', but got [24, 41]}}
  // expected-note @+1 {{operand 'lhs' is 'tensor<64x512xf4E2M1FN>'; the operand holds the groups one after the other}}
  %1 = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<groups = [24, 41]>}
      : (!operand, !operand) -> tensor<64x32xbf16>
  return
}

// -----

!s = tensor<2048x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<64x512xf4E2M1FN>, !s>
// matmul (C15)
func.func @both(%a: tensor<64x512xf4E2M1FN>, %s: !s, %o: tensor<3xi64>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<groups = [24, 40]>}
      : (!operand, !operand) -> tensor<64x32xbf16>
  // expected-error @+2 {{expects one of 'groups' of 'work' and operand 'offsets', but got both}}
  // expected-note @+1 {{'groups' are rows that the program knows, 'offsets' those that only the device knows}}
  %1 = fp4.matmul %a_scaled, %a_scaled offsets %o {work = #fp4.work<groups = [24, 40]>}
      : (!operand, !operand, tensor<3xi64>) -> tensor<64x32xbf16>
  return
}

// -----

!s = tensor<2048x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<64x512xf4E2M1FN>, !s>
// matmul (C15)
func.func @offsets(%a: tensor<64x512xf4E2M1FN>, %s: !s, %l: tensor<2048x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %o: tensor<3xi64>, %one: tensor<1xi64>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled offsets %o
      : (!operand, !operand, tensor<3xi64>) -> tensor<64x32xbf16>
  // expected-error @+2 {{operand 'offsets' must be a static tensor of i64 with one number more than there are groups, or with two numbers for each group, but got 'tensor<1xi64>'}}
  // expected-note @+1 {{write tensor<Gx2xi64> of the first row and the end of each group, or tensor<(G + 1)xi64> where groups follow each other}}
  %1 = fp4.matmul %a_scaled, %a_scaled offsets %one
      : (!operand, !operand, tensor<1xi64>) -> tensor<64x32xbf16>
  return
}

// -----

!s = tensor<2048x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<64x512xf4E2M1FN>, !s>
// matmul (C15)
func.func @ranges(%a: tensor<64x512xf4E2M1FN>, %s: !s, %o: tensor<2x2xi64>, %three: tensor<2x3xi64>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled offsets %o
      : (!operand, !operand, tensor<2x2xi64>) -> tensor<64x32xbf16>
  // expected-error @+2 {{operand 'offsets' must be a static tensor of i64 with one number more than there are groups, or with two numbers for each group, but got 'tensor<2x3xi64>'}}
  // expected-note @+1 {{write tensor<Gx2xi64> of the first row and the end of each group, or tensor<(G + 1)xi64> where groups follow each other}}
  %1 = fp4.matmul %a_scaled, %a_scaled offsets %three
      : (!operand, !operand, tensor<2x3xi64>) -> tensor<64x32xbf16>
  return
}

// -----

!s = tensor<2048x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<64x512xf4E2M1FN>, !s>
!lhs = !fp4.scaled<nvfp4, tensor<?x512xf4E2M1FN>, !s>
// matmul (C15)
func.func @dynamic(%a: tensor<64x512xf4E2M1FN>, %s: !s, %d: tensor<?x512xf4E2M1FN>, %o: tensor<3xi64>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled offsets %o
      : (!operand, !operand, tensor<3xi64>) -> tensor<64x32xbf16>
  %d_scaled = fp4.scaled %d, %s : !lhs
  // expected-error @+2 {{operand 'lhs' must have static rows beside 'offsets', but got 'tensor<?x512xf4E2M1FN>'}}
  // expected-note @+1 {{the last of the offsets says how many of them the groups use; a lhs without scales, or of fp8_block128, may have dynamic rows where the elements are the only result}}
  %1 = fp4.matmul %d_scaled, %a_scaled offsets %o
      : (!lhs, !operand, tensor<3xi64>) -> tensor<?x32xbf16>
  return
}

// -----

!s = tensor<2048x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<64x512xf4E2M1FN>, !s>
// matmul (C16)
func.func @alpha(%a: tensor<64x512xf4E2M1FN>, %s: !s, %two: tensor<2xf32>, %three: tensor<3xf32>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled alpha %two {work = #fp4.work<groups = [24, 40]>}
      : (!operand, !operand, tensor<2xf32>) -> tensor<64x32xbf16>
  // expected-error @+2 {{operand 'alpha' must be 'tensor<2xf32>', but got 'tensor<3xf32>'}}
  // expected-note @+1 {{a grouped matmul has one alpha, or one for each group}}
  %1 = fp4.matmul %a_scaled, %a_scaled alpha %three {work = #fp4.work<groups = [24, 40]>}
      : (!operand, !operand, tensor<3xf32>) -> tensor<64x32xbf16>
  return
}

// -----

!s = tensor<2048x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<64x512xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<63x512xf4E2M1FN>, !s>
// matmul (C16)
func.func @rhs(%a: tensor<64x512xf4E2M1FN>, %s: !s, %odd: tensor<63x512xf4E2M1FN>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<groups = [24, 40]>}
      : (!operand, !operand) -> tensor<64x32xbf16>
  %odd_scaled = fp4.scaled %odd, %s : !rhs
  // expected-error @+2 {{operand 'rhs' must have as many rows for each of the 2 groups, but got}}
  // expected-note @+1 {{the weights of the groups are stacked along dimension 0 of rhs; pad those that are smaller with zeros}}
  %1 = fp4.matmul %a_scaled, %odd_scaled {work = #fp4.work<groups = [24, 40]>}
      : (!operand, !rhs) -> tensor<64x32xbf16>
  return
}

// -----

!s = tensor<2048x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<64x512xf4E2M1FN>, !s>
!lhs = !fp4.scaled<nvfp4, tensor<64x512xf4E2M1FN>,
                   tensor<64x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// matmul (C16)
func.func @scales(%a: tensor<64x512xf4E2M1FN>, %s: !s, %plain: tensor<64x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<groups = [24, 40]>}
      : (!operand, !operand) -> tensor<64x32xbf16>
  %a_scaled2 = fp4.scaled %a, %plain : !lhs
  // expected-error @+2 {{operand 'lhs_scales' must be 'tensor<2048x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>', but got}}
  // expected-note @+1 {{the list has the tiles of all groups}}
  %1 = fp4.matmul %a_scaled2, %a_scaled {work = #fp4.work<groups = [24, 40]>}
      : (!lhs, !operand) -> tensor<64x32xbf16>
  return
}

// -----

// matmul_alpha (C6)
func.func @alpha_groups(%two: tensor<2xf32>, %three: tensor<3xf32>, %one: tensor<f32>) {
  %0 = fp4.matmul_alpha %two, %two {per_group} : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  // expected-error @+2 {{operand 'rhs_amax' must have one number for each group, as the other has, with 'per_group', but got 'tensor<3xf32>'}}
  // expected-note @+1 {{pass the amaxes that fp4.amax or fp4.quantize gives with 'groups', or leave 'per_group' out}}
  %1 = fp4.matmul_alpha %two, %three {per_group} : tensor<2xf32>, tensor<3xf32> -> tensor<2xf32>
  return
}

// -----

// matmul_alpha (C6)
func.func @alpha_one(%two: tensor<2xf32>, %three: tensor<3xf32>, %one: tensor<f32>) {
  %0 = fp4.matmul_alpha %two, %two {per_group} : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  // expected-error @+2 {{operand 'lhs_amax' must have one number for each group, as the other has, with 'per_group', but got 'tensor<f32>'}}
  // expected-note @+1 {{pass the amaxes that fp4.amax or fp4.quantize gives with 'groups', or leave 'per_group' out}}
  %1 = fp4.matmul_alpha %one, %one {per_group} : tensor<f32>, tensor<f32> -> tensor<2xf32>
  return
}

// -----

!s = tensor<8x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!sb = tensor<64x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!d = tensor<?x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<8x512xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<64x512xf4E2M1FN>, !sb>
// matmul (C30)
func.func @fma_rows(%a: tensor<8x512xf4E2M1FN>, %s: !s, %b: tensor<64x512xf4E2M1FN>, %t: !sb, %d: tensor<?x512xf4E2M1FN>, %sd: !d) {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs, !rhs) -> tensor<8x64xbf16>
  // expected-error @+2 {{attribute 'arithmetic' fma must be of 1 to 8 static rows of 'lhs', or of each group, but got 64}}
  // expected-note @+1 {{leave 'arithmetic' out, and the tensor core multiplies}}
  %1 = fp4.matmul %b_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!rhs, !rhs) -> tensor<64x64xbf16>
  return
}

// -----

!d = tensor<?x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!sb = tensor<64x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<?x512xf4E2M1FN>, !d>
!rhs = !fp4.scaled<nvfp4, tensor<64x512xf4E2M1FN>, !sb>
// matmul (C30)
func.func @fma_dynamic(%a: tensor<?x512xf4E2M1FN>, %s: !d, %b: tensor<64x512xf4E2M1FN>, %t: !sb) {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  // expected-error @+2 {{attribute 'arithmetic' fma must be of 1 to 8 static rows of 'lhs', or of each group, but got dynamic ones}}
  // expected-note @+1 {{leave 'arithmetic' out, and the tensor core multiplies}}
  %1 = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs, !rhs) -> tensor<?x64xbf16>
  return
}

// -----

!s = tensor<8x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!sb = tensor<64x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<8x512xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<64x512xf4E2M1FN>, !sb>
// matmul (C30)
func.func @fma_split(%a: tensor<8x512xf4E2M1FN>, %s: !s, %b: tensor<64x512xf4E2M1FN>, %t: !sb) {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  // expected-error @+2 {{expects neither 'split_k' nor operand 'offsets' with arithmetic fma}}
  // expected-note @+1 {{leave 'arithmetic' out: matmuls of the tensor core have both}}
  %1 = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 2>, arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs, !rhs) -> tensor<8x64xbf16>
  return
}

// -----

!s = tensor<2048x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<8x512xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<64x512xf4E2M1FN>, !s>
// matmul (C30)
func.func @fma_groups(%a: tensor<8x512xf4E2M1FN>, %s: !s, %b: tensor<64x512xf4E2M1FN>) {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %s : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<groups = [4, 4]>, arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs, !rhs) -> tensor<8x32xbf16>
  // expected-error @+2 {{expects groups of equal size with arithmetic fma, but got [3, 5]}}
  // expected-note @+1 {{leave 'arithmetic' out: matmuls of the tensor core have groups of any size}}
  %1 = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<groups = [3, 5]>, arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs, !rhs) -> tensor<8x32xbf16>
  return
}

// -----

!s = tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!s2 = tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<16x64xf4E2M1FN>, !s2>
!operand2 = !fp4.scaled<nvfp4, tensor<16x64xf4E2M1FN>, !s>
// work (C1)
func.func @no_group(%a: tensor<16x64xf4E2M1FN>, %s: !s, %t: !s2) {
  %a_scaled = fp4.scaled %a, %t : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled
      {work = #fp4.work<groups = [8, 8]>, arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!operand, !operand) -> tensor<16x8xf32>
  %a_scaled2 = fp4.scaled %a, %s : !operand2
  %1 = fp4.matmul %a_scaled2, %a_scaled2
      // expected-error @+2 {{expects at least one number}}
      // expected-note @+1 {{a group without rows has the number 0}}
      {work = #fp4.work<groups = []>, arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!operand2, !operand2) -> tensor<16x16xf32>
  return
}

// -----

!s = tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!s2 = tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<16x64xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<16x64xf4E2M1FN>, !s2>
// matmul (C15)
func.func @negative_group(%a: tensor<16x64xf4E2M1FN>, %s: !s, %t: !s2) {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %a_scaled2 = fp4.scaled %a, %t : !rhs
  %0 = fp4.matmul %a_scaled, %a_scaled2 {work = #fp4.work<groups = [16, 0]>}
      : (!lhs, !rhs) -> tensor<16x8xf32>
  // expected-error @+2 {{attribute 'groups' must be at least one number of rows, none negative, but got [17, -1]}}
  // expected-note @+1 {{a group without rows has the number 0}}
  %1 = fp4.matmul %a_scaled, %a_scaled2 {work = #fp4.work<groups = [17, -1]>}
      : (!lhs, !rhs) -> tensor<16x8xf32>
  return
}

// -----

!s = tensor<8388608x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!r = tensor<0x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<16x64xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<0x64xf4E2M1FN>, !r>
// matmul (C15)
func.func @many_groups(%a: tensor<16x64xf4E2M1FN>, %b: tensor<0x64xf4E2M1FN>, %s: !s, %r: !r, %ok: tensor<65537xi64>, %bad: tensor<65538xi64>) {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %r : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled offsets %ok
      : (!lhs, !rhs, tensor<65537xi64>) -> tensor<16x0xf32>
  // expected-error @+2 {{operand 'offsets' must have at most 65537 numbers, but got 'tensor<65538xi64>'}}
  // expected-note @+1 {{multiply so many groups with several matmuls}}
  %1 = fp4.matmul %a_scaled, %b_scaled offsets %bad
      : (!lhs, !rhs, tensor<65538xi64>) -> tensor<16x0xf32>
  return
}

// -----

!a = tensor<64x512xf8E4M3FN>
!s = tensor<64x4xf32>
!b = tensor<256x512xf8E4M3FN>
!sb = tensor<2x4xf32>
!lhs = !fp4.scaled<fp8_block128, !a, !s>
!rhs = !fp4.scaled<fp8_block128, !b, !sb>
// matmul (C353)
func.func @expected(%a: !a, %s: !s, %b: !b, %sb: !sb, %o: tensor<3xi64>) {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled offsets %o {work = #fp4.work<expected_rows = 64>}
      : (!lhs, !rhs, tensor<3xi64>) -> tensor<64x128xbf16>
  // expected-error @+2 {{'expected_rows' of 'work' must be 1 to 64, the rows of lhs, but got 65}}
  // expected-note @+1 {{leave it out, and groups are expected to use all rows}}
  %1 = fp4.matmul %a_scaled, %b_scaled offsets %o {work = #fp4.work<expected_rows = 65>}
      : (!lhs, !rhs, tensor<3xi64>) -> tensor<64x128xbf16>
  return
}

// -----

!a = tensor<64x512xf8E4M3FN>
!s = tensor<64x4xf32>
!b = tensor<256x512xf8E4M3FN>
!sb = tensor<2x4xf32>
!lhs = !fp4.scaled<fp8_block128, !a, !s>
!rhs = !fp4.scaled<fp8_block128, !b, !sb>
// matmul (C353)
func.func @unexpected(%a: !a, %s: !s, %b: !b, %sb: !sb, %o: tensor<3xi64>) {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<groups = [24, 40]>}
      : (!lhs, !rhs) -> tensor<64x128xbf16>
  // expected-error @+2 {{expects no 'expected_rows' or 'unspecified_rows' beside 'groups'}}
  // expected-note @+1 {{leave them out: 'groups' are the rows of each group, and no row is of none}}
  %1 = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<groups = [24, 40], expected_rows = 32>}
      : (!lhs, !rhs) -> tensor<64x128xbf16>
  return
}

// -----

!a = tensor<64x512xf8E4M3FN>
!s = tensor<64x4xf32>
!b = tensor<256x512xf8E4M3FN>
!sb = tensor<2x4xf32>
!lhs = !fp4.scaled<fp8_block128, !a, !s>
!rhs = !fp4.scaled<fp8_block128, !b, !sb>
// matmul (C460)
func.func @unspecified(%a: !a, %s: !s, %b: !b, %sb: !sb, %o: tensor<3xi64>) {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled offsets %o {work = #fp4.work<unspecified_rows>}
      : (!lhs, !rhs, tensor<3xi64>) -> tensor<64x128xbf16>
  // expected-error @+2 {{expects no 'expected_rows' or 'unspecified_rows' beside 'groups'}}
  // expected-note @+1 {{leave them out: 'groups' are the rows of each group, and no row is of none}}
  %1 = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<groups = [24, 40], unspecified_rows>}
      : (!lhs, !rhs) -> tensor<64x128xbf16>
  return
}

// -----

!p = tensor<4x1x4608xi8, #fp4.weight_layout<wgmma>>
!odd = tensor<3x1x4608xi8, #fp4.weight_layout<wgmma>>
// matmul (C16)
func.func @tiles(%x: tensor<64x64xbf16>, %p: !p, %odd: !odd) {
  %0 = fp4.matmul %x, %p {work = #fp4.work<groups = [24, 40]>}
      : (tensor<64x64xbf16>, !p) -> tensor<64x256xbf16>
  // expected-error @+2 {{operand 'rhs' must have as many rows of tiles for each of the 2 groups, but got}}
  // expected-note @+1 {{fp4.prepack gives each of 'groups' = 2 stacked matrices rows of tiles of its own}}
  %1 = fp4.matmul %x, %odd {work = #fp4.work<groups = [24, 40]>}
      : (tensor<64x64xbf16>, !odd) -> tensor<64x128xbf16>
  return
}

// -----

!p = tensor<4x1x4608xi8, #fp4.weight_layout<wgmma>>
// matmul (C16)
func.func @row_alphas(%x: tensor<64x64xbf16>, %p: !p, %rows: tensor<64x1xf32>, %columns: tensor<1x256xf32>) {
  %0 = fp4.matmul %x, %p alpha %rows {work = #fp4.work<groups = [24, 40]>}
      : (tensor<64x64xbf16>, !p, tensor<64x1xf32>) -> tensor<64x256xbf16>
  // expected-error @+2 {{operand 'alpha' must be 'tensor<64x1xf32>', but got 'tensor<1x256xf32>'}}
  // expected-note @+1 {{beside a lhs without scales groups may have a factor for each row, M x 1}}
  %1 = fp4.matmul %x, %p alpha %columns {work = #fp4.work<groups = [24, 40]>}
      : (tensor<64x64xbf16>, !p, tensor<1x256xf32>) -> tensor<64x256xbf16>
  return
}

// -----

!w = tensor<256x128xf4E2M1FN>
!s = tensor<256x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!p = tensor<2x1x8704xi8, #fp4.weight_layout<wgmma>>
!rhs = !fp4.scaled<mxfp4, !w, !s>
!rhs2 = !fp4.scaled<mxfp4, !w, tensor<128x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// matmul (C16)
func.func @bytes(%x: tensor<64x128xf8E4M3FN>, %w: !w, %s: !s, %p: !p, %short: tensor<128x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.matmul %x, %p {work = #fp4.work<groups = [24, 40]>}
      : (tensor<64x128xf8E4M3FN>, !p) -> tensor<64x128xbf16>
  %w_scaled = fp4.scaled %w, %s : !rhs
  %1 = fp4.matmul %x, %w_scaled {work = #fp4.work<groups = [24, 40]>}
      : (tensor<64x128xf8E4M3FN>, !rhs) -> tensor<64x128xbf16>
  %w_scaled2 = fp4.scaled %w, %short : !rhs2
  // expected-error @+2 {{operand 'rhs_scales' must be 'tensor<256x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>', but got 'tensor<128x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>'}}
  // expected-note @+1 {{the list has the tiles of all groups, each padded to 128 rows and 4 blocks, as fp4.quantize with 'groups' writes them}}
  %2 = fp4.matmul %x, %w_scaled2 {work = #fp4.work<groups = [24, 40]>}
      : (tensor<64x128xf8E4M3FN>, !rhs2) -> tensor<64x128xbf16>
  return
}

// -----

!p = tensor<4x1x4608xi8, #fp4.weight_layout<wgmma>>
// matmul (C13)
func.func @bias(%x: tensor<64x64xbf16>, %p: !p, %bias: tensor<2x1x256xf32>, %one: tensor<1x1x256xf32>) {
  %0 = fp4.matmul %x, %p epilogue(%bias) {
  ^bb0(%sum: f32, %b: f32):
    %y = arith.addf %sum, %b : f32
    fp4.yield %y : f32
  } {work = #fp4.work<groups = [24, 40]>}
      : (tensor<64x64xbf16>, !p, tensor<2x1x256xf32>) -> tensor<64x256xf32>
  // expected-error @+2 {{epilogue input must be f32, bf16 or f16, and a scalar, M x 1, 1 x N or M x N, or of G groups G x 1 x N or G x 1 x 1, but got 'tensor<1x1x256xf32>'}}
  // expected-note @+1 {{a thread finds its element by row, column and group: expand a vector of columns to 1 x N, one of rows to M x 1, and rows of groups, G x N, to G x 1 x N}}
  %1 = fp4.matmul %x, %p epilogue(%one) {
  ^bb0(%sum: f32, %b: f32):
    %y = arith.addf %sum, %b : f32
    fp4.yield %y : f32
  } {work = #fp4.work<groups = [24, 40]>}
      : (tensor<64x64xbf16>, !p, tensor<1x1x256xf32>) -> tensor<64x256xf32>
  return
}

// -----

!p = tensor<4x1x4608xi8, #fp4.weight_layout<wgmma>>
// matmul (C13)
func.func @no_groups(%x: tensor<64x64xbf16>, %p: !p, %bias: tensor<1x1x512xf32>) {
  // expected-error @+2 {{epilogue input must be f32, bf16 or f16, and a scalar, M x 1, 1 x N or M x N, but got 'tensor<1x1x512xf32>'}}
  // expected-note @+1 {{a thread finds its element by row and column: expand a vector of columns to 1 x N, one of rows to M x 1}}
  %0 = fp4.matmul %x, %p epilogue(%bias) {
  ^bb0(%sum: f32, %b: f32):
    %y = arith.addf %sum, %b : f32
    fp4.yield %y : f32
  } : (tensor<64x64xbf16>, !p, tensor<1x1x512xf32>) -> tensor<64x512xf32>
  return
}

// -----

!list = tensor<640x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!short = tensor<512x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<mxfp4, tensor<384x32xf4E2M1FN>, !list>
!rhs = !fp4.scaled<mxfp4, tensor<256x32xf4E2M1FN>,
                   tensor<256x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!lhs2 = !fp4.scaled<mxfp4, tensor<384x32xf4E2M1FN>, !short>
// matmul (C16)
func.func @list_of_offsets(%q: tensor<384x32xf4E2M1FN>, %s: !list, %short: !short, %o: tensor<3xi64>, %w: tensor<256x32xf4E2M1FN>,
                           %sw: tensor<256x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %q_scaled = fp4.scaled %q, %s : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %0 = fp4.matmul %q_scaled, %w_scaled offsets %o
      : (!lhs, !rhs, tensor<3xi64>) -> tensor<384x128xbf16>
  %q_scaled2 = fp4.scaled %q, %short : !lhs2
  // expected-error @+2 {{operand 'lhs_scales' must be 'tensor<640x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>', but got}}
  // expected-note @+1 {{the list of tiles has room for any groups; fp4.quantize and fp4.swizzle_scales with the same 'offsets' write it}}
  %1 = fp4.matmul %q_scaled2, %w_scaled offsets %o
      : (!lhs2, !rhs, tensor<3xi64>) -> tensor<384x128xbf16>
  return
}
