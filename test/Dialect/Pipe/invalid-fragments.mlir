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
