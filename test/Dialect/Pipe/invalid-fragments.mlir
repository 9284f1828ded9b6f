// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// MMAs whose accumulator is in registers (docs/concepts/pipe.md). Every error has a twin above it that
// differs in one place and verifies.

func.func @twin(%b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %s: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  %w = pipe.dequantize %b scaled %s : !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
      -> !pipe.shared<128x128xf16, swizzle_128B>
  return
}
func.func @bad(%b: !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, %s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) {
  // (C180)
  // expected-error @+2 {{source must be f4E2M1FN with rows of 64 bytes and layout swizzle_64B, or with scales of f8E8M0FNU elements of 6 or 8 bits with rows of 128 bytes and layout swizzle_128B, but got}}
  // expected-note @+1 {{only one panel is converted at a time: load 128 elements of k}}
  %w = pipe.dequantize %b scaled %s : !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
      -> !pipe.shared<128x256xf16, swizzle_128B>
  return
}

// -----

func.func @twin(%b: !pipe.shared<128x128xf8E5M2, swizzle_128B>, %s: !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>) {
  %w = pipe.dequantize %b scaled %s : !pipe.shared<128x128xf8E5M2, swizzle_128B>, !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
      -> !pipe.shared<128x128xbf16, swizzle_128B>
  return
}
func.func @bad(%b: !pipe.shared<128x128xf8E5M2, swizzle_128B>, %s: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  // (C180)
  // expected-error @+2 {{source must be f4E2M1FN with rows of 64 bytes and layout swizzle_64B, or with scales of f8E8M0FNU}}
  // expected-note @+1 {{only one panel is converted at a time: load 128 elements of k}}
  %w = pipe.dequantize %b scaled %s : !pipe.shared<128x128xf8E5M2, swizzle_128B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
      -> !pipe.shared<128x128xf16, swizzle_128B>
  return
}

// -----

func.func @twin(%b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %s: !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>) {
  %w = pipe.dequantize %b scaled %s : !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
      -> !pipe.shared<128x128xbf16, swizzle_128B>
  return
}
func.func @bad(%b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %s: !pipe.shared<128x8xf8E8M0FNU, tiled_128x4>) {
  // (C180)
  // expected-error @+2 {{scales of source must have layout tiled_128x4, a column for each block of 128 elements, and at least 128 rows}}
  // expected-note @+1 {{copy scale tiles of 128 rows beside the tile}}
  %w = pipe.dequantize %b scaled %s : !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E8M0FNU, tiled_128x4>
      -> !pipe.shared<128x128xbf16, swizzle_128B>
  return
}

// -----

func.func @twin(%b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %s: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  %w = pipe.dequantize %b scaled %s : !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
      -> !pipe.shared<128x128xf16, swizzle_128B>
  return
}
func.func @bad(%b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %s: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  // (C180)
  // expected-error @+2 {{tile must be '!pipe.shared<128x128xf16, swizzle_128B>', but got}}
  // expected-note @+1 {{write the shape of the source, f16 for scales of f8E4M3FN, and bf16 for others}}
  %w = pipe.dequantize %b scaled %s : !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
      -> !pipe.shared<128x128xbf16, swizzle_128B>
  return
}

// -----

