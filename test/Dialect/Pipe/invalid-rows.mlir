// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Rows of tiles in registers, and MMAs of 16-bit floats (docs/concepts/pipe.md). Every error has a
// twin above it that differs in one place and verifies.

!p = tensor<64x128xbf16, #pipe.distribution<wgmma>>
func.func @twin(%acc: !pipe.fragment<64x64xf32, wgmma>, %p: !p, %v: !pipe.shared<128x64xbf16, swizzle_128B>) {
  pipe.mma %acc, %p, %v transposed : !pipe.fragment<64x64xf32, wgmma>, !p, !pipe.shared<128x64xbf16, swizzle_128B>
  return
}
func.func @bad(%acc: !pipe.fragment<64x64xf32, wgmma>, %p: !p, %v: !pipe.shared<128x64xbf16, swizzle_128B>) {
  // (C660)
  // expected-error @+2 {{b must have 64 rows of 128 elements of a, a multiple of 64 in layout swizzle_128B or else of 32 in swizzle_64B, but got '!pipe.shared<128x64xbf16, swizzle_128B>'}}
  // expected-note @+1 {{load a row for each column of the accumulator, or write 'transposed'}}
  pipe.mma %acc, %p, %v : !pipe.fragment<64x64xf32, wgmma>, !p, !pipe.shared<128x64xbf16, swizzle_128B>
  return
}

// -----

!p = tensor<64x128xbf16, #pipe.distribution<wgmma>>
!v = !pipe.shared<128x64xbf16, swizzle_128B>
!f = tensor<64x1xf32, #pipe.distribution<wgmma>>
func.func @twin(%acc: !pipe.fragment<64x64xf32, wgmma>, %p: !p, %v: !v, %f: !f, %more: i1) {
  pipe.mma %acc, %p, %v accumulate %more times(%f : !f) transposed : !pipe.fragment<64x64xf32, wgmma>, !p, !v
  return
}
func.func @overwritten(%acc: !pipe.fragment<64x64xf32, wgmma>, %p: !p, %v: !v, %f: !f) {
  // (C660)
  // expected-error @+2 {{factors must be 'tensor<64x1xf32, #pipe.distribution<wgmma>>' beside 'accumulate', but got 'tensor<64x1xf32, #pipe.distribution<wgmma>>'}}
  // expected-note @+1 {{pipe.reduce_rows makes a number of each row; an MMA without 'accumulate' overwrites its sums}}
  pipe.mma %acc, %p, %v times(%f : !f) transposed : !pipe.fragment<64x64xf32, wgmma>, !p, !v
  return
}

// -----

!p = tensor<64x128xbf16, #pipe.distribution<wgmma>>
!v = !pipe.shared<128x64xbf16, swizzle_128B>
!wide = tensor<64x8xf32, #pipe.distribution<wgmma>>
func.func @wide(%acc: !pipe.fragment<64x64xf32, wgmma>, %p: !p, %v: !v, %f: !wide, %more: i1) {
  // (C660)
  // expected-error @+2 {{factors must be 'tensor<64x1xf32, #pipe.distribution<wgmma>>' beside 'accumulate', but got 'tensor<64x8xf32, #pipe.distribution<wgmma>>'}}
  // expected-note @+1 {{pipe.reduce_rows makes a number of each row; an MMA without 'accumulate' overwrites its sums}}
  pipe.mma %acc, %p, %v accumulate %more times(%f : !wide) transposed : !pipe.fragment<64x64xf32, wgmma>, !p, !v
  return
}

// -----

!p = tensor<64x24xbf16, #pipe.distribution<wgmma>>
func.func @bad(%acc: !pipe.fragment<64x64xf32, wgmma>, %p: !p, %v: !pipe.shared<24x64xbf16, swizzle_128B>) {
  // (C660)
  // expected-error @+2 {{a in registers must have a multiple of 16 columns, but got 'tensor<64x24xbf16, #pipe.distribution<wgmma>>'}}
  // expected-note @+1 {{an instruction has 16 elements of K}}
  pipe.mma %acc, %p, %v transposed : !pipe.fragment<64x64xf32, wgmma>, !p, !pipe.shared<24x64xbf16, swizzle_128B>
  return
}

