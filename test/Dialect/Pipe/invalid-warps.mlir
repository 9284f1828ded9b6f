// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Products in the registers of warps (docs/Pipe.md). Every error has a twin above it that differs in one
// place and verifies.

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<64x64xf32, wgmma>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  // (C250)
  // expected-error @+1 {{accumulator must be a fragment of mma_sync with 16 rows or a multiple of 32, and a multiple of 32 columns, but got}}
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<64x64xf32, wgmma>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<16x32xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<16x32xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<16x48xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  // (C250)
  // expected-error @+1 {{accumulator must be a fragment of mma_sync with 16 rows or a multiple of 32, and a multiple of 32 columns, but got}}
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<16x48xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<64x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<64x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<48x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  // (C250)
  // expected-error @+1 {{accumulator must be a fragment of mma_sync with 16 rows or a multiple of 32, and a multiple of 32 columns, but got}}
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<48x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_32B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  // (C251)
  // expected-error @+1 {{a must be f4E2M1FN with rows of 64 or 128 bytes and the swizzle of that width, but got}}
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_32B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  // (C252)
  // expected-error @+1 {{scales of operands of 6 or 8 bits must be f8E8M0FNU, but got}}
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, %sa: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, %sb: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) {
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, %sb: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) {
  // (C251)
  // expected-error @+1 {{a and b must have as many elements of k, but got}}
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<32x96xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  // (C251)
  // expected-error @+1 {{tile must consist of whole fragments of 32x96, but has 128x128}}
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x96xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>) {
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E8M0FNU, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>) {
  // (C252)
  // expected-error @+1 {{scales of a must be f8E4M3FN for each 16 or f8E8M0FNU for each 32 of 128 elements, with layout tiled_128x4 and at least 128 rows, but got}}
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E8M0FNU, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<256x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<256x8xf8E4M3FN, tiled_128x4>) {
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<256x128xf4E2M1FN, swizzle_64B>, !pipe.shared<256x8xf8E4M3FN, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<256x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  // (C252)
  // expected-error @+1 {{scales of b must be f8E4M3FN for each 16 or f8E8M0FNU for each 32 of 128 elements, with layout tiled_128x4 and at least 256 rows, but got}}
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<256x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>,
    %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>) {
  // (C252)
  // expected-error @+1 {{scales of a and b must be of one type, but got}}
  pipe.mma_sync %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>) {
  %r, %c = pipe.warp_place %acc in 128 by 128 : !pipe.fragment<32x64xf32, mma_sync>
  return
}
func.func @bad(%acc: !pipe.fragment<64x64xf32, wgmma>) {
  // (C253)
  // expected-error @+1 {{accumulator must be a fragment of mma_sync, but got}}
  %r, %c = pipe.warp_place %acc in 128 by 128 : !pipe.fragment<64x64xf32, wgmma>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>) {
  %r, %c = pipe.warp_place %acc in 128 by 128 : !pipe.fragment<32x64xf32, mma_sync>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>) {
  // (C253)
  // expected-error @+1 {{tile must consist of whole fragments of 32x64, but has 128x96}}
  %r, %c = pipe.warp_place %acc in 128 by 96 : !pipe.fragment<32x64xf32, mma_sync>
  return
}

// -----

gpu.module @roles {
gpu.func @twin() kernel {
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %acc = pipe.fragment : !pipe.fragment<32x64xf32, mma_sync>
    %r, %c = pipe.warp_place %acc in 128 by 128 : !pipe.fragment<32x64xf32, mma_sync>
  }
  gpu.return
}
gpu.func @bad() kernel {
  pipe.role math warps 0 to 4 drives [tensor, threads] {
    %acc = pipe.fragment : !pipe.fragment<32x64xf32, mma_sync>
    // (C253)
    // expected-error @+1 {{role must have a warp for each of the 8 fragments of the tile, but has 4}}
    %r, %c = pipe.warp_place %acc in 128 by 128 : !pipe.fragment<32x64xf32, mma_sync>
  }
  gpu.return
}
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>) {
  %v = pipe.read_warp_fragment %acc[16, 32] : !pipe.fragment<32x64xf32, mma_sync> -> vector<16xf32>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>) {
  // (C254)
  // expected-error @+1 {{elements must be of 16 rows from a multiple of that on, and of multiples of 8 columns, within a fragment of mma_sync, but got row 32 and 32 columns from 32 on}}
  %v = pipe.read_warp_fragment %acc[32, 32] : !pipe.fragment<32x64xf32, mma_sync> -> vector<16xf32>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>) {
  %v = pipe.read_warp_fragment %acc[0, 56] : !pipe.fragment<32x64xf32, mma_sync> -> vector<4xf32>
  return
}
func.func @bad(%acc: !pipe.fragment<64x64xf32, wgmma>) {
  // (C254)
  // expected-error @+1 {{within a fragment of mma_sync, but got row 0 and 8 columns from 56 on}}
  %v = pipe.read_warp_fragment %acc[0, 56] : !pipe.fragment<64x64xf32, wgmma> -> vector<4xf32>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<32x64xf32, mma_sync>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>) {
  pipe.mma_sync %acc, %a, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf8E4M3FN, swizzle_128B>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
  return
}
func.func @bad(%acc: !pipe.fragment<32x64xf32, mma_sync>, %a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>,
    %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>) {
  // (C469)
  // expected-error @+1 {{a without scales must be f8E4M3FN beside b of f4E2M1FN with scales of f8E8M0FNU, but got}}
  pipe.mma_sync %acc, %a, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
  return
}