func.func @twin(%b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %s: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %to: !pipe.shared<128x128xf16, swizzle_128B>) {
  pipe.dequantize %b scaled %s into %to : !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, !pipe.shared<128x128xf16, swizzle_128B>
  return
}
func.func @bad(%b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %s: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %to: !pipe.shared<128x128xf16, swizzle_128B>) {
  // (C652)
  // expected-error @+2 {{must return a tile or fill a destination}}
  // expected-note @+1 {{write a result, or 'into %slot', and not both}}
  %w = pipe.dequantize %b scaled %s into %to : !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, !pipe.shared<128x128xf16, swizzle_128B> -> !pipe.shared<128x128xf16, swizzle_128B>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<64x128xf32, wgmma>, %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %b: !pipe.shared<128x128xf16, swizzle_128B>, %more: i1) {
  pipe.mma %acc, %a scaled %sa, %b accumulate %more : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, !pipe.shared<128x128xf16, swizzle_128B>
  return
}
func.func @bad(%acc: !pipe.fragment<128x128xf32, wgmma>, %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %b: !pipe.shared<128x128xf16, swizzle_128B>, %more: i1) {
  // (C181)
  // expected-error @+2 {{accumulator must be an f32 fragment of wgmma with 64 rows, but got}}
  // expected-note @+1 {{write a !pipe.fragment<64xNxf32, wgmma> for each 64 rows}}
  pipe.mma %acc, %a scaled %sa, %b accumulate %more : !pipe.fragment<128x128xf32, wgmma>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, !pipe.shared<128x128xf16, swizzle_128B>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<64x128xf32, wgmma>, %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %b: !pipe.shared<128x128xf16, swizzle_128B>, %more: i1) {
  pipe.mma %acc, %a scaled %sa, %b accumulate %more : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, !pipe.shared<128x128xf16, swizzle_128B>
  return
}
func.func @bad(%acc: !pipe.fragment<64x128xf8E4M3FN, wgmma>, %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %b: !pipe.shared<128x128xf16, swizzle_128B>, %more: i1) {
  // (C650)
  // expected-error @+2 {{accumulator must be f32 in tensor memory or f32 in a fragment of wgmma or f32 in a fragment of mma_sync, but got '!pipe.fragment<64x128xf8E4M3FN, wgmma>'}}
  // expected-note @+1 {{MMAs with the operands before it are tcgen05 mxf4nvf4, tcgen05 mxf4nvf4 with A in tensor memory, tcgen05 mxf8f6f4, tcgen05 mxf8f6f4 with A in tensor memory, }}
  pipe.mma %acc, %a scaled %sa, %b accumulate %more : !pipe.fragment<64x128xf8E4M3FN, wgmma>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, !pipe.shared<128x128xf16, swizzle_128B>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<64x128xf32, wgmma>, %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %b: !pipe.shared<128x128xf16, swizzle_128B>, %more: i1) {
  pipe.mma %acc, %a scaled %sa, %b accumulate %more : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, !pipe.shared<128x128xf16, swizzle_128B>
  return
}
func.func @bad(%acc: !pipe.fragment<64x128xf32, wgmma>, %a: !pipe.shared<128x128xf4E2M1FN>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %b: !pipe.shared<128x128xf16, swizzle_128B>, %more: i1) {
  // (C180)
  // expected-error @+2 {{a must be f4E2M1FN with rows of 64 bytes and layout swizzle_64B, or with scales of f8E8M0FNU elements of 6 or 8 bits with rows of 128 bytes and layout swizzle_128B, but got}}
  // expected-note @+1 {{only one panel is converted at a time: load 128 elements of k}}
  pipe.mma %acc, %a scaled %sa, %b accumulate %more : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<128x128xf4E2M1FN>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, !pipe.shared<128x128xf16, swizzle_128B>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<64x128xf32, wgmma>, %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %b: !pipe.shared<128x128xf16, swizzle_128B>, %more: i1) {
  pipe.mma %acc, %a scaled %sa, %b accumulate %more : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, !pipe.shared<128x128xf16, swizzle_128B>
  return
}
func.func @bad(%acc: !pipe.fragment<64x128xf32, wgmma>, %a: !pipe.shared<96x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %b: !pipe.shared<128x128xf16, swizzle_128B>, %more: i1) {
  // (C181)
  // expected-error @+2 {{a must have 64 rows for each warpgroup of its role, but got}}
  // expected-note @+1 {{let 'a' have 64 rows for each 4 warps of the role}}
  pipe.mma %acc, %a scaled %sa, %b accumulate %more : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<96x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, !pipe.shared<128x128xf16, swizzle_128B>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<64x128xf32, wgmma>, %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %b: !pipe.shared<128x128xf16, swizzle_128B>, %more: i1) {
  pipe.mma %acc, %a scaled %sa, %b accumulate %more : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, !pipe.shared<128x128xf16, swizzle_128B>
  return
}
func.func @bad(%acc: !pipe.fragment<64x128xf32, wgmma>, %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %b: !pipe.shared<64x128xf16, swizzle_128B>, %more: i1) {
  // (C181)
  // expected-error @+2 {{b must be '!pipe.shared<128x128xf16, swizzle_128B>', but got}}
  // expected-note @+1 {{convert b with pipe.dequantize, or load a tile of this type}}
  pipe.mma %acc, %a scaled %sa, %b accumulate %more : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, !pipe.shared<64x128xf16, swizzle_128B>
  return
}

// -----

