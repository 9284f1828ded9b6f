// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Every error has a twin above it that differs in one place and verifies. Labels refer to
// docs/Spec.md.

func.func private @twin(!pipe.tensor_map<256x256xf4E2M1FN, swizzle_128B>)
// (C101)
// expected-error @+1 {{box must have at most 256 rows, but got 257}}
func.func private @bad(!pipe.tensor_map<257x256xf4E2M1FN, swizzle_128B>)

// -----

func.func private @twin(!pipe.tensor_map<128x128xf4E2M1FN, swizzle_64B>)
// (C101)
// expected-error @+1 {{rows of the box must be at most 64 bytes for swizzle_64B, but got 128 bytes}}
func.func private @bad(!pipe.tensor_map<128x256xf4E2M1FN, swizzle_64B>)

// -----

func.func private @twin(!pipe.tensor_map<128x32xf4E2M1FN>)
// (C101)
// expected-error @+1 {{rows of the box must be a multiple of 16 bytes, at most 256, but got 8 bytes}}
func.func private @bad(!pipe.tensor_map<128x16xf4E2M1FN>)

// -----

func.func private @twin(!pipe.shared<128x256xf4E2M1FN, swizzle_128B>)
// (C102)
// expected-error @+1 {{rows of a swizzle_128B tile must be a multiple of 128 bytes, but got 64 bytes}}
func.func private @bad(!pipe.shared<128x128xf4E2M1FN, swizzle_128B>)

// -----

func.func private @twin(!pipe.shared<128x16xf8E4M3FN, tiled_128x4>)
// (C103)
// expected-error @+1 {{tiled_128x4 tile must be a multiple of 128x4, but got 64x16}}
func.func private @bad(!pipe.shared<64x16xf8E4M3FN, tiled_128x4>)

// -----

func.func private @twin(!pipe.tmem<128x16xf8E8M0FNU, tiled_128x4>)
// (C103)
// expected-error @+1 {{scale factors must be f8E4M3FN or f8E8M0FNU, but got 'f8E5M2'}}
func.func private @bad(!pipe.tmem<128x16xf8E5M2, tiled_128x4>)

// -----

func.func private @twin(!pipe.tmem<128x200xf32>)
// (C104)
// expected-error @+1 {{accumulator must be 128 rows of f32 and 8 to 256 columns in steps of 8, but got 128x204x'f32'}}
func.func private @bad(!pipe.tmem<128x204xf32>)

// -----

func.func private @twin(!pipe.tmem<256x256xf8E4M3FN, tiled_128x4>)
// (C105)
// expected-error @+1 {{tile must fit in 512 tensor memory columns, but needs 520}}
func.func private @bad(!pipe.tmem<256x260xf8E4M3FN, tiled_128x4>)

// -----

func.func private @twin(!pipe.channel<!pipe.tmem<128x64xf32>, !pipe.tmem<128x64xf32>>)
// (C106)
// expected-error @+1 {{payload must lie in one memory}}
func.func private @bad(!pipe.channel<!pipe.tmem<128x64xf32>, !pipe.shared<128x256xf4E2M1FN, swizzle_128B>>)

// -----

// expected-error @+1 {{layout must be linear, swizzle_32B, swizzle_64B, swizzle_128B or tiled_128x4, but got swizzle_96B}}
func.func private @bad(!pipe.shared<128x256xf4E2M1FN, swizzle_96B>)

// -----

func.func private @twin(!pipe.global<2xi64>)
// expected-error @+1 {{global buffer of 1 dimension must have elements of whole bytes, but got 'f4E2M1FN'}}
func.func private @bad(!pipe.global<2xf4E2M1FN>)

// -----

func.func private @twin(!pipe.global<3x2xi64>)
// expected-error @+1 {{global buffer must have at most 2 dimensions, but got 3}}
func.func private @bad(!pipe.global<4x3x2xi64>)

// -----

func.func @view(%dense: memref<?x136xi8>, %padded: memref<?x144xi8>) {
  %twin = pipe.global_view %padded : memref<?x144xi8> -> !pipe.global<?x272xf4E2M1FN>
  // (C107)
  // expected-error @+1 {{buffer of '!pipe.global<?x272xf4E2M1FN>' must be 'memref<?x144xi8>', but got 'memref<?x136xi8>'}}
  %bad = pipe.global_view %dense : memref<?x136xi8> -> !pipe.global<?x272xf4E2M1FN>
  return
}

// -----

