// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Sums of lanes that are promoted to fp32 (PipeConstraints.td). Every error has a twin above it that differs in one
// place and verifies.

func.func @twin(%acc: !pipe.tmem<128x64xf32>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<64x128xf8E4M3FN, swizzle_128B>) {
  pipe.mma %acc, %a, %b : !pipe.tmem<128x64xf32>,
      !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<64x128xf8E4M3FN, swizzle_128B>
  return
}
func.func @bad(%acc: !pipe.tmem<128x64xf32>, %a: !pipe.shared<128x128xf8E5M2, swizzle_128B>, %b: !pipe.shared<64x128xf8E4M3FN, swizzle_128B>) {
  // (C650)
  // expected-error @+2 {{a_scales must be scales in tensor memory, but got none}}
  // expected-note @+1 {{MMAs with the operands before it are tcgen05 mxf8f6f4}}
  pipe.mma %acc, %a, %b : !pipe.tmem<128x64xf32>,
      !pipe.shared<128x128xf8E5M2, swizzle_128B>, !pipe.shared<64x128xf8E4M3FN, swizzle_128B>
  return
}

// -----

func.func @bad(%acc: !pipe.tmem<128x64xf32>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<64x256xf8E4M3FN, swizzle_128B>) {
  // (C373)
  // expected-error @+2 {{a and b must have the same f8E4M3FN and K, in layout swizzle_128B or swizzle_64B, but got '!pipe.shared<128x128xf8E4M3FN, swizzle_128B>' and '!pipe.shared<64x256xf8E4M3FN, swizzle_128B>'}}
  // expected-note @+1 {{load both operands with boxes of 128 elements of K, or of 64}}
  pipe.mma %acc, %a, %b : !pipe.tmem<128x64xf32>,
      !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<64x256xf8E4M3FN, swizzle_128B>
  return
}

// -----

func.func @bad(%acc: !pipe.tmem<128x64xf32>, %a: !pipe.shared<64x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<64x128xf8E4M3FN, swizzle_128B>) {
  // (C373)
  // expected-error @+2 {{a must have 128 rows, but got}}
  // expected-note @+1 {{an instruction has 128 TMEM lanes: load a tile of as many rows}}
  pipe.mma %acc, %a, %b : !pipe.tmem<128x64xf32>,
      !pipe.shared<64x128xf8E4M3FN, swizzle_128B>, !pipe.shared<64x128xf8E4M3FN, swizzle_128B>
  return
}

// -----

func.func @bad(%acc: !pipe.tmem<128x72xf32>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<72x128xf8E4M3FN, swizzle_128B>) {
  // (C373)
  // expected-error @+2 {{accumulator must have sums in a multiple of 16 columns, but got}}
  // expected-note @+1 {{take an accumulator of a multiple of 16 columns, with 256 rows where it is of a pair}}
  pipe.mma %acc, %a, %b : !pipe.tmem<128x72xf32>,
      !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<72x128xf8E4M3FN, swizzle_128B>
  return
}

// -----

func.func @twin(%acc: !pipe.tmem<128x16xf32>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<16x128xf8E4M3FN, swizzle_128B>) {
  pipe.mma %acc, %a, %b : !pipe.tmem<128x16xf32>,
      !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<16x128xf8E4M3FN, swizzle_128B>
  return
}
func.func @bad(%acc: !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<16x128xf8E4M3FN, swizzle_128B>) {
  // (C650)
  // expected-error @+2 {{accumulator must be f32 in tensor memory or f32 in a fragment of wgmma or f32 in a fragment of mma_sync, but got '!pipe.tmem<128x16xf8E4M3FN, tiled_128x4>'}}
  // expected-note @+1 {{MMAs with the operands before it are tcgen05 mxf4nvf4, }}
  pipe.mma %acc, %a, %b : !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<16x128xf8E4M3FN, swizzle_128B>
  return
}

// -----

