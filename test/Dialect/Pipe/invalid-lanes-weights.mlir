// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Weights that become operand A in tensor memory, and MMAs that take them there (PipeConstraints.td). Every error has
// a twin above it that differs in one place and verifies.

func.func private @twin(!pipe.tmem<128x128xbf16>, !pipe.tmem<128x64xf8E4M3FN>, !pipe.tmem<128x64xf4E2M1FN>)
// (C466)
// expected-error @+2 {{operand must be 128 rows of a multiple of 64 columns and belong to no pair, but got 128x96x'bf16'}}
// expected-note @+1 {{take a tile of 128 rows, and pad its columns}}
func.func private @bad(!pipe.tmem<128x96xbf16>)

// -----

// (C466)
// expected-error @+2 {{operand must be 128 rows of a multiple of 64 columns and belong to no pair, but got 128x96x'f8E4M3FN'}}
// expected-note @+1 {{take a tile of 128 rows, and pad its columns}}
func.func private @bad(!pipe.tmem<128x96xf8E4M3FN>)

// -----

// (C466)
// expected-error @+2 {{operand must be 128 rows of a multiple of 64 columns and belong to no pair, but got 64x128x'f16'}}
// expected-note @+1 {{take a tile of 128 rows, and pad its columns}}
func.func private @bad(!pipe.tmem<64x128xf16>)

// -----

// (C466)
// expected-error @+2 {{operand must be 128 rows of a multiple of 64 columns and belong to no pair, but got 128x128x'bf16'}}
// expected-note @+1 {{take a tile of 128 rows, and pad its columns}}
func.func private @bad(!pipe.tmem<128x128xbf16, pair>)

// -----

func.func @twin(%w: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %s: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %p: !pipe.shared<1x8704xi8>, %n: i32) {
  %a = pipe.dequantize %w scaled %s : !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x128xf16, swizzle_128B>
  return
}
func.func @bad(%w: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %s: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %p: !pipe.shared<1x8704xi8>, %n: i32) {
  // (C652)
  // expected-error @+2 {{source '!pipe.shared<128x128xf4E2M1FN, swizzle_64B>' must have scales beside it, but got none}}
  // expected-note @+1 {{prepacked weights have their scales; write 'scaled %s' for other elements}}
  %a = pipe.dequantize %w : !pipe.shared<128x128xf4E2M1FN, swizzle_64B> -> !pipe.shared<128x128xf16, swizzle_128B>
  return
}

// -----

func.func @twin(%w: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %s: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %p: !pipe.shared<1x8704xi8>, %n: i32) {
  %a = pipe.dequantize %p : !pipe.shared<1x8704xi8> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  return
}
func.func @bad(%w: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %s: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %p: !pipe.shared<1x8704xi8>, %n: i32) {
  // (C652)
  // expected-error @+2 {{source '!pipe.shared<1x8704xi8>' must have no scales beside it, but got some}}
  // expected-note @+1 {{prepacked weights have their scales; write 'scaled %s' for other elements}}
  %a = pipe.dequantize %p scaled %s : !pipe.shared<1x8704xi8>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  return
}

// -----

func.func @twin(%w: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %s: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %p: !pipe.shared<1x8704xi8>, %n: i32) {
  %a = pipe.dequantize %p : !pipe.shared<1x8704xi8> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  return
}
func.func @bad(%w: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %s: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %p: !pipe.shared<1x8704xi8>, %n: i32) {
  // (C652)
  // expected-error @+2 {{tile must be in tensor memory or registers for source '!pipe.shared<1x8704xi8>', but got '!pipe.shared<128x64xf16, swizzle_128B>'}}
  // expected-note @+1 {{registers hold prepacked weights for e4m3, and nothing else}}
  %a = pipe.dequantize %p : !pipe.shared<1x8704xi8> -> !pipe.shared<128x64xf16, swizzle_128B>
  return
}

// -----

func.func @twin(%w: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %s: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %p: !pipe.shared<1x8704xi8>, %n: i32) {
  %a = pipe.dequantize %w scaled %s : !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x128xf16, swizzle_128B>
  return
}
func.func @bad(%w: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %s: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %p: !pipe.shared<1x8704xi8>, %n: i32) {
  // (C652)
  // expected-error @+2 {{tile must be in shared or tensor memory for source '!pipe.shared<128x128xf4E2M1FN, swizzle_64B>', but got '!pipe.fragment<64x128xf8E4M3FN, wgmma>'}}
  // expected-note @+1 {{registers hold prepacked weights for e4m3, and nothing else}}
  %a = pipe.dequantize %w scaled %s : !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  return
}

// -----

func.func @twin(%w: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %s: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %p: !pipe.shared<1x8704xi8>, %n: i32) {
  %a = pipe.dequantize %p : !pipe.shared<1x8704xi8> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  return
}
func.func @bad(%w: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %s: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %p: !pipe.shared<1x8704xi8>, %n: i32) {
  // (C652)
  // expected-error @+2 {{'existing' must be left out for registers, but is there}}
  // expected-note @+1 {{registers hold one tile of weights, which exists}}
  %a = pipe.dequantize %p existing %n : !pipe.shared<1x8704xi8> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  return
}