func.func @map(%dense: memref<?x136xi8>, %padded: memref<?x144xi8>) {
  %twin = pipe.make_tensor_map %padded columns 272 : memref<?x144xi8> -> !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
  // (C108)
  // expected-error @+2 {{row pitch must be a multiple of 16 bytes, but got 136}}
  // expected-note @+1 {{pad the rows of the buffer to 144 bytes}}
  %bad = pipe.make_tensor_map %dense columns 272 : memref<?x136xi8> -> !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
  return
}

// -----

func.func @columns(%q: memref<?x144xi8>) {
  %twin = pipe.make_tensor_map %q columns 288 : memref<?x144xi8> -> !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
  // (C108)
  // expected-error @+1 {{290 columns take 145 bytes, which must not exceed the row pitch of 144}}
  %bad = pipe.make_tensor_map %q columns 290 : memref<?x144xi8> -> !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
  return
}

// -----

func.func @load(%map: !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>, %i: i32) {
  %twin = pipe.load %map[%i, %i] : !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B> -> !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
  // (C109)
  // expected-error @+1 {{tile must have the box of its map, '!pipe.shared<128x256xf4E2M1FN, swizzle_128B>', but got '!pipe.shared<64x256xf4E2M1FN, swizzle_128B>'}}
  %bad = pipe.load %map[%i, %i] : !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B> -> !pipe.shared<64x256xf4E2M1FN, swizzle_128B>
  return
}

// -----

func.func @load(%map: !pipe.tensor_map<64x64xbf16, swizzle_128B>, %i: i32) {
  %twin = pipe.load %map[%i, %i] : !pipe.tensor_map<64x64xbf16, swizzle_128B> -> !pipe.shared<64x128xbf16, swizzle_128B>
  // (C109)
  // expected-error @+1 {{panels of the tile must have the box of its map, '!pipe.shared<64x64xbf16, swizzle_128B>', but got '!pipe.shared<32x128xbf16, swizzle_128B>'}}
  %bad = pipe.load %map[%i, %i] : !pipe.tensor_map<64x64xbf16, swizzle_128B> -> !pipe.shared<32x128xbf16, swizzle_128B>
  return
}

// -----

func.func @load(%map: !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>, %i: i32) {
  // (C110)
  // expected-error @+2 {{must return a tile or fill a destination}}
  // expected-note @+1 {{add a result, or 'into %slot signals %channel'}}
  pipe.load %map[%i, %i] : !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
  return
}

// -----

