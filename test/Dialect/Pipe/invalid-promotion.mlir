// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// MMAs whose sums are promoted to fp32 (docs/concepts/pipe.md). Every error has a twin above it that differs
// in one place and verifies.

func.func @twin(%sums: !pipe.fragment<64x128xf32, wgmma>, %a: !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>) {
  pipe.mma %sums, %a[128], %b : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
  return
}
func.func @bad(%sums: !pipe.fragment<16x128xf32, mma_sync>, %a: !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>) {
  // (C650)
  // expected-error @+2 {{b must be f4E2M1FN in shared memory, but got '!pipe.shared<128x128xf8E4M3FN, swizzle_128B>'}}
  // expected-note @+1 {{MMAs with the operands before it are mma.sync mxf8f6f4 with unit scales of A}}
  pipe.mma %sums, %a[128], %b : !pipe.fragment<16x128xf32, mma_sync>,
      !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
  return
}

// -----

func.func @twin(%sums: !pipe.fragment<64x128xf32, wgmma>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>) {
  pipe.mma %sums, %a, %b : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
  return
}
func.func @bad(%sums: !pipe.fragment<64x128xf32, wgmma>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<128x64xf8E4M3FN, swizzle_64B>) {
  // (C220)
  // expected-error @+2 {{b must be f8E4M3FN with as many columns as a, a multiple of 128 in layout swizzle_128B or else of 64 in swizzle_64B, but got}}
  // expected-note @+1 {{load panels that are as wide as the swizzle}}
  pipe.mma %sums, %a, %b : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<128x64xf8E4M3FN, swizzle_64B>
  return
}

// -----

func.func @twin(%sums: !pipe.fragment<64x128xf32, wgmma>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>) {
  pipe.mma %sums, %a[64], %b : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
  return
}
func.func @bad(%sums: !pipe.fragment<64x128xf32, wgmma>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>) {
  // (C220)
  // expected-error @+2 {{a must have 64 rows for each warpgroup of its role, from a multiple of 64 on, but got 128 rows, from 128 on}}
  // expected-note @+1 {{load a higher tile, or begin at another multiple of 64 rows}}
  pipe.mma %sums, %a[128], %b : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
  return
}

// -----

func.func @twin(%sums: !pipe.fragment<64x128xf32, wgmma>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %more: i1) {
  pipe.mma %sums, %a, %b fencing : !pipe.fragment<64x128xf32, wgmma>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
  return
}
func.func @bad(%sums: !pipe.fragment<64x128xf32, wgmma>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %more: i1) {
  // (C650)
  // expected-error @+2 {{'accumulate' must be left out of an MMA of wgmma e4m3, but is there}}
  // expected-note @+1 {{MMAs that read it are tcgen05 mxf4nvf4, tcgen05 mxf4nvf4 with A in tensor memory, tcgen05 mxf8f6f4, tcgen05 mxf8f6f4 with A in tensor memory, tcgen05 f8f6f4, }}
  pipe.mma %sums, %a, %b accumulate %more fencing : !pipe.fragment<64x128xf32, wgmma>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
  return
}

// -----

func.func @twin(%sums: !pipe.fragment<64x96xf32, wgmma>, %a: !pipe.shared<64x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<96x128xf8E4M3FN, swizzle_128B>) {
  pipe.mma %sums, %a, %b : !pipe.fragment<64x96xf32, wgmma>,
      !pipe.shared<64x128xf8E4M3FN, swizzle_128B>, !pipe.shared<96x128xf8E4M3FN, swizzle_128B>
  return
}
func.func @bad(%sums: !pipe.fragment<64x96xf32, wgmma>, %a: !pipe.shared<64x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>) {
  // (C220)
  // expected-error @+2 {{b must have a row for each of the 96 columns of the accumulator, but got}}
  // expected-note @+1 {{load a row of b for each column}}
  pipe.mma %sums, %a, %b : !pipe.fragment<64x96xf32, wgmma>,
      !pipe.shared<64x128xf8E4M3FN, swizzle_128B>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
  return
}

// -----