// -----

!codes = !pipe.shared<128x128xf4E2M1FN, swizzle_64B>
!scales = !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
func.func @twin(%w: !codes, %s: !scales) {
  %a = pipe.dequantize %w scaled %s : !codes, !scales -> !pipe.tmem<128x128xbf16>
  %b = pipe.dequantize %w scaled %s : !codes, !scales -> !pipe.tmem<128x128xf16>
  return
}
func.func @bad(%w: !codes, %s: !scales) {
  // (C467)
  // expected-error @+2 {{tile must have the shape of the source and elements of bf16 or f16, but got '!pipe.tmem<128x128xf32>'}}
  // expected-note @+1 {{write the shape of the source and bf16 or f16}}
  %a = pipe.dequantize %w scaled %s : !codes, !scales -> !pipe.tmem<128x128xf32>
  return
}

// -----

!codes = !pipe.shared<128x128xf4E2M1FN, swizzle_64B>
!scales = !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
func.func @twin(%w: !codes, %s: !scales) {
  %a = pipe.dequantize %w scaled %s : !codes, !scales -> !pipe.tmem<128x128xbf16>
  return
}
func.func @bad(%w: !codes, %s: !scales) {
  // (C467)
  // expected-error @+2 {{tile must have the shape of the source and elements of bf16 or f16, but got '!pipe.tmem<128x64xf16>'}}
  // expected-note @+1 {{write the shape of the source and bf16 or f16}}
  %a = pipe.dequantize %w scaled %s : !codes, !scales -> !pipe.tmem<128x64xf16>
  return
}

// -----

!six = !pipe.shared<128x128xf6E2M3FN, swizzle_128B>
!scales = !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
func.func @twin(%w: !six, %s: !scales) {
  %a = pipe.dequantize %w scaled %s : !six, !scales -> !pipe.tmem<128x128xbf16>
  return
}
func.func @bad(%w: !six, %s: !scales) {
  // (C467)
  // expected-error @+2 {{tile must have the shape of the source and elements of bf16, but got '!pipe.tmem<128x128xf16>'}}
  // expected-note @+1 {{write the shape of the source and bf16}}
  %a = pipe.dequantize %w scaled %s : !six, !scales -> !pipe.tmem<128x128xf16>
  return
}

// -----

!codes = !pipe.shared<64x128xf4E2M1FN, swizzle_64B>
!scales = !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
func.func @bad(%w: !codes, %s: !scales) {
  // (C467)
  // expected-error @+2 {{source must be 128 rows of 4 or 6 bits, but got '!pipe.shared<64x128xf4E2M1FN, swizzle_64B>'}}
  // expected-note @+1 {{a row of an operand in tensor memory is a TMEM lane, of which there are 128}}
  %a = pipe.dequantize %w scaled %s : !codes, !scales -> !pipe.tmem<128x128xbf16>
  return
}

// -----

!codes = !pipe.shared<128x128xf4E2M1FN, swizzle_64B>
!scales = !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
func.func @bad(%w: !codes, %s: !scales) {
  // (C652)
  // expected-error @+2 {{must return a tile or fill a destination}}
  // expected-note @+1 {{write a result, or 'into %slot', and not both}}
  pipe.dequantize %w scaled %s : !codes, !scales
  return
}

// -----

func.func @twin(%w: !pipe.shared<2x4608xi8>, %m: !pipe.shared<1x4352xi8>, %e: !pipe.shared<2x8704xi8>) {
  %a = pipe.dequantize %w : !pipe.shared<2x4608xi8> -> !pipe.tmem<128x128xf16>
  %b = pipe.dequantize %m : !pipe.shared<1x4352xi8> -> !pipe.tmem<128x64xbf16>
  %c = pipe.dequantize %e : !pipe.shared<2x8704xi8> -> !pipe.tmem<128x256xf8E4M3FN>
  return
}
func.func @bad(%w: !pipe.shared<2x4096xi8>) {
  // (C499)
  // expected-error @+2 {{source must be i8 in linear rows of 4608, 4352 or 8704 bytes, but got '!pipe.shared<2x4096xi8>'}}
  // expected-note @+1 {{fp4.prepack makes such weights, a row for each tile}}
  %a = pipe.dequantize %w : !pipe.shared<2x4096xi8> -> !pipe.tmem<128x128xbf16>
  return
}

// -----

func.func @bad(%w: !pipe.shared<2x8704xi8>) {
  // (C499)
  // expected-error @+2 {{tile must be 128x256 of f8E4M3FN, but got '!pipe.tmem<128x256xbf16>'}}
  // expected-note @+1 {{a row of the source becomes 128 columns of 128 TMEM lanes}}
  %a = pipe.dequantize %w : !pipe.shared<2x8704xi8> -> !pipe.tmem<128x256xbf16>
  return
}

// -----

