// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Prepacked weights, which registers take or multiply (docs/concepts/pipe.md). Every error has a twin
// above it that differs in one place and verifies.

func.func @twin(%p: !pipe.global<64x4608xi8>, %i: i32) {
  %w = pipe.load %p[%i] : !pipe.global<64x4608xi8> -> !pipe.shared<4x4608xi8>
  return
}
func.func @bad(%p: !pipe.global<64x4608xi8>, %i: i32) {
  // (C190)
  // expected-error @+2 {{source and tile must be linear, with equal rows of elements of whole bytes, but got}}
  // expected-note @+1 {{pass tiles of rows that are as wide as the buffer's, or use a tensor map}}
  %w = pipe.load %p[%i] : !pipe.global<64x4608xi8> -> !pipe.shared<4x2304xi8>
  return
}

// -----

func.func @twin(%w: !pipe.shared<4x4608xi8>, %x: !pipe.shared<16x256xbf16, swizzle_128B>, %more: i1) {
  %acc = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
  pipe.mma %acc, %w, %x accumulate %more : !pipe.fragment<64x16xf32, wgmma>, !pipe.shared<4x4608xi8>, !pipe.shared<16x256xbf16, swizzle_128B>
  return
}
func.func @bad(%w: !pipe.shared<4x4352xi8>, %x: !pipe.shared<16x128xf16, swizzle_128B>, %more: i1) {
  %acc = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
  // (C191)
  // expected-error @+2 {{b must be '!pipe.shared<16x256xf16, swizzle_128B>', but got}}
  // expected-note @+1 {{load activations of this type, as deep as the weights}}
  pipe.mma %acc, %w, %x accumulate %more : !pipe.fragment<64x16xf32, wgmma>, !pipe.shared<4x4352xi8>, !pipe.shared<16x128xf16, swizzle_128B>
  return
}

// -----

!fragment = !pipe.fragment<64x16xf32, wgmma>
!x = !pipe.shared<16x128xf16, swizzle_128B>
func.func @twin(%w: !pipe.shared<2x4608xi8>, %v: !pipe.shared<2x4608xi8>, %row: i32, %x: !x) {
  %acc = pipe.accumulator : !fragment
  pipe.mma %acc, %w from %row, %x next %v : !fragment, !pipe.shared<2x4608xi8>, !x, !pipe.shared<2x4608xi8>
  return
}
func.func @bad(%w: !pipe.shared<2x4608xi8>, %v: !pipe.shared<2x4608xi8>, %x: !x) {
  %acc = pipe.accumulator : !fragment
  // (C191)
  // expected-error @+2 {{must be in a role of three warpgroups and have more than 8 columns, a row of a and 'next', tiles of one type, or neither of both}}
  // expected-note @+1 {{write 'from %row' and 'next %tile' where warps 0 to 12 multiply 192 rows}}
  pipe.mma %acc, %w, %x next %v : !fragment, !pipe.shared<2x4608xi8>, !x, !pipe.shared<2x4608xi8>
  return
}

// -----

func.func @twin(%w: !pipe.shared<2x4608xi8>, %x: !pipe.shared<16x128xf16, swizzle_128B>, %more: i1) {
  %acc = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
  pipe.mma %acc, %w, %x accumulate %more : !pipe.fragment<64x16xf32, wgmma>, !pipe.shared<2x4608xi8>, !pipe.shared<16x128xf16, swizzle_128B>
  return
}
func.func @bad(%w: !pipe.shared<2x4096xi8>, %x: !pipe.shared<16x128xf16, swizzle_128B>, %more: i1) {
  %acc = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
  // (C650)
  // expected-error @+2 {{a must be f4E2M1FN, f6E2M3FN, f6E3M2FN, f8E4M3FN, f8E5M2, f16, bf16, i8 in linear rows of 4608 or 4352 bytes, i8 in linear rows of 8704 bytes in shared memory or f8E4M3FN, rounded f8E4M3FN, f16, bf16 in a fragment of wgmma, but got '!pipe.shared<2x4096xi8>'}}
  // expected-note @+1 {{MMAs with the operands before it are wgmma e4m3, wgmma f16, wgmma f16 with A in registers, wgmma e4m3 with rounded A, wgmma f16 with A from scaled elements, }}
  pipe.mma %acc, %w, %x accumulate %more : !pipe.fragment<64x16xf32, wgmma>, !pipe.shared<2x4096xi8>, !pipe.shared<16x128xf16, swizzle_128B>
  return
}