func.func @twin(%sa: !pipe.global<?x56xf32>, %sb: !pipe.global<32x56xf32>, %m0: i32, %n0: i32, %k: i32, %m: i32) {
  %s = pipe.scales %sa[%m0], %sb[%n0 of 128] block %k rows %m
      : !pipe.global<?x56xf32>, !pipe.global<32x56xf32> -> vector<3xf32>
  return
}
func.func @bad(%sa: !pipe.global<?x56xf32>, %sb: !pipe.global<32x56xbf16>, %m0: i32, %n0: i32, %k: i32, %m: i32) {
  // (C221)
  // expected-error @+2 {{b must have 2 dimensions of f32, but got}}
  // expected-note @+1 {{pass the scales as an f32 matrix, a column for each block of k}}
  %s = pipe.scales %sa[%m0], %sb[%n0 of 128] block %k rows %m
      : !pipe.global<?x56xf32>, !pipe.global<32x56xbf16> -> vector<3xf32>
  return
}

// -----

func.func @twin(%sa: !pipe.global<512x56xf32>, %sb: !pipe.global<32x56xf32>, %m0: i32, %n0: i32, %k: i32) {
  %s = pipe.scales %sa[%m0], %sb[%n0 of 64] block %k
      : !pipe.global<512x56xf32>, !pipe.global<32x56xf32> -> vector<3xf32>
  return
}
func.func @bad(%sa: !pipe.global<512x56xf32>, %sb: !pipe.global<32x28xf32>, %m0: i32, %n0: i32, %k: i32) {
  // (C221)
  // expected-error @+2 {{a and b must have as many columns, a scale for each block of k, but got}}
  // expected-note @+1 {{both operands have a scale for each 128 elements of k}}
  %s = pipe.scales %sa[%m0], %sb[%n0 of 64] block %k
      : !pipe.global<512x56xf32>, !pipe.global<32x28xf32> -> vector<3xf32>
  return
}

// -----

func.func @twin(%sa: !pipe.global<512x56xf32>, %sb: !pipe.global<32x56xf32>, %m0: i32, %n0: i32, %k: i32) {
  %s = pipe.scales %sa[%m0], %sb[%n0 of 128] block %k
      : !pipe.global<512x56xf32>, !pipe.global<32x56xf32> -> vector<3xf32>
  return
}
func.func @bad(%sa: !pipe.global<512x56xf32>, %sb: !pipe.global<?x56xf32>, %m0: i32, %n0: i32, %k: i32) {
  // (C221)
  // expected-error @+2 {{b must have known rows, but got}}
  // expected-note @+1 {{take a buffer with static rows, or pipe.view with 'rows'}}
  %s = pipe.scales %sa[%m0], %sb[%n0 of 128] block %k
      : !pipe.global<512x56xf32>, !pipe.global<?x56xf32> -> vector<3xf32>
  return
}

// -----

func.func @twin(%sa: !pipe.global<512x56xf32>, %sb: !pipe.global<32x56xf32>, %m0: i32, %n0: i32, %k: i32, %m: i32) {
  %s = pipe.scales %sa[%m0], %sb[%n0 of 128] block %k
      : !pipe.global<512x56xf32>, !pipe.global<32x56xf32> -> vector<3xf32>
  return
}
func.func @bad(%sa: !pipe.global<512x56xf32>, %sb: !pipe.global<32x56xf32>, %m0: i32, %n0: i32, %k: i32, %m: i32) {
  // (C221)
  // expected-error @+2 {{expects no operand 'rows' for static rows, but got one}}
  // expected-note @+1 {{='rows' is the number of rows that exist, which only a dynamic buffer leaves open}}
  %s = pipe.scales %sa[%m0], %sb[%n0 of 128] block %k rows %m
      : !pipe.global<512x56xf32>, !pipe.global<32x56xf32> -> vector<3xf32>
  return
}

// -----

func.func @twin(%sa: !pipe.global<512x56xf32>, %sb: !pipe.global<32x56xf32>, %m0: i32, %n0: i32, %k: i32) {
  %s = pipe.scales %sa[%m0], %sb[%n0 of 192] block %k
      : !pipe.global<512x56xf32>, !pipe.global<32x56xf32> -> vector<4xf32>
  return
}
func.func @bad(%sa: !pipe.global<512x56xf32>, %sb: !pipe.global<32x56xf32>, %m0: i32, %n0: i32, %k: i32) {
  // (C221)
  // expected-error @+2 {{columns must be a multiple of 8 up to 256, but got 260}}
  // expected-note @+1 {{multiply wider tiles with several operations}}
  %s = pipe.scales %sa[%m0], %sb[%n0 of 260] block %k
      : !pipe.global<512x56xf32>, !pipe.global<32x56xf32> -> vector<5xf32>
  return
}

