// RUN: fp4-opt %s -verify-diagnostics -split-input-file
// Types and operations of pairs and clusters. The first kernel is correct.

!map = !pipe.tensor_map<64x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!pscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4, pair>
!pscales2 = !pipe.tmem<256x16xf8E4M3FN, tiled_128x4, pair>
!acc = !pipe.tmem<256x256xf32, pair>
gpu.module @m {
gpu.func @twin(%map: !map, %acc: !acc, %a: !data, %sa: !pscales, %sb: !pscales2, %x: i32, %t: i1)
    kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  %b = pipe.load %map[%x, %x] multicast m : !map -> !data
  pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %t : !acc, !data, !pscales, !data, !pscales2
  gpu.return
}
}

// -----

// (C104)
// expected-error @+2 {{accumulator of a pair must be 256 or 128 rows of f32 and 16 to 256 columns in steps of 16, but got 64x128x}}
// expected-note @+1 {{block-scaled instructions make these shapes; take several accumulators for a larger tile}}
func.func private @rows() -> !pipe.tmem<64x128xf32, pair>

// -----

// (C104)
// expected-error @+2 {{accumulator of a pair must be 256 or 128 rows of f32 and 16 to 256 columns in steps of 16, but got 256x40x}}
// expected-note @+1 {{block-scaled instructions make these shapes; take several accumulators for a larger tile}}
func.func private @columns() -> !pipe.tmem<256x40xf32, pair>

// -----

// (C104)
// expected-error @+2 {{accumulator must be 128 rows of f32 and 8 to 256 columns in steps of 8, but got 256x128x}}
// expected-note @+1 {{block-scaled instructions make these shapes; take several accumulators for a larger tile}}
func.func private @alone() -> !pipe.tmem<256x128xf32>

// -----

// expected-error @+2 {{layout must be linear, swizzle_32B, swizzle_64B, swizzle_128B, swizzle_128B_b4x16_p64, tiled_128x4, halves_128x4 or rows_P_mod_4 with P = 1, 2 or 3, but got pair}}
// expected-note @+1 {{the last three are layouts of scales, the others of data; linear is what is meant without a word}}
func.func private @shared() -> !pipe.shared<128x256xf4E2M1FN, pair>

// -----

// (C103)
// expected-error @+2 {{tiled_128x4 tile must have 64 rows or a multiple of 128, and a multiple of 4 columns, but got 32x16}}
// expected-note @+1 {{scales are stored as scale tiles, 128x4; round the tile up to whole scale tiles}}
func.func private @map() -> !pipe.tensor_map<32x16xf8E4M3FN, tiled_128x4>

// -----

func.func @scale_map(%sf: memref<?x17x512xi8>) {
  // (C108)
  // expected-error @+2 {{buffer of a map of 64 columns of scales must be a row-major memref of rank 3 with 16x512xi8 per row of scale tiles, but got 'memref<?x17x512xi8>'}}
  // expected-note @+1 {{fp4.swizzle_scales makes such a buffer}}
  %map = pipe.make_tensor_map %sf columns 64 : memref<?x17x512xi8> -> !pipe.tensor_map<128x16xf8E4M3FN, tiled_128x4>
  return
}

// -----

!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!pscales2 = !pipe.tmem<256x16xf8E4M3FN, tiled_128x4, pair>
!acc = !pipe.tmem<256x256xf32, pair>
func.func @mixed(%acc: !acc, %a: !data, %sa: !scales, %sb: !pscales2, %t: i1) {
  // (C150)
  // expected-error @+2 {{accumulator and scales must all belong to a pair, or none of them}}
  // expected-note @+1 {{add ', pair' to the types of all three, or to none}}
  pipe.mma %acc, %a scaled %sa, %a scaled %sb accumulate %t : !acc, !data, !scales, !data, !pscales2
  return
}

// -----

