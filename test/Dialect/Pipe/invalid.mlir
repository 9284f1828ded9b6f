// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Every error has a twin above it that differs in one place and verifies. Labels refer to
// PipeConstraints.td.

func.func private @twin(!pipe.tensor_map<256x256xf4E2M1FN, swizzle_128B>)
// (C101)
// expected-error @+2 {{box must have at most 256 rows, but got 257}}
// expected-note @+1 {{load a higher tile with several operations}}
func.func private @bad(!pipe.tensor_map<257x256xf4E2M1FN, swizzle_128B>)

// -----

func.func private @twin(!pipe.tensor_map<128x128xf4E2M1FN, swizzle_64B>)
// (C101)
// expected-error @+2 {{rows of the box must be at most 64 bytes for swizzle_64B, but got 128 bytes}}
// expected-note @+1 {{take a wider swizzle, or a tile of several panels, whose map has the box of one}}
func.func private @bad(!pipe.tensor_map<128x256xf4E2M1FN, swizzle_64B>)

// -----

func.func private @twin(!pipe.tensor_map<128x32xf4E2M1FN>)
// (C101)
// expected-error @+2 {{rows of the box must be a multiple of 16 bytes, at most 256, but got 8 bytes}}
// expected-note @+1 {{TMA copies units of 16 bytes; pad the columns of the tile}}
func.func private @bad(!pipe.tensor_map<128x16xf4E2M1FN>)

// -----

func.func private @twin(!pipe.shared<128x256xf4E2M1FN, swizzle_128B>)
// (C102)
// expected-error @+2 {{rows of a swizzle_128B tile must be a multiple of 128 bytes, but got 64 bytes}}
// expected-note @+1 {{pad the columns to whole panels, or take a narrower swizzle}}
func.func private @bad(!pipe.shared<128x128xf4E2M1FN, swizzle_128B>)

// -----

func.func private @twin(!pipe.shared<128x16xf8E4M3FN, tiled_128x4>)
// (C103)
// expected-error @+2 {{tiled_128x4 tile must have 64 rows or a multiple of 128, and a multiple of 4 columns, but got 32x16}}
// expected-note @+1 {{scales are stored as scale tiles, 128x4; round the tile up to whole scale tiles}}
func.func private @bad(!pipe.shared<32x16xf8E4M3FN, tiled_128x4>)

// -----

func.func private @twin(!pipe.tmem<128x16xf8E8M0FNU, tiled_128x4>)
// (C103)
// expected-error @+2 {{scale factors must be f8E4M3FN or f8E8M0FNU, but got 'f8E5M2'}}
// expected-note @+1 {{block-scaled instructions read scales of these types}}
func.func private @bad(!pipe.tmem<128x16xf8E5M2, tiled_128x4>)

// -----

func.func private @twin(!pipe.tmem<128x200xf32>)
// (C104)
// expected-error @+2 {{accumulator must be 128 rows of f32 and 8 to 256 columns in steps of 8, but got 128x204x'f32'}}
// expected-note @+1 {{block-scaled instructions make these shapes; take several accumulators for a larger tile}}
func.func private @bad(!pipe.tmem<128x204xf32>)

// -----

func.func private @twin(!pipe.tmem<256x256xf8E4M3FN, tiled_128x4>)
// (C105)
// expected-error @+2 {{tile must fit in 512 tensor memory columns, but needs 520}}
// expected-note @+1 {{cut the tile into several, which different iterations use}}
func.func private @bad(!pipe.tmem<256x260xf8E4M3FN, tiled_128x4>)

// -----

func.func private @twin(!pipe.channel<!pipe.tmem<128x64xf32>, !pipe.tmem<128x64xf32>>)
// (C106)
// expected-error @+2 {{payload must lie in one memory}}
// expected-note @+1 {{make a channel for each memory}}
func.func private @bad(!pipe.channel<!pipe.tmem<128x64xf32>, !pipe.shared<128x256xf4E2M1FN, swizzle_128B>>)

// -----