func.func @bad(%acc: !pipe.tmem<128x128xf32>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<64x128xf8E4M3FN, swizzle_128B>) {
  // (C373)
  // expected-error @+2 {{b must have a row for each of 128 columns, of a pair for half of them, but got}}
  // expected-note @+1 {{each CTA of a pair loads half of the rows of b}}
  pipe.mma %acc, %a, %b : !pipe.tmem<128x128xf32>,
      !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<64x128xf8E4M3FN, swizzle_128B>
  return
}

// -----

func.func @twin(%acc: !pipe.tmem<256x128xf32, pair>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<64x128xf8E4M3FN, swizzle_128B>) {
  pipe.mma %acc, %a, %b : !pipe.tmem<256x128xf32, pair>,
      !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<64x128xf8E4M3FN, swizzle_128B>
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<128x64xf32, lanes>) -> i32 {
  %r, %c = pipe.place %acc : !pipe.fragment<128x64xf32, lanes>
  return %c : i32
}
func.func @few_rows(%acc: !pipe.fragment<64x64xf32, wgmma>) -> i32 {
  %r, %c = pipe.place %acc : !pipe.fragment<64x64xf32, wgmma>
  return %r : i32
}
func.func @bad(%acc: !pipe.fragment<64x128xf32, wgmma>) -> i32 {
  // (C374)
  // expected-error @+2 {{fragment of wgmma must have 8, 16, 32 or 64 columns, but got '!pipe.fragment<64x128xf32, wgmma>'}}
  // expected-note @+1 {{take the place of fewer rows than threads gather}}
  %r, %c = pipe.place %acc : !pipe.fragment<64x128xf32, wgmma>
  return %r : i32
}

// -----

func.func @twin(%acc: !pipe.tmem<128x64xf32>) -> i32 {
  %r, %c = pipe.place %acc : !pipe.tmem<128x64xf32>
  return %c : i32
}

// -----

gpu.module @m {
  gpu.func @halves(%x: !pipe.global<f32>) kernel {
    %c = pipe.channel from tensor to threads(256) : !pipe.channel<!pipe.tmem<128x64xf32, pair>>
    pipe.role epilogue warps 0 to 8 drives [threads] {
      %acc = pipe.consumer_wait %c : !pipe.channel<!pipe.tmem<128x64xf32, pair>>
      // (C374)
      // expected-error @+2 {{accumulator in tensor memory must have columns for each of 2 warpgroups, but got '!pipe.tmem<128x64xf32, pair>'}}
      // expected-note @+1 {{take an accumulator whose columns the warpgroups of the role divide, of 128 rows or 256 of a pair}}
      %r, %column = pipe.place %acc : !pipe.tmem<128x64xf32, pair>
    }
    gpu.return
  }
}

// -----

func.func @twin(%a: !pipe.global<?x56xf32>, %b: !pipe.global<32x56xf32>, %m: i32, %n: i32, %k: i32, %rows: i32) -> f32 {
  %s = pipe.scales %a[%m], %b[%n of 64] block %k rows %rows : !pipe.global<?x56xf32>, !pipe.global<32x56xf32> -> f32
  return %s : f32
}
func.func @bad(%a: !pipe.global<?x56xf32>, %b: !pipe.global<32x56xbf16>, %m: i32, %n: i32, %k: i32, %rows: i32) -> f32 {
  // (C221)
  // expected-error @+2 {{b must have 2 dimensions of f32, but got}}
  // expected-note @+1 {{pass the scales as an f32 matrix, a column for each block of k}}
  %s = pipe.scales %a[%m], %b[%n of 64] block %k rows %rows : !pipe.global<?x56xf32>, !pipe.global<32x56xbf16> -> f32
  return %s : f32
}

// -----

func.func @bad(%a: !pipe.global<?x56xf32>, %b: !pipe.global<32x55xf32>, %m: i32, %n: i32, %k: i32, %rows: i32) -> f32 {
  // (C221)
  // expected-error @+2 {{a and b must have as many columns, a scale for each block of k, but got}}
  // expected-note @+1 {{both operands have a scale for each 128 elements of k}}
  %s = pipe.scales %a[%m], %b[%n of 64] block %k rows %rows : !pipe.global<?x56xf32>, !pipe.global<32x55xf32> -> f32
  return %s : f32
}

// -----