!powers = !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
!floats = !pipe.shared<128x128xbf16, swizzle_128B>
func.func @twin(%acc: !pipe.fragment<64x128xf32, wgmma>, %a: !pipe.shared<128x128xf6E3M2FN, swizzle_128B>, %sa: !powers, %b: !floats, %more: i1) {
  pipe.mma %acc, %a scaled %sa, %b accumulate %more in_order : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<128x128xf6E3M2FN, swizzle_128B>, !powers, !floats
  pipe.mma %acc, %a scaled %sa, %b accumulate %more : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<128x128xf6E3M2FN, swizzle_128B>, !powers, !floats
  return
}
func.func @bad(%acc: !pipe.fragment<64x128xf32, wgmma>, %a: !pipe.shared<128x128xf8E5M2, swizzle_128B>, %sa: !powers, %b: !floats, %more: i1) {
  // (C181)
  // expected-error @+2 {{a must have elements of 4 or 6 bits with 'in_order', but got '!pipe.shared<128x128xf8E5M2, swizzle_128B>'}}
  // expected-note @+1 {{elements of 8 bits are converted in the order of registers: leave 'in_order' out, and convert b too}}
  pipe.mma %acc, %a scaled %sa, %b accumulate %more in_order : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<128x128xf8E5M2, swizzle_128B>, !powers, !floats
  return
}

// -----

!powers = !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
func.func @twin(%b: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %s: !powers) {
  %w = pipe.dequantize %b scaled %s : !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !powers -> !pipe.shared<128x128xbf16, swizzle_128B>
  return
}
func.func @bad(%b: !pipe.shared<128x128xf6E2M3FN, swizzle_128B>, %s: !powers) {
  // (C180)
  // expected-error @+2 {{tile must be '!pipe.shared<128x128xbf16, swizzle_128B>', but got '!pipe.shared<128x128xf16, swizzle_128B>'}}
  // expected-note @+1 {{write the shape of the source, f16 for scales of f8E4M3FN, and bf16 for others}}
  %w = pipe.dequantize %b scaled %s : !pipe.shared<128x128xf6E2M3FN, swizzle_128B>, !powers -> !pipe.shared<128x128xf16, swizzle_128B>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<64x128xf32, wgmma>) {
  %v = pipe.read %acc[96] : !pipe.fragment<64x128xf32, wgmma> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  return
}
func.func @bad(%acc: !pipe.fragment<64x128xf32, wgmma>) {
  // (C182)
  // expected-error @+2 {{tile must be within the 64x128 of the accumulator, from a multiple of 64 rows and 8 columns on, but got 64x32 from [0, 104] on}}
  // expected-note @+1 {{read fewer columns, or from an earlier one on}}
  %v = pipe.read %acc[104] : !pipe.fragment<64x128xf32, wgmma> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<64x128xf32, wgmma>) {
  %v = pipe.read %acc[0] : !pipe.fragment<64x128xf32, wgmma> -> tensor<64x8xf32, #pipe.distribution<wgmma>>
  return
}
func.func @bad(%acc: !pipe.fragment<64x128xf8E4M3FN, wgmma>) {
  // (C182)
  // expected-error @+2 {{result must have the distribution of its accumulator of f32, but got}}
  // expected-note @+1 {{write the kind of the fragment in the #pipe.distribution}}
  %v = pipe.read %acc[0] : !pipe.fragment<64x128xf8E4M3FN, wgmma> -> tensor<64x8xf32, #pipe.distribution<wgmma>>
  return
}

// -----

func.func @twin(%p: !pipe.global<1x512xf32>, %m: i32, %n: i32) {
  %f = pipe.fetch %p[%m, %n] : !pipe.global<1x512xf32> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  return
}
func.func @bad(%p: !pipe.global<1x512xbf16>, %m: i32, %n: i32, %r: i32) {
  // (C144)
  // expected-error @+2 {{buffer must have 2 dimensions of 'f32', but got}}
  // expected-note @+1 {{pass a buffer of that element type, in rows and columns}}
  %f = pipe.fetch %p[%m, %n] : !pipe.global<1x512xbf16> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  return
}

// -----

func.func @twin(%p: !pipe.global<1x512xf32>, %m: i32, %n: i32) {
  %f = pipe.fetch %p[%m, %n] : !pipe.global<1x512xf32> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  return
}
func.func @bad(%p: !pipe.global<1x512xf32>, %m: i32, %n: i32, %r: i32) {
  // (C144)
  // expected-error @+2 {{expects no operand 'rows' for static rows, but got one}}
  // expected-note @+1 {{='rows' is the number of rows that exist, which only a dynamic buffer leaves open}}
  %f = pipe.fetch %p[%m, %n] rows %r : !pipe.global<1x512xf32> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  return
}

// -----

