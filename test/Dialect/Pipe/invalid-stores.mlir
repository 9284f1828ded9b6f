// Tiles that leave through shared memory; the first operation of each case is legal.
// RUN: fp4-opt %s -split-input-file -verify-diagnostics

func.func @rows(%v: tensor<128x64xbf16, #pipe.distribution<lanes>>, %w: tensor<128x32xbf16, #pipe.distribution<lanes>>) {
  %ok = pipe.stage %v : tensor<128x64xbf16, #pipe.distribution<lanes>> -> !pipe.shared<128x64xbf16, swizzle_128B>
  %narrow = pipe.stage %w : tensor<128x32xbf16, #pipe.distribution<lanes>> -> !pipe.shared<128x32xbf16, swizzle_64B>
  %two = pipe.stage %v : tensor<128x64xbf16, #pipe.distribution<lanes>> -> !pipe.shared<256x64xbf16, swizzle_128B>
  %plain = pipe.stage %w : tensor<128x32xbf16, #pipe.distribution<lanes>> -> !pipe.shared<128x32xbf16>
  // (C325)
  // expected-error @+2 {{tile must be the rows of each warpgroup of the role of lanes, or of wgmma of 8 or 16 bits, as wide as its swizzle or of lanes a multiple of 16 bytes, but got '!pipe.shared<128x64xbf16, swizzle_128B>' and 'tensor<128x32xbf16, #pipe.distribution<lanes>>'}}
  // expected-note @+1 {{write 128 rows of lanes or 64 of wgmma for each warpgroup, and their columns}}
  %bad = pipe.stage %w : tensor<128x32xbf16, #pipe.distribution<lanes>> -> !pipe.shared<128x64xbf16, swizzle_128B>
  return
}

// -----

func.func @ends(%v: tensor<128x64xbf16, #pipe.distribution<lanes>>) {
  // (C160)
  // expected-error @+2 {{must either return a tile or fill a destination}}
  // expected-note @+1 {{write a result, or 'into %slot', and not both}}
  pipe.stage %v : tensor<128x64xbf16, #pipe.distribution<lanes>>
  return
}

// -----

!tile = !pipe.shared<128x64xbf16, swizzle_128B>
func.func @box(%v: tensor<128x64xbf16, #pipe.distribution<lanes>>, %y: !pipe.tensor_map<128x64xbf16, swizzle_128B>,
    %z: !pipe.tensor_map<64x64xbf16, swizzle_128B>, %c: i32) {
  %t = pipe.stage %v : tensor<128x64xbf16, #pipe.distribution<lanes>> -> !tile
  pipe.store %t, %y[%c, %c] : !tile, !pipe.tensor_map<128x64xbf16, swizzle_128B>
  // (C161)
  // expected-error @+2 {{tile must have the box of its map, '!pipe.shared<64x64xbf16, swizzle_128B>', but got '!pipe.shared<128x64xbf16, swizzle_128B>'}}
  // expected-note @+1 {{stage the tile in the box, element type and layout of the map}}
  pipe.store %t, %z[%c, %c] : !tile, !pipe.tensor_map<64x64xbf16, swizzle_128B>
  return
}

// -----

!tile = !pipe.shared<128x64xbf16, swizzle_128B>
!map = !pipe.tensor_map<128x64xbf16, swizzle_128B>
gpu.module @m {
gpu.func @roles(%y: !map, %c: i32) kernel {
  %twin = pipe.channel from threads(128) to bulk_store : !pipe.channel<!tile>
  pipe.role store warps 6 to 7 drives [bulk_store] {
    %t = pipe.consumer_wait %twin : !pipe.channel<!tile>
    pipe.store %t, %y[%c, %c] : !tile, !map
    pipe.consumer_release %twin : !pipe.channel<!tile>
  }
  %staged = pipe.channel from threads(128) to bulk_store : !pipe.channel<!tile>
  // expected-note @+1 {{let a role of its own drive bulk_store, such as store warps 6 to 7 drives [bulk_store]}}
  pipe.role both warps 0 to 4 drives [threads, bulk_store] {
    %t = pipe.consumer_wait %staged : !pipe.channel<!tile>
    // (C162)
    // expected-error @+1 {{tile must come from a channel to a role without threads, but the role both drives threads}}
    pipe.store %t, %y[%c, %c] : !tile, !map
  }
  gpu.return
}
}

// -----

!tiles = !pipe.channel<!pipe.shared<128x64xbf16, swizzle_128B>>
func.func @loaded() {
  %twin = pipe.channel from threads(128) to bulk_store : !tiles
  // (C163)
  // expected-error @+2 {{bulk_store must be the one consumer, with one arrival, of a shared memory payload that threads fill, but got 1 consumers with 1 arrivals and producer tma}}
  // expected-note @+1 {{give the payload to a channel of its own that threads produce, and its consumer one arrival}}
  %bad = pipe.channel from tma to bulk_store : !tiles
  return
}

// -----