func.func @bad(%a: !pipe.global<?x56xf32>, %b: !pipe.global<?x56xf32>, %m: i32, %n: i32, %k: i32, %rows: i32) -> f32 {
  // (C221)
  // expected-error @+2 {{b must have known rows, but got}}
  // expected-note @+1 {{take a buffer with static rows, or pipe.view with 'rows'}}
  %s = pipe.scales %a[%m], %b[%n of 64] block %k rows %rows : !pipe.global<?x56xf32>, !pipe.global<?x56xf32> -> f32
  return %s : f32
}

// -----

func.func @bad(%a: !pipe.global<?x56xf32>, %b: !pipe.global<32x56xf32>, %m: i32, %n: i32, %k: i32) -> f32 {
  // (C221)
  // expected-error @+2 {{expects operand 'rows' for dynamic rows, but got none}}
  // expected-note @+1 {{='rows' is the number of rows that exist, which only a dynamic buffer leaves open}}
  %s = pipe.scales %a[%m], %b[%n of 64] block %k : !pipe.global<?x56xf32>, !pipe.global<32x56xf32> -> f32
  return %s : f32
}

// -----

func.func @bad(%a: !pipe.global<?x56xf32>, %b: !pipe.global<32x56xf32>, %m: i32, %n: i32, %k: i32, %rows: i32) -> f32 {
  // (C375)
  // expected-error @+2 {{columns must divide 128, but got 96}}
  // expected-note @+1 {{a segment of columns has one scale of b: take a power of two up to 128}}
  %s = pipe.scales %a[%m], %b[%n of 96] block %k rows %rows : !pipe.global<?x56xf32>, !pipe.global<32x56xf32> -> f32
  return %s : f32
}

// -----

func.func @twin(%a: !pipe.global<128x56xf32>, %b: !pipe.global<32x56xf32>, %m: i32, %n: i32, %k: i32) -> f32 {
  %s = pipe.scales %a[%m], %b[%n of 64] block %k : !pipe.global<128x56xf32>, !pipe.global<32x56xf32> -> f32
  return %s : f32
}
func.func @bad(%a: !pipe.global<128x56xf32>, %b: !pipe.global<32x56xf32>, %m: i32, %n: i32, %k: i32, %rows: i32) -> f32 {
  // (C221)
  // expected-error @+2 {{expects no operand 'rows' for static rows, but got one}}
  // expected-note @+1 {{='rows' is the number of rows that exist, which only a dynamic buffer leaves open}}
  %s = pipe.scales %a[%m], %b[%n of 64] block %k rows %rows : !pipe.global<128x56xf32>, !pipe.global<32x56xf32> -> f32
  return %s : f32
}

// -----

func.func @bad(%a: !pipe.global<?x56xbf16>, %b: !pipe.global<32x56xf32>, %m: i32, %n: i32, %k: i32, %rows: i32) -> f32 {
  // (C221)
  // expected-error @+2 {{a must have 2 dimensions of f32, but got}}
  // expected-note @+1 {{pass the scales as an f32 matrix, a column for each block of k}}
  %s = pipe.scales %a[%m], %b[%n of 64] block %k rows %rows : !pipe.global<?x56xbf16>, !pipe.global<32x56xf32> -> f32
  return %s : f32
}

// -----

func.func @bad(%a: !pipe.global<56xf32>, %b: !pipe.global<32x56xf32>, %m: i32, %n: i32, %k: i32) -> f32 {
  // (C221)
  // expected-error @+2 {{a must have 2 dimensions of f32, but got}}
  // expected-note @+1 {{pass the scales as an f32 matrix, a column for each block of k}}
  %s = pipe.scales %a[%m], %b[%n of 64] block %k : !pipe.global<56xf32>, !pipe.global<32x56xf32> -> f32
  return %s : f32
}

// -----

func.func @bad(%a: !pipe.global<?x?xf32>, %b: !pipe.global<32x?xf32>, %m: i32, %n: i32, %k: i32, %rows: i32) -> f32 {
  // (C492)
  // expected-error @+2 {{buffer must have static columns or come from a pipe.view with a pitch, but got}}
  // expected-note @+1 {{a pointer does not say where its rows are}}
  %s = pipe.scales %a[%m], %b[%n of 64] block %k rows %rows : !pipe.global<?x?xf32>, !pipe.global<32x?xf32> -> f32
  return %s : f32
}