// -----

func.func @twin(%w: !pipe.shared<2x8704xi8>, %x: !pipe.shared<16x256xf8E4M3FN, swizzle_128B>, %more: i1) {
  %acc = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
  pipe.mma %acc, %w, %x accumulate %more : !pipe.fragment<64x16xf32, wgmma>, !pipe.shared<2x8704xi8>, !pipe.shared<16x256xf8E4M3FN, swizzle_128B>
  return
}
func.func @bad(%w: !pipe.shared<2x8704xi8>, %x: !pipe.shared<16x128xbf16, swizzle_128B>, %more: i1) {
  %acc = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
  // (C650)
  // expected-error @+2 {{b must be f8E4M3FN in shared memory, but got '!pipe.shared<16x128xbf16, swizzle_128B>'}}
  // expected-note @+1 {{MMAs with the operands before it are wgmma e4m3 with A from prepacked weights}}
  pipe.mma %acc, %w, %x accumulate %more : !pipe.fragment<64x16xf32, wgmma>, !pipe.shared<2x8704xi8>, !pipe.shared<16x128xbf16, swizzle_128B>
  return
}

// -----

func.func @twin(%w: !pipe.shared<2x8704xi8>, %x: !pipe.shared<16x256xf8E4M3FN, swizzle_128B>, %more: i1) {
  %acc = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
  pipe.mma %acc, %w, %x accumulate %more without_powers : !pipe.fragment<64x16xf32, wgmma>, !pipe.shared<2x8704xi8>, !pipe.shared<16x256xf8E4M3FN, swizzle_128B>
  return
}
func.func @bad(%w: !pipe.shared<4x4352xi8>, %x: !pipe.shared<16x256xbf16, swizzle_128B>, %more: i1) {
  %acc = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
  // (C650)
  // expected-error @+2 {{'without_powers' must be left out of an MMA of wgmma f16 with A from prepacked weights, but is there}}
  // expected-note @+1 {{MMAs that read it are wgmma e4m3 with A from prepacked weights}}
  pipe.mma %acc, %w, %x accumulate %more without_powers : !pipe.fragment<64x16xf32, wgmma>, !pipe.shared<4x4352xi8>, !pipe.shared<16x256xbf16, swizzle_128B>
  return
}

// -----

func.func @twin(%w: !pipe.global<64x8704xi8>, %tile: i32) {
  %p = pipe.fetch %w[%tile] : !pipe.global<64x8704xi8> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  return
}
func.func @bad(%w: !pipe.global<64x4352xi8>, %tile: i32) {
  // (C605)
  // expected-error @+2 {{weights must be i8 in linear rows of 8704 bytes, but got '!pipe.global<64x4352xi8>'}}
  // expected-note @+1 {{fp4.prepack makes such weights for e4m3, a row for each tile}}
  %p = pipe.fetch %w[%tile] : !pipe.global<64x4352xi8> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  return
}

// -----

func.func @twin(%w: !pipe.global<64x8704xi8>, %tile: i32) {
  %p = pipe.fetch %w[%tile] : !pipe.global<64x8704xi8> -> tensor<64x8xf32, #pipe.distribution<wgmma>>
  return
}
func.func @bad(%w: !pipe.global<64x8704xi8>, %tile: i32) {
  // (C605)
  // expected-error @+2 {{result must be of wgmma or lanes, but got 'tensor<16x8xf32, #pipe.distribution<mma_sync>>'}}
  // expected-note @+1 {{write #pipe.distribution<wgmma>, or <lanes> of tensor memory}}
  %p = pipe.fetch %w[%tile] : !pipe.global<64x8704xi8> -> tensor<16x8xf32, #pipe.distribution<mma_sync>>
  return
}

