// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Instructions of K = 96. Every error has a twin above it that differs in one place and verifies. Labels refer
// to PipeConstraints.td.

!acc = !pipe.tmem<256x192xf32, pair>
!wacc = !pipe.tmem<128x96xf32>
!a = !pipe.shared<128x768xf4E2M1FN, swizzle_128B>
!b = !pipe.shared<96x768xf4E2M1FN, swizzle_128B>
!sa = !pipe.tmem<128x48xf8E4M3FN, tiled_128x4, pair>
!wsa = !pipe.tmem<128x48xf8E4M3FN, tiled_128x4>
!sb = !pipe.tmem<256x48xf8E4M3FN, tiled_128x4, pair>
!wsb = !pipe.tmem<128x48xf8E4M3FN, tiled_128x4>
func.func @alone(%acc: !acc, %a: !a, %b: !b, %sa: !sa, %sb: !sb, %wacc: !wacc, %wsa: !wsa, %wsb: !wsb, %p: i1) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %p depth k96 : !acc, !a, !sa, !b, !sb
  // (C311)
  // expected-error @+2 {{accumulator of instructions of K = 96 must be 256 rows of a pair, but got '!pipe.tmem<128x96xf32>'}}
  // expected-note @+1 {{leave 'depth' out, or take !pipe.tmem<256xNxf32, pair>}}
  pipe.mma %wacc, %a scaled %wsa, %b scaled %wsb accumulate %p depth k96 : !wacc, !a, !wsa, !b, !wsb
  return
}

// -----

!acc = !pipe.tmem<256x192xf32, pair>
!a = !pipe.shared<128x768xf4E2M1FN, swizzle_128B>
!wa = !pipe.shared<128x1024xf4E2M1FN, swizzle_128B>
!b = !pipe.shared<96x768xf4E2M1FN, swizzle_128B>
!wb = !pipe.shared<96x1024xf4E2M1FN, swizzle_128B>
!sa = !pipe.tmem<128x48xf8E4M3FN, tiled_128x4, pair>
!wsa = !pipe.tmem<128x64xf8E4M3FN, tiled_128x4, pair>
!sb = !pipe.tmem<256x48xf8E4M3FN, tiled_128x4, pair>
!wsb = !pipe.tmem<256x64xf8E4M3FN, tiled_128x4, pair>
func.func @depth(%acc: !acc, %a: !a, %b: !b, %sa: !sa, %sb: !sb, %wa: !wa, %wb: !wb, %wsa: !wsa, %wsb: !wsb, %p: i1) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %p depth k96 : !acc, !a, !sa, !b, !sb
  // (C311)
  // expected-error @+2 {{a must be f4E2M1FN of layout swizzle_128B, with a K that is a multiple of 768, for instructions of K = 96, but got '!pipe.shared<128x1024xf4E2M1FN, swizzle_128B>'}}
  // expected-note @+1 {{leave 'depth' out, and instructions have K = 64}}
  pipe.mma %acc, %wa scaled %wsa, %wb scaled %wsb accumulate %p depth k96 : !acc, !wa, !wsa, !wb, !wsb
  return
}

// -----

!acc = !pipe.tmem<256x192xf32, pair>
!a = !pipe.shared<128x768xf4E2M1FN, swizzle_128B>
!b = !pipe.shared<96x768xf4E2M1FN, swizzle_128B>
!wb = !pipe.shared<96x768xf4E2M1FN, swizzle_64B>
!sa = !pipe.tmem<128x48xf8E4M3FN, tiled_128x4, pair>
!sb = !pipe.tmem<256x48xf8E4M3FN, tiled_128x4, pair>
func.func @layout(%acc: !acc, %a: !a, %b: !b, %sa: !sa, %sb: !sb, %wb: !wb, %p: i1) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %p depth k96 : !acc, !a, !sa, !b, !sb
  // (C311)
  // expected-error @+2 {{b must be f4E2M1FN of layout swizzle_128B, with a K that is a multiple of 768, for instructions of K = 96, but got '!pipe.shared<96x768xf4E2M1FN, swizzle_64B>'}}
  // expected-note @+1 {{leave 'depth' out, and instructions have K = 64}}
  pipe.mma %acc, %a scaled %sa, %wb scaled %sb accumulate %p depth k96 : !acc, !a, !sa, !wb, !sb
  return
}

// -----