// -----

func.func @twin(%a: !pipe.shared<128x4xf32>, %b: !pipe.shared<1x4xf32>, %k: i32) -> f32 {
  %s = pipe.scales %a[0], %b block %k : !pipe.shared<128x4xf32>, !pipe.shared<1x4xf32> -> f32
  return %s : f32
}
func.func @bad(%a: !pipe.shared<128x4xf32>, %b: !pipe.shared<1x4xi32>, %k: i32) -> f32 {
  // (C324)
  // expected-error @+2 {{b must be f32 without a swizzle, but got}}
  // expected-note @+1 {{write !pipe.shared<ROWSxCOLUMNSxf32>}}
  %s = pipe.scales %a[0], %b block %k : !pipe.shared<128x4xf32>, !pipe.shared<1x4xi32> -> f32
  return %s : f32
}

// -----

func.func @bad(%a: !pipe.shared<128x4xf32>, %b: !pipe.shared<1x8xf32>, %k: i32) -> f32 {
  // (C324)
  // expected-error @+2 {{a and b must have as many columns, a scale for each block of k, but got}}
  // expected-note @+1 {{both operands have a scale for each 128 elements of k}}
  %s = pipe.scales %a[0], %b block %k : !pipe.shared<128x4xf32>, !pipe.shared<1x8xf32> -> f32
  return %s : f32
}

// -----

func.func @bad(%a: !pipe.shared<64x4xf32>, %b: !pipe.shared<1x4xf32>, %k: i32) -> f32 {
  // (C376)
  // expected-error @+2 {{a must have 128 rows from 0 on, but got}}
  // expected-note @+1 {{load the scales of all 128 rows}}
  %s = pipe.scales %a[0], %b block %k : !pipe.shared<64x4xf32>, !pipe.shared<1x4xf32> -> f32
  return %s : f32
}

// -----

func.func @bad(%a: !pipe.shared<128x4xi32>, %b: !pipe.shared<1x4xf32>, %k: i32) -> f32 {
  // (C324)
  // expected-error @+2 {{a must be f32 without a swizzle, but got}}
  // expected-note @+1 {{write !pipe.shared<ROWSxCOLUMNSxf32>}}
  %s = pipe.scales %a[0], %b block %k : !pipe.shared<128x4xi32>, !pipe.shared<1x4xf32> -> f32
  return %s : f32
}

// -----

func.func @bad(%a: !pipe.shared<128x32xf32, swizzle_128B>, %b: !pipe.shared<1x32xf32>, %k: i32) -> f32 {
  // (C324)
  // expected-error @+2 {{a must be f32 without a swizzle, but got}}
  // expected-note @+1 {{write !pipe.shared<ROWSxCOLUMNSxf32>}}
  %s = pipe.scales %a[0], %b block %k : !pipe.shared<128x32xf32, swizzle_128B>, !pipe.shared<1x32xf32> -> f32
  return %s : f32
}

// -----

gpu.module @m {
  gpu.func @twin(%x: !pipe.global<f32>) kernel {
    %c = pipe.channel from tma to threads(256) : !pipe.channel<!pipe.shared<128x4xf32>, !pipe.shared<2x4xf32>>
    pipe.role promote warps 0 to 8 drives [threads] {
      %k = arith.constant 0 : i32
      %a, %b = pipe.consumer_wait %c : !pipe.channel<!pipe.shared<128x4xf32>, !pipe.shared<2x4xf32>>
      %s = pipe.scales %a[0], %b block %k : !pipe.shared<128x4xf32>, !pipe.shared<2x4xf32> -> f32
    }
    gpu.return
  }
  gpu.func @bad(%x: !pipe.global<f32>) kernel {
    %c = pipe.channel from tma to threads(256) : !pipe.channel<!pipe.shared<128x4xf32>, !pipe.shared<3x4xf32>>
    pipe.role promote warps 0 to 8 drives [threads] {
      %k = arith.constant 0 : i32
      %a, %b = pipe.consumer_wait %c : !pipe.channel<!pipe.shared<128x4xf32>, !pipe.shared<3x4xf32>>
      // (C376)
      // expected-error @+2 {{b must have one row, or one for each of the 2 warpgroups of its role, but got}}
      // expected-note @+1 {{load one row of scales for all columns, or a row for each warpgroup}}
      %s = pipe.scales %a[0], %b block %k : !pipe.shared<128x4xf32>, !pipe.shared<3x4xf32> -> f32
    }
    gpu.return
  }
}