func.func @twin(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %d: !pipe.global<?x512xbf16>, %m: i32, %n: i32, %r: i32) {
  pipe.store %v, %d[%m, %n] rows %r : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<?x512xbf16>
  return
}
func.func @bad(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %d: !pipe.global<?x512xf32>, %m: i32, %n: i32, %r: i32) {
  // (C118)
  // expected-error @+2 {{destination must be a buffer of 'bf16' and rank 2, but got}}
  // expected-note @+1 {{convert the value to the elements of the buffer first}}
  pipe.store %v, %d[%m, %n] rows %r : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<?x512xf32>
  return
}

// -----

func.func @twin(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %d: !pipe.global<?x512xbf16>, %m: i32, %n: i32, %r: i32) {
  pipe.store %v, %d[%m, %n] rows %r : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<?x512xbf16>
  return
}
func.func @bad(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %d: !pipe.global<?x512xbf16>, %m: i32, %n: i32, %r: i32) {
  // (C118)
  // expected-error @+2 {{must bound the rows of a destination with dynamic rows}}
  // expected-note @+1 {{add 'rows %m'}}
  pipe.store %v, %d[%m, %n] : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<?x512xbf16>
  return
}

// -----

func.func @twin(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %d: !pipe.global<?x512xbf16>, %m: i32, %n: i32, %r: i32) {
  pipe.store %v, %d[%m, %n] rows %r : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<?x512xbf16>
  return
}
func.func @bad(%v: tensor<64x32xf8E8M0FNU, #pipe.distribution<wgmma>>, %d: !pipe.global<?x512xf8E8M0FNU>, %m: i32, %n: i32, %r: i32) {
  // (C184)
  // expected-error @+2 {{buffer must be linear, of f32, bf16, f16 or f8E4M3FN, for a tile of wgmma or mma_sync, but got}}
  // expected-note @+1 {{make rows of threads with pipe.gather_rows, and quantize these}}
  pipe.store %v, %d[%m, %n] rows %r : tensor<64x32xf8E8M0FNU, #pipe.distribution<wgmma>>, !pipe.global<?x512xf8E8M0FNU>
  return
}

// -----

func.func @twin(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %d: !pipe.global<64x512xbf16>, %m: i32) {
  pipe.store %v, %d[%m, %m] transposed staged : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<64x512xbf16>
  return
}
func.func @bad(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %d: !pipe.global<64x508xbf16>, %m: i32) {
  // (C333)
  // expected-error @+2 {{staged must be transposed, in whole warpgroups, of wgmma, a multiple of 16 columns of 16 bits and of a buffer with a multiple of 8 columns, but got}}
  // expected-note @+1 {{leave 'staged' out, and each thread stores what it has}}
  pipe.store %v, %d[%m, %m] transposed staged : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<64x508xbf16>
  return
}

// -----

func.func @bad(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %d: !pipe.global<64x512xbf16>, %c: !pipe.global<24x8xi32>, %m: i32) {
  %last = pipe.count_partial %c[%m] of 2 : !pipe.global<24x8xi32>
  scf.if %last {
    pipe.store %v, %d[%m, %m] transposed : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<64x512xbf16>
    // (C333)
    // expected-error @+2 {{staged must be executed by whole warpgroups, but is by the warps that are the last to arrive}}
    // expected-note @+1 {{leave 'staged' out where reduced results are stored}}
    pipe.store %v, %d[%m, %m] transposed staged : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<64x512xbf16>
  }
  return
}

// -----

func.func @bad(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %d: !pipe.global<64x512xbf16>, %m: i32) {
  // (C333)
  // expected-error @+2 {{staged must be transposed, in whole warpgroups, of wgmma, a multiple of 16 columns of 16 bits}}
  // expected-note @+1 {{leave 'staged' out, and each thread stores what it has}}
  pipe.store %v, %d[%m, %m] staged : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<64x512xbf16>
  return
}

// -----

func.func @bad(%v: tensor<64x32xf32, #pipe.distribution<wgmma>>, %d: !pipe.global<64x512xf32>, %m: i32) {
  // (C333)
  // expected-error @+2 {{a multiple of 16 columns of 16 bits and of a buffer with a multiple of 8 columns, but got 'tensor<64x32xf32, #pipe.distribution<wgmma>>'}}
  // expected-note @+1 {{leave 'staged' out, and each thread stores what it has}}
  pipe.store %v, %d[%m, %m] transposed staged : tensor<64x32xf32, #pipe.distribution<wgmma>>, !pipe.global<64x512xf32>
  return
}

// -----

