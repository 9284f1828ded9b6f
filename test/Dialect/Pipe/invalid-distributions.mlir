// RUN: fp4-opt %s -split-input-file -verify-diagnostics
// Shapes that a distribution does not have, and values of one distribution where another one is
// wanted. The first operation of each case is legal.

func.func private @twin(tensor<64x8xf32, #pipe.distribution<wgmma>>)
// (C653)
// expected-error @+2 {{tensor of #pipe.distribution<wgmma> must have 64 rows and 1 or a multiple of 8 columns, but got 64x12}}
// expected-note @+1 {{wgmma has 64 rows and mma_sync 16, by 1 or multiples of 8 columns; lanes have 128 rows, and columns are 32}}
func.func private @bad(tensor<64x12xf32, #pipe.distribution<wgmma>>)

// -----

func.func private @twin(tensor<16x8xf32, #pipe.distribution<mma_sync>>)
// (C653)
// expected-error @+2 {{tensor of #pipe.distribution<mma_sync> must have 16 rows and 1 or a multiple of 8 columns, but got 64x8}}
// expected-note @+1 {{wgmma has 64 rows and mma_sync 16, by 1 or multiples of 8 columns; lanes have 128 rows, and columns are 32}}
func.func private @bad(tensor<64x8xf32, #pipe.distribution<mma_sync>>)

// -----

func.func private @twin(tensor<128x1xf32, #pipe.distribution<lanes>>)
// (C653)
// expected-error @+2 {{tensor of #pipe.distribution<lanes> must have 128 rows and a multiple of 1 columns, but got 64x32}}
// expected-note @+1 {{wgmma has 64 rows and mma_sync 16, by 1 or multiples of 8 columns; lanes have 128 rows, and columns are 32}}
func.func private @bad(tensor<64x32xf32, #pipe.distribution<lanes>>)

// -----

func.func private @twin(tensor<4x32xf32, #pipe.distribution<columns>>)
// (C653)
// expected-error @+2 {{tensor of #pipe.distribution<columns> must have a multiple of 4 rows and 32 columns, but got 6x32}}
// expected-note @+1 {{wgmma has 64 rows and mma_sync 16, by 1 or multiples of 8 columns; lanes have 128 rows, and columns are 32}}
func.func private @bad(tensor<6x32xf32, #pipe.distribution<columns>>)

// -----

// (C653)
// expected-error @+2 {{tensor of #pipe.distribution<lanes> must have 2 static dimensions of a tile, but got 1 of [128]}}
// expected-note @+1 {{a thread has a constant number of elements, because registers have names}}
func.func private @bad(tensor<128xf32, #pipe.distribution<lanes>>)

// -----

// expected-error @+2 {{distribution must be wgmma, mma_sync, lanes or columns, but got rows}}
// expected-note @+1 {{wgmma and mma_sync share a tile as their accumulators, lanes are rows of threads, and pipe.transpose makes columns}}
func.func private @bad(tensor<128x8xf32, #pipe.distribution<rows>>)

// -----

// expected-error @+2 {{fragment must be of wgmma, mma_sync or lanes, but got columns}}
// expected-note @+1 {{wgmma and mma_sync hold what their instruction adds to, lanes what threads read from tensor memory}}
func.func private @bad(!pipe.fragment<128x32xf32, columns>)

// -----

// A row of a thread is not added to the fragment of a warpgroup.
func.func @add(%row: tensor<128x32xf32, #pipe.distribution<lanes>>, %fragment: tensor<64x64xf32, #pipe.distribution<wgmma>>) {
  %twin = arith.addf %row, %row : tensor<128x32xf32, #pipe.distribution<lanes>>
  // expected-note @-2 {{prior use here}}
  // expected-error @+1 {{use of value '%fragment' expects different type than prior uses}}
  %bad = arith.addf %row, %fragment : tensor<128x32xf32, #pipe.distribution<lanes>>
  return
}

// -----

// Elements of one shape in two distributions differ.
func.func @convert(%row: tensor<128x32xf32, #pipe.distribution<lanes>>) {
  %twin = arith.truncf %row : tensor<128x32xf32, #pipe.distribution<lanes>> to tensor<128x32xbf16, #pipe.distribution<lanes>>
  // expected-error @+1 {{op}}
  %bad = arith.truncf %row : tensor<128x32xf32, #pipe.distribution<lanes>> to tensor<128x32xbf16, #pipe.distribution<columns>>
  return
}

// -----

func.func @staged(%fragment: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %row: tensor<128x16xbf16, #pipe.distribution<lanes>>, %y: !pipe.global<64x512xbf16>, %i: i32) {
  pipe.store %fragment, %y[%i, %i] transposed staged : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<64x512xbf16>
  // (C333)
  // expected-error @+2 {{staged must be transposed, in whole warpgroups, of wgmma, a multiple of 16 columns of 16 bits and of a buffer with a multiple of 8 columns, but got 'tensor<128x16xbf16, #pipe.distribution<lanes>>'}}
  // expected-note @+1 {{leave 'staged' out, and each thread stores what it has}}
  pipe.store %row, %y[%i, %i] transposed staged : tensor<128x16xbf16, #pipe.distribution<lanes>>, !pipe.global<64x512xbf16>
  return
}

// -----

func.func @columns(%turned: tensor<128x32xf4E2M1FN, #pipe.distribution<columns>>, %q: !pipe.global<512x256xf4E2M1FN>, %i: i32) {
  pipe.store %turned, %q[%i, %i] transposed : tensor<128x32xf4E2M1FN, #pipe.distribution<columns>>, !pipe.global<512x256xf4E2M1FN>
  // (C213)
  // expected-error @+2 {{value of columns must be transposed, 32 codes, 1 or 2 scales of a thread or an f32, but got}}
  // expected-note @+1 {{quantize 32 elements of a column at a time}}
  pipe.store %turned, %q[%i, %i] : tensor<128x32xf4E2M1FN, #pipe.distribution<columns>>, !pipe.global<512x256xf4E2M1FN>
  return
}

// -----

func.func @read(%tmem: !pipe.tmem<128x64xf32>, %i: i32) {
  %twin = pipe.read %tmem[%i] : !pipe.tmem<128x64xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  // (C117)
  // expected-error @+2 {{result must be lanes of an accumulator of f32, but got 'tensor<64x32xf32, #pipe.distribution<wgmma>>'}}
  // expected-note @+1 {{write tensor<128xNxf32, #pipe.distribution<lanes>>}}
  %bad = pipe.read %tmem[%i] : !pipe.tmem<128x64xf32> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  return
}

// -----

func.func @read(%tmem: !pipe.tmem<128x64xf32>, %i: i32) {
  // (C117)
  // expected-error @+2 {{column of tensor memory must be a value, without a row}}
  // expected-note @+1 {{write '[%column]', where %column is an i32}}
  %bad = pipe.read %tmem[32] : !pipe.tmem<128x64xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  return
}

// -----

func.func @read(%sums: !pipe.fragment<64x64xf32, wgmma>, %i: i32) {
  %twin = pipe.read %sums[0] : !pipe.fragment<64x64xf32, wgmma> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  // (C182)
  // expected-error @+2 {{column of a fragment must be a number, but got a value}}
  // expected-note @+1 {{write '[32]': registers have constant numbers}}
  %bad = pipe.read %sums[%i] : !pipe.fragment<64x64xf32, wgmma> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  return
}

// -----

func.func @factors(%p: !pipe.global<1x512xf32>, %i: i32) {
  %twin = pipe.fetch %p[%i, %i] : !pipe.global<1x512xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  // (C144)
  // expected-error @+2 {{result must be of wgmma, mma_sync or lanes, but got 'tensor<128x32xf32, #pipe.distribution<columns>>'}}
  // expected-note @+1 {{load the numbers before pipe.transpose}}
  %bad = pipe.fetch %p[%i, %i] : !pipe.global<1x512xf32> -> tensor<128x32xf32, #pipe.distribution<columns>>
  return
}

// -----

func.func @quantize(%row: tensor<128x32xf32, #pipe.distribution<lanes>>, %fragment: tensor<64x64xf32, #pipe.distribution<wgmma>>, %a: f32) {
  %c, %s = pipe.quantize_blocks %row amax %a {recipe = #fp4.recipe<transformer_engine>} : tensor<128x32xf32, #pipe.distribution<lanes>> -> tensor<128x32xf4E2M1FN, #pipe.distribution<lanes>>, tensor<128x2xf8E4M3FN, #pipe.distribution<lanes>>
  // (C127)
  // expected-error @+2 {{value must be lanes or columns, blocks of 16 elements in a thread, but got 'tensor<64x64xf32, #pipe.distribution<wgmma>>'}}
  // expected-note @+1 {{make rows of threads with pipe.gather_rows, of whole blocks}}
  %d, %t = pipe.quantize_blocks %fragment amax %a {recipe = #fp4.recipe<transformer_engine>} : tensor<64x64xf32, #pipe.distribution<wgmma>> -> tensor<64x64xf4E2M1FN, #pipe.distribution<wgmma>>, tensor<64x8xf8E4M3FN, #pipe.distribution<wgmma>>
  return
}

// -----

func.func @parts(%half: tensor<128x64xbf16, #pipe.distribution<lanes>>, %quarter: tensor<128x32xbf16, #pipe.distribution<lanes>>) {
  %c, %s = pipe.quantize_blocks %half {recipe = #fp4.recipe<fp8_deepgemm>} : tensor<128x64xbf16, #pipe.distribution<lanes>> -> tensor<128x64xf8E4M3FN, #pipe.distribution<lanes>>, tensor<128x1xf32, #pipe.distribution<lanes>>
  // (C127)
  // expected-error @+2 {{value must be lanes or columns, blocks of 128 elements in a thread, but got 'tensor<128x32xbf16, #pipe.distribution<lanes>>'}}
  // expected-note @+1 {{make rows of threads with pipe.gather_rows, of whole blocks}}
  %d, %t = pipe.quantize_blocks %quarter {recipe = #fp4.recipe<fp8_deepgemm>} : tensor<128x32xbf16, #pipe.distribution<lanes>> -> tensor<128x32xf8E4M3FN, #pipe.distribution<lanes>>, tensor<128x1xf32, #pipe.distribution<lanes>>
  return
}

// -----

gpu.module @m {
gpu.func @threads(%half: tensor<128x64xbf16, #pipe.distribution<lanes>>) kernel {
  pipe.role two warps 0 to 8 drives [threads] {
    %c, %s = pipe.quantize_blocks %half {recipe = #fp4.recipe<fp8_deepgemm>} : tensor<128x64xbf16, #pipe.distribution<lanes>> -> tensor<128x64xf8E4M3FN, #pipe.distribution<lanes>>, tensor<128x1xf32, #pipe.distribution<lanes>>
  }
  pipe.role one warps 8 to 12 drives [threads] {
    // (C127)
    // expected-error @+2 {{role must have a multiple of 256 threads, which share blocks of 128, but has 128}}
    // expected-note @+1 {{quantize whole blocks in a thread, or give the role more warps}}
    %d, %t = pipe.quantize_blocks %half {recipe = #fp4.recipe<fp8_deepgemm>} : tensor<128x64xbf16, #pipe.distribution<lanes>> -> tensor<128x64xf8E4M3FN, #pipe.distribution<lanes>>, tensor<128x1xf32, #pipe.distribution<lanes>>
  }
  gpu.return
}
}

// -----

func.func @workspace(%fragment: tensor<64x32xf32, #pipe.distribution<wgmma>>, %row: tensor<128x16xf32, #pipe.distribution<lanes>>, %p: !pipe.global<8x4096xf32>, %i: i32) {
  pipe.store %fragment, %p[%i, 0] : tensor<64x32xf32, #pipe.distribution<wgmma>>, !pipe.global<8x4096xf32>
  // (C192)
  // expected-error @+2 {{tile must be of wgmma or mma_sync, but got 'tensor<128x16xf32, #pipe.distribution<lanes>>'}}
  // expected-note @+1 {{lanes are stored and fetched at a column that is a value}}
  pipe.store %row, %p[%i, 0] : tensor<128x16xf32, #pipe.distribution<lanes>>, !pipe.global<8x4096xf32>
  return
}

// -----

func.func @fetch(%p: !pipe.global<1024x512xf32>, %i: i32) {
  %twin = pipe.fetch %p[%i, %i] written : !pipe.global<1024x512xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  // (C172)
  // expected-error @+2 {{of what the kernel stores must have a column and 'written' for lanes, 'first' for other tiles, and no other field, but got 'tensor<64x32xf32, #pipe.distribution<wgmma>>'}}
  // expected-note @+1 {{write '[%row, %column] written' of a matrix, and '[%row] first 0' of what threads left}}
  %bad = pipe.fetch %p[%i, %i] written : !pipe.global<1024x512xf32> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  return
}

// -----

func.func @fetch(%p: !pipe.global<1024x512xf32>, %i: i32) {
  // (C172)
  // expected-error @+2 {{of what the kernel stores must have a column and 'written' for lanes, 'first' for other tiles, and no other field, but got 'tensor<128x32xf32, #pipe.distribution<lanes>>'}}
  // expected-note @+1 {{write '[%row, %column] written' of a matrix, and '[%row] first 0' of what threads left}}
  %bad = pipe.fetch %p[%i, %i] transposed written : !pipe.global<1024x512xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  return
}

// -----

func.func @plain(%v: tensor<128x32xf32, #pipe.distribution<lanes>>, %w: tensor<128x32xf32>, %y: !pipe.global<512x512xf32>, %i: i32) {
  pipe.store %v, %y[%i, %i] : tensor<128x32xf32, #pipe.distribution<lanes>>, !pipe.global<512x512xf32>
  // expected-error @+1 {{operand #0 must be tensor with a #pipe.distribution}}
  pipe.store %w, %y[%i, %i] : tensor<128x32xf32>, !pipe.global<512x512xf32>
  return
}

// -----

func.func @vector(%t: tensor<64x32xf32, #pipe.distribution<wgmma>>) {
  %twin = pipe.elements %t : tensor<64x32xf32, #pipe.distribution<wgmma>> -> vector<16xf32>
  // (C654)
  // expected-error @+2 {{vector must be 'vector<16xf32>', the elements of a thread of 'tensor<64x32xf32, #pipe.distribution<wgmma>>', but got 'vector<32xf32>'}}
  // expected-note @+1 {{divide the elements of the tile by the threads of its distribution}}
  %bad = pipe.elements %t : tensor<64x32xf32, #pipe.distribution<wgmma>> -> vector<32xf32>
  return
}

// -----

func.func @no_tile(%v: vector<16xf32>) {
  %twin = pipe.elements %v : vector<16xf32> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  // (C654)
  // expected-error @+2 {{expects a tile and a vector, but got 'vector<16xf32>' and 'vector<16xf32>'}}
  // expected-note @+1 {{write a tensor with a #pipe.distribution on one side}}
  %bad = pipe.elements %v : vector<16xf32> -> vector<16xf32>
  return
}