!tiles = !pipe.channel<!pipe.shared<128x64xbf16, swizzle_128B>>
func.func @several() {
  // (C163)
  // expected-error @+2 {{bulk_store must be the one consumer, with one arrival, of a shared memory payload that threads fill, but got 2 consumers with 2 arrivals and producer threads}}
  // expected-note @+1 {{give the payload to a channel of its own that threads produce, and its consumer one arrival}}
  %bad = pipe.channel from threads(128) to [bulk_store, tensor] : !tiles
  return
}

// -----

func.func @transposed(%v: tensor<128x8xbf16, #pipe.distribution<lanes>>, %y: !pipe.global<8x512xbf16>, %w: tensor<128x4xf8E4M3FN, #pipe.distribution<lanes>>,
    %s: !pipe.global<128x4xf8E4M3FN, tiled_128x4>, %z: !pipe.global<8x512xf8E4M3FN>, %c: i32) {
  pipe.store %v, %y[%c, %c] transposed : tensor<128x8xbf16, #pipe.distribution<lanes>>, !pipe.global<8x512xbf16>
  pipe.store %w, %z[%c, %c] transposed : tensor<128x4xf8E4M3FN, #pipe.distribution<lanes>>, !pipe.global<8x512xf8E4M3FN>
  // (C200)
  // expected-error @+2 {{transposed must be elements of 8, 16 or 32 bits of a linear buffer, but got '!pipe.global<128x4xf8E4M3FN, tiled_128x4>'}}
  // expected-note @+1 {{leave 'transposed' out for codes and scales}}
  pipe.store %w, %s[%c, %c] transposed : tensor<128x4xf8E4M3FN, #pipe.distribution<lanes>>, !pipe.global<128x4xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @fragments(%v: tensor<64x64xbf16, #pipe.distribution<wgmma>>, %w: tensor<64x32xbf16, #pipe.distribution<wgmma>>) {
  %ok = pipe.stage %v : tensor<64x64xbf16, #pipe.distribution<wgmma>> -> !pipe.shared<128x64xbf16, swizzle_128B>
  %narrow = pipe.stage %w : tensor<64x32xbf16, #pipe.distribution<wgmma>> -> !pipe.shared<64x32xbf16, swizzle_64B>
  // (C325)
  // expected-error @+2 {{tile must be the rows of each warpgroup of the role of lanes, or of wgmma of 8 or 16 bits, as wide as its swizzle or of lanes a multiple of 16 bytes, but got '!pipe.shared<128x64xbf16, swizzle_128B>' and 'tensor<64x32xbf16, #pipe.distribution<wgmma>>'}}
  // expected-note @+1 {{write 128 rows of lanes or 64 of wgmma for each warpgroup, and their columns}}
  %bad = pipe.stage %w : tensor<64x32xbf16, #pipe.distribution<wgmma>> -> !pipe.shared<128x64xbf16, swizzle_128B>
  return
}

// -----

func.func @bytes(%v: tensor<64x64xf8E4M3FN, #pipe.distribution<wgmma>>, %w: tensor<64x64xf8E5M2, #pipe.distribution<wgmma>>) {
  %ok = pipe.stage %v : tensor<64x64xf8E4M3FN, #pipe.distribution<wgmma>> -> !pipe.shared<64x64xf8E4M3FN, swizzle_64B>
  // (C325)
  // expected-error @+2 {{tile must be the rows of each warpgroup of the role of lanes, or of wgmma of 8 or 16 bits, as wide as its swizzle or of lanes a multiple of 16 bytes, but got '!pipe.shared<64x64xf8E5M2, swizzle_64B>' and 'tensor<64x64xf8E5M2, #pipe.distribution<wgmma>>'}}
  // expected-note @+1 {{write 128 rows of lanes or 64 of wgmma for each warpgroup, and their columns}}
  %bad = pipe.stage %w : tensor<64x64xf8E5M2, #pipe.distribution<wgmma>> -> !pipe.shared<64x64xf8E5M2, swizzle_64B>
  return
}

// -----

!tile = !pipe.shared<128x64xbf16, swizzle_128B>
func.func @fields(%t: !tile, %y: !pipe.tensor_map<128x64xbf16, swizzle_128B>, %c: i32) {
  pipe.store %t, %y[%c, %c] : !tile, !pipe.tensor_map<128x64xbf16, swizzle_128B>
  // (C161)
  // expected-error @+2 {{of a tile in shared memory must have a map, a row and a column}}
  // expected-note @+1 {{leave out what threads say of their elements}}
  pipe.store %t, %y[%c, %c] rows %c : !tile, !pipe.tensor_map<128x64xbf16, swizzle_128B>
  return
}

// -----

func.func @map(%v: tensor<128x32xbf16, #pipe.distribution<lanes>>, %y: !pipe.tensor_map<128x64xbf16, swizzle_128B>,
    %d: !pipe.global<512x512xbf16>, %c: i32) {
  pipe.store %v, %d[%c, %c] : tensor<128x32xbf16, #pipe.distribution<lanes>>, !pipe.global<512x512xbf16>
  // (C118)
  // expected-error @+2 {{of threads must have a buffer, and a column that is a value or a number}}
  // expected-note @+1 {{stage the elements in shared memory, and store the tile with a map}}
  pipe.store %v, %y[%c, %c] : tensor<128x32xbf16, #pipe.distribution<lanes>>, !pipe.tensor_map<128x64xbf16, swizzle_128B>
  return
}

