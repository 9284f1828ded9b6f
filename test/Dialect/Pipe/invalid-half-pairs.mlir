// RUN: fp4-opt %s -split-input-file -verify-diagnostics
// Every constraint of pairs with 128 rows (PipeConstraints.td), with a twin that holds it.

func.func private @twin() -> !pipe.shared<256x16xf8E4M3FN, halves_128x4>
func.func private @narrow() -> (!pipe.shared<64x16xf8E4M3FN, halves_128x4>, !pipe.shared<192x16xf8E4M3FN, halves_128x4>)
// (C423)
// expected-error @+2 {{halves_128x4 tile must have 64, 128, 192 or 256 rows, but got 96}}
// expected-note @+1 {{halves are of 32 to 128 rows; other tiles of scales have layout tiled_128x4}}
func.func private @rows() -> !pipe.shared<96x16xf8E4M3FN, halves_128x4>

// -----

func.func private @twin() -> !pipe.tmem<256x16xf8E4M3FN, halves_128x4, pair>
// (C423)
// expected-error @+2 {{halves_128x4 tile in tensor memory must belong to a pair}}
// expected-note @+1 {{add ', pair', or take layout tiled_128x4}}
func.func private @alone() -> !pipe.tmem<256x16xf8E4M3FN, halves_128x4>

// -----

// (C423)
// expected-error @+2 {{box of scales must have layout tiled_128x4, but got halves_128x4}}
// expected-note @+1 {{write 'tiled_128x4' behind the element type}}
func.func private @box() -> !pipe.tensor_map<128x4xf8E4M3FN, halves_128x4>

// -----

!map = !pipe.tensor_map<128x4xf8E4M3FN, tiled_128x4>
!wide = !pipe.tensor_map<128x16xf8E4M3FN, tiled_128x4>
!tile = !pipe.shared<256x16xf8E4M3FN, halves_128x4>
gpu.module @m {
gpu.func @loads(%map: !map, %wide: !wide, %row: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  %twin = pipe.load %map[%row, %row] multicast m : !map -> !tile
  // (C424)
  // expected-error @+2 {{tile of two halves must have a map of 128x4 scales and at most 2 CTAs that load it, but got '!pipe.tensor_map<128x16xf8E4M3FN, tiled_128x4>' and 1}}
  // expected-note @+1 {{make the map of 128x4 boxes, and leave 'multicast' out beyond a pair}}
  %t = pipe.load %wide[%row, %row] : !wide -> !tile
  gpu.return
}
}

// -----

!map = !pipe.tensor_map<128x4xf8E4M3FN, tiled_128x4>
!tile = !pipe.shared<256x16xf8E4M3FN, halves_128x4>
gpu.module @m {
gpu.func @loads(%map: !map, %row: i32) kernel attributes {known_cluster_size = array<i32: 4, 1, 1>} {
  %twin = pipe.load %map[%row, %row] : !map -> !tile
  // (C151)
  // expected-error @+2 {{each of the 4 CTAs along m must load a multiple of 128 rows, but the tile has 256}}
  // expected-note @+1 {{take a smaller cluster, or a higher tile}}
  %t = pipe.load %map[%row, %row] multicast m : !map -> !tile
  gpu.return
}
}

// -----

!sf = !pipe.global<128x16xf8E4M3FN, tiled_128x4>
func.func @bulk(%sf: !sf, %row: i32) {
  %twin = pipe.load %sf[%row, %row] : !sf -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
  // (C111)
  // expected-error @+2 {{tile must have a multiple of 128 rows, but got 64}}
  // expected-note @+1 {{round the tile up to whole scale tiles of 128 rows}}
  %t = pipe.load %sf[%row, %row] : !sf -> !pipe.shared<64x16xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @copy(%halves: !pipe.shared<256x16xf8E4M3FN, halves_128x4>) {
  %twin = pipe.copy_scales %halves : !pipe.shared<256x16xf8E4M3FN, halves_128x4> -> !pipe.tmem<256x16xf8E4M3FN, halves_128x4, pair>
  // (C113)
  // expected-error @+2 {{tensor memory tile must be the scale tile of its source}}
  // expected-note @+1 {{write the shape, element type and layout of the source}}
  %t = pipe.copy_scales %halves : !pipe.shared<256x16xf8E4M3FN, halves_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4, pair>
  return
}

// -----

!acc = !pipe.tmem<128x256xf32, pair>
!a = !pipe.shared<64x256xf4E2M1FN, swizzle_128B>
!b = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!sa = !pipe.tmem<64x16xf8E4M3FN, tiled_128x4, pair>
!sb = !pipe.tmem<256x16xf8E4M3FN, halves_128x4, pair>
func.func @rows_of_a(%acc: !acc, %a: !a, %b: !b, %sa: !sa, %sb: !sb, %more: i1) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %more : !acc, !a, !sa, !b, !sb
  // (C114)
  // expected-error @+2 {{a must have 64 rows, but got 128}}
  // expected-note @+1 {{load as many rows of a as a CTA has TMEM lanes of the accumulator}}
  pipe.mma %acc, %b scaled %sa, %b scaled %sb accumulate %more : !acc, !b, !sa, !b, !sb
  return
}