// -----

!p = tensor<64x64xf8E4M3FN, #pipe.distribution<wgmma>>
!v = !pipe.shared<64x64xf8E4M3FN, swizzle_64B>
!w = !pipe.shared<64x64xf8E4M3FN, swizzle_32B>
func.func @twin(%acc: !pipe.fragment<64x64xf32, wgmma>, %p: !p, %v: !v) {
  pipe.mma %acc, %p, %v : !pipe.fragment<64x64xf32, wgmma>, !p, !v
  return
}
func.func @bad(%acc: !pipe.fragment<64x64xf32, wgmma>, %p: !p, %w: !w) {
  // (C660)
  // expected-error @+2 {{b must have 64 rows of 64 elements of f8E4M3FN, a multiple of 128 in layout swizzle_128B or else of 64 in swizzle_64B, but got '!pipe.shared<64x64xf8E4M3FN, swizzle_32B>'}}
  // expected-note @+1 {{pipe.transpose_tile makes such a tile of rows of tokens}}
  pipe.mma %acc, %p, %w : !pipe.fragment<64x64xf32, wgmma>, !p, !w
  return
}

// -----

!p = tensor<64x16xf8E4M3FN, #pipe.distribution<wgmma>>
!v = !pipe.shared<64x16xf8E4M3FN>
func.func @bad(%acc: !pipe.fragment<64x64xf32, wgmma>, %p: !p, %v: !v) {
  // (C660)
  // expected-error @+2 {{a in registers must have a multiple of 32 columns, but got 'tensor<64x16xf8E4M3FN, #pipe.distribution<wgmma>>'}}
  // expected-note @+1 {{an instruction has 32 elements of K}}
  pipe.mma %acc, %p, %v : !pipe.fragment<64x64xf32, wgmma>, !p, !v
  return
}

// -----

!s = !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
!t = !pipe.shared<64x128xf8E4M3FN, swizzle_128B>
func.func @twin(%s: !s, %t: !t) {
  pipe.transpose_tile %s[64] into %t : !s, !t
  return
}
func.func @columns(%s: !s, %t: !t) {
  // (C677)
  // expected-error @+2 {{source must have 8-bit floats in a multiple of 32 rows, in panels of 64 or 128, and 64 columns from a multiple of 16 on, but got '!pipe.shared<128x128xf8E4M3FN, swizzle_128B>' from 80 on}}
  // expected-note @+1 {{load panels that are as wide as the swizzle}}
  pipe.transpose_tile %s[80] into %t : !s, !t
  return
}
func.func @shape(%s: !s, %t: !pipe.shared<64x64xf8E4M3FN, swizzle_64B>) {
  // (C677)
  // expected-error @+2 {{tile must have 128 columns of 'f8E4M3FN' in panels of 64 or 128, but got '!pipe.shared<64x64xf8E4M3FN, swizzle_64B>'}}
  // expected-note @+1 {{a row of the tile has a column of the source}}
  pipe.transpose_tile %s into %t : !s, !pipe.shared<64x64xf8E4M3FN, swizzle_64B>
  return
}
func.func @both(%s: !s, %t: !s) {
  // (C677)
  // expected-error @+2 {{must return a tile or fill a destination}}
  // expected-note @+1 {{write a result, or 'into %slot', and not both}}
  %0 = pipe.transpose_tile %s into %t : !s, !s -> !s
  return
}

// -----