// -----

func.func @bad(%w: !pipe.global<64x8704xi8>, %tile: i32) {
  // (C605)
  // expected-error @+2 {{of a tile of weights must have neither 'transposed' nor 'one_row', nor a column and 'rows' outside of three warpgroups}}
  // expected-note @+1 {{write '[%tile]' alone: its rows are those of the fragments; three warpgroups may have '[%tile, %first] rows %behind'}}
  %p = pipe.fetch %w[%tile] one_row : !pipe.global<64x8704xi8> -> tensor<64x8xf32, #pipe.distribution<wgmma>>
  return
}

// -----

func.func @bad(%w: !pipe.global<64x8704xi8>, %tile: i32) {
  // (C144)
  // expected-error @+2 {{of powers of weights, or of what the kernel stores, must have no 'in_bounds'}}
  // expected-note @+1 {{leave 'in_bounds' out: such numbers exist}}
  %p = pipe.fetch %w[%tile] in_bounds : !pipe.global<64x8704xi8> -> tensor<64x8xf32, #pipe.distribution<wgmma>>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<64x256xf32, wgmma>, %held: !pipe.fragment<64x128xf8E4M3FN, wgmma>, %w: !pipe.shared<1x8704xi8>, %x: !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, %n: i32, %more: i1) {
  pipe.mma %acc, %held, %x accumulate %more next %w : !pipe.fragment<64x256xf32, wgmma>, !pipe.fragment<64x128xf8E4M3FN, wgmma>, !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, !pipe.shared<1x8704xi8>
  return
}
func.func @bad(%acc: !pipe.fragment<64x256xf32, wgmma>, %held: !pipe.fragment<64x128xf8E4M3FN, wgmma>, %w: !pipe.shared<1x8704xi8>, %x: !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, %n: i32, %more: i1) {
  // (C650)
  // expected-error @+2 {{'existing' must be left out of an MMA of wgmma e4m3 with A in registers, but is there}}
  // expected-note @+1 {{MMAs that read it are tcgen05 mxf4nvf4, tcgen05 mxf8f6f4, }}
  pipe.mma %acc, %held, %x accumulate %more existing %n next %w : !pipe.fragment<64x256xf32, wgmma>, !pipe.fragment<64x128xf8E4M3FN, wgmma>, !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, !pipe.shared<1x8704xi8>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<64x16xf32, wgmma>, %w: !pipe.shared<2x8704xi8>, %x: !pipe.shared<16x256xf8E4M3FN, swizzle_128B>) {
  pipe.mma %acc, %w, %x chain until_mma : !pipe.fragment<64x16xf32, wgmma>, !pipe.shared<2x8704xi8>, !pipe.shared<16x256xf8E4M3FN, swizzle_128B>
  pipe.mma %acc, %w, %x : !pipe.fragment<64x16xf32, wgmma>, !pipe.shared<2x8704xi8>, !pipe.shared<16x256xf8E4M3FN, swizzle_128B>
  return
}
func.func @bad(%acc: !pipe.fragment<64x16xf32, wgmma>, %w: !pipe.shared<2x8704xi8>, %x: !pipe.shared<16x256xf8E4M3FN, swizzle_128B>) {
  // (C650)
  // expected-error @+2 {{'in_order' must be left out of an MMA of wgmma e4m3 with A from prepacked weights, but is there}}
  // expected-note @+1 {{MMAs that read it are wgmma f16 with A from scaled elements}}
  pipe.mma %acc, %w, %x in_order : !pipe.fragment<64x16xf32, wgmma>, !pipe.shared<2x8704xi8>, !pipe.shared<16x256xf8E4M3FN, swizzle_128B>
  return
}

// -----