// -----

func.func @twin(%sa: !pipe.global<512x56xf32>, %sb: !pipe.global<32x56xf32>, %m0: i32, %n0: i32, %k: i32) {
  %s = pipe.scales %sa[%m0], %sb[%n0 of 56] block %k
      : !pipe.global<512x56xf32>, !pipe.global<32x56xf32> -> vector<4xf32>
  return
}
func.func @bad(%sa: !pipe.global<512x56xf32>, %sb: !pipe.global<32x56xf32>, %m0: i32, %n0: i32, %k: i32) {
  // (C221)
  // expected-error @+2 {{scales must be 4 numbers for 56 columns, but got 'vector<3xf32>'}}
  // expected-note @+1 {{a vector has the scales of two rows of a and those of the blocks of columns of b}}
  %s = pipe.scales %sa[%m0], %sb[%n0 of 56] block %k
      : !pipe.global<512x56xf32>, !pipe.global<32x56xf32> -> vector<3xf32>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<64x128xf32, wgmma>, %sums: !pipe.fragment<64x128xf32, wgmma>, %s: vector<3xf32>, %n0: i32) {
  pipe.promote %acc, %sums scaled %s at %n0 : !pipe.fragment<64x128xf32, wgmma>, !pipe.fragment<64x128xf32, wgmma>, vector<3xf32>
  return
}
func.func @bad(%acc: !pipe.fragment<128x128xf32, wgmma>, %sums: !pipe.fragment<128x128xf32, wgmma>, %s: vector<3xf32>, %n0: i32) {
  // (C222)
  // expected-error @+2 {{sums must be an f32 fragment of wgmma with 64 rows, but got}}
  // expected-note @+1 {{write a !pipe.fragment<64xNxf32, wgmma> for each 64 rows}}
  pipe.promote %acc, %sums scaled %s at %n0 : !pipe.fragment<128x128xf32, wgmma>, !pipe.fragment<128x128xf32, wgmma>, vector<3xf32>
  return
}

// -----

func.func @bad(%acc: !pipe.fragment<64x128xf32, wgmma>, %sums: !pipe.fragment<64x96xf32, wgmma>, %s: vector<3xf32>, %n0: i32) {
  // (C222)
  // expected-error @+2 {{sums must be '!pipe.fragment<64x128xf32, wgmma>' with a column, but got '!pipe.fragment<64x96xf32, wgmma>'}}
  // expected-note @+1 {{write 'at %column', and sums of the type of the accumulator}}
  pipe.promote %acc, %sums scaled %s at %n0 : !pipe.fragment<64x128xf32, wgmma>, !pipe.fragment<64x96xf32, wgmma>, vector<3xf32>
  return
}

// -----

// A fragment is scaled by a vector, and tensor memory by a number.
func.func @bad(%acc: !pipe.fragment<64x128xf32, wgmma>, %sums: !pipe.tmem<128x128xf32>, %s: vector<3xf32>, %n0: i32) {
  // (C222)
  // expected-error @+2 {{sums must be '!pipe.fragment<64x128xf32, wgmma>' with a column, but got '!pipe.tmem<128x128xf32>'}}
  // expected-note @+1 {{write 'at %column', and sums of the type of the accumulator}}
  pipe.promote %acc, %sums scaled %s at %n0 : !pipe.fragment<64x128xf32, wgmma>, !pipe.tmem<128x128xf32>, vector<3xf32>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<64x192xf32, wgmma>, %sums: !pipe.fragment<64x192xf32, wgmma>, %s: vector<4xf32>, %n0: i32) {
  pipe.promote %acc, %sums scaled %s at %n0 : !pipe.fragment<64x192xf32, wgmma>, !pipe.fragment<64x192xf32, wgmma>, vector<4xf32>
  return
}
func.func @bad(%acc: !pipe.fragment<64x192xf32, wgmma>, %sums: !pipe.fragment<64x192xf32, wgmma>, %s: vector<3xf32>, %n0: i32) {
  // (C222)
  // expected-error @+2 {{scales must be 4 numbers for 192 columns, but got 'vector<3xf32>'}}
  // expected-note @+1 {{a vector has the scales of two rows of a and those of the blocks of columns of b}}
  pipe.promote %acc, %sums scaled %s at %n0 : !pipe.fragment<64x192xf32, wgmma>, !pipe.fragment<64x192xf32, wgmma>, vector<3xf32>
  return
}

