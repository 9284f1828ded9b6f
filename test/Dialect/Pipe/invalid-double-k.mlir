// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Instructions of the double K. Every error has a twin above it that differs in one place and verifies. Labels refer
// to PipeConstraints.td.

!acc = !pipe.tmem<256x192xf32, pair>
!half = !pipe.tmem<128x192xf32, pair>
!a = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!ha = !pipe.shared<64x256xf4E2M1FN, swizzle_128B>
!b = !pipe.shared<96x256xf4E2M1FN, swizzle_128B>
!sa = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4, pair>
!sb = !pipe.tmem<256x16xf8E4M3FN, tiled_128x4, pair>
!hb = !pipe.tmem<192x16xf8E4M3FN, halves_128x4, pair>
func.func @half(%acc: !acc, %half: !half, %a: !a, %ha: !ha, %b: !b, %sa: !sa, %sb: !sb, %hb: !hb, %p: i1) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %p depth double : !acc, !a, !sa, !b, !sb
  // (C317)
  // expected-error @+2 {{accumulator of instructions of twice the K must be 128 rows of a CTA or 256 of a pair, but got '!pipe.tmem<128x192xf32, pair>'}}
  // expected-note @+1 {{leave 'depth' out, or take !pipe.tmem<128xNxf32> or <256xNxf32, pair>}}
  pipe.mma %half, %ha scaled %sa, %b scaled %hb accumulate %p depth double : !half, !ha, !sa, !b, !hb
  return
}

// -----

!acc = !pipe.tmem<128x64xf32>
!a = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!b = !pipe.shared<64x256xf4E2M1FN, swizzle_128B>
!wb = !pipe.shared<64x256xf4E2M1FN, swizzle_64B>
!sa = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!sb = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
func.func @rows(%acc: !acc, %a: !a, %b: !b, %wb: !wb, %sa: !sa, %sb: !sb, %p: i1) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %p depth double : !acc, !a, !sa, !b, !sb
  // (C317)
  // expected-error @+2 {{b must be f4E2M1FN, or of f8E4M3FN or f8E5M2 like the other operand, of layout swizzle_128B with whole lines of 128 bytes, for instructions of twice the K, but got '!pipe.shared<64x256xf4E2M1FN, swizzle_64B>'}}
  // expected-note @+1 {{leave 'depth' out, and instructions have K = 64 or 32}}
  pipe.mma %acc, %a scaled %sa, %wb scaled %sb accumulate %p depth double : !acc, !a, !sa, !wb, !sb
  return
}

// -----

!acc = !pipe.tmem<128x64xf32>
!a = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!b = !pipe.shared<64x256xf4E2M1FN, swizzle_128B>
!sa = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!sb = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!wsb = !pipe.tmem<256x16xf8E4M3FN, tiled_128x4>
func.func @scales(%acc: !acc, %a: !a, %b: !b, %sa: !sa, %sb: !sb, %wsb: !wsb, %p: i1) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %p depth double : !acc, !a, !sa, !b, !sb
  // (C317)
  // expected-error @+2 {{b_scales of instructions of twice the K must have 128 rows, those of the accumulator in whole scale tiles, but got '!pipe.tmem<256x16xf8E4M3FN, tiled_128x4>'}}
  // expected-note @+1 {{copy the scales of every column, in scale tiles of 128 rows}}
  pipe.mma %acc, %a scaled %sa, %b scaled %wsb accumulate %p depth double : !acc, !a, !sa, !b, !wsb
  return
}

// -----

!acc = !pipe.tmem<128x64xf32>
!a = !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
!b = !pipe.shared<64x128xf8E4M3FN, swizzle_128B>
!wb = !pipe.shared<64x128xf4E2M1FN, swizzle_128B_b4x16_p64>
!sa = !pipe.tmem<128x4xf8E8M0FNU, tiled_128x4>
func.func @bytes(%acc: !acc, %a: !a, %b: !b, %wb: !wb, %sa: !sa, %p: i1) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sa accumulate %p depth double : !acc, !a, !sa, !b, !sa
  // (C317)
  // expected-error @+2 {{b must be f4E2M1FN, or of f8E4M3FN or f8E5M2 like the other operand, of layout swizzle_128B with whole lines of 128 bytes, for instructions of twice the K, but got '!pipe.shared<64x128xf4E2M1FN, swizzle_128B_b4x16_p64>'}}
  // expected-note @+1 {{leave 'depth' out, and instructions have K = 64 or 32}}
  pipe.mma %acc, %a scaled %sa, %wb scaled %sa accumulate %p depth double : !acc, !a, !sa, !wb, !sa
  return
}

// -----

!acc = !pipe.tmem<128x64xf32>
!a = !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
!b = !pipe.shared<64x128xf8E4M3FN, swizzle_128B>
func.func @dense(%acc: !acc, %a: !a, %b: !b, %p: i1) {
  pipe.mma %acc, %a, %b accumulate %p depth double : !acc, !a, !b
  // (C373)
  // expected-error @+2 {{depth must be single or double for operands without scales, and have no part}}
  // expected-note @+1 {{leave 'depth' and 'part' out}}
  pipe.mma %acc, %a, %b accumulate %p depth k96 : !acc, !a, !b
  return
}
