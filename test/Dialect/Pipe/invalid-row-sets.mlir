// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Rows of f32 scales that TMA cannot stride by (layouts rows_P_mod_4). Every error has a twin above it that differs
// in one place and verifies.

func.func private @twin(!pipe.shared<64x4xf32, rows_2_mod_4>)
// (C670)
// expected-error @+2 {{tile of layout rows_1_mod_4 must have a multiple of 32 rows by one of 4 columns of f32, but got 16x4x'f32'}}
// expected-note @+1 {{round the rows up: nobody reads those behind the last one}}
func.func private @bad(!pipe.shared<16x4xf32, rows_1_mod_4>)

// -----

func.func private @twin(!pipe.tensor_map<16x8xf32, rows_2_mod_4>)
// (C670)
// expected-error @+2 {{tile of layout rows_2_mod_4 must have a multiple of 16 rows by one of 4 columns of f32, at most 256 of a set, but got 16x6x'f32'}}
// expected-note @+1 {{round the rows up: nobody reads those behind the last one}}
func.func private @bad(!pipe.tensor_map<16x6xf32, rows_2_mod_4>)

// -----

func.func private @twin(!pipe.tensor_map<64x4xf32, residue>)
// (C670)
// expected-error @+2 {{map of layout rows_3_mod_4 must have no residue, but got one}}
// expected-note @+1 {{leave 'residue' out: rows behind the last one load as zeros}}
func.func private @bad(!pipe.tensor_map<64x4xf32, rows_3_mod_4, residue>)

// -----

func.func private @twin(!pipe.tensor_map<8x8x4xf32>)
// (C666)
// expected-error @+2 {{box of planes must have elements of whole bytes, no residue, and at most 256 rows in all}}
// expected-note @+1 {{describe the buffer as a matrix, with a box of rows and columns}}
func.func private @bad(!pipe.tensor_map<8x8x4xf32, rows_2_mod_4>)

// -----

func.func @pitch(%twin: memref<?x42xf32>, %bad: memref<?x44xf32>) {
  pipe.make_tensor_map %twin columns 42 : memref<?x42xf32> -> !pipe.tensor_map<64x4xf32, rows_2_mod_4>
  // (C108)
  // expected-error @+2 {{row pitch must be 8 bytes modulo 16 for layout rows_2_mod_4, but got 176}}
  // expected-note @+1 {{the layout says how many elements a row of the buffer has, modulo 4}}
  pipe.make_tensor_map %bad columns 44 : memref<?x44xf32> -> !pipe.tensor_map<64x4xf32, rows_2_mod_4>
  return
}

// -----

gpu.module @kernels {
  gpu.func @cluster(%map: !pipe.tensor_map<128x4xf32, rows_2_mod_4>, %row: i32, %k: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    pipe.load %map[%row, %k] : !pipe.tensor_map<128x4xf32, rows_2_mod_4> -> !pipe.shared<128x4xf32, rows_2_mod_4>
    // (C671)
    // expected-error @+2 {{tile of layout rows_2_mod_4 must be boxes that one CTA loads from one row on, but got multicast}}
    // expected-note @+1 {{leave 'multicast' and 'below' out}}
    pipe.load %map[%row, %k] multicast m : !pipe.tensor_map<128x4xf32, rows_2_mod_4> -> !pipe.shared<128x4xf32, rows_2_mod_4>
    gpu.return
  }
}

// -----

func.func @from(%a: !pipe.shared<64x4xf32, rows_2_mod_4>, %b: !pipe.shared<16x4xf32, rows_2_mod_4>, %k: i32, %m: i32, %n: i32) {
  pipe.scales %a[0], %b block %k from %m, %n, %k : !pipe.shared<64x4xf32, rows_2_mod_4>, !pipe.shared<16x4xf32, rows_2_mod_4> -> vector<3xf32>
  // (C324)
  // expected-error @+2 {{a and b must be of one layout, with 'from' for rows_P_mod_4, but got}}
  // expected-note @+1 {{write 'from %row, %band, %block' for layout rows_P_mod_4, and only for it}}
  pipe.scales %a[0], %b block %k : !pipe.shared<64x4xf32, rows_2_mod_4>, !pipe.shared<16x4xf32, rows_2_mod_4> -> vector<3xf32>
  return
}

// -----

func.func @layouts(%a: !pipe.shared<64x4xf32, rows_2_mod_4>, %b: !pipe.shared<16x4xf32, rows_2_mod_4>, %c: !pipe.shared<16x4xf32>, %k: i32, %m: i32, %n: i32) {
  pipe.scales %a[0], %b block %k from %m, %n, %k : !pipe.shared<64x4xf32, rows_2_mod_4>, !pipe.shared<16x4xf32, rows_2_mod_4> -> vector<18xf32>
  // (C324)
  // expected-error @+2 {{a and b must be of one layout, with 'from' for rows_P_mod_4, but got}}
  // expected-note @+1 {{write 'from %row, %band, %block' for layout rows_P_mod_4, and only for it}}
  pipe.scales %a[0], %c block %k from %m, %n, %k : !pipe.shared<64x4xf32, rows_2_mod_4>, !pipe.shared<16x4xf32> -> vector<18xf32>
  return
}

// -----