// -----

func.func @twin(%sa: !pipe.shared<256x4xf32>, %sb: !pipe.shared<1x4xf32>, %k: i32) {
  %s = pipe.scales %sa[128], %sb block %k : !pipe.shared<256x4xf32>, !pipe.shared<1x4xf32> -> vector<3xf32>
  return
}
func.func @bad(%sa: !pipe.shared<256x4xf32>, %sb: !pipe.shared<1x4xi32>, %k: i32) {
  // (C324)
  // expected-error @+2 {{b must be f32 without a swizzle, but got}}
  // expected-note @+1 {{write !pipe.shared<ROWSxCOLUMNSxf32>}}
  %s = pipe.scales %sa[128], %sb block %k : !pipe.shared<256x4xf32>, !pipe.shared<1x4xi32> -> vector<3xf32>
  return
}

// -----

func.func @twin(%sa: !pipe.shared<256x4xf32>, %sb: !pipe.shared<1x4xf32>, %k: i32) {
  %s = pipe.scales %sa[128], %sb block %k : !pipe.shared<256x4xf32>, !pipe.shared<1x4xf32> -> vector<3xf32>
  return
}
func.func @bad(%sa: !pipe.shared<256x32xf32, swizzle_128B>, %sb: !pipe.shared<1x32xf32>, %k: i32) {
  // (C324)
  // expected-error @+2 {{a must be f32 without a swizzle, but got}}
  // expected-note @+1 {{write !pipe.shared<ROWSxCOLUMNSxf32>}}
  %s = pipe.scales %sa[128], %sb block %k : !pipe.shared<256x32xf32, swizzle_128B>, !pipe.shared<1x32xf32> -> vector<3xf32>
  return
}

// -----

func.func @twin(%sa: !pipe.shared<256x4xf32>, %sb: !pipe.shared<1x4xf32>, %k: i32) {
  %s = pipe.scales %sa[128], %sb block %k : !pipe.shared<256x4xf32>, !pipe.shared<1x4xf32> -> vector<3xf32>
  return
}
func.func @bad(%sa: !pipe.shared<256x4xf32>, %sb: !pipe.shared<1x8xf32>, %k: i32) {
  // (C324)
  // expected-error @+2 {{a and b must have as many columns, a scale for each block of k, but got}}
  // expected-note @+1 {{both operands have a scale for each 128 elements of k}}
  %s = pipe.scales %sa[128], %sb block %k : !pipe.shared<256x4xf32>, !pipe.shared<1x8xf32> -> vector<3xf32>
  return
}

// -----

func.func @twin(%sa: !pipe.shared<256x4xf32>, %sb: !pipe.shared<1x4xf32>, %k: i32) {
  %s = pipe.scales %sa[128], %sb block %k : !pipe.shared<256x4xf32>, !pipe.shared<1x4xf32> -> vector<3xf32>
  return
}
func.func @bad(%sa: !pipe.shared<256x4xf32>, %sb: !pipe.shared<1x4xf32>, %k: i32) {
  // (C324)
  // expected-error @+2 {{a must have 64 rows for each warpgroup of its role, from a multiple of 64 on, but got 256 rows, from 256 on}}
  // expected-note @+1 {{load a higher tile, or begin at another multiple of 64 rows}}
  %s = pipe.scales %sa[256], %sb block %k : !pipe.shared<256x4xf32>, !pipe.shared<1x4xf32> -> vector<3xf32>
  return
}

// -----