!q = !pipe.shared<64x64xbf16, swizzle_128B>
func.func @twin(%acc: !pipe.fragment<64x64xf32, wgmma>, %q: !q, %k: !q) {
  pipe.mma %acc, %q, %k : !pipe.fragment<64x64xf32, wgmma>, !q, !q
  return
}
func.func @bad(%acc: !pipe.fragment<64x64xf32, wgmma>, %q: !q, %k: !q) {
  // (C660)
  // expected-error @+2 {{a must have layout swizzle_128B and 64 rows for each warpgroup of its role, from a multiple of 64 on, but got '!pipe.shared<64x64xbf16, swizzle_128B>' from row 64 on}}
  // expected-note @+1 {{load a higher tile, or begin at another multiple of 64 rows}}
  pipe.mma %acc, %q[64], %k : !pipe.fragment<64x64xf32, wgmma>, !q, !q
  return
}

// -----

!v = tensor<64x32xf32, #pipe.distribution<wgmma>>
func.func @twin(%v: !v, %acc: !pipe.fragment<64x64xf32, wgmma>) {
  pipe.write %v, %acc[32] : !v, !pipe.fragment<64x64xf32, wgmma>
  return
}
func.func @bad(%v: !v, %acc: !pipe.fragment<64x64xf32, wgmma>) {
  // (C661)
  // expected-error @+2 {{value must have the distribution and rows of '!pipe.fragment<64x64xf32, wgmma>' and lie within it from a multiple of 8 columns on, but got 'tensor<64x32xf32, #pipe.distribution<wgmma>>' from column 40 on}}
  // expected-note @+1 {{write columns that pipe.read reads of the same fragment}}
  pipe.write %v, %acc[40] : !v, !pipe.fragment<64x64xf32, wgmma>
  return
}

// -----

!v = tensor<64x32xf32, #pipe.distribution<wgmma>>
func.func @twin(%v: !v) {
  %0 = pipe.reduce_rows add %v : !v -> tensor<64x8xf32, #pipe.distribution<wgmma>>
  return
}
func.func @bad(%v: !v) {
  // (C662)
  // expected-error @+2 {{result must have the distribution of 'tensor<64x32xf32, #pipe.distribution<wgmma>>', of a multiple of 8 columns and not the columns of threads, and 1 column or 8, but got 'tensor<64x16xf32, #pipe.distribution<wgmma>>'}}
  // expected-note @+1 {{1 column has the whole rows, and 8 what each thread has of them}}
  %0 = pipe.reduce_rows add %v : !v -> tensor<64x16xf32, #pipe.distribution<wgmma>>
  return
}

// -----

!v = tensor<64x32xf32, #pipe.distribution<wgmma>>
func.func @twin(%r: tensor<64x1xf32, #pipe.distribution<wgmma>>) {
  %0 = pipe.broadcast_rows %r : tensor<64x1xf32, #pipe.distribution<wgmma>> -> !v
  return
}
func.func @bad(%r: tensor<64x8xf32, #pipe.distribution<wgmma>>) {
  // (C663)
  // expected-error @+2 {{value must have 1 column of the distribution and elements of 'tensor<64x32xf32, #pipe.distribution<wgmma>>', but got 'tensor<64x8xf32, #pipe.distribution<wgmma>>'}}
  // expected-note @+1 {{pipe.reduce_rows makes one column}}
  %0 = pipe.broadcast_rows %r : tensor<64x8xf32, #pipe.distribution<wgmma>> -> !v
  return
}

// -----

func.func @twin() {
  %0 = pipe.element_index 1 : tensor<64x8xi32, #pipe.distribution<wgmma>>
  %1 = pipe.element_index 0 : tensor<128x8xi32, #pipe.distribution<lanes>>
  return
}
func.func @bad() {
  // (C664)
  // expected-error @+2 {{result must be of wgmma or lanes, but got 'tensor<16x8xi32, #pipe.distribution<mma_sync>>'}}
  // expected-note @+1 {{write #pipe.distribution<wgmma> or #pipe.distribution<lanes>}}
  %0 = pipe.element_index 1 : tensor<16x8xi32, #pipe.distribution<mma_sync>>
  return
}

