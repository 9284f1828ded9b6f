// Tables of tiles, and parts of a tile: one case per constraint of PipeConstraints.td, next to legal operations.
// RUN: fp4-opt %s -verify-diagnostics -split-input-file

func.func @entry(%t: !pipe.global<24x4xi32>, %line: !pipe.global<8xf32>, %wide: !pipe.global<24x3xi32>, %i: i32) {
  %0 = pipe.load_entry %t[%i] : !pipe.global<24x4xi32> -> vector<4xi32>
  %1 = pipe.load_entry %line[%i] : !pipe.global<8xf32> -> vector<1xf32>
  // (C170)
  // expected-error @+2 {{table must have rows of 1, 2 or 4 elements like 'vector<3xi32>', but got '!pipe.global<24x3xi32>'}}
  // expected-note @+1 {{let the vector have as many elements as a row, of the same type}}
  %2 = pipe.load_entry %wide[%i] : !pipe.global<24x3xi32> -> vector<3xi32>
  return
}

// -----

func.func @entry(%p: !pipe.global<f32>, %t: !pipe.global<24x4xi32>) {
  // (C170)
  // expected-error @+2 {{of a number must have a buffer of no dimensions with its element type and no index, but got '!pipe.global<24x4xi32>' for 'i32'}}
  // expected-note @+1 {{pass a !pipe.global<T>, or write '[%index]' for a row of a table}}
  %0 = pipe.load_entry %t : !pipe.global<24x4xi32> -> i32
  return
}

// -----

func.func @entry(%t: !pipe.global<24x4xi32>, %i: i32) {
  // (C170)
  // expected-error @+2 {{of a row must give a vector, but got 'i32'}}
  // expected-note @+1 {{extract the number from the vector of the row}}
  %0 = pipe.load_entry %t[%i] : !pipe.global<24x4xi32> -> i32
  return
}

// -----

func.func @join(%c: !pipe.global<24x4xi32>, %bad: !pipe.global<24x1xi32>, %i: i32) {
  %0 = pipe.count_partial %c[%i] of 2 : !pipe.global<24x4xi32>
  // (C171)
  // expected-error @+2 {{counters must be a buffer of i32 with 4 or 8 columns, but got '!pipe.global<24x1xi32>'}}
  // expected-note @+1 {{allocate rows of 4 x i32, or of 8 for roles of 8 warps}}
  %1 = pipe.count_partial %bad[%i] of 2 : !pipe.global<24x1xi32>
  return
}

// -----

func.func @join(%c: !pipe.global<24x4xi32>, %i: i32) {
  // (C171)
  // expected-error @+2 {{parts must be at least 2, but got 1}}
  // expected-note @+1 {{one part has nothing to reduce: leave the operation out}}
  %1 = pipe.count_partial %c[%i] of 1 : !pipe.global<24x4xi32>
  return
}

// -----

func.func @fetch(%s: !pipe.global<256x64xf32>, %bad: !pipe.global<256x48xf32>, %i: i32) {
  %0 = pipe.fetch %s[%i, %i] written : !pipe.global<256x64xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  // (C172)
  // expected-error @+2 {{buffer must have 2 dimensions with whole segments of 'tensor<128x32xf32, #pipe.distribution<lanes>>' in a row, but got '!pipe.global<256x48xf32>'}}
  // expected-note @+1 {{fetch tiles whose columns divide those of the buffer}}
  %1 = pipe.fetch %bad[%i, %i] written : !pipe.global<256x48xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  return
}

// -----

gpu.module @m {
gpu.func @cluster() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  %acc = pipe.accumulator : !pipe.fragment<64x32xf32, wgmma>
  pipe.reduce %acc by 16 : !pipe.fragment<64x32xf32, wgmma>
  %of_warps = pipe.accumulator : !pipe.fragment<64x32xf32, mma_sync>
  // (C260)
  // expected-error @+2 {{accumulator must be an f32 fragment of wgmma with 64 rows, but got '!pipe.fragment<64x32xf32, mma_sync>'}}
  // expected-note @+1 {{write a !pipe.fragment<64xNxf32, wgmma> for each 64 rows}}
  pipe.reduce %of_warps by 16 : !pipe.fragment<64x32xf32, mma_sync>
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @cluster() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  %acc = pipe.accumulator : !pipe.fragment<64x32xf32, wgmma>
  pipe.reduce maximum %acc by 16 rows 9 : !pipe.fragment<64x32xf32, wgmma>
  // (C669)
  // expected-error @+2 {{rows must be 1 to 64, of a role of one warpgroup, but got 65}}
  // expected-note @+1 {{leave 'rows' out, and all rows are reduced}}
  pipe.reduce %acc by 16 rows 65 : !pipe.fragment<64x32xf32, wgmma>
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @cluster() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  %acc = pipe.accumulator : !pipe.fragment<64x32xf32, wgmma>
  // (C260)
  // expected-error @+2 {{columns must be a multiple of 8 that divides the 32 columns of the accumulator, but got 24}}
  // expected-note @+1 {{take fewer columns for each piece}}
  pipe.reduce %acc by 24 : !pipe.fragment<64x32xf32, wgmma>
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @ranges() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  %acc = pipe.accumulator : !pipe.fragment<64x32xf32, wgmma>
  %next = pipe.accumulator : !pipe.fragment<64x32xf32, wgmma>
  pipe.reduce %acc, %next by 16 : !pipe.fragment<64x32xf32, wgmma>, !pipe.fragment<64x32xf32, wgmma>
  %other = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
  // (C260)
  // expected-error @+2 {{accumulators must be one or several of one type, but got '!pipe.fragment<64x32xf32, wgmma>', '!pipe.fragment<64x16xf32, wgmma>'}}
  // expected-note @+1 {{reduce accumulators of different types with an operation for each type}}
  pipe.reduce %acc, %other by 16 : !pipe.fragment<64x32xf32, wgmma>, !pipe.fragment<64x16xf32, wgmma>
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @alone() kernel attributes {known_cluster_size = array<i32: 1, 2, 1>} {
  %acc = pipe.accumulator : !pipe.fragment<64x32xf32, wgmma>
  // (C261)
  // expected-error @+2 {{expects a cluster of at least 2 CTAs along m, but got 1}}
  // expected-note @+1 {{write known_cluster_size = array<i32: 2, 1, 1> at the kernel, or pipe.count_partial where CTAs share no memory}}
  pipe.reduce %acc by 16 : !pipe.fragment<64x32xf32, wgmma>
  gpu.return
}
}