// expected-error @+2 {{layout must be linear, swizzle_32B, swizzle_64B, swizzle_128B, swizzle_128B_b4x16_p64, tiled_128x4, halves_128x4 or rows_P_mod_4 with P = 1, 2 or 3, but got swizzle_96B}}
// expected-note @+1 {{the last three are layouts of scales, the others of data; linear is what is meant without a word}}
func.func private @bad(!pipe.shared<128x256xf4E2M1FN, swizzle_96B>)

// -----

func.func private @twin(!pipe.global<2xi64>)
// expected-error @+2 {{global buffer of 1 dimension must have elements of whole bytes, but got 'f4E2M1FN'}}
// expected-note @+1 {{pack the elements into i8, or give the buffer two dimensions}}
func.func private @bad(!pipe.global<2xf4E2M1FN>)

// -----

func.func private @twin(!pipe.global<3x2xi64>)
// expected-error @+2 {{global buffer must have at most 2 dimensions, but got 3}}
// expected-note @+1 {{collapse the leading dimensions into the rows}}
func.func private @bad(!pipe.global<4x3x2xi64>)

// -----

func.func @view(%dense: memref<?x136xi8>, %padded: memref<?x144xi8>) {
  %twin = pipe.view %padded : memref<?x144xi8> -> !pipe.global<?x272xf4E2M1FN>
  // (C107)
  // expected-error @+2 {{source of '!pipe.global<?x272xf4E2M1FN>' must be 'memref<?x144xi8>', but got 'memref<?x136xi8>'}}
  // expected-note @+1 {{the buffer has the type of fp4's own layout; dynamic rows and columns, !pipe.global<?x?xT>, take any strides}}
  %bad = pipe.view %dense : memref<?x136xi8> -> !pipe.global<?x272xf4E2M1FN>
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
  // expected-error @+2 {{290 columns take 145 bytes, which must not exceed the row pitch of 144}}
  // expected-note @+1 {{describe fewer columns, or pass a buffer with longer rows}}
  %bad = pipe.make_tensor_map %q columns 290 : memref<?x144xi8> -> !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
  return
}

// -----

func.func @load(%map: !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>, %i: i32) {
  %twin = pipe.load %map[%i, %i] : !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B> -> !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
  // (C109)
  // expected-error @+2 {{tile must have the box of its map, '!pipe.shared<128x256xf4E2M1FN, swizzle_128B>', but got '!pipe.shared<64x256xf4E2M1FN, swizzle_128B>'}}
  // expected-note @+1 {{the box of a map is a panel, as wide as the swizzle, or the part of it that one CTA loads}}
  %bad = pipe.load %map[%i, %i] : !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B> -> !pipe.shared<64x256xf4E2M1FN, swizzle_128B>
  return
}

// -----