func.func @twin(%sa: !pipe.shared<256x4xf32>, %sb: !pipe.shared<1x4xf32>, %k: i32) {
  %s = pipe.scales %sa[128], %sb block %k : !pipe.shared<256x4xf32>, !pipe.shared<1x4xf32> -> vector<3xf32>
  return
}
func.func @bad(%sa: !pipe.shared<256x4xf32>, %sb: !pipe.shared<1x4xf32>, %k: i32) {
  // (C324)
  // expected-error @+2 {{scales must be 3 numbers, two and one for each row of b, but got}}
  // expected-note @+1 {{a vector has the scales of two rows of a and of every row of b}}
  %s = pipe.scales %sa[128], %sb block %k : !pipe.shared<256x4xf32>, !pipe.shared<1x4xf32> -> vector<4xf32>
  return
}

// -----

func.func @twin(%p: !pipe.shared<4x128xf32>, %k: i32) {
  %s = pipe.scales %p[0] block %k : !pipe.shared<4x128xf32> -> vector<3xf32>
  return
}
func.func @bad(%p: !pipe.shared<4x128xi32>, %k: i32) {
  // (C341)
  // expected-error @+2 {{powers must be f32 without a swizzle, with at least 64 columns for each warpgroup of its role, but got '!pipe.shared<4x128xi32>'}}
  // expected-note @+1 {{load the powers of all rows of the role}}
  %s = pipe.scales %p[0] block %k : !pipe.shared<4x128xi32> -> vector<3xf32>
  return
}

// -----

func.func @twin(%p: !pipe.shared<4x128xf32>, %k: i32) {
  %s = pipe.scales %p[0] block %k : !pipe.shared<4x128xf32> -> vector<3xf32>
  return
}
func.func @bad(%p: !pipe.shared<4x32xf32>, %k: i32) {
  // (C341)
  // expected-error @+2 {{powers must be f32 without a swizzle, with at least 64 columns for each warpgroup of its role, but got '!pipe.shared<4x32xf32>'}}
  // expected-note @+1 {{load the powers of all rows of the role}}
  %s = pipe.scales %p[0] block %k : !pipe.shared<4x32xf32> -> vector<3xf32>
  return
}

// -----

func.func @twin(%p: !pipe.shared<4x128xf32>, %k: i32) {
  %s = pipe.scales %p[0] block %k : !pipe.shared<4x128xf32> -> vector<3xf32>
  return
}
func.func @bad(%p: !pipe.shared<4x128xf32>, %k: i32) {
  // (C341)
  // expected-error @+2 {{scales must be 3 numbers, but got 'vector<2xf32>'}}
  // expected-note @+1 {{write vector<3xf32>}}
  %s = pipe.scales %p[0] block %k : !pipe.shared<4x128xf32> -> vector<2xf32>
  return
}

// -----

func.func @twin(%sa: !pipe.shared<256x4xf32>, %sb: !pipe.shared<1x4xf32>, %k: i32) {
  %s = pipe.scales %sa[128], %sb block %k : !pipe.shared<256x4xf32>, !pipe.shared<1x4xf32> -> vector<3xf32>
  return
}
func.func @bad(%sa: !pipe.shared<256x4xf32>, %sb: !pipe.global<1x4xf32>, %k: i32) {
  // (C324)
  // expected-error @+2 {{expects two buffers with a row and a column that are values, or tiles with a row that is a number, but got other operands with '!pipe.shared<256x4xf32>'}}
  // expected-note @+1 {{write '%a[%row], %b[%column of 128]' of buffers, and '%a[0], %b' of tiles}}
  %s = pipe.scales %sa[128], %sb block %k : !pipe.shared<256x4xf32>, !pipe.global<1x4xf32> -> vector<3xf32>
  return
}

// -----

func.func @bad(%sa: !pipe.global<512x56xf32>, %sb: !pipe.global<32x56xf32>, %n0: i32, %k: i32) {
  // (C221)
  // expected-error @+2 {{expects two buffers with a row and a column that are values, or tiles with a row that is a number, but got other operands with '!pipe.global<512x56xf32>'}}
  // expected-note @+1 {{write '%a[%row], %b[%column of 128]' of buffers, and '%a[0], %b' of tiles}}
  %s = pipe.scales %sa[0], %sb[%n0 of 128] block %k : !pipe.global<512x56xf32>, !pipe.global<32x56xf32> -> vector<3xf32>
  return
}