// -----

func.func @join_of_value(%c: !pipe.global<24x4xi32>, %i: i32) {
  %0 = pipe.count_partial %c[%i] of %i : !pipe.global<24x4xi32>
  // (C171)
  // expected-error @+2 {{parts must be a constant or a value, but got both}}
  // expected-note @+1 {{write 'of N' or 'of %n', and not both}}
  %1 = "pipe.count_partial"(%c, %i, %i) {parts = 2 : i64} : (!pipe.global<24x4xi32>, i32, i32) -> i1
  return
}

// -----

gpu.module @m {
gpu.func @lanes() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  %acc = pipe.accumulator : !pipe.tmem<128x64xf32>
  %0 = pipe.reduce %acc : !pipe.tmem<128x64xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  %halves = pipe.accumulator : !pipe.tmem<128x64xf32, pair>
  // (C520)
  // expected-error @+2 {{accumulator must have 128 rows of f32, or 256 of a pair, but got '!pipe.tmem<128x64xf32, pair>'}}
  // expected-note @+1 {{take an accumulator of 128 TMEM lanes for each CTA}}
  %1 = pipe.reduce %halves : !pipe.tmem<128x64xf32, pair> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @pair() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  %acc = pipe.accumulator : !pipe.tmem<256x64xf32, pair>
  // (C261)
  // expected-error @+2 {{expects a cluster of at least 2 pairs along m, but got 1}}
  // expected-note @+1 {{a cluster of two pairs has 4 CTAs along m}}
  %0 = pipe.reduce %acc : !pipe.tmem<256x64xf32, pair> -> tensor<128x64xf32, #pipe.distribution<lanes>>
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @few() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  %acc = pipe.accumulator : !pipe.tmem<128x64xf32>
  // (C522)
  // expected-error @+2 {{result must be lanes of a multiple of 4 columns, at most 128, of which 2 have the 64 columns of a warpgroup, but got 'tensor<128x12xf32, #pipe.distribution<lanes>>'}}
  // expected-note @+1 {{divide the columns among the CTAs, rounded up to 4}}
  %0 = pipe.reduce %acc : !pipe.tmem<128x64xf32> -> tensor<128x12xf32, #pipe.distribution<lanes>>
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @groups() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  %accs = pipe.channel from tensor to threads(256) : !pipe.channel<!pipe.tmem<128x64xf32>>
  pipe.role epilogue warps 0 to 8 drives [threads] {
    %acc = pipe.consumer_wait %accs : !pipe.channel<!pipe.tmem<128x64xf32>>
    %0 = pipe.reduce %acc : !pipe.tmem<128x64xf32> -> tensor<128x16xf32, #pipe.distribution<lanes>>
    // (C522)
    // expected-error @+2 {{of which 2 have the 32 columns of a warpgroup, but got 'tensor<128x12xf32, #pipe.distribution<lanes>>'}}
    // expected-note @+1 {{divide the columns among the CTAs, rounded up to 4}}
    %1 = pipe.reduce %acc : !pipe.tmem<128x64xf32> -> tensor<128x12xf32, #pipe.distribution<lanes>>
    pipe.consumer_release %accs : !pipe.channel<!pipe.tmem<128x64xf32>>
  }
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @form() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  %acc = pipe.accumulator : !pipe.fragment<64x32xf32, wgmma>
  pipe.reduce %acc by 16 : !pipe.fragment<64x32xf32, wgmma>
  // (C260)
  // expected-error @+2 {{of fragments must have columns and no result}}
  // expected-note @+1 {{write 'by 8': a CTA adds so many columns at a time, where they are}}
  pipe.reduce %acc : !pipe.fragment<64x32xf32, wgmma>
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @form_of_tmem() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  %acc = pipe.accumulator : !pipe.tmem<128x64xf32>
  %0 = pipe.reduce %acc : !pipe.tmem<128x64xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  // (C520)
  // expected-error @+2 {{of tensor memory must have one accumulator and a result, and neither 'by', 'maximum' nor 'rows'}}
  // expected-note @+1 {{the columns of the result are those that a CTA adds}}
  %1 = pipe.reduce %acc by 32 : !pipe.tmem<128x64xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  gpu.return
}
}
