// Tiles that leave through shared memory; the first operation of each case is legal.
// RUN: fp4-opt %s -split-input-file -verify-diagnostics

func.func @rows(%v: vector<64xbf16>, %w: vector<32xbf16>) {
  %ok = pipe.stage %v : vector<64xbf16> -> !pipe.shared<128x64xbf16, swizzle_128B>
  %narrow = pipe.stage %w : vector<32xbf16> -> !pipe.shared<128x32xbf16, swizzle_64B>
  %two = pipe.stage %v : vector<64xbf16> -> !pipe.shared<256x64xbf16, swizzle_128B>
  // (C160)
  // expected-error @+2 {{tile must be 128 rows for each warpgroup of the role, one or two, of 'vector<32xbf16>', as wide as its swizzle, but got '!pipe.shared<128x64xbf16, swizzle_128B>'}}
  // expected-note @+1 {{write a row for each thread, and the columns of the vector as wide as a swizzle}}
  %bad = pipe.stage %w : vector<32xbf16> -> !pipe.shared<128x64xbf16, swizzle_128B>
  return
}

// -----

func.func @ends(%v: vector<64xbf16>) {
  // (C160)
  // expected-error @+2 {{must either return a tile or fill a destination}}
  // expected-note @+1 {{write a result, or 'into %slot', and not both}}
  pipe.stage %v : vector<64xbf16>
  return
}

// -----

!tile = !pipe.shared<128x64xbf16, swizzle_128B>
func.func @box(%v: vector<64xbf16>, %y: !pipe.tensor_map<128x64xbf16, swizzle_128B>,
    %z: !pipe.tensor_map<64x64xbf16, swizzle_128B>, %c: i32) {
  %t = pipe.stage %v : vector<64xbf16> -> !tile
  pipe.store_tile %t, %y[%c, %c] : !tile, !pipe.tensor_map<128x64xbf16, swizzle_128B>
  // (C161)
  // expected-error @+2 {{tile must have the box of its map, '!pipe.shared<64x64xbf16, swizzle_128B>', but got '!pipe.shared<128x64xbf16, swizzle_128B>'}}
  // expected-note @+1 {{stage the tile in the box, element type and layout of the map}}
  pipe.store_tile %t, %z[%c, %c] : !tile, !pipe.tensor_map<64x64xbf16, swizzle_128B>
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
    pipe.store_tile %t, %y[%c, %c] : !tile, !map
    pipe.consumer_release %twin : !pipe.channel<!tile>
  }
  %staged = pipe.channel from threads(128) to bulk_store : !pipe.channel<!tile>
  // expected-note @+1 {{let a role of its own drive bulk_store, such as store warps 6 to 7 drives [bulk_store]}}
  pipe.role both warps 0 to 4 drives [threads, bulk_store] {
    %t = pipe.consumer_wait %staged : !pipe.channel<!tile>
    // (C162)
    // expected-error @+1 {{tile must come from a channel to a role without threads, but the role both drives threads}}
    pipe.store_tile %t, %y[%c, %c] : !tile, !map
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

func.func @transposed(%v: vector<8xbf16>, %y: !pipe.global<8x512xbf16>, %w: vector<4xf8E4M3FN>,
    %s: !pipe.global<128x4xf8E4M3FN, tiled_128x4>, %z: !pipe.global<8x512xf8E4M3FN>, %c: i32) {
  pipe.store %v, %y[%c, %c] transposed : vector<8xbf16>, !pipe.global<8x512xbf16>
  pipe.store %w, %z[%c, %c] transposed : vector<4xf8E4M3FN>, !pipe.global<8x512xf8E4M3FN>
  // (C200)
  // expected-error @+2 {{transposed must be elements of 8, 16 or 32 bits of a linear buffer, but got '!pipe.global<128x4xf8E4M3FN, tiled_128x4>'}}
  // expected-note @+1 {{leave 'transposed' out for codes and scales}}
  pipe.store %w, %s[%c, %c] transposed : vector<4xf8E4M3FN>, !pipe.global<128x4xf8E4M3FN, tiled_128x4>
  return
}

// -----

func.func @fragments(%v: vector<32xbf16>, %w: vector<16xbf16>) {
  %ok = pipe.stage_fragment %v : vector<32xbf16> -> !pipe.shared<128x64xbf16, swizzle_128B>
  %narrow = pipe.stage_fragment %w : vector<16xbf16> -> !pipe.shared<64x32xbf16, swizzle_64B>
  // (C325)
  // expected-error @+2 {{tile must have 64 rows for each warpgroup of its role and two columns for each element of 'vector<16xbf16>', as wide as its swizzle, but got '!pipe.shared<128x64xbf16, swizzle_128B>'}}
  // expected-note @+1 {{store to a tile of these rows and columns; more columns take several operations}}
  %bad = pipe.stage_fragment %w : vector<16xbf16> -> !pipe.shared<128x64xbf16, swizzle_128B>
  return
}

// -----

func.func @ends_of_fragments(%v: vector<32xbf16>) {
  // (C325)
  // expected-error @+2 {{must either return a tile or fill a destination}}
  // expected-note @+1 {{write a result, or 'into %slot', and not both}}
  pipe.stage_fragment %v : vector<32xbf16>
  return
}