func.func @twin(%w: !pipe.shared<1x8704xi8>, %x: !pipe.shared<256x128xf8E4M3FN, swizzle_128B>) {
  %acc = pipe.accumulator : !pipe.fragment<64x256xf32, wgmma>
  %held = pipe.dequantize %w : !pipe.shared<1x8704xi8> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  pipe.mma %acc, %held, %x next %w : !pipe.fragment<64x256xf32, wgmma>, !pipe.fragment<64x128xf8E4M3FN, wgmma>, !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, !pipe.shared<1x8704xi8>
  return
}
func.func @bad(%w: !pipe.shared<1x8704xi8>, %x: !pipe.shared<256x128xf8E4M3FN, swizzle_128B>) {
  %acc = pipe.accumulator : !pipe.fragment<64x256xf32, wgmma>
  %held = pipe.dequantize %w : !pipe.shared<1x8704xi8> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  // (C318)
  // expected-error @+2 {{'next' must be a tile of weights, but is missing}}
  // expected-note @+1 {{write 'next %w' with the weights of the next k tile}}
  pipe.mma %acc, %held, %x : !pipe.fragment<64x256xf32, wgmma>, !pipe.fragment<64x128xf8E4M3FN, wgmma>, !pipe.shared<256x128xf8E4M3FN, swizzle_128B>
  return
}

// -----

func.func @twin(%w: !pipe.shared<1x8704xi8>, %x: !pipe.shared<256x128xf8E4M3FN, swizzle_128B>) {
  %acc = pipe.accumulator : !pipe.fragment<64x256xf32, wgmma>
  %held = pipe.dequantize %w : !pipe.shared<1x8704xi8> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  pipe.mma %acc, %held, %x next %w : !pipe.fragment<64x256xf32, wgmma>, !pipe.fragment<64x128xf8E4M3FN, wgmma>, !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, !pipe.shared<1x8704xi8>
  return
}
func.func @bad(%w: !pipe.shared<1x8704xi8>, %x: !pipe.shared<256x128xf8E4M3FN, swizzle_128B>) {
  %acc = pipe.accumulator : !pipe.fragment<64x128xf32, wgmma>
  %held = pipe.dequantize %w : !pipe.shared<1x8704xi8> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  // (C318)
  // expected-error @+2 {{accumulator must be '!pipe.fragment<64x256xf32, wgmma>', but got '!pipe.fragment<64x128xf32, wgmma>'}}
  // expected-note @+1 {{write an accumulator of 256 columns; MMAs of prepacked weights in shared memory take others}}
  pipe.mma %acc, %held, %x next %w : !pipe.fragment<64x128xf32, wgmma>, !pipe.fragment<64x128xf8E4M3FN, wgmma>, !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, !pipe.shared<1x8704xi8>
  return
}

// -----

func.func @twin(%w: !pipe.shared<1x8704xi8>, %x: !pipe.shared<256x128xf8E4M3FN, swizzle_128B>) {
  %acc = pipe.accumulator : !pipe.fragment<64x256xf32, wgmma>
  %held = pipe.dequantize %w : !pipe.shared<1x8704xi8> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  pipe.mma %acc, %held, %x next %w : !pipe.fragment<64x256xf32, wgmma>, !pipe.fragment<64x128xf8E4M3FN, wgmma>, !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, !pipe.shared<1x8704xi8>
  return
}
func.func @bad(%w: !pipe.shared<1x8704xi8>, %x: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>) {
  %acc = pipe.accumulator : !pipe.fragment<64x256xf32, wgmma>
  %held = pipe.dequantize %w : !pipe.shared<1x8704xi8> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  // (C318)
  // expected-error @+2 {{b must be '!pipe.shared<256x128xf8E4M3FN, swizzle_128B>', but got '!pipe.shared<128x128xf8E4M3FN, swizzle_128B>'}}
  // expected-note @+1 {{load 256 rows of one tile's depth of activations}}
  pipe.mma %acc, %held, %x next %w : !pipe.fragment<64x256xf32, wgmma>, !pipe.fragment<64x128xf8E4M3FN, wgmma>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<1x8704xi8>
  return
}

// -----