// -----

!acc = !pipe.tmem<128x256xf32, pair>
!a = !pipe.shared<64x256xf4E2M1FN, swizzle_128B>
!b = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!sa = !pipe.tmem<64x16xf8E4M3FN, tiled_128x4, pair>
!whole = !pipe.tmem<256x16xf8E4M3FN, tiled_128x4, pair>
func.func @whole_scales(%acc: !acc, %a: !a, %b: !b, %sa: !sa, %sb: !whole, %more: i1) {
  // (C440)
  // expected-error @+2 {{b_scales must have layout halves_128x4 and a row for each column of the accumulator, from the first on, where a pair has 128 rows, and only there, but got '!pipe.tmem<256x16xf8E4M3FN, tiled_128x4, pair>'}}
  // expected-note @+1 {{write halves_128x4 for the scales of b and leave out their row, where the accumulator has 128 rows of a pair; write tiled_128x4 elsewhere}}
  pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %more : !acc, !a, !sa, !b, !whole
  return
}

// -----

!acc = !pipe.tmem<128x256xf32, pair>
!a = !pipe.shared<64x256xf4E2M1FN, swizzle_128B>
!b = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!sa = !pipe.tmem<256x16xf8E4M3FN, halves_128x4, pair>
!sb = !pipe.tmem<256x16xf8E4M3FN, halves_128x4, pair>
func.func @halves_of_a(%acc: !acc, %a: !a, %b: !b, %sa: !sa, %sb: !sb, %more: i1) {
  // (C440)
  // expected-error @+2 {{a_scales must have layout tiled_128x4, but got '!pipe.tmem<256x16xf8E4M3FN, halves_128x4, pair>'}}
  // expected-note @+1 {{only the scales of b are in halves}}
  pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %more : !acc, !a, !sa, !b, !sb
  return
}

// -----

!tile = !pipe.shared<128x64xbf16, swizzle_128B>
!map = !pipe.tensor_map<64x64xbf16, swizzle_128B>
func.func @stores(%v: tensor<128x64xbf16, #pipe.distribution<lanes>>, %y: !map, %c: i32) {
  %t = pipe.stage %v : tensor<128x64xbf16, #pipe.distribution<lanes>> -> !tile
  pipe.store %t, %y[%c, %c] halves 128 : !tile, !map
  // (C441)
  // expected-error @+2 {{halves must be a positive multiple of 16 bytes apart, but got 100 elements}}
  // expected-note @+1 {{write the distance in elements, a multiple of 16 bytes}}
  pipe.store %t, %y[%c, %c] halves 100 : !tile, !map
  return
}

// -----

!tile = !pipe.shared<128x64xbf16, swizzle_128B>
!whole = !pipe.tensor_map<128x64xbf16, swizzle_128B>
func.func @stores(%v: tensor<128x64xbf16, #pipe.distribution<lanes>>, %whole: !whole, %c: i32) {
  %t = pipe.stage %v : tensor<128x64xbf16, #pipe.distribution<lanes>> -> !tile
  // (C441)
  // expected-error @+2 {{tile must have twice the box of its map, '!pipe.shared<128x64xbf16, swizzle_128B>', but got '!pipe.shared<128x64xbf16, swizzle_128B>'}}
  // expected-note @+1 {{stage the tile in the box, element type and layout of the map}}
  pipe.store %t, %whole[%c, %c] halves 128 : !tile, !whole
  return
}

// -----

!acc = !pipe.tmem<128x64xf32, pair>
func.func @read(%acc: !acc, %c: i32) {
  %twin = pipe.read %acc[%c] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
  // (C117)
  // expected-error @+2 {{result must have a power of two of at most 128 columns that divides the accumulator's 32, but got 64}}
  // expected-note @+1 {{read the columns with several operations}}
  %v = pipe.read %acc[%c] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
  return
}