!acc = !pipe.tmem<256x192xf32, pair>
!a = !pipe.shared<128x768xf4E2M1FN, swizzle_128B>
!b = !pipe.shared<96x768xf4E2M1FN, swizzle_128B>
!sa = !pipe.tmem<128x48xf8E4M3FN, tiled_128x4, pair>
!sb = !pipe.tmem<256x48xf8E4M3FN, tiled_128x4, pair>
!wsb = !pipe.tmem<384x48xf8E4M3FN, tiled_128x4, pair>
func.func @rows(%acc: !acc, %a: !a, %b: !b, %sa: !sa, %sb: !sb, %wsb: !wsb, %p: i1) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %p depth k96 : !acc, !a, !sa, !b, !sb
  // (C311)
  // expected-error @+2 {{b_scales of instructions of K = 96 must have 256 rows, those of the accumulator in whole scale tiles, but got '!pipe.tmem<384x48xf8E4M3FN, tiled_128x4, pair>'}}
  // expected-note @+1 {{copy the scales of every column, in scale tiles of 128 rows}}
  pipe.mma %acc, %a scaled %sa, %b scaled %wsb accumulate %p depth k96 : !acc, !a, !sa, !b, !wsb
  return
}

// -----

// Parts: of scales of 16 elements, two instructions have three whole blocks of scales, of 32, four.
!acc = !pipe.tmem<256x256xf32, pair>
!a = !pipe.shared<128x768xf4E2M1FN, swizzle_128B>
!sa = !pipe.tmem<128x12xf8E4M3FN, tiled_128x4, pair>
!sb = !pipe.tmem<256x12xf8E4M3FN, tiled_128x4, pair>
func.func @part(%acc: !acc, %a: !a, %b: !a, %sa: !sa, %sb: !sb, %p: i1) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %p depth k96 {part = array<i64: 6, 2>} : !acc, !a, !sa, !a, !sb
  // (C486)
  // expected-error @+2 {{part must be [first, number] of the 8 instructions of K = 96 that the tile has, from a block of four scales on, but got array<i64: 7, 2>}}
  // expected-note @+1 {{scales of 16 elements begin with every second of them, of 32 with every fourth}}
  pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %p depth k96 {part = array<i64: 7, 2>} : !acc, !a, !sa, !a, !sb
  return
}

// -----

!acc = !pipe.tmem<256x256xf32, pair>
!a = !pipe.shared<128x768xf4E2M1FN, swizzle_128B>
!sa = !pipe.tmem<128x12xf8E8M0FNU, tiled_128x4, pair>
!sb = !pipe.tmem<256x12xf8E8M0FNU, tiled_128x4, pair>
func.func @begin(%acc: !acc, %a: !a, %b: !a, %sa: !sa, %sb: !sb, %p: i1) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %p depth k96 {part = array<i64: 4, 4>} : !acc, !a, !sa, !a, !sb
  // (C486)
  // expected-error @+2 {{part must be [first, number] of the 8 instructions of K = 96 that the tile has, from a block of four scales on, but got array<i64: 2, 4>}}
  // expected-note @+1 {{scales of 16 elements begin with every second of them, of 32 with every fourth}}
  pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %p depth k96 {part = array<i64: 2, 4>} : !acc, !a, !sa, !a, !sb
  return
}

// -----

!acc = !pipe.tmem<256x256xf32, pair>
!a = !pipe.shared<128x768xf4E2M1FN, swizzle_128B>
!sa = !pipe.tmem<128x12xf8E4M3FN, tiled_128x4, pair>
!sb = !pipe.tmem<256x12xf8E4M3FN, tiled_128x4, pair>
!wsa = !pipe.tmem<128x48xf8E4M3FN, tiled_128x4, pair>
func.func @scales(%acc: !acc, %a: !a, %b: !a, %sa: !sa, %sb: !sb, %wsa: !wsa, %p: i1) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %p depth k96 {part = array<i64: 0, 2>} : !acc, !a, !sa, !a, !sb
  // (C116)
  // expected-error @+2 {{a_scales must have 12 columns for K = 192 and blocks of 16, but got 48}}
  // expected-note @+1 {{copy the scales of as many blocks as the tile has, rounded up to 4}}
  pipe.mma %acc, %a scaled %wsa, %b scaled %sb accumulate %p depth k96 {part = array<i64: 0, 2>} : !acc, !a, !wsa, !a, !sb
  return
}