// -----

!map = !pipe.tensor_map<64x64xbf16, swizzle_128B>
!k = !pipe.shared<64x64xbf16, swizzle_128B>
func.func @twin(%m: !map, %i: i32) {
  %0 = pipe.load %m[%i, %i] {pipe.ring = "keys"} : !map -> !k
  return
}
func.func @bad(%m: !map, %i: i32) {
  // (C665)
  // expected-error @+2 {{'pipe.ring' must be the name of a ring, at an operation that makes a tile in a kernel without roles, but got 1 : i64}}
  // expected-note @+1 {{write {pipe.ring = "keys"} before pipe-specialize-warps}}
  %0 = pipe.load %m[%i, %i] {pipe.ring = 1} : !map -> !k
  return
}

// -----

func.func @twin() {
  %0 = pipe.accumulator {pipe.ring = "scores"} : !pipe.tmem<128x64xf32>
  return
}
func.func @bad() {
  // (C665)
  // expected-error @+2 {{'pipe.ring' must be the name of a ring, at an operation that makes a tile in a kernel without roles, but got "scores"}}
  // expected-note @+1 {{write {pipe.ring = "keys"} before pipe-specialize-warps}}
  %0 = pipe.accumulator {pipe.ring = "scores"} : !pipe.fragment<128x64xf32, lanes>
  return
}

// -----

!p = tensor<128x64xbf16, #pipe.distribution<lanes>>
func.func @twin(%v: !p, %slot: !pipe.tmem<128x64xbf16>) {
  %0 = pipe.write %v : !p -> !pipe.tmem<128x64xbf16>
  pipe.write %v, %slot : !p, !pipe.tmem<128x64xbf16>
  return
}
func.func @bad(%v: !p, %slot: !pipe.tmem<128x64xf16>) {
  // (C673)
  // expected-error @+2 {{value must be lanes with the shape and elements of operand '!pipe.tmem<128x64xf16>', but got 'tensor<128x64xbf16, #pipe.distribution<lanes>>'}}
  // expected-note @+1 {{round sums to the elements of the operand first}}
  pipe.write %v, %slot : !p, !pipe.tmem<128x64xf16>
  return
}

// -----

func.func @twin(%v: tensor<128x256xbf16, #pipe.distribution<lanes>>) {
  %0 = pipe.write %v : tensor<128x256xbf16, #pipe.distribution<lanes>> -> !pipe.tmem<128x256xbf16>
  return
}
func.func @bad(%v: tensor<128x192xbf16, #pipe.distribution<lanes>>) {
  // (C673)
  // expected-error @+2 {{value must have a power of two of columns, but got 192}}
  // expected-note @+1 {{write several operands, which as many multiplications take}}
  %0 = pipe.write %v : tensor<128x192xbf16, #pipe.distribution<lanes>> -> !pipe.tmem<128x192xbf16>
  return
}

// -----

!p = tensor<128x64xbf16, #pipe.distribution<lanes>>
func.func @bad(%v: !p, %slot: !pipe.tmem<128x64xbf16>) {
  // (C673)
  // expected-error @+2 {{into tensor memory must return a tile or fill a slot, all of it}}
  // expected-note @+1 {{write '-> TILE' or ', %slot', and no column}}
  pipe.write %v, %slot[0] : !p, !pipe.tmem<128x64xbf16>
  return
}

// -----

!v = tensor<64x32xf32, #pipe.distribution<wgmma>>
func.func @bad(%v: !v, %acc: !pipe.fragment<64x64xf32, wgmma>) {
  // (C661)
  // expected-error @+2 {{into a fragment must have a column, and no result}}
  // expected-note @+1 {{write '[0]' behind the fragment}}
  pipe.write %v, %acc : !v, !pipe.fragment<64x64xf32, wgmma>
  return
}

// -----

