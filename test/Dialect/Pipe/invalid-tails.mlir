// Maps with residues, and the number of rows that their loads get.
// RUN: fp4-opt %s -split-input-file -verify-diagnostics

func.func private @twin(!pipe.tensor_map<128x16xf8E4M3FN, tiled_128x4>)
// (C471)
// expected-error @+2 {{map with a residue must have rows of elements, but got layout tiled_128x4}}
// expected-note @+1 {{scale tiles have no residue: leave 'residue' out}}
func.func private @bad(!pipe.tensor_map<128x16xf8E4M3FN, tiled_128x4, residue>)

// -----

func.func @rows(%rows: i32, %row: i32) {
  %twin = pipe.existing_rows %rows from %row of 1
  // (C472)
  // expected-error @+2 {{box must be positive, but got 0}}
  // expected-note @+1 {{write the rows of the box of the map that it is for}}
  %bad = pipe.existing_rows %rows from %row of 0
  return
}

// -----

func.func @rows(%rows: i32, %row: i32) {
  %c300 = arith.constant 300 : i32
  %twin = pipe.existing_rows %c300 from %row of 128
  %sum = arith.addi %rows, %row : i32
  // (C472)
  // expected-error @+2 {{rows must be an argument of the kernel or a constant, but got another value}}
  // expected-note @+1 {{compute the number on the host, and pass it as an argument}}
  %bad = pipe.existing_rows %sum from %row of 128
  return
}

// -----

!map = !pipe.tensor_map<64x64xbf16, swizzle_128B, residue>
!tile = !pipe.shared<64x64xbf16, swizzle_128B>
func.func @none(%map: !map, %rows: i32, %i: i32) {
  %exist = pipe.existing_rows %rows from %i of 64
  %twin = pipe.load %map[%i, %i] existing %exist : !map -> !tile
  // (C473)
  // expected-error @+2 {{map with a residue must come with rows from pipe.existing_rows of 64, but got none}}
  // expected-note @+1 {{write 'existing %n' of this map's pipe.existing_rows, or leave 'residue' out}}
  %bad = pipe.load %map[%i, %i] : !map -> !tile
  return
}

// -----

!map = !pipe.tensor_map<64x64xbf16, swizzle_128B, residue>
!tile = !pipe.shared<64x64xbf16, swizzle_128B>
func.func @others(%map: !map, %rows: i32, %i: i32) {
  %exist = pipe.existing_rows %rows from %i of 64
  %twin = pipe.load %map[%i, %i] existing %exist : !map -> !tile
  // (C473)
  // expected-error @+2 {{map with a residue must come with rows from pipe.existing_rows of 64, but got others}}
  // expected-note @+1 {{write 'existing %n' of this map's pipe.existing_rows, or leave 'residue' out}}
  %bad = pipe.load %map[%i, %i] existing %rows : !map -> !tile
  return
}

// -----

!map = !pipe.tensor_map<64x64xbf16, swizzle_128B, residue>
!tile = !pipe.shared<64x64xbf16, swizzle_128B>
func.func @box(%map: !map, %rows: i32, %i: i32) {
  %exist = pipe.existing_rows %rows from %i of 64
  %twin = pipe.load %map[%i, %i] existing %exist : !map -> !tile
  %wrong = pipe.existing_rows %rows from %i of 128
  // (C473)
  // expected-error @+2 {{map with a residue must come with rows from pipe.existing_rows of 64, but got those of 128}}
  // expected-note @+1 {{write 'existing %n' of this map's pipe.existing_rows, or leave 'residue' out}}
  %bad = pipe.load %map[%i, %i] existing %wrong : !map -> !tile
  return
}

// -----

!tile = !pipe.shared<64x64xbf16, swizzle_128B>
func.func @plain(%map: !pipe.tensor_map<64x64xbf16, swizzle_128B, residue>,
                 %plain: !pipe.tensor_map<64x64xbf16, swizzle_128B>, %rows: i32, %i: i32) {
  %exist = pipe.existing_rows %rows from %i of 64
  %twin = pipe.load %map[%i, %i] existing %exist : !pipe.tensor_map<64x64xbf16, swizzle_128B, residue> -> !tile
  // (C473)
  // expected-error @+2 {{existing rows must be for a map with a residue, but got '!pipe.tensor_map<64x64xbf16, swizzle_128B>'}}
  // expected-note @+1 {{leave 'existing' out, or write 'residue' in the type of the map}}
  %bad = pipe.load %plain[%i, %i] existing %exist : !pipe.tensor_map<64x64xbf16, swizzle_128B> -> !tile
  return
}

// -----

!map = !pipe.tensor_map<64x64xbf16, swizzle_128B, residue>
gpu.module @m {
gpu.func @together(%map: !map, %rows: i32, %i: i32) kernel attributes {known_cluster_size = array<i32: 1, 2, 1>} {
  %exist = pipe.existing_rows %rows from %i of 64
  %twin = pipe.load %map[%i, %i] existing %exist : !map -> !pipe.shared<64x64xbf16, swizzle_128B>
  // (C473)
  // expected-error @+2 {{map with a residue must have tiles that one CTA loads, but got multicast}}
  // expected-note @+1 {{leave 'multicast' out, or 'residue' in the type of the map}}
  %bad = pipe.load %map[%i, %i] existing %exist multicast n : !map -> !pipe.shared<128x64xbf16, swizzle_128B>
  gpu.return
}
}