!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!whole = !pipe.shared<256x256xf4E2M1FN, swizzle_128B>
!pscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4, pair>
!pscales2 = !pipe.tmem<256x16xf8E4M3FN, tiled_128x4, pair>
!acc = !pipe.tmem<256x256xf32, pair>
func.func @whole_b(%acc: !acc, %a: !data, %b: !whole, %sa: !pscales, %sb: !pscales2, %t: i1) {
  // (C114)
  // expected-error @+2 {{b must have as many rows as the accumulator has columns for each CTA of the pair, 128, but got 256}}
  // expected-note @+1 {{each CTA of the pair loads half of the rows of b}}
  pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %t : !acc, !data, !pscales, !whole, !pscales2
  return
}

// -----

!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!pscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4, pair>
!acc = !pipe.tmem<256x256xf32, pair>
func.func @half_scales(%acc: !acc, %a: !data, %sa: !pscales, %t: i1) {
  // (C116)
  // expected-error @+2 {{b_scales must have at least 256 rows, but got 128}}
  // expected-note @+1 {{copy whole scale tiles of 128 rows}}
  pipe.mma %acc, %a scaled %sa, %a scaled %sa accumulate %t : !acc, !data, !pscales, !data, !pscales
  return
}

// -----

!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
gpu.module @m {
gpu.func @alone(%map: !map, %x: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  // (C151)
  // expected-error @+2 {{multicast along n must be in a cluster of several CTAs along n}}
  // expected-note @+1 {{the attribute known_cluster_size of the kernel gives the cluster}}
  %b = pipe.load %map[%x, %x] multicast n : !map -> !data
  gpu.return
}
}

// -----

!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
gpu.module @m {
gpu.func @one_pair(%map: !map, %x: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  // (C151)
  // expected-error @+2 {{multicast along pairs must be in a cluster of several pairs along m}}
  // expected-note @+1 {{the attribute known_cluster_size of the kernel gives the cluster}}
  %b = pipe.load %map[%x, %x] multicast pairs : !map -> !data
  gpu.return
}
}

// -----

!map = !pipe.tensor_map<128x8xf8E4M3FN, tiled_128x4>
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
gpu.module @m {
gpu.func @part_of_a_row(%map: !map, %x: i32) kernel attributes {known_cluster_size = array<i32: 1, 2, 1>} {
  %twin = pipe.load %map[%x, %x] multicast n : !map -> !scales
  // (C151)
  // expected-error @+2 {{each of the 2 CTAs along n must load as many scale tiles of 128x4, side by side, but got '!pipe.shared<384x8xf8E4M3FN, tiled_128x4>'}}
  // expected-note @+1 {{take a smaller cluster, or a wider tile}}
  %b = pipe.load %map[%x, %x] multicast n : !map -> !pipe.shared<384x8xf8E4M3FN, tiled_128x4>
  gpu.return
}
}

// -----

!map = !pipe.tensor_map<32x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<32x256xf4E2M1FN, swizzle_128B>
gpu.module @m {
gpu.func @thin(%map: !map, %x: i32) kernel attributes {known_cluster_size = array<i32: 8, 1, 1>} {
  // (C151)
  // expected-error @+2 {{each of the 8 CTAs along m must load a multiple of 8 rows, but the tile has 32}}
  // expected-note @+1 {{take a smaller cluster, or a higher tile}}
  %b = pipe.load %map[%x, %x] multicast m : !map -> !data
  gpu.return
}
}

// -----

!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
gpu.module @m {
gpu.func @box(%map: !map, %x: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  // (C109)
  // expected-error @+2 {{each CTA's part of the tile must have the box of its map}}
  // expected-note @+1 {{the box of a map is a panel, as wide as the swizzle, or the part of it that one CTA loads}}
  %b = pipe.load %map[%x, %x] multicast m : !map -> !data
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @leader(%x: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  // (C149)
  // expected-error @+2 {{role math drives the tensor cores of pairs, so it must drive tensor and scale_copy only, but it drives threads}}
  // expected-note @+1 {{give the other engines to a role of their own, because the second CTA of a pair skips this one}}
  pipe.role math warps 0 to 4 drives [tensor, threads] {
    %acc = pipe.accumulator : !pipe.tmem<256x256xf32, pair>
    %v = pipe.read %acc[%x] : !pipe.tmem<256x256xf32, pair> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  }
  gpu.return
}
}