!v = tensor<128x32xf32, #pipe.distribution<lanes>>
func.func @lanes(%v: !v, %r: tensor<128x1xf32, #pipe.distribution<lanes>>) {
  %0 = pipe.reduce_rows maximum %v : !v -> tensor<128x1xf32, #pipe.distribution<lanes>>
  %1 = pipe.broadcast_rows %r : tensor<128x1xf32, #pipe.distribution<lanes>> -> !v
  return
}

// -----

// Numbers of rows are for operations on rows: a thread has two of them.
func.func @bad(%r: tensor<64x1xf32, #pipe.distribution<wgmma>>, %f: !pipe.fragment<64x64xf32, wgmma>) {
  // expected-error @+1 {{operand #0 must be tensor with a #pipe.distribution and more than one number a row}}
  pipe.write %r, %f[0] : tensor<64x1xf32, #pipe.distribution<wgmma>>, !pipe.fragment<64x64xf32, wgmma>
  return
}

// -----

!f = tensor<128x1xf32, #pipe.distribution<lanes>>
func.func @twin(%f: !f, %sums: !pipe.tmem<128x64xf32>) {
  pipe.scale_rows %sums by %f : !pipe.tmem<128x64xf32>, !f
  return
}
func.func @bad(%f: !f, %sums: !pipe.tmem<128x48xf32>) {
  // (C675)
  // expected-error @+2 {{factors must be lanes of 1 column with the rows of sums of f32, which have a multiple of 32 columns, but got 'tensor<128x1xf32, #pipe.distribution<lanes>>' for '!pipe.tmem<128x48xf32>'}}
  // expected-note @+1 {{pipe.reduce_rows makes one column}}
  pipe.scale_rows %sums by %f : !pipe.tmem<128x48xf32>, !f
  return
}

// -----

func.func @twin() {
  %0 = pipe.accumulator {pipe.kept, pipe.ring = "sums"} : !pipe.tmem<128x64xf32>
  return
}
func.func @bad() {
  // (C676)
  // expected-error @+2 {{'pipe.kept' must be at a channel, or at an accumulator of a ring in tensor memory, but got unit}}
  // expected-note @+1 {{write {pipe.kept, pipe.ring = "sums"}}}
  %0 = pipe.accumulator {pipe.kept} : !pipe.tmem<128x64xf32>
  return
}

// -----

!sums = !pipe.channel<!pipe.tmem<128x64xf32>>
func.func @twin() {
  %0 = pipe.channel from tensor to threads(128) {pipe.kept} : !sums
  return
}
func.func @threads() {
  // (C674)
  // expected-error @+2 {{with 'pipe.kept' must have one tile of tensor memory and one stage, from tensor to one consumer}}
  // expected-note @+1 {{give other tiles a channel of their own, and the channel depth 1}}
  %0 = pipe.channel from threads(128) to tensor {pipe.kept} : !sums
  return
}

// -----

!p = tensor<64x64xbf16, #pipe.distribution<wgmma>>
!v = !pipe.shared<64x192xbf16, swizzle_128B>
func.func @twin(%acc: !pipe.fragment<64x128xf32, wgmma>, %p: !p, %v: !v) {
  pipe.mma %acc, %p, %v[64] transposed : !pipe.fragment<64x128xf32, wgmma>, !p, !v
  return
}
func.func @column(%acc: !pipe.fragment<64x128xf32, wgmma>, %p: !p, %v: !v) {
  // (C660)
  // expected-error @+2 {{b must have 64 rows of a multiple of 64 elements of a, and the 128 columns of the accumulator from a multiple of 64 on, in layout swizzle_128B, or of 32 in swizzle_64B, but got '!pipe.shared<64x192xbf16, swizzle_128B>' from column 128 on}}
  // expected-note @+1 {{load a row for each element of K, and a column for each of the accumulator}}
  pipe.mma %acc, %p, %v[128] transposed : !pipe.fragment<64x128xf32, wgmma>, !p, !v
  return
}