func.func @twin(%a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<64x128xf8E4M3FN, swizzle_128B>, %acc: !pipe.tmem<128x64xf32>) {
  pipe.mma %acc, %a, %b : !pipe.tmem<128x64xf32>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<64x128xf8E4M3FN, swizzle_128B>
  return
}
func.func @bad(%a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<64x128xf8E4M3FN, swizzle_128B>, %acc: !pipe.tmem<128x64xf32>) {
  // (C650)
  // expected-error @+2 {{'chain' must be left out of an MMA of tcgen05 f8f6f4, but is there}}
  // expected-note @+1 {{MMAs that read it are wgmma e4m3}}
  pipe.mma %acc, %a, %b chain replaces : !pipe.tmem<128x64xf32>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<64x128xf8E4M3FN, swizzle_128B>
  return
}

// -----

func.func @twin(%v: tensor<64x32xf32, #pipe.distribution<wgmma>>, %p: !pipe.global<8x4096xf32>, %i: i32) {
  pipe.store %v, %p[%i, 4080] : tensor<64x32xf32, #pipe.distribution<wgmma>>, !pipe.global<8x4096xf32>
  %w = pipe.fetch %p[%i] first 0 : !pipe.global<8x4096xf32> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  return
}
func.func @bad(%v: tensor<64x32xf32, #pipe.distribution<wgmma>>, %p: !pipe.global<8x4096xf32>, %i: i32) {
  // (C192)
  // expected-error @+2 {{buffer must be f32 with the 'vector<16xf32>' of 1 threads from column 4084 of a row on, but got}}
  // expected-note @+1 {{make the workspace wider, a row for every part of all threads}}
  pipe.store %v, %p[%i, 4084] : tensor<64x32xf32, #pipe.distribution<wgmma>>, !pipe.global<8x4096xf32>
  return
}

// -----

func.func @twin(%y: !pipe.global<100x40xbf16>, %begin: i32, %end: i32) {
  pipe.clear_rows %y[%begin to %end] : !pipe.global<100x40xbf16>
  return
}
func.func @bad(%y: !pipe.global<100x40xf4E2M1FN>, %begin: i32, %end: i32) {
  // (C352)
  // expected-error @+2 {{destination must be a linear buffer of rank 2 with static columns and elements of whole bytes, but got}}
  // expected-note @+1 {{packed and tiled buffers are cleared on the host}}
  pipe.clear_rows %y[%begin to %end] : !pipe.global<100x40xf4E2M1FN>
  return
}

// -----

func.func @twin(%o: !pipe.global<2x2xi32>, %report: !pipe.global<8xi64>) {
  pipe.check_groups %o limit 300 to %report : !pipe.global<2x2xi32>, !pipe.global<8xi64>
  return
}
func.func @bad(%o: !pipe.global<1x2xi32>, %report: !pipe.global<8xi64>) {
  // (C455)
  // expected-error @+2 {{offsets must be a static buffer of i32 with two columns and two rows or more, or with four columns, but got}}
  // expected-note @+1 {{a row has the first row and the end of a group, or four numbers of a group's tile}}
  pipe.check_groups %o limit 300 to %report : !pipe.global<1x2xi32>, !pipe.global<8xi64>
  return
}
func.func @numbers(%o: !pipe.global<5xi64>, %report: !pipe.global<8xi64>) {
  // (C455)
  // expected-error @+2 {{offsets must be a static buffer of i32 with two columns and two rows or more, or with four columns, but got}}
  // expected-note @+1 {{a row has the first row and the end of a group, or four numbers of a group's tile}}
  pipe.check_groups %o limit 300 to %report : !pipe.global<5xi64>, !pipe.global<8xi64>
  return
}
func.func @small(%o: !pipe.global<2x2xi32>, %report: !pipe.global<7xi64>) {
  // (C455)
  // expected-error @+2 {{report must be a buffer of 8 x i64, but got}}
  // expected-note @+1 {{allocate 8 x i64, of which the kernel writes what was wrong}}
  pipe.check_groups %o limit 300 to %report : !pipe.global<2x2xi32>, !pipe.global<7xi64>
  return
}

// -----

func.func @twin() {
  %acc = pipe.accumulator : !pipe.fragment<64x128xf32, wgmma>
  return
}
func.func @bad() {
  // (C313)
  // expected-error @+2 {{accumulator must have elements of f32, but got '!pipe.fragment<64x128xf8E4M3FN, wgmma>'}}
  // expected-note @+1 {{e4m3 fragments hold weights, which pipe.dequantize makes}}
  %acc = pipe.accumulator : !pipe.fragment<64x128xf8E4M3FN, wgmma>
  return
}