func.func @load(%map: !pipe.tensor_map<64x64xbf16, swizzle_128B>, %i: i32) {
  %twin = pipe.load %map[%i, %i] : !pipe.tensor_map<64x64xbf16, swizzle_128B> -> !pipe.shared<64x128xbf16, swizzle_128B>
  // (C109)
  // expected-error @+2 {{panels of the tile must have the box of its map, '!pipe.shared<64x64xbf16, swizzle_128B>', but got '!pipe.shared<32x128xbf16, swizzle_128B>'}}
  // expected-note @+1 {{the box of a map is a panel, as wide as the swizzle, or the part of it that one CTA loads}}
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

func.func @column(%p: !pipe.global<64x4608xi8>, %i: i32) {
  %twin = pipe.load %p[%i] : !pipe.global<64x4608xi8> -> !pipe.shared<4x4608xi8>
  // (C651)
  // expected-error @+2 {{source '!pipe.global<64x4608xi8>' must have no column, but got one}}
  // expected-note @+1 {{write '[%row]' for the rows of a linear buffer, and '[%row, %column]' for maps and buffers of scales}}
  %bad = pipe.load %p[%i, %i] : !pipe.global<64x4608xi8> -> !pipe.shared<4x4608xi8>
  return
}

// -----

func.func @column(%s: !pipe.global<384x16xf8E4M3FN, tiled_128x4>, %i: i32) {
  %twin = pipe.load %s[%i, %i] : !pipe.global<384x16xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
  // (C651)
  // expected-error @+2 {{source '!pipe.global<384x16xf8E4M3FN, tiled_128x4>' must have a column, but got none}}
  // expected-note @+1 {{write '[%row]' for the rows of a linear buffer, and '[%row, %column]' for maps and buffers of scales}}
  %bad = pipe.load %s[%i] : !pipe.global<384x16xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @multicast(%s: !pipe.global<384x16xf8E4M3FN, tiled_128x4>, %i: i32) {
  %twin = pipe.load %s[%i, %i] : !pipe.global<384x16xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
  // (C651)
  // expected-error @+2 {{multicast must be of a tensor map, but got '!pipe.global<384x16xf8E4M3FN, tiled_128x4>'}}
  // expected-note @+1 {{leave 'multicast' out, or load the tile through a map}}
  %bad = pipe.load %s[%i, %i] multicast n : !pipe.global<384x16xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @in_bounds(%map: !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>, %i: i32) {
  %twin = pipe.load %map[%i, %i] : !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B> -> !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
  // (C651)
  // expected-error @+2 {{'in_bounds' must be of a buffer of scales, but got '!pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>'}}
  // expected-note @+1 {{leave 'in_bounds' out: maps fill with zeros, and rows are counted}}
  %bad = pipe.load %map[%i, %i] {in_bounds} : !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B> -> !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
  return
}

// -----

func.func @scales(%fixed: !pipe.global<384x16xf8E4M3FN, tiled_128x4>, %dynamic: !pipe.global<?x16xf8E4M3FN, tiled_128x4>, %i: i32) {
  %twin = pipe.load %fixed[%i, %i] : !pipe.global<384x16xf8E4M3FN, tiled_128x4> -> !pipe.shared<256x16xf8E4M3FN, tiled_128x4>
  // (C111)
  // expected-error @+2 {{source must have known rows for a tile of 256 rows, but got '!pipe.global<?x16xf8E4M3FN, tiled_128x4>'}}
  // expected-note @+1 {{take a source with static rows, or pipe.view with 'rows'}}
  %bad = pipe.load %dynamic[%i, %i] : !pipe.global<?x16xf8E4M3FN, tiled_128x4> -> !pipe.shared<256x16xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @scales(%s: !pipe.global<128x17xf8E4M3FN, tiled_128x4>, %t: !pipe.global<128x13xf8E4M3FN, tiled_128x4>, %i: i32) {
  // The last of 4 blocks exists, and is padded with zeros, when one of its columns does.
  %padded = pipe.load %t[%i, %i] : !pipe.global<128x13xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
  %twin = pipe.load %s[%i, %i] existing %i : !pipe.global<128x17xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
  // (C112)
  // expected-error @+2 {{source's scale tiles of a row must be a multiple of the tile's 4, but got 5}}
  // expected-note @+1 {{give the number of existing scale tiles with 'existing %n'}}
  %bad = pipe.load %s[%i, %i] : !pipe.global<128x17xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @in_bounds(%s: !pipe.global<512x16xf8E4M3FN, tiled_128x4>, %t: !pipe.global<600x16xf8E4M3FN, tiled_128x4>, %i: i32) {
  %twin = pipe.load %s[%i, %i] {in_bounds} : !pipe.global<512x16xf8E4M3FN, tiled_128x4> -> !pipe.shared<256x16xf8E4M3FN, tiled_128x4>
  // (C129)
  // expected-error @+2 {{'in_bounds' expects static rows of whole tiles of 256 rows, but got '!pipe.global<600x16xf8E4M3FN, tiled_128x4>'}}
  // expected-note @+1 {{leave 'in_bounds' out: the last scale tiles then stand in for others}}
  %bad = pipe.load %t[%i, %i] {in_bounds} : !pipe.global<600x16xf8E4M3FN, tiled_128x4> -> !pipe.shared<256x16xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @copy(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) {
  %twin = pipe.copy_scales %s : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  // (C113)
  // expected-error @+2 {{tensor memory tile must be the scale tile of its source '!pipe.shared<128x16xf8E4M3FN, tiled_128x4>', but got '!pipe.tmem<128x8xf8E4M3FN, tiled_128x4>'}}
  // expected-note @+1 {{write the shape, element type and layout of the source}}
  %bad = pipe.copy_scales %s : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x8xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @copied(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) {
  %twin = pipe.copy_scales %s at 0 sets 2 copied : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  // (C113)
  // expected-error @+2 {{copied must have a first column and no blocks, but got no column}}
  // expected-note @+1 {{write 'at COLUMN', that of the warp that copies}}
  %bad = pipe.copy_scales %s copied : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @copied(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>, %n: i32) {
  // (C113)
  // expected-error @+2 {{copied must have a first column and no blocks, but got blocks}}
  // expected-note @+1 {{write 'at COLUMN', that of the warp that copies}}
  %bad = pipe.copy_scales %s blocks %n at 0 copied : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @copy_sets(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) {
  %twin = pipe.copy_scales %s at 0 sets 2 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  // (C113)
  // expected-error @+2 {{sets must be positive and have a first column, but got 2 without 'at'}}
  // expected-note @+1 {{write 'at COLUMN sets N' with an N of at least 1}}
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
  // expected-error @+2 {{a must have 128 rows, but got 64}}
  // expected-note @+1 {{load as many rows of a as a CTA has TMEM lanes of the accumulator}}
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
  // expected-error @+2 {{b must have as many rows as the accumulator has columns, 128, but got 64}}
  // expected-note @+1 {{load a row of b for each column of the accumulator}}
  pipe.mma %acc, %a scaled %s, %h scaled %s accumulate %p : !acc, !data, !scales, !half, !scales
  return
}

// -----

!acc = !pipe.tmem<128x128xf32>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!halves = !pipe.shared<128x64xbf16, swizzle_128B>
!short = !pipe.shared<128x128xf4E2M1FN, swizzle_64B>
!scales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
func.func @mma(%acc: !acc, %a: !data, %b: !short, %s: !scales, %p: i1) {
  // (C115)
  // expected-error @+2 {{b must be f4E2M1FN with the K of a, a multiple of 64, but got '!pipe.shared<128x128xf4E2M1FN, swizzle_64B>'}}
  // expected-note @+1 {{pad K with zeros, and write no padded layout beside operands of 4 bits}}
  pipe.mma %acc, %a scaled %s, %b scaled %s accumulate %p : !acc, !data, !scales, !short, !scales
  return
}
func.func @elements(%acc: !acc, %a: !data, %b: !halves, %s: !scales, %p: i1) {
  // (C650)
  // expected-error @+2 {{b must be f4E2M1FN, f6E2M3FN, f6E3M2FN, f8E4M3FN, f8E5M2 in shared memory, but got '!pipe.shared<128x64xbf16, swizzle_128B>'}}
  // expected-note @+1 {{MMAs with the operands before it are tcgen05 mxf4nvf4, tcgen05 mxf8f6f4}}
  pipe.mma %acc, %a scaled %s, %b scaled %s accumulate %p : !acc, !data, !scales, !halves, !scales
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
  // expected-error @+2 {{b_scales must have at least 192 rows, but got 128}}
  // expected-note @+1 {{copy whole scale tiles of 128 rows}}
  pipe.mma %acc, %a scaled %s, %b scaled %s accumulate %p : !acc, !data, !scales, !wide, !scales
  return
}

// -----

!acc = !pipe.tmem<128x128xf32>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!of16 = !pipe.tmem<128x16xf8E8M0FNU, tiled_128x4>
!of32 = !pipe.tmem<128x8xf8E8M0FNU, tiled_128x4>
func.func @mma(%acc: !acc, %a: !data, %s: !of16, %t: !of32, %p: i1) {
  pipe.mma %acc, %a scaled %s, %a scaled %s accumulate %p : !acc, !data, !of16, !data, !of16
  pipe.mma %acc, %a scaled %t, %a scaled %t accumulate %p : !acc, !data, !of32, !data, !of32
  // (C116)
  // expected-error @+2 {{b_scales must have 8 columns for K = 256 and blocks of 32, but got 16}}
  // expected-note @+1 {{copy the scales of as many blocks as the tile has, rounded up to 4}}
  pipe.mma %acc, %a scaled %t, %a scaled %s accumulate %p : !acc, !data, !of32, !data, !of16
  return
}

// -----

func.func @read(%acc: !pipe.tmem<128x96xf32>, %c: i32) {
  %twin = pipe.read %acc[%c] : !pipe.tmem<128x96xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  // (C117)
  // expected-error @+2 {{result must have a power of two of at most 128 columns that divides the accumulator's 96, but got 64}}
  // expected-note @+1 {{read the columns with several operations}}
  %bad = pipe.read %acc[%c] : !pipe.tmem<128x96xf32> -> tensor<128x64xf32, #pipe.distribution<lanes>>
  return
}

// -----

func.func @load_factors(%p: !pipe.global<?x1xf32>, %q: !pipe.global<64x64xbf16>, %c: i32) {
  %ok = pipe.fetch %p[%c, %c] rows %c : !pipe.global<?x1xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  %matrix = pipe.fetch %q[%c, %c] : !pipe.global<64x64xbf16> -> tensor<128x32xbf16, #pipe.distribution<lanes>>
  // (C144)
  // expected-error @+2 {{expects operand 'rows' for dynamic rows, but got none}}
  // expected-note @+1 {{='rows' is the number of rows that exist, which only a dynamic buffer leaves open}}
  %bad = pipe.fetch %p[%c, %c] : !pipe.global<?x1xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  return
}

// -----

func.func @load_factors(%p: !pipe.global<1x64xf32>, %q: !pipe.global<1x64xbf16>, %c: i32) {
  %ok = pipe.fetch %p[%c, %c] : !pipe.global<1x64xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  // (C144)
  // expected-error @+2 {{buffer must have 2 dimensions of 'f32', but got '!pipe.global<1x64xbf16>'}}
  // expected-note @+1 {{pass a buffer of that element type, in rows and columns}}
  %bad = pipe.fetch %q[%c, %c] : !pipe.global<1x64xbf16> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  return
}

// -----

func.func @store(%v: tensor<128x32xbf16, #pipe.distribution<lanes>>, %y: !pipe.global<?x512xbf16>, %c: i32) {
  pipe.store %v, %y[%c, %c] rows %c : tensor<128x32xbf16, #pipe.distribution<lanes>>, !pipe.global<?x512xbf16>
  // (C118)
  // expected-error @+2 {{must bound the rows of a destination with dynamic rows}}
  // expected-note @+1 {{add 'rows %m'}}
  pipe.store %v, %y[%c, %c] : tensor<128x32xbf16, #pipe.distribution<lanes>>, !pipe.global<?x512xbf16>
  return
}

// -----

func.func @store(%v: tensor<128x32xbf16, #pipe.distribution<lanes>>, %y: !pipe.global<128x512xf32>, %c: i32) {
  // (C118)
  // expected-error @+2 {{destination must be a buffer of 'bf16' and rank 2, but got '!pipe.global<128x512xf32>'}}
  // expected-note @+1 {{convert the value to the elements of the buffer first}}
  pipe.store %v, %y[%c, %c] : tensor<128x32xbf16, #pipe.distribution<lanes>>, !pipe.global<128x512xf32>
  return
}

// -----

func.func @store(%v: tensor<128x32xf4E2M1FN, #pipe.distribution<lanes>>, %w: tensor<128x16xf4E2M1FN, #pipe.distribution<lanes>>, %y: !pipe.global<128x512xf4E2M1FN>, %c: i32) {
  pipe.store %v, %y[%c, %c] : tensor<128x32xf4E2M1FN, #pipe.distribution<lanes>>, !pipe.global<128x512xf4E2M1FN>
  // (C118)
  // expected-error @+2 {{value of f4E2M1FN must have at least 32 columns, 16 bytes, but got 16}}
  // expected-note @+1 {{store at least 16 bytes at a time: codes of narrower tiles share them}}
  pipe.store %w, %y[%c, %c] : tensor<128x16xf4E2M1FN, #pipe.distribution<lanes>>, !pipe.global<128x512xf4E2M1FN>
  return
}

// -----

func.func @store(%v: tensor<128x4xf8E4M3FN, #pipe.distribution<lanes>>, %w: tensor<128x8xf8E4M3FN, #pipe.distribution<lanes>>, %s: !pipe.global<128x30xf8E4M3FN, tiled_128x4>, %c: i32) {
  pipe.store %v, %s[%c, %c] : tensor<128x4xf8E4M3FN, #pipe.distribution<lanes>>, !pipe.global<128x30xf8E4M3FN, tiled_128x4>
  // (C118)
  // expected-error @+2 {{value must have at most the 4 columns of a scale tile, but got 8}}
  // expected-note @+1 {{store the columns of each scale tile with an operation of its own}}
  pipe.store %w, %s[%c, %c] : tensor<128x8xf8E4M3FN, #pipe.distribution<lanes>>, !pipe.global<128x30xf8E4M3FN, tiled_128x4>
  return
}

// -----

!acc = !pipe.tmem<128x64xf32>
!x = !pipe.shared<64x128xbf16, swizzle_128B>
!h = !pipe.shared<16x16xbf16, swizzle_32B>
func.func @blockwise(%acc: !acc, %wide: !pipe.tmem<128x128xf32>, %x: !x, %h: !h) {
  pipe.mma %acc, %x, %h : !acc, !x, !h
  // (C125)
  // expected-error @+2 {{accumulator must have 64 columns, 16 for each of 4 slices, but got '!pipe.tmem<128x128xf32>'}}
  // expected-note @+1 {{write an accumulator of these columns, of one CTA}}
  pipe.mma %wide, %x, %h : !pipe.tmem<128x128xf32>, !x, !h
  return
}

// -----

!acc = !pipe.tmem<128x64xf32>
!x = !pipe.shared<64x128xbf16, swizzle_128B>
!narrow = !pipe.shared<64x64xbf16, swizzle_128B>
!h = !pipe.shared<16x16xbf16, swizzle_32B>
func.func @blockwise(%acc: !acc, %x: !x, %n: !narrow, %h: !h) {
  pipe.mma %acc, %x, %h : !acc, !x, !h
  // (C125)
  // expected-error @+2 {{a must be a multiple of 16 rows of 128 and swizzled, but got '!pipe.shared<64x64xbf16, swizzle_128B>'}}
  // expected-note @+1 {{load 128 columns, with a swizzle}}
  pipe.mma %acc, %n, %h : !acc, !narrow, !h
  return
}

// -----

!acc = !pipe.tmem<128x64xf32>
!x = !pipe.shared<64x128xbf16, swizzle_128B>
!h = !pipe.shared<16x16xbf16, swizzle_32B>
!linear = !pipe.shared<16x16xbf16>
func.func @blockwise(%acc: !acc, %x: !x, %h: !h, %l: !linear) {
  pipe.mma %acc, %x, %h : !acc, !x, !h
  // (C125)
  // expected-error @+2 {{b must be 'bf16', a multiple of 16 rows of 16 with layout swizzle_32B, but got '!pipe.shared<16x16xbf16>'}}
  // expected-note @+1 {{pipe.hadamard_matrix makes such a tile}}
  pipe.mma %acc, %x, %l : !acc, !x, !linear
  return
}

// -----

func.func @quantize(%v: tensor<128x32xf32, #pipe.distribution<lanes>>, %w: tensor<128x24xf32, #pipe.distribution<lanes>>, %a: f32) {
  %twin, %s0 = pipe.quantize_blocks %v amax %a {recipe = #fp4.recipe<transformer_engine>} : tensor<128x32xf32, #pipe.distribution<lanes>> -> tensor<128x32xf4E2M1FN, #pipe.distribution<lanes>>, tensor<128x2xf8E4M3FN, #pipe.distribution<lanes>>
  // (C127)
  // expected-error @+2 {{value must be lanes or columns, blocks of 16 elements in a thread, but got 'tensor<128x24xf32, #pipe.distribution<lanes>>'}}
  // expected-note @+1 {{make rows of threads with pipe.gather_rows, of whole blocks}}
  %bad, %s1 = pipe.quantize_blocks %w amax %a {recipe = #fp4.recipe<transformer_engine>} : tensor<128x24xf32, #pipe.distribution<lanes>> -> tensor<128x24xf4E2M1FN, #pipe.distribution<lanes>>, tensor<128x2xf8E4M3FN, #pipe.distribution<lanes>>
  return
}

// -----

func.func @quantize(%v: tensor<128x32xbf16, #pipe.distribution<lanes>>, %a: f32) {
  %twin, %s0 = pipe.quantize_blocks %v {recipe = #fp4.recipe<ocp_floor>} : tensor<128x32xbf16, #pipe.distribution<lanes>> -> tensor<128x32xf4E2M1FN, #pipe.distribution<lanes>>, tensor<128x1xf8E8M0FNU, #pipe.distribution<lanes>>
  // (C127)
  // expected-error @+2 {{results must be 'tensor<128x32xf4E2M1FN, #pipe.distribution<lanes>>' and 'tensor<128x1xf8E8M0FNU, #pipe.distribution<lanes>>', but got 'tensor<128x32xf4E2M1FN, #pipe.distribution<lanes>>' and 'tensor<128x2xf8E4M3FN, #pipe.distribution<lanes>>'}}
  // expected-note @+1 {{write a code for each element and a scale for each block}}
  %bad, %s1 = pipe.quantize_blocks %v {recipe = #fp4.recipe<ocp_floor>} : tensor<128x32xbf16, #pipe.distribution<lanes>> -> tensor<128x32xf4E2M1FN, #pipe.distribution<lanes>>, tensor<128x2xf8E4M3FN, #pipe.distribution<lanes>>
  return
}

// -----

func.func @quantize(%v: tensor<128x32xbf16, #pipe.distribution<lanes>>, %a: f32) {
  // (C127)
  // expected-error @+2 {{recipe expects an amax}}
  // expected-note @+1 {{add 'amax %a', the maximum that the recipe's tensor scale follows from}}
  %bad, %s = pipe.quantize_blocks %v {recipe = #fp4.recipe<transformer_engine>} : tensor<128x32xbf16, #pipe.distribution<lanes>> -> tensor<128x32xf4E2M1FN, #pipe.distribution<lanes>>, tensor<128x2xf8E4M3FN, #pipe.distribution<lanes>>
  return
}

// -----

func.func @quantize(%v: tensor<128x32xbf16, #pipe.distribution<lanes>>, %a: f32, %rng: !pipe.global<2xi64>, %r: i32) {
  %twin, %s0 = pipe.quantize_blocks %v amax %a random %rng[%r, %r] of [64, 64] {recipe = #fp4.recipe<transformer_engine>} : tensor<128x32xbf16, #pipe.distribution<lanes>>, !pipe.global<2xi64> -> tensor<128x32xf4E2M1FN, #pipe.distribution<lanes>>, tensor<128x2xf8E4M3FN, #pipe.distribution<lanes>>
  // (C127)
  // expected-error @+2 {{random must not come with a recipe that compares rounding errors}}
  // expected-note @+1 {{take a recipe with one rounding, or leave 'random' out}}
  %bad, %s1 = pipe.quantize_blocks %v amax %a random %rng[%r, %r] of [64, 64] {recipe = #fp4.recipe<four_over_six>} : tensor<128x32xbf16, #pipe.distribution<lanes>>, !pipe.global<2xi64> -> tensor<128x32xf4E2M1FN, #pipe.distribution<lanes>>, tensor<128x2xf8E4M3FN, #pipe.distribution<lanes>>
  return
}

// -----

func.func @quantize(%v: tensor<128x32xbf16, #pipe.distribution<lanes>>, %a: f32, %seed: !pipe.global<2xi32>, %r: i32) {
  // (C127)
  // expected-error @+2 {{random must be the seed and offset, a buffer of 2xi64, but got '!pipe.global<2xi32>'}}
  // expected-note @+1 {{pass a buffer of type !pipe.global<2xi64>}}
  %bad, %s = pipe.quantize_blocks %v amax %a random %seed[%r, %r] of [64, 64] {recipe = #fp4.recipe<transformer_engine>} : tensor<128x32xbf16, #pipe.distribution<lanes>>, !pipe.global<2xi32> -> tensor<128x32xf4E2M1FN, #pipe.distribution<lanes>>, tensor<128x2xf8E4M3FN, #pipe.distribution<lanes>>
  return
}

// -----

func.func @matrix() {
  %twin = pipe.hadamard_matrix signs 65535 -> !pipe.shared<16x16xbf16, swizzle_32B>
  // (C126)
  // expected-error @+2 {{signs must have 16 bits, but got 65536}}
  // expected-note @+1 {{the bits are the signs of the 16 elements of a group}}
  %bad = pipe.hadamard_matrix signs 65536 -> !pipe.shared<16x16xbf16, swizzle_32B>
  return
}

// -----

func.func @matrix() {
  %twin = pipe.hadamard_matrix signs 0 -> !pipe.shared<16x16xbf16, swizzle_32B>
  // (C126)
  // expected-error @+2 {{tile must be 16x16 of bf16 with layout swizzle_32B, but got '!pipe.shared<32x16xbf16, swizzle_32B>'}}
  // expected-note @+1 {{write !pipe.shared<16x16xbf16, swizzle_32B>}}
  %bad = pipe.hadamard_matrix signs 0 -> !pipe.shared<32x16xbf16, swizzle_32B>
  return
}

// -----

func.func @matrix() {
  // (C126)
  // expected-error @+2 {{must either return a tile or fill a destination}}
  // expected-note @+1 {{write a result, or 'into %slot', and not both}}
  pipe.hadamard_matrix signs 0
  return
}

// -----

func.func private @twin(!pipe.fragment<128x256xf32, wgmma>, !pipe.fragment<32x72xf32, mma_sync>)
// (C158)
// expected-error @+2 {{fragment must be what its instruction makes: wgmma expects a multiple of 64 rows, but got 32}}
// expected-note @+1 {{wgmma makes multiples of 64x8, mma_sync of 16x8, and lanes are 128 rows of 16 to 128 columns}}
func.func private @rows() -> !pipe.fragment<32x72xf32, wgmma>

// -----

// (C158)
// expected-error @+2 {{fragment must have elements of f32, or of wgmma f8E4M3FN, but got 'bf16'}}
// expected-note @+1 {{threads convert what they have read from a fragment, as vectors}}
func.func private @element() -> !pipe.fragment<64x64xbf16, wgmma>

// -----

// expected-error @+2 {{fragment must be of wgmma, mma_sync or lanes, but got tcgen05}}
// expected-note @+1 {{wgmma and mma_sync hold what their instruction adds to, lanes what threads read from tensor memory}}
func.func private @kind() -> !pipe.fragment<64x64xf32, tcgen05>

// -----

// expected-error @+2 {{payload must be tiles in shared or tensor memory, but got '!pipe.fragment<64x64xf32, wgmma>'}}
// expected-note @+1 {{values of other types cross from role to role as operands that are computed in both}}
func.func private @payload() -> !pipe.channel<!pipe.fragment<64x64xf32, wgmma>>