func.func @numbers(%a: !pipe.shared<64x4xf32, rows_2_mod_4>, %b: !pipe.shared<16x4xf32, rows_2_mod_4>, %k: i32, %m: i32, %n: i32) {
  pipe.scales %a[0], %b block %k from %m, %n, %k : !pipe.shared<64x4xf32, rows_2_mod_4>, !pipe.shared<16x4xf32, rows_2_mod_4> -> vector<4xf32>
  // (C324)
  // expected-error @+2 {{scales must be 3 to 18 numbers, two and one for each row of b, but got 'vector<2xf32>'}}
  // expected-note @+1 {{a vector has the scales of two rows of a and of every row of b}}
  pipe.scales %a[0], %b block %k from %m, %n, %k : !pipe.shared<64x4xf32, rows_2_mod_4>, !pipe.shared<16x4xf32, rows_2_mod_4> -> vector<2xf32>
  return
}

// -----

func.func @lanes(%a: !pipe.shared<128x4xf32>, %b: !pipe.shared<1x4xf32>, %c: !pipe.shared<128x4xf32, rows_2_mod_4>, %d: !pipe.shared<16x4xf32, rows_2_mod_4>, %k: i32) {
  pipe.scales %a[0], %b block %k : !pipe.shared<128x4xf32>, !pipe.shared<1x4xf32> -> f32
  // (C324)
  // expected-error @+2 {{a must have rows that follow one another beside a number, but got '!pipe.shared<128x4xf32, rows_2_mod_4>'}}
  // expected-note @+1 {{leave the layout out}}
  pipe.scales %c[0], %d block %k from %k, %k, %k : !pipe.shared<128x4xf32, rows_2_mod_4>, !pipe.shared<16x4xf32, rows_2_mod_4> -> f32
  return
}

// -----

func.func private @twin(!pipe.tensor_map<512x4xf32, rows_2_mod_4>)
// (C670)
// expected-error @+2 {{tile of layout rows_2_mod_4 must have a multiple of 16 rows by one of 4 columns of f32, at most 256 of a set, but got 1024x4x'f32'}}
// expected-note @+1 {{round the rows up: nobody reads those behind the last one}}
func.func private @bad(!pipe.tensor_map<1024x4xf32, rows_2_mod_4>)

// -----

func.func private @twin(!pipe.tensor_map<32x256xf32, rows_1_mod_4>)
// (C670)
// expected-error @+2 {{tile of layout rows_1_mod_4 must have a multiple of 32 rows by one of 4 columns of f32, at most 256 of a set, but got 32x260x'f32'}}
// expected-note @+1 {{round the rows up: nobody reads those behind the last one}}
func.func private @bad(!pipe.tensor_map<32x260xf32, rows_1_mod_4>)

// -----

func.func @columns(%twin: memref<?x?xf32>, %bad: memref<?x?xf32>, %n: index) {
  pipe.make_tensor_map %twin columns %n : memref<?x?xf32> -> !pipe.tensor_map<64x4xf32>
  // (C491)
  // expected-error @+2 {{map whose columns are a value must not have layout rows_2_mod_4, but got '!pipe.tensor_map<64x4xf32, rows_2_mod_4>'}}
  // expected-note @+1 {{write 'columns 42' of a buffer with static columns}}
  pipe.make_tensor_map %bad columns %n : memref<?x?xf32> -> !pipe.tensor_map<64x4xf32, rows_2_mod_4>
  return
}

// -----

func.func @strides(%twin: memref<?x42xf32, strided<[46, 1]>>, %bad: memref<?x42xf32, strided<[?, 1]>>) {
  pipe.make_tensor_map %twin columns 42 : memref<?x42xf32, strided<[46, 1]>> -> !pipe.tensor_map<64x4xf32, rows_2_mod_4>
  // (C108)
  // expected-error @+2 {{row pitch must be static for layout rows_2_mod_4, but got 'memref<?x42xf32, strided<[?, 1]>>'}}
  // expected-note @+1 {{pass a buffer whose strides are static, or copy it into one}}
  pipe.make_tensor_map %bad columns 42 : memref<?x42xf32, strided<[?, 1]>> -> !pipe.tensor_map<64x4xf32, rows_2_mod_4>
  return
}

// -----

// Operands behind 'from' come together, also of powers.
func.func @part_of_from(%p: !pipe.shared<4x64xf32>, %a: !pipe.shared<64x4xf32, rows_2_mod_4>, %b: !pipe.shared<16x4xf32, rows_2_mod_4>, %k: i32) {
  "pipe.scales"(%a, %b, %k, %k, %k, %k) <{first = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 1, 1>}> : (!pipe.shared<64x4xf32, rows_2_mod_4>, !pipe.shared<16x4xf32, rows_2_mod_4>, i32, i32, i32, i32) -> vector<3xf32>
  // (C324)
  // expected-error @+2 {{from must have a row, a band and a block, but got 1 of 3}}
  // expected-note @+1 {{write 'from %row, %band, %block', or nothing of it}}
  "pipe.scales"(%a, %b, %k, %k) <{first = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0, 0>}> : (!pipe.shared<64x4xf32, rows_2_mod_4>, !pipe.shared<16x4xf32, rows_2_mod_4>, i32, i32) -> vector<3xf32>
  return
}

// -----

func.func @block_of_from(%p: !pipe.shared<4x64xf32>, %k: i32) {
  "pipe.scales"(%p, %k) <{first = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 1, 0, 0, 0, 0>}> : (!pipe.shared<4x64xf32>, i32) -> vector<3xf32>
  // (C324)
  // expected-error @+2 {{from must have a row, a band and a block, but got 1 of 3}}
  // expected-note @+1 {{write 'from %row, %band, %block', or nothing of it}}
  "pipe.scales"(%p, %k, %k) <{first = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 1, 0, 0, 0, 1>}> : (!pipe.shared<4x64xf32>, i32, i32) -> vector<3xf32>
  return
}
