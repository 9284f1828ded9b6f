// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// MMAs in the registers of warps (docs/concepts/pipe.md). Every error has a twin above it that differs in one
// place and verifies.

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<64x64xf32, wgmma>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  // (C650)
  // expected-error @+2 {{b must be f16, bf16 in shared memory, but got '!pipe.shared<128x128xf4E2M1FN, swizzle_64B>'}}
  // expected-note @+1 {{MMAs with the operands before it are wgmma f16 with A from scaled elements}}
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<64x64xf32, wgmma>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<16x32xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<16x32xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<16x48xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  // (C250)
  // expected-error @+2 {{accumulator must be a fragment of mma_sync with 16 rows or a multiple of 32, and a multiple of 32 columns, but got}}
  // expected-note @+1 {{write !pipe.fragment<32x32xf32, mma_sync>, or a multiple of it}}
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<16x48xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<64x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<64x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<48x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  // (C250)
  // expected-error @+2 {{accumulator must be a fragment of mma_sync with 16 rows or a multiple of 32, and a multiple of 32 columns, but got}}
  // expected-note @+1 {{write !pipe.fragment<32x32xf32, mma_sync>, or a multiple of it}}
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<48x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_32B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  // (C251)
  // expected-error @+2 {{a must be f4E2M1FN with rows of 64 or 128 bytes and the swizzle of that width, but got}}
  // expected-note @+1 {{load rows of 64 bytes with swizzle_64B, or of 128 with swizzle_128B}}
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_32B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  // (C252)
  // expected-error @+2 {{scales of operands of 6 or 8 bits must be f8E8M0FNU, but got}}
  // expected-note @+1 {{quantize both operands to formats of f8E8M0FNU, such as mxfp4 and mxfp8}}
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, %sa: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, %sb: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, %sb: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) {
  // (C251)
  // expected-error @+2 {{a and b must have as many elements of k, but got}}
  // expected-note @+1 {{load tiles of one depth}}
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<32x96xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  // (C251)
  // expected-error @+2 {{tile must consist of whole fragments of 32x96, but has 128x128}}
  // expected-note @+1 {{round the tile up to whole fragments, or take smaller ones}}
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x96xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E8M0FNU, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>) {
  // (C252)
  // expected-error @+2 {{scales of a must be f8E4M3FN for each 16 or f8E8M0FNU for each 32 of 128 elements, with layout tiled_128x4 and at least 128 rows, but got}}
  // expected-note @+1 {{load a column of scales for each block of k, in whole scale tiles of 128 rows}}
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E8M0FNU, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<256x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<256x8xf8E4M3FN, tiled_128x4>) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<256x128xf4E2M1FN, swizzle_64B>, !pipe.shared<256x8xf8E4M3FN, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<256x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  // (C252)
  // expected-error @+2 {{scales of b must be f8E4M3FN for each 16 or f8E8M0FNU for each 32 of 128 elements, with layout tiled_128x4 and at least 256 rows, but got}}
  // expected-note @+1 {{load a column of scales for each block of k, in whole scale tiles of 128 rows}}
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<256x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>) {
  // (C252)
  // expected-error @+2 {{scales of a and b must be of one type, but got}}
  // expected-note @+1 {{quantize both operands with one type of scales}}
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>) {
  %r, %c = pipe.place %acc in 128 by 128 : !pipe.fragment<32x64xf32, mma_sync>
  return
}
func.func @bad(%acc: !pipe.fragment<64x64xf32, wgmma>) {
  // (C253)
  // expected-error @+2 {{a tile must come with a fragment of mma_sync, but got one with '!pipe.fragment<64x64xf32, wgmma>'}}
  // expected-note @+1 {{write 'in ROWS by COLUMNS' of the tile that warps share}}
  %r, %c = pipe.place %acc in 128 by 128 : !pipe.fragment<64x64xf32, wgmma>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>) {
  %r, %c = pipe.place %acc in 128 by 128 : !pipe.fragment<32x64xf32, mma_sync>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>) {
  // (C253)
  // expected-error @+2 {{tile must consist of whole fragments of 32x64, but has 128x96}}
  // expected-note @+1 {{round the tile up to whole fragments, or take smaller ones}}
  %r, %c = pipe.place %acc in 128 by 96 : !pipe.fragment<32x64xf32, mma_sync>
  return
}

// -----

gpu.module @roles {
gpu.func @twin() kernel {
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %acc = pipe.accumulator : !pipe.fragment<32x64xf32, mma_sync>
    %r, %c = pipe.place %acc in 128 by 128 : !pipe.fragment<32x64xf32, mma_sync>
  }
  gpu.return
}
gpu.func @bad() kernel {
  pipe.role math warps 0 to 4 drives [tensor, threads] {
    %acc = pipe.accumulator : !pipe.fragment<32x64xf32, mma_sync>
    // (C253)
    // expected-error @+2 {{role must have a warp for each of the 8 fragments of the tile, but has 4}}
    // expected-note @+1 {{change the warps of the role, or the shape of the fragment}}
    %r, %c = pipe.place %acc in 128 by 128 : !pipe.fragment<32x64xf32, mma_sync>
  }
  gpu.return
}
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>) {
  %v = pipe.read %acc[32] row 16 : !pipe.fragment<32x64xf32, mma_sync> -> tensor<16x32xf32, #pipe.distribution<mma_sync>>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>) {
  // (C182)
  // expected-error @+2 {{tile must be within the 32x64 of the accumulator, from a multiple of 16 rows and 8 columns on, but got 16x32 from [32, 32] on}}
  // expected-note @+1 {{read fewer columns, or from an earlier one on}}
  %v = pipe.read %acc[32] row 32 : !pipe.fragment<32x64xf32, mma_sync> -> tensor<16x32xf32, #pipe.distribution<mma_sync>>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>) {
  %v = pipe.read %acc[56] : !pipe.fragment<32x64xf32, mma_sync> -> tensor<16x8xf32, #pipe.distribution<mma_sync>>
  return
}
func.func @bad(%acc: !pipe.fragment<64x64xf32, wgmma>) {
  // (C182)
  // expected-error @+2 {{result must have the distribution of its accumulator of f32, but got 'tensor<16x8xf32, #pipe.distribution<mma_sync>>' from '!pipe.fragment<64x64xf32, wgmma>'}}
  // expected-note @+1 {{write the kind of the fragment in the #pipe.distribution}}
  %v = pipe.read %acc[56] : !pipe.fragment<64x64xf32, wgmma> -> tensor<16x8xf32, #pipe.distribution<mma_sync>>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>) {
  pipe.mma %acc, %a, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf8E4M3FN, swizzle_128B>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>, %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>) {
  // (C650)
  // expected-error @+2 {{a_scales must be scales in shared memory, but got none}}
  // expected-note @+1 {{MMAs with the operands before it are mma.sync mxf4nvf4, mma.sync mxf8f6f4}}
  pipe.mma %acc, %a, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>, %row: i32) {
  pipe.mma %acc, %a, %b scaled %sb from %row : !pipe.fragment<32x64xf32, mma_sync>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>, %row: i32) {
  // (C650)
  // expected-error @+2 {{'a_scale_row' must be left out of an MMA of mma.sync mxf8f6f4 with unit scales of A, but is there}}
  // expected-note @+1 {{MMAs that read it are wgmma f16 with A from prepacked weights, wgmma e4m3 with A from prepacked weights, mma.sync mxf4nvf4, mma.sync mxf8f6f4}}
  pipe.mma %acc, %a from %row, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
  return
}