func.func @bad(%w: !pipe.shared<2x4608xi8>) {
  // (C499)
  // expected-error @+2 {{tile must be 128x128 of bf16 or f16, but got '!pipe.tmem<128x64xbf16>'}}
  // expected-note @+1 {{a row of the source becomes 64 columns of 128 TMEM lanes}}
  %a = pipe.dequantize %w : !pipe.shared<2x4608xi8> -> !pipe.tmem<128x64xbf16>
  return
}

// -----

func.func @bad(%w: !pipe.shared<1x4352xi8>) {
  // (C499)
  // expected-error @+2 {{tile must be 128x64 of bf16 or f16, but got '!pipe.tmem<128x128xf16>'}}
  // expected-note @+1 {{a row of the source becomes 64 columns of 128 TMEM lanes}}
  %a = pipe.dequantize %w : !pipe.shared<1x4352xi8> -> !pipe.tmem<128x128xf16>
  return
}

// -----

func.func @bad(%w: !pipe.shared<2x4608xi8>) {
  // (C652)
  // expected-error @+2 {{must return a tile or fill a destination}}
  // expected-note @+1 {{write a result, or 'into %slot', and not both}}
  pipe.dequantize %w : !pipe.shared<2x4608xi8>
  return
}

// -----

gpu.module @m {
gpu.func @twin(%w: !pipe.shared<2x4608xi8>, %slot: !pipe.tmem<128x128xbf16>) kernel {
  pipe.role convert warps 4 to 8 drives [threads] auxiliary {
    pipe.dequantize %w into %slot : !pipe.shared<2x4608xi8>, !pipe.tmem<128x128xbf16>
  }
  pipe.role more warps 8 to 16 drives [threads] in_turn stages auxiliary {
    pipe.dequantize %w into %slot : !pipe.shared<2x4608xi8>, !pipe.tmem<128x128xbf16>
  }
  gpu.return
}
gpu.func @bad(%w: !pipe.shared<2x4608xi8>, %slot: !pipe.tmem<128x128xbf16>) kernel {
  pipe.role convert warps 4 to 12 drives [threads] auxiliary {
    // (C499)
    // expected-error @+2 {{must be in a role of one warpgroup, or of several in turn, but is in #pipe.role<convert warps 4 to 12 drives [threads] auxiliary>}}
    // expected-note @+1 {{write 4 warps from a multiple of 4 on, or 'in_turn stages' for more}}
    pipe.dequantize %w into %slot : !pipe.shared<2x4608xi8>, !pipe.tmem<128x128xbf16>
  }
  gpu.return
}
}

// -----

!x = !pipe.shared<16x128xbf16, swizzle_128B>
func.func @twin(%acc: !pipe.tmem<128x16xf32>, %w: !pipe.tmem<128x128xbf16>, %x: !x, %more: i1) {
  pipe.mma %acc, %w, %x accumulate %more : !pipe.tmem<128x16xf32>, !pipe.tmem<128x128xbf16>, !x
  return
}
func.func @bad(%acc: !pipe.tmem<128x32xf32>, %w: !pipe.tmem<128x128xbf16>, %x: !x, %more: i1) {
  // (C468)
  // expected-error @+2 {{accumulator must be 128 rows of f32 of no pair, with 16 columns, but got '!pipe.tmem<128x32xf32>'}}
  // expected-note @+1 {{let the accumulator have a column for each row of b}}
  pipe.mma %acc, %w, %x accumulate %more : !pipe.tmem<128x32xf32>, !pipe.tmem<128x128xbf16>, !x
  return
}

// -----

!x = !pipe.shared<16x128xbf16, swizzle_128B>
func.func @bad(%acc: !pipe.tmem<128x16xf32>, %w: !pipe.tmem<128x128xf16>, %x: !x, %more: i1) {
  // (C468)
  // expected-error @+2 {{b must be 'f16' with K = 128 and layout swizzle_128B, but got '!pipe.shared<16x128xbf16, swizzle_128B>'}}
  // expected-note @+1 {{load activations of the operand's type and depth}}
  pipe.mma %acc, %w, %x accumulate %more : !pipe.tmem<128x16xf32>, !pipe.tmem<128x128xf16>, !x
  return
}

// -----

!x = !pipe.shared<16x128xbf16, swizzle_128B>
func.func @bad(%acc: !pipe.tmem<128x16xf32>, %w: !pipe.tmem<128x128xf32>, %x: !x, %more: i1) {
  // (C650)
  // expected-error @+2 {{a must be f4E2M1FN, f6E2M3FN, f6E3M2FN, f8E4M3FN, f8E5M2, f16, bf16 in shared memory or f4E2M1FN, f8E4M3FN, f16, bf16 in tensor memory, but got '!pipe.tmem<128x128xf32>'}}
  // expected-note @+1 {{MMAs with the operands before it are tcgen05 mxf4nvf4, tcgen05 mxf4nvf4 with A in tensor memory, tcgen05 mxf8f6f4, tcgen05 mxf8f6f4 with A in tensor memory, tcgen05 f8f6f4, tcgen05 f16, tcgen05 f16 with A in tensor memory}}
  pipe.mma %acc, %w, %x accumulate %more : !pipe.tmem<128x16xf32>, !pipe.tmem<128x128xf32>, !x
  return
}