// -----

func.func @workspace(%v: tensor<64x32xf32, #pipe.distribution<wgmma>>, %p: !pipe.global<8x4096xf32>, %i: i32) {
  pipe.store %v, %p[%i, 0] : tensor<64x32xf32, #pipe.distribution<wgmma>>, !pipe.global<8x4096xf32>
  // (C192)
  // expected-error @+2 {{to a workspace must have a row and a column alone}}
  // expected-note @+1 {{write '[%row, 0]': only threads of other CTAs fetch the elements}}
  pipe.store %v, %p[%i, 0] transposed : tensor<64x32xf32, #pipe.distribution<wgmma>>, !pipe.global<8x4096xf32>
  return
}

// -----

func.func @sums(%v: tensor<64x16xf32, #pipe.distribution<wgmma>>) {
  %ok = pipe.stage %v : tensor<64x16xf32, #pipe.distribution<wgmma>> -> !pipe.shared<2x1024xf32>
  %one = pipe.stage %v : tensor<64x16xf32, #pipe.distribution<wgmma>> -> !pipe.shared<2x512xf32>
  // (C672)
  // expected-error @+2 {{tile of sums must have a row for 8 columns of wgmma, but got '!pipe.shared<1x1024xf32>' and 'tensor<64x16xf32, #pipe.distribution<wgmma>>'}}
  // expected-note @+1 {{write !pipe.shared<2x1024xf32> for 16 columns and 256 threads}}
  %bad = pipe.stage %v : tensor<64x16xf32, #pipe.distribution<wgmma>> -> !pipe.shared<1x1024xf32>
  return
}

// -----

func.func @threads(%v: tensor<64x16xf32, #pipe.distribution<wgmma>>) {
  // (C672)
  // expected-error @+2 {{tile of sums must be linear f32 with a row for 8 columns and 4 elements for each thread, but got '!pipe.shared<2x256xf32>' for 16 columns}}
  // expected-note @+1 {{write !pipe.shared<2x1024xf32> for 16 columns and 256 threads}}
  %bad = pipe.stage %v : tensor<64x16xf32, #pipe.distribution<wgmma>> -> !pipe.shared<2x256xf32>
  return
}

// -----

func.func @read_sums(%t: !pipe.shared<2x1024xf32>, %n: i32) {
  %ok = pipe.read %t[8] : !pipe.shared<2x1024xf32> -> tensor<64x8xf32, #pipe.distribution<wgmma>>
  // (C672)
  // expected-error @+2 {{tile of sums must be linear f32 with a row for 8 columns and 4 elements for each thread, but got '!pipe.shared<2x1024xf32>' for 24 columns}}
  // expected-note @+1 {{write !pipe.shared<2x1024xf32> for 16 columns and 256 threads}}
  %bad = pipe.read %t[8] : !pipe.shared<2x1024xf32> -> tensor<64x16xf32, #pipe.distribution<wgmma>>
  return
}

// -----

func.func @column_of_sums(%t: !pipe.shared<2x1024xf32>, %n: i32) {
  // (C672)
  // expected-error @+2 {{column of sums in shared memory must be a number, a multiple of 8 from 0 on, of a result of wgmma, but got a value of 'tensor<64x8xf32, #pipe.distribution<wgmma>>'}}
  // expected-note @+1 {{write '[8]' and tensor<64xNxf32, #pipe.distribution<wgmma>>}}
  %bad = pipe.read %t[%n] : !pipe.shared<2x1024xf32> -> tensor<64x8xf32, #pipe.distribution<wgmma>>
  return
}

// -----

func.func @before_sums(%t: !pipe.shared<2x1024xf32>) {
  %ok = pipe.read %t[0] : !pipe.shared<2x1024xf32> -> tensor<64x8xf32, #pipe.distribution<wgmma>>
  // (C672)
  // expected-error @+2 {{column of sums in shared memory must be a number, a multiple of 8 from 0 on, of a result of wgmma, but got -8 of}}
  // expected-note @+1 {{write '[8]' and tensor<64xNxf32, #pipe.distribution<wgmma>>}}
  %bad = pipe.read %t[-8] : !pipe.shared<2x1024xf32> -> tensor<64x8xf32, #pipe.distribution<wgmma>>
  return
}

// -----

func.func @behind_all_sums(%t: !pipe.shared<2x1024xf32>) {
  // (C672)
  // expected-error @+2 {{tile of sums must be linear f32 with a row for 8 columns and 4 elements for each thread, but got '!pipe.shared<2x1024xf32>' for 9223372036854775808 columns}}
  // expected-note @+1 {{write !pipe.shared<2x1024xf32> for 16 columns and 256 threads}}
  %bad = pipe.read %t[9223372036854775800] : !pipe.shared<2x1024xf32> -> tensor<64x8xf32, #pipe.distribution<wgmma>>
  return
}