func.func @twin(%w: !pipe.shared<1x8704xi8>, %x: !pipe.shared<256x128xf8E4M3FN, swizzle_128B>) {
  %acc = pipe.accumulator : !pipe.fragment<64x256xf32, wgmma>
  %held = pipe.dequantize %w : !pipe.shared<1x8704xi8> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  pipe.mma %acc, %held, %x next %w : !pipe.fragment<64x256xf32, wgmma>, !pipe.fragment<64x128xf8E4M3FN, wgmma>, !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, !pipe.shared<1x8704xi8>
  return
}
func.func @bad(%w: !pipe.shared<1x8704xi8>, %x: !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, %v: !pipe.shared<2x8704xi8>) {
  %acc = pipe.accumulator : !pipe.fragment<64x256xf32, wgmma>
  %held = pipe.dequantize %w : !pipe.shared<1x8704xi8> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  // (C318)
  // expected-error @+2 {{next must be the tile '!pipe.shared<1x8704xi8>', but got '!pipe.shared<2x8704xi8>'}}
  // expected-note @+1 {{load one tile of weights at a time, as fp4.prepack makes them}}
  pipe.mma %acc, %held, %x next %v : !pipe.fragment<64x256xf32, wgmma>, !pipe.fragment<64x128xf8E4M3FN, wgmma>, !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, !pipe.shared<2x8704xi8>
  return
}

// -----

func.func @twin(%w: !pipe.shared<1x8704xi8>, %x: !pipe.shared<256x128xf8E4M3FN, swizzle_128B>) {
  %acc = pipe.accumulator : !pipe.fragment<64x256xf32, wgmma>
  %held = pipe.dequantize %w : !pipe.shared<1x8704xi8> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  pipe.mma %acc, %held, %x next %w : !pipe.fragment<64x256xf32, wgmma>, !pipe.fragment<64x128xf8E4M3FN, wgmma>, !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, !pipe.shared<1x8704xi8>
  return
}
func.func @bad(%w: !pipe.shared<1x4352xi8>) {
  // (C318)
  // expected-error @+2 {{source must be the tile '!pipe.shared<1x8704xi8>', but got '!pipe.shared<1x4352xi8>'}}
  // expected-note @+1 {{load one tile of weights at a time, as fp4.prepack makes them}}
  %held = pipe.dequantize %w : !pipe.shared<1x4352xi8> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  return
}

// -----

func.func @twin(%w: !pipe.shared<1x8704xi8>, %x: !pipe.shared<256x128xf8E4M3FN, swizzle_128B>) {
  %acc = pipe.accumulator : !pipe.fragment<64x256xf32, wgmma>
  %held = pipe.dequantize %w : !pipe.shared<1x8704xi8> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  pipe.mma %acc, %held, %x next %w : !pipe.fragment<64x256xf32, wgmma>, !pipe.fragment<64x128xf8E4M3FN, wgmma>, !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, !pipe.shared<1x8704xi8>
  return
}
func.func @bad(%w: !pipe.shared<1x8704xi8>) {
  // (C318)
  // expected-error @+2 {{register-resident weights must be '!pipe.fragment<64x128xf8E4M3FN, wgmma>', but got '!pipe.fragment<64x64xf8E4M3FN, wgmma>'}}
  // expected-note @+1 {{take the result of pipe.dequantize}}
  %held = pipe.dequantize %w : !pipe.shared<1x8704xi8> -> !pipe.fragment<64x64xf8E4M3FN, wgmma>
  return
}

// -----

func.func @twin(%w: !pipe.global<64x8704xi8>, %tile: i32, %first: i32, %behind: i32) {
  %p = pipe.fetch %w[%tile, %first] rows %behind : !pipe.global<64x8704xi8> -> tensor<64x8xf32, #pipe.distribution<wgmma>>
  return
}
func.func @bad(%w: !pipe.global<64x8704xi8>, %tile: i32, %first: i32, %behind: i32) {
  // (C605)
  // expected-error @+2 {{of a tile of weights must have neither 'transposed' nor 'one_row', nor a column and 'rows' outside of three warpgroups}}
  // expected-note @+1 {{three warpgroups may have '[%tile, %first] rows %behind'}}
  %p = pipe.fetch %w[%tile, %first] : !pipe.global<64x8704xi8> -> tensor<64x8xf32, #pipe.distribution<wgmma>>
  return
}