// -----

func.func @twin(%acc: !pipe.fragment<128x64xf32, lanes>, %sums: !pipe.tmem<128x64xf32>, %s: f32) {
  pipe.promote %acc, %sums scaled %s : !pipe.fragment<128x64xf32, lanes>, !pipe.tmem<128x64xf32>, f32
  return
}
func.func @bad(%acc: !pipe.fragment<64x64xf32, wgmma>, %sums: !pipe.tmem<128x64xf32>, %s: f32) {
  // (C377)
  // expected-error @+2 {{accumulator must be a fragment of lanes, but got}}
  // expected-note @+1 {{write !pipe.fragment<128xNxf32, lanes>}}
  pipe.promote %acc, %sums scaled %s : !pipe.fragment<64x64xf32, wgmma>, !pipe.tmem<128x64xf32>, f32
  return
}

// -----

func.func @bad(%acc: !pipe.fragment<128x64xf32, lanes>, %sums: !pipe.tmem<128x96xf32>, %s: f32) {
  // (C377)
  // expected-error @+2 {{sums must be in tensor memory and have the 64 columns of the accumulator for each warpgroup of the role, but got}}
  // expected-note @+1 {{let the sums have the columns of all warpgroups side by side, and leave 'at' out}}
  pipe.promote %acc, %sums scaled %s : !pipe.fragment<128x64xf32, lanes>, !pipe.tmem<128x96xf32>, f32
  return
}

// -----

func.func @twin(%acc: !pipe.fragment<128x16xf32, lanes>, %sums: !pipe.tmem<128x16xf32>, %s: f32) {
  pipe.promote %acc, %sums scaled %s : !pipe.fragment<128x16xf32, lanes>, !pipe.tmem<128x16xf32>, f32
  return
}
func.func @bad(%acc: !pipe.fragment<128x16xf32, lanes>, %sums: !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>, %s: f32) {
  // (C377)
  // expected-error @+2 {{sums must be in tensor memory and have the 16 columns of the accumulator for each warpgroup of the role, but got}}
  // expected-note @+1 {{let the sums have the columns of all warpgroups side by side, and leave 'at' out}}
  pipe.promote %acc, %sums scaled %s : !pipe.fragment<128x16xf32, lanes>, !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>, f32
  return
}

// -----

