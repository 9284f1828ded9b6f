// Maps of three dimensions, boxes below each other, and rows that are heads; the first operation of
// each case is legal.
// RUN: fp4-opt %s -split-input-file -verify-diagnostics

func.func private @twin(!pipe.tensor_map<4x16x64xbf16, swizzle_128B>)
// (C666)
// expected-error @+2 {{box of planes must have elements of whole bytes, no residue, and at most 256 rows in all, but got 32 planes of 16 rows of 'bf16'}}
// expected-note @+1 {{describe the buffer as a matrix, with a box of rows and columns}}
func.func private @bad(!pipe.tensor_map<32x16x64xbf16, swizzle_128B>)

// -----

func.func @twin(%x: memref<9x32x128xbf16>) {
  %map = pipe.make_tensor_map %x columns 128 : memref<9x32x128xbf16> -> !pipe.tensor_map<4x16x64xbf16, swizzle_128B>
  return
}
func.func @bad(%x: memref<288x128xbf16>) {
  // (C666)
  // expected-error @+2 {{buffer must be a row-major memref of rank 3 with static sizes, but got 'memref<288x128xbf16>'}}
  // expected-note @+1 {{columns may be dynamic where 'columns' is a value; other strides need a copy}}
  %map = pipe.make_tensor_map %x columns 128 : memref<288x128xbf16> -> !pipe.tensor_map<4x16x64xbf16, swizzle_128B>
  return
}

// -----

!map = !pipe.tensor_map<4x16x64xbf16, swizzle_128B>
!tile = !pipe.shared<64x64xbf16, swizzle_128B>
gpu.module @kernels {
  gpu.func @bad(%a: !map) kernel {
    %c = arith.constant 0 : i32
    %t = pipe.load %a[%c, %c] plane %c : !map -> !tile
    // (C667)
    // expected-error @+2 {{source '!pipe.tensor_map<4x16x64xbf16, swizzle_128B>' must have a plane, but got none}}
    // expected-note @+1 {{write 'plane %p' for a map of three dimensions, and only for it}}
    %u = pipe.load %a[%c, %c] : !map -> !tile
    gpu.return
  }
}

// -----

!map = !pipe.tensor_map<16x64xbf16, swizzle_128B>
!tile = !pipe.shared<32x64xbf16, swizzle_128B>
gpu.module @kernels {
  gpu.func @bad(%a: !map) kernel {
    %c = arith.constant 0 : i32
    %t = pipe.load %a[%c, %c] below(%c) : !map -> !tile
    // (C109)
    // expected-error @+2 {{tile must have the boxes of its map, '!pipe.shared<48x64xbf16, swizzle_128B>', but got '!pipe.shared<32x64xbf16, swizzle_128B>'}}
    // expected-note @+1 {{the box of a map is a panel, as wide as the swizzle, or the part of it that one CTA loads}}
    %u = pipe.load %a[%c, %c] below(%c, %c) : !map -> !tile
    gpu.return
  }
}

// -----

!map = !pipe.tensor_map<16x64xbf16, swizzle_128B, residue>
!tile = !pipe.shared<32x64xbf16, swizzle_128B>
gpu.module @kernels {
  gpu.func @bad(%a: !map, %m: i32) kernel {
    %c = arith.constant 0 : i32
    %n = pipe.existing_rows %m from %c of 16
    // (C667)
    // expected-error @+2 {{boxes below the first must be of a map of elements without residue, which one CTA loads, but got '!pipe.tensor_map<16x64xbf16, swizzle_128B, residue>'}}
    // expected-note @+1 {{load each box with an operation of its own}}
    %u = pipe.load %a[%c, %c] below(%c) existing %n : !map -> !tile
    gpu.return
  }
}

// -----

!tile = tensor<64x64xbf16, #pipe.distribution<wgmma>>
gpu.module @kernels {
  gpu.func @bad(%v: !tile, %d: !pipe.global<40x512xbf16>) kernel {
    %c = arith.constant 0 : i32
    pipe.store %v, %d[%c, %c] heads = [8, 7, 64] : !tile, !pipe.global<40x512xbf16>
    // (C668)
    // expected-error @+2 {{heads must be [T, H, E] of a tile of wgmma or lanes that is not transposed, T a power of two up to 64, 1 <= H <= T and E a multiple of 8, but got [6, 6, 64] and 'tensor<64x64xbf16, #pipe.distribution<wgmma>>'}}
    // expected-note @+1 {{round T up, and say in H how many heads exist}}
    pipe.store %v, %d[%c, %c] heads = [6, 6, 64] : !tile, !pipe.global<40x512xbf16>
    gpu.return
  }
}

// -----

!tile = tensor<128x64xbf16, #pipe.distribution<lanes>>
gpu.module @kernels {
  gpu.func @bad(%v: !tile, %d: !pipe.global<40x512xbf16>) kernel {
    %c = arith.constant 0 : i32
    pipe.store %v, %d[%c, %c] heads = [8, 7, 64] : !tile, !pipe.global<40x512xbf16>
    // (C668)
    // expected-error @+2 {{heads must be [T, H, E] of a tile of wgmma or lanes that is not transposed, T a power of two up to 64, 1 <= H <= T and E a multiple of 64, but got [8, 8, 32]}}
    // expected-note @+1 {{round T up, and say in H how many heads exist}}
    pipe.store %v, %d[%c, %c] heads = [8, 8, 32] : !tile, !pipe.global<40x512xbf16>
    gpu.return
  }
}

// -----

!numbers = tensor<64x1xf32, #pipe.distribution<wgmma>>
gpu.module @kernels {
  gpu.func @bad(%v: !numbers, %d: !pipe.global<40x7xf32>) kernel {
    %c = arith.constant 0 : i32
    pipe.store %v, %d[%c, %c] heads = [8, 7, 1] : !numbers, !pipe.global<40x7xf32>
    // (C184)
    // expected-error @+2 {{value of one column must not be transposed, but is: 'tensor<64x1xf32, #pipe.distribution<wgmma>>'}}
    // expected-note @+1 {{leave 'transposed' out: each row has one number}}
    pipe.store %v, %d[%c, %c] transposed : !numbers, !pipe.global<40x7xf32>
    gpu.return
  }
}