func.func @scales(%fixed: !pipe.global<384x16xf8E4M3FN, tiled_128x4>, %dynamic: !pipe.global<?x16xf8E4M3FN, tiled_128x4>, %i: i32) {
  %twin = pipe.load_scales %fixed[%i, %i] : !pipe.global<384x16xf8E4M3FN, tiled_128x4> -> !pipe.shared<256x16xf8E4M3FN, tiled_128x4>
  // (C111)
  // expected-error @+1 {{source must have static rows for a tile of 256 rows, but got '!pipe.global<?x16xf8E4M3FN, tiled_128x4>'}}
  %bad = pipe.load_scales %dynamic[%i, %i] : !pipe.global<?x16xf8E4M3FN, tiled_128x4> -> !pipe.shared<256x16xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @scales(%s: !pipe.global<128x17xf8E4M3FN, tiled_128x4>, %t: !pipe.global<128x13xf8E4M3FN, tiled_128x4>, %i: i32) {
  // The last of 4 blocks exists, and is padded with zeros, when one of its columns does.
  %padded = pipe.load_scales %t[%i, %i] : !pipe.global<128x13xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
  %twin = pipe.load_scales %s[%i, %i] blocks %i : !pipe.global<128x17xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
  // (C112)
  // expected-error @+2 {{source's blocks of columns must be a multiple of the tile's 4, but got 5}}
  // expected-note @+1 {{give the number of existing blocks with 'blocks %n'}}
  %bad = pipe.load_scales %s[%i, %i] : !pipe.global<128x17xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @copy(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) {
  %twin = pipe.copy_scales %s : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  // (C113)
  // expected-error @+1 {{tensor memory tile must be the scale tile of its source '!pipe.shared<128x16xf8E4M3FN, tiled_128x4>', but got '!pipe.tmem<128x8xf8E4M3FN, tiled_128x4>'}}
  %bad = pipe.copy_scales %s : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x8xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @copy_sets(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) {
  %twin = pipe.copy_scales %s at 0 sets 2 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  // (C113)
  // expected-error @+1 {{sets must be positive and have a first column, but got 2 without 'at'}}
  %bad = pipe.copy_scales %s sets 2 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  return
}

// -----

!acc = !pipe.tmem<128x128xf32>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!half = !pipe.shared<64x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
func.func @mma(%acc: !acc, %a: !data, %h: !half, %s: !scales, %p: i1) {
  pipe.mma %acc, %a scaled %s, %a scaled %s accumulate %p : !acc, !data, !scales, !data, !scales
  // (C114)
  // expected-error @+1 {{a must have 128 rows, but got 64}}
  pipe.mma %acc, %h scaled %s, %a scaled %s accumulate %p : !acc, !half, !scales, !data, !scales
  return
}

// -----

!acc = !pipe.tmem<128x128xf32>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!half = !pipe.shared<64x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
func.func @mma(%acc: !acc, %a: !data, %h: !half, %s: !scales, %p: i1) {
  // (C114)
  // expected-error @+1 {{b must have as many rows as the accumulator has columns, 128, but got 64}}
  pipe.mma %acc, %a scaled %s, %h scaled %s accumulate %p : !acc, !data, !scales, !half, !scales
  return
}

// -----

!acc = !pipe.tmem<128x128xf32>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!bytes = !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
!scales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
func.func @mma(%acc: !acc, %a: !data, %b: !bytes, %s: !scales, %p: i1) {
  // (C115)
  // expected-error @+1 {{b must be f4E2M1FN with the K of a, a multiple of 64, but got '!pipe.shared<128x128xf8E4M3FN, swizzle_128B>'}}
  pipe.mma %acc, %a scaled %s, %b scaled %s accumulate %p : !acc, !data, !scales, !bytes, !scales
  return
}

// -----

!acc = !pipe.tmem<128x128xf32>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!panels = !pipe.shared<128x256xf4E2M1FN, swizzle_64B>
!scales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
func.func @mma(%acc: !acc, %a: !data, %b: !panels, %s: !scales, %p: i1) {
  pipe.mma %acc, %a scaled %s, %a scaled %s accumulate %p : !acc, !data, !scales, !data, !scales
  // (C115)
  // expected-error @+1 {{b must be one panel wide, but got 2 in '!pipe.shared<128x256xf4E2M1FN, swizzle_64B>'}}
  pipe.mma %acc, %a scaled %s, %b scaled %s accumulate %p : !acc, !data, !scales, !panels, !scales
  return
}

// -----

!acc = !pipe.tmem<128x192xf32>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!wide = !pipe.shared<192x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!wscales = !pipe.tmem<256x16xf8E4M3FN, tiled_128x4>
func.func @mma(%acc: !acc, %a: !data, %b: !wide, %s: !scales, %w: !wscales, %p: i1) {
  pipe.mma %acc, %a scaled %s, %b scaled %w accumulate %p : !acc, !data, !scales, !wide, !wscales
  // (C116)
  // expected-error @+1 {{b_scales must have at least 192 rows, but got 128}}
  pipe.mma %acc, %a scaled %s, %b scaled %s accumulate %p : !acc, !data, !scales, !wide, !scales
  return
}

// -----

!acc = !pipe.tmem<128x128xf32>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.tmem<128x16xf8E8M0FNU, tiled_128x4>
func.func @mma(%acc: !acc, %a: !data, %s: !scales, %p: i1) {
  // (C116)
  // expected-error @+1 {{a_scales must have 8 columns for K = 256 and blocks of 32, but got 16}}
  pipe.mma %acc, %a scaled %s, %a scaled %s accumulate %p : !acc, !data, !scales, !data, !scales
  return
}

// -----

func.func @read(%acc: !pipe.tmem<128x96xf32>, %c: i32) {
  %twin = pipe.read %acc[%c] : !pipe.tmem<128x96xf32> -> vector<32xf32>
  // (C117)
  // expected-error @+1 {{vector must have a power of two of at most 128 elements that divides the accumulator's 96 columns, but got 64}}
  %bad = pipe.read %acc[%c] : !pipe.tmem<128x96xf32> -> vector<64xf32>
  return
}

// -----

func.func @load_factors(%p: !pipe.global<?x1xf32>, %c: i32) {
  %ok = pipe.load_factors %p[%c, %c] rows %c : !pipe.global<?x1xf32> -> vector<32xf32>
  // (C144)
  // expected-error @+1 {{expects operand 'rows' for dynamic rows, but got none}}
  %bad = pipe.load_factors %p[%c, %c] : !pipe.global<?x1xf32> -> vector<32xf32>
  return
}

// -----

func.func @load_factors(%p: !pipe.global<1x64xf32>, %q: !pipe.global<64x64xf32>, %c: i32) {
  %ok = pipe.load_factors %p[%c, %c] : !pipe.global<1x64xf32> -> vector<32xf32>
  // (C144)
  // expected-error @+1 {{buffer must have a dimension of 1, but got '!pipe.global<64x64xf32>'}}
  %bad = pipe.load_factors %q[%c, %c] : !pipe.global<64x64xf32> -> vector<32xf32>
  return
}

// -----

func.func @load_factors(%p: !pipe.global<1x64xf32>, %q: !pipe.global<1x64xbf16>, %c: i32) {
  %ok = pipe.load_factors %p[%c, %c] : !pipe.global<1x64xf32> -> vector<32xf32>
  // (C144)
  // expected-error @+1 {{buffer must have 2 dimensions of 'f32', but got '!pipe.global<1x64xbf16>'}}
  %bad = pipe.load_factors %q[%c, %c] : !pipe.global<1x64xbf16> -> vector<32xf32>
  return
}

// -----

func.func @store(%v: vector<32xbf16>, %y: !pipe.global<?x512xbf16>, %c: i32) {
  pipe.store %v, %y[%c, %c] rows %c : vector<32xbf16>, !pipe.global<?x512xbf16>
  // (C118)
  // expected-error @+2 {{must bound the rows of a destination with dynamic rows}}
  // expected-note @+1 {{add 'rows %m'}}
  pipe.store %v, %y[%c, %c] : vector<32xbf16>, !pipe.global<?x512xbf16>
  return
}

// -----

func.func @store(%v: vector<32xbf16>, %y: !pipe.global<128x512xf32>, %c: i32) {
  // (C118)
  // expected-error @+1 {{destination must be a buffer of 'bf16' and rank 2 with static columns, but got '!pipe.global<128x512xf32>'}}
  pipe.store %v, %y[%c, %c] : vector<32xbf16>, !pipe.global<128x512xf32>
  return
}

// -----

func.func @store(%v: vector<32xf4E2M1FN>, %w: vector<16xf4E2M1FN>, %y: !pipe.global<128x512xf4E2M1FN>, %c: i32) {
  pipe.store %v, %y[%c, %c] : vector<32xf4E2M1FN>, !pipe.global<128x512xf4E2M1FN>
  // (C118)
  // expected-error @+1 {{vector of f4E2M1FN must have at least 32 elements, 16 bytes, but got 16}}
  pipe.store %w, %y[%c, %c] : vector<16xf4E2M1FN>, !pipe.global<128x512xf4E2M1FN>
  return
}

// -----

func.func @store(%v: vector<4xf8E4M3FN>, %w: vector<2xf8E4M3FN>, %s: !pipe.global<128x30xf8E4M3FN, tiled_128x4>, %c: i32) {
  pipe.store %v, %s[%c, %c] : vector<4xf8E4M3FN>, !pipe.global<128x30xf8E4M3FN, tiled_128x4>
  // (C118)
  // expected-error @+1 {{vector must have the 4 columns of a block of scales, but got 2}}
  pipe.store %w, %s[%c, %c] : vector<2xf8E4M3FN>, !pipe.global<128x30xf8E4M3FN, tiled_128x4>
  return
}

// -----

!acc = !pipe.tmem<128x64xf32>
!x = !pipe.shared<64x128xbf16, swizzle_128B>
!h = !pipe.shared<16x16xbf16, swizzle_32B>
func.func @blockwise(%acc: !acc, %wide: !pipe.tmem<128x128xf32>, %x: !x, %h: !h) {
  pipe.mma_blockwise %acc, %x, %h : !acc, !x, !h
  // (C125)
  // expected-error @+1 {{accumulator must have 64 columns, 16 for each of 4 slices, but got '!pipe.tmem<128x128xf32>'}}
  pipe.mma_blockwise %wide, %x, %h : !pipe.tmem<128x128xf32>, !x, !h
  return
}

// -----

!acc = !pipe.tmem<128x64xf32>
!x = !pipe.shared<64x128xbf16, swizzle_128B>
!narrow = !pipe.shared<64x64xbf16, swizzle_128B>
!h = !pipe.shared<16x16xbf16, swizzle_32B>
func.func @blockwise(%acc: !acc, %x: !x, %n: !narrow, %h: !h) {
  pipe.mma_blockwise %acc, %x, %h : !acc, !x, !h
  // (C125)
  // expected-error @+1 {{a must be bf16 or f16, a multiple of 16 rows of 128 and swizzled, but got '!pipe.shared<64x64xbf16, swizzle_128B>'}}
  pipe.mma_blockwise %acc, %n, %h : !acc, !narrow, !h
  return
}

// -----

!acc = !pipe.tmem<128x64xf32>
!x = !pipe.shared<64x128xbf16, swizzle_128B>
!h = !pipe.shared<16x16xbf16, swizzle_32B>
!linear = !pipe.shared<16x16xbf16>
func.func @blockwise(%acc: !acc, %x: !x, %h: !h, %l: !linear) {
  pipe.mma_blockwise %acc, %x, %h : !acc, !x, !h
  // (C125)
  // expected-error @+1 {{b must be 'bf16', a multiple of 16 rows of 16 with layout swizzle_32B, but got '!pipe.shared<16x16xbf16>'}}
  pipe.mma_blockwise %acc, %x, %l : !acc, !x, !linear
  return
}

// -----

func.func @quantize(%v: vector<32xf32>, %w: vector<24xf32>, %a: f32) {
  %twin, %s0 = pipe.quantize_blocks %v amax %a {recipe = #fp4.recipe<transformer_engine>} : vector<32xf32> -> vector<32xf4E2M1FN>, vector<2xf8E4M3FN>
  // (C127)
  // expected-error @+1 {{value must be blocks of 16 elements, but got 24}}
  %bad, %s1 = pipe.quantize_blocks %w amax %a {recipe = #fp4.recipe<transformer_engine>} : vector<24xf32> -> vector<24xf4E2M1FN>, vector<2xf8E4M3FN>
  return
}

// -----

func.func @quantize(%v: vector<32xbf16>, %a: f32) {
  %twin, %s0 = pipe.quantize_blocks %v {recipe = #fp4.recipe<ocp_floor>} : vector<32xbf16> -> vector<32xf4E2M1FN>, vector<1xf8E8M0FNU>
  // (C127)
  // expected-error @+1 {{results must be 'vector<32xf4E2M1FN>' and 'vector<1xf8E8M0FNU>', but got 'vector<32xf4E2M1FN>' and 'vector<2xf8E4M3FN>'}}
  %bad, %s1 = pipe.quantize_blocks %v {recipe = #fp4.recipe<ocp_floor>} : vector<32xbf16> -> vector<32xf4E2M1FN>, vector<2xf8E4M3FN>
  return
}

// -----

func.func @quantize(%v: vector<32xbf16>, %a: f32) {
  // (C127)
  // expected-error @+1 {{recipe expects an amax}}
  %bad, %s = pipe.quantize_blocks %v {recipe = #fp4.recipe<transformer_engine>} : vector<32xbf16> -> vector<32xf4E2M1FN>, vector<2xf8E4M3FN>
  return
}

// -----

func.func @quantize(%v: vector<32xbf16>, %a: f32, %rng: !pipe.global<2xi64>, %r: i32) {
  %twin, %s0 = pipe.quantize_blocks %v amax %a random %rng[%r, %r] of [64, 64] {recipe = #fp4.recipe<transformer_engine>} : vector<32xbf16>, !pipe.global<2xi64> -> vector<32xf4E2M1FN>, vector<2xf8E4M3FN>
  // (C127)
  // expected-error @+1 {{random must not come with a recipe that compares rounding errors}}
  %bad, %s1 = pipe.quantize_blocks %v amax %a random %rng[%r, %r] of [64, 64] {recipe = #fp4.recipe<four_over_six>} : vector<32xbf16>, !pipe.global<2xi64> -> vector<32xf4E2M1FN>, vector<2xf8E4M3FN>
  return
}

// -----

func.func @quantize(%v: vector<32xbf16>, %a: f32, %seed: !pipe.global<2xi32>, %r: i32) {
  // (C127)
  // expected-error @+1 {{random must be the seed and offset, a buffer of 2xi64, but got '!pipe.global<2xi32>'}}
  %bad, %s = pipe.quantize_blocks %v amax %a random %seed[%r, %r] of [64, 64] {recipe = #fp4.recipe<transformer_engine>} : vector<32xbf16>, !pipe.global<2xi32> -> vector<32xf4E2M1FN>, vector<2xf8E4M3FN>
  return
}

// -----

func.func @matrix() {
  %twin = pipe.hadamard_matrix signs 65535 -> !pipe.shared<16x16xbf16, swizzle_32B>
  // (C126)
  // expected-error @+1 {{signs must have 16 bits, but got 65536}}
  %bad = pipe.hadamard_matrix signs 65536 -> !pipe.shared<16x16xbf16, swizzle_32B>
  return
}

// -----

func.func @matrix() {
  %twin = pipe.hadamard_matrix signs 0 -> !pipe.shared<16x16xbf16, swizzle_32B>
  // (C126)
  // expected-error @+1 {{tile must be 16x16 of bf16 with layout swizzle_32B, but got '!pipe.shared<32x16xbf16, swizzle_32B>'}}
  %bad = pipe.hadamard_matrix signs 0 -> !pipe.shared<32x16xbf16, swizzle_32B>
  return
}

// -----

func.func @matrix() {
  // (C126)
  // expected-error @+1 {{must either return a tile or fill a destination}}
  pipe.hadamard_matrix signs 0
  return
}

// -----

gpu.module @m {
gpu.func @twin() kernel {
  pipe.role epilogue warps 4 to 8 drives [threads] {
    %accs = pipe.hadamard_matrix signs 0 -> !pipe.shared<16x16xbf16, swizzle_32B>
  }
  gpu.return
}
gpu.func @bad(%c0: i32) kernel {
  // expected-note @+1 {{the role begins here}}
  pipe.role epilogue warps 2 to 6 drives [tensor, threads] {
    %acc = pipe.accumulator : !pipe.tmem<128x128xf32>
    // (C119)
    // expected-error @+1 {{must be in a role of 4 warps from a multiple of 4 to access tensor memory, but is in warps 2 to 6}}
    %v = pipe.read %acc[%c0] : !pipe.tmem<128x128xf32> -> vector<32xf32>
  }
  gpu.return
}
}

// -----

#twin = #pipe.role<math warps 0 to 8 drives [tensor, threads] registers 240>
// (C119)
// expected-error @+1 {{role load must have at least one warp, but got warps 5 to 5}}
#role = #pipe.role<load warps 5 to 5 drives [tma]>

// -----

// (C119)
// expected-error @+1 {{role idle must drive an engine}}
#role = #pipe.role<idle warps 0 to 1 drives []>

// -----

// (C119)
// expected-error @+1 {{role load must name each engine once, but got tma twice}}
#role = #pipe.role<load warps 0 to 1 drives [tma, tma]>

// -----

// (C119)
// expected-error @+1 {{engine must be tma, tensor, scale_copy, threads, bulk_store or work_queue, but got dma}}
#role = #pipe.role<load warps 0 to 1 drives [dma]>

// -----

// (C119)
// expected-error @+1 {{role load must have one warp, whose elected thread issues for its engines, but got 2}}
#role = #pipe.role<load warps 0 to 2 drives [tma]>

// -----

// (C119)
// expected-error @+1 {{role load must have one warp, whose elected thread issues for its engines, but got 4}}
#role = #pipe.role<load warps 0 to 4 drives [tma, threads]>

// -----

// (C119)
// expected-error @+1 {{registers of role math must be a multiple of 8 from 24 to 256, but got 100}}
#role = #pipe.role<math warps 0 to 4 drives [threads] registers 100>

// -----

#twin = #pipe.role_plan<load warps 4 to 5 drives [tma], math warps 0 to 4 drives [tensor, threads]>
// (C142)
// expected-error @+1 {{roles must have different warps, but load and math share warp 3}}
#role = #pipe.role_plan<load warps 3 to 4 drives [tma], math warps 0 to 4 drives [tensor, threads]>

// -----

// (C142)
// expected-error @+1 {{engine threads must be driven by one role, but math and epilogue drive it}}
#role = #pipe.role_plan<math warps 0 to 4 drives [threads], epilogue warps 4 to 8 drives [threads]>

// -----

// (C142)
// expected-error @+1 {{roles must have different names, but got load twice}}
#role = #pipe.role_plan<load warps 0 to 1 drives [tma], load warps 1 to 2 drives [tensor]>

// -----

#twin = #pipe.role_plan<math warps 0 to 4 drives [threads] registers 240, load warps 4 to 5 drives [tma]>
// (C143)
// expected-error @+1 {{warps 4 to 8 must all ask for the 40 registers of role load, but warp 5 asks for 0}}
#role = #pipe.role_plan<math warps 0 to 4 drives [threads] registers 240, load warps 4 to 5 drives [tma] registers 40>

// -----

func.func @host() {
  // (C119)
  // expected-error @+1 {{must be in the body of a gpu.func, but its parent is func.func}}
  pipe.role epilogue warps 0 to 4 drives [threads] {
  }
  return
}

// -----

gpu.module @m {
gpu.func @twin() kernel {
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %acc = pipe.accumulator : !pipe.tmem<128x128xf32>
  }
  gpu.return
}
gpu.func @bad() kernel {
  // expected-note @+1 {{the role begins here}}
  pipe.role load warps 5 to 6 drives [tma] {
    // (C120)
    // expected-error @+1 {{must be in a role that drives tensor, but is in load}}
    %acc = pipe.accumulator : !pipe.tmem<128x128xf32>
  }
  gpu.return
}
}

// -----

!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>>
func.func @channel() {
  %twin = pipe.channel from tma to tensor depth 2 payload [1024] barriers 40960 : !tiles
  // (C121)
  // expected-error @+1 {{place of tile 0 must be a multiple of 1024, but got 512}}
  %bad = pipe.channel from tma to tensor depth 2 payload [512] barriers 40960 : !tiles
  return
}

// -----

!scales = !pipe.channel<!pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
func.func @scale_place() {
  %twin = pipe.channel from tma to tensor depth 2 payload [128] barriers 40960 : !scales
  // (C121)
  // expected-error @+1 {{place of tile 0 must be a multiple of 128, but got 64}}
  %bad = pipe.channel from tma to tensor depth 2 payload [64] barriers 40960 : !scales
  return
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
func.func @column() {
  %twin = pipe.channel from tensor to threads(128) depth 2 payload [4] barriers 0 : !accs
  // (C121)
  // expected-error @+1 {{place of tile 0 must be a multiple of 4, but got 2}}
  %bad = pipe.channel from tensor to threads(128) depth 2 payload [2] barriers 0 : !accs
  return
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
func.func @barriers() {
  %twin = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 8 : !accs
  // (C121)
  // expected-error @+1 {{barriers must be at a multiple of 8 bytes, but got 4}}
  %bad = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 4 : !accs
  return
}

// -----

!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>>
func.func @channel() {
  // (C121)
  // expected-error @+1 {{depth, payload and barriers must come together}}
  %bad = pipe.channel from tma to tensor depth 2 : !tiles
  return
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
func.func @channel() {
  %twin = pipe.channel from tensor to threads(128) : !accs
  // (C122)
  // expected-error @+1 {{a tensor memory payload must be produced by tensor or threads, but got tma}}
  %bad = pipe.channel from tma to threads(128) : !accs
  return
}

// -----

!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>>
func.func @arrivals() {
  %twin = pipe.channel from tma to tensor : !tiles
  // expected-error @+1 {{engine tma must have one arrival, but got 2}}
  %bad = pipe.channel from tma(2) to tensor : !tiles
  return
}

// -----

!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>>
func.func @arrivals() {
  %twin = pipe.channel from threads(128) to tensor : !tiles
  // expected-error @+1 {{engine threads must have at least one arrival, but got 0}}
  %bad = pipe.channel from threads(0) to tensor : !tiles
  return
}

// -----

// The parser asks for the types of results before operands are verified.
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
func.func @acquired(%i: index) {
  %channel = pipe.channel from tensor to threads(128) : !accs
  %twin = pipe.producer_acquire %channel : !accs
  // expected-error @+1 {{channel must be of type !pipe.channel, but got 'index'}}
  %bad = pipe.producer_acquire %i : index
  return
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
func.func @awaited(%i: index) {
  %channel = pipe.channel from tensor to threads(128) : !accs
  %twin = pipe.consumer_wait %channel : !accs
  // expected-error @+1 {{channel must be of type !pipe.channel, but got 'index'}}
  %bad = pipe.consumer_wait %i : index
  return
}

// -----

func.func @scalar(%p: !pipe.global<f32>, %i: index) {
  %twin = pipe.load_scalar %p : !pipe.global<f32>
  // expected-error @+1 {{global must be of type !pipe.global, but got 'index'}}
  %bad = pipe.load_scalar %i : index
  return
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
func.func @iteration(%it: i32) {
  // expected-note @+1 {{the channel has depth 2}}
  %deep = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 0 : !accs
  %twin = pipe.producer_acquire %deep[%it] : !accs
  // (C123)
  // expected-error @+1 {{must give the iteration of a channel with a depth}}
  %bad = pipe.producer_acquire %deep : !accs
  return
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
func.func @iteration(%it: i32) {
  // expected-note @+1 {{run pipe-pipeline, or give this channel a depth}}
  %plain = pipe.channel from tensor to threads(128) : !accs
  // (C123)
  // expected-error @+1 {{must not give an iteration before the channel has a depth}}
  pipe.consumer_release %plain[%it] : !accs
  return
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
func.func @await(%it: i32) {
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 0 : !accs
  pipe.await_release %accs[%it] distance 1 : !accs
  // (C138)
  // expected-error @+1 {{distance must be from 1 to below the channel's depth, 2, but got 2}}
  pipe.await_release %accs[%it] distance 2 : !accs
  return
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
func.func @expect(%it: i32) {
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 0 : !accs
  // (C124)
  // expected-error @+1 {{channel's producer must be tma, but got tensor}}
  pipe.expect_tx %accs[%it], %it : !accs
  return
}

// -----

!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
func.func @load(%sf: !pipe.global<128x16xf8E4M3FN, tiled_128x4>, %it: i32) {
  // expected-note @+1 {{the channel has depth 2}}
  %tiles = pipe.channel from tma to tensor depth 2 payload [0] barriers 4096 : !tiles
  %s = pipe.producer_acquire %tiles[%it] : !tiles
  pipe.load_scales %sf[%it, %it] into %s signals %tiles[%it] : !pipe.global<128x16xf8E4M3FN, tiled_128x4>, !scales, !tiles
  // (C123)
  // expected-error @+1 {{must give the iteration of a channel with a depth}}
  pipe.load_scales %sf[%it, %it] into %s signals %tiles : !pipe.global<128x16xf8E4M3FN, tiled_128x4>, !scales, !tiles
  return
}

// -----

func.func private @twin(!pipe.shared<1048576x256xf4E2M1FN, swizzle_128B>)
// expected-error @+1 {{dimensions of a tile must be 1 to 1048576, but got 1048577}}
func.func private @bad(!pipe.shared<1048577x256xf4E2M1FN, swizzle_128B>)

// -----

func.func @constant_bytes() {
  %twin = pipe.device_constant dense<1> : tensor<4xi8> -> memref<2xbf16>
  // (C139)
  // expected-error @+1 {{bytes must be as many as 'memref<2xbf16>' has, but got 5}}
  %bad = pipe.device_constant dense<1> : tensor<5xi8> -> memref<2xbf16>
  return
}

// -----

func.func @constant_elements() {
  %twin = pipe.device_constant dense<1> : tensor<4xi8> -> memref<2xbf16>
  // (C139)
  // expected-error @+1 {{bytes must be a tensor of i8, but got 'tensor<1xi32>'}}
  %bad = pipe.device_constant dense<1> : tensor<1xi32> -> memref<2xbf16>
  return
}

// -----

func.func @view_offset(%x: memref<8x64xbf16>) {
  %twin = pipe.buffer_view %x offset 32 : memref<8x64xbf16> -> memref<4x64xbf16>
  // (C128)
  // expected-error @+1 {{offset must be a multiple of 32, but got 16}}
  %bad = pipe.buffer_view %x offset 16 : memref<8x64xbf16> -> memref<4x64xbf16>
  return
}

// -----

func.func @view_end(%x: memref<8x64xbf16>) {
  %twin = pipe.buffer_view %x offset 512 : memref<8x64xbf16> -> memref<4x64xbf16>
  // (C128)
  // expected-error @+1 {{result must end within the 1024 bytes of the source, but has 512 from 544 on}}
  %bad = pipe.buffer_view %x offset 544 : memref<8x64xbf16> -> memref<4x64xbf16>
  return
}

// -----

func.func @view_rows(%x: memref<?x64xbf16>, %rows: index) {
  %twin = pipe.buffer_view %x offset 0 rows %rows : memref<?x64xbf16> -> memref<?x32xbf16>
  // (C128)
  // expected-error @+1 {{rows must be there for a result with one dynamic dimension, but got 'memref<?x32xbf16>'}}
  %bad = pipe.buffer_view %x offset 0 : memref<?x64xbf16> -> memref<?x32xbf16>
  return
}

// -----

func.func @view_strides(%x: memref<8x64xbf16, strided<[128, 1]>>, %y: memref<8x64xbf16>) {
  %twin = pipe.buffer_view %y offset 0 : memref<8x64xbf16> -> memref<512xbf16>
  // (C128)
  // expected-error @+1 {{source and result must be row-major memrefs of numbers}}
  %bad = pipe.buffer_view %x offset 0 : memref<8x64xbf16, strided<[128, 1]>> -> memref<512xbf16>
  return
}

// -----

#twin = #pipe.static_persistent<panels<8>>
// (C146)
// expected-error @+1 {{raster along_m must have no width, but got 8}}
#bad = #pipe.static_persistent<along_m<8>>

// -----

// (C146)
// expected-error @+1 {{panels must be at least 1 tile wide, but got 0}}
#bad = #pipe.static_persistent<panels>

// -----

func.func @work(%m: i32, %n: i32) {
  // expected-error @+1 {{schedule must be a work schedule, but got "along_m"}}
  pipe.for_each_work %i, %j in (%m, %n) schedule "along_m" {
  }
  return
}

// -----

func.func @work(%m: i32, %n: i32) {
  %twin = pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.static_persistent<along_n>
      iter_args(%it = %m) -> (i32) {
    pipe.yield %it : i32
  }
  // (C145)
  // expected-error @+1 {{must yield the 1 values that it carries, but yields 0}}
  %bad = pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.static_persistent<along_n>
      iter_args(%it = %m) -> (i32) {
    pipe.yield
  }
  return
}