gpu.module @m {
  gpu.func @twin(%x: !pipe.global<f32>) kernel {
    %c = pipe.channel from tensor to threads(256) : !pipe.channel<!pipe.tmem<128x128xf32>>
    pipe.role promote warps 0 to 8 drives [threads] {
      %s = arith.constant 1.0 : f32
      %acc = pipe.accumulator : !pipe.fragment<128x64xf32, lanes>
      %sums = pipe.consumer_wait %c : !pipe.channel<!pipe.tmem<128x128xf32>>
      pipe.promote %acc, %sums scaled %s : !pipe.fragment<128x64xf32, lanes>, !pipe.tmem<128x128xf32>, f32
    }
    gpu.return
  }
  gpu.func @columns(%x: !pipe.global<f32>) kernel {
    %c = pipe.channel from tensor to threads(128) : !pipe.channel<!pipe.tmem<128x128xf32>>
    pipe.role promote warps 0 to 4 drives [threads] {
      %s = arith.constant 1.0 : f32
      %acc = pipe.accumulator : !pipe.fragment<128x64xf32, lanes>
      %sums = pipe.consumer_wait %c : !pipe.channel<!pipe.tmem<128x128xf32>>
      // (C377)
      // expected-error @+2 {{sums must be in tensor memory and have the 64 columns of the accumulator for each warpgroup of the role, but got}}
      // expected-note @+1 {{let the sums have the columns of all warpgroups side by side, and leave 'at' out}}
      pipe.promote %acc, %sums scaled %s : !pipe.fragment<128x64xf32, lanes>, !pipe.tmem<128x128xf32>, f32
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @warps(%x: !pipe.global<f32>) kernel {
    %c = pipe.channel from tensor to threads(256) : !pipe.channel<!pipe.tmem<128x128xf32>>
    // expected-note @+1 {{the role begins here}}
    pipe.role promote warps 2 to 10 drives [threads] {
      %s = arith.constant 1.0 : f32
      %acc = pipe.accumulator : !pipe.fragment<128x64xf32, lanes>
      %sums = pipe.consumer_wait %c : !pipe.channel<!pipe.tmem<128x128xf32>>
      // (C119)
      // expected-error @+1 {{must be in a role of 4 or 8 warps from a multiple of 4 to access tensor memory, but is in warps 2 to 10}}
      pipe.promote %acc, %sums scaled %s : !pipe.fragment<128x64xf32, lanes>, !pipe.tmem<128x128xf32>, f32
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @reads(%x: !pipe.global<f32>) kernel {
    %c = pipe.channel from tensor to threads(512) : !pipe.channel<!pipe.tmem<128x128xf32>>
    // expected-note @+1 {{the role begins here}}
    pipe.role promote warps 0 to 16 drives [threads] {
      %c0 = arith.constant 0 : i32
      %sums = pipe.consumer_wait %c : !pipe.channel<!pipe.tmem<128x128xf32>>
      // (C119)
      // expected-error @+1 {{must be in a role of 4 or 8 warps from a multiple of 4 to access tensor memory, but is in warps 0 to 16}}
      %v = pipe.read %sums[%c0] : !pipe.tmem<128x128xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
    }
    gpu.return
  }
}

// -----

func.func @twin(%acc: !pipe.fragment<128x64xf32, lanes>) -> tensor<128x32xf32, #pipe.distribution<lanes>> {
  %v = pipe.read %acc[32] : !pipe.fragment<128x64xf32, lanes> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  return %v : tensor<128x32xf32, #pipe.distribution<lanes>>
}
func.func @bad(%acc: !pipe.fragment<128x64xf32, lanes>) -> tensor<128x32xf32, #pipe.distribution<lanes>> {
  // (C182)
  // expected-error @+2 {{tile must be within the 128x64 of the accumulator, from a multiple of 128 rows and 8 columns on, but got 128x32 from [0, 48] on}}
  // expected-note @+1 {{read fewer columns, or from an earlier one on}}
  %v = pipe.read %acc[48] : !pipe.fragment<128x64xf32, lanes> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  return %v : tensor<128x32xf32, #pipe.distribution<lanes>>
}

// -----

func.func @bad(%acc: !pipe.fragment<128x64xf32, lanes>) -> tensor<128x32xf32, #pipe.distribution<lanes>> {
  // (C182)
  // expected-error @+2 {{tile must be within the 128x64 of the accumulator, from a multiple of 128 rows and 8 columns on, but got 128x32 from [0, -32] on}}
  // expected-note @+1 {{read fewer columns, or from an earlier one on}}
  %v = pipe.read %acc[-32] : !pipe.fragment<128x64xf32, lanes> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  return %v : tensor<128x32xf32, #pipe.distribution<lanes>>
}

// -----

func.func @bad(%acc: !pipe.fragment<64x64xf32, wgmma>) -> tensor<128x32xf32, #pipe.distribution<lanes>> {
  // (C182)
  // expected-error @+2 {{result must have the distribution of its accumulator of f32, but got 'tensor<128x32xf32, #pipe.distribution<lanes>>' from '!pipe.fragment<64x64xf32, wgmma>'}}
  // expected-note @+1 {{write the kind of the fragment in the #pipe.distribution}}
  %v = pipe.read %acc[32] : !pipe.fragment<64x64xf32, wgmma> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  return %v : tensor<128x32xf32, #pipe.distribution<lanes>>
}
